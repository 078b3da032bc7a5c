"""Kernels without a writable installation or home: another user, in a process of its own."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynid import kernel_cache, kernel_store

SOURCE = Path(kernel_cache.__file__).parent
NOBODY = 65534
PATIENCE = 3600  # s: kernels take half a minute of CPU to compile, which is long on a busy machine


@pytest.fixture(scope="module")
def installed() -> Iterator[Path]:
    """A copy of the package that nobody but its owner can write, below a folder that all can enter."""
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    folder = Path("/var/tmp") / f"dynid-test-{os.getpid()}"
    kernels = shutil.ignore_patterns("*.nbi", "*.nbc", f"*{kernel_store.SUFFIX}")  # bytecode may come along
    shutil.copytree(SOURCE, folder / "dynid", ignore=kernels)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    yield folder
    shutil.rmtree(folder)


def as_nobody(installed: Path, *arguments: str, cwd: Path | None = None, **environment: str
              ) -> subprocess.CompletedProcess[str]:
    """Run Python as a user without rights."""
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    readable = subprocess.run([*drop, sys.executable, "-c", ""], env=bare, cwd="/", capture_output=True)
    if readable.returncode != 0:
        pytest.skip("another user cannot run this Python")
    return subprocess.run([*drop, sys.executable, *arguments], env=bare, cwd=cwd or "/", capture_output=True, text=True,
                          timeout=PATIENCE)


@pytest.mark.parametrize("home", [pytest.param({}, marks=pytest.mark.slow, id="unset"),
                                  pytest.param({"HOME": "/nonexistent"}, id="missing")])
def test_a_user_without_a_home(installed: Path, tmp_path_factory: pytest.TempPathFactory, home: dict[str, str]) -> None:
    place = Path("/var/tmp") / f"dynid-test-tmp-{os.getpid()}-{len(home)}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    try:
        first, again = (as_nobody(installed, "-m", "dynid", "inspect", "arm3r", TMPDIR=str(place), **home)
                        for _ in range(2))
        assert first.returncode == again.returncode == 0, first.stderr
        assert "arm3r: 3 joints" in first.stdout
        (kept,) = place.glob("dynid-kernels-*")
        assert str(kept) in first.stderr and "dynid-kernels" not in again.stderr  # the note comes once
        assert stat.S_IMODE(kept.stat().st_mode) == 0o700 and kept.stat().st_uid == NOBODY
        assert list(kept.rglob("*.nbi"))
    finally:
        shutil.rmtree(place)


def test_a_home_that_can_be_written_is_used(installed: Path, tmp_path: Path) -> None:
    home = Path("/var/tmp") / f"dynid-test-home-{os.getpid()}"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    try:
        found = as_nobody(installed, "-c", "import dynid, os; print(os.environ['NUMBA_CACHE_DIR'])", HOME=str(home))
        assert found.stdout.strip() == str(home / ".cache" / "numba"), found.stderr
    finally:
        shutil.rmtree(home)


def test_a_folder_of_someone_else_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = tmp_path / f"dynid-kernels-{os.getuid()}"
    for plant in (lambda: folder.mkdir(mode=0o755), lambda: folder.symlink_to(tmp_path / "other")):
        (tmp_path / "other").mkdir(mode=0o700, exist_ok=True)
        plant()
        found = kernel_cache._temporary()
        assert found is not None and Path(found) != folder and stat.S_IMODE(Path(found).stat().st_mode) == 0o700
        assert "not a folder that only you can write" in kernel_cache.take_note()
        folder.unlink() if folder.is_symlink() else folder.rmdir()
    assert Path(str(kernel_cache._temporary())) == folder and str(folder) in kernel_cache.take_note()


def test_nothing_changes_where_the_installation_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    if not os.access(SOURCE / "dynamics", os.W_OK):
        pytest.skip("this installation cannot be written")
    monkeypatch.delenv(kernel_cache.VARIABLE, raising=False)
    kernel_cache.choose_cache()
    assert kernel_cache.VARIABLE not in os.environ and not kernel_cache.take_note()
    monkeypatch.setattr(kernel_cache, "_is_writable", lambda folder: False)
    monkeypatch.setenv(kernel_cache.VARIABLE, "mine")
    kernel_cache.choose_cache()
    assert os.environ[kernel_cache.VARIABLE] == "mine"


def test_without_any_folder_kernels_are_compiled_each_time(tmp_path: Path) -> None:
    code = """
import os
os.environ.pop("NUMBA_CACHE_DIR", None)
import dynid.kernel_cache as cache
cache._is_writable, cache._temporary = lambda folder: False, lambda: None
cache.choose_cache()
print(cache.take_note())
from numba import cfunc, njit
kernel = njit(cache=True)(lambda x: x + 1)
print(kernel(1), type(kernel._cache).__name__)
print(cfunc("f8(f8)", cache=True)(lambda x: x + 1).ctypes(2.0))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
                           env={**os.environ, "PYTHONPATH": str(SOURCE.parent)})
    note, *rest = found.stdout.splitlines()
    assert "no folder can be written" in note and rest == ["2 NullCache", "3.0"], found.stderr
