"""The verdict names the fault that was put in, and nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from dynid.estimate import Problem, identify
from dynid.findings import Finding
from dynid.model import Coulomb, DifferentialDrive, Model, Offset, RigidBodies, Scara, Viscous
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import Verdict, cross_validate, reconstruct, verdict
from dynid.validate.cutoff_influence import CutoffDependence
from dynid.validate.gains import drive_gains
from dynid.validate.hypotheses.signs import inverted_joints

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


def documented_as(code: str) -> tuple[str, ...]:
    """The codes in docs/results.md that stand for this one: those of what a residual follows come in two parts."""
    followed = code.removeprefix("residual-follows-")
    return (code,) if followed == code else ("residual-follows-...", followed)


def judged(log, model=None, others=(), blocks=False) -> Verdict:
    problem, estimate = log.fitted(model=model)
    cross = cross_validate(problem, "wls", estimate=estimate) if blocks else None
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples),
                    validation=[reconstruct(estimate, other) for other in others], cross=cross)
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["code"] for one in said["findings"]] == [one.code for one in found.findings]
    assert all(re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", one.code) and one.text for one in found.findings)
    assert all(f"`{part}`" in DOCUMENTED for one in found.findings for part in documented_as(one.code))
    return found


def problems(found: Verdict) -> list[tuple[str, ...]]:
    """The code of each problem and what it names: parameters, or joints where it names none."""
    return [(finding.code, *(finding.parameters or finding.joints)) for finding in found.of_kind("problem")]


def finding(found: Verdict, code: str) -> Finding:
    """The one finding with that code."""
    [one] = [finding for finding in found.findings if finding.code == code]
    return one


def scaled(log, joint: int, gain: float):
    factor = np.ones(log.model.dof)
    factor[joint] = gain
    return log.with_torque(log.samples.tau * factor)


@pytest.mark.parametrize("robot", ["arm3r", "kuka-lwr4", "emps"])
@pytest.mark.parametrize("noise", [0.02, 0.0])
def test_a_healthy_robot_has_no_problem(simulate, robot, noise):
    found = judged(simulate(robot, noise=noise, rows=4000), blocks=True)
    assert problems(found) == [] and found.refit is None
    counts = finding(found, "identified").evidence
    assert counts["base_parameters"] == len(found.excitation.parameters) >= counts["identified"] >= counts["sharp"] > 0


@pytest.mark.parametrize(("robot", "seed"), [("arm3r", 0), ("kuka-lwr4", 0), *(
    pytest.param("arm3r", seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_wrong_drive_gain_on_joint_2(simulate, robot, seed):
    found = judged(scaled(simulate(robot, seed=seed, rows=4000), 1, 1.25))
    joint = Robot.builtin(robot).joint_names[1]
    assert problems(found) == [("drive-gain", joint)]
    evidence = finding(found, "drive-gain").evidence
    assert evidence["gain"] == pytest.approx(1.25, abs=0.05) and 0.0 < evidence["std"] < 0.02
    assert finding(found, "drive-gain").title in found.headline
    # What else looks wrong is asked of a second fit with that gain set right, and the verdict says so.
    assert (found.refit.joint, found.refit.gain, found.refit.method) == (joint, evidence["gain"], "wls")


def test_the_gain_is_measured_without_a_nominal_model(simulate):
    log = scaled(simulate("kuka-lwr4"), 3, 0.8)
    problem, estimate = log.fitted()
    gains = drive_gains(replace(problem, model=_without_nominal(log.model), nominal=None), estimate)
    assert gains[3].gain == pytest.approx(0.8, abs=5 * gains[3].std) and gains[3].std < 0.01
    assert gains[3].improvement > 0.9 and gains[3].nominal is None
    assert max(gains, key=lambda gain: gain.improvement) is gains[3]
    healthy = drive_gains(*simulate("kuka-lwr4").fitted())
    assert all(abs(gain.gain - 1.0) < 5 * gain.std and abs(gain.nominal - 1.0) < 0.02 for gain in healthy[1:4])


@pytest.mark.parametrize("blocks", [2, 9])
def test_the_gain_of_a_joint_with_dependent_columns_does_not_depend_on_rounding_errors(simulate, blocks):
    log = scaled(simulate("puma560"), 1, 1.3)
    one, several = (log.problem(blocks=count) for count in (1, blocks))
    factor = one.regression.factors[0]
    assert factor.least_misfit > 1.001 * factor.r[-1, -1] ** 2  # of joint 1, whose own columns are dependent
    for a, b in zip(*(drive_gains(problem, identify(problem, method="wls")) for problem in (one, several)),
                    strict=True):
        assert a.improvement == pytest.approx(b.improvement, rel=1e-6, abs=1e-9)


def _without_nominal(model: Model) -> Model:
    return replace(model, robot=replace(model.robot, bodies=tuple(replace(b, inertia=None) for b in model.robot.bodies),
                                        values={}))


def test_reversed_torque_of_one_joint(simulate):
    for robot, joint in (("arm3r", 2), ("kuka-lwr4", 1)):
        found = judged(scaled(simulate(robot), joint, -1.0))
        assert problems(found) == [("torque-sign", Robot.builtin(robot).joint_names[joint])]
        assert finding(found, "torque-sign").evidence["gain"] == pytest.approx(-1.0, abs=0.05)


def test_all_torques_in_another_unit(simulate):
    log = simulate("kuka-lwr4")
    found = judged(log.with_torque(100.0 * log.samples.tau))
    assert finding(found, "torque-unit").evidence["nominal"] == pytest.approx([100.0] * 3, rel=0.02)
    assert "kN m" in finding(judged(log.with_torque(1e-3 * log.samples.tau)), "torque-unit").text


def test_missing_coulomb_friction_on_joint_2(simulate):
    log = simulate("arm3r", changes={"Fc2": 0.8})
    robot = Robot.builtin("arm3r")
    lacking = Model(robot, (RigidBodies(), Viscous(), Offset(), Coulomb(joints=(1, 3))))
    found = judged(log, lacking)
    assert problems(found) == [("residual-follows-velocity-sign", robot.joint_names[1])]
    assert finding(found, "residual-follows-velocity-sign").evidence["coefficient"] == pytest.approx([0.8], rel=0.1)


def test_missing_rotor_inertia(simulate):
    log = simulate("arm3r", noise=0.01)
    found = judged(log.with_torque(log.samples.tau + log.samples.ddq * [0.0, 0.0, 0.3]))
    assert problems(found) == [("residual-follows-acceleration", log.model.robot.joint_names[2])]
    assert finding(found, "residual-follows-acceleration").evidence["coefficient"] == pytest.approx([0.3], rel=0.1)


@pytest.mark.parametrize(("robot", "joint"), [
    ("arm3r", 0), ("arm3r", 2), pytest.param("kuka-lwr4", 2, marks=pytest.mark.slow), ("kuka-lwr4", 6)])
def test_one_joint_frozen(simulate, robot, joint):
    found = judged(simulate(robot, frozen=(joint,)), blocks=True)
    name = Robot.builtin(robot).joint_names[joint]
    assert problems(found) == [("joint-at-rest", name)]
    assert finding(found, "joint-at-rest").evidence == {"range": 0.0}
    own = {f"Fv{joint + 1}", f"Fc{joint + 1}"}
    [hidden] = [one for one in found.of_kind("not-excited") if own <= {*one.parameters}]
    assert (hidden.code, hidden.joints) == ("not-excited", (name,))
    remedies = {one.remedy.advice.code for one in found.excitation.missing if one.name in own}
    assert remedies == {"move-at-all"}


@pytest.mark.parametrize("robot", ["arm3r", "kuka-lwr4"])
def test_negative_friction(simulate, robot):
    found = judged(simulate(robot, changes={"Fv2": -0.3}))
    assert problems(found) == [("negative-friction", "Fv2")]
    said = finding(found, "negative-friction")
    assert said.joints == (Robot.builtin(robot).joint_names[1],)
    assert said.evidence["value"] == pytest.approx([-0.3], abs=4 * said.evidence["std"][0])


def test_unphysical_inertia_of_the_last_link(simulate):
    found = judged(simulate("kuka-lwr4", changes={"ZZ7": -0.02}))
    assert problems(found) == [("unphysical-inertia", "ZZ7")]


def test_a_small_inertia_below_zero_does_not_matter(simulate):
    # Surely below zero, yet it makes no more than a trifle of any joint's torque.
    log = simulate("kuka-lwr4", changes={"ZZ7": -2e-5}, noise=1e-6)
    _, estimate = log.fitted()
    place = estimate.names.index("ZZ7")
    assert estimate.values[place] < -2.0 * estimate.std[place]
    assert problems(judged(log)) == []


@pytest.mark.parametrize(("joint", "times", "named"), [(None, 0.0, True), (1, 0.0, False), (1, 2.0, False)])
def test_parameters_that_move_with_the_cutoff_beside_another_cause(simulate, joint, times, named):
    # The best known parameter moves by ten deviations and half its value, predictions by so many times their error; a
    # sign that explains most of what the fit leaves explains that too.
    log = simulate("arm3r")
    log = log if joint is None else scaled(log, joint, -1.0)
    problem, estimate = log.fitted()
    own = reconstruct(estimate, log.samples)
    place = int(np.argmin(estimate.relative_std))
    values, at = estimate.values, estimate.values.copy()
    at[place] += max(10.0 * estimate.std[place], 0.5 * abs(values[place]))
    moves = CutoffDependence("wls", 8.0, np.array([16.0]), estimate.names, values, estimate.std, at[None],
                             np.array([times * own.relative_error]), own.relative_error, np.array([False]),
                             lambda cutoff: estimate.std)
    found = verdict(estimate, problem, reconstruction=own, cutoff=moves)
    assert ("cutoff-dependent" in {one.code for one in found.findings}) == named
    assert ("torque-sign" in {one.code for one in found.findings}) == (joint is not None)


def test_inertia_matrix_that_cannot_be(simulate):
    # Two products of inertia with no diagonal to carry them: every base parameter alone looks harmless.
    found = judged(simulate("arm3r", noise=0.001, changes={"XY3": 0.5, "XX3": -0.1}))
    assert problems(found) == [("indefinite-inertia",)]
    evidence = finding(found, "indefinite-inertia").evidence
    assert 0.0 < evidence["share"] <= 1.0 and evidence["eigenvalue"] < -2.0 * evidence["std"]


def test_large_offset(simulate):
    log = simulate("arm3r")
    tau = log.samples.tau + np.array([0.0, 0.0, 5.0])
    found = judged(log.with_torque(tau))
    assert problems(found) == [("large-offset", "Fo3")]
    rms = np.sqrt(np.mean(tau[:, 2] ** 2))
    offset = log.theta[log.model.parameters.index("Fo3")] + 5.0
    assert finding(found, "large-offset").evidence["share"] == pytest.approx([offset / rms], rel=0.02)


def test_outliers_ask_for_a_robust_method(simulate):
    log = simulate("arm3r")
    tau = log.samples.tau.copy()
    tau[::97, 2] += 0.8
    found = judged(log.with_torque(tau))
    assert problems(found) == [("residual-outliers", log.model.robot.joint_names[2])]
    assert finding(found, "residual-outliers").evidence["beyond"] == pytest.approx([1 / 97], rel=0.1)


def test_degrees_taken_for_radians_silence_everything_else(simulate):
    log = simulate("arm3r")
    turned = {name: np.rad2deg(getattr(log.samples, name)) for name in ("q", "dq", "ddq")}
    found = judged(replace(log, samples=replace(log.samples, **turned)))
    assert problems(found) == [("degrees-for-radians", *log.model.robot.joint_names)]
    said = finding(found, "degrees-for-radians")
    assert said.severity == "fatal" and said.evidence["reach"] == pytest.approx(np.abs(turned["q"]).max(axis=0))


def test_beyond_a_limit(simulate):
    log = simulate("arm3r")
    robot = log.model.robot
    joints = list(robot.joints)
    joints[1] = replace(joints[1], lower=-0.2, upper=0.5)
    tight = Model(replace(robot, joints=tuple(joints)), log.model.terms)
    found = judged(log, tight)
    assert problems(found) == [("position-beyond-limits", joints[1].name)]
    q = log.samples.q[:, 1]
    assert finding(found, "position-beyond-limits").evidence == pytest.approx({"low": q.min(), "high": q.max()})


def test_faster_than_a_limit(simulate):
    log = simulate("arm3r")
    joints = list(log.model.robot.joints)
    joints[2] = replace(joints[2], velocity=0.1)
    found = judged(log, Model(replace(log.model.robot, joints=tuple(joints)), log.model.terms))
    assert problems(found) == [("velocity-beyond-limits", joints[2].name)]
    speed = np.percentile(np.abs(log.samples.dq[:, 2]), 99.5)
    assert finding(found, "velocity-beyond-limits").evidence == pytest.approx({"speed": speed, "limit": 0.1})


def test_a_slow_motion_is_badly_conditioned(simulate):
    log = simulate("arm3r", speed=0.1)
    found = judged(log)
    problem, estimate = log.fitted()
    s = log.samples
    y = log.model.regressor(s.q, s.dq, s.ddq)[:, :, problem.base.independent]
    flat = (y * np.array(estimate.diagnostics["weights"])[None, :, None]).reshape(-1, len(problem.base))
    condition = np.linalg.cond(flat / np.linalg.norm(flat, axis=0))
    assert finding(found, "badly-conditioned").evidence == pytest.approx({"condition": condition}, rel=1e-3)
    weak = {name for one in found.of_kind("not-excited") for name in one.parameters}
    assert weak == {one.name for one in found.excitation.missing} and len(weak) > 5


def test_coloured_noise_of_unknown_origin(simulate):
    log = simulate("arm3r")
    noise = np.random.default_rng(0).normal(size=log.samples.tau.shape)
    smooth = sosfiltfilt(butter(4, 5.0, fs=log.samples.rate, output="sos"), noise, axis=0)
    tau, joints = log.samples.tau + smooth, log.model.robot.joint_names
    found = judged(log.with_torque(tau))
    assert problems(found) == [("residuals-autocorrelated", *joints), ("low-r2", joints[2])]
    explained = 1.0 - np.var(smooth[:, 2] + _white(log)[:, 2]) / np.var(tau[:, 2])
    assert finding(found, "low-r2").evidence["r2"] == pytest.approx([explained], abs=0.05)
    # The smooth part of the residual is what its past can predict.
    share = [np.var(smooth[:, j]) / np.var(smooth[:, j] + e) for j, e in enumerate(_white(log).T)]
    assert finding(found, "residuals-autocorrelated").evidence["predictable"] == pytest.approx(share, abs=0.15)


def _white(log) -> np.ndarray:
    """The noise that was put into a simulated log."""
    s = log.samples
    return s.tau - log.model.inverse_dynamics(log.theta, s.q, s.dq, s.ddq)


def test_silent_and_constant_torque(simulate):
    log = simulate("arm3r")
    name = log.model.robot.joint_names[1]
    assert problems(judged(scaled(log, 1, 0.0))) == [("torque-zero", name)]
    constant = np.where([False, True, False], 3.0, log.samples.tau)
    found = judged(log.with_torque(constant))
    assert problems(found) == [("torque-constant", name)]
    said = finding(found, "torque-constant")
    assert said.severity == "fatal" and said.evidence == {"torque": 3.0}


@pytest.mark.parametrize("robot", ["puma560", pytest.param("ur10", marks=pytest.mark.slow)])
def test_absolute_values_of_torques_are_named(simulate, robot):
    """A joint whose torque has one sign anyway, and the complete torques, are not blamed."""
    log = simulate(robot)
    tau = log.samples.tau
    both = [log.model.robot.joints[j].name for j in range(log.model.dof)
            if min(np.mean(tau[:, j] < 0.0), np.mean(tau[:, j] > 0.0)) > 0.1]
    for sign in (1.0, -1.0):
        named = finding(judged(log.with_torque(sign * np.abs(tau))), "torque-unsigned")
        assert named.severity == "fatal" and len(both) > 1 and set(both) <= set(named.joints)
    noise = np.abs(np.random.default_rng(4).normal(size=tau.shape))
    for others in (tau, tau + 2.0 * np.abs(tau).max(axis=0), noise):  # whole torques, with an offset, of noise
        assert "torque-unsigned" not in [code for code, *_ in problems(judged(log.with_torque(others)))]


def test_a_gripper_that_rests_with_a_constant_torque_is_left_out_with_an_option(simulate):
    """A torque that does not change is no fault of the log if the joint never moved."""
    log = simulate("arm3r", frozen=(2,))
    name = log.model.robot.joint_names[2]
    found = judged(log.with_torque(np.where([False, False, True], 0.1, log.samples.tau)))
    assert "torque-constant" not in {code for code, *_ in problems(found)}
    said = finding(found, "joint-at-rest")
    assert said.joints == (name,) and f"--lock {name}={log.samples.q[0, 2]:.6g}" in said.text
    assert "--lock" not in finding(judged(log), "joint-at-rest").text


def test_joints_with_one_problem_share_one_finding(simulate):
    """Torques that are constant, joints that rest, and positions beyond their limits, at two joints each."""
    log = simulate("arm3r")
    first, second, third = log.model.robot.joint_names
    found = judged(log.with_torque(np.where([True, True, False], [3.0, 4.0, 0.0], log.samples.tau)))
    assert problems(found)[0] == ("torque-constant", first, second)
    assert finding(found, "torque-constant").evidence["torque"] == (3.0, 4.0)
    assert problems(judged(log.with_torque(log.samples.tau * [0.0, 0.0, 1.0])))[0] == ("torque-zero", first, second)
    resting = judged(simulate("arm3r", frozen=(0, 2)))
    assert ("joint-at-rest", first, third) in problems(resting)
    assert finding(resting, "joint-at-rest").evidence["range"] == (0.0, 0.0)
    joints = tuple(replace(joint, lower=-0.4, upper=0.4) for joint in log.model.robot.joints)
    narrow = replace(log, model=replace(log.model, robot=replace(log.model.robot, joints=joints)))
    assert ("position-beyond-limits", first, second, third) in problems(judged(narrow))


@pytest.mark.parametrize("columns", ["q=dq", "exchanged", "right"])
def test_velocities_in_the_position_columns(simulate, columns):
    log = simulate("arm3r")
    s = log.samples
    q, dq = {"q=dq": (s.dq, s.dq), "exchanged": (s.dq, s.q), "right": (s.q, s.dq)}[columns]
    recording = Recording(t=s.t, q=q, tau=s.tau, dq=dq, joints=log.model.robot.joint_names, source="log.csv")
    problem = Problem.from_model(log.model, prepare(recording), recordings=recording)
    found = {one.code for one in verdict(identify(problem, method="wls"), problem).of_kind("problem")}
    assert ("velocities-for-positions" in found) == (columns != "right")


def test_all_torques_reversed_with_a_joint_whose_friction_is_too_small_to_decide(simulate):
    """Its own friction does not show the sign; the others show theirs, and reversing only these contradicts it."""
    log = simulate("kuka-lwr4", changes={name: 0.0 for name in ("Fv1", "Fc1", "Fo1")})
    found = judged(log.with_torque(-log.samples.tau))
    assert problems(found)[0] == ("torque-sign", *log.model.robot.joint_names)
    assert inverted_joints(log.problem().regression) == ()
    assert 0 not in inverted_joints(log.with_torque(-log.samples.tau).problem().regression)


def test_too_few_samples(simulate):
    found = judged(simulate("arm3r", rows=30))
    assert problems(found) == [("too-few-samples",)]
    said = finding(found, "too-few-samples")
    assert said.severity == "fatal"
    assert (said.evidence["equations"], said.evidence["base_parameters"]) == (90, 24)


def test_other_logs(simulate):
    log, good = simulate("arm3r"), simulate("arm3r", seed=5, source="good.csv")
    found = judged(log, others=[good.samples])
    assert problems(found) == []
    said = finding(found, "validation-error")
    assert said.logs == ("good.csv",) and said.evidence["relative_error"] == pytest.approx(2.0, abs=0.1)
    joints = log.model.robot.joint_names
    gain = scaled(simulate("arm3r", seed=5, source="gain.csv"), 2, 1.3)
    found = judged(log, others=[gain.samples])
    assert problems(found) == [("gain-or-load-changed", joints[2])]
    said = finding(found, "gain-or-load-changed")
    assert said.logs == ("gain.csv",) and said.evidence["slope"] == pytest.approx([1.3], abs=0.01)
    load = simulate("arm3r", seed=5, source="load.csv", changes={"M3": 3.0, "MX3": -0.3})
    assert problems(judged(log, others=[load.samples]))[0] == ("load-changed", *joints[1:])


def test_numbers_of_a_second_fit_are_said_to_be_so(simulate):
    """A wrong gain of joint 3 and negative friction at joint 2: the friction is asked of the fit with the gain set
    right, whose value is not the result's."""
    log = scaled(simulate("arm3r", changes={"Fv2": -0.3}), 2, 1.5)
    problem, estimate = log.fitted()
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples))
    assert found.refit is not None
    quoting = [one for one in found.of_kind("problem") if "value" in one.evidence]
    assert quoting
    for one in quoting:
        values = [float(estimate.values[estimate.names.index(name)]) for name in one.parameters]
        if one.second_fit:
            assert "second fit" in one.text
        else:
            assert one.evidence["value"] == pytest.approx(values)
    assert any(one.second_fit for one in quoting)
    assert not any(one.second_fit for one in judged(simulate("arm3r", changes={"Fv2": -0.3})).findings)


def test_another_log_with_noise_does_not_carry_over(simulate):
    log, other = simulate("arm3r"), simulate("arm3r", seed=5, source="noisy.csv")
    noise = 3.0 * np.random.default_rng(0).normal(size=other.samples.tau.shape)
    noisy = other.with_torque(other.samples.tau + noise).samples
    found = judged(log, others=[noisy])
    assert problems(found) == [("does-not-carry-over",)]
    said = finding(found, "does-not-carry-over")
    expected = 100.0 * np.linalg.norm(noise + _white(other)) / np.linalg.norm(noisy.tau)
    assert said.logs == ("noisy.csv",) and said.evidence["relative_error"] == pytest.approx(expected, rel=0.02)


def test_a_disturbance_in_one_block_of_time(simulate):
    log = simulate("arm3r", rows=4000)
    tau = log.samples.tau.copy()
    tau[1200:1600, 1] += 3 * np.sin(np.arange(400) / 20)
    found = judged(log.with_torque(tau), blocks=True)
    evidence = finding(found, "odd-block").evidence
    assert evidence["block"] == 4 and evidence["error"] > 3.0 * evidence["typical"]
    assert (evidence["start"], evidence["end"]) == pytest.approx((6.0, 8.0), abs=0.01)


def test_how_much_too_small_naive_deviations_are(simulate):
    log = simulate("arm3r", noise=0.0)
    noise = np.random.default_rng(0).normal(size=log.samples.tau.shape)
    smooth = sosfiltfilt(butter(4, 10.0, fs=log.samples.rate, output="sos"), noise, axis=0)
    problem, estimate = log.with_torque(log.samples.tau + 0.1 * smooth).fitted()
    found = verdict(estimate, problem)
    factor = estimate.uncertainty.facts["std_inflation"]
    assert factor > 2.0
    assert finding(found, "residuals-correlated").evidence == {"std_inflation": factor}


def test_models_of_ones_own(simulate):
    found = judged(simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, 0.13]), blocks=True)
    assert problems(found) == [] and found.good
    negative = judged(simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, -0.13]))
    assert problems(negative) == [("negative-friction", "Fc2")]
    drive = DifferentialDrive()
    theta = drive.from_physical(20, 1.0, 0.01, 0.5, 0.1, 0.4, 0.05, 0.02)
    assert judged(simulate(drive, theta=theta), blocks=True).good
    still = judged(simulate(drive, theta=theta, frozen=(1,)))
    assert problems(still)[0] == ("joint-at-rest", "joint2")


def test_from_a_saved_fold(simulate, tmp_path):
    log = simulate("arm3r")
    problem, estimate = log.fitted()
    problem.regression.save(tmp_path / "regression.npz")
    loaded = type(problem.regression).load(tmp_path / "regression.npz", log.model)
    found = verdict(estimate, Problem(log.model, loaded), reconstruction=reconstruct(estimate, log.samples))
    whole = verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples))
    assert [one.code for one in found.findings] == [one.code for one in whole.findings]
    assert finding(found, "identified").evidence == finding(whole, "identified").evidence
    assert found.headline == whole.headline
