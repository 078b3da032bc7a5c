"""One path from data to result: where a run is computed changes nothing in what it says, but for times."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flexible_arm import LAW, flexible_arm
from flexible_arm import motion as flexible_motion
from motions import fourier

import dynid
from dynid.arrays import Array
from dynid.cli.main import main
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Robot
from dynid.runs.results import facts
from dynid.runs.toml import dumps
from dynid.simulation import ComputedTorque, Reference, VirtualRobot

BUILTIN = Path(dynid.__file__).parent / "robot" / "builtin"
# Keys of the JSON that say when, where and how fast, and not what.
ELSEWHERE = {"elapsed_s", "seconds", "outputs", "workers", "scheduler", "folds", "read_now"}
PATHS = {"workers 1": ("--workers", "1"), "workers 2": ("--workers", "2")}
FRICTION = {"Fv": 0.5, "Fc": 0.8, "Fo": 0.1}


@dataclass(frozen=True)
class Case:
    """What a run is of: a function that writes its files into a folder and gives its settings."""

    write: Callable[[Path], dict[str, Any]]


def log(model: Model, seed: int, *, rate: float = 200.0, seconds: float = 5.0) -> Recording:
    """Write a log of a model along its own motion, with noise in positions and torques."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = fourier(model.dof, seconds=seconds, rate=rate, seed=seed, period=seconds)
    theta = [FRICTION.get(item.symbol, 0.0) if item.nominal is None else item.nominal for item in model.parameters]
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    return Recording(np.arange(len(q)) / rate, q + 2e-5 * rng.normal(size=q.shape),
                     tau + 0.05 * rng.normal(size=tau.shape), joints=model.robot.joint_names)


def rubbing(robot: Robot) -> Model:
    return Model(robot, make_terms(robot, friction=("viscous", "coulomb")))


def without_terms(folder: Path) -> Robot:
    """The 3R arm as a file that names no friction."""
    text = (BUILTIN / "arm3r.toml").read_text()
    (folder / "arm.toml").write_text(text[:text.index("[[terms]]")])
    return Robot.load(folder / "arm.toml")


def two_logs(folder: Path, robot: Robot, **options: float) -> list[str]:
    for seed in range(2):
        write_npz(log(rubbing(robot), seed, **options), folder / f"{seed}.npz")
    return ["0.npz", "1.npz"]


def friction_in_the_file(folder: Path) -> dict[str, Any]:
    return {"robot": "arm3r", "logs": two_logs(folder, Robot.builtin("arm3r")), "method": "wls"}


def friction_not_named(folder: Path) -> dict[str, Any]:
    robot = without_terms(folder)
    return {"robot": "arm.toml", "logs": two_logs(folder, robot), "method": "wls"}


def closed_chain(folder: Path) -> dict[str, Any]:
    robot = Robot.builtin("four-bar")
    model, t = Model(robot, make_terms(robot)), np.arange(1500) / 250.0
    theta = model.parameters.nominal
    assert theta is not None
    q: Array = 1.7 + sum(0.18 * np.sin(2 * np.pi * f * t + k) for k, f in enumerate((0.3, 0.71, 1.3, 2.1)))
    machine = VirtualRobot(model, theta, ComputedTorque(model, theta, 900.0, 60.0), smooth="stick", torque_noise=0.01)
    write_csv(machine.record(Reference.from_arrays(q[:, None], rate=250.0)), folder / "bars.csv")
    return {"robot": "four-bar", "logs": ["bars.csv"], "method": "wls"}


def flexible_joints(folder: Path) -> dict[str, Any]:
    model, theta = flexible_arm()
    machine = VirtualRobot(model, theta, LAW, position_noise=5e-6, torque_noise=0.02)
    write_csv(machine.record(flexible_motion(seconds=4.0, rate=500.0)), folder / "flexible.csv")
    return {"robot": "arm3r", "logs": ["flexible.csv"], "method": "wls",
            "model": {"friction": ["viscous"], "flexible": {}}}


def settings_of_a_log(folder: Path) -> dict[str, Any]:
    first, second = two_logs(folder, Robot.builtin("arm3r"))
    return {"robot": "arm3r", "logs": [{"file": first, "start": 1.0}, {"file": second, "stop": 4.0}], "method": "wls"}


def two_rates(folder: Path) -> dict[str, Any]:
    model = rubbing(Robot.builtin("arm3r"))
    write_npz(log(model, 0, rate=200.0), folder / "fast.npz")
    write_npz(log(model, 1, rate=125.0), folder / "slow.npz")
    return {"robot": "arm3r", "logs": ["fast.npz", "slow.npz"], "method": "wls"}


def validation_log(folder: Path) -> dict[str, Any]:
    first, second = two_logs(folder, Robot.builtin("arm3r"))
    return {"robot": "arm3r", "logs": [first], "validate_on": [second], "model": {"friction": ["viscous", "coulomb"]},
            "simulation": {"run": True}}


def everything_chosen(folder: Path) -> dict[str, Any]:
    return {"robot": "arm.toml", "logs": two_logs(folder, without_terms(folder))}


CASES = {case.__name__: Case(case) for case in (
    friction_in_the_file, friction_not_named, closed_chain, flexible_joints, settings_of_a_log, two_rates,
    validation_log, everything_chosen)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run file of a case, written once."""
    @cache
    def run_file(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        settings = {"simulation": {"run": False}, **CASES[name].write(folder)}
        (folder / "run.toml").write_text(dumps(settings))
        return folder / "run.toml"
    return run_file


@pytest.fixture(scope="module")
def plain(prepared: Callable[[str], Path]) -> Callable[[str], dict[str, Any]]:
    """What the plain path says of a case, in Python, computed once."""
    @cache
    def said(name: str) -> dict[str, Any]:
        return without_places(json.loads(json.dumps(facts(dynid.run(dynid.RunSettings.load(prepared(name)))))))
    return said


def without_places(said: Any) -> Any:
    """The same without what says when, where and how fast."""
    if isinstance(said, dict):
        return {key: without_places(value) for key, value in said.items()
                if key not in ELSEWHERE and not key.endswith("_s")}
    return [without_places(value) for value in said] if isinstance(said, list) else said


def command(capfd: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """What `dynid identify .. --json` says."""
    with pytest.raises(SystemExit) as left:
        main(["identify", *map(str, words), "--json"])
    out, err = capfd.readouterr()
    assert not left.value.code, err
    return without_places(json.loads(out))


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Fail at the first place where two results differ, and name it."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        assert sorted(ours) == sorted(theirs), f"keys of {where or 'the result'}"
        for key, value in theirs.items():
            assert_same(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        assert len(ours) == len(theirs), f"length of {where}"
        for k, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, f"{where}[{k}]")
    else:
        assert ours == theirs, where


@pytest.mark.parametrize("name", CASES)
def test_the_command_says_what_python_says(name: str, prepared: Callable[[str], Path],
                                           plain: Callable[[str], dict[str, Any]],
                                           capfd: pytest.CaptureFixture[str]) -> None:
    assert_same(command(capfd, prepared(name)), plain(name))


@pytest.mark.parametrize(("name", "path"), [
    pytest.param(name, path, marks=[pytest.mark.slow] * (path == "workers 1" and name != "friction_not_named"))
    for name in CASES for path in PATHS])
def test_workers_change_nothing(name: str, path: str, prepared: Callable[[str], Path],
                                plain: Callable[[str], dict[str, Any]], capfd: pytest.CaptureFixture[str]) -> None:
    assert_same(command(capfd, prepared(name), *PATHS[path]), plain(name))


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in (
    "friction_in_the_file", "settings_of_a_log", "two_rates", "everything_chosen"))) for name in CASES])
def test_a_folder_of_factors_changes_nothing_when_written_nor_when_read(
        name: str, tmp_path: Path, prepared: Callable[[str], Path], plain: Callable[[str], dict[str, Any]],
        capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert_same(command(capfd, prepared(name), "--folds", tmp_path / "factors"), plain(name))


def test_identify_of_a_recording_is_the_run(prepared: Callable[[str], Path], plain: Callable[[str], dict[str, Any]]
                                            ) -> None:
    """The same log through `dynid.identify`: the same cut-off, method and values."""
    folder, robot = prepared("validation_log").parent, Robot.builtin("arm3r")
    recording = dynid.read(folder / "0.npz")
    estimate = dynid.identify(rubbing(robot), recording)
    said = plain("validation_log")
    assert estimate.method == said["method"]
    values = [said["parameters"][name]["value"] for name in estimate.names]
    np.testing.assert_allclose(estimate.values, values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["friction_not_named", "everything_chosen"])
def test_friction_that_no_file_names_is_chosen(name: str, plain: Callable[[str], dict[str, Any]]) -> None:
    """So that equal results are not equally wrong: the simulated arm has viscous and Coulomb friction at all joints."""
    said = plain(name)
    assert {f"{symbol}{j}" for symbol in ("Fv", "Fc") for j in (1, 2, 3)} <= set(said["parameters"])
    assert said["relative_error"] < 5.0 and said["friction"] is not None
