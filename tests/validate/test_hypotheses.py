"""Hypotheses: each fault that is put in is measured, for any set of joints, and no other is blamed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from passes import counted_passes
from refusals import refused
from scipy.optimize import linear_sum_assignment

from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.model import Model, RigidBodies, Scara, TemperatureFriction
from dynid.recording import Samples
from dynid.recording.check import hanging_positions
from dynid.robot import Robot
from dynid.robot.check import robot_reach
from dynid.validate import Verdict, estimate_gravity, reconstruct, verdict
from dynid.validate.hypotheses import gravity as gravity_module
from dynid.validate.hypotheses.gains import between_joints, wrong_scales
from dynid.validate.hypotheses.hypothesis import Hypothesis
from dynid.validate.hypotheses.motions import (
    backlash,
    delay,
    gear_ratio,
    held_for,
    hoped,
    lag_of_link,
    polished,
    position_offset,
    refined,
    worth_of_delay,
)
from dynid.validate.hypotheses.nominal import chance_of_last, compare_with_nominal, load_on_log
from dynid.validate.hypotheses.screen import ROWS, HypothesisScreen, solved
from dynid.validate.hypotheses.signs import assignment, inverted_joints
from dynid.validate.hypotheses.trial import try_out
from dynid.validate.hypotheses.weigh import hypothesis_excerpt, is_presliding
from reproductions import _faults as faults
from reproductions import _faulty_machines as faulty_machines
from reproductions import _verdicts as verdicts
from reproductions import silent


def judged(log, others=()) -> Verdict:
    problem, estimate = log.fitted()
    return verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples),
                   validation=[reconstruct(estimate, one) for one in others])


def causes(found: Verdict) -> list[tuple[str, ...]]:
    return [(one.code, *one.joints) for one in found.of_kind("problem")]


def moved(log, **signals):
    return replace(log, samples=replace(log.samples, **signals))


@pytest.mark.parametrize("joints", [
    (0,), (0, 3, 5), *(pytest.param(some, marks=pytest.mark.slow) for some in ((1, 2), tuple(range(7))))])
def test_signs_of_any_set_of_joints(simulate, joints):
    log = simulate("kuka-lwr4")
    sign = np.ones(7)
    sign[list(joints)] = -1.0
    wrong = log.with_torque(log.samples.tau * sign)
    assert inverted_joints(wrong.problem().regression) == joints
    names = tuple(log.model.robot.joint_names[j] for j in joints)
    if len(joints) in (2, 7):
        assert causes(judged(wrong)) == [("torque-sign", *names)]


def test_scales_of_three_joints_at_once(simulate):
    log = simulate("kuka-lwr4", noise=0.005)
    gains = np.array([1.0, 1.3, 1.0, 0.7, 1.5, 1.0, 1.0])
    regression = log.with_torque(log.samples.tau * gains).problem().regression
    found = wrong_scales(regression, try_out(regression).noise, 1.0)
    assert found is not None and found.joints == (1, 3, 4) and found.rivals == ()
    assert np.abs(np.array(found.gains) - gains[[1, 3, 4]]).max() < 4.0 * max(found.std) and max(found.std) < 0.03
    assert found.removed > 0.95


@pytest.mark.parametrize(("gain", "coupling"), [(0.6, 0.0), (-1.0, 0.0), (0.6, 0.3)])
def test_two_joints_do_not_show_whose_scale_is_wrong(simulate, gain, coupling):
    """A scale of either joint explains all; where something else is left, only the nominal model shows a scale."""
    lengths, masses = np.array([0.4, 0.3]), np.array([3.0, 2.0])
    own, none = masses * lengths ** 2, np.zeros(2)
    inertias = np.column_stack([0.02 * own, none, none, own / 3.0, none, own / 3.0, masses * lengths / 2.0, none, none,
                                masses])
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)], gravity=(0.0, -9.81, 0.0), inertias=inertias)
    model = Model(robot, (RigidBodies(),))
    log = simulate(model, theta=inertias.ravel(), noise=0.005)
    other = coupling * np.column_stack([np.cos(log.samples.q[:, 1]), np.sin(log.samples.q[:, 0])])
    regression = log.with_torque(log.samples.tau * [gain, 1.0] + other).problem().regression
    noise = try_out(regression).noise
    alone, confirmed = wrong_scales(regression, noise, 1.0), wrong_scales(regression, noise, 1.0, (gain, 1.0))
    assert (alone is None) == (coupling > 0.0)
    assert alone is None or {*alone.joints, *alone.rivals} == {0, 1}
    assert confirmed is not None and confirmed.joints == (0,)
    assert confirmed.gains[0] == pytest.approx(gain, abs=0.03 + 0.3 * coupling)


@pytest.mark.parametrize("is_gap", [True, False])
def test_presliding_friction_is_not_a_gap(simulate, is_gap):
    """The link lags behind its encoder by a gap, or only its friction does."""
    log = simulate("arm3r", noise=0.0, changes={"Fc2": 8.0})
    samples, rng, cutoff = log.samples, np.random.default_rng(3), 10.0
    off = lag_of_link(samples.q[:, 1], 0.02, samples.rate, cutoff, samples.segments)
    link = [np.array(x) for x in (samples.q, samples.dq, samples.ddq)]
    for x, lag, lags in zip(link, off, (is_gap, True, is_gap), strict=True):
        x[:, 1] += lag if lags else 0.0
    tau = log.model.regressor(*link) @ log.theta
    tau += 0.005 * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    problem = log.with_torque(tau).problem()
    noise = try_out(problem.regression).noise
    assert is_presliding(problem, problem.data, noise, backlash(1, 0.02)) is not is_gap


def test_misfit_between_joints_vanishes_at_the_right_scales(simulate):
    log = simulate("arm3r", noise=0.0)
    regression = log.with_torque(log.samples.tau * [2.0, 1.0, 0.5]).problem().regression
    t = between_joints(regression, np.ones(3))
    assert np.linalg.norm(t @ [0.5, 1.0, 2.0]) < 1e-8 * np.linalg.norm(t @ np.ones(3))


def test_swapped_torques_and_swapped_positions_are_told_apart(simulate):
    log = simulate("arm3r", changes={f"{name}{j}": 0.3 for name in ("Fv", "Fc") for j in (1, 2, 3)})
    order, s, names = [0, 2, 1], log.samples, log.model.robot.joint_names
    assert causes(judged(log.with_torque(s.tau[:, order])))[0] == ("torques-swapped", *names[1:])
    positions = moved(log, q=s.q[:, order].copy(), dq=s.dq[:, order].copy(), ddq=s.ddq[:, order].copy())
    assert causes(judged(positions))[0] == ("positions-swapped", *names[1:])


@pytest.mark.parametrize(("name", "joint"), [("kuka-lwr4", 3), ("ur10", 2)])
def test_a_joint_that_is_counted_in_the_opposite_direction_is_found(simulate, name, joint):
    """Friction stays positive, because positions and torques are reversed together: only other joints show it."""
    log = simulate(name)
    sign = np.ones(log.samples.dof)
    sign[joint] = -1.0
    s = log.samples
    found = judged(moved(log, q=s.q * sign, dq=s.dq * sign, ddq=s.ddq * sign, tau=s.tau * sign))
    [cause] = [one for one in found.of_kind("problem") if one.code == "position-sign"]
    assert cause.joints == (log.model.robot.joint_names[joint],) and cause.evidence["torque"] == 1.0
    assert "position-sign" not in {one.code for one in judged(log).findings}


def test_torques_in_percent_of_the_rated_ones_are_not_exchanged(simulate):
    """Wrong scales contradict each other as exchanged torques do, but each joint's own equations explain its torque."""
    log = simulate("franka-panda", noise=0.01)
    rated = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
    found = causes(judged(log.with_torque(100.0 * log.samples.tau / rated)))
    assert not [one for one in found if one[0] in ("torques-swapped", "positions-swapped")]
    assert ("unexplained-misfit", "joint5") in found


@pytest.mark.parametrize("factor", [pytest.param(0.5, marks=pytest.mark.slow), 2.0])
def test_time_stamps_wrong_by_a_factor(simulate, factor):
    log = simulate("kuka-lwr4", noise=0.01)
    s = log.samples
    wrong = moved(log, t=s.t * factor, rate=s.rate / factor, dq=s.dq / factor, ddq=s.ddq / factor ** 2)
    found = [one for one in judged(wrong).of_kind("problem") if one.code == "time-scale"]
    assert found and found[0].evidence["factor"] == pytest.approx(1.0 / factor, rel=0.02)


def test_gear_ratio(simulate):
    log = simulate("kuka-lwr4", noise=0.01)
    scale = np.where(np.arange(7) == 1, 1.25, 1.0)
    s = log.samples
    wrong = moved(log, q=s.q / scale, dq=s.dq / scale, ddq=s.ddq / scale, tau=s.tau * scale)
    found = judged(wrong)
    assert causes(found)[0] == ("gear-ratio", log.model.robot.joint_names[1])
    assert found.of_kind("problem")[0].evidence["factor"] == pytest.approx(1.25, rel=0.02)
    assert found.hypotheses[0].cause == "gear-ratio" and found.hypotheses[0].explained > 0.5
    assert found.refit.causes == ("gear-ratio",)


@pytest.mark.parametrize("gravity", [
    pytest.param((9.81, 0.0, 0.0), marks=pytest.mark.slow), (0.0, 6.9367, -6.9367)])
def test_the_direction_of_gravity(simulate, gravity):
    log = simulate("kuka-lwr4", noise=0.01)
    s = log.samples
    tilted = Model(log.model.robot.with_gravity(gravity), log.model.terms)
    noise = s.tau - log.model.inverse_dynamics(log.theta, s.q, s.dq, s.ddq)
    wrong = log.with_torque(tilted.inverse_dynamics(log.theta, s.q, s.dq, s.ddq) + noise)
    found = estimate_gravity(wrong.problem())
    off = np.rad2deg(np.arccos(np.clip(found.vector @ gravity / 9.81 ** 2, -1.0, 1.0)))
    assert off < 1.0 and np.all(found.std < 1.0) and off < 6.0 * max(found.std)
    assert causes(judged(wrong))[0] == ("gravity-direction",)


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 9.81), (9.81, 0.0, 0.0)])
def test_gravity_along_an_axis_is_named_exactly_beside_large_friction(gravity):
    """On decimated rows large Coulomb friction turns the best direction, so that a time scale explained more."""
    arm = silent.example_arm(6501)
    found = verdicts.judged(arm.model.robot.with_gravity(gravity), faults.Put(arm.log)).verdict.of_kind("problem")
    [one] = [one for one in found if one.code == "gravity-direction"]
    assert one.evidence["gravity"] == pytest.approx((0.0, 0.0, -9.81), abs=1e-9)
    assert "time-scale" not in {one.code for one in found}


def test_tiny_columns_are_solved_without_a_warning():
    """The product of two column sizes of 1e-170 is zero in floating point."""
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        value, rest = solved(np.array([[1e-322, 0.0, 0.0], [0.0, 4.0, 2.0], [0.0, 2.0, 2.0]]))
    assert value[1] == pytest.approx(0.5, rel=1e-6) and rest == pytest.approx(1.0, rel=1e-6)


def test_gravity_sideways_is_no_wrong_sign():
    """A joint alone has negative friction under the gravity of the file, and none under that of the machine."""
    made = faulty_machines.machine("ur10", 4301)
    put = faults.mounted(made, mirrored=False)
    case = verdicts.judged(made.model.robot, put, verdicts.NAMED)
    assert inverted_joints(case.problem.regression)
    said = {one.code for one in case.verdict.of_kind("problem")}
    assert "gravity-direction" in said and "torque-sign" not in said


@pytest.mark.parametrize("is_bare", [False, True])
def test_mirrored_gravity_is_decided_by_the_file_or_by_what_can_exist(simulate, is_bare, monkeypatch):
    """At this speed gravity is nearly all: masses below zero meet the torques as well. A file whose masses are a third
    of the true ones decides as well as a right one."""
    log = simulate("arm3r", noise=0.01, rows=4000, speed=0.15,
                   changes={f"{name}{j}": 0.1 for name in ("Fv", "Fc") for j in (1, 2, 3)})
    s = log.samples
    mirrored = Model(log.model.robot.with_gravity((0.0, 0.0, 9.81)), log.model.terms)
    noise = s.tau - log.model.inverse_dynamics(log.theta, s.q, s.dq, s.ddq)
    wrong = log.with_torque(mirrored.inverse_dynamics(log.theta, s.q, s.dq, s.ddq) + noise)
    asked = []
    consistent = gravity_module._exists
    monkeypatch.setattr(gravity_module, "_exists", lambda *given: asked.append(given) or consistent(*given))
    bodies = tuple(replace(body, inertia=None if is_bare or body.inertia is None else body.inertia / 3.0)
                   for body in log.model.robot.bodies)
    found = estimate_gravity(wrong.problem(replace(log.model, robot=replace(log.model.robot, bodies=bodies))))
    assert found.vector[2] == pytest.approx(9.81, abs=0.1)
    assert bool(asked) == is_bare


def test_mirrored_gravity_in_a_slow_motion_is_named(simulate):
    log = simulate("kuka-lwr4", noise=0.01, rows=4000, speed=0.3)
    s = log.samples
    mirrored = Model(log.model.robot.with_gravity((0.0, 0.0, 9.81)), log.model.terms)
    noise = s.tau - log.model.inverse_dynamics(log.theta, s.q, s.dq, s.ddq)
    wrong = log.with_torque(mirrored.inverse_dynamics(log.theta, s.q, s.dq, s.ddq) + noise)
    [found] = [one for one in judged(wrong).findings if one.code == "gravity-direction"]
    assert found.evidence["angle"] == pytest.approx(180.0, abs=2.0)


def test_gravity_of_a_model_without_a_robot(simulate):
    log = simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, 0.13])
    with refused(ModelError, "model-without-robot"):
        estimate_gravity(log.problem())


def test_a_rough_nominal_model_is_no_wrong_gain(simulate):
    """Bodies off by up to 45 % from the file, all joints alike: nothing is wrong with the drives."""
    factors = dict(zip(range(1, 8), (1.4, 0.7, 1.3, 0.8, 1.45, 0.6, 1.2), strict=True))
    healthy = simulate("kuka-lwr4")
    changes = {p.name: value * factors[p.owner + 1] for p, value in
               zip(healthy.model.parameters, healthy.theta, strict=True) if p.body is not None}
    assert causes(judged(simulate("kuka-lwr4", changes=changes))) == []


@pytest.mark.parametrize(("others", "is_stated"), [((1.0,) * 6, True), ((1.1, 0.9, 1.05, 0.95, 1.1, 0.9), True),
                                                   ((2.5, 0.4, 3.0, 0.3, 2.0, 0.35), False)])
def test_a_load_stands_out_against_the_errors_of_the_file(simulate, others, is_stated):
    """The same change of the last link, beside other links that agree with the file and links that do not."""
    healthy = simulate("kuka-lwr4")
    factors = dict(enumerate((*others, 3.5), start=1))
    changes = {p.name: value * factors[p.owner + 1] for p, value in
               zip(healthy.model.parameters, healthy.theta, strict=True) if p.body is not None}
    problem, _ = simulate("kuka-lwr4", changes=changes).fitted()
    sheet = compare_with_nominal(problem)
    assert sheet is not None
    assert (chance_of_last(sheet) < 0.01) == is_stated
    if not is_stated:
        assert load_on_log(problem, sheet) is None


def test_payload_on_the_log(simulate):
    found = judged(simulate("kuka-lwr4", changes={"M7": 3.0, "MZ7": 0.45, "XX7": 0.09, "YY7": 0.09}))
    assert causes(found) == [("payload",)]
    evidence = found.of_kind("problem")[0].evidence
    assert evidence["explained"] > 0.9 and evidence["share"] > 0.3


def test_link_behind_a_gap():
    t = np.arange(0.0, 4.0, 0.005)
    q = np.sin(2 * np.pi * 0.5 * t)
    off, _, _ = lag_of_link(q, 0.1, 200.0, 10.0, np.array([[0, len(q)]]))
    away = np.abs(np.cos(2 * np.pi * 0.5 * t)) > 0.8  # from reversals
    assert np.allclose(np.abs(off[away][100:-60]), 0.05, atol=2e-3)
    assert np.allclose(np.sign(off[away][100:-60]), -np.sign(np.cos(2 * np.pi * 0.5 * t))[away][100:-60])


@pytest.mark.parametrize("start", [0.7, 1.9, 2.4])
def test_an_encoder_that_hangs_and_one_that_rests(start):
    """At 1.9 s the joint turns round while its encoder hangs, so that it goes on near where it stopped."""
    t = np.arange(0.0, 5.0, 0.002)
    count = 2 * np.pi / 2 ** 16
    q = np.round(np.sin(2 * np.pi * 0.25 * (t - 1.4)) / count)[:, None] * count
    assert hanging_positions(t, q) == ()
    hung = q.copy()
    rows = (t >= start) & (t < start + 1.0)
    hung[rows] = q[np.argmax(rows)]
    [found] = hanging_positions(t, hung)
    assert abs(t[found.start] - start) < 0.01 and abs(t[found.stop - 1] - start - 1.0) < 0.01
    rest = np.where(t < 1.0, 0.5 - 0.5 * np.cos(np.pi * t), np.where(t < 2.5, 1.0, 0.5 + 0.5 * np.cos(t - 2.5)))
    assert hanging_positions(t, np.round(rest / count)[:, None] * count) == ()


def test_a_screen_leaves_what_least_squares_leaves(simulate):
    log = simulate("arm3r", noise=0.01)
    problem = log.problem()
    noise = try_out(problem.regression).noise
    screen = HypothesisScreen.from_problem(problem, problem.data, noise)
    [few] = screen.logs
    y = (problem.model.regressor(few.q, few.dq, few.ddq)[:, :, problem.base.independent] / noise[None, :, None]
         ).reshape(-1, len(problem.base))
    tau = (few.tau / noise).ravel()
    left = tau - y @ np.linalg.lstsq(y, tau, rcond=None)[0]
    assert len(few) <= 1.5 * ROWS
    # It damps weak directions a little.
    assert screen.before == pytest.approx(float(left @ left) / len(tau), rel=1e-2)
    turned = screen.share(gear_ratio(1, 1.25, 3, torque=True))
    assert turned > 1.0 and screen.share(gear_ratio(1, 1.0, 3, torque=True)) == pytest.approx(1.0, rel=1e-9)


def test_hypotheses_about_torques_alone_share_the_columns_of_their_motion(simulate):
    """Each misfit is what a screen that has seen nothing else gives, and the regressor is evaluated once a motion."""
    problem = simulate("arm3r", noise=0.01).problem()
    noise = try_out(problem.regression).noise
    tried = [one for j in range(3) for one in (delay(0.01), gear_ratio(j, 1.25, 3, torque=True),
                                               gear_ratio(j, 1.25, 3, torque=False), delay(-0.01))]
    screen = HypothesisScreen.from_problem(problem, problem.data, noise)
    with counted_passes() as passes:
        found = [screen.left(Hypothesis("")), *(screen.left(one) for one in tried)]
    alone = [HypothesisScreen.from_problem(problem, problem.data, noise).left(one) for one in (Hypothesis(""), *tried)]
    assert found == alone and len(set(found)) > 7
    assert passes.total == 4 * sum(len(log) for log in screen.logs)


def test_the_number_of_a_hypothesis_is_found_between_those_tried():
    def misfit(one):
        return (np.log(one.values[0]) - 0.1) ** 2 / 0.01

    tried = [(misfit(one), one) for one in (gear_ratio(0, x, 2, torque=False) for x in (0.8, 1.25))]
    assert np.log(refined(tried, misfit).values[0]) == pytest.approx(0.1, abs=1e-6)
    assert np.log(polished(gear_ratio(0, 1.12, 2, torque=False), misfit).values[0]) == pytest.approx(0.1, abs=1e-6)
    assert hoped(tried) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("offset", [-0.17, -0.05, 0.012, 0.17])
def test_a_number_beyond_those_tried_is_found_in_few_evaluations(offset):
    """The residual is not quite a parabola."""
    calls = []

    def misfit(one):
        calls.append(one)
        away = one.values[0] - offset
        return 0.3 + 0.7 * (1.0 - np.cos(away)) / (1.0 - np.cos(offset)) * np.exp(away)

    start = [(misfit(one), one) for one in (position_offset(1, x, 3) for x in (-0.05, 0.05))]
    assert refined(start, misfit).values[0] == pytest.approx(offset, rel=0.05)
    assert len(calls) <= 6


@pytest.mark.parametrize("late", [-0.35, -0.06, 0.15, 0.35])
def test_a_delay_many_times_those_tried_is_found(late):
    """The residual of a motion of 0.5 Hz."""
    def misfit(one):
        return (1.01 - np.cos(np.pi * (one.values[0] - late))) / (1.01 - np.cos(np.pi * late))

    start = [(misfit(one), one) for one in (delay(x) for x in (-0.01, 0.01))]
    assert refined(start, misfit).values[0] == pytest.approx(late, rel=0.05)


def test_torques_too_large_for_any_machine_of_that_size(simulate):
    log = simulate("kuka-lwr4")
    bare = replace(log.model.robot, bodies=tuple(replace(body, inertia=None) for body in log.model.robot.bodies))
    wrong = replace(log.with_torque(1e3 * log.samples.tau), model=Model(bare, log.model.terms))
    assert ("torque-unit",) in causes(judged(wrong))
    assert "torque-unit" not in {code for code, *_ in causes(judged(replace(log, model=wrong.model)))}


def test_a_robot_file_without_masses_says_nothing_about_the_unit_of_torques(simulate):
    """Its links have inertias, which give torques a thousandth of those of the machine."""
    log = simulate("arm3r")
    light = log.model.robot.inertias.copy()
    light[:, 6:] = 0.0
    robot = log.model.robot.with_inertias(light)
    assert "torque-unit" not in {one.code for one in judged(replace(log, model=Model(robot, log.model.terms))).findings}


def test_reach_of_an_arm():
    robot = Robot.from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)])
    assert robot_reach(robot) == pytest.approx(0.5 + 0.4 + 0.5)  # the last link as long as the longest


def test_what_changed_on_another_log(simulate):
    log = simulate("kuka-lwr4", noise=0.01)
    load = simulate("kuka-lwr4", noise=0.01, seed=5, source="load.csv",
                    changes={"M7": 3.0, "MZ7": 0.45, "XX7": 0.09, "YY7": 0.09})
    assert causes(judged(log, [load.samples]))[0][0] == "load-changed"
    warm = simulate("kuka-lwr4", noise=0.01, seed=5, changes={f"Fc{j}": 3.0 for j in range(1, 5)})
    assert causes(judged(log, [warm.samples]))[0][0] == "friction-changed"
    rng = np.random.default_rng(0)
    other = {p.name: value * np.exp(0.2 * rng.normal()) for p, value in
             zip(log.model.parameters, log.theta, strict=True)}
    machine = simulate("kuka-lwr4", noise=0.01, seed=5, changes=other)
    assert causes(judged(log, [machine.samples]))[0][0] == "another-machine"
    weak = simulate("kuka-lwr4", noise=0.03, rows=700, size=0.2, speed=0.4)
    assert "overfit" in {one.code for one in judged(weak, [simulate("kuka-lwr4", noise=0.03, seed=5).samples]).findings}


def test_left_out_score_is_that_of_fits_without_each_block(simulate):
    problem = Problem.from_model(simulate("arm3r").model, simulate("arm3r").samples, blocks=4)
    trial = try_out(problem.regression)
    noise = trial.noise
    s, base = problem.data[0], problem.base
    y = problem.model.regressor(s.q, s.dq, s.ddq)[:, :, base.independent] / noise[None, :, None]
    tau, blocks = s.tau / noise, []
    for rows in np.array_split(np.arange(len(s)), 4):
        kept = np.setdiff1d(np.arange(len(s)), rows)
        beta = np.linalg.lstsq(y[kept].reshape(-1, len(base)), tau[kept].ravel(), rcond=None)[0]
        blocks.append(np.sum((tau[rows] - y[rows] @ beta) ** 2, axis=0))
    assert trial.mean_score == pytest.approx(np.sum(blocks) / tau.size, rel=1e-6)
    assert trial.score == pytest.approx(4.0 * np.median(blocks, axis=0).sum() / tau.size, rel=1e-6)


def test_a_delay_within_two_sample_periods_has_to_explain_more(simulate):
    samples = simulate("arm3r").samples
    held = held_for(samples)
    assert held == pytest.approx(2.0 * float(np.mean(np.diff(samples.t))), rel=1e-9)
    assert worth_of_delay(0.9 * held, held) == worth_of_delay(-0.9 * held, held) == 2.0
    assert worth_of_delay(1.1 * held, held) == worth_of_delay(-1.1 * held, held) == 1.0


def test_the_assignment_is_scipys():
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 12))
        cost = rng.normal(size=(size, size)) - rng.uniform(0.0, 2.0) * np.eye(size)
        assert np.array_equal(assignment(cost), linear_sum_assignment(cost)[1])


def test_the_excerpt_that_hypotheses_are_weighed_on_has_the_temperature_of_its_own_rows() -> None:
    """A fit to the excerpt finds the friction's dependence on temperature that made the torques."""
    robot = Robot.builtin("scara2")
    model = Model(robot, (RigidBodies(), TemperatureFriction(("Fct",), reference=0.0)))
    t = np.arange(40_000) / 1000.0
    angle = np.outer(t, [2.1, 3.3])
    motion = (np.sin(angle), np.cos(angle) * [2.1, 3.3], -np.sin(angle) * np.square([2.1, 3.3]))
    warm = np.column_stack([20.0 + 0.5 * t, 40.0 - 0.2 * t])
    theta = np.array([0.05 if item.symbol == "Fct" else item.nominal or 0.0 for item in model.parameters])
    rigid = Model(robot, (RigidBodies(),))
    tau = rigid.inverse_dynamics(theta[:len(rigid.parameters)], *motion) + 0.05 * warm * np.sign(motion[1])
    samples = replace(Samples.from_arrays(*motion, tau, rate=1000.0), temperature=warm)
    some = hypothesis_excerpt((samples,))
    assert sum(map(len, some)) < 20_000
    found = identify(model, some, method="wls")
    friction = dict(zip(found.base.names, found.values, strict=True))
    assert [friction["Fct1"], friction["Fct2"]] == pytest.approx([0.05, 0.05], rel=1e-9)
