"""A whole fleet from its files to its pages, and updates of it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fleets import Fleet
from motions import fourier
from refusals import refused

from dynid.errors import DynidError, ModelError
from dynid.estimate.recursive.start import prior_rows
from dynid.fleet.run import FleetOptions, run_fleet
from dynid.fleet.save import FOLDS, save_fleet
from dynid.fleet.settings import FleetSettings
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.runs.results import load
from dynid.workers import Workers


def write_log(path: Path, fleet: Fleet, theta: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, dq, ddq = fourier(3, seconds=4.0, seed=seed, rate=200.0, period=4.0)
    tau = fleet.model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=fleet.model.robot.joint_names), path)


@pytest.fixture(scope="module")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five robots, four logs each; R2 has more friction in joint 2, and one log of R3 is of another robot."""
    folder, fleet, rng = tmp_path_factory.mktemp("fleet"), Fleet.of_arms(), np.random.default_rng(0)
    for k in range(5):
        theta = fleet.own(rng)
        if k == 2:
            theta[fleet.model.parameters.index("Fc2")] *= 2.0
        for i in range(4):
            other = theta.copy()
            if (k, i) == (3, 1):
                other[fleet.model.parameters.bodies["link3"]] *= 2.5
            write_log(folder / "logs" / f"robot=R{k}" / f"2026-03-{i + 1:02d}.npz", fleet, other, 100 * k + i)
    (folder / "logs" / "robot=R0" / "corrupt.npz").write_bytes(b"PK\x03\x04")
    (folder / "fleet.toml").write_text('robot = "arm3r"\nlogs = ["logs"]\n[prepare]\ncutoff = 20.0\n')
    return folder


def found(folder: Path, out: Path, **options: Any) -> dict[str, Any]:
    result = run_fleet(FleetSettings.load(folder / "fleet.toml"), FleetOptions(out / FOLDS, **options))
    save_fleet(result, out)
    return result.to_dict()


@pytest.fixture(scope="module")
def first(fleet_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The result of the whole fleet and its folder, for tests that do not write into it."""
    out = tmp_path_factory.mktemp("first") / "out"
    return found(fleet_folder, out), out


def test_a_fleet_says_who_differs_and_updates_read_only_what_is_new(
        fleet_folder: Path, first: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    facts, out = first[0], shutil.copytree(first[1], tmp_path / "out")
    assert [(one["robot"], one["part"].split(" (")[0]) for one in facts["stand_out"]] == [("R2", "drive of joint 2")]
    assert [Path(one["source"]).name for one in facts["odd_logs"]] == ["2026-03-02.npz"]
    assert [Path(one["source"]).name for one in facts["failures"]] == ["corrupt.npz"]
    assert len(facts["logs"]) == 20 and facts["read"] == 21
    assert not any("other robots of the type" in note for note in facts["notes"])  # five robots decide
    assert {"Fc1", "Fc2"} <= {name for name, one in facts["parameters"].items() if one["differs"] == "robots"}
    errors = np.array(facts["cross_prediction"]["errors"])
    assert errors[2, 0, 1] > 1.5 * errors[1, 0, 1]  # the model of R2 on joint 2 of R0
    page = (out / "fleet.html").read_text()
    assert "robot-R2.html" in page and "http://" not in page.split("</style>")[1].split("<script>")[0]
    assert "drive of joint 2" in (out / "robot-R2.html").read_text()
    assert json.loads((out / "fleet.json").read_text())["read"] == 21
    fleet = Fleet.of_arms()
    new = fleet_folder / "logs" / "robot=R1" / "2026-03-09.npz"
    write_log(new, fleet, fleet.theta, 999)
    again = found(fleet_folder, out, keep_gone=True, workers=Workers(1))
    new.unlink()
    assert again["read"] == 2 and len(again["logs"]) == 21  # the new one, and the corrupt one is tried again
    gone = found(fleet_folder, out, keep_gone=True)
    assert len(gone["logs"]) == 21


@pytest.mark.parametrize(("robots", "words"), [
    (2, "2 robots cannot show which one differs"), (3, "3 robots show only differences much larger than those among")])
def test_fewer_than_five_robots_state_what_they_cannot_decide(fleet_folder: Path, tmp_path: Path, robots: int,
                                                              words: str) -> None:
    logs = ", ".join(f'"logs/robot=R{k}"' for k in range(robots))
    few = fleet_folder / f"few{robots}.toml"
    few.write_text(f'robot = "arm3r"\nlogs = [{logs}]\n[prepare]\ncutoff = 20.0\n'
                   '[model]\nfriction = ["viscous", "coulomb"]\n')
    result = run_fleet(FleetSettings.load(few), FleetOptions(tmp_path / FOLDS))
    assert len(result.robots) == robots
    [note] = [note for note in result.notes if "other robots of the type" in note]
    assert note.startswith(words)


def test_the_fleet_is_a_prior_for_a_new_robot(first: tuple[dict[str, Any], Path]) -> None:
    estimate, settings = load(first[1])
    fleet = Fleet.of_arms()
    errors = (estimate.values - fleet.truth_of(estimate, fleet.theta)) / estimate.std
    assert settings.robot == "arm3r" and np.sqrt(np.mean(errors ** 2)) < 2.0
    rows = prior_rows(estimate.base, estimate)
    assert rows is not None
    known = np.isfinite(estimate.std)  # the prior leaves open what the fleet does not determine
    prior = np.linalg.lstsq(rows.matrix, rows.values, rcond=None)[0]
    assert known.sum() >= len(known) - 1 and np.allclose(prior[known], estimate.values[known], atol=1e-6)


@pytest.mark.slow
def test_two_updates_at_once_leave_one_whole_result(fleet_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: found(fleet_folder, out), range(2)))
    assert both[0]["parameters"] == both[1]["parameters"]
    load(out)  # checks every file against the manifest
    assert json.loads((out / "fleet.json").read_text())["parameters"] == both[0]["parameters"]


def test_a_disk_that_fills_leaves_the_earlier_result(fleet_folder: Path, first: tuple[dict[str, Any], Path],
                                                     tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = shutil.copytree(first[1], tmp_path / "out")
    before = (out / "fleet.json").read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refused(DynidError, "cannot-write", "No space left"):
        found(fleet_folder, out)
    monkeypatch.undo()
    assert (out / "fleet.json").read_bytes() == before
    load(out)


def test_what_a_fleet_file_must_have(tmp_path: Path) -> None:
    with refused(DynidError, "wrong-setting", "[[robots]]"):
        FleetSettings.from_values({"robot": "arm3r"})
    with refused(DynidError, "wrong-setting", "'a'"):
        FleetSettings.from_values({"robot": "arm3r",
                                   "robots": [{"name": "a", "logs": ["x"]}, {"name": "a", "logs": ["y"]}]})
    with refused(ModelError, "bad-model", "'gears'"):
        from dynid.fleet.shared import shared_columns
        shared_columns(Fleet.of_arms().base, ["gears"])


def test_commanded_signals_stand_side_by_side(tmp_path: Path) -> None:
    fleet, rng = Fleet.of_arms(), np.random.default_rng(1)
    tables = []
    for k in range(2):
        q, dq, ddq = fourier(3, seconds=4.0, seed=5, rate=200.0, period=4.0)
        tau = fleet.model.inverse_dynamics(fleet.theta * (1.0 + 0.5 * k), q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        write_npz(Recording(np.arange(800) / 200.0 + k, q, tau, reference=q, joints=fleet.model.robot.joint_names),
                  tmp_path / f"{k}.npz")
        tables.append({"name": f"R{k}", "logs": [str(tmp_path / f"{k}.npz")], "motions": ["wave"]})
    found = run_fleet(FleetSettings.from_values({"robot": "arm3r", "robots": tables,
                                                 "prepare": {"cutoff": 20.0}})).commanded
    assert found is not None and found.motion == "wave" and found.robots == ("R0", "R1")
    assert found.position_difference.max() < 1e-9 and found.torque_difference[1] > 20.0
