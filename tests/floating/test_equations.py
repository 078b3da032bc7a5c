"""Four kinds of equations of a robot with a free base, on a virtual quadruped whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from refusals import refused
from walkers import configurations, free_tree, humanoid, quadruped

from dynid import dynamics
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Problem, identify
from dynid.estimate.whole_body import identify_floating
from dynid.floating import (
    Contact,
    FloatingLog,
    FootWrench,
    contact_jacobian,
    floating_base_parameters,
    prepare_floating,
)
from dynid.floating.contacts import contact_bias, null_rows
from dynid.floating.facts import mirrored_links
from dynid.floating.virtual_walker import SensorNoise, WalkerMotion, standing_motion, virtual_log
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot

FEET = tuple(Contact(f"{leg}_toe") for leg in ("FL", "FR", "RL", "RR"))
CROUCH = np.tile([0.0, 0.8, -1.6], 4)
NOISE = SensorNoise(position=2e-5, torque=0.05, force=0.3, base_position=2e-5, base_orientation=2e-5,
                    angular_rate=1e-3, specific_force=0.02)
STEPS = [[True] * 4, *([k != lifted for k in range(4)] for lifted in range(4))]


@cache
def dog() -> Robot:
    return Robot.load(quadruped())


@cache
def walk(seed: int = 1, lift: float = 0.05) -> WalkerMotion:
    return standing_motion(dog(), FEET, CROUCH, duration=8.0, lift=lift, seed=seed)


def log_of(noise: SensorNoise | None = None, seed: int = 0, **options) -> FloatingLog:
    return virtual_log(dog(), FEET, walk(), noise=noise, seed=seed, **options)


def test_virtual_motion_is_consistent():
    """Velocities and accelerations are the derivatives of the configuration, and standing feet do not move."""
    motion, robot = walk(), dog()
    step = motion.t[1]
    rates = (motion.q[2:, 7:] - motion.q[:-2, 7:]) / (2 * step)
    np.testing.assert_allclose(motion.v[1:-1, 6:], rates, atol=0.005)
    np.testing.assert_allclose(motion.a[1:-1], (motion.v[2:] - motion.v[:-2]) / (2 * step), atol=0.12)
    for k, contact in enumerate(FEET):
        place = dynamics.frame_pose(robot, contact.frame, motion.q)[:, :3, 3]
        stands = motion.standing[:, k]
        assert np.ptp(place[stands], axis=0).max() < 1e-9 and place[~stands, 2].max() > place[stands, 2].max() + 0.04


@pytest.mark.parametrize("robot", [free_tree(2, 5), free_tree(4, 9), Robot.load(quadruped())])
def test_rows_of_the_base_alone_have_the_same_base_parameters(robot):
    """Ayusawa, Venture and Nakamura (2014): equal rank, and the same space of parameters."""
    model = Model(robot)
    whole, alone = floating_base_parameters(model, "wrenches"), floating_base_parameters(model, "base")
    assert len(whole) == len(alone)
    assert np.linalg.matrix_rank(np.vstack([whole.matrix, alone.matrix]), tol=1e-6) == len(whole)
    fixed = base_parameters(Model(robot.with_fixed_base()))
    assert len(whole) > len(fixed)


def test_friction_is_not_seen_by_rows_of_the_base():
    robot = free_tree(2, 4)
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    seen = {model.parameters.names[c] for c in floating_base_parameters(model, "base").independent}
    assert not any(name.startswith("Fv") for name in seen)
    assert sum(name.startswith("Fv") for name in floating_base_parameters(model, "wrenches").names) == 4


def test_projected_rows_see_no_contact_force():
    """Whatever forces act at standing contacts, the rows that remain are the same; the basis is orthonormal."""
    robot, rng = Robot.load(humanoid()), np.random.default_rng(0)
    contacts = (Contact("left_sole", "sole"), Contact("right_sole", "line"), Contact("left_hand"))
    q, v, a, _ = configurations(robot, 6)
    reduced, *_ = dynamics.root_motion(robot, q, v, a)
    jacobians = [contact_jacobian(robot, one, reduced) for one in contacts]
    assert [one.shape[1] for one in jacobians] == [6, 5, 3]
    both, owners = np.concatenate(jacobians, axis=1), [0] * 6 + [1] * 5 + [2] * 3
    standing = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    noise = rng.uniform(0.5, 2.0, robot.dof)
    mixing, keep = null_rows(both, owners, standing, noise)
    assert keep.sum(axis=1).tolist() == [25, 25, 27, 27, 36, 36]
    for s in range(6):
        active = both[s, [r for r, owner in enumerate(owners) if standing[s, owner]]]
        rows = mixing[s, keep[s]]
        np.testing.assert_allclose(rows @ active.T, 0.0, atol=1e-9)
        np.testing.assert_allclose((rows * noise) @ (rows * noise).T, np.eye(len(rows)), atol=1e-9)


def test_bias_of_a_contact_is_the_rate_of_its_velocity():
    """Against differences of the velocity along a motion with constant acceleration, in axes of the world."""
    robot = free_tree(5, 6)
    q, v, _, _ = configurations(robot, 1, seed=4)
    q[:, :7], h = [0, 0, 0, 0, 0, 0, 1.0], 1e-6
    contact, ends = Contact("tool", "sole"), []
    for sign in (1, -1):
        half = 0.5 * sign * h * v[:, 3:6]
        moved = q.copy()
        moved[:, :3] += sign * h * v[:, :3]
        moved[:, 3:6], moved[:, 6] = half, np.sqrt(1 - (half ** 2).sum())
        moved[:, 7:] += sign * h * v[:, 6:]
        rate = v.copy()
        rate[:, :3] -= sign * h * np.cross(v[:, 3:6], v[:, :3])  # constant velocity in the world
        ends.append(np.einsum("sij,sj->si", dynamics.jacobian(robot, "tool", moved), rate))
    reduced, *_ = dynamics.root_motion(robot, q, v)
    np.testing.assert_allclose(contact_bias(robot, contact, reduced, v), (ends[0] - ends[1]) / (2 * h), atol=1e-4)


@pytest.mark.parametrize("equations", ["wrenches", "base", "projected"])
def test_clean_logs_give_the_truth(equations):
    model = Model(dog())
    found = identify_floating(model, log_of(), equations, prepare={"cutoff": 20.0})
    truth = found.problem.base.reduce(model.parameters.nominal)
    assert found.identifiable == found.of_whole_robot == 94
    assert np.abs(found.estimate.values - truth).max() < 1e-3
    assert "94 of the 94" in found.statement()


def test_a_suspended_base_needs_only_the_sensor_of_the_crane():
    """Prescribed motion in the air: the wrench that holds the root is measured, joint torques are or are not."""
    robot, motion = dog(), standing_motion(dog(), (), CROUCH, duration=8.0, seed=3, sway=0.1, tilt=0.4, swing=0.6)
    force = dynamics.inverse_dynamics(robot, None, motion.q, motion.v, motion.a)
    log = FloatingLog(motion.t, motion.q[:, 7:], force[:, 6:], motion.q[:, :3], motion.q[:, 3:7],
                      wrenches=(FootWrench("trunk", force[:, :6]),))
    model = Model(robot)
    for one in (log, replace(log, tau=None)):
        found = identify_floating(model, one, "flight", prepare={"cutoff": 20.0})
        truth = found.problem.base.reduce(model.parameters.nominal)
        assert np.abs(found.estimate.values - truth).max() < 2e-3
    with refused(RecordingError, "log-lacks-signal", "ratios"):
        prepare_floating(robot, replace(log, tau=None, wrenches=()), "flight", cutoff=20.0)


def test_an_imu_replaces_the_pose():
    model = Model(dog())
    log = replace(log_of(imu="imu"), position=None, orientation=None)
    found = identify_floating(model, log, "projected", prepare={"cutoff": 20.0})
    truth = found.problem.base.reduce(model.parameters.nominal)
    assert np.abs(found.estimate.values - truth).max() < 1e-3


def test_standing_feet_alone_leave_fewer_parameters():
    model = Model(dog())
    stands = floating_base_parameters(model, "projected", contacts=FEET)
    steps = floating_base_parameters(model, "projected", contacts=FEET, schedules=STEPS)
    assert len(stands) < len(steps) == len(floating_base_parameters(model, "wrenches"))


def test_mass_and_symmetry_reduce_the_standard_errors():
    """Facts that are true reduce errors and standard errors; the estimate obeys them."""
    model = Model(dog())
    pairs = mirrored_links(dog())
    assert pairs["FL_calf_link"] == "FR_calf_link" and len(pairs) == 6
    plain, helped = (identify_floating(model, log_of(NOISE), "projected", prepare={"cutoff": 10.0}, **facts)
                     for facts in ({}, {"mass": (15.18, 0.01), "mirrored": True}))
    truth = plain.problem.base.reduce(model.parameters.nominal)
    mass = list(plain.problem.base.names).index("M6R")
    assert abs(helped.estimate.values[mass] - 15.18) < 0.03
    errors = [np.linalg.norm(one.estimate.values - truth) for one in (plain, helped)]
    stds = [np.sqrt(np.diag(one.estimate.covariance)).sum() for one in (plain, helped)]
    assert errors[1] < errors[0] and stds[1] < 0.8 * stds[0]


@pytest.mark.parametrize("method", ["irls", "pc-wls"])
def test_methods_take_these_equations(method):
    model = Model(dog())
    found = identify_floating(model, log_of(NOISE), "projected", method, prepare={"cutoff": 10.0}, mass=(15.18, 0.01))
    mass = list(found.problem.base.names).index("M6R")
    assert abs(found.estimate.values[mass] - 15.18) < 0.05
    assert found.problem.regression.relative_error(found.estimate.values) < 20.0


@pytest.mark.slow
def test_uncertainty_covers_the_truth():
    """Few logs of one motion: 95 % intervals hold the truth in 85 to 99.5 % of cases."""
    model, inside = Model(dog()), []
    for seed in range(4):
        for equations in ("wrenches", "projected"):
            found = identify_floating(model, log_of(NOISE, seed=seed), equations, prepare={"cutoff": 10.0})
            truth = found.problem.base.reduce(model.parameters.nominal)
            inside.append(np.abs(found.estimate.values - truth) < 1.96 * np.sqrt(np.diag(found.estimate.covariance)))
    assert 0.85 < np.mean(inside) < 0.995


def test_bad_input_is_refused():
    robot, log = dog(), log_of()
    with refused(RecordingError, "log-lacks-signal", "joint torques"):
        prepare_floating(robot, replace(log, tau=None), "wrenches", cutoff=10.0)
    with refused(RecordingError, "log-lacks-signal", "contact forces"):
        prepare_floating(robot, replace(log, wrenches=()), "base", cutoff=10.0)
    with refused(RecordingError, "log-lacks-signal", "contacts"):
        prepare_floating(robot, replace(log, standing=None), "projected", cutoff=10.0)
    with refused(RecordingError, "no-base-motion"):
        replace(log, orientation=None)
    with refused(RecordingError, "wrong-shape", "standing"):
        replace(log, standing=log.standing[:, :2])
    with refused(RecordingError, "fixed-base"):
        prepare_floating(robot.with_fixed_base(), log, "base")
    with refused(RecordingError, "unknown-equations"):
        prepare_floating(robot, log, "both")
    with refused(ModelError, "unknown-contact-kind"):
        Contact("FL_toe", "edge")
    with refused(ModelError, "no-contacts"):
        floating_base_parameters(Model(robot), "projected")
    with refused(NotPossibleError, "feet-out-of-reach"):
        standing_motion(robot, FEET, CROUCH, duration=1.0, sway=0.6)


def test_known_parameters_go_through_the_projection():
    model = Model(dog())
    log = log_of()
    samples = prepare_floating(dog(), log, "projected", cutoff=20.0)
    nominal = dict(zip(model.parameters.names, model.parameters.nominal, strict=True))
    known = {name: nominal[name] for name in ("M9", "MZ9")}
    problem = Problem.from_model(model, samples, known=known)
    assert np.abs(identify(problem, method="ols").values - problem.base.reduce(model.parameters.nominal)).max() < 1e-3
