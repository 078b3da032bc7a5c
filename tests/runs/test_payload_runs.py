"""Payloads and drive gains in whole runs: folders, run files, commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from loads import FRAME, LOAD, MASS, arm, controller_targets
from loads import GAINS as TRUE
from refusals import refused

from dynid.cli.main import main
from dynid.errors import DynidError, RecordingError
from dynid.payloads import KnownLoad, PayloadEstimate
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.runs import RunSettings, run
from dynid.runs.payload_result import FoundPayload, PayloadOptions, find_payload, save_payload
from dynid.runs.results import save

KNOWN = KnownLoad.from_mass(FRAME, 3.0, (0.0, 0.0, 0.03), 0.004 * np.eye(3))
QUICK = {"robot": "kuka-iiwa14", "method": "wls", "model": {"friction": ["viscous", "coulomb", "offset"]},
         "prepare": {"cutoff": 8.0}, "simulation": {"run": False}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """Logs in torques, and in currents with targets; and the result of the robot without load."""
    folder, machine = tmp_path_factory.mktemp("payload"), arm()
    logs = {"without": machine.recording(1), "load": machine.recording(2, machine.loaded(LOAD)),
            "known": machine.recording(3, machine.loaded(np.array(KNOWN.numbers)))}
    for name, log in logs.items():
        write_csv(log, folder / f"{name}.csv")
        _write_currents(log, folder / f"{name}_currents.npz")
    write_csv(replace(logs["load"], q=np.full_like(logs["load"].q, 0.3)), folder / "still.csv")
    save(run(RunSettings.from_values({**QUICK, "logs": [str(folder / "without.csv")]})), folder / "out", report=False)
    return folder


def _write_currents(log: Recording, path: Path) -> None:
    machine = arm()
    dq = np.gradient(log.q, log.t, axis=0)
    target = machine.model.inverse_dynamics(machine.theta, log.q, dq, np.gradient(dq, log.t, axis=0))
    np.savez(path, time=log.t, q=log.q, current=log.tau / TRUE, target_moment=target,
             target_current=target / TRUE + 0.1 * np.tanh(dq / 0.03))


CURRENTS = {"time": "time", "position": "q", "current": "current"}


def test_a_payload_on_an_earlier_result(desk, tmp_path):
    found = find_payload(desk / "out", [str(desk / "load.csv")], PayloadOptions(frame=FRAME, gain_std=0.01))
    assert abs(found.payload.mass - MASS) < 3 * found.payload.mass_std < 0.3
    assert [one.maker for one in found.entries] == ["ur", "franka", "kuka", "abb"]
    written = save_payload(found, tmp_path / "p", "dynid payload")
    said = json.loads(Path(written["payload"]).read_text())
    assert said["mass"]["value"] == pytest.approx(found.payload.mass)
    page = Path(written["report"]).read_text()
    assert "Values for controllers" in page
    assert "set_target_payload(" in page
    with refused(DynidError, "file-exists", "payload.json"):
        save_payload(found, tmp_path / "p")


def test_a_load_that_should_not_be_typed_in_is_not_offered(desk, tmp_path):
    """The load falls off in the middle of the log."""
    machine = arm()
    with_it, without = machine.recording(2, machine.loaded(LOAD)), machine.recording(2)
    half = len(with_it) // 2
    write_csv(replace(with_it, tau=np.vstack([with_it.tau[:half], without.tau[half:]])), tmp_path / "fell.csv")
    found = find_payload(desk / "out", [str(tmp_path / "fell.csv")])
    assert found.entries == ()
    assert found.payload.findings[0].code == "payload-changed"


def test_a_run_file_with_a_payload(desk):
    settings = {**QUICK, "payloads": {"gripper": {"frame": FRAME}}, "logs": [
        str(desk / "without.csv"), {"file": str(desk / "load.csv"), "payload": "gripper"}]}
    found = run(RunSettings.from_values(settings))
    (gripper,) = found.payloads
    assert gripper.label == "gripper"
    assert abs(gripper.mass - MASS) < 3 * gripper.mass_std
    assert len(found.samples) == 1  # the robot itself is identified without it
    for wrong, words in (({**settings, "payloads": {}}, ("wrong-setting", "gripper")),
                         ({**settings, "logs": settings["logs"][1:]}, ("wrong-setting", "payload"))):
        with refused(DynidError, *words):
            RunSettings.from_values(wrong)


def test_drive_gains_with_a_known_load_in_a_run_file(desk):
    settings = {**QUICK, "log": {**CURRENTS, "drive_gain": "known-load"},
                "payloads": {"weight": {"frame": FRAME, "mass": 3.0, "centre": [0.0, 0.0, 0.03],
                                        "inertia": [0.004, 0, 0, 0.004, 0, 0.004]}, "gripper": {"frame": FRAME}},
                "logs": [str(desk / "without_currents.npz"),
                         {"file": str(desk / "known_currents.npz"), "payload": "weight"},
                         {"file": str(desk / "load_currents.npz"), "payload": "gripper"}]}
    found = run(RunSettings.from_values(settings))
    gripper = next(one for one in found.payloads if one.label == "gripper")
    assert abs(gripper.mass / MASS - 1.0) < 0.035
    assert abs(gripper.mass - MASS) < 3 * gripper.mass_std
    gains = found.settings.log["drive_gain"]
    assert gains["joint2"] == pytest.approx(14.5, rel=0.03)
    assert found.settings.log["unmeasured"] == ["joint1", "joint7"]
    with refused(DynidError, "no-known-load"):
        run(RunSettings.from_values({**settings, "payloads": {"weight": {}, "gripper": {}}}))


def test_drive_gains_from_the_log_in_a_run_file(desk):
    log = {**CURRENTS, "drive_gain": "from-log", "target_torque": "target_moment", "target_current": "target_current"}
    found = run(RunSettings.from_values({**QUICK, "log": log, "payloads": {"gripper": {"frame": FRAME}}, "logs": [
        str(desk / "without_currents.npz"), {"file": str(desk / "load_currents.npz"), "payload": "gripper"}]}))
    (gripper,) = found.payloads
    assert abs(gripper.mass / MASS - 1.0) < 0.035
    assert gripper.gain_std.max() < 0.05
    assert found.settings.log["drive_gain"]["joint4"] == pytest.approx(9.5, rel=0.02)  # one set for all logs
    with refused(RecordingError, "no-targets"):
        run(RunSettings.from_values({**QUICK, "log": {**CURRENTS, "drive_gain": "from-log"},
                                     "logs": [str(desk / "without_currents.npz")]}))


HEAVY = KnownLoad.from_mass(FRAME, 2.805, (0.01, -0.02, 0.05), 0.004 * np.eye(3))
FROM_LOG = {**CURRENTS, "drive_gain": "from-log", "target_torque": "target_moment", "target_current": "target_current"}


def _with_targets(log: Recording, seed: int, path: Path) -> str:
    """Write a log of motor currents with the targets of a controller that knows no load."""
    log = controller_targets(log, seed)
    np.savez(path, time=log.t, q=log.q, current=log.tau / TRUE, target_moment=log.target_torque,
             target_current=log.target_current)
    return str(path)


def _gains_then_payload(folder: Path, seed: int) -> tuple[FoundPayload, FoundPayload]:
    """Return the payload of a robot that was identified with gains from its log, without and with the mapping again."""
    machine, folder = arm(), folder / str(seed)
    folder.mkdir()
    free = _with_targets(machine.recording(700 + 2 * seed), seed, folder / "free.npz")
    loaded = _with_targets(machine.recording(701 + 2 * seed, machine.loaded(np.array(HEAVY.numbers))), seed,
                           folder / "loaded.npz")
    save(run(RunSettings.from_values({**QUICK, "log": FROM_LOG, "logs": [free]})), folder / "out", report=False)
    without, again = (find_payload(folder / "out", [loaded], PayloadOptions(frame=FRAME), given)
                      for given in ({}, {"log": FROM_LOG}))
    return without, again


def test_a_payload_uses_the_gains_of_the_result_and_their_standard_errors(tmp_path: Path) -> None:
    """The mapping with "from-log" given again would estimate other gains than those of the robot's parameters."""
    stored, again = _gains_then_payload(tmp_path, 0)
    assert stored.payload.seen and stored.payload.gain_std.max() < 0.06
    assert again.payload.mass == stored.payload.mass and again.payload.mass_std == stored.payload.mass_std
    for found in (stored, again):
        assert "drive gains and their standard errors" in found.notes[0] and "out contains" in found.notes[0]
        assert found.to_dict()["notes"] == list(found.notes)


@pytest.mark.slow
def test_payload_intervals_hold_with_the_gains_of_the_result(tmp_path: Path) -> None:
    """95 % intervals of a mass of 2.805 kg over 40 machines, each with its own controller."""
    found: list[PayloadEstimate] = [_gains_then_payload(tmp_path, seed)[1].payload for seed in range(40)]
    low, high = np.array([one.conf_int()[0] for one in found]).T
    share = np.mean((low < HEAVY.numbers[9]) & (HEAVY.numbers[9] < high))
    assert 0.9 <= share <= 1.0, share
    assert np.median(high - low) < 0.6, "the interval is as wide as if the gains were unknown"


def _call(capsys, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_commands(desk, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    code, out, _ = _call(capsys, "payload", desk / "out", desk / "load.csv", "--frame", FRAME, "--mass", "4.092+-0.01",
                         "--json")
    said = json.loads(out)
    assert code == 0
    assert said["mass"]["std"] < 0.011
    assert set(said["controllers"]) == {"ur", "franka", "kuka", "abb"}
    code, out, _ = _call(capsys, "payload", desk / "out", desk / "load.csv", "--method", "residual")
    assert code == 0
    assert "Drive gains dominate the uncertainty" in " ".join(out.split())


@pytest.mark.parametrize(("more", "code", "words"), [
    (("--frame", "hand"), 2, "has no frame 'hand'"), (("--method", "magic"), 2, "no payload method 'magic'"),
    (("--mass", "-2"), 2, "must be positive"), (("--method", "same-motion"), 1, "same motion without load"),
    (("--method", "sensor"), 2, "no wrench")])
def test_calls_that_cannot_be_answered(desk, capsys, more, code, words):
    left, out, err = _call(capsys, "payload", desk / "out", desk / "load.csv", *more, "--json")
    assert (left, out) == (code, "")
    assert words in err


def test_a_log_without_motion(desk, capsys):
    code, _, err = _call(capsys, "payload", desk / "out", desk / "still.csv")
    assert code == 1
    assert "no joint moves" in err


def test_gains_by_command(desk, capsys, tmp_path):
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[log]\ntime = "time"\nposition = "q"\ncurrent = "current"\ndrive_gain = 1.0\n'
                       'target_torque = "target_moment"\ntarget_current = "target_current"\n')
    code, out, _ = _call(capsys, "gains", "kuka-iiwa14", desk / "without_currents.npz", "--mapping", mapping,
                         "--loaded", desk / "known_currents.npz", "--mass", "3", "--centre", "0,0,0.03", "--frame",
                         FRAME, "--cutoff", 8, "--json")
    assert code == 0
    said = json.loads(out)
    by_load, by_log, given = said["gains"]
    assert by_load["joints"][1]["gain"] == pytest.approx(14.5, rel=0.03)
    assert not by_load["joints"][0]["identified"]
    assert by_log["joints"][3]["gain"] == pytest.approx(9.5, rel=0.02)
    assert given["joints"][0]["gain"] == 1.0
    assert {one["code"] for one in said["findings"]} == {"drive-gains-differ"}  # both against the 1.0 that was given
    code, _, err = _call(capsys, "gains", "kuka-iiwa14", desk / "without.csv")
    assert code == 2
    assert "no target torque" in err


def test_a_log_of_another_robot(desk, capsys, tmp_path):
    log = arm().recording(2, seconds=2.0)
    np.savez(tmp_path / "six.npz", time=log.t, q=log.q[:, :6], tau=log.tau[:, :6])
    (tmp_path / "map.toml").write_text('[log]\ntime = "time"\nposition = "q"\ntorque = "tau"\n')
    code, _, err = _call(capsys, "payload", desk / "out", tmp_path / "six.npz", "--mapping", tmp_path / "map.toml")
    assert code == 2
    assert "6" in err and "7" in err


def test_a_payload_is_watched(desk, capsys):
    code, out, _ = _call(capsys, "watch", desk / "out", "--payload", FRAME, "--from", desk / "load.csv", "--speed", 0,
                         "--rate", 100, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["cutoff"] == 8.0  # that of the result
    assert said["payload"]["method"] == "live"
    assert abs(said["payload"]["mass"]["value"] - MASS) < 3 * said["payload"]["mass"]["std"] < 1.5
    assert said["restarts"] == []
    code, out, _ = _call(capsys, "watch", desk / "out", "--payload", FRAME, "--from", desk / "load.csv", "--speed", 0)
    assert code == 0
    assert "mass, kg" in out
    for more, words in ((("--friction", "viscous"), "the model is that of the result: --method, --forgetting"),
                        (("--record", desk / "record"), "--record and --prior apply to the estimation of parameters")):
        code, out, err = _call(capsys, "watch", desk / "out", "--payload", FRAME, "--from", desk / "load.csv", *more)
        assert (code, out) == (2, "")
        assert words in " ".join(err.split())
    code, _, err = _call(capsys, "watch", desk / "out", "--payload", "hand", "--from", desk / "load.csv")
    assert code == 2
    assert "no frame 'hand'" in err
