"""The verdict on real logs: a part of the study, and how its cases are made."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reproductions import verdict_real as study
from reproductions._data import DATA
from reproductions._real_logs import open_machine

needs_data = pytest.mark.skipif(not (DATA / "machines").is_dir(), reason="needs the real logs")


@needs_data
def test_faults_in_a_log_of_a_pendulum_are_named_or_left_open() -> None:
    """Two joints in near rest cannot tell a wrong sign from exchanged torques: both are stated."""
    result = study.run(lambda words: None, ("pendulum_a0",), ("log", "jittered stamps", "sign of one joint"))
    json.dumps(result, allow_nan=False)
    assert all(result["checks"].values()), result
    [sign] = [one for one in result["outcomes"] if one["fault"] == "sign of one joint"]
    assert sign["named"]
    assert any("signs are wrong, or the torques of joints 1 and 2 are exchanged" in words for words in sign["findings"])
    assert sign["harm"] > study.HARMFUL and result["totals"].keys() == {"chosen on"}
    head, *rows = study.table(result)
    assert len(rows) == 4 and all(len(row) == len(head) for row in rows)


@needs_data
def test_a_wrong_sign_is_named_where_friction_that_was_chosen_explains_more_than_the_sign_does() -> None:
    """The last joint of a Panda hardly acts on the others: negative friction is the only evidence."""
    result = study.run(lambda words: None, ("panda",), ("sign of one joint",))
    assert [one["found"] for one in result["outcomes"]] == [("torque-sign",)]


@needs_data
def test_conditions_change_what_they_are_named_for() -> None:
    real = open_machine("dvrk_psm")
    logs = {words: put.log for words, put in study.conditions(real)}
    assert len(logs["one row in four"].t) == -(-len(real.log.t) // 4)
    assert np.all(np.diff(logs["jittered stamps"].t) > 0.0)
    steps = np.diff(np.unique(logs["12 bits"].q[:, 0])) / (2.0 * np.pi / 4096)
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    assert np.all(np.round(steps) >= 1)


def test_without_data_nothing_is_tried(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(study, "DATA", tmp_path / "none")
    result = study.run(lambda words: None)
    assert result == {"outcomes": [], "totals": {}, "checks": {}} and len(study.table(result)) == 1
