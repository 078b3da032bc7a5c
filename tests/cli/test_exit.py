"""End of the process: exit codes, buffered output and functions registered for the exit."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("call", "code"), [("['--version']", 0), ("['--bogus']", 2)])
@pytest.mark.parametrize("first", ["", "atexit.register(print, 'before'); "])
def test_registered_functions_run_and_the_exit_code_is_kept(call, code, first):
    script = (f"import atexit, sys; {first}from dynid.__main__ import main; import dynid.cli.main as cli; "
              "real = cli.main; cli.main = lambda: (atexit.register(print, 'after'), real())\n"
              f"sys.argv[1:] = {call}; main()")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.splitlines()[-2 if first else -1:] == ["after", *(["before"] if first else [])]
    assert done.stdout.startswith("dynid ") == (code == 0)
