"""All but one block, for every block at once, is what leaving each out alone gives."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ModelError
from dynid.model import Model, RigidBodies, Viscous
from dynid.recording import Samples
from dynid.regression import TorqueEquations, fold
from dynid.robot import Robot


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_sums_from_both_ends(blocks: int) -> None:
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, (RigidBodies(), Viscous()))
    q, dq, ddq, tau = np.random.default_rng(1).normal(size=(4, 600, robot.dof))
    regression = fold(TorqueEquations.of(model, Samples.of(q, dq, ddq, tau)), blocks=blocks)
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
