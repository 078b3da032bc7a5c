"""Motions that nobody searched for stay inside every limit and move what they should."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import robots
from refusals import refused

from dynid.dynamics import frame_pose
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation import (
    Limits,
    Measurement,
    PriorKnowledge,
    assess,
    check_limits,
    coupling_sweep,
    exciting_motion,
    inertia_sweep,
    null_space_motion,
    quintics_within,
    random_points,
    random_sines,
    random_spline,
    self_motion,
    slow_enough,
)
from dynid.excitation.exciting_motion import with_accelerations
from dynid.excitation.limits.workspace import Workspace
from dynid.excitation.random_motions import home_posture
from dynid.excitation.search.experiment_design import design_experiment
from dynid.excitation.trajectories.families import Fourier
from dynid.model import Model, make_terms
from dynid.robot import Robot

HOLDING = np.array([0.3, 0.6, 0.2, -1.2, 0.3, 0.8, 0.1])


def limits(dof: int = 3, **given: object) -> Limits:
    own: dict = {"lower": -2.0, "upper": 2.0, "velocity": 1.5, "acceleration": 4.0, "jerk": np.inf, "torque": np.inf,
                 "names": tuple(f"j{k + 1}" for k in range(dof))}
    return Limits(**(own | given))


def sampled(trajectory, count: int = 20_000):
    return trajectory.at(np.linspace(0.0, trajectory.duration, count))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("jerk", [np.inf, 60.0])
def test_random_points_fill_the_ranges_and_stop_at_each(seed, jerk):
    bounds = limits(jerk=jerk)
    found = random_points(bounds, points=20, seed=seed)
    assert check_limits(found, bounds).ok
    q = sampled(found).q
    assert (q.max(axis=0) > 1.5).all() and (q.min(axis=0) < -1.5).all()
    still = np.max(np.abs(found.at(found.breaks).dq), axis=1) < 1e-9
    assert still.sum() == 20
    assert not np.array_equal(q, sampled(random_points(bounds, points=20, seed=seed + 1)).q)
    np.testing.assert_array_equal(q, sampled(random_points(bounds, points=20, seed=seed)).q)


@pytest.mark.filterwarnings("error")
def test_motions_of_a_robot_whose_links_cannot_collide_and_turn_without_end():
    """Links without shapes have no pairs to check, and joints without positions' limits have no middle."""
    space = Workspace.from_robot(robots.random_robot(np.random.default_rng(1), 3), self_collision=False)
    assert not len(space.pairs)
    bounds = limits(space=space)
    np.testing.assert_array_equal(random_points(bounds, points=5).at(0.0).q,
                                  random_points(limits(), points=5).at(0.0).q)
    np.testing.assert_array_equal(home_posture(None, limits(lower=[-np.inf, -1.0, -np.inf], upper=[np.inf, 2.0, 3.0])),
                                  [0.0, 0.5, 0.0])


def test_a_spline_does_not_stop_and_is_slowed_to_its_limits():
    bounds = limits()
    found = slow_enough(random_spline(bounds, points=20), bounds)
    assert check_limits(found, bounds).ok
    speed = np.max(np.abs(sampled(found).dq), axis=1)
    assert speed[200:-200].min() > 1e-3 and speed[0] < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_a_spline_that_overshoots_its_postures_stays_inside_the_limits(seed):
    bounds = limits(lower=[-0.3, -2.0, -np.inf], upper=[0.5, 0.1, np.inf], velocity=[1.5, 0.7, 1.5])
    found = random_spline(bounds, points=30, seed=seed, reach=0.95)
    assert check_limits(slow_enough(found, bounds), bounds).ok
    q = sampled(found).q
    used = (q.max(axis=0) - q.min(axis=0))[:2] / (bounds.upper - bounds.lower)[:2]
    assert (used > 0.6).all() and (used <= 1.0).all()


@pytest.mark.parametrize(("given", "power"), [({"velocity": 0.2}, 1), ({"acceleration": 0.1}, 2), ({"jerk": 0.05}, 3)])
def test_a_motion_is_slowed_by_what_its_violation_asks_for(monkeypatch, given, power):
    """A derivative of order k falls with the k-th power of the duration, so one more check confirms the duration."""
    bounds = limits(**({"velocity": 1e3, "acceleration": 1e3} | given))
    fast = quintics_within(np.array([[0.0, 0, 0], [1.5, -1.0, 0.4]]), limits(jerk=60.0))
    checks = []
    monkeypatch.setattr(exciting_motion, "check_limits", lambda *a, **k: checks.append(a) or check_limits(*a, **k))
    found = slow_enough(fast, bounds)
    assert len(checks) == 2
    peak = np.abs(sampled(fast)[power]).max()
    needed = (peak / next(iter(given.values()))) ** (1.0 / power)
    assert needed < found.duration / fast.duration < 1.002 * needed
    assert check_limits(found, bounds, points=40_000).ok


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6, 0.9])
def test_a_motion_is_slowed_by_what_its_torques_ask_for(monkeypatch, share):
    """The limit is the torque at rest on the path and a share of what the motion adds; a bisection gives the duration.
    Below the torque at rest no duration is enough."""
    robot = Robot.builtin("ur10")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    free = Limits.from_robot(robot, velocity=1e3, acceleration=1e5, torque=1e6)
    fast = quintics_within(np.linspace(-0.5, 0.5, 3)[:, None] * np.ones(6), limits(6, velocity=6.0, acceleration=60.0))
    torque = design_experiment(model, free, Fourier(), "condition", Measurement(), PriorKnowledge()).torque

    def peaks(slowdown: float) -> np.ndarray:
        q, dq, ddq, _ = sampled(fast, 4000)
        return np.abs(torque.torques(q, dq / slowdown, ddq / slowdown ** 2)).max(axis=0)

    bound = peaks(1e6) + share * (peaks(1.0) - peaks(1e6))
    low, high = 1.0, 40.0
    for _ in range(30):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if (peaks(middle) <= bound).all() else (middle, high)
    checks = []
    monkeypatch.setattr(exciting_motion, "check_limits", lambda *a, **k: checks.append(a) or check_limits(*a, **k))
    found = slow_enough(fast, replace(free, torque=bound), torque)
    assert 0.999 * high < found.duration / fast.duration < 1.1 * high
    assert len(checks) <= 8 and check_limits(found, replace(free, torque=bound), torque).ok
    with refused(NotPossibleError, "limits-exceeded", "40"):
        slow_enough(fast, replace(free, torque=0.9 * peaks(1e6)), torque)


@pytest.mark.parametrize("seed", range(20))
def test_sines_as_the_document_writes_them(seed):
    """dq = A sin(2 pi t / T) from rest, and the integral and derivative of that, inside range, speed, acceleration."""
    bounds = limits(lower=-np.array([2.0, 0.5, 0.05]), upper=np.array([1.0, 0.6, 0.02]))
    found = random_sines(bounds, duration=10.0, seed=seed)
    assert check_limits(found, bounds).ok
    t = np.linspace(0.0, 10.0, 20_001)
    q, dq, ddq, jerk = found.at(t)
    np.testing.assert_allclose(dq, found.amplitude * np.sin(2 * np.pi * t[:, None] / found.period), atol=1e-14)
    step = t[1]
    for whole, slope in ((q, dq), (dq, ddq), (ddq, jerk)):
        np.testing.assert_allclose(np.diff(whole, axis=0) / step, 0.5 * (slope[1:] + slope[:-1]),
                                   atol=1e-4 * np.abs(jerk).max())


def test_inertia_sweep_always_speeds_up_or_slows_down_one_joint():
    bounds = limits()
    found = inertia_sweep(bounds, postures=1, times=2)
    assert check_limits(found, bounds).ok
    motion = sampled(found)
    moving = np.abs(motion.dq) > 1e-9
    assert (moving.sum(axis=1) <= 1).all() and moving.any(axis=0).all()
    pushed = np.abs(motion.ddq) > 1e-9
    assert np.mean(pushed[moving]) > 0.99
    assert np.abs(motion.dq).max() == pytest.approx(1.5, rel=1e-3)


def test_coupling_sweep_moves_all_pairs():
    bounds = limits()
    motion = sampled(coupling_sweep(bounds))
    moving = np.abs(motion.dq) > 1e-6
    assert set(map(tuple, moving[moving.sum(axis=1) == 2])) == {(True, True, False), (True, False, True),
                                                               (False, True, True)}
    assert moving.sum(axis=1).max() == 2
    both = moving[:, 0] & moving[:, 1]
    together = motion.dq[both, 0] * motion.dq[both, 1] > 0
    assert 0.2 < together.mean() < 0.8
    with refused(DynidError, "bad-pair-of-joints", "0", "2"):
        coupling_sweep(bounds, joints=[(0, 3)])


@pytest.mark.parametrize("seed", range(2))
def test_the_tool_is_held_while_all_joints_move(seed):
    """The pose of the last body, by a product of matrices of its own, stays where it is to a nanometre."""
    robot = Robot.builtin("kuka-lwr4")
    bounds, _ = with_accelerations(Limits.from_robot(robot, margin=0.05))
    way = self_motion(robot, robot.body_names[-1], bounds, posture=HOLDING, seed=seed)
    found = slow_enough(null_space_motion(way, bounds, duration=10.0, seed=seed), bounds)
    assert check_limits(found, bounds).ok
    q = sampled(found, 400).q
    assert (np.ptp(q, axis=0) > 0.2).sum() >= 6
    poses = np.array([robots.frame_pose(robot, robot.body_names[-1], one) for one in q])
    assert np.abs(poses - poses[0]).max() < 1e-9
    np.testing.assert_allclose(poses[0], frame_pose(robot, robot.body_names[-1], HOLDING[None])[0], atol=1e-9)


def test_a_tool_is_held_where_the_middle_of_the_ranges_is_singular():
    """The iiwa is stretched out there; a posture is drawn, and one that is given and singular is refused with it."""
    robot = Robot.builtin("kuka-iiwa14")
    limits, frame = Limits.from_robot(robot), robot.body_names[-1]
    way = self_motion(robot, frame, limits)
    assert way.length >= 1.0 and np.abs(way.posture).max() > 0.1
    poses = np.array([robots.frame_pose(robot, frame, one) for one in way.q[::20]])
    assert np.abs(poses - robots.frame_pose(robot, frame, way.posture)).max() < 1e-9
    with pytest.raises(NotPossibleError) as refusal:
        self_motion(robot, frame, limits, posture=np.zeros(7))
    named = [float(x) for x in str(refusal.value).split("--home ")[1].split(", from")[0].split(",")]
    assert self_motion(robot, frame, limits, posture=named).length >= 1.0


def test_six_joints_cannot_hold_a_tool_and_move():
    robot = Robot.builtin("ur10")
    with refused(NotPossibleError, "not-redundant", "6 joints"):
        self_motion(robot, robot.body_names[-1], Limits.from_robot(robot))


def test_assessment_is_that_of_the_search():
    """Condition number by the regressor itself; a motion that leaves its range is refused, one that is too fast slowed
    down."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    bounds, assumed = with_accelerations(Limits.from_robot(robot, margin=0.05, lower=-2.0, upper=2.0, velocity=1.5))
    assert set(assumed) <= set(robot.joint_names)
    found = assess(model, random_points(bounds, points=10), bounds)
    t = np.linspace(0.0, found.trajectory.duration, round(100 * found.trajectory.duration), endpoint=False)
    q, dq, ddq, _ = found.trajectory.at(t)
    y = model.regressor(q, dq, ddq).reshape(-1, len(model.parameters))[:, list(found.base.independent)]
    assert found.condition == pytest.approx(np.linalg.cond(y), rel=1e-6)
    wide = quintics_within(np.array([[0.0, 0, 0], [2.5, 0, 0]]), limits(lower=-3.0, upper=3.0))
    with refused(NotPossibleError, "limits-exceeded", "position", robot.joint_names[0]):
        assess(model, wide, bounds)
    fast = quintics_within(np.array([[0.0, 0, 0], [1.5, 0, 0]]), limits(velocity=6.0, acceleration=50.0))
    slowed = assess(model, fast, bounds)
    assert slowed.report.ok and slowed.trajectory.duration > fast.duration
