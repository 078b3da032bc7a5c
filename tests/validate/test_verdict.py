"""The verdict names the fault that was put in, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.model import Coulomb, DifferentialDrive, Model, Offset, RigidBodies, Scara, Viscous, make_terms
from dynid.recording import Recording
from dynid.recording.prepare import prepare
from dynid.robot import Robot
from dynid.validate import Verdict, cross_validate, drive_gains, reconstruct, verdict


def judged(log, model=None, others=(), blocks=False) -> Verdict:
    problem, estimate = log.fitted(model=model)
    cross = cross_validate(problem, "wls", estimate=estimate) if blocks else None
    found = verdict(problem, estimate, reconstruct(estimate, log.samples),
                    [reconstruct(estimate, other) for other in others], cross)
    json.dumps(found.to_dict(), allow_nan=False)
    return found


def suspicions(found: Verdict) -> list[tuple[str, str]]:
    return [(finding.cause, finding.subject) for finding in found.of("suspicious")]


def scaled(log, joint: int, gain: float):
    factor = np.ones(log.model.dof)
    factor[joint] = gain
    return log.with_torque(log.samples.tau * factor)


@pytest.mark.parametrize("robot", ["arm3r", "kuka-lwr4", "emps"])
@pytest.mark.parametrize("noise", [0.02, 0.0])
def test_a_healthy_robot_is_above_suspicion(simulate, robot, noise):
    found = judged(simulate(robot, noise=noise), blocks=True)
    assert suspicions(found) == []
    assert "nothing looks suspicious" in found.headline


@pytest.mark.parametrize(("robot", "seed"), [("arm3r", 0), ("arm3r", 1), ("arm3r", 2), ("kuka-lwr4", 0)])
def test_wrong_drive_gain_on_joint_2(simulate, robot, seed):
    found = judged(scaled(simulate(robot, seed=seed), 1, 1.25))
    assert suspicions(found) == [("drive gain", "joint 2")]
    assert "its torque is 1.2" in found.of("suspicious")[0].sentence
    assert "drive gain (joint 2)" in found.headline


def test_the_gain_is_measured_without_a_nominal_model(simulate):
    log = scaled(simulate("kuka-lwr4"), 3, 0.8)
    problem, estimate = log.fitted()
    gains = drive_gains(replace(problem, model=_without_nominal(log.model), nominal=None), estimate)
    assert gains[3].gain == pytest.approx(0.8, abs=5 * gains[3].std) and gains[3].std < 0.01
    assert gains[3].improvement > 0.9 and gains[3].nominal is None
    assert max(gains, key=lambda gain: gain.improvement) is gains[3]
    healthy = drive_gains(*simulate("kuka-lwr4").fitted())
    assert all(abs(gain.gain - 1.0) < 5 * gain.std and abs(gain.nominal - 1.0) < 0.02 for gain in healthy[1:4])


def _without_nominal(model: Model) -> Model:
    return replace(model, robot=replace(model.robot, bodies=tuple(replace(b, inertia=None) for b in model.robot.bodies),
                                        values={}))


def test_reversed_torque_of_one_joint(simulate):
    assert suspicions(judged(scaled(simulate("arm3r"), 2, -1.0))) == [("torque sign", "joint 3")]
    assert suspicions(judged(scaled(simulate("kuka-lwr4"), 1, -1.0))) == [("torque sign", "joint 2")]


def test_all_torques_in_another_unit(simulate):
    log = simulate("kuka-lwr4")
    found = judged(log.with_torque(100.0 * log.samples.tau))
    assert ("drive gain", "torques") in suspicions(found)
    assert "all torques are about 100 times" in found.text().lower()


def test_missing_coulomb_friction_on_joint_2(simulate):
    log = simulate("arm3r", changes={"Fc2": 0.8})
    robot = Robot.builtin("arm3r")
    lacking = Model(robot, (RigidBodies(), Viscous(), Offset(), Coulomb(joints=(1, 3))))
    found = judged(log, lacking)
    assert suspicions(found) == [("residual follows velocity sign", "joint 2")]
    assert found.of("suspicious")[0].sentence.startswith(
        "Joint 2's residual follows the sign of velocity: friction model too simple")


def test_missing_rotor_inertia(simulate):
    log = simulate("arm3r", noise=0.01)
    found = judged(log.with_torque(log.samples.tau + log.samples.ddq * [0.0, 0.0, 0.3]))
    assert suspicions(found) == [("residual follows acceleration", "joint 3")]


@pytest.mark.parametrize(("robot", "joint"), [("arm3r", 0), ("arm3r", 2), ("kuka-lwr4", 2), ("kuka-lwr4", 6)])
def test_one_joint_frozen(simulate, robot, joint):
    found = judged(simulate(robot, frozen=(joint,)), blocks=True)
    assert suspicions(found) == [("no motion", f"joint {joint + 1}")]
    hidden = ", ".join(finding.subject for finding in found.of("not-excited") if finding.cause == "not excited")
    assert f"Fv{joint + 1}" in hidden and f"Fc{joint + 1}" in hidden
    assert f"joint {joint + 1} did not move; let it move" in found.text()
    assert f"joint {joint + 1} never moved" in found.headline


@pytest.mark.parametrize("robot", ["arm3r", "kuka-lwr4"])
def test_negative_friction(simulate, robot):
    found = judged(simulate(robot, changes={"Fv2": -0.3}))
    assert suspicions(found) == [("negative friction", "Fv2")]
    assert "check the signs of joint 2" in found.of("suspicious")[0].sentence


def test_unphysical_inertia_of_the_last_link(simulate):
    found = judged(simulate("kuka-lwr4", changes={"ZZ7": -0.02}))
    assert suspicions(found) == [("unphysical inertia", "ZZ7")]


def test_inertia_matrix_that_cannot_be(simulate):
    # Two products of inertia with no diagonal to carry them: every base parameter alone looks harmless.
    found = judged(simulate("arm3r", noise=0.001, changes={"XY3": 0.5, "XX3": -0.1}))
    assert suspicions(found) == [("unphysical inertia", "inertia matrix")]


def test_large_offset(simulate):
    log = simulate("arm3r")
    assert suspicions(judged(log.with_torque(log.samples.tau + np.array([0.0, 0.0, 5.0])))) == [("large offset", "Fo3")]


def test_outliers_ask_for_a_robust_method(simulate):
    log = simulate("arm3r")
    tau = log.samples.tau.copy()
    tau[::97, 2] += 0.8
    found = judged(log.with_torque(tau))
    assert suspicions(found) == [("outliers", "joint 3")] and "irls" in found.text()


def test_degrees_taken_for_radians_silence_everything_else(simulate):
    log = simulate("arm3r")
    turned = {name: np.rad2deg(getattr(log.samples, name)) for name in ("q", "dq", "ddq")}
    found = judged(replace(log, samples=replace(log.samples, **turned)))
    assert suspicions(found) == [("degrees for radians", "joints 1, 2 and 3")]


def test_beyond_a_limit(simulate):
    log = simulate("arm3r")
    robot = log.model.robot
    joints = list(robot.joints)
    joints[1] = replace(joints[1], lower=-0.2, upper=0.5)
    tight = Model(replace(robot, joints=tuple(joints)), log.model.terms)
    assert suspicions(judged(log, tight)) == [("beyond limits", "joint 2")]


def test_silent_and_constant_torque(simulate):
    log = simulate("arm3r")
    assert suspicions(judged(scaled(log, 1, 0.0))) == [("no torque", "joint 2")]
    constant = np.where([False, True, False], 3.0, log.samples.tau)
    assert suspicions(judged(log.with_torque(constant))) == [("constant torque", "joint 2")]


def test_too_few_samples(simulate):
    found = judged(simulate("arm3r", rows=30))
    assert suspicions(found) == [("too few samples", "data")]
    assert "90 equations are few for 24 base parameters" in found.text()


def test_other_logs(simulate):
    log, good = simulate("arm3r"), simulate("arm3r", seed=5, source="good.csv")
    found = judged(log, others=[good.samples])
    assert suspicions(found) == []
    assert "On good.csv, which it has not seen, the relative error is" in found.text()
    gain = scaled(simulate("arm3r", seed=5, source="gain.csv"), 2, 1.3)
    found = judged(log, others=[gain.samples])
    assert suspicions(found) == [("drive gain or load", "joint 3")] and "1.30 times" in found.text()
    load = simulate("arm3r", seed=5, source="load.csv", changes={"M3": 3.0, "MX3": -0.3})
    assert suspicions(judged(log, others=[load.samples]))[0] == ("load", "joints 2 and 3")


def test_a_disturbance_in_one_block_of_time(simulate):
    log = simulate("arm3r")
    tau = log.samples.tau.copy()
    tau[1200:1600, 1] += 3 * np.sin(np.arange(400) / 20)
    found = judged(log.with_torque(tau), blocks=True)
    assert ("odd block of time", "block 4") in suspicions(found)
    assert "Block 4 of 10 (6 to 8 s)" in found.text()


def test_how_much_too_small_naive_deviations_are(simulate):
    log = simulate("arm3r", noise=0.0)
    from scipy.signal import butter, sosfiltfilt
    noise = np.random.default_rng(0).normal(size=log.samples.tau.shape)
    smooth = sosfiltfilt(butter(4, 10.0, fs=log.samples.rate, output="sos"), noise, axis=0)
    problem, estimate = log.with_torque(log.samples.tau + 0.1 * smooth).fitted()
    found = verdict(problem, estimate, reconstruct(estimate, problem.data))
    factor = estimate.diagnostics["deviation_inflation"]
    assert factor > 2.0
    assert f"would be {factor:.1f} times too small" in found.text()


def test_models_of_ones_own(simulate):
    found = judged(simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, 0.13]), blocks=True)
    assert suspicions(found) == [] and found.good
    negative = judged(simulate(Scara(), theta=[3.5, 0.1, 0.8, 0.06, 0.12, 0.01, 0.02, -0.13]))
    assert suspicions(negative) == [("negative friction", "Fc2")]
    drive = DifferentialDrive()
    theta = drive.from_physical(20, 1.0, 0.01, 0.5, 0.1, 0.4, 0.05, 0.02)
    assert judged(simulate(drive, theta=theta), blocks=True).good
    still = judged(simulate(drive, theta=theta, frozen=(1,)))
    assert suspicions(still)[0] == ("no motion", "joint 2")


def test_from_a_saved_fold(simulate, tmp_path):
    log = simulate("arm3r")
    problem, estimate = log.fitted()
    problem.regression.save(tmp_path / "regression.npz")
    loaded = type(problem.regression).load(tmp_path / "regression.npz", log.model)
    found = verdict(Problem(log.model, loaded), estimate, reconstruct(estimate, log.samples))
    assert found.headline == verdict(problem, estimate, reconstruct(estimate, log.samples)).headline


def test_a_real_robot_and_a_wrong_gain_put_into_its_log(data):
    robot = Robot.from_urdf(data("panda", "panda_arm.urdf"))
    q, dq, tau = (np.loadtxt(data("panda", f"exciting_traj_{name}.txt")).reshape(-1, 7)
                  for name in ("positions", "velocity", "torques"))
    t = np.loadtxt(data("panda", "exciting_traj_time.txt"))
    model = Model(robot, make_terms(robot, ("viscous", "coulomb", "offset")))
    samples = prepare(Recording(t, q, tau, dq=dq, source="panda", joints=robot.joint_names), cutoff=5.0)
    problem = Problem.of(model, samples)
    estimate = identify(problem, method="wls")
    found = verdict(problem, estimate, reconstruct(estimate, samples), (), cross_validate(problem, estimate=estimate))
    assert not any(finding.cause in ("drive gain", "torque sign", "no motion") for finding in found.findings)
    assert sum(p.status == "identified" for p in found.excitation.parameters) > 40
    wrong = replace(samples, tau=samples.tau * np.array([1, 1.25, 1, 1, 1, 1, 1]))
    problem = Problem.of(model, wrong)
    estimate = identify(problem, method="wls")
    found = verdict(problem, estimate, reconstruct(estimate, wrong))
    assert [f.subject for f in found.of("suspicious") if f.cause == "drive gain"] == ["panda_joint2"]
    assert found.gains[1].gain == pytest.approx(1.25, abs=0.02)
