"""The main job at the command line: identify, validate, compare, demo, reproduce."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import fourier

from dynid.estimate import methods
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.recording.write import write_csv
from dynid.robot import Robot

FRICTION = "viscous,coulomb,offset"
ONE_LINK = """<robot name="one"><link name="base"/>
<link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
QUICK = ("--method", "wls", "--no-simulation")  # where neither the choice nor the simulation is tested


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A folder with two logs of the 3R arm and one of a weak motion."""
    folder = tmp_path_factory.mktemp("logs")
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=FRICTION.split(",")))
    t = np.arange(2000) / 200
    for k, name in enumerate(("one.csv", "two.csv")):
        rng = np.random.default_rng(k)
        w = 2 * np.pi * np.array([0.1, 0.3, 0.5])
        angle, a = w * t[:, None, None] + rng.uniform(0, 6, (3, 3)), rng.uniform(0.2, 0.6, (3, 3))
        q, dq, ddq = ((a * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
        tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq) + 0.005 * rng.normal(size=q.shape)
        write_csv(Recording(t, q, tau, joints=robot.joint_names), folder / name)
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, friction=FRICTION.split(",")))
    q, dq, ddq = (0.1 * x for x in fourier(7, seconds=10.0, harmonics=2))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.3 * np.sin(20.0 * q) + 0.2 * rng.standard_t(2, q.shape)
    write_csv(Recording(t, q, tau, joints=robot.joint_names), folder / "weak.csv")
    return folder


@pytest.fixture
def logs(written, tmp_path, monkeypatch) -> Path:
    """The working directory of a test, with a copy of the logs."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_motor_that_turns_two_joints_is_stated_on_screen(dynid, logs):
    robot, rng = Robot.builtin("arm3r"), np.random.default_rng(3)
    model = Model(robot, make_terms(robot, friction=FRICTION.split(","), rotor=True,
                                    extra=[{"kind": "coupled-wrist", "joints": [2, 3]}]))
    values = {"Fv": 0.8, "Fc": 0.6, "Fo": 0.1, "Ia": 0.05, "Iam": 0.03, "Fvm": 0.5, "Fcm": 0.9}
    theta = [values.get(item.symbol, item.nominal) for item in model.parameters]
    t = np.arange(4000) / 200
    w = 2 * np.pi * np.array([0.13, 0.31, 0.47])
    angle, a = w * t[:, None, None] + rng.uniform(0, 6, (3, 3)), rng.uniform(0.2, 0.6, (3, 3))
    q, dq, ddq = ((a * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.02 * rng.normal(size=q.shape)
    write_csv(Recording(t, q, tau, joints=robot.joint_names), logs / "coupled.csv")
    own, other = robot.joint_names[2], robot.joint_names[1]
    for options in ((), ("--full",)):
        shown = dynid("identify", "arm3r", "coupled.csv", *QUICK, *options)
        assert f"Found: the motor of {own} also turns with {other} (" in " ".join(shown.out.split())
    assert "Found:" not in dynid("identify", "arm3r", "one.csv", *QUICK).out


def test_a_robot_of_robot_descriptions_is_named_as_there(dynid, logs, monkeypatch):
    """A small fake of the package with its cache: a module per robot, with the path of the URDF."""
    cache, package = logs / "cache" / "panda", logs / "site" / "robot_descriptions"
    for folder in (cache, package):
        folder.mkdir(parents=True)
    (cache / "panda.urdf").write_text(ONE_LINK, encoding="utf-8")
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "panda_description.py").write_text(f"URDF_PATH = {str(cache / 'panda.urdf')!r}\n", encoding="utf-8")
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(logs / "site"))
    robot = Robot.from_urdf(cache / "panda.urdf")
    model = Model(robot, make_terms(robot))
    q, dq, ddq = fourier(1, seconds=10.0, harmonics=2)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    write_csv(Recording(np.arange(len(q)) / 200, q, tau, joints=("hinge",)), logs / "log.csv")
    shown = dynid("identify", "panda_description", "log.csv", "--friction", "none", *QUICK, "--json")
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]
    assert shown.code == 0, shown.err
    found = {name: one["value"] for name, one in json.loads(shown.out)["parameters"].items()}
    # About a horizontal axis: the moment 2 kg times 0.1 m, and the inertia 0.02 kg m^2 + 2 kg (0.1 m)^2.
    assert sorted(abs(value) for value in found.values())[-2:] == pytest.approx([0.04, 0.2], rel=0.02)


def test_one_command_from_robot_and_log_to_results(dynid, logs):
    shown = dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, "--validate", "two.csv", "-o", "out",
                  "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert said["rank"] == 24 and said["relative_error"] < 2 and said["validation"][0]["relative_error"] < 2
    assert said["parameters"]["Fc1"]["value"] == pytest.approx(0.245, abs=5 * said["parameters"]["Fc1"]["std"])
    codes = [one["code"] for one in said["verdict"]["findings"]]
    assert codes[0] == "identified" and "validation-error" in codes and said["verdict"]["refit"] is None
    assert set(said["outputs"]) >= {"parameters", "regression", "report", "settings"}
    assert all(Path(path).is_file() for path in said["outputs"].values())


def test_people_see_verdict_parameters_and_errors(dynid, logs):
    shown = dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, "--cutoff", "15", *QUICK, "--full")
    assert shown.code == 0 and all(part in shown.out for part in ("24 base parameters", "torque error, %", "Fc3"))


def test_a_whole_run_loads_no_library_it_does_not_use(logs):
    """Each takes a tenth of a second or more to load, and a run with its verdict and report about one second more."""
    heavy = ("scipy.signal", "scipy.stats", "scipy.optimize", "scipy.special", "scipy.interpolate", "scipy.linalg",
             "pandas", "dynid.payloads", "dynid.online")
    words = ["identify", "arm3r", "one.csv", "--friction", FRICTION, "--method", "wls", "-o", "out", "--json"]
    code = (f"import sys\nfrom dynid.cli.main import main\ntry:\n    main({words})\nexcept SystemExit as left:\n    "
            f"print(left.code, *(name for name in {heavy} if name in sys.modules), file=sys.stderr)")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert said.splitlines()[-1].split() == ["0"]


def test_people_see_one_screen(dynid, logs, monkeypatch):
    """A weak motion: a page of findings, of which one screen shows the worst and counts the others."""
    monkeypatch.setenv("COLUMNS", "80")
    call = ("identify", "kuka-lwr4", "weak.csv", "--friction", FRICTION, "--method", "wls", "-o", "out", "--force")
    shown = dynid(*call, "--full")
    assert shown.code == 0, shown.err
    everything = shown.out.splitlines()
    screen = dynid(*call).out.splitlines()
    assert len(everything) > 90 and 15 < len(screen) <= 30
    assert all(len(line) <= 80 for line in screen if "dynid excite" not in line)
    assert sum(line.startswith("- ") for line in screen) <= 5
    text = " ".join(screen)
    assert text.startswith("Not usable") and ("Cause:" in text) != ("dynid excite" in text)  # a cause comes first
    assert "Results in out" in text and "moving" in text and "raw" in text and "Method: " in text
    page = Path("out/report.html").read_text()
    assert "dynid excite kuka-lwr4 --improve out -o improved.csv" in page


def test_without_a_folder_people_are_told_how_to_see_more(dynid, logs):
    shown = dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, "--set", "prepare.cutoff=15", *QUICK).out
    assert "--full" in shown and "-o FOLDER" in shown and len(shown.splitlines()) <= 30


def test_validation_says_when_a_model_is_worth_nothing(dynid, logs):
    dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, "--set", "prepare.cutoff=15", *QUICK, "-o", "out")
    log = read("two.csv")
    write_csv(replace(log, tau=-log.tau), "inverted.csv")
    said = json.loads(dynid("validate", "out", "inverted.csv", "--no-simulation", "--json").out)
    assert said["validation"][0]["relative_error"] > 190
    assert [one["code"] for one in said["findings"]] == ["worse-than-zero"]
    assert "zero torque" in dynid("validate", "out", "inverted.csv", "--no-simulation").out
    assert json.loads(dynid("validate", "out", "two.csv", "--no-simulation", "--json").out)["findings"] == []


def test_a_shape_that_is_not_known_is_null_in_json(dynid, logs):
    """The logs' friction has no Stribeck part, so its shape has no deviation to speak of."""
    others = ", ".join(f"{{kind='{kind}', joints=[2, 3]}}" for kind in FRICTION.split(","))
    shown = dynid("identify", "arm3r", "one.csv", "--method", "sls", "--no-simulation", "--set", "prepare.cutoff=15",
                  "--set", f"model.terms=[{{kind='stribeck', free=['alpha'], joints=[1]}}, {others}]", "-o", "out",
                  "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out, parse_constant=pytest.fail)
    assert set(said["shape"]["alpha1"]) == {"value", "std", "at_limit"} and said["shape"]["alpha1"]["std"] is None
    assert "std" not in tomllib.loads(Path("out/parameters.toml").read_text())["shape"]["alpha1"]


def test_a_run_file_and_what_is_given_on_top(dynid, logs):
    Path("run.toml").write_text('robot = "arm3r"\nlogs = ["one.csv"]\n[model]\nfriction = ["viscous", "coulomb"]\n')
    said = json.loads(dynid("identify", "run.toml", "--json").out)
    assert said["rank"] == 21 and said["method"] == said["choice"]["method"]
    assert [one["method"] for one in said["choice"]["candidates"]] == ["wls", "pc-wls", "pc-ridge"]
    said = json.loads(dynid("identify", "run.toml", "--method", "ols", "--set", "model.rotor=true", "--json").out)
    assert said["method"] == "ols" and "Ia2" in " ".join(one["expression"] for one in said["parameters"].values())


def test_an_earlier_result_predicts_another_log(dynid, logs):
    assert dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, *QUICK, "-o", "out").code == 0
    said = json.loads(dynid("validate", "out", "two.csv", "--json").out)
    assert said["validation"][0]["relative_error"] < 2 and len(said["validation"][0]["relative_error_per_joint"]) == 3
    assert "two.csv" in dynid("validate", "out", "two.csv").out
    again = dynid("identify", "arm3r", "one.csv", "--friction", FRICTION, "-o", "out")
    assert again.code == 2 and again.error == "folder-in-use" and "--force" in again.err


def test_a_result_is_simulated_on_request_and_by_default(dynid, logs):
    call = ("identify", "arm3r", "one.csv", "--friction", FRICTION, "--method", "pc-wls")
    said = json.loads(dynid(*call, "--validate", "two.csv", "-o", "out", "--json").out)
    (one,) = said["simulation"]
    assert one["source"].endswith("two.csv") and one["mode"] == "torque-driven" and one["reached"] == 1.0
    assert len(one["position_error_per_joint"]) == 3 and max(one["position_error_per_joint"]) < 5.0
    (again,) = json.loads(dynid("validate", "out", "two.csv", "--json").out)["simulation"]
    assert again["position_rms_per_joint"] == pytest.approx(one["position_rms_per_joint"], rel=1e-6)
    (short,) = json.loads(dynid("validate", "out", "two.csv", "--horizon", "0.1", "--json").out)["simulation"]
    assert short["horizon"] == 0.1 and short["position_error"] < again["position_error"]
    for command in (("validate", "out", "two.csv"), call):
        assert json.loads(dynid(*command, "--no-simulation", "--json").out)["simulation"] == []
        assert "simulated position, %" in dynid(*command, *(["--full"] if command == call else [])).out
    assert "Open-loop simulation drifts by" in dynid(*call).out
    shown = dynid("validate", "out", "two.csv", "--horizon", "100")
    assert shown.code == 0 and "a horizon of 100 s is longer than the log" in shown.out


def test_methods_side_by_side(dynid, logs):
    shown = dynid("compare", "arm3r", "one.csv", "--methods", "ols,wls,irls", "--set", 'model.friction=["viscous"]',
                  "--set", 'validate_on=["two.csv"]', "-o", "all.html", "--json")
    assert shown.code == 0, shown.err
    said = json.loads(shown.out)
    assert list(said["methods"]) == ["ols", "wls", "irls"] and Path("all.html").is_file()
    assert said["methods"]["ols"]["relative_error"] <= said["methods"]["wls"]["relative_error"]
    assert set(said["parameters"]["Fv1"]) == {"ols", "wls", "irls"}
    assert all(Path(one["simulation"][0]["source"]).name == "two.csv" for one in said["methods"].values())
    assert "simulated position, %" in dynid("compare", "arm3r", "one.csv", "--methods", "ols").out
    assert "irls" in dynid("compare", "arm3r", "one.csv", "--methods", "ols,irls").out


@pytest.mark.parametrize(("arguments", "error"), [
    (("identify", "arm3r"), "no-log"),
    (("identify", "arm3r", "three.csv"), "no-such-file"),
    (("identify", "nowhere.toml"), "no-such-file"),
    (("identify", "arm3r", "one.csv", "--method", "wlss"), "unknown-method"),
    (("identify", "arm3r", "one.csv", "--set", "cutoff"), "not-key-value"),
    (("identify", "arm3r", "one.csv", "--set", "prepare.cutof=3"), "wrong-setting"),
    (("identify", "arm3r", "one.csv", "--mapping", "no.toml"), "unreadable-mapping"),
    (("identify", "arm3r", "one.csv", "--horizon", "-1"), "wrong-setting"),
    (("identify", "arm3r", "one.csv", "--set", "simulation.steps=3"), "unknown-setting"),
    (("validate", ".", "one.csv"), "no-result"),
    (("compare", "arm3r", "one.csv", "--methods", ","), "no-method"),
    (("reproduce", "nothing"), "unknown-name"),
])
def test_wrong_calls_end_with_one_sentence(dynid, logs, arguments, error):
    shown = dynid(*arguments)
    assert shown.code == 2 and shown.out == ""
    assert shown.error == error and shown.err.count("\n") == 1 and "Traceback" not in shown.err


def test_methods_are_listed(dynid):
    said = json.loads(dynid("methods", "--json").out)["methods"]
    assert {"ols", "wls", "irls", "tls", "ml", "ridge", "sls"} <= set(said)
    assert {name: one["title"] for name, one in said.items()} == {name: one.title for name, one in methods().items()}
    assert said["sls"]["needs"] == ["data", "shape", "torques"] and said["pc-wls"]["gives"] == ["theta"]
    assert "span" in said["sls"]["options"] and "wls" in dynid("methods").out


@pytest.mark.slow
def test_stated_deviations_are_right(dynid):
    assert all(json.loads(dynid("reproduce", "simionato-coefficients", "--json").out)["checks"].values())


@pytest.mark.parametrize("name", ["emps-ls", "tx40-ls", "lwr4-wls", "panda-halves"])
def test_published_results_on_real_logs(dynid, data, name):
    data("README.md")
    shown = dynid("reproduce", name, "--json")
    checks = json.loads(shown.out)["checks"]
    assert shown.code == 0 and all(checks.values()), [check for check, holds in checks.items() if not holds]
