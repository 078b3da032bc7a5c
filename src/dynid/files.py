"""Atomic writing of files, checks before long computations that files can be written, and bounded reading.

This module is the only one that opens files which a user, or a file of a user, names. Only regular files are opened:
a pipe could wait for ever, a device could have no end, and opening either could have an effect of its own. Libraries
that open a file by its name are given a name that `check_file` has checked.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import stat
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dynid.errors import DynidError
from dynid.quantities import is_physical

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_TEXT = 32 << 20  # bytes: largest robot or settings file
MAX_SAVED_BYTES = 1 << 30  # bytes: largest file that dynid saved and reads again, such as one of a result
_MOST_INTEGER = 1 << 63
_MIN_FREE_BYTES = 8 << 20  # bytes; a page with its plots has about five million

_umask_lock = threading.Lock()


@contextmanager
def write_whole(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Yield a file to write to, which replaces `path` only if no error occurs."""
    path = Path(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".dynid-")
        try:
            binary = "b" in mode
            # File names may contain bytes that are not valid text; these are written as codes.
            with os.fdopen(handle, mode, encoding=None if binary else "utf-8", newline=None if binary else "",
                           errors=None if binary else "backslashreplace") as file:
                yield file
            os.chmod(name, permitted(0o666))
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def permitted(mode: int) -> int:
    """Return the access mode of a new file or folder: `mode` restricted by the user's umask."""
    with _umask_lock:  # two threads at once could leave the process with the temporary mask
        mask = os.umask(0o077)
        os.umask(mask)
    return mode & ~mask


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert file system errors on writing a file to a sentence that names the file."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise DynidError(f"cannot write {path}: {error.strerror or error}",
                         "free some disk space" if is_full else "choose another folder (-o FOLDER)",
                         code="cannot-write") from None


def try_folder(folder: Path) -> None:
    """Raise an error if a file of some size could not be written into a folder that exists or could be created.

    The check is made before a long computation and leaves no file.
    """
    with writing(folder):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(folder)  # raises an error for a link that leads to itself
        place = Path(folder)
        while not place.exists():
            place = place.parent
        with tempfile.TemporaryFile(dir=place) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, _MIN_FREE_BYTES)
            else:
                file.write(bytes(_MIN_FREE_BYTES))


def try_file(path: Path) -> None:
    """Raise an error if a file could not be written, for example because a folder has its name; leave no file."""
    with writing(path):
        if Path(path).is_dir():
            raise DynidError(f"cannot write {path}: it is a folder; give the name of a file", code="cannot-write")
    try_folder(Path(path).parent)


def free_paths(folder: str | Path, names: Mapping[str, str], force: bool) -> dict[str, Path]:
    """Return paths of files to write in a folder, by kind; called before a long computation.

    Raises:
        DynidError: a file could not be written, or exists and `force` does not allow its replacement.
    """
    paths = {what: Path(folder) / name for what, name in names.items()}
    refuse_to_replace(paths.values(), force)
    return paths


def refuse_to_replace(paths: Iterable[Path], force: bool) -> None:
    """Raise an error if a file could not be written, or if it exists and `force` does not allow its replacement."""
    for path in paths:
        try_file(path)
        if path.exists() and not force:
            raise DynidError(f"{path} exists already", "choose another output with -o, or add --force to replace it",
                             code="file-exists")


def write_json(path: Path, plain: Mapping[str, Any]) -> None:
    """Write plain data as a JSON file atomically; raise an error for a non-finite number, which is a bug."""
    with write_whole(path) as file:
        file.write(json_text(plain, ensure_ascii=True) + "\n")


def json_text(plain: Mapping[str, Any], ensure_ascii: bool = False) -> str:
    """Return plain data as one JSON object with a line for each of its keys.

    Deeper levels are not indented: Python's encoder in C does not indent, and the one in Python is ten times slower.

    Raises:
        ValueError: A number is not finite.
    """
    encode = json.JSONEncoder(ensure_ascii=ensure_ascii, allow_nan=False).encode
    return "{" + ",".join(f"\n  {encode(str(key))}: {encode(value)}" for key, value in plain.items()) + "\n}"


def is_path(origin: Path, name: str) -> bool:
    """Return whether a name is a path below `origin`, not a built-in name: it exists, or has a folder or an extension.

    On Windows both path separators count.
    """
    separators = {os.sep, os.altsep or os.sep}
    return os.path.exists(origin / name) or "." in name or not separators.isdisjoint(name)


def check_file(path: str | Path, *, follow: bool = True) -> Path:
    """Return the path of a regular file; raise OSError with a sentence for anything else.

    follow: whether the name may be a link; False in folders where a stranger may have placed links.
    """
    try:
        _check_regular(os.stat(path, follow_symlinks=follow), path)
    except ValueError:
        raise OSError(errno.EINVAL, "the name contains a null character") from None
    return Path(path)


def open_file(path: str | Path, *, follow: bool = True) -> IO[bytes]:
    """Open a regular file for reading; raise OSError with a sentence for anything else, without waiting.

    follow: whether the name may be a link; False in folders where a stranger may have placed links.
    """
    check_file(path, follow=follow)
    flags = ("O_RDONLY", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", *(() if follow else ("O_NOFOLLOW",)))
    handle = os.open(path, sum(getattr(os, flag, 0) for flag in flags))
    try:
        _check_regular(os.fstat(handle), path)  # another file may have taken the name since it was checked
        if not os.fstat(handle).st_size and os.read(handle, 1) and not os.fstat(handle).st_size:  # such as /proc/kmsg
            raise OSError(errno.EINVAL, "its content is made by the system while it is read, without an end that is "
                          "known; save the data to a file and give its name", str(path))
        os.lseek(handle, 0, os.SEEK_SET)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def open_text(path: str | Path, *, errors: str = "strict", newline: str | None = None) -> IO[str]:
    """Open a regular file of UTF-8 text for reading, as `open_file` does."""
    return io.TextIOWrapper(open_file(path), encoding="utf-8", errors=errors, newline=newline)


def read_file(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file; raise OSError if it has more than `most` bytes, counted while reading."""
    with open_file(path, follow=follow) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"the file is larger than {most >> 20} MB")
    return content


def read_small(path: str | Path, *, follow: bool = True) -> bytes:
    """Return the content of a robot or settings file; raise OSError if it is implausibly large (above 32 MB)."""
    return read_file(path, _MOST_TEXT, follow=follow)


def load_arrays(path: str | Path | bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file, or of its bytes, by name.

    Raises:
        OSError: The file cannot be opened or read.
        ValueError: The file is damaged, or larger when unpacked than the arrays of any result.
    """
    from dynid.arrays import parsed  # imported here, because it loads numpy
    with io.BytesIO(path) if isinstance(path, bytes) else open_file(path) as file:
        try:
            return parsed(lambda: _arrays(file))
        except OSError:
            raise
        except Exception as problem:  # zipfile, zlib and numpy raise their own exceptions for damaged files
            raise ValueError(str(problem)) from problem


def _arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an open .npz file by name."""
    import numpy as np
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_SAVED_BYTES:
            raise ValueError(f"the file unpacks to more than {MAX_SAVED_BYTES >> 20} MB, the limit for result files; "
                             "identify again to write a new file")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _check_regular(facts: os.stat_result, path: str | Path) -> None:
    """Raise OSError if a file is not a regular one."""
    mode = facts.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file", str(path))
    kind = "link" if stat.S_ISLNK(mode) else "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) \
        else "device"
    raise OSError(errno.EINVAL, f"it is a {kind}, not a regular file; save the data to a file and give its name",
                  str(path))


def toml_file(path: Path, what: str = "", error: type[DynidError] = DynidError, *, unreadable: str = "no-such-file",
              invalid: str = "not-toml") -> dict[str, Any]:
    """Return the table of a TOML file.

    Args:
        path: the file.
        what: kind of file, for error messages.
        error: class of the errors.
        unreadable, invalid: codes of the errors for a file that cannot be read, and for one that is not TOML.
    """
    try:
        return toml_table(read_small(path).decode("utf-8"))
    except OSError as problem:
        raise error(f"cannot read {f'the {what} ' if what else ''}{path}: {problem.strerror or problem}",
                    code=unreadable) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise error(f"{path} is not a TOML file: {problem}", code=invalid) from None


def toml_table(text: str) -> dict[str, Any]:
    """Return the table of a TOML text. Raise TOMLDecodeError for all errors, including deep nesting and implausible
    numbers. Infinity and nan are allowed: the reader of a setting checks them."""
    try:
        table = tomllib.loads(text)
        _check_values(table)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as problem:
        raise tomllib.TOMLDecodeError(str(problem)) from None
    except RecursionError:
        raise tomllib.TOMLDecodeError("the tables of the file are nested too deeply") from None
    return table


def _check_values(value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _check_values(item)
    elif isinstance(value, str) and "\0" in value:
        raise ValueError("a setting contains a null character")
    elif isinstance(value, int) and not -_MOST_INTEGER <= value < _MOST_INTEGER:
        raise ValueError("a setting is an integer of more than 64 bits")
    elif isinstance(value, float) and math.isfinite(value) and not is_physical(value):
        raise ValueError(f"a setting has the value {value:g}, which is not of plausible size")
