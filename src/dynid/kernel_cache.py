"""Location of compiled kernels if the installation is not writable.

Numba stores compiled kernels next to the source, or in the user's cache folder, and raises an error if neither is
writable. dynid then uses a private folder for temporary files, or no cache. Kernels are programs: a folder that another
user owns or could write is never used.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

VARIABLE = "NUMBA_CACHE_DIR"
# Cache of most kernels.
_INSTALLED_CACHE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dynamics", "__pycache__")
_notes: list[str] = []


def choose_cache() -> None:
    """Choose the folder of compiled kernels, before numba is loaded. Nothing changes if kernels can be stored next to
    the source, or if the user has specified a folder."""
    if os.environ.get(VARIABLE) or os.name != "posix" or _is_writable(_INSTALLED_CACHE):
        return
    user = _user_cache()
    folder = user if user is not None and _is_writable(user) else _temporary()
    if folder is None:
        _without_cache()
        return
    os.environ[VARIABLE] = folder
    if "numba" in sys.modules:  # numba has already read its settings
        sys.modules["numba"].config.CACHE_DIR = folder


def cache_folder() -> str:
    """Return the folder of compiled kernels: that of the variable NUMBA_CACHE_DIR, or the one next to the source."""
    return os.environ.get(VARIABLE) or _INSTALLED_CACHE


@contextmanager
def compile_lock(name: str) -> Iterator[None]:
    """Wait while another process compiles the kernel of this name, so that its stored code can be used.

    The lock is one byte of a file in the cache folder. If the file system has no locks, the kernel is compiled without
    waiting.
    """
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        os.makedirs(cache_folder(), exist_ok=True)
        handle = os.open(os.path.join(cache_folder(), "kernels.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(handle, fcntl.LOCK_EX, 1, zlib.crc32(name.encode()))
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)  # which releases the lock


def forgive_unkept_kernels() -> None:
    """Allow the use of a kernel that cannot be stored, on a full disk or under a limit of file sizes.

    Numba raises an error if it cannot store a kernel, although the kernel is compiled.
    """
    from numba.core import caching

    @contextmanager
    def forgiving(cache: object) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            note_unkept_kernel(problem)

    if hasattr(caching.Cache, "_guard_against_spurious_io_errors"):
        caching.Cache._guard_against_spurious_io_errors = forgiving


def note_unkept_kernel(problem: OSError) -> None:
    """Store one sentence for the user on why compiled kernels could not be written."""
    if not _notes:
        _notes.append(f"Compiled kernels cannot be stored, so the next run compiles again: {problem.strerror}.")


def take_note() -> str:
    """Return a sentence for the user on the location of the kernels, once; empty if there is none."""
    return _notes.pop() if _notes else ""


def _is_writable(folder: str) -> bool:
    """Whether a folder, or the nearest one above it that exists, can be written."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _user_cache() -> str | None:
    """Return the folder that numba uses for a user; None for a user without a home."""
    folder = os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    if sys.platform != "darwin":
        folder = os.environ.get("XDG_CACHE_HOME") or folder
    return os.path.join(folder, "numba") if os.path.isabs(folder) else None


def _temporary() -> str | None:
    """Return a private folder for compiled kernels, which later runs find again.

    If another user could write that folder, return a new folder, which is deleted at the end of this process; None if
    no folder for temporary files can be written.
    """
    import atexit
    import shutil
    import tempfile

    places = [*(os.environ.get(name) or "" for name in ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp", "/dev/shm"]
    for place in filter(os.path.isabs, places):
        folder = os.path.join(place, f"dynid-kernels-{os.getuid()}")
        try:
            os.mkdir(folder, mode=0o700)
            _notes.append(f"Compiled kernels are in {folder}, because neither the installation nor a home folder "
                          f"can be written; {VARIABLE} names another place.")
        except FileExistsError:
            pass
        except OSError:
            continue
        if _is_private(folder):
            return folder
        own = tempfile.mkdtemp(dir=place, prefix="dynid-kernels-")
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        _notes.append(f"Kernels are compiled for this run alone, because {folder} is not a folder that only you can "
                      f"write; {VARIABLE} names another place.")
        return own
    return None


def _is_private(folder: str) -> bool:
    """Whether only this user can read and write a folder."""
    import stat

    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _without_cache() -> None:
    """Make numba compile again in each process, without a cache."""
    from numba.core import caching, ccallback, dispatcher

    for module in (ccallback, dispatcher):
        vars(module)["FunctionCache"] = lambda function: caching.NullCache()
    _notes.append(f"Kernels are compiled for this run alone, because no folder can be written; {VARIABLE} names one.")
