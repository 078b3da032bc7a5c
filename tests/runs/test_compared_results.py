"""Two results side by side, the controller's own model among them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from loads import LOAD, Arm, arm
from refusals import refused

from dynid.cli.main import main
from dynid.recording import Recording
from dynid.runs import RunSettings, run
from dynid.runs.comparison import compare_results
from dynid.runs.results import load, save

QUICK = {"robot": "kuka-iiwa14", "method": "wls", "model": {"friction": ["viscous", "coulomb", "offset"]},
         "prepare": {"cutoff": 8.0}, "simulation": {"run": False}}
TABLE = {"time": "time", "position": "q", "torque": "tau", "reference": "wanted", "target_torque": "target"}


def believed(machine: Arm) -> np.ndarray:
    """What the controller takes the robot for: no friction, the last link 0.3 kg too heavy."""
    friction = np.array([p.name[0] == "F" for p in machine.model.parameters])
    theta = np.where(friction, 0.0, machine.loaded(LOAD * 0.3 / LOAD[9]))
    return np.asarray(theta)


def write(log: Recording, path: Path, theta: np.ndarray) -> None:
    """With commanded signals: positions of the same motion without noise, torques by the controller's model."""
    dq = np.gradient(log.q, log.t, axis=0)
    target = arm().model.inverse_dynamics(theta, log.q, dq, np.gradient(dq, log.t, axis=0))
    np.savez(path, time=log.t, q=log.q + 1e-5 * np.random.default_rng(0).normal(size=log.q.shape), tau=log.tau,
             wanted=log.q, target=target)


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """Results of a measured log, of another one, of the commanded signals of the first, and of a loaded robot."""
    folder, machine = tmp_path_factory.mktemp("results"), arm()
    write(machine.recording(1), folder / "one.npz", believed(machine))
    write(machine.recording(2), folder / "two.npz", believed(machine))
    write(machine.recording(3, machine.loaded(LOAD)), folder / "loaded.npz", believed(machine))
    for name, log, more in (("one", "one", {}), ("two", "two", {}), ("loaded", "loaded", {}),
                            ("controller", "one", {"commanded": True})):
        settings = {**QUICK, "log": {**TABLE, **more}, "logs": [str(folder / f"{log}.npz")]}
        save(run(RunSettings.from_values(settings)), folder / name, report=False)
    plain = {**QUICK, "model": {"friction": ["viscous"]}, "log": TABLE, "logs": [str(folder / "two.npz")]}
    save(run(RunSettings.from_values(plain)), folder / "plain", report=False)
    return folder


def test_results_of_one_robot_differ_by_their_deviations(desk):
    found = compare_results(str(desk / "one"), str(desk / "two")).comparison
    assert len(found.names) == 64
    assert found.rms_z_score == pytest.approx(1.0, abs=0.4)
    (motion,) = found.torques
    # Along the motion that was identified from: the fold against the samples themselves.
    again = compare_results(str(desk / "one"), str(desk / "two"), [str(desk / "one.npz")]).comparison
    np.testing.assert_allclose(again.torques[1].rms, motion.rms, rtol=1e-6)
    np.testing.assert_allclose(again.torques[1].torque_rms, motion.torque_rms, rtol=1e-6)
    assert found.torques[0].rms.max() < 0.5


def test_a_load_is_what_two_results_differ_by(desk):
    """Ardiani, eq. 4.13: MYR4 + d5 M, ZZR4 + d5^2 M."""
    found = compare_results(str(desk / "one"), str(desk / "loaded")).comparison
    combined = np.sqrt(found.std_a ** 2 + found.std_b ** 2)
    for name, wanted in (("MY4R", 0.4 * 4.092), ("ZZ4R", 0.4 ** 2 * 4.092)):
        k = found.names.index(name)
        assert abs(found.difference[k] - wanted) < 3 * combined[k]
    assert {"MY4R", "MY2R"} <= set(found.different)
    rms = dict(zip(found.torques[0].joints, found.torques[0].rms, strict=True))
    assert rms["joint2"] > 5.0 > 1.0 > rms["joint7"]


def test_the_controllers_own_model(desk):
    """From commanded positions and torques: no friction, the extra mass; and what that means in torque."""
    estimate, _ = load(desk / "controller")
    machine = arm()
    truth = estimate.base.reduce(believed(machine))
    power = np.sqrt(np.mean(load(desk / "one")[0].values ** 2))
    np.testing.assert_allclose(estimate.values, truth, atol=5e-3 * power)
    assert estimate.diagnostics.relative_error < 0.1
    friction = [k for k, name in enumerate(estimate.names) if name[:2] in ("Fv", "Fc", "Fo")]
    assert np.abs(estimate.values[friction]).max() < 1e-2
    found = compare_results(str(desk / "one"), str(desk / "controller")).comparison
    assert {"Fc2", "Fv2"} & set(found.different)
    assert np.all(found.torques[0].rms > 0.0)


def test_another_model_is_brought_to_common_ground(desk):
    for pair in (("one", "plain"), ("plain", "one")):
        found = compare_results(*(str(desk / name) for name in pair)).comparison
        more = found.only_a if pair[0] == "one" else found.only_b
        assert set(more) == {f"F{kind}{j}" for kind in "co" for j in range(1, 8)}
        assert len(found.names) == 64 - 14
        assert len(found.torques) == 1


def test_rotors_that_one_model_lacks_stand_in_the_same_sums(desk, tmp_path):
    settings = {**QUICK, "log": TABLE, "logs": [str(desk / "two.npz")],
                "model": {"friction": ["viscous", "coulomb", "offset"], "rotor": True}}
    save(run(RunSettings.from_values(settings)), tmp_path / "rotor", report=False)
    found = compare_results(str(desk / "one"), str(tmp_path / "rotor")).comparison
    base = load(tmp_path / "rotor")[0].base
    assert "Ia1" in base.expressions[0]
    assert base.names[0] in found.names
    assert all(name.startswith("Ia") for name in found.only_b)


def _call(capsys, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_by_command(desk, capsys, tmp_path):
    code, out, _ = _call(capsys, "compare", desk / "one", desk / "controller", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["result_b"] == str(desk / "controller")
    assert len(said["z_scores"]) == len(said["names"]) == 64
    assert len(said["torques"][0]["rms"]) == 7
    code, out, _ = _call(capsys, "compare", desk / "one", desk / "controller", desk / "two.npz")
    assert code == 0
    assert "in standard" in out and "more than three standard errors" in " ".join(out.split())
    assert "two.npz" in out.replace("\n", "")
    for arguments, words in (((desk / "one",), "give the folder of a second result"),
                             ((desk / "one", desk / "two.npz"), "give the folder of a second result"),
                             ((desk / "one", desk / "two", "--methods", "ols"), "give only their folders")):
        code, out, err = _call(capsys, "compare", *arguments)
        assert (code, out) == (2, "")
        assert words in " ".join(err.split())


def test_another_robot_is_refused(desk, capsys, tmp_path):
    settings = {**QUICK, "robot": "kuka-lwr4", "log": TABLE, "logs": [str(desk / "two.npz")]}
    save(run(RunSettings.from_values(settings)), tmp_path / "lwr", report=False)
    code, _, err = _call(capsys, "compare", desk / "one", tmp_path / "lwr")
    assert code == 2
    assert "different robots, 'kuka-iiwa14' and 'kuka-lwr4'" in " ".join(err.split())


def test_logs_without_commands_are_refused(desk):
    from dynid.errors import RecordingError
    from dynid.recording.log_reading import read

    with refused(RecordingError, "bad-recording", "reference", "target_torque"):
        read(desk / "one.npz", {"time": "time", "position": "q", "torque": "tau", "commanded": True})
