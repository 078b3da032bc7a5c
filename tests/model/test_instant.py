"""The regressor of one sample is the first of a batch's, whichever way it is computed."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ModelError
from dynid.model import Coulomb, Model, Offset, Payload, RigidBodies, RotorInertia, Sign, Term, Viscous
from dynid.robot import Robot

ROBOT = Robot.builtin("kuka-lwr4")
MOTION = np.random.default_rng(3).normal(size=(3, 7))


@pytest.mark.parametrize("terms", [
    (RigidBodies(), Viscous(), Coulomb(), Offset()),
    (RigidBodies(), RotorInertia(joints=(2, 5)), Viscous(joints=(7, 1)), Coulomb(sign=Sign("tanh", 0.1))),
    (Coulomb(), Offset(joints=(3,))),
    (RigidBodies(), Payload(ROBOT.body_names[-1]), Viscous()),  # a term that cannot give one sample at once
])
def test_one_sample_as_in_a_batch(terms: tuple[Term, ...]) -> None:
    model = Model(ROBOT, terms)
    batch = model.regressor(*(np.stack([x, 0.0 * x]) for x in MOTION))
    one = model.regressor(*MOTION)
    assert one.shape == (7, len(model.parameters))
    np.testing.assert_allclose(one, batch[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("terms", [(RigidBodies(), Viscous()), (Viscous(),)])
def test_one_bad_sample_is_refused(terms: tuple[Term, ...]) -> None:
    model, (q, dq, ddq) = Model(ROBOT, terms), MOTION
    for bad in ((q[:6], dq, ddq), (q, dq, ddq[:3]), (np.where(q > q.min(), q, np.nan), dq, ddq)):
        with pytest.raises(ModelError):
            model.regressor(*bad)
