"""Estimates as robot files: same torques in Pinocchio and MuJoCo, and a sentence where a file cannot hold them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from motions import arm, motion
from refusals import refused
from robots import exact_text, random_inertia
from scipy.optimize import nnls

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.estimate import Diagnostics
from dynid.estimate.simulators.friction_fit import best_fit
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model, Payload, Scara, Stribeck, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot

FRICTION = ("viscous", "coulomb")


def mujoco_torques(model: Any, q: Array, dq: Array, ddq: Array) -> Array:
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, found = mujoco.MjData(model), []
    for data.qpos[:], data.qvel[:], data.qacc[:] in zip(q, dq, ddq, strict=True):
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse.copy())
    return np.array(found)


def estimate_of(model: Any, theta: Array | None, method: str = "pc-wls") -> Estimate:
    base = base_parameters(model)
    beta = np.zeros(len(base)) if theta is None else base.reduce(theta)
    facts = Diagnostics(0.0, [], [], len(base), [], [])
    known = OnDemand.known(Uncertainty(np.eye(len(base)), "independent"))
    return Estimate(method, model, base, beta, np.ones(len(base), bool), known, theta, diagnostics=facts)


def random_theta(model: Model, seed: int = 0) -> Array:
    """Bodies that can exist, everything else between 0.1 and 1."""
    rng = np.random.default_rng(seed)
    theta = rng.uniform(0.1, 1.0, len(model.parameters))
    for places in model.parameters.bodies.values():
        theta[places] = random_inertia(rng)
    return theta


@pytest.fixture
def panda(data: Callable[..., Path]) -> Robot:
    return Robot.from_urdf(data("panda", "panda_arm.urdf"))


def test_a_consistent_estimate_from_noisy_torques_loads_everywhere(panda: Robot, tmp_path: Path) -> None:
    model = Model(panda, make_terms(panda, friction=FRICTION))
    theta = random_theta(model)
    rng = np.random.default_rng(1)
    samples = motion(model, theta, rng.normal(size=(4000, 7)))
    found = identify(Problem.from_model(model, samples), method="pc-wls")
    notes = found.to_urdf(tmp_path / "found.urdf")
    text = exact_text((tmp_path / "found.urdf").read_text())
    assert notes == ("the inertia of link panda_link8, fixed to 'panda_link7', is part of that link now",)

    q, dq, ddq = rng.normal(size=(3, 10, 7))
    ours = found.predict(q, dq, ddq)
    values = dict(zip(model.parameters.names, found.theta, strict=True))
    viscous, dry = (np.array([values[f"{kind}{j}"] for j in range(1, 8)]) for kind in ("Fv", "Fc"))
    theirs = pin.buildModelFromXML(text)
    data = theirs.createData()
    rigid = np.array([pin.rnea(theirs, data, *state) for state in zip(q, dq, ddq, strict=True)])
    assert np.abs(rigid + viscous * dq + dry * np.sign(dq) - ours).max() < 1e-9
    np.testing.assert_allclose(theirs.damping, viscous, rtol=1e-12)
    np.testing.assert_allclose(theirs.upperDryFrictionLimit, dry, rtol=1e-12)
    plain = re.sub(r"<(visual|collision)\b[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    for source in (plain, None):
        if source is None:
            assert found.to_mjcf(tmp_path / "found.xml") == ()
            source = (tmp_path / "found.xml").read_text()
        simulated = mujoco.MjModel.from_xml_string(re.sub(r"<\?xml[^>]*>", "", source))
        np.testing.assert_allclose(simulated.dof_frictionloss, dry, rtol=1e-12)
        assert np.abs(mujoco_torques(simulated, q, dq, ddq) + dry * np.sign(dq) - ours).max() < 1e-9


def test_what_a_file_has_no_place_for_is_said(panda: Robot, tmp_path: Path) -> None:
    model = Model(panda, make_terms(panda, rotor=True, friction=("viscous", "offset")))
    estimate = estimate_of(model, random_theta(model))
    (_, lost) = sorted(estimate.to_urdf(tmp_path / "a.urdf"), key=lambda note: "cannot represent" in note)
    assert lost.startswith("a URDF cannot represent Ia1, Fo1, Ia2, Fo2,")
    (lost,) = estimate.to_mjcf(tmp_path / "a.xml")
    assert lost.startswith("MJCF cannot represent Fo1, Fo2, Fo3")
    # Friction of the estimate is written unchanged, whatever else the file cannot represent.
    values = dict(zip(model.parameters.names, estimate.full, strict=True))
    written = Robot.from_urdf(tmp_path / "a.urdf").values
    assert all(written[f"Fv{j}"] == values[f"Fv{j}"] for j in range(1, 8))


def test_fc_of_a_stribeck_curve_is_not_the_dry_friction_of_a_joint(panda: Robot, tmp_path: Path) -> None:
    model = Model(panda, (*make_terms(panda), Stribeck()))
    estimate = estimate_of(model, random_theta(model))
    samples = motion(model, estimate.full, seconds=5.0)
    notes = estimate.to_urdf(tmp_path / "b.urdf", samples=[samples])
    assert any(note.startswith("a URDF cannot represent Fo1, Fo2") for note in notes)
    assert any("nearest to Stribeck friction (arctan term), " in note for note in notes)
    written = Robot.from_urdf(tmp_path / "b.urdf").values
    without = np.array([0.0 if item.kind.group in ("body", "offset") else value
                        for item, value in zip(model.parameters, estimate.full, strict=True)])
    friction = model.inverse_dynamics(without, samples.q, samples.dq, samples.ddq)
    for j in range(7):
        speed = samples.dq[:, j]
        nearest = np.linalg.lstsq(np.column_stack([speed, np.sign(speed)]), friction[:, j], rcond=None)[0]
        assert [written[f"Fv{j + 1}"], written[f"Fc{j + 1}"]] == pytest.approx(nearest, rel=1e-8)


def test_no_friction_adds_energy_and_values_without_evidence_stay(panda: Robot) -> None:
    """In a motion in one direction Coulomb friction and a constant are one column; nothing is negative."""
    speed = np.linspace(0.1, 1.0, 50)
    found = best_fit(2.0 - 3.0 * speed, {"damping": speed, "frictionloss": np.sign(speed)})
    expected = nnls(np.column_stack([speed, np.sign(speed)]), 2.0 - 3.0 * speed)[0]
    assert list(found.values()) == pytest.approx(expected) and found["damping"] == 0.0
    still = np.zeros(50)
    start = {"damping": 0.3, "frictionloss": 0.2}
    assert best_fit(still, {"damping": still, "frictionloss": still}, start) == pytest.approx(start)
    constant = best_fit(0.5 * np.ones(50), {"damping": np.ones(50), "frictionloss": np.ones(50)}, start)
    assert constant == pytest.approx(start)
    rng = np.random.default_rng(0)
    for _ in range(50):
        columns, torque = rng.normal(size=(20, 3)), rng.normal(size=20)
        expected = nnls(columns, torque)[0]
        assert list(best_fit(torque, dict(zip("abc", columns.T, strict=True))).values()) == pytest.approx(
            expected, abs=1e-9)


def test_a_payload_is_added_when_asked(panda: Robot, tmp_path: Path) -> None:
    pose = np.eye(4)
    pose[:3, 3] = 0.1, 0.2, 0.3
    model = Model(panda, make_terms(panda, extra=[Payload("panda_link8", pose)]))
    theta = random_theta(model)
    estimate = estimate_of(model, theta)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 10, 7))
    for wanted, write in ((True, estimate.to_urdf), (False, estimate.to_urdf)):
        notes = write(tmp_path / "r.urdf", with_payload=wanted)
        assert any("payload L" in note for note in notes)
        robot = Robot.from_urdf(tmp_path / "r.urdf")
        carried = theta if wanted else theta * [item.body != "payload L" for item in model.parameters]
        ours = model.inverse_dynamics(carried, q, dq, ddq)
        assert np.abs(Model(robot).inverse_dynamics(robot.inertias.ravel(), q, dq, ddq) - ours).max() < 1e-9


def test_text_in_text_out(tmp_path: Path) -> None:
    text = ('<?xml version="1.0" encoding="iso-8859-1"?><!-- 5 µm, 3 € --><robot name="r"><link name="a"/>'
            '<link name="b"/><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>')
    model = Model(Robot.from_urdf(text))
    estimate = estimate_of(model, random_theta(model))
    estimate.to_urdf(tmp_path / "r.urdf")
    assert "5 µm, 3 &#8364;" in (tmp_path / "r.urdf").read_text(encoding="iso-8859-1")
    estimate.to_urdf(tmp_path / "s.urdf", source=text.replace("µm", "mm"))
    assert b"5 mm, 3" in (tmp_path / "s.urdf").read_bytes()
    estimate.to_urdf(tmp_path / "t.urdf", source=tmp_path / "s.urdf")
    assert (tmp_path / "t.urdf").read_bytes() == (tmp_path / "s.urdf").read_bytes()


def test_what_cannot_be_written_says_what_to_do(panda: Robot, tmp_path: Path) -> None:
    path = tmp_path / "no.urdf"
    model = Model(panda)
    with refused(NotPossibleError, "base-parameters-only", "wls"):
        estimate_of(model, None, "wls").to_urdf(path)
    theta = random_theta(model)
    theta[9] = -1.0
    with refused(NotPossibleError, "not-consistent", "'panda_link1'"):
        estimate_of(model, theta).to_urdf(path)
    three, truth = arm()
    with refused(RobotError, "no-urdf", "arm3r", "--source FILE"):
        estimate_of(three, truth).to_urdf(path)
    with refused(RobotError, "other-robot", "'arm3r'"):
        estimate_of(three, truth).to_urdf(path, source=panda.text.decode())
    assert estimate_of(three, truth).to_mjcf(tmp_path / "arm.xml")[0].startswith("MJCF cannot represent Fo1")
    assert "<mujoco" in (tmp_path / "arm.xml").read_text()
    scara = Scara()
    with refused(ModelError, "model-without-robot"):
        estimate_of(scara, np.ones(len(scara.parameters))).to_mjcf(path)
    friction = Model(panda, make_terms(panda, friction=FRICTION)[1:])
    with refused(ModelError, "no-inertial-parameters", "panda_link1"):
        estimate_of(friction, np.ones(len(friction.parameters))).to_mjcf(path)
    assert not path.exists()
    estimate_of(model, theta).to_urdf(path, unchecked=True)
    assert path.exists()
