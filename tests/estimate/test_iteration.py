"""The iteration of closed-loop methods on fixed points that are known in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.iteration import Past, Solved, Values, has_settled, iterate, step_size
from dynid.estimate.iterations import Iteration


@dataclass
class Affine:
    """x becomes matrix x + shift: the fixed point is (1 - matrix)^-1 shift."""

    matrix: np.ndarray
    deviation: float = 1e-3
    tolerance: float = 0.005
    fails_at: int = 0
    name: str = "affine"
    advice: str = "give up"
    steps: list[float] = field(default_factory=list)

    def start(self) -> np.ndarray:
        return np.zeros(2)

    def solve(self, state: np.ndarray, past: Past) -> Solved[None]:
        found, change, move = Values(self.matrix @ state + 1.0), np.inf, np.zeros(2)
        if past.last is not None:
            move = found.beta - past.last.beta
            change = float(np.linalg.norm(move) / np.linalg.norm(found.beta))
            found = past.damped(found, change)
        self.steps.append(past.step)
        covariance = self.deviation ** 2 * np.eye(2) if change <= self.tolerance else None
        return Solved(found, move, change, covariance, Iteration(found.beta, np.ones(1)), None)

    def advance(self, state: np.ndarray, found: Solved[None]) -> np.ndarray:
        if len(self.steps) + 1 == self.fails_at:
            raise NotPossibleError("it fell over", "stand up", "fell")
        return found.values.beta


@pytest.mark.parametrize("eigenvalues", [(0.3, 0.1), (-0.5, 0.2), (-0.95, 0.0), (-1.05, 0.1)])
def test_fixed_points_are_reached_also_where_plain_steps_swing(eigenvalues: tuple[float, float]) -> None:
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    matrix = turn @ np.diag(eigenvalues) @ turn.T
    end = iterate(Affine(matrix), 0.005, 60)
    truth = np.linalg.solve(np.eye(2) - matrix, np.ones(2))
    # The last step was below a tenth of a deviation, and each is a fraction of the one before.
    assert np.abs(end.found.values.beta - truth).max() < 2.0 * 0.1 * 1e-3
    first, last = end.iterations[0], end.iterations[-1]
    assert first.change is None and first.step is None and first.std is None and first.number == 1.0
    assert last.change is not None and last.change <= 0.005 and last.step is not None and last.step <= 0.1
    assert last.std is not None and np.allclose(last.std, 1e-3) and last.number == len(end.iterations)
    assert np.array_equal(last.values, end.found.values.beta)


def test_small_changes_of_the_torques_alone_do_not_stop_it() -> None:
    loose, strict = (iterate(Affine(0.5 * np.eye(2), deviation), 0.005, 60) for deviation in (1.0, 1e-5))
    assert len(loose.iterations) < len(strict.iterations)
    assert has_settled(1e-6, 0.005, 5.0) and not has_settled(1e-3, 0.005, 5.0) and not has_settled(0.1, 0.005, 0.0)


def test_equations_that_do_not_depend_on_the_estimate_settle_at_once() -> None:
    end = iterate(Affine(0.5 * np.eye(2), tolerance=np.inf), np.inf, 60)
    assert len(end.iterations) == 1 and end.iterations[0].step == 0.0
    assert np.array_equal(end.found.values.beta, np.ones(2))


def test_rows_are_fixed_once_steps_are_below_a_deviation() -> None:
    procedure = Affine(0.5 * np.eye(2))
    iterate(procedure, 0.005, 60)
    assert np.isinf(procedure.steps[0])
    assert [Past(step=step).may_select_rows for step in (np.inf, 1.5, 0.5)] == [True, True, False]


def test_where_it_does_not_settle_it_says_what_to_do() -> None:
    with pytest.raises(NotPossibleError) as unsettled:
        iterate(Affine(1.5 * np.eye(2)), 0.005, 5)
    assert unsettled.value.code == "not-settled" and unsettled.value.advice == "give up"
    with refused(NotPossibleError, "fell", "'affine'", "iteration 3") as fallen:
        iterate(Affine(0.5 * np.eye(2), fails_at=3), 0.005, 5)
    assert fallen.value.code == "fell" and fallen.value.advice == "stand up"
    with pytest.raises(ModelError):
        iterate(Affine(0.5 * np.eye(2)), 0.005, 0)


def test_steps_count_only_parameters_that_have_deviations() -> None:
    covariance = np.diag([4.0, 0.0, 1.0])
    assert step_size(np.array([1.0, 9.0, 0.2]), covariance) == pytest.approx(0.5)
    assert step_size(np.zeros(3), covariance) == 0.0


def test_the_mean_of_two_estimates() -> None:
    one, two = Values(np.array([1.0]), np.array([2.0, 4.0])), Values(np.array([3.0]), np.array([4.0, 0.0]))
    middle = one.halfway(two)
    assert middle.beta.tolist() == [2.0] and middle.theta is not None and middle.theta.tolist() == [3.0, 2.0]
    assert one.halfway(Values(two.beta)).theta is None
