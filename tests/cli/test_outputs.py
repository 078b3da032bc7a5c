"""Outputs are tried before the work: a place that cannot be written to ends a command at once, in a sentence."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dynid.kernel_store import Kernel

CALLS = {
    "identify": ("identify", "arm3r", "log.csv", "-o"),
    "compare": ("compare", "arm3r", "log.csv", "-o"),
    "study": ("compare", "arm3r", "--monte-carlo", "-o"),
    "excite": ("excite", "arm3r", "-o"),
    "simulate": ("simulate", "arm3r", "--trajectory", "motion.csv", "-o"),
    "demo": ("demo", "-o"),
}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("mine")
    return tmp_path


@pytest.mark.parametrize("place", ["file/out.csv", "x" * 300 + ".csv"], ids=["a file is no folder", "a long name"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_place_that_cannot_be_is_a_sentence_before_the_work(dynid, here, call, place, monkeypatch):
    monkeypatch.setattr(Kernel, "__call__", lambda *_: pytest.fail("the work has begun"))
    found = dynid(*call, place)
    assert found.code == 2 and found.err.count("\n") == 1 and found.error == "cannot-write"
    assert "-o FOLDER" in found.err and "disk" not in found.err  # a full disk has its own advice
    assert os.listdir(here) == ["file"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_full_disk_is_a_sentence_before_the_work(dynid, here, call):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))  # as a disk with room for one million bytes
    try:
        found = dynid(*call, "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found.code == 2 and found.error == "cannot-write" and os.listdir(here) == ["file"]


@pytest.mark.parametrize("call", [CALLS["compare"], CALLS["excite"], CALLS["simulate"]])
def test_a_folder_of_that_name_is_a_sentence(dynid, here, call):
    Path("out.csv").mkdir()
    found = dynid(*call, "out.csv", *(["--force"] if call[0] != "compare" else []))
    assert found.code == 2 and found.error == "cannot-write"


@pytest.mark.parametrize(("command", "file"), [("payload", "payload.json"), ("contact", "wrench.csv"),
                                               ("extract", "report.html")])
def test_folders_are_looked_at_before_the_work(dynid, tmp_path, command, file):
    """The result that is named is not there: what is said first is that the output is taken."""
    (tmp_path / file).write_text("mine")
    logs = () if command == "extract" else ("log.csv",)
    shown = dynid(command, tmp_path / "missing", *logs, "-o", tmp_path)
    assert shown.error == "file-exists" and str(tmp_path / file) in shown.err
    assert (tmp_path / file).read_text() == "mine"


@pytest.mark.parametrize("given", [("-o", ""), ("--output=",), ("--output", "")])
@pytest.mark.parametrize("call", [one[:-1] for one in CALLS.values()], ids=CALLS)
def test_an_empty_output_is_refused(dynid, here, call, given):
    """As a script gives it whose variable is not set: as a path it would be the current folder."""
    found = dynid(*call, *given)
    assert found.code == 2 and found.err.count("\n") == 1 and found.error == "empty-output"
    assert os.listdir(here) == ["file"]


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of a shell, in which $dynid is the command."""
    command = f"{sys.executable} -m dynid"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder, timeout=300,
                          env={**os.environ, "dynid": command, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.parametrize("call", ["robots", "inspect arm3r --json", "--help"])
def test_a_full_stdout_is_a_sentence(tmp_path, call):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    found = shell(f"$dynid {call} > /dev/full", tmp_path)
    assert found.returncode == 2
    assert found.stderr == "Error: the output cannot be written: No space left on device\n"


def test_a_reader_that_leaves_early_ends_it_quietly(tmp_path):
    found = shell("$dynid inspect arm3r --json | head -c 1; exit ${PIPESTATUS[0]}", tmp_path)
    assert found.returncode in (0, 1) and found.stderr == ""


def test_kernels_that_cannot_be_kept_are_used_all_the_same(tmp_path):
    """A limit of file sizes that is below that of a kernel; what numba raises of it is no error of the command."""
    code = ("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))\n"
            "import dynid.dynamics.compiled, dynid.kernel_cache as cache\n"
            "from kernel import plus\nprint(plus(1), cache.take_note())")
    (tmp_path / "kernel.py").write_text("from dynid.kernel_store import njit\n@njit(cache=True)\n"
                                        "def plus(x):\n    return x + 1\n")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env={
        **os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "NUMBA_CACHE_DIR": str(tmp_path)})
    assert found.stdout == "2 Compiled kernels cannot be stored, so the next run compiles again: File too large.\n", \
        found.stderr
