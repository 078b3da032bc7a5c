"""`dynid excite --standing`: a motion of a quadruped on its feet, and one sentence for each wrong call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from walkers import quadruped

FEET = "FL_toe,FR_toe,RL_toe,RR_toe"
HOME = ",".join(["0,0.8,-1.6"] * 4)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dog.xml").write_text(quadruped())
    return tmp_path


def test_motion_report_and_notes(dynid) -> None:
    shown = dynid("excite", "dog.xml", "-o", "motion.csv", "--standing", FEET, "--home", HOME, "--duration", "4",
                  "--harmonics", "2", "--budget", "0.1", "--report", "motion.html", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["criterion"] == "a" and said["unchecked"] == "NOT checked against objects around it"
    assert said["checked"].startswith("checked against the robot itself")
    assert any("(the search allows 0.6, --friction-cone)" in note and "20 mm" in note for note in said["notes"])
    limits = {use["kind"]: use for use in said["limits"]}
    assert limits["support"]["value"] >= 0.02 and limits["friction"]["value"] <= 0.6
    assert limits["friction"]["used"] <= 100.0
    rows = np.genfromtxt("motion.csv", delimiter=",", names=True)
    assert {"q_FL_hip", "base_pos_z", "base_quat_w", "tau_RR_calf"} <= set(rows.dtype.names)
    np.testing.assert_allclose([rows[f"q_{leg}_calf"][0] for leg in ("FL", "FR", "RL", "RR")], -1.6, atol=1e-8)
    page = Path("motion.html").read_text()
    assert "support polygon" in page and "path of the base" in page


@pytest.mark.parametrize(("words", "error"), [
    ((), "no-standing-feet"),
    (("--standing", "paw"), "unknown-frame"),
    (("--standing", "FL_toe,FR_toe", "--home", HOME), "no-support-polygon"),
    (("--standing", FEET, "--home", HOME, "--support-margin", "1"), "no-support-polygon"),
    (("--standing", FEET, "--home", "0,0,0,0,0,0,0,1.5,-2.9,0,1.5,-2.9"), "feet-out-of-reach"),
    (("--standing", FEET, "--home", "0,0.8"), "wrong-home"),
    (("--standing", FEET, "--sole", "0.1"), "wrong-standing-option"),
    (("--standing", FEET, "--floor", "0"), "free-base-unsupported"),
    (("--standing", FEET, "--friction-cone", "0"), "wrong-standing-option"),
    (("--sway", "0.1"), "no-standing-feet"),
    (("--standing", FEET, "--improve", "out"), "free-base-unsupported"),
])
def test_wrong_calls_have_one_sentence(dynid, words: tuple[str, ...], error: str) -> None:
    shown = dynid("excite", "dog.xml", "-o", "motion.csv", *words)
    assert shown.code in (1, 2) and "Traceback" not in shown.err
    assert shown.error == error and not Path("motion.csv").exists()


def test_fixed_base_needs_no_feet(dynid) -> None:
    shown = dynid("excite", "arm3r", "-o", "motion.csv", "--standing", "foot")
    assert shown.code == 2 and shown.error == "fixed-base"
