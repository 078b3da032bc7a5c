"""From files and single settings to a run's settings."""

from __future__ import annotations

import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.runs import RunSettings
from dynid.runs.arguments import assign, merged, run_settings, source_kind


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text('robot = "arm3r"\nlogs = ["one.csv"]\n[prepare]\ncutoff = 5.0\norder = 3\n')
    (tmp_path / "own.toml").write_text('name = "own"\nconvention = "dh"\n')
    (tmp_path / "one.csv").write_text("t,q1\n0,0\n")
    return tmp_path


@pytest.mark.parametrize(("source", "kind"), [("run.toml", "settings"), ("own.toml", "robot"), ("arm3r", "robot"),
                                              ("some.urdf", "robot"), ("one.csv", "log"), ("two.csv", "robot")])
def test_what_a_source_is(folder, source, kind):
    assert source_kind(source) == kind


def test_a_table_goes_over_the_table_and_none_over_nothing():
    values = {"method": "wls", "prepare": {"cutoff": 5.0, "order": 3}}
    given = {"method": None, "prepare": {"cutoff": 8.0, "slow": None}, "model": {"rotor": None}, "blocks": 4}
    assert merged(values, given) == {"method": "wls", "prepare": {"cutoff": 8.0, "order": 3}, "blocks": 4}
    assert values["prepare"]["cutoff"] == 5.0


@pytest.mark.parametrize(("assignment", "value"), [("options.strength=0.1", 0.1), ("options.strength=[1, 2]", [1, 2]),
                                                   ("options.strength=true", True), ("options.strength=so so", "so so"),
                                                   ("options.strength=a=b", "a=b")])
def test_an_assigned_value_is_toml_or_text(assignment, value):
    values = {"options": {"other": 1}}
    assert assign(values, assignment) == {"options": {"other": 1, "strength": value}}
    assert values == {"options": {"other": 1}}


@pytest.mark.parametrize("assignment", ["cutoff", "=3", "robot.name=x"])
def test_a_wrong_assignment_is_refused(assignment):
    with pytest.raises(DynidError):
        assign({"robot": "arm3r"}, assignment)


def test_settings_of_a_run_file_or_of_a_robot_and_logs(folder):
    again = run_settings("run.toml", given={"prepare": {"cutoff": 8.0}}, assignments=["method=ols"])
    assert again == RunSettings(robot="arm3r", logs=("one.csv",), prepare={"cutoff": 8.0, "order": 3}, method="ols")
    assert run_settings("arm3r", ["one.csv"]) == RunSettings(robot="arm3r", logs=("one.csv",))


@pytest.mark.parametrize(("source", "words"),
                         [("one.csv", ("no-robot", "'one.csv'")), ("arm3r", ("no-log", "'arm3r'"))])
def test_logs_and_robots_alone_are_no_run(folder, source, words):
    with refused(DynidError, *words):
        run_settings(source)
