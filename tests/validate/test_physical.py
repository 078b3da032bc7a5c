"""Behaviour of parameters as a robot: closed forms, balances of energy, forces that are known."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from refusals import refused
from scipy.integrate import solve_ivp

from dynid.consistency import Consistency, nearest
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.estimate.estimate import Diagnostics
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model, Payload, RigidBodies, Scara, Spring, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.validate import free_fall, physics, positive_inertia_line, positive_inertia_share, wrench_comparison
from dynid.validate.physical import FreeFall, random_postures, thickness
from dynid.validate.verdict_checks.case import Case
from dynid.validate.verdict_checks.parameters import energy_grows

MASS, REACH, INERTIA = 2.0, 0.3, 0.05


def pendulum(*terms) -> tuple[Model, np.ndarray]:
    """One link that swings about a level axis, and its ten numbers."""
    robot = Robot.from_mdh([{"alpha": np.pi / 2, "a": 0.0, "d": 0.0}], name="pendulum", notation="craig")
    numbers = ten.from_central(MASS, np.array([REACH, 0.0, 0.0]), INERTIA * np.eye(3))
    robot = robot.with_inertias(numbers[None])
    return Model(robot, (RigidBodies(), *terms)), numbers


def arm(**options) -> tuple[Model, np.ndarray]:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, **options))
    return model, np.array([0.2 if p.nominal is None else p.nominal for p in model.parameters])


def test_a_pendulum_falls_as_its_equation_says() -> None:
    model, theta = pendulum()
    found = free_fall(model, theta, seconds=2.0, start=[0.3])
    inertia = INERTIA + MASS * REACH ** 2
    # The link hangs straight down at -90 degrees: I q'' = -m g c cos q.
    exact = solve_ivp(lambda _, y: [y[1], -MASS * 9.81 * REACH * np.cos(y[0]) / inertia], (0.0, 2.0), [0.3, 0.0],
                      t_eval=found.t, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.q[:, 0], exact.y[0], atol=1e-6)
    np.testing.assert_allclose(found.kinetic, 0.5 * inertia * found.dq[:, 0] ** 2, rtol=1e-12)
    np.testing.assert_allclose(found.potential - found.potential[0],
                               MASS * 9.81 * REACH * (np.sin(found.q[:, 0]) - np.sin(0.3)), atol=1e-9)
    assert found.stable and "did not increase" in found.sentence


def test_energy_stays_without_friction() -> None:
    model, theta = arm(friction=("viscous", "coulomb", "offset"), rotor=True)
    found = free_fall(model, theta, friction=False)
    assert found.stable and found.t[-1] == pytest.approx(10.0)
    np.testing.assert_allclose(found.energy, found.energy[0], atol=1e-5 * found.in_play)


def test_viscous_friction_takes_what_the_energy_loses() -> None:
    model, theta = arm(friction=("viscous", "offset"))
    found = free_fall(model, theta, seconds=3.0)
    viscous = theta[[model.parameters.index(f"Fv{j}") for j in (1, 2, 3)]]
    power = found.dq ** 2 @ viscous
    lost = float(np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(found.t)))
    assert found.energy[0] - found.energy[-1] == pytest.approx(lost, rel=1e-3)
    assert found.stable and found.growth == 0.0


def test_springs_and_payloads_are_part_of_the_energy() -> None:
    spring = Spring("joint1", rest=0.5)
    model, theta = pendulum(spring, Payload("link1"))
    load = ten.from_central(0.7, np.array([0.1, 0.05, 0.0]), 0.01 * np.eye(3))
    full = np.empty(len(model.parameters))
    for k, item in enumerate(model.parameters):
        full[k] = 20.0 if item.body is None else (theta if item.body == "link1" else load)[
            ten.NAMES.index(item.name.rstrip("0123456789L").rstrip("0123456789"))]
    np.testing.assert_allclose(model.body_numbers(full)[0], theta + load, rtol=1e-12)
    found = free_fall(model, full, seconds=3.0, start=[2.0], friction=False)
    np.testing.assert_allclose(found.energy, found.energy[0], atol=1e-6 * found.in_play)


def test_an_impossible_robot_is_said_to_be_one() -> None:
    model, theta = arm(friction=("viscous",))
    assert positive_inertia_share(model, theta, samples=500) == 1.0
    wrong = theta.copy()
    wrong[model.parameters.index("ZZ3")] -= 0.05  # less than nothing about the last axis, whatever the posture
    assert positive_inertia_share(model, wrong, samples=500) == 0.0
    found = free_fall(model, wrong)
    assert not found.stable and ("diverged" in found.sentence or "negative" in found.sentence)
    line = positive_inertia_line(model, wrong, theta, shares=np.linspace(0, 1, 11), samples=500)
    assert line[0] == 0.0 and line[-1] == 1.0 and np.all(np.diff(line) >= 0)


def test_the_share_needs_base_values_only() -> None:
    model, theta = arm(friction=("viscous",))
    base = base_parameters(model)
    wrong = theta.copy()
    wrong[model.parameters.index("XX2")] -= 0.03
    for values in (theta, wrong):
        expanded = base.expand(base.reduce(values))
        assert positive_inertia_share(model, expanded, samples=400) == positive_inertia_share(
            model, values, samples=400)


def test_growing_energy_is_seen() -> None:
    """Friction of the wrong sign feeds the motion."""
    model, theta = arm(friction=("viscous",))
    theta = theta.copy()
    theta[model.parameters.index("Fv3")] = -0.02
    found = free_fall(model, theta, seconds=4.0)
    assert not found.stable and ("of energy within" in found.sentence or "diverged" in found.sentence)


def test_energy_before_a_row_is_judged_without_what_follows() -> None:
    """Energy that grows only in the second half of a fall."""
    t = np.arange(100) / 10.0
    kinetic = np.where(t < 5.0, 1.0, t)
    fall = FreeFall(t, np.zeros((100, 1)), np.zeros((100, 1)), kinetic, np.zeros(100), True, 1e-3, 10.0)
    assert not fall.stable and fall.until(50).stable and not fall.until(70).stable and fall.until(0).stable


@pytest.mark.parametrize(("logged", "positive", "kind"), [(2.0, 1.0, "validation"), (20.0, 1.0, "problem"),
                                                          (2.0, 0.9, "problem")])
def test_energy_that_grows_above_the_logged_speeds_is_a_remark(logged: float, positive: float, kind: str) -> None:
    """A fall whose speed rises to 10 rad/s and whose energy grows from 5 rad/s on, beside a log of some speed."""
    t = np.arange(100) / 10.0
    fall = FreeFall(t, np.zeros((100, 1)), t[:, None], np.where(t < 5.0, 1.0, t), np.zeros(100), True, 1e-3, 10.0)
    log = SimpleNamespace(dq=np.array([[logged], [-0.5]]))
    case = SimpleNamespace(physics=SimpleNamespace(fall=fall, positive_share=positive),
                           problem=SimpleNamespace(data=(log,)))
    [found] = energy_grows(cast(Case, case))
    assert found.code == "energy-grows" and found.kind == kind


def test_forces_that_torques_do_not_show() -> None:
    """Mass on the first body's own axis: no torque sees it, the joint carries it all the same."""
    model, theta = arm()
    heavy = theta.copy()
    heavy[model.parameters.index("M1")] += 3.0
    q = random_postures(model.robot, 50, 1)
    still = np.zeros_like(q)
    motion = Samples.from_arrays(q, still, still, still, rate=10.0)
    np.testing.assert_allclose(model.inverse_dynamics(heavy, q, still, still),
                               model.inverse_dynamics(theta, q, still, still), atol=1e-12)
    found = wrench_comparison(model, {"file": theta, "heavy": heavy}, motion)
    assert found.forces.shape == (2, 50, 3) and found.joints == model.robot.joint_names
    np.testing.assert_allclose(found.difference("file", "heavy"), [3.0 * 9.81, 0.0, 0.0], atol=1e-9)
    whole = float(sum(theta[c[9]] for c in model.parameters.bodies.values()))
    np.testing.assert_allclose(found.forces[0, :, 0], whole * 9.81, rtol=1e-12)


def test_postures_stay_inside_limits() -> None:
    robot = Robot.builtin("kuka-iiwa14")
    q = random_postures(robot, 1000)
    low, high = robot.limit("lower"), robot.limit("upper")
    assert np.all((q >= np.where(np.isfinite(low), low, -np.pi)) & (q <= np.where(np.isfinite(high), high, np.pi)))
    assert np.ptp(q, axis=0).min() > 0.9 * np.where(np.isfinite(high - low), high - low, 2 * np.pi).min()


def test_wrong_calls_are_refused() -> None:
    model, theta = arm()
    with refused(ModelError, "model-without-robot"):
        positive_inertia_share(Scara(), np.ones(8))
    with refused(ModelError, "bad-shape", "3"):
        free_fall(model, theta, start=[0.0, np.nan, 0.0])
    with refused(ModelError, "no-parameter-sets"):
        wrench_comparison(model, {}, Samples.from_arrays(*np.zeros((4, 3, 3))))


def estimate_of(model, theta) -> Estimate:
    """An estimate that holds given parameters."""
    base = base_parameters(model)
    known = OnDemand.known(Uncertainty(np.eye(len(base)), "independent"))
    return Estimate("given", model, base, base.reduce(theta), np.ones(len(base), dtype=bool), known, theta=theta,
                    diagnostics=Diagnostics(0.0, [], [], len(base), [], []))


def lwr() -> tuple[Model, np.ndarray, Samples]:
    """The KUKA LWR 4 as its source has it, which cannot exist, and 30 postures to compare forces in."""
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, defaults=True))
    theta = model.parameters.nominal
    assert theta is not None
    q = random_postures(robot, 30, 2)
    return model, theta, Samples.from_arrays(q, *np.zeros((3, 30, 7)), rate=10.0)


def test_physics_says_by_how_much_a_link_cannot_exist() -> None:
    model, theta, motion = lwr()
    file = physics(estimate_of(model, theta), motion)
    assert file is not None and not file.possible
    assert "link3" in {one.link for one in file.violations} and "Fv6" in {one.link for one in file.joint_violations}
    assert all(row["difference"] == 0.0 for row in file.largest_forces) and len(file.largest_forces) == 7
    theta = nearest(Consistency(model.parameters, margin=1e-5), theta).theta
    fine = physics(estimate_of(model, theta), motion)
    assert fine is not None and fine.possible and fine.positive_share == 1.0 and fine.fall is not None
    assert fine.fall.stable
    name = model.robot.body_names[6]
    wrong, columns = theta.copy(), model.parameters.bodies[name]
    mass, centre, central = ten.to_central(wrong[columns])
    values, turn = np.linalg.eigh(central)
    wrong[columns] = ten.from_central(mass, centre, (turn * (values - [values[0] + 0.02, 0.0, 0.0])) @ turn.T)
    found = physics(estimate_of(model, wrong), motion)
    assert found is not None and found.fall is not None
    link = found.links[6]
    assert link.name == name and max(one.amount for one in link.violations) == pytest.approx(0.02, rel=1e-6)
    assert link.moments is not None and link.moments[0] == pytest.approx(-0.02, rel=1e-6)
    assert all(not other.violations for other in found.links[:6])
    assert found.positive_share < 1.0 and not found.fall.stable
    said = found.to_dict()["violations"]
    assert [(one["link"], one["kind"]) for one in said] == [(name, "not-positive-definite")]
    assert said[0]["amount"] == pytest.approx(0.02, rel=1e-6)


def test_physics_of_a_known_robot_is_what_was_put_in() -> None:
    """A pendulum whose file says 2 kg, identified as 3 kg: at rest the joint carries the difference times gravity."""
    model, _ = pendulum()
    heavy = ten.from_central(3.0, np.array([REACH, 0.0, 0.0]), INERTIA * np.eye(3))
    q = np.linspace(-1.0, 1.0, 20)[:, None]
    still = np.zeros_like(q)
    found = physics(estimate_of(model, heavy), Samples.from_arrays(q, still, still, still, rate=10.0))
    assert found is not None and found.possible and len(found.links) == 1
    link = found.links[0]
    assert (link.mass, link.file_mass) == pytest.approx((3.0, MASS))
    assert link.centre == pytest.approx([REACH, 0.0, 0.0]) and link.moments == pytest.approx([INERTIA] * 3)
    assert link.thickness == pytest.approx(100.0)  # moments of a ball
    (row,) = found.largest_forces
    assert (row["file"], row["identified"], row["difference"]) == pytest.approx((MASS * 9.81, 3.0 * 9.81, 9.81))
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["possible"] and plain["violations"] == [] and plain["positive_inertia_share"] == 1.0
    assert plain["links"][0]["mass"] == pytest.approx(3.0) and plain["free_fall"]["stable"]
    assert plain["free_fall"]["seconds"] == pytest.approx(10.0)
    assert plain["forces"][0]["difference"] == pytest.approx(9.81)


def test_physics_needs_every_body() -> None:
    model, theta, motion = lwr()
    assert physics(replace(estimate_of(model, theta), theta=None), motion) is None
    bare = replace(model.robot, bodies=tuple(replace(body, inertia=None, parts=()) for body in model.robot.bodies))
    found = physics(estimate_of(replace(model, robot=bare), theta), motion)
    assert found is not None and found.forces is None and found.to_dict()["forces"] == []
    assert all(link.file_mass is None for link in found.links)


def test_thickness_of_a_ball_and_of_a_plate() -> None:
    assert thickness(ten.from_central(2.0, np.array([0.1, 0.2, 0.3]), 0.01 * np.eye(3))) == pytest.approx(100.0)
    plate = ten.from_central(2.0, np.array([0.1, 0.2, 0.3]), np.diag([0.01, 0.02, 0.03]))  # no thickness along z
    assert thickness(plate) == pytest.approx(0.0, abs=1e-9)
