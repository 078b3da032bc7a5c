"""Essential parameters as a result: run files, the folder, the report, and the reduced model as code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import one_arm
import pytest

from dynid.cli.main import main
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.recording.write import write_npz
from dynid.runs import RunSettings, run
from dynid.runs.results import facts, load, save


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, object]:
    """One joint with viscous friction and noise; dry friction, offset and a rotor that are not there are asked for."""
    said = one_arm.written(tmp_path)
    log = read(tmp_path / "log.npz")
    noise = 0.02 * np.random.default_rng(0).normal(size=log.tau.shape)
    write_npz(Recording(log.t, log.q, log.tau + noise, joints=log.joints), tmp_path / "log.npz")
    half = slice(None, 1000)
    write_npz(Recording(log.t[half], log.q[half], (log.tau - noise)[half], joints=log.joints), tmp_path / "other.npz")
    return {**said, "method": "wls", "model": {"friction": ["viscous", "coulomb", "offset"]},
            "validate_on": [str(tmp_path / "other.npz")], "simulation": {"run": False},
            "essential": {"rule": "standard-error"}, "output": {"code": ["python"]}}


def test_a_run_leaves_out_what_is_not_there_and_says_so(settings: dict[str, object], tmp_path: Path) -> None:
    found, folder = run(RunSettings.from_values(settings)), tmp_path / "out"
    assert found.essential is not None
    gone = {one.name for one in found.essential.removed}
    assert {"Fc1", "Fo1"} <= gone and "Fv1" in found.estimate.names and not gone & set(found.estimate.names)
    said = facts(found)["essential"]
    assert said["criterion"] == "standard-error" and set(said["kept"]) == set(found.estimate.names)
    assert said["unseen"] < 1.02 * said["unseen_before"]
    assert len(said["validation_before"]) == 1
    written = save(found, folder)
    text = Path(written["report"]).read_text()
    assert "Essential parameters" in text and "removed, in this order" in text
    again, kept = load(folder)
    assert again.names == found.estimate.names and kept.essential is not None
    assert "Fc1" in (folder / "parameters.toml").read_text().split("[essential]")[1].split("[")[1]
    names: dict = {}
    exec((folder / "one_arm.py").read_text(), names)
    motion = np.random.default_rng(1).normal(size=(3, 5, 1))
    (torque,) = names["inverse_dynamics"](*motion)
    np.testing.assert_allclose(torque, found.estimate.predict(*motion), rtol=1e-12)


@pytest.mark.parametrize("rule", ["ratio", "f-test", "smallest", "r", "singular"])
def test_every_rule_at_the_command_line(settings: dict[str, object], tmp_path: Path, rule: str,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    plain = {key: value for key, value in settings.items() if key not in ("essential", "output")}
    file.write_text(RunSettings.from_values(plain).as_toml())
    with pytest.raises(SystemExit) as end:
        main(["identify", str(file), "--essential", rule, "--json"])
    assert end.value.code in (0, None)
    said = json.loads(capsys.readouterr().out)["essential"]
    assert said["criterion"] == rule and "Fo1" in [one["name"] for one in said["removed"]]


def test_an_unknown_rule_is_a_sentence(settings: dict[str, object], tmp_path: Path,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text(RunSettings.from_values({**settings, "essential": None}).as_toml())
    with pytest.raises(SystemExit) as end:
        main(["identify", str(file), "--essential", "size"])
    assert end.value.code == 2
    assert "essential.rule" in capsys.readouterr().err
