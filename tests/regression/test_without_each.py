"""All but one block, for every block at once, is what leaving each out alone gives."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ModelError
from dynid.model import Model, Offset, RigidBodies, Viscous
from dynid.recording import Samples
from dynid.regression import TorqueEquations, fold
from dynid.robot import Robot


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_sums_from_both_ends(blocks: int) -> None:
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, (RigidBodies(), Viscous()))
    q, dq, ddq, tau = np.random.default_rng(1).normal(size=(4, 600, robot.dof))
    regression = fold(TorqueEquations.from_model(model, Samples.from_arrays(q, dq, ddq, tau)), blocks=blocks)
    together = regression.without_each()
    assert len(together) == blocks
    for k, found in enumerate(together):
        alone = regression.without(k)
        assert found.blocks == alone.blocks and found.rows == alone.rows
        for a, b in zip(found.factors, alone.factors, strict=True):
            assert a.power == pytest.approx(b.power, rel=1e-12)
            np.testing.assert_allclose(a.r.T @ a.r, b.r.T @ b.r, atol=1e-11 * np.abs(b.r.T @ b.r).max())
    one = regression.joined(1)
    assert one.blocks[0].factors == regression.factors
    assert one.blocks[0].spans[0].start == regression.blocks[0].spans[0].start
    assert one.blocks[0].spans[-1].stop == regression.blocks[-1].spans[-1].stop
    with pytest.raises(ModelError):
        regression.only(0).without_each()
    with pytest.raises(ModelError):
        regression.only(0).stack_without_each(np.ones(robot.dof))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_stacked_sums_from_both_ends(known: bool, ridge: float) -> None:
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, (RigidBodies(), Viscous(), Offset(ridge=ridge)))
    q, dq, ddq, tau = np.random.default_rng(2).normal(size=(4, 600, robot.dof))
    regression = fold(TorqueEquations.from_model(model, Samples.from_arrays(q, dq, ddq, tau)), blocks=5)
    regression = regression.given({"Fv2": (1.0, 0.1)}) if known else regression
    weights = np.linspace(0.5, 2.0, robot.dof)
    for k, found in enumerate(regression.stack_without_each(weights)):
        alone = regression.without(k).stack(weights)
        assert found.rows == alone.rows
        size = np.abs(alone.r).max()
        np.testing.assert_allclose(found.r.T @ found.r, alone.r.T @ alone.r, atol=1e-11 * size ** 2)
        np.testing.assert_allclose(found.r.T @ found.rho, alone.r.T @ alone.rho, atol=1e-11 * size ** 2)
        assert found.rest == pytest.approx(alone.rest, rel=1e-9)
