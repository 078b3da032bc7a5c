"""Atomic replacement of a result folder, with a manifest of its files.

Only files in the manifest belong to the result; other files in the folder are the user's and are kept. A folder that
holds only a result is exchanged with the new one by one atomic system call. If that is not possible (user's files, no
such system call, a process working in the folder), the new result is completed in the folder COMMIT inside it before
its files are moved, the manifest last. If the process is killed, the next save finishes the moves; a reader reads the
result as if they were finished and changes nothing. A save locks its temporary folder, so that the next save recognises
and removes the folder of a killed save; without locks it decides by age.

A stranger may have made the folder: its links are not followed, and COMMIT counts only as a folder of its own.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TypeVar

from dynid.errors import DynidError
from dynid.files import MAX_SAVED_BYTES, open_file, permitted, read_small, writing
from dynid.version import __version__

Found = TypeVar("Found")
MANIFEST, COMMIT = "manifest.json", ".dynid-commit"
_NEW_FOLDER_PREFIX = ".dynid-new-"
# s: a save takes seconds, so an older unfinished one was killed; used if there are no locks
_ABANDONED_SAVE_SECONDS = 600.0
_BYTES_AT_ONCE = 1 << 20  # bytes hashed at once
_MAX_READING_ATTEMPTS = 5  # attempts to read a result that other runs replace meanwhile
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextmanager
def new_result(folder: Path, *, replace: bool = True) -> Iterator[Path]:
    """Yield an empty folder for a result's files, which replace the result of `folder` on success.

    replace: whether a result written meanwhile by another run may be replaced.
    """
    folder = Path(os.path.realpath(folder))
    with writing(folder), ExitStack() as in_use:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.parent):
            finish(folder)
            whole = _exchangeable(folder)
            place = folder.parent if whole else folder
            with _alone(place) if place != folder.parent else nullcontext():
                _remove_abandoned(place)
                new = Path(tempfile.mkdtemp(dir=place, prefix=_NEW_FOLDER_PREFIX))
                in_use.callback(shutil.rmtree, new, ignore_errors=True)
                in_use.enter_context(_alone(new))
        yield new
        write_manifest(new)
        os.chmod(new, folder.stat().st_mode & 0o7777 if folder.exists() else permitted(0o777))
        _sync(new)
        with _alone(folder.parent):
            if not replace and (folder / MANIFEST).exists():
                raise DynidError(f"{folder} contains a result that another run has written in the meantime",
                                 "choose another folder or add --force")
            _take_place(new, folder, whole)
        _sync_folder(place)


def manifest(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size in bytes and SHA-256 of every file of the result in a folder; empty without a manifest."""
    path = folder / MANIFEST
    try:
        files = json.loads(read_small(path, follow=False))["files"]
        found = {str(name): (int(one["bytes"]), str(one["sha256"])) for name, one in files.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise DynidError(f"{path} cannot be read as the manifest of a result; identify again") from None
    if any(name in ("", ".", "..") or Path(name).name != name for name in found):
        raise DynidError(f"{path} refers to files outside its folder; identify again")
    return found


def owned(folder: Path) -> set[str]:
    """Return names of the files in a folder that belong to its result; none if its manifest cannot be read."""
    try:
        return set(manifest(folder))
    except DynidError:
        return set()


def read_result(folder: Path, read: Callable[[Path], Found]) -> Found:
    """Return `read` applied to a folder with the whole result of `folder`, in which nothing is changed.

    It is read again if another run replaces it meanwhile.

    Raises:
        DynidError: The folder does not hold one complete, unmodified result.
    """
    for _ in range(_MAX_READING_ATTEMPTS):
        before = _written(folder)
        try:
            with _whole(folder) as place:
                _compare(place, folder)
                found = read(place)
        except (DynidError, OSError):
            if _written(folder) == before:
                raise
            continue
        if _written(folder) == before:
            return found
    raise DynidError(f"{folder} is repeatedly replaced by another run; read the result when that run has ended")


def _written(folder: Path) -> tuple[int, int] | None:
    """Return the identity and write time of a result's manifest; None if it is missing.

    Two results with the same content have different values.
    """
    with _alone(Path(os.path.realpath(folder)).parent):  # a save that moves files is waited for
        manifest_folder = folder / COMMIT if unfinished(folder) else folder
        try:
            found = os.lstat(manifest_folder / MANIFEST)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def check(folder: Path) -> None:
    """Refuse a folder that does not hold one complete, unmodified result."""
    read_result(folder, lambda place: None)


def unfinished(folder: Path) -> set[str]:
    """Return the names of the files of a new result, if its save was interrupted while they were moved from COMMIT."""
    commit = folder / COMMIT
    return owned(commit) if commit.is_dir() and not commit.is_symlink() else set()


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """Yield a folder with the whole result of `folder`: that folder, or if a save was interrupted, a temporary copy."""
    names = unfinished(folder)
    if not names:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="dynid-result-") as copy:
        try:
            for name in (*names, MANIFEST):
                with _moved(folder, name) as file, open(Path(copy) / name, "xb") as to:
                    _refuse_large(file)
                    shutil.copyfileobj(file, to)
        except OSError as problem:
            raise DynidError(f"{folder} contains a result whose save was interrupted and cannot be read: {name}: "
                             f"{problem.strerror or problem}", "identify again with -o", code="no-result") from None
        yield Path(copy)


def _moved(folder: Path, name: str) -> IO[bytes]:
    """Open a file of a new result, which may have been moved from COMMIT to its final name."""
    try:
        return open_file(folder / COMMIT / name, follow=False)
    except FileNotFoundError:
        return open_file(folder / name, follow=False)


def _compare(place: Path, folder: Path) -> None:
    """Refuse the files in `place` that are not those of its manifest; messages name `folder`."""
    files = manifest(place)
    if not files:
        raise DynidError(f"{folder} contains no result: {MANIFEST}, its list of files, is missing",
                         "identify again with -o", code="no-result")
    for name, wanted in files.items():
        try:
            found = _facts(place / name)
        except OSError as problem:
            raise DynidError(f"{folder} contains no {name} that can be read "
                             f"({problem.strerror}), which is part of its result", "identify again with -o",
                             code="no-result") from None
        if found != wanted:
            raise DynidError(f"{folder} contains no complete result: {name} was edited, is damaged "
                             "or belongs to another result", "identify again")


def finish(folder: Path) -> None:
    """Complete a save that was interrupted: move its files from the commit folder to their final names."""
    commit = folder / COMMIT
    if commit.is_symlink() or commit.is_file():
        raise DynidError(f"{commit} is not a folder, although dynid makes one of this name while it saves a result",
                         f"remove it: rm {shlex.quote(str(commit))}", code="cannot-write")
    if not commit.is_dir():
        return
    new = unfinished(folder)
    if new:
        for name in owned(folder) - new:
            (folder / name).unlink(missing_ok=True)
        for name in (*sorted(new), MANIFEST):
            with suppress(FileNotFoundError):  # moved before the kill
                os.replace(commit / name, folder / name)
    _sync_folder(folder)
    shutil.rmtree(commit, ignore_errors=True)


@contextmanager
def _alone(folder: Path, *, wait: bool = True) -> Iterator[bool | None]:
    """Context manager that locks a folder. Yields True; False if another process holds the lock and waiting is not
    requested; None if the system has no locks."""
    with ExitStack() as stack:
        yield _locked(folder, stack, wait)


def _locked(folder: Path, stack: ExitStack, wait: bool) -> bool | None:
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)  # releases the lock
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None


def _exchangeable(folder: Path) -> bool:
    """Return whether a folder does not exist, or holds only a result and is not the working folder of a process."""
    if not folder.exists():
        return True
    ours = {*owned(folder), MANIFEST}
    return (all(entry.name in ours and entry.is_file() for entry in folder.iterdir())
            and os.access(folder.parent, os.W_OK) and not os.path.ismount(folder)
            and not Path.cwd().is_relative_to(folder))


def _take_place(new: Path, folder: Path, whole: bool) -> None:
    if whole and not folder.exists():
        os.rename(new, folder)
    elif not (whole and _exchangeable(folder) and _exchanged(new, folder)):
        os.rename(new, folder / COMMIT)
        finish(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders atomically; return False if the system does not support it."""
    if not sys.platform.startswith("linux"):
        return False
    call = getattr(ctypes.CDLL(None), "renameat2", None)
    return call is not None and call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0


def write_manifest(folder: Path) -> None:
    """Write a manifest that lists all files of a folder as files of one result."""
    files = {path.name: _facts(path) for path in sorted(folder.iterdir())}
    content = {"dynid": __version__,
            "files": {name: {"bytes": size, "sha256": digest} for name, (size, digest) in files.items()}}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _facts(path: Path) -> tuple[int, str]:
    """Return size and SHA-256 of a file."""
    digest = hashlib.sha256()
    with open_file(path, follow=False) as file:
        _refuse_large(file)
        while chunk := file.read(_BYTES_AT_ONCE):
            digest.update(chunk)
        return file.tell(), digest.hexdigest()


def _refuse_large(file: IO[bytes]) -> None:
    """Raise OSError if an open file is larger than a file of any result."""
    if os.fstat(file.fileno()).st_size > MAX_SAVED_BYTES:
        raise OSError(errno.EFBIG, f"the file is larger than {MAX_SAVED_BYTES >> 20} MB")


def _sync(folder: Path) -> None:
    """Flush a folder and its files to disk."""
    for path in folder.iterdir():
        if path.is_file():
            with path.open("r+b") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_abandoned(place: Path) -> None:
    """Remove folders left by killed saves, if no process has locked them."""
    for path in place.glob(_NEW_FOLDER_PREFIX + "*"):
        with suppress(OSError), _alone(path, wait=False) as free:
            old = time.time() - path.stat().st_mtime > _ABANDONED_SAVE_SECONDS
            if not path.is_symlink() and (free or (free is None and old)):
                shutil.rmtree(path, ignore_errors=True)
