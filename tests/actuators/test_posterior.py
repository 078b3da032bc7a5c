"""Identified actuators as joints of a simulator and as draws, against MuJoCo and the compiled simulation."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from refusals import refused

import dynid
from dynid.actuators import columns as c
from dynid.actuators import identify_actuators, pendulum
from dynid.actuators.posterior import ActuatorPosterior, draw_table, friction_torque
from dynid.actuators.rollout_kernel import friction_budget
from dynid.errors import ModelError, RecordingError
from dynid.estimate.simulators.exports import export_joints
from reproductions._servos import Servo, motions, simulate

GAINS = {"kp": 8.0, "kd": 0.15}
VOLTAGE = {"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0}
ROBOT = pendulum(0.5, 0.15, joint="j")
RATE = 100.0


def servo_log(law, gains, friction, rows=500, seed=3, delay=0.0):
    commands = motions(1, rows, RATE, seed)
    q = simulate([Servo(0.5, 0.15, 0.01, law, gains, friction, delay=delay)], commands, RATE)
    return dynid.Recording.from_commands(np.arange(rows) / RATE, q[0][:, None], commands[0][:, None], joints=("j",))


@pytest.fixture(scope="module")
def plain():
    log = servo_log("pd", GAINS, {"coulomb": 0.08, "viscous": 0.05})
    return identify_actuators(ROBOT, log, gains=GAINS, friction="m1", delay=0.0, diagnose=False)


@pytest.fixture(scope="module")
def volts():
    known = {name: VOLTAGE[name] for name in ("kp", "gain", "limit", "vin", "kt")}
    log = servo_log("voltage", VOLTAGE, {"coulomb": 0.08, "viscous": 0.05})
    return identify_actuators(ROBOT, log, law="voltage", gains=known, friction="m1", delay=0.0, diagnose=False)


def test_friction_is_that_of_the_compiled_simulation():
    rng = np.random.default_rng(0)
    for _ in range(20):
        own = np.abs(rng.normal(size=c.JOINT_COLUMNS))
        motor, external, speed = rng.normal(size=(3, 50))
        wanted = [friction_budget.py_func(own, *state) for state in zip(motor, external, speed, strict=True)]
        np.testing.assert_allclose(friction_torque(own, motor, external, speed), wanted, rtol=1e-12)


def exported(found, path):
    joints, losses = found.posterior.simulated()
    return export_joints(ROBOT, ROBOT.inertias, joints, losses, path, "mjcf")


def test_mujoco_follows_the_simulated_positions(plain, tmp_path):
    """Below 1 % of the motion over five seconds: armature, damping, friction and gains are in the file."""
    written = exported(plain, tmp_path / "servo.xml")
    assert written.losses[0].terms == ("offset",) and written.losses[0].error < 1e-3  # N m, estimated as near zero
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    model.opt.timestep, model.opt.integrator = 5e-4, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data, log = mujoco.MjData(model), plain.logs[0]
    data.qpos[0], moved = log.simulated[0, 0], np.zeros(len(log.t))
    for row in range(len(log.t)):
        moved[row] = data.qpos[0]
        data.ctrl[0] = log.command[row, 0]
        for _ in range(20):
            mujoco.mj_step(model, data)
    assert np.sqrt(np.mean((moved - log.simulated[:, 0]) ** 2)) < 0.01 * np.std(log.simulated[:, 0])


def test_the_voltage_law_is_an_actuator_with_a_limit_and_damping(volts, tmp_path):
    exported(volts, tmp_path / "servo.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    data, values = mujoco.MjData(model), volts.values("j")
    model.dof_frictionloss[:] = 0.0
    for error, speed in ((0.1, 0.5), (-0.02, -2.0), (3.0, 1.0), (-3.0, 0.0)):
        data.qpos[0], data.qvel[0], data.ctrl[0] = 0.2, speed, 0.2 + error
        mujoco.mj_forward(model, data)
        voltage = 12.0 * np.clip(0.0395 * 32.0 * error, -0.9625, 0.9625)
        torque = (voltage / values["resistance"] - speed / values["resistance"] - values["viscous"] * speed
                  - values["offset"])
        assert data.qfrc_actuator[0] + data.qfrc_passive[0] == pytest.approx(torque, abs=1e-9)


def test_values_that_depend_on_undetermined_parameters_are_named(plain):
    """Friction that replaces a richer model is determined if its standard error is small, not if each parameter is."""
    posterior, names = plain.posterior, list(plain.posterior.names)
    assert posterior.undetermined() == ()
    armature = replace(posterior, identified=np.array(names) != "armature")
    assert [(one.joint, one.name, one.parameters[0][0]) for one in armature.undetermined()] == [
        ("j", "armature", "armature")]
    at_bound = replace(posterior, values=np.where(np.array(names) == "viscous", 0.0, posterior.values),
                       identified=np.array(names) != "viscous",
                       covariance=posterior.covariance * np.outer(*2 * [np.array(names) != "viscous"]))
    assert at_bound.undetermined() == ()
    k, size = len(names), len(names) + 2
    covariance = np.zeros((size, size))
    covariance[:k, :k] = posterior.covariance
    covariance[k, k], covariance[k + 1, k + 1] = 0.3 ** 2, 1e-6  # the speed is not determined, but has little effect

    def richer(stribeck):
        return replace(posterior, names=(*names, "stribeck_speed", "stribeck"), owners=(*posterior.owners, (0,), (0,)),
                       values=np.append(posterior.values, (0.8, stribeck)), covariance=covariance,
                       identified=np.append(posterior.identified, (False, True)),
                       lower=np.append(posterior.lower, (0.01, 0.0)), upper=np.append(posterior.upper, (20.0, np.inf)))

    assert richer(0.001).undetermined() == ()
    assert {one.name for one in richer(5.0).undetermined()} & {"damping", "frictionloss"}


def test_given_values_change_the_others_as_in_a_gaussian_distribution(plain):
    posterior, names = plain.posterior, list(plain.posterior.names)
    a, b = names.index("viscous"), names.index("coulomb")
    found = posterior.conditional(posterior.values, {("j", "viscous"): posterior.values[a] + 1e-4})
    covariance = posterior.covariance
    assert found[a] == pytest.approx(posterior.values[a] + 1e-4)
    assert found[b] == pytest.approx(posterior.values[b] + 1e-4 * covariance[b, a] / covariance[a, a], rel=1e-9)
    assert posterior.conditional(posterior.values, {}) is posterior.values


@pytest.mark.parametrize("extra", [{"stribeck": 0.06, "stribeck_speed": 0.8, "stribeck_shape": 2.0},
                                   {"load_motor": 0.2, "load_external": 0.1}])
def test_the_stated_loss_is_the_measured_one(plain, extra):
    """No other values lose less, and the loss is that of the friction along the states of the log."""
    posterior = replace(plain.posterior, known=({**plain.posterior.known[0], **extra},))
    x = np.where(np.array(posterior.names) == "offset", 0.0, posterior.values)
    own = posterior.tables(x)[0]
    (joint,), (loss,) = posterior.simulated(x)
    states = posterior.states
    speed, motor, external = states.speed[:, 0], states.motor[:, 0], states.external[:, 0]
    moving = np.abs(speed) > 0.02 * np.abs(speed).max()
    dry = own["coulomb"] + np.abs(own.get("load_external", 0.0) * external - own.get("load_motor", 0.0) * motor)
    dry = dry + own.get("stribeck", 0.0) * np.exp(-(np.abs(speed) / own.get("stribeck_speed", 1.0)) ** 2)
    torque = (np.sign(speed) * dry + own["viscous"] * speed)[moving]

    def lost(damping, frictionloss):
        return np.sqrt(np.mean((torque - damping * speed[moving] - frictionloss * np.sign(speed[moving])) ** 2))

    assert loss.terms == ("friction",) and loss.error > 1e-3
    assert loss.error == pytest.approx(lost(joint.damping, joint.frictionloss), rel=1e-9)
    for more in (0.95, 1.05):
        assert lost(more * joint.damping, joint.frictionloss) >= loss.error
        assert lost(joint.damping, more * joint.frictionloss) >= loss.error


def test_draws_have_the_covariance_and_stay_inside_the_bounds(plain):
    posterior = plain.posterior
    drawn = posterior.draws(4000, seed=1)
    assert np.all(drawn >= posterior.lower) and np.all(drawn <= posterior.upper)
    known = posterior.identified
    wanted = np.sqrt(np.diag(posterior.covariance))[known]
    np.testing.assert_allclose(drawn[:, known].std(axis=0), wanted, rtol=0.06)
    np.testing.assert_allclose(drawn[:, known].mean(axis=0), posterior.values[known], atol=4.5 * wanted.max() / 63)
    np.testing.assert_allclose(np.corrcoef(drawn[:, known].T), posterior.covariance[np.ix_(known, known)]
                               / np.outer(wanted, wanted), atol=0.06)
    assert np.array_equal(drawn[:9], posterior.draws(4000, seed=1)[:9])
    table = draw_table(posterior, drawn[:5])
    place = posterior.names.index("armature")
    assert table["names"][place] == "j.armature" and np.array_equal(table["armature"][:, 0], drawn[:5, place])
    assert table["stiffness"].tolist() == [[8.0]] * 5 and np.isnan(table["ki"]).all()


def test_a_bound_cuts_the_draws(plain):
    posterior = plain.posterior
    place = posterior.names.index("coulomb")
    wide = posterior.covariance.copy()
    wide[place, place] = posterior.values[place] ** 2
    drawn = replace(posterior, covariance=wide).draws(2000)[:, place]
    assert drawn.min() >= 0.0 and 0.7 < drawn.std() / posterior.values[place] < 0.9  # a normal cut at one sigma: 0.79


def test_what_the_data_do_not_determine_varies_by_the_stated_share(plain):
    posterior = replace(plain.posterior, identified=np.zeros(len(plain.posterior.names), dtype=bool))
    drawn = posterior.draws(4000, spread=0.1)
    place = posterior.names.index("armature")
    assert drawn[:, place].std() == pytest.approx(0.1 * posterior.values[place], rel=0.05)


def test_a_posterior_is_saved_and_loaded(volts, tmp_path):
    path = tmp_path / "posterior.json"
    volts.posterior.save(path, {"robot": "pendulum"})
    again, settings = ActuatorPosterior.load(path)
    assert settings == {"robot": "pendulum"} and again.names == volts.posterior.names
    assert again.simulated() == volts.posterior.simulated()
    assert np.array_equal(again.draws(3), volts.posterior.draws(3))


def test_bad_input_is_refused(plain, tmp_path):
    with refused(ModelError, "wrong-number-of-draws", "0"):
        plain.posterior.draws(0)
    with refused(ModelError, "wrong-spread", "2"):
        plain.posterior.draws(3, spread=2.0)
    path = tmp_path / "posterior.json"
    plain.posterior.save(path)
    text = path.read_text()
    for damaged in ("", "{}", "[1]", text[:len(text) // 2], text.replace('"values": [', '"values": [1.0, ')):
        path.write_text(damaged)
        with refused(RecordingError, "damaged-posterior", "posterior.json"):
            ActuatorPosterior.load(path)
    path.write_text(text.replace('"pd"', '"mine"'))
    with refused(ModelError, "unknown-law", "mine"):
        ActuatorPosterior.load(path)
