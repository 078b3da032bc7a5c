"""Whole runs: settings in a file, results in a folder, and what bad logs come to."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, ModelError, NotPossibleError, RecordingError, RobotError
from dynid.estimate import methods
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Robot
from dynid.runs import ModelSettings, Run, RunSettings, run
from dynid.runs.results import facts, load, save
from dynid.runs.toml import dumps

FRICTION = ("viscous", "coulomb", "offset")
ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, make_terms(ROBOT, friction=FRICTION))


def log(seed: int = 0, seconds: float = 12.0, rate: float = 200.0, noise: float = 0.002) -> Recording:
    """Three joints along random sines, torques by inverse dynamics."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2 * np.pi * np.array([0.1, 0.25, 0.4, 0.55])
    a, phase = rng.uniform(0.1, 0.5, (3, 4)), rng.uniform(0, 6, (3, 4))
    angle = w * t[:, None, None] + phase
    q, dq, ddq = ((a * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    theta = MODEL.parameters.vector(MODEL.parameters.nominal)
    tau = MODEL.inverse_dynamics(theta, q, dq, ddq) + noise * rng.normal(size=q.shape)
    return Recording(t, q, tau, joints=ROBOT.joint_names)


def settings_in(folder: Path) -> RunSettings:
    write_csv(log(0), folder / "one.csv")
    write_csv(log(1), folder / "two.csv")
    return RunSettings(robot="arm3r", logs=(str(folder / "one.csv"),), validate_on=(str(folder / "two.csv"),),
                       model=ModelSettings(friction=FRICTION), prepare={"cutoff": 20.0}, method="wls",
                       simulation={"run": False})


@pytest.fixture
def settings(tmp_path) -> RunSettings:
    return settings_in(tmp_path)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Run:
    """One run for the tests that only read it."""
    return run(settings_in(tmp_path_factory.mktemp("found")))


def test_a_run_finds_the_truth_and_predicts_another_log(found):
    truth = found.problem.base.reduce(MODEL.parameters.nominal)
    assert np.all(np.abs(found.estimate.values - truth) < 4 * found.estimate.std)
    assert found.validations[0].total.relative_error < 2.0
    assert found.cross is not None and len(found.verdict.findings) > 0


def test_a_run_file_repeats_to_the_byte(found, tmp_path):
    first = save(found, tmp_path / "first")
    again = run(RunSettings.load(first["settings"]))
    second = save(again, tmp_path / "second", report=False)
    assert Path(first["parameters"]).read_bytes() == Path(second["parameters"]).read_bytes()
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == ["estimate.npz", "manifest.json", "parameters.toml", "regression.npz", "report.html", "robot.xml",
                     "run.toml"]


def test_a_folder_can_move_with_its_logs(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = settings.model_copy(update={"logs": ("one.csv",), "validate_on": ("two.csv",), "method": "auto"})
    found = run(relative)
    save(found, "out", report=False)
    assert tomllib.loads(Path("out/run.toml").read_text())["logs"] == ["../one.csv"]
    (tmp_path / "elsewhere").mkdir()
    for name in ("out", "one.csv", "two.csv"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    again = run(RunSettings.load("elsewhere/out/run.toml"))
    assert again.settings.method == "auto" and again.estimate.method == found.estimate.method
    assert again.estimate.values.tobytes() == found.estimate.values.tobytes()


def test_a_saved_result_predicts_like_the_run_that_made_it(found, tmp_path):
    save(found, tmp_path / "out", report=False)
    estimate, again = load(tmp_path / "out")
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 3))
    assert np.array_equal(estimate.predict(q, dq, ddq), found.estimate.predict(q, dq, ddq))
    assert again.robot == "arm3r" and again.model.friction == FRICTION


def test_an_earlier_result_is_not_overwritten(found, tmp_path):
    save(found, tmp_path / "out", report=False)
    with refused(DynidError, "folder-in-use", "out"):
        save(found, tmp_path / "out")
    save(found, tmp_path / "out", force=True, report=False)


def test_facts_are_plain_json_with_the_promised_keys(found):
    said = facts(found)
    json.dumps(said, allow_nan=False)
    assert {"method", "robot", "parameters", "relative_error", "relative_error_per_joint", "rank", "condition",
            "consistent", "validation", "elapsed_s"} <= set(said)
    assert {"value", "std", "rel_std"} <= set(said["parameters"]["Fc1"])
    assert {"relative_error", "relative_error_per_joint"} <= set(said["validation"][0])


def test_an_estimate_stands_where_its_cross_validation_fails(settings, monkeypatch):
    """With a block of time left out a constrained fit may not converge, though with all of them it did."""
    def fails(*given, **options):
        raise NotPossibleError("the constrained fit did not converge")

    monkeypatch.setattr(import_module("dynid.runs.identification"), "cross_validate", fails)
    found = run(settings)
    assert found.cross is None and found.validations[0].total.relative_error < 2.0
    assert found.notes[-1].startswith("cross-validation is not available, "
                                      "because") and "did not converge" in found.notes[-1]


# -- bad logs ----------------------------------------------------------------------------------------
def text(tmp_path: Path) -> list[str]:
    return (tmp_path / "one.csv").read_text().splitlines()


@pytest.mark.parametrize(("spoil", "message"), [
    (lambda lines: [*lines[:99], lines[99].replace(lines[99].split(",")[1], "1e282"), *lines[100:]],
     ("bad-row", "row 100")),
    (lambda lines: [*lines[:99], lines[99].replace(lines[99].split(",")[2], "nan"), *lines[100:]],
     ("bad-row", "row 100")),
    (lambda lines: [*lines[:-1], lines[-1][:20]], ("bad-row", f"row {12 * 200 + 1}")),
    (lambda lines: [*lines[:50], *lines[40:]], ("time-backwards", "row 51")),
    (lambda lines: [lines[0].replace("position_joint2", "temperature"), *lines[1:]],
     ("no-column", "joint2")),
])
def test_a_bad_row_is_named_with_its_file(settings, tmp_path, spoil, message):
    (tmp_path / "one.csv").write_text("\n".join(spoil(text(tmp_path))) + "\n")
    with refused(RecordingError, *message, "one.csv"):
        run(settings)


def test_duplicated_stamps_are_dropped_and_counted(settings, tmp_path):
    lines = text(tmp_path)
    lines = [*lines[:50], lines[49], lines[49], *lines[50:]]
    (tmp_path / "one.csv").write_text("\n".join(lines) + "\n")
    found = run(settings)
    assert any("2 " in note and "repeat" in note for note in found.notes), found.notes


def test_degrees_given_as_radians_are_noticed(settings, tmp_path):
    one = log(0)
    write_csv(replace(one, q=np.degrees(one.q)), tmp_path / "one.csv")
    with refused(RecordingError, "bad-recording", "one.csv", "--set log.unit=deg"):
        run(settings)


def test_torque_all_zero_is_said(settings, tmp_path):
    one = log(0)
    write_csv(replace(one, tau=0 * one.tau), tmp_path / "one.csv")
    with refused(NotPossibleError, "torques-zero", "one.csv"):
        run(settings)
    write_csv(replace(one, tau=one.tau * [1, 0, 1]), tmp_path / "one.csv")
    [silent] = [one for one in run(settings).verdict.findings if one.code == "torque-zero"]
    assert silent.joints == ROBOT.joint_names[1:2] and silent.severity == "fatal"


def test_ten_samples_are_too_few(settings, tmp_path):
    one = log(0)
    write_csv(one.between(0.0, 0.0499), tmp_path / "one.csv")
    with refused(NotPossibleError, "not-possible", "one.csv"):
        run(settings)


def test_a_motion_of_one_joint_says_what_is_missing(settings, tmp_path):
    """Joints 1 and 2 stand still: their inertia and friction cannot come out, and the verdict says which."""
    t = np.arange(2400) / 200
    q = np.zeros((2400, 3))
    q[:, 2] = 0.8 * np.sin(2 * np.pi * 0.3 * t) + 0.3 * np.sin(2 * np.pi * 0.7 * t)
    dq, ddq = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    tau = MODEL.inverse_dynamics(MODEL.parameters.nominal, q, dq, ddq)
    tau += 0.002 * np.random.default_rng(0).normal(size=q.shape)
    write_npz(Recording(t, q, tau, joints=ROBOT.joint_names), tmp_path / "one.npz")
    found = run(settings.model_copy(update={"logs": (str(tmp_path / "one.npz"),), "validate_on": ()}))
    known = dict(zip(found.estimate.names, found.estimate.identified, strict=True))
    assert not known["Fv1"] and not known["Fc2"] and known["Fc3"]
    still = [one.joints for one in found.verdict.findings if one.code == "joint-at-rest"]
    assert still == [ROBOT.joint_names[:2]]
    assert "Fv1" in [name for one in found.verdict.of_kind("not-excited") for name in one.parameters]


# -- settings ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "message"), [
    ("robot = 'arm3r'", ("wrong-setting", "'logs'")), ("robot = 'arm3r'\nlogs = []", ("wrong-setting", "'logs'")),
    ("robot = 'arm3r'\nlogs = ['a.csv']\nspeed = 3", ("unknown-setting", "'speed'")),
    ("robot = 'arm3r'\nlogs = ['a.csv']\n[model]\nrotors = true", ("unknown-setting", "'model.rotors'")),
    ("robot =", ("not-toml",)),
])
def test_bad_run_files(tmp_path, text, message):
    (tmp_path / "run.toml").write_text(text)
    with refused(DynidError, *message, "run.toml"):
        RunSettings.load(tmp_path / "run.toml")


def test_missing_files_and_unknown_names(tmp_path):
    base = {"robot": "arm3r", "logs": [str(tmp_path / "no.csv")]}
    for change, message in (({}, (RecordingError, "no-such-file", "no.csv")),
                            ({"robot": "arm3"}, (RobotError, "unknown-robot", "'arm3'")),
                            ({"prepare": {"cutof": 3}}, (RecordingError, "wrong-setting", "[prepare]", "'cutof'")),
                            ({"model": {"friction": ["sticky"]}},
                             (ModelError, "bad-model", "'sticky'"))):
        with refused(*message):
            run(RunSettings.from_values({**base, **change}))


def test_an_unknown_method_or_option_lists_what_there_is(settings):
    with refused(ModelError, "unknown-method", "'wsl'", "'wls'"):  # a similar name is suggested alone
        run(settings.model_copy(update={"method": "wsl"}))
    with refused(ModelError, "unknown-method", "'zzz'") as problem:
        run(settings.model_copy(update={"method": "zzz"}))
    assert all(f" {name}" in str(problem.value) for name in methods())
    with refused(ModelError, "unknown-option", "wls", "speed"):
        run(settings.model_copy(update={"method": "wls", "options": {"speed": 1}}))


def test_toml_is_read_back_as_written():
    values = {"name": 'a "quoted" \\ name\n', "x": 0.1 + 0.2, "big": 1e300, "n": 3, "yes": True, "list": [1.5, "b"],
              "rows": [[1, 2], [3, 4]], "table": {"a b": {"deep": -1e-12}}, "places": [{"file": "x.csv", "width": 7}]}
    assert tomllib.loads(dumps(values)) == values


def test_friction_is_chosen_and_the_choice_is_kept(settings, tmp_path):
    asked = settings.model_copy(update={"model": ModelSettings(friction=("auto",))})
    result = run(asked)
    assert result.friction is not None
    said = facts(result)["friction"]
    assert set(said["joints"]) == set(ROBOT.joint_names)
    assert [table["kind"] for table in result.settings.model.terms] == [table["kind"] for table in said["terms"]]
    save(result, tmp_path / "out", report=False)
    again = RunSettings.load(tmp_path / "out" / "run.toml")
    assert again.model.friction == () and [dict(one) for one in again.model.terms] == said["terms"]
    assert np.array_equal(load(tmp_path / "out")[0].values, result.estimate.values)


def test_a_choice_of_friction_stands_alone(settings):
    both = settings.model_copy(update={"model": ModelSettings(friction=("auto", "viscous"))})
    with refused(ModelError, "bad-model", "'auto'"):
        run(both)


@pytest.fixture
def unnamed(settings, tmp_path):
    """The settings of a robot whose file names no friction, as a URDF does not."""
    text = Path(str(files("dynid.robot") / "builtin" / "arm3r.toml")).read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text[:text.index("[[terms]]")], encoding="utf-8")
    return settings.model_copy(update={"robot": str(own), "model": ModelSettings()})


def test_friction_that_nobody_names_is_chosen(unnamed):
    found = run(unnamed)
    assert found.friction is not None
    said = facts(found)
    assert said["friction"]["terms"] and "friction" in found.verdict.summary.chosen
    assert any("so it is chosen from the logs" in note for note in said["notes"])


@pytest.mark.parametrize(("changes", "kinds"), [
    ({"model": ModelSettings(friction=("none",))}, set()),
    ({"model": ModelSettings(own_terms=False)}, set()),
    ({"model": ModelSettings(friction=("viscous",))}, {"viscous"}),
    ({"gravity": "estimate"}, {"viscous", "coulomb", "offset", "rotor"}),
    ({"prepare": {"equations": "kernel"}}, {"viscous", "coulomb", "offset", "rotor"})],
    ids=["none", "no-terms", "named", "gravity", "kernel"])
def test_friction_that_is_not_chosen(unnamed, changes, kinds):
    """None where that is asked for, what is named, and the usual one where it cannot be chosen."""
    found = run(unnamed.model_copy(update=changes))
    assert found.friction is None
    assert {term.kind for term in found.model.terms} - {"rigid"} == kinds


def test_no_friction_stands_alone(unnamed):
    with refused(ModelError, "friction-none-and-others"):
        run(unnamed.model_copy(update={"model": ModelSettings(friction=("none", "viscous"))}))
