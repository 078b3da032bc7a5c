"""The first screen of a result: grade, causes first, what to type, exit codes; tables and help of 80 columns."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from motions import fourier

from dynid.cli.main import COMMANDS
from dynid.cli.output import table
from dynid.cli.plain_console import PlainConsole
from dynid.cli.tables import simulation_sentence
from dynid.cli.warmup import STEPS
from dynid.excitation import excite
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs import RunSettings
from dynid.runs.comparison import compare
from dynid.runs.logs import found_logs_sentence

QUICK = ("--method", "wls", "--friction", "viscous,coulomb,offset", "--no-simulation")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log of the three-joint arm, and one whose second torque has the wrong sign."""
    monkeypatch.chdir(tmp_path)
    model = Model(Robot.builtin("arm3r"), make_terms(Robot.builtin("arm3r"), friction=("viscous", "coulomb", "offset")))
    q, dq, ddq = fourier(3, seconds=20.0)
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.01 * np.random.default_rng(0).normal(size=tau.shape)
    t = np.linspace(0.0, 20.0, len(q), endpoint=False)
    for name, sign in (("good.csv", 1.0), ("sign.csv", np.array([1.0, -1.0, 1.0]))):
        write_csv(Recording(t, q, tau * sign, joints=model.robot.joint_names), name)
    return tmp_path


def test_a_good_model_is_called_good_first(dynid, log):
    shown = dynid("identify", "arm3r", "good.csv", *QUICK, "--strict")
    assert shown.code == 0 and shown.out.startswith("Good model: the torque error is ")
    assert shown.out.splitlines()[1].split()[1:3] == ["of", "24"]


def test_a_wrong_sign_is_not_usable_named_first_and_corrected_by_what_is_typed(dynid, log):
    shown = dynid("identify", "arm3r", "sign.csv", *QUICK)
    assert shown.code == 0 and shown.out.startswith("Not usable: ") and "All " not in shown.out.splitlines()[0]
    findings = [line for line in shown.out.splitlines() if line.startswith("- ")]
    assert "joint 2" in findings[0] and len(findings) <= 5
    assert dynid("identify", "arm3r", "sign.csv", *QUICK, "--strict").code == 3
    [typed] = [line.partition("command: ")[2] for line in shown.out.splitlines() if "Add to the command" in line]
    again = dynid("identify", "arm3r", "sign.csv", *QUICK, "--strict", *shlex.split(typed))
    assert again.code == 0 and again.out.startswith("Good model: ")


def test_the_report_states_the_options_that_correct_a_cause(dynid, log):
    shown = dynid("identify", "arm3r", "sign.csv", *QUICK, "-o", "out")
    [typed] = [line.partition("command: ")[2] for line in shown.out.splitlines() if "Add to the command" in line]
    page = unescape(Path("out", "report.html").read_text(encoding="utf-8"))
    verdict = page[page.index('id="verdict"'):page.index('id="torques"')]
    assert f"<code>{typed}</code>" in verdict
    assert "base parameters" not in verdict and "Identified parameters" not in verdict  # they are not meaningful


def test_a_terminal_shows_bold_headers_and_options_on_one_line(dynid, log, monkeypatch):
    """Codes of styles reach the terminal as such, and what is copied from 40 columns has no line break."""
    plain = dynid("identify", "arm3r", "sign.csv", *QUICK).out
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm-256color"), ("COLUMNS", "40")):
        monkeypatch.setenv(name, value)
    shown = dynid("identify", "arm3r", "sign.csv", *QUICK).out
    assert "\x1b[1mtorque " in shown and "\\x1b" not in shown
    [typed] = [line for line in plain.splitlines() if "Add to the command" in line]
    assert typed in shown.splitlines() and len(typed) > 40
    assert "\n\n" not in shown


@pytest.mark.parametrize(("torque", "options"), [(1.0, 2), (-1.0, 1)])
def test_reversed_positions_are_corrected_by_what_is_typed(dynid, log, torque, options):
    """Alone, or with their torques: `log.sign` reverses both, so the first needs `log.torque_sign` as well."""
    table = np.genfromtxt("good.csv", delimiter=",", names=True)
    for name in table.dtype.names:
        if name.endswith("2"):
            table[name] *= torque if name.startswith("torque") else -1.0
    np.savetxt("wrong.csv", table, delimiter=",", header=",".join(table.dtype.names), comments="")
    shown = dynid("identify", "arm3r", "wrong.csv", *QUICK)
    assert shown.out.startswith("Not usable: ") and "position sign" in shown.out
    [typed] = [line.partition("command: ")[2] for line in shown.out.splitlines() if "Add to the command" in line]
    assert typed.count("--set") == options
    again = dynid("identify", "arm3r", "wrong.csv", *QUICK, "--strict", *shlex.split(typed))
    assert again.code == 0 and again.out.startswith("Good model: ")


@pytest.mark.parametrize(("factors", "words"), [
    ((1.0, 2.0, 1.0), "drive gain"), ((150.0, 60.0, 300.0), "torque unit")])
def test_scales_of_joints_are_corrected_by_what_is_typed(dynid, log, factors, words):
    """One gain that is wrong by two, and raw counts with another factor for each joint."""
    table = np.genfromtxt("good.csv", delimiter=",", names=True)
    for name, factor in zip([one for one in table.dtype.names if one.startswith("torque")], factors, strict=True):
        table[name] *= factor
    np.savetxt("scaled.csv", table, delimiter=",", header=",".join(table.dtype.names), comments="")
    shown = dynid("identify", "arm3r", "scaled.csv", *QUICK)
    assert shown.out.startswith("Not usable: ") and words in shown.out.splitlines()[0]
    [typed] = [line.partition("command: ")[2] for line in shown.out.splitlines() if "Add to the command" in line]
    assert dynid("identify", "arm3r", "scaled.csv", *QUICK, *shlex.split(typed)).out.startswith("Good model: ")


def test_a_folder_names_the_logs_that_are_fitted_together(dynid, log):
    """The folder holds a good log and one with a wrong sign: the first screen names both, and how to take one."""
    (log / "later").mkdir()
    shutil.copy("good.csv", log / "later" / "copy.csv")
    shown = " ".join(dynid("identify", "arm3r", ".", *QUICK).out.split())
    note = shown.partition("Note: Found in .")[2]
    assert "good.csv and sign.csv" in note and "Left out: copy.csv" in note and "give their files" in note
    named = RunSettings.from_values({"robot": "arm3r", "logs": ["good.csv", "sign.csv"]})
    assert found_logs_sentence(named, ["good.csv", "sign.csv"], []) == ""


def test_torques_in_newton_millimetres_give_no_robot_file_and_the_reason(dynid, log):
    """A thousand times the torques: no robot of that mass exists, and the screen states why its file is missing."""
    table = np.genfromtxt("good.csv", delimiter=",", names=True)
    for name in table.dtype.names:
        if name.startswith("torque"):
            table[name] *= 1000.0
    np.savetxt("nmm.csv", table, delimiter=",", header=",".join(table.dtype.names), comments="")
    shown = dynid("identify", "arm3r", "nmm.csv", *QUICK, "-o", "out")
    assert shown.code == 0 and not list(Path("out").glob("robot.*"))
    assert "robot.xml is not written: " in " ".join(shown.out.split())


def test_json_has_the_grade_and_no_poor_parameter_is_identified(dynid, log):
    said = json.loads(dynid("identify", "arm3r", "good.csv", *QUICK, "--json").out)
    assert said["verdict"]["summary"]["grade"] == "good"
    for one in said["parameters"].values():
        assert one["identified"] == (one["rel_std"] is not None and one["rel_std"] <= 50.0)


def test_an_open_loop_drift_is_explained():
    text = simulation_sentence(70.0, 0.5)
    assert "70 %" in text and "feed-forward" in text and "not for simulation" in text and "integrated twice" in text
    assert "not for" not in simulation_sentence(2.0, 0.5)


def test_the_demonstration_does_the_whole_job_and_a_second_replaces_the_first_but_no_other_folder(
        dynid, log, monkeypatch):
    made = {}

    def once(function):
        """The second demonstration takes motion and comparison of the first, which are the same: both have a seed."""
        def first(*arguments, **options):
            if function not in made:
                made[function] = function(*arguments, **options)
            return made[function]
        return first

    for function in (excite, compare):
        monkeypatch.setattr(f"dynid.runs.demonstration.{function.__name__}", once(function))
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    refused = dynid("demo", "-o", "mine")
    assert refused.code == 2 and refused.error == "folder-in-use"
    said = json.loads(dynid("demo", "-o", "demo", "--json").out)
    assert Path(said["outputs"]["report"]).is_file() and Path("demo/run.toml").is_file()
    assert all(share > 0.95 for share in said["within_three_standard_errors"].values())
    # The noise of the torques alone is 0.4 to 0.5 % of them: no method can predict them better.
    assert all(one["validation"][0] < 0.6 for one in said["methods"].values())
    assert said["parameter_error"]["ols"] > 1.5 * said["parameter_error"]["wls"]
    shown = dynid("demo", "-o", "demo")
    assert shown.code == 0, shown.err
    assert Robot.from_urdf(Path("demo/result/robot.urdf").read_text()).dof == 7
    assert Path("demo/result/report.html").is_file()
    Path("out").mkdir()
    assert shlex.split(dynid("demo", "-o", "demo").out.splitlines()[-1])[-2:] == ["-o", "out1"]
    program, *words = shlex.split(shown.out.splitlines()[-1])
    assert program == "dynid" and words[-2:] == ["-o", "out"]
    Path("out").rmdir()
    again = dynid(*words, "--method", "wls", "--no-simulation")
    assert again.code == 0 and again.out.startswith("Good model") and Path("out/report.html").is_file(), again.err
    errors = [line.split()[-3:] for line in shown.out.splitlines() if line.strip().startswith(("wls", "ols"))]
    assert len(errors) == 2 and errors[0] != errors[1] and "Good model" in shown.out


@pytest.mark.parametrize("words", [("panda_joint1", "acceleration", "velocity", "position", "revolute", "effort"),
                                   ("a", "acceleration of every joint of the robot", "panda_joint1")])
def test_tables_split_no_word_at_80_columns(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    console = PlainConsole()
    with console.capture() as captured:
        console.print(table(["", *words], [(1, *words), (2, *reversed(words))], numbers=[""]))
    shown = captured.get()
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert {word for text in words for word in text.split()} <= set(shown.split())


def test_the_last_column_of_a_wide_table_is_not_cut_off(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    head = ["base parameter", "a", "b", "b - a", "in standard errors"]
    row = ("XX2R_long_name_here + something", "0.1234 ± 0.001", "0.1234 ± 0.00001", "+0.123e-4", "+1.0")
    console = PlainConsole()
    with console.capture() as captured:
        console.print(table(head, [row], numbers=head[1:]))
    shown = captured.get()
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert {word for text in (*head, *row) for word in text.split()} <= set(shown.split())


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS if name not in ("reproduce", "bench"))])
def test_help_has_no_type_beside_a_flag(dynid, command):
    shown = dynid(*command, "--help")
    assert shown.code == 0 and "<bool>" not in shown.out


def test_help_leaves_room_for_its_sentences_at_80_columns(dynid, monkeypatch):
    """An option with two names in the common panel left 18 columns for what the options do."""
    monkeypatch.setenv("COLUMNS", "80")
    [first] = [line for line in dynid("identify", "--help").out.splitlines() if "--friction" in line]
    assert len(first.partition("Friction")[0]) <= 48


@pytest.mark.parametrize(("words", "place", "found"), [("dynid ide", 1, "identify"),
                                                       ("dynid identify --str", 2, "--strict")])
def test_a_shell_completes_commands_and_options(words, place, found):
    environment = {**os.environ, "_DYNID_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    shown = subprocess.run([sys.executable, "-m", "dynid"], env=environment, capture_output=True, text=True, check=True)
    assert found in shown.stdout.split()


def test_a_warm_up_is_of_commands_that_exist():
    assert {step[0] for step in STEPS} <= set(COMMANDS)
    assert {"excite", "simulate", "identify", "payload", "contact", "watch"} <= {step[0] for step in STEPS}


def program_at(path):
    """Write the script that an installation puts beside its Python, which is not on PATH."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom dynid.__main__ import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return path


def typed(line, folder, **environment):
    """Run a line in a shell whose PATH has no dynid."""
    own = {**os.environ, "PATH": "/usr/bin:/bin", "COLUMNS": "80", **environment}
    return subprocess.run(line, shell=True, cwd=folder, env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("started", "path", "expected"), [
    ("env/bin/dynid", "", "env/bin/dynid"), ("{here}/env/bin/dynid", "", "env/bin/dynid"),
    ("env/bin/dynid", "{here}/env/bin", "dynid"), ("dynid", "{here}/env/bin", "dynid"),
    ("dynid", "{here}/link", "dynid"), ("env/bin/dynid", "{here}/other", "env/bin/dynid"),
    ("./dynid", "", "./dynid"), ("../{name}/env/bin/dynid", "", "env/bin/dynid")])
def test_printed_commands_name_the_program_that_runs(tmp_path, started, path, expected):
    program_at(tmp_path / "other" / "dynid")
    (tmp_path / "link").mkdir()
    for script in (tmp_path / "env" / "bin" / "dynid", tmp_path / "dynid"):
        program_at(script).write_text(f"#!{sys.executable}\nfrom dynid.runs.arguments import command_line\n"
                                      "print(command_line('identify', 'two words.csv'))\n")
    (tmp_path / "link" / "dynid").symlink_to(tmp_path / "env" / "bin" / "dynid")
    search = {"PATH": f"{path.format(here=tmp_path)}:/usr/bin:/bin"} if path else {}
    shown = typed(started.format(here=tmp_path, name=tmp_path.name), tmp_path, **search)
    assert shown.stdout == f"{expected} identify 'two words.csv'\n", shown.stderr


@pytest.mark.slow
def test_the_line_after_the_demonstration_and_the_python_of_the_readme_run_as_printed(tmp_path):
    """Started by a path that is not on PATH, without packages that `make demo` does not install."""
    extra = "pandas plotly matplotlib pyarrow mujoco pinocchio rosbags torch jax"
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({extra!r}"
                                                      ".split()))\n")
    search = os.pathsep.join([str(tmp_path / "no"), *filter(None, [os.environ.get("PYTHONPATH")])])
    program_at(tmp_path / ".venv" / "bin" / "dynid")
    demo = typed(".venv/bin/dynid demo", tmp_path, PYTHONPATH=search)
    assert demo.returncode == 0, demo.stderr
    line = demo.stdout.splitlines()[-1]
    assert line.startswith(".venv/bin/dynid identify ")
    shown = typed(line, tmp_path, PYTHONPATH=search)
    assert shown.returncode == 0 and shown.stdout.startswith("Good model"), shown.stderr
    proposed = [line for line in shown.stdout.splitlines() if line.strip().startswith(".venv/bin/dynid excite ")]
    if proposed:
        designed = typed(proposed[0] + " --budget 5", tmp_path, PYTHONPATH=search)
        assert designed.returncode == 0, designed.stderr
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    [block] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "block.py").write_text(block)
    python = typed(f"{sys.executable} block.py", tmp_path, PYTHONPATH=search)
    assert python.returncode == 0 and "N m s/rad" in python.stdout and "Good model" in python.stdout, python.stderr
    commands = re.findall(r"^    dynid (identify .*)$", readme, re.MULTILINE)
    assert commands
    for command in commands:
        shown = typed(f".venv/bin/dynid {command} --force", tmp_path, PYTHONPATH=search)
        assert shown.returncode == 0, shown.stderr


@pytest.mark.slow
def test_after_a_warm_up_nothing_is_compiled(tmp_path):
    """In a cache of its own; kernels of a run on another robot than those of the warm-up come from there."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "200"}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "dynid", *words], env=environment, cwd=tmp_path, text=True,
                              capture_output=True, check=False)

    warm = call("warmup")
    assert warm.returncode == 0 and f"{len(STEPS)} of {len(STEPS)}" in warm.stdout, warm.stderr
    demo = call("demo", "-o", "demo")
    assert demo.returncode == 0 and "Compiling" not in demo.stderr
    contact = call("contact", "demo/result", "demo/other.csv")
    assert contact.returncode == 0 and "Compiling" not in contact.stderr
