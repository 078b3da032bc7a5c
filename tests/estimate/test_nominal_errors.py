"""Errors of a nominal model: those of an affine map of a body, and their size by what data show."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimate import nominal_errors
from dynid.estimate.nominal_errors import NominalErrors, nominal_groups
from dynid.model import Model, make_terms
from dynid.robot import Robot
from dynid.robot import inertia as ten


def model() -> Model:
    robot = Robot.builtin("franka-panda")
    return Model(robot, make_terms(robot, ("viscous", "coulomb"), rotor=True))


def test_a_body_errs_as_its_points_moved_by_random_maps_do() -> None:
    """Covariance of the ten numbers of a thin body against that of many clouds of points, each moved by a small map."""
    parameters = model().parameters
    places = next(iter(parameters.bodies.values()))
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3)) * [0.3, 0.02, 0.05] + [0.05, 0.01, 0.1]
    tall = np.column_stack([points, np.ones(len(points))])
    pseudo = 2.0 * tall.T @ tall / len(tall)
    matrices = dict.fromkeys(parameters.bodies, pseudo)
    group = next(one for one in nominal_groups(parameters, matrices, np.ones(len(parameters))) if one.kind == "shape")
    size, share = np.sqrt(np.sum(points ** 2, axis=1).mean()), 1e-3
    found = []
    for _ in range(400):
        turn = np.eye(3) + 0.5 * share * rng.normal(size=(3, 3))
        moved = tall @ np.column_stack([turn, 0.5 * share * size * rng.normal(size=3)]).T
        whole = np.column_stack([moved, np.ones(len(moved))])
        found.append(ten.from_pseudo_inertia(2.0 * whole.T @ whole / len(whole)) - ten.from_pseudo_inertia(pseudo))
    stated = share * np.sqrt(np.sum(group.half[places] ** 2, axis=1))
    np.testing.assert_allclose(np.std(found, axis=0)[:9], stated[:9], rtol=0.2)
    assert stated[9] == 0.0


@pytest.mark.parametrize("outlier", [1.0, 10.0])
def test_sizes_of_errors_are_found_from_the_score(outlier: float) -> None:
    """Bodies that err by a twentieth, friction by a fifth. One body that errs by ten times as much is found, and makes
    the others, of which each is known by few numbers, only somewhat suspect."""
    parameters = model().parameters
    theta = np.array([item.nominal or 1.0 for item in parameters])
    matrices = {body: ten.pseudo_inertia(theta[places]) for body, places in parameters.bodies.items()}
    groups = nominal_groups(parameters, matrices, np.abs(theta))
    kinds = np.array([group.kind for group in groups])
    shares = np.where(kinds == "other", 0.2, 0.05)
    worse = int(np.flatnonzero(kinds == "shape")[2])
    shares[worse] *= outlier
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        effect = rng.normal(size=(80, len(theta))) / np.abs(theta)
        error = sum(w * group.half @ rng.normal(size=group.half.shape[1])
                    for w, group in zip(shares, groups, strict=True))
        score = effect @ error + np.sqrt(1e-3) * rng.normal(size=80)
        found.append(np.sqrt(NominalErrors.from_score(groups, effect, score, 1e-3 * np.eye(80)).variances) / shares)
    typical = np.exp(np.mean(np.log(found), axis=0))
    assert typical[worse] == pytest.approx(1.0, abs=0.35)
    assert np.all(typical > 0.65)
    assert np.all(typical < (1.5 if outlier == 1.0 else 3.0))


def test_singular_values_where_divide_and_conquer_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(0).normal(size=(6, 9)) * np.logspace(0, -12, 9)
    left, singular, _ = np.linalg.svd(matrix, full_matrices=False)

    def fails(*args: object, **options: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fails)
    vectors, values = nominal_errors._left_singular(matrix)
    np.testing.assert_allclose(values, singular, rtol=1e-9)
    np.testing.assert_allclose(np.abs(vectors), np.abs(left), atol=1e-6)
