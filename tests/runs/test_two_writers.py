"""A result folder under two writers, killed writers, a clock that jumps, and places that cannot be written."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.runs import result_folder
from dynid.runs.result_folder import MANIFEST, manifest, new_result, read_result

NAMES = ("parameters.toml", "estimate.npz", "run.toml")
SPAWN = multiprocessing.get_context("fork")


def write(folder: Path, text: str, *, replace: bool = True, wait: float = 0.0) -> None:
    """A small result, all of whose files say who wrote them."""
    with new_result(folder, replace=replace) as new:
        for name in NAMES:
            (new / name).write_text(text)
            time.sleep(wait)


def whose(folder: Path) -> str:
    """Who wrote the whole result in a folder."""
    def read(place: Path) -> set[str]:
        return {(place / name).read_text() for name in NAMES}

    texts = read_result(folder, read)
    assert len(texts) == 1
    return texts.pop()


def write_often(folder: Path, text: str, times: int, start: Barrier) -> None:
    start.wait()
    for _ in range(times):
        write(folder, text)


def write_once(folder: Path, text: str, start: Barrier) -> None:
    start.wait()
    try:
        write(folder, text, replace=False, wait=0.05)
    except DynidError as problem:
        assert "another run has written in the meantime" in str(problem) and "--force" in str(problem)
        os._exit(3)
    os._exit(0)


@pytest.mark.parametrize("own", [False, True], ids=["alone", "beside the user's files"])
def test_two_writers_at_once_leave_one_whole_result(tmp_path: Path, own: bool) -> None:
    folder, start = tmp_path / "new" / "out", SPAWN.Barrier(3)
    if own:
        folder.mkdir(parents=True)
        (folder / "notes.txt").write_text("mine")
    writers = [SPAWN.Process(target=write_often, args=(folder, text, 30, start)) for text in "ab"]
    for one in writers:
        one.start()
    start.wait()
    while any(one.is_alive() for one in writers):
        if (folder / MANIFEST).exists():
            try:
                assert whose(folder) in "ab"
            except DynidError as problem:
                assert "again and again" in str(problem)
    for one in writers:
        one.join()
    assert [one.exitcode for one in writers] == [0, 0]
    assert whose(folder) in "ab" and not any(path.name.startswith(".dynid") for path in tmp_path.rglob("*"))
    assert not own or (folder / "notes.txt").read_text() == "mine"


def test_without_force_one_of_two_writers_is_refused(tmp_path: Path) -> None:
    start = SPAWN.Barrier(2)
    writers = [SPAWN.Process(target=write_once, args=(tmp_path / "out", text, start)) for text in "ab"]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert sorted(one.exitcode or 0 for one in writers) == [0, 3]
    assert whose(tmp_path / "out") == "ab"[[one.exitcode for one in writers].index(0)]
    assert os.listdir(tmp_path) == ["out"]


def killed_in_a_save(folder: Path) -> None:
    with new_result(folder) as new:
        (new / NAMES[0]).write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("own", [False, True], ids=["alone", "beside the user's files"])
def test_the_next_save_removes_what_a_killed_one_left(tmp_path: Path, own: bool) -> None:
    folder = tmp_path / "out"
    place = folder if own else tmp_path
    place.mkdir(exist_ok=True)
    if own:
        (folder / "notes.txt").write_text("mine")
    process = SPAWN.Process(target=killed_in_a_save, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL and len(list(place.glob(".dynid-new-*"))) == 1
    (place / ".dynid-new-file").write_text("not a folder")
    write(folder, "a")
    assert [path.name for path in place.glob(".dynid-new-*")] == [".dynid-new-file"] and whose(folder) == "a"


@pytest.mark.parametrize("shift", [-1e6, 1e6], ids=["backwards", "forwards"])
def test_a_folder_in_use_stays_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       shift: float) -> None:
    now = time.time()
    with new_result(tmp_path / "one") as slow:
        (slow / NAMES[0]).write_text("slow")
        monkeypatch.setattr(result_folder.time, "time", lambda: now + shift)
        write(tmp_path / "two", "b")
        assert slow.is_dir()
    assert whose(tmp_path / "two") == "b" and manifest(tmp_path / "one").keys() == {NAMES[0]}
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]


def test_without_locks_the_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(38, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    for name, age in ((".dynid-new-old", 3600), (".dynid-new-young", 0)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    write(tmp_path / "out", "a")
    assert sorted(os.listdir(tmp_path)) == [".dynid-new-young", "out"]


def test_a_file_size_limit_is_a_sentence_and_keeps_the_earlier_result(tmp_path: Path) -> None:
    write(tmp_path / "out", "a")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        with refused(DynidError, "cannot-write", "File too large"), new_result(tmp_path / "out") as new:
            (new / NAMES[0]).write_bytes(bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert whose(tmp_path / "out") == "a" and os.listdir(tmp_path) == ["out"]


def test_a_read_only_mount_is_read_and_refused_for_writing(tmp_path: Path) -> None:
    """In a mount namespace of its own, with a result whose last moves were not made too."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare for a read-only mount")
    write(tmp_path / "out", "a")
    code = ("import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path; from test_two_writers import *\n"
            "print(whose(Path(sys.argv[1])))\n"
            "try: write(Path(sys.argv[1]), 'b')\nexcept DynidError as problem: print(problem)")
    place = tmp_path / "t"
    place.mkdir()
    inner = f"mount -t tmpfs none {place} && cp -r {tmp_path}/out {place}/ && mount -o remount,ro {place}"
    source = str(Path(result_folder.__file__).parents[2])
    found = subprocess.run(["unshare", "-m", "sh", "-c", f'{inner} && exec "$@"', "sh", sys.executable, "-c", code,
                            str(tmp_path / "t" / "out"), str(Path(__file__).parent)], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": os.pathsep.join([source, str(Path(__file__).parents[1])])})
    if "unshare" in found.stderr or "mount" in found.stderr:
        pytest.skip(f"no mounts here: {found.stderr.strip()[:100]}")
    said = found.stdout.splitlines()
    assert said[0] == "a" and "cannot write" in said[1] and "Read-only file system" in said[1], found.stderr
