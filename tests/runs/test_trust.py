"""A result, prior or run file that names a Python file is data: nothing runs that file unless the user says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from motions import fourier
from refusals import refused

from dynid.cli.main import main
from dynid.errors import DynidError
from dynid.fleet.settings import FleetSettings
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import RunSettings, make_model
from dynid.runs.result_folder import MANIFEST, write_manifest
from dynid.runs.results import load

LOG, RESULT = "log.csv", "theirs"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, a motion, and a stranger's result whose model is a Python file that leaves a trace."""
    folder = tmp_path_factory.mktemp("trust")
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    q, dq, ddq = fourier(3, seconds=5.0, rate=200.0, seed=1)
    tau = model.regressor(q, dq, ddq) @ np.where(np.isnan(model.parameters.nominal), 0.1, model.parameters.nominal)
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    write_csv(Recording(np.arange(len(q)) / 200.0, q, tau, joints=robot.joint_names), folder / LOG)
    assert called("identify", "arm3r", str(folder / LOG), "--friction", "viscous", "--method", "wls", "--no-simulation",
                  "-o", str(folder / RESULT)) == 0
    (folder / RESULT / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n")
    settings = folder / RESULT / "run.toml"
    text = settings.read_text().replace("[model]\n", '[model]\npython = "evil.py"\n')
    settings.write_text(text)
    (folder / RESULT / MANIFEST).unlink()
    write_manifest(folder / RESULT)
    (folder / "run.toml").write_text(f'robot = "arm3r"\nlogs = ["{LOG}"]\n[model]\npython = "{RESULT}/evil.py"\n')
    (folder / "prior.toml").write_text(f'robot = "arm3r"\nlogs = ["{LOG}"]\nprior = "{RESULT}"\n')
    (folder / "fleet.toml").write_text(f'robot = "arm3r"\n[model]\npython = "{RESULT}/evil.py"\n[[robots]]\n'
                                       f'name = "a"\nlogs = ["{LOG}"]\n')
    (folder / "motion.csv").write_text("t," + ",".join(f"q_{name}" for name in robot.joint_names) + "\n" + "".join(
        f"{k / 10},0,0,0\n" for k in range(5)))
    return folder


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


COMMANDS = {
    "check": ["check", RESULT], "compare": ["compare", RESULT, RESULT], "validate": ["validate", RESULT, LOG],
    "payload": ["payload", RESULT, LOG], "contact": ["contact", RESULT, LOG], "extract": ["extract", RESULT],
    "generate": ["generate", "arm3r", "--from", RESULT, "-o", "code"],
    "simulate": ["simulate", "arm3r", "--trajectory", "motion.csv", "--truth", RESULT, "-o", "sim.csv"],
    "excite": ["excite", "arm3r", "--improve", RESULT, "-o", "m.csv", "--rounds", "1"],
    "watch": ["watch", "arm3r", "--from", LOG, "--speed", "0", "--friction", "viscous", "--prior", RESULT],
    "watch-payload": ["watch", RESULT, "--from", LOG, "--speed", "0", "--payload", "link3"],
    "prior": ["identify", "arm3r", LOG, "--prior", RESULT], "prior-in-file": ["identify", "prior.toml"],
    "run-file": ["identify", "run.toml"], "result-again": ["identify", f"{RESULT}/run.toml"],
    "workers": ["identify", "run.toml", "--workers", "1"], "compare-run": ["compare", "run.toml"],
    "fleet": ["fleet", "fleet.toml", "--workers", "1"],
    "own-model-and-prior": ["identify", "prior.toml", "--set", "model.python=own.py"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_runs_it(made: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch,
                            capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(made)
    capsys.readouterr()
    assert called(*arguments) == 2
    said = capsys.readouterr().err
    assert "evil.py" in said and "--trust" in said and said.count("\n") == 1
    assert not (made / "ran").exists()


@pytest.mark.parametrize("name", ["check", "prior", "run-file"])
def test_the_user_may_trust_it(made: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    called(*COMMANDS[name], "--trust", *(["--no-simulation", "--friction", "viscous"] if name != "check" else []))
    assert (made / "ran").exists()
    (made / "ran").unlink()


def test_a_file_that_the_user_names_as_the_model_is_run(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    called("identify", "arm3r", LOG, "--friction", "viscous", "--no-simulation", "--set",
           f"model.python={RESULT}/evil.py")
    assert (made / "ran").exists()
    (made / "ran").unlink()


def test_in_python_trust_is_said_by_a_keyword(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    values = {"robot": "arm3r", "logs": [LOG], "model": {"python": f"{RESULT}/evil.py", "friction": ["viscous"]}}
    for call in (lambda: load(RESULT), lambda: make_model(RunSettings.load("run.toml")),
                 lambda: make_model(RunSettings.from_values(values)),
                 lambda: make_model(FleetSettings.load("fleet.toml").run_settings((LOG,), {}))):
        with refused(DynidError, "not-trusted", "evil.py", "--trust"):
            call()
        assert not (made / "ran").exists()
    estimate, settings = load(RESULT, trust=True)
    assert len(estimate.names) and settings.trust is True and settings.moved(Path(), made).trust is True
    assert (made / "ran").exists()
    (made / "ran").unlink()
    make_model(RunSettings.from_values(values, trust="model"))
    assert (made / "ran").exists()
    (made / "ran").unlink()


def test_a_file_cannot_trust_itself(made: Path) -> None:
    for key in ("trust", "_trust", "model._trust", "model.trust"):
        table = {"robot": "arm3r", "logs": [LOG], "model": {"python": "evil.py"}}
        if key.startswith("model."):
            table["model"][key.removeprefix("model.")] = True  # type: ignore[index]
        else:
            table[key] = True
        with pytest.raises(DynidError):
            make_model(RunSettings.from_values(table))
