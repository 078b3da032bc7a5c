"""Columns that are kept beside the samples: the same rows as without them, and fewer evaluations."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from motions import arm, fourier

from dynid.model import Coulomb, LoadFriction, Model, Offset, RigidBodies, RotorInertia, Viscous
from dynid.recording import Decimation, Samples
from dynid.regression import TorqueEquations
from dynid.regression.derived import _KEPT, CachedEquations
from dynid.robot import Robot


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Rows over which the columns of the bodies are evaluated."""
    found, plain = list[int](), RigidBodies.fill

    def counted(self: RigidBodies, robot: Robot, q: np.ndarray, *more: object) -> None:
        found.append(len(q))
        plain(self, robot, q, *more)

    monkeypatch.setattr(RigidBodies, "fill", counted)
    yield found


def samples(decimation: Decimation | None = None) -> Samples:
    model, theta = arm()
    q, dq, ddq = fourier(model.dof, seconds=6.0, seed=3)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    return replace(Samples.from_arrays(q, dq, ddq, tau, rate=200.0), decimation=decimation)


def rows(equations: CachedEquations | TorqueEquations) -> np.ndarray:
    return np.concatenate([equations.rows(piece).entries for piece in equations.pieces(stretches=3)], axis=1)


@pytest.mark.parametrize("decimation", [None, Decimation(factor=5)], ids=["every row", "decimated"])
def test_models_share_the_columns_of_equal_terms(decimation: Decimation | None, evaluations: list[int]) -> None:
    log, robot = samples(decimation), arm()[0].robot
    friction = (Viscous(), Coulomb(), Offset())
    numbers = np.array([body.inertia for body in robot.bodies[:robot.dof]])
    models = [Model(robot, (RigidBodies(), *friction)), Model(robot, (RigidBodies(), RotorInertia(), *friction)),
              Model(robot, (RigidBodies(), Viscous(), LoadFriction(bodies=numbers))),
              Model(robot, (RigidBodies(), Viscous(), LoadFriction(bodies=2.0 * numbers)))]
    for k, model in enumerate(models):
        plain = TorqueEquations.from_model(model, log)
        evaluations.clear()
        kept = CachedEquations.from_equations(plain)
        found = rows(kept)
        assert (sum(evaluations) == 0) == (k > 0)  # the first evaluates the bodies, the others find them
        np.testing.assert_allclose(found, rows(plain), rtol=1e-12, atol=1e-12)


def test_another_robot_and_known_values_share_nothing(evaluations: list[int]) -> None:
    log, robot = samples(), arm()[0].robot
    rows(CachedEquations.from_equations(TorqueEquations.from_model(Model(robot, (RigidBodies(),)), log)))
    heavier = robot.with_gravity((0.0, 0.0, -20.0))
    plain = TorqueEquations.from_model(Model(heavier, (RigidBodies(),)), log)
    evaluations.clear()
    np.testing.assert_array_equal(rows(CachedEquations.from_equations(plain)), rows(plain))
    assert sum(evaluations) > 0
    model = Model(robot, (RigidBodies(), Viscous()))
    base, *_ = TorqueEquations.from_model(model, log).base.given({"Fv1": 0.3})
    known = TorqueEquations.from_model(model, log, base)
    np.testing.assert_array_equal(rows(CachedEquations.from_equations(known)), rows(known))


def test_columns_are_kept_as_long_as_the_samples() -> None:
    gc.collect()
    before = len(_KEPT)
    log = samples()
    rows(CachedEquations.from_equations(TorqueEquations.from_model(Model(arm()[0].robot, (RigidBodies(),)), log)))
    assert len(_KEPT) == before + 1
    del log
    gc.collect()
    assert len(_KEPT) == before
