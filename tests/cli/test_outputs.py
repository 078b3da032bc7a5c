"""Outputs are tried before the work: a place that cannot be written to ends a command at once, in a sentence."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

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
def test_a_place_that_cannot_be_is_a_sentence_before_the_work(dynid, here, call, place):
    start = time.process_time()
    found = dynid(*call, place)
    assert found.code == 2 and found.err.count("\n") == 1 and "cannot write" in found.err
    assert time.process_time() - start < 10 and os.listdir(here) == ["file"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_full_disk_is_a_sentence_before_the_work(dynid, here, call):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))  # as a disk with room for one million bytes
    try:
        found = dynid(*call, "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert found.code == 2 and "cannot write" in found.err and os.listdir(here) == ["file"]


@pytest.mark.parametrize("call", [CALLS["compare"], CALLS["excite"], CALLS["simulate"]])
def test_a_folder_of_that_name_is_a_sentence(dynid, here, call):
    Path("out.csv").mkdir()
    found = dynid(*call, "out.csv", *(["--force"] if call[0] != "compare" else []))
    assert found.code == 2 and "it is a folder" in found.err


@pytest.mark.parametrize(("command", "file"), [("payload", "payload.json"), ("contact", "wrench.csv"),
                                               ("extract", "report.html")])
def test_folders_are_looked_at_before_the_work(dynid, tmp_path, command, file):
    """The result that is named is not there: what is said first is that the output is taken."""
    (tmp_path / file).write_text("mine")
    logs = () if command == "extract" else ("log.csv",)
    shown = dynid(command, tmp_path / "missing", *logs, "-o", tmp_path)
    assert shown.code == 2 and f"{tmp_path / file} is there already" in shown.err
    assert (tmp_path / file).read_text() == "mine"
