"""dynid compare --monte-carlo at the command line."""

from __future__ import annotations

import json

STUDY = """\
robot = "scara2"
methods = ["iv", "wls"]
repetitions = 3
duration = 3.0
rate = 200.0
prepare = {method = "none", torque_cutoff = "none", slow = 0.0}

[model]
friction = ["viscous"]

[controller]
kind = "poles"
omega = [8.0, 12.0]

[noise]
encoder = 2e-4
torque = 0.02
"""


def test_a_study_as_json_table_and_page(dynid, tmp_path):
    path, page = tmp_path / "study.toml", tmp_path / "report.html"
    path.write_text(STUDY)
    outcome = dynid("compare", "--monte-carlo", path, "--repetitions", 2, "--workers", 1, "--json", "-o", page)
    assert outcome.code == 0, outcome.err
    facts = json.loads(outcome.out)
    assert facts["repetitions"] == 2 and [one["method"] for one in facts["scores"]] == ["iv", "wls"]
    assert facts["scores"][0]["torque_error"] < facts["scores"][1]["torque_error"]
    assert facts["outputs"] == {"report": str(page)} and "scara2: iv, wls" in page.read_text()
    outcome = dynid("compare", "--monte-carlo", path, "--methods", "ols", "--workers", 1)
    assert outcome.code == 0 and "ols" in outcome.out and "coverage" in outcome.out and "iv" not in outcome.out


def test_wrong_calls(dynid, tmp_path):
    outcome = dynid("compare", "--monte-carlo", "scara2", "log.csv")
    assert outcome.code == 2 and outcome.error == "conflicting-options"
    outcome = dynid("compare", "scara2", "log.csv", "--repetitions", 5)
    assert outcome.code == 2 and outcome.error == "conflicting-options"
    outcome = dynid("compare", "--monte-carlo", "nobody")
    assert outcome.error == "unknown-robot" and "nobody" in outcome.err
    (tmp_path / "bad.toml").write_text("robot = ")
    outcome = dynid("compare", "--monte-carlo", tmp_path / "bad.toml")
    assert outcome.code == 2 and outcome.error == "not-toml"
