"""What was not excited, by name, and whether the advised motion really excites it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import Coulomb, Model, Offset, RigidBodies, Scara, Viscous
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate.excited_parameters import ExcitedParameter, data_excitation, standard_errors
from dynid.validate.joint_motion import JointMotion, joint_motions


def test_sensitivity_and_share_by_definition(simulate):
    log = simulate("arm3r", rows=800)
    problem, estimate = log.fitted()
    found = data_excitation(problem, estimate)
    s, base = log.samples, problem.base
    y = log.model.regressor(s.q, s.dq, s.ddq)[:, :, base.independent]
    weights = np.array(estimate.diagnostics["weights"])
    flat = (y * weights[None, :, None]).reshape(-1, len(base))
    sees = log.model.structure[:, base.independent]
    for i, one in enumerate(found.parameters):
        column = y[:, sees[:, i], i]
        assert one.sensitivity == pytest.approx(np.sqrt(np.mean(column ** 2)), rel=1e-8)
        assert one.torque == pytest.approx(abs(estimate.values[i]) * one.sensitivity, rel=1e-8)
        others = np.delete(flat, i, axis=1)
        rest = flat[:, i] - others @ np.linalg.lstsq(others, flat[:, i], rcond=None)[0]
        assert one.independent_share == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(flat[:, i]), rel=1e-6)
        assert one.signal == pytest.approx(abs(estimate.values[i]) * np.linalg.norm(flat[:, i]), rel=1e-6)


def test_deviations_are_those_of_the_inverse():
    r = np.triu(np.random.default_rng(0).normal(size=(6, 6))) + 3 * np.eye(6)
    np.testing.assert_allclose(standard_errors(r), np.sqrt(np.diag(np.linalg.inv(r.T @ r))), rtol=1e-10)
    r[:, 2] = 0.0
    assert standard_errors(r)[2] > 1e6 and np.isfinite(standard_errors(r)).all()


def test_motion_of_a_joint_in_numbers():
    t = np.arange(4000) / 1000.0
    q = np.stack([0.5 * np.sin(2 * np.pi * t), 0.3 * t, np.full_like(t, 0.2)], axis=1)
    dq = np.stack([np.pi * np.cos(2 * np.pi * t), np.full_like(t, 0.3), 0.0 * t], axis=1)
    ddq = np.stack([-2 * np.pi ** 2 * np.sin(2 * np.pi * t), 0.0 * t, 0.0 * t], axis=1)
    robot = Robot.builtin("arm3r")
    swing, steady, still = joint_motions(Model(robot), [Samples.from_arrays(q, dq, ddq, 0 * q)], ("a", "b", "c"))
    assert (swing.low, swing.high) == pytest.approx((-0.5, 0.5), abs=1e-5)
    assert swing.speed == pytest.approx(np.pi, rel=1e-3)
    assert swing.acceleration == pytest.approx(2 * np.pi ** 2, rel=1e-3)
    assert swing.forward == pytest.approx(0.5, abs=0.01) and swing.velocity_limit == 2.175 and swing.upper == 2.8973
    assert steady.forward == 1.0 and steady.spread == pytest.approx(1.0)
    both_ways = steady.advice_for_friction()
    assert (both_ways.code, both_ways.evidence) == ("move-both-ways", {"forward": 1.0})
    assert not still.moves and still.advice("wider").code == "move-at-all"
    wider = swing.advice("wider")
    assert wider.code == "move-wider"
    assert wider.evidence == pytest.approx({"reached": 1.0, "limit": 2 * 2.8973}, abs=1e-5)


def joint_at(share: float, torque: float = 0.0) -> JointMotion:
    """A joint that used so much of its range, velocity and acceleration, and of its torque."""
    return JointMotion("joint5", -3.0 * share, 3.0 * share, 5.58 * share, 10.0 * share, 0.5, 4.0, -3.0, 3.0, 5.58, 10.0,
                       "rad", (1.0, 1.0, 1.0), torque * 40.0, 40.0)


def test_nobody_is_told_to_go_beyond_a_limit():
    """Not "let joint 5 move faster, it reached 5.6 of 5.58"."""
    full, half = joint_at(1.004), joint_at(0.5)
    for kind, code in (("wider", "move-wider"), ("faster", "move-faster"), ("harder", "accelerate-harder")):
        assert half.room(kind) and half.advice(kind).code == code
        assert not full.room(kind)
        note = full.advice(kind)
        assert note.code == "record-longer" and "longer" in note.text and "postures" in note.text
        assert "let joint 5" not in note.text
    assert not full.room("more") and full.advice("more").code == "record-longer"
    assert half.advice_for_friction().code == "move-faster" and full.advice_for_friction().code == "hold-speeds"
    # Of several ways only those that are left are named.
    slow = replace(full, speed=1.0)
    note = slow.advice("more")
    assert note.code == "move-more" and "faster" in note.text
    assert "wider" not in note.text and "acceleration" not in note.text
    # No torque left: no harder, whatever the acceleration was.
    assert not joint_at(0.5, torque=0.95).room("harder") and joint_at(0.5, torque=0.5).room("harder")
    assert replace(full, velocity_limit=None).room("faster")


def test_remedies_stay_inside_the_limits(simulate):
    """A slow log of a robot that reaches its limits of velocity and acceleration in it: no advice to exceed them."""
    log = simulate("kuka-lwr4", speed=0.1, rows=3000)
    s = log.samples
    tight = [replace(joint, velocity=float(np.abs(s.dq[:, j]).max()), acceleration=float(np.abs(s.ddq[:, j]).max()))
             for j, joint in enumerate(log.model.robot.joints)]
    robot = replace(log.model.robot, joints=tuple(tight))
    problem = Problem.from_model(Model(robot, log.model.terms), [s])
    found = data_excitation(problem, identify(problem, method="wls"))
    codes = {p.remedy.advice.code for p in found.missing if p.remedy is not None}
    assert found.missing and not codes & {"move-faster", "accelerate-harder"}
    for p in found.missing:
        for k in p.remedy.joints if p.remedy is not None and p.remedy.advice.code == "move-more" else ():
            assert found.motions[k].room("wider") and "faster" not in p.remedy.advice.text


def test_a_frozen_joint_is_named_with_what_it_hides(simulate):
    problem, estimate = simulate("arm3r", frozen=(1,)).fitted()
    found = data_excitation(problem, estimate)
    hidden = {p.name for p in found.missing if p.status == "not-excited"}
    assert {"Fv2", "Fc2"} <= hidden == set(np.array(estimate.names)[~estimate.identified])
    for one in found.missing:
        if one.name in ("Fv2", "Fc2"):
            assert (one.remedy.joints, one.remedy.advice.code) == ((1,), "move-at-all")
            assert one.sensitivity == 0.0  # no torque in the data depends on it


def test_slow_motion_asks_for_acceleration_of_the_joint_that_carries_it(simulate):
    problem, estimate = simulate("kuka-lwr4", speed=0.05, rows=3000).fitted()
    found = {p.name: p for p in data_excitation(problem, estimate).missing}
    inertia = found["ZZ7"]  # about the last axis: only the last joint's own acceleration shows it
    assert inertia.status == "poorly-determined" and inertia.lacking
    assert inertia.remedy.joints == (6,) and inertia.remedy.kind == "harder"
    assert inertia.remedy.advice.code == "accelerate-harder"
    assert inertia.remedy.advice.evidence["limit"] == pytest.approx(5.24, abs=0.005)
    assert found["Fv4"].remedy.advice.code == "move-both-ways"
    assert found["Fv4"].remedy.advice.evidence["forward"] < 0.03
    problem, estimate = simulate("kuka-lwr4", speed=0.1).fitted()
    found = {p.name: p for p in data_excitation(problem, estimate).missing}
    assert (found["Fv4"].remedy.joints, found["Fv4"].remedy.advice.code) == ((3,), "move-faster")


def test_small_range_asks_for_more_range_before_gravity(simulate):
    problem, estimate = simulate("arm3r", size=0.02, speed=3.0).fitted()
    found = {p.name: p for p in data_excitation(problem, estimate).missing}
    assert "Fo2" in found and found["Fo2"].remedy.kind == "wider" and found["Fo2"].remedy.joints in ((1,), (2,))
    assert found["Fo2"].remedy.advice.code == "move-wider"


def test_the_advised_motion_helps_as_much_as_promised(simulate):
    log = simulate("arm3r", speed=0.1, rows=3000)
    problem, estimate = log.fitted()
    missing = [p for p in data_excitation(problem, estimate).missing
               if p.remedy is not None and len(p.remedy.joints) == 1]
    assert len(missing) > 3
    rng = np.random.default_rng(1)
    for one in missing:
        # Follow the advice in a second log and hold the new deviation against the promise.
        limits = problem.model.robot.joints[one.remedy.joints[0]]
        signals = {name: getattr(log.samples, name).copy() for name in ("q", "dq", "ddq")}
        for name, kind, low, high in (("q", "wider", limits.lower, limits.upper),
                                      ("dq", "faster", -limits.velocity, limits.velocity),
                                      ("ddq", "harder", -limits.acceleration, limits.acceleration)):
            if one.remedy.kind in (kind, "more"):
                signals[name][:, one.remedy.joints[0]] = rng.uniform(low, high, len(log.samples))
        tau = log.model.inverse_dynamics(log.theta, **signals)
        tau += (log.samples.tau - log.model.inverse_dynamics(log.theta, *(getattr(log.samples, n)
                                                                          for n in ("q", "dq", "ddq"))))
        second = replace(log.samples, tau=tau, **signals)
        both = identify(Problem.from_model(log.model, [log.samples, second]), method="wls")
        place = both.names.index(one.name)
        assert both.std[place] < 0.75 * estimate.std[place]
        assert both.std[place] / estimate.std[place] == pytest.approx(one.remedy.share, rel=0.6)


def test_one_direction_and_one_speed(simulate):
    robot = Robot.builtin("emps")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset()))
    rng = np.random.default_rng(0)
    n = 500
    q, dq, ddq = np.linspace(0, 0.2, n)[:, None], np.full((n, 1), 0.1), rng.normal(size=(n, 1))
    tau = model.inverse_dynamics([0] * 9 + [95.0, 200.0, 20.0, -3.0], q, dq, ddq) + 0.1 * rng.normal(size=(n, 1))
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau))
    found = {p.name: p for p in data_excitation(problem, identify(problem, method="ols")).missing}
    assert set(found) == {"Fv1", "Fc1", "Fo1"}  # one speed, one direction: all of friction is one number
    assert found["Fc1"].confounded == found["Fo1"].confounded == ("Fv1",)
    assert found["Fv1"].confounded == ("Fc1", "Fo1")
    assert found["Fc1"].status == "not-excited"
    advice = found["Fc1"].remedy.advice
    assert (advice.code, advice.evidence) == ("move-both-ways", {"forward": 1.0})


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_friction_and_offset_of_a_joint_that_does_not_turn_back(way):
    """A ridge on the offset divides what one direction shows: both are named, with their sum and the motion that helps.
    A joint that turns back needs no such advice."""
    model = Model(Robot.builtin("emps"), (RigidBodies(), Viscous(), Coulomb(), Offset(ridge=1e-3)))
    t = np.arange(4000) / 1000.0
    rng = np.random.default_rng(0)

    def found(turns: float) -> dict[str, ExcitedParameter]:
        dq = way * (0.1 + turns * np.sin(5.0 * t))[:, None]
        q, ddq = np.cumsum(dq, axis=0) / 1000.0, np.gradient(dq, 1e-3, axis=0)
        tau = model.inverse_dynamics([0] * 9 + [95.0, 200.0, 20.0, -3.0], q, dq, ddq) + 0.1 * rng.normal(size=q.shape)
        problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau))
        return {one.name: one for one in data_excitation(problem, identify(problem, method="wls")).missing}

    one_way = found(0.08)
    for name, other in (("Fc1", "Fo1"), ("Fo1", "Fc1")):
        one = one_way[name]
        assert one.confounded == (other,) and one.remedy.advice.code == "move-both-ways"
        assert one.sentence.startswith(f"{name} cannot be distinguished from {other}")
    shown = re.search(r"Fc1 ([+-]) Fo1 = (\S+) \+- (\S+) N alone", one_way["Fc1"].sentence)
    sign, value, std = shown[1], float(shown[2]), float(shown[3])
    assert sign == ("+" if way > 0 else "-") and abs(value - (20.0 - way * 3.0)) < 3.0 * std < 1.0
    assert not {"Fc1", "Fo1"} & set(found(0.3))


def test_a_model_of_ones_own_and_a_saved_fold(simulate):
    log = simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, 0.13], frozen=(1,))
    problem, estimate = log.fitted()
    found = data_excitation(problem, estimate)
    assert {"Fv2", "Fc2"} <= {p.name for p in found.missing}
    alone = data_excitation(replace(problem, data=()), estimate)  # names without advice
    assert [p.name for p in alone.missing] == [p.name for p in found.missing]
    assert alone.motions == () and all(p.remedy is None for p in alone.parameters)
    for one in (found, alone):
        json.dumps(one.to_dict(), allow_nan=False)


def test_a_small_parameter_known_to_be_small_is_identified(simulate):
    problem, estimate = simulate("arm3r", changes={"Fv1": 0.0, "Fv2": 0.0, "Fv3": 0.0}, noise=0.001).fitted()
    assert np.any(estimate.relative_std > 30.0)
    assert data_excitation(problem, estimate).missing == ()
