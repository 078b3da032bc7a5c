"""The door: help, version, wrong calls, and how errors leave."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dynid as package
from dynid.cli.main import COMMANDS, app
from dynid.errors import ModelError, NotPossibleError

HEAVY = {"numpy", "scipy", "numba", "llvmlite", "clarabel", "plotly", "jinja2", "pyarrow"}


def test_help_names_every_command_and_so_does_no_argument(dynid):
    shown = dynid("--help")
    assert (shown.code, shown.err) == (0, "")
    assert all(name in shown.out for name in COMMANDS)
    assert dynid() == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(dynid, name):
    shown = dynid(name, "--help")
    assert shown.code == 0 and f"dynid {name}" in shown.out


def test_help_imports_nothing_heavy():
    code = ("import sys\nfrom dynid.cli.main import main\n"
            "try:\n    main(['--help'])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded and not loaded & HEAVY


def test_the_package_itself_imports_nothing_heavy():
    code = "import sys, dynid; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {*HEAVY, "typer", "rich"}


def test_python_m_dynid_is_the_same_program():
    done = subprocess.run([sys.executable, "-m", "dynid", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"dynid {package.__version__}\n"


def test_version(dynid):
    assert dynid("version").out.startswith(f"dynid     {package.__version__}\n")


@pytest.mark.parametrize(("call", "sentence"), [
    (["--bogus"], "Error: No such option: --bogus"),
    (["inspekt"], "Error: No such command 'inspekt'. Did you mean 'inspect'?"),
    (["inspect"], "Error: Missing argument 'ROBOT'."),
    (["inspect", "arm3r", "--frictoin", "viscous"], "Error: No such option: --frictoin"),
    (["inspect", "arm3r", "--order", "random"], "Error: Invalid value for '--order': 'random' is not one of"),
    (["robots", "extra"], "Error: Got unexpected extra argument(s) (extra)"),
])
def test_a_wrong_call_is_one_sentence_and_exit_code_2(dynid, call, sentence):
    shown = dynid(*call)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith(sentence) and shown.err.count("\n") == 1


@pytest.mark.parametrize(("error", "code"), [(ModelError("too short"), 2), (NotPossibleError("too short"), 1),
                                             (KeyboardInterrupt(), 130)])
def test_errors_leave_without_traceback(dynid, monkeypatch, error, code):
    def refuse(name, fixed_base=None):
        raise error

    monkeypatch.setattr("dynid.robot.robot_files.load", refuse)
    shown = dynid("inspect", "arm3r")
    assert (shown.code, shown.out) == (code, "")
    assert shown.err == ("Stopped.\n" if code == 130 else "Error: too short\n")


def test_the_app_is_reachable_for_shells_and_docs():
    assert app.registered_callback is not None


def test_a_run_loads_no_library_it_does_not_use() -> None:
    """Each of these takes a tenth of a second or more to import; what needs one imports it where it is used."""
    heavy = ("scipy.signal", "scipy.stats", "scipy.interpolate", "scipy.optimize", "scipy.spatial", "scipy.ndimage",
             "pandas", "sympy", "distributed")
    found = subprocess.run([sys.executable, "-c", "import sys, dynid.runs.results, dynid.validate, dynid.report\n"
                            f"print(*(name for name in {heavy} if name in sys.modules))"],
                           capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
