"""`dynid generate`: source files at the command line."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_of_every_language(dynid, here):
    shown = dynid("generate", "arm3r", "-o", "code", "--language", "c,python,python-plain,julia,latex,cuda,jax,torch,"
                  "rust", "--json")
    assert shown.code == 0, shown.err
    facts = json.loads(shown.out)
    assert sorted(path.name for path in (here / "code").iterdir()) == [
        "arm3r.cuh", "arm3r.h", "arm3r.jl", "arm3r.py", "arm3r.rs", "arm3r.tex", "arm3r_cupy.py", "arm3r_jax.py",
        "arm3r_plain.py", "arm3r_torch.py"]
    assert facts["operations"]["inertia"]["multiplications"] > 0 and facts["files"]["c"] == "code/arm3r.h"


def test_old_files_stay_unless_asked(dynid, here):
    assert dynid("generate", "scara2", "-o", ".", "--what", "gravity").code == 0
    before = (here / "scara2.h").read_text()
    shown = dynid("generate", "scara2", "-o", ".", "--what", "inertia")
    assert shown.code == 2 and shown.error == "file-exists" and (here / "scara2.h").read_text() == before
    assert dynid("generate", "scara2", "-o", ".", "--what", "inertia", "--force").code == 0
    assert "scara2_inertia" in (here / "scara2.h").read_text()


@pytest.mark.parametrize(("arguments", "error"), [
    (("scara2", "-o", "out", "--language", "fortran"), "unknown-language"),
    (("scara2", "-o", "out", "--what", "speed"), "unknown-function"),
    (("scara2", "-o", "out", "--batch", "3"), "wrong-batch"),
    (("scara2", "-o", "out", "--what", "jacobian"), "no-frame"),
    (("scara2", "-o", "out", "--what", "jacobian", "--frame", "nowhere"), "unknown-frame"),
    (("scara2", "-o", "file/inside"), "cannot-write")])
def test_bad_calls_are_sentences_and_leave_nothing(dynid, here, arguments, error):
    (here / "file").write_text("")
    shown = dynid("generate", *arguments)
    assert shown.code != 0 and shown.error == error and "Traceback" not in shown.err
    assert sorted(path.name for path in here.iterdir()) == ["file"]


def test_joints_can_be_locked(dynid, here):
    assert dynid("generate", "kuka-lwr4", "-o", ".", "--only", "joint1,joint2", "--what", "gravity").code == 0
    assert "kuka_lwr4_joints = 2" in (here / "kuka_lwr4.h").read_text()
