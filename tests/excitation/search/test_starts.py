"""Where the search begins: inside the limits, seen by the trajectories themselves."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import dynamics
from dynid.excitation import Family, Fourier, FourierPlusQuintic, Limits, Measurement, PriorKnowledge, Splines
from dynid.excitation.search.experiment_design import design_experiment
from dynid.excitation.search.motion_problem import MotionProblem
from dynid.excitation.search.starts import Anchor, best_random_motion, feasible_motion, random_motion, safe_posture
from dynid.model import Model
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")


def problem(family: Family, limits: Limits) -> MotionProblem:
    return design_experiment(Model(ROBOT), limits, family, "d", Measurement(), PriorKnowledge()).problem


def assert_inside(one: MotionProblem, z: np.ndarray) -> None:
    motion, limits = one.family.trajectory(z).at(one.t), one.limits
    assert (motion.q >= limits.lower - 1e-9).all() and (motion.q <= limits.upper + 1e-9).all()
    for signal, bound in ((motion.dq, limits.velocity), (motion.ddq, limits.acceleration), (motion.jerk, limits.jerk)):
        assert (np.abs(signal) <= bound * (1 + 1e-9)).all()


@pytest.mark.parametrize("family", [Fourier(6.0), FourierPlusQuintic(6.0, 3, rest=False), Splines(6.0)],
                         ids=lambda family: family.kind)
def test_random_motions_are_inside_and_large(family: Family) -> None:
    one = problem(family, Limits.from_robot(ROBOT, jerk=60.0, torque=np.inf))
    anchor = Anchor.from_problem(one, safe_posture(one, 0))
    rng = np.random.default_rng(0)
    for _ in range(10):
        z = random_motion(anchor, rng)
        assert_inside(one, z)
        motion = one.family.trajectory(z).at(one.t)
        used = [np.ptp(motion.q, axis=0) / (one.limits.upper - one.limits.lower),
                *(np.abs(signal).max(axis=0) / bound for signal, bound in (
                    (motion.dq, one.limits.velocity), (motion.ddq, one.limits.acceleration),
                    (motion.jerk, one.limits.jerk)))]
        assert (np.max(used, axis=0) > 0.65).all()  # each joint comes near one of its limits


def test_best_of_several_is_better_than_the_typical_one() -> None:
    one = problem(Fourier(6.0), Limits.from_robot(ROBOT, torque=np.inf))
    anchor = Anchor.from_problem(one, safe_posture(one, 0))
    typical = np.median([one.value(random_motion(anchor, np.random.default_rng(k)), 2.0) for k in range(20)])
    assert one.value(best_random_motion(anchor, np.random.default_rng(99)), 2.0) < typical


def test_motion_between_postures_is_feasible() -> None:
    limits = Limits.from_robot(ROBOT, start=[-1.0, 0.1, 0.2], end=[1.0, 0.4, -0.2], jerk=60.0, torque=np.inf)
    one = problem(Splines(6.0), limits)
    z = feasible_motion(one)
    assert_inside(one, z)
    ends = one.family.trajectory(z).at([0.0, 6.0])
    np.testing.assert_allclose(ends.q, [limits.start, limits.end], atol=1e-8)
    anchor = Anchor.from_problem(one, safe_posture(one, 0))
    np.testing.assert_array_equal(anchor.gentlest, z)
    for k in range(5):
        assert_inside(one, random_motion(anchor, np.random.default_rng(k)))


def test_safe_posture_needs_little_torque() -> None:
    """Gravity alone, by inverse dynamics without motion, is inside the torque limits, which most postures break."""
    limits = Limits.from_robot(ROBOT, torque=[5.0, 1.5, 0.6])
    one = problem(Fourier(6.0), limits)
    q = safe_posture(one, 0)[None]
    zero = np.zeros_like(q)
    assert (np.abs(dynamics.inverse_dynamics(ROBOT, None, q, zero, zero)) < limits.torque).all()
    any_q = np.random.default_rng(0).uniform(limits.lower, limits.upper, (200, 3))
    torques = np.abs(dynamics.inverse_dynamics(ROBOT, None, any_q, np.zeros((200, 3)), np.zeros((200, 3))))
    assert np.mean((torques < limits.torque).all(axis=1)) < 0.5
