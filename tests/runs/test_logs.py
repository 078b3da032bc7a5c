"""Logs of a run with formats, windows, names and files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, RecordingError
from dynid.model import Model
from dynid.recording.log_files import distinct, short_name, short_names
from dynid.recording.preparation import Preparation
from dynid.robot import Robot
from dynid.runs import RunSettings, run
from dynid.runs.loading import prepared
from dynid.runs.models import make_robot
from dynid.runs.results import facts, load, save
from dynid.runs.validation import validate_result

RATE = 200.0
T = np.arange(1200) / RATE
NO_SIMULATION = {"run": False}


def motion(phase: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 2) and the torques of the built-in scara2 that go with them, exactly."""
    parts = [(0.8, 3.0, phase), (0.5, 5.0, phase + 1.0)], [(0.7, 4.0, 2 * phase), (0.3, 7.0, phase)]
    q, dq, ddq = (np.column_stack([sum(a * w ** k * np.sin(w * T + p + k * np.pi / 2) for a, w, p in joint)
                                   for joint in parts]) for k in range(3))
    model = Model(Robot.builtin("scara2"))
    return q, model.inverse_dynamics(np.where(np.isnan(model.parameters.nominal), 0.0, model.parameters.nominal), q, dq,
                                     ddq)


def csv(path: Path, names: list[str], *columns: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=",".join(names), comments="")
    return path


def plain(path: Path, phase: float) -> Path:
    q, tau = motion(phase)
    return csv(path, ["time", "q1", "q2", "tau1", "tau2"], T, q, tau)


def settings(**given: Any) -> RunSettings:
    return RunSettings.from_values({"robot": "scara2", "method": "ols", "simulation": NO_SIMULATION,
                                    "prepare": {"cutoff": 30.0}, **given}, "run.toml")


def recordings(chosen: RunSettings, which: str = "logs") -> list[Any]:
    robot = make_robot(chosen)
    return [recording for recording, _ in prepared(getattr(chosen, which), chosen, robot,
                                                   Preparation.from_settings(chosen.prepare))]


def test_each_log_in_its_own_format(tmp_path: Path) -> None:
    one = plain(tmp_path / "one.csv", 0.0)
    q, tau = motion(0.7)
    two = csv(tmp_path / "two.csv", ["ms", "a", "b", "i1", "i2"], 1e3 * T, np.degrees(100.0 * q), tau / 100.0 / 2.5)
    table = {"file": str(two), "time": "ms", "time_unit": "ms", "position": ["a", "b"], "unit": "deg", "side": "motor",
             "ratio": 100.0, "current": ["i1", "i2"], "drive_gain": 2.5}
    chosen = settings(log={"time": "time", "position": "q{i}", "torque": "tau{i}"}, logs=[str(one), table],
                      validate_on=[table])
    for found in (*recordings(chosen)[1:], *recordings(chosen, "validate_on")):
        np.testing.assert_allclose(found.q, q, atol=1e-12)
        np.testing.assert_allclose(found.tau, tau, rtol=1e-12)
    result = run(chosen)
    assert result.estimate.diagnostics.relative_error < 0.5
    assert result.validations[0].relative_error < 0.5
    assert [log["source"] for log in facts(result)["logs"]] == [str(one), str(two), str(two)]
    assert [log["role"] for log in facts(result)["logs"]] == ["identification"] * 2 + ["validation"]


def test_the_tables_survive_a_result_folder(tmp_path: Path) -> None:
    chosen = settings(logs=[{"file": str(plain(tmp_path / "one.csv", 0.0)), "name": "slow", "start": 1.0},
                            [str(plain(tmp_path / "two.csv", 0.5))]])
    save(run(chosen), tmp_path / "out", report=False)
    _, again = load(tmp_path / "out")
    assert again.logs[0].name == "slow" and again.logs[0].own == {"start": 1.0}
    assert [len(one) for one in recordings(again)] == [1000, 1200]


def test_a_run_file_with_log_tables(tmp_path: Path) -> None:
    plain(tmp_path / "a.csv", 0.0)
    (tmp_path / "run.toml").write_text('robot = "scara2"\n[[logs]]\nfile = "a.csv"\nstart = 1\nstop = 3\n'
                                       '[[logs]]\nfile = "a.csv"\nstart = 4\nname = "end"\n')
    first, second = recordings(RunSettings.load(tmp_path / "run.toml"))
    assert (first.t[0], len(first), second.t[0], len(second)) == (1.0, 400, 4.0, 400)
    assert second.source == "end"


def test_what_a_log_says_itself_replaces_what_log_says(tmp_path: Path) -> None:
    q, tau = motion(0.2)
    csv(tmp_path / "x.csv", ["q1", "q2", "tau1", "tau2"], q, tau)
    common = {"time": "t", "time_unit": "ms", "current": ["i1", "i2"], "drive_gain": 3.0, "side": "motor", "ratio": 9.0,
              "position": "q{i}"}
    table = {"file": str(tmp_path / "x.csv"), "rate": RATE, "torque": "tau{i}", "side": "joint"}
    [found] = recordings(settings(log=common, logs=[table]))
    np.testing.assert_allclose(found.q, q)
    table = {"file": str(tmp_path / "x.csv"), "rate": RATE, "inherit": False}
    [found] = recordings(settings(log=common, logs=[table]))
    np.testing.assert_allclose(found.tau, tau)


@pytest.mark.parametrize(("logs", "message"), [
    ([{"file": "a.csv", "positon": "q"}], "run.toml: setting 'logs' is wrong: log 1: a log has no setting 'positon'; "
                                          "did you mean 'position'?"),
    (["a.csv", {"name": "x"}], "log 2: its table needs file = "),
    ([{"file": 3}], "log 1: 'file' is wrong"),
    ([{"file": []}], "log 1: a log needs a file"),
    ([{"file": "a.csv", "start": 5, "stop": 1}], "log a.csv: the window is empty: start = 5 s is not before"),
    ([{"file": "a.csv", "axis": 7}], "log a.csv: 'axis' must be 0"),
    ([{"file": "a.csv", "name": "x"}, {"file": "b.csv", "name": "x"}], "two logs have the name 'x'"),
    ([5], "log 1 must be a file"),
    ([["a.csv", 5]], "log 1: the parts of one log are a list of file names"),
    ("a.csv", "setting 'logs' is wrong"),
])
def test_bad_log_tables_are_a_sentence(logs: Any, message: str) -> None:
    with pytest.raises(DynidError) as problem:
        settings(logs=logs)
    assert message in str(problem.value) and "\n" not in str(problem.value)


def test_one_other_file_for_several_logs_is_refused(tmp_path: Path) -> None:
    for k in (1, 2):
        q, tau = motion(0.3 * k)
        csv(tmp_path / f"q_{k}.csv", ["time", "q1", "q2"], T, q)
        csv(tmp_path / f"q_{k}_tau.csv", ["tau1", "tau2"], tau)
    logs = [str(tmp_path / f"q_{k}.csv") for k in (1, 2)]
    with refused(RecordingError, "bad-recording", "q_1.csv", "q_2.csv", "q_1_tau.csv"):
        recordings(settings(logs=logs, log={"torque": {"file": "q_1_tau.csv"}}))
    with refused(RecordingError, "bad-recording", "q_1.csv", "q_2.csv"):
        recordings(settings(logs=[logs], log={"torque": {"file": "q_1_tau.csv"}}))
    by_stem = recordings(settings(logs=logs, log={"torque": {"file": "{stem}_tau.csv"}}))
    own = recordings(settings(logs=[{"file": log, "torque": {"file": f"q_{k}_tau.csv"}}
                                    for k, log in enumerate(logs, 1)]))
    for found in (by_stem, own):
        for k in (1, 2):
            np.testing.assert_allclose(found[k - 1].tau, motion(0.3 * k)[1])


def test_logs_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    logs = [str(plain(tmp_path / folder / "log.csv", phase)) for folder, phase in (("a", 0.0), ("b", 0.4))]
    others = [str(plain(tmp_path / folder / "log.csv", phase)) for folder, phase in (("c", 0.9), ("d", 1.4))]
    result = run(settings(logs=[*logs, logs[0]], validate_on=others))
    said = facts(result)
    assert [log["source"] for log in said["logs"]] == [*logs, *others]
    assert [(one["log"], one["code"]) for one in said["left_out"]] == [(f"{logs[0]} (2)", "copied-log")]
    assert [one["source"] for one in said["validation"]] == others
    assert len({span.source for block in result.problem.regression.blocks for span in block.spans}) == 2
    written = save(result, tmp_path / "out")
    page = Path(written["report"]).read_text(encoding="utf-8")
    for name in ("a/log.csv", "b/log.csv", "c/log.csv", "d/log.csv", "a/log.csv (2)"):
        assert name in page


def test_short_names() -> None:
    among = ["x/a/log.csv", "x/b/log.csv", "y/b/log.csv", "other.csv"]
    assert [short_name(one, among) for one in among] == ["a/log.csv", "x/b/log.csv", "y/b/log.csv", "other.csv"]
    assert short_name("x/p1.csv, x/p2.csv") == "p1.csv, p2.csv"
    assert short_name("memory", ["memory"]) == "memory"
    assert distinct(["a", "b", "a", "a"]) == ("a", "b", "a (2)", "a (3)")


def test_dropped_rows_are_in_text_and_json(tmp_path: Path) -> None:
    path = plain(tmp_path / "log.csv", 0.0)
    lines = path.read_text().splitlines()
    for k in (1, 2):
        lines[k] = "nan,abc,7,oops,nan"
    path.write_text("\n".join(lines) + "\n")
    other = plain(tmp_path / "other.csv", 0.6)
    lines = other.read_text().splitlines()
    lines[600] = "x" + lines[600]
    other.write_text("\n".join(lines) + "\n")
    result = run(settings(logs=[str(path)], validate_on=[str(other)], log={"bad_rows": "drop"}))
    mine, its = json.loads(json.dumps(facts(result)))["logs"]
    assert (mine["dropped"], [row["row"] for row in mine["dropped_rows"]]) == (2, [2, 3])
    assert (its["dropped"], its["dropped_rows"][0]["row"]) == (1, 601)
    assert "is not a number" in its["dropped_rows"][0]["why"]
    assert result.logs[0].sentence.startswith(f"{path}: ignored 2 rows from 2 to 3, of 1200")
    assert any("601" in note for note in result.notes)


def test_the_window_of_a_run_is_not_that_of_other_logs(tmp_path: Path) -> None:
    log, other = plain(tmp_path / "log.csv", 0.0), plain(tmp_path / "other.csv", 0.8)
    save(run(settings(logs=[str(log)], log={"start": 1.0, "stop": 5.0})), tmp_path / "out", report=False)
    assert validate_result(tmp_path / "out", [str(other)]).logs[0].rows == 1200
    assert validate_result(tmp_path / "out", [str(other)], {"log": {"start": 2.0, "stop": None}}).logs[0].rows == 800


@pytest.mark.parametrize("sources", [["a/x.csv", "b/x.csv", "b/y.csv"], ["x"], [], ["a/b/x", "c/b/x", "x", "x"],
                                     ["a/x, a/y", "b/x, b/y"], ["/", "/a"]])
def test_names_of_many_logs_are_those_of_each(sources: list[str]) -> None:
    assert short_names(sources) == {one: short_name(one, sources) for one in sources}
