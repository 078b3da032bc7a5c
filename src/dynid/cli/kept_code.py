"""Code that Python compiles from text while modules are imported, kept like the byte code of these modules.

Methods of dataclasses and annotations are text, which every process compiles again: some thousand pieces, a twentieth
of a short command. Here a piece is compiled once and stored in one file beside the byte code. The text itself is the
key, so that a changed class has a piece of its own. Only the process of the command line uses it.
"""

from __future__ import annotations

import atexit
import builtins
import dataclasses
import marshal
import sys
import typing
import zlib
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from types import CodeType
from typing import Any

MAX_PIECES = 20_000  # of all commands together; more are not kept, because every command reads them all
_pieces: dict[tuple[str, str], CodeType] = {}
_known: set[tuple[str, str]] = set()  # pieces of the file


def keep_compiled_text() -> None:
    """Use stored code for methods of dataclasses and for annotations from now on, and store new code at the end."""
    if hasattr(dataclasses, "exec") or sys.dont_write_bytecode:
        return
    _pieces.update(_read())
    _known.update(_pieces)
    setattr(dataclasses, "exec", _execute)  # noqa: B010
    setattr(typing, "compile", _compiled)  # noqa: B010
    atexit.register(_write)


def _compiled(source: Any, filename: str, mode: str, *others: Any, **options: Any) -> Any:
    """Return the code of a text, as the function of Python does."""
    if not isinstance(source, str) or filename != "<string>" or others or options:
        return builtins.compile(source, filename, mode, *others, **options)
    key = mode, source
    code = _pieces.get(key)
    if code is None:
        # Without the settings of this module, which Python's own function would pass on.
        code = _pieces[key] = builtins.compile(source, filename, mode, dont_inherit=True)
    return code


def _execute(source: str, *places: Any) -> None:
    builtins.exec(_compiled(source, "<string>", "exec"), *places)


def _file() -> Path:
    return Path(cache_from_source(__file__)).with_name(f"compiled-text.{sys.implementation.cache_tag}")


def _read() -> dict[tuple[str, str], CodeType]:
    """Return the pieces of the file; none if it is missing, damaged or of another Python."""
    with suppress(OSError, ValueError, EOFError, TypeError):
        head, contents = (data := _file().read_bytes())[:8], data[8:]
        if head == MAGIC_NUMBER + zlib.crc32(contents).to_bytes(4, "little"):
            found: dict[tuple[str, str], CodeType] = marshal.loads(contents)
            return found
    return {}


def _write() -> None:
    """Add new pieces to the file; a folder that cannot be written is left as it is."""
    if not _pieces.keys() - _known or len(_pieces) > MAX_PIECES:
        return
    from dynid.errors import DynidError
    from dynid.files import write_whole

    contents = marshal.dumps({**_read(), **_pieces})
    with suppress(OSError, DynidError), write_whole(_file(), "wb") as file:
        file.write(MAGIC_NUMBER + zlib.crc32(contents).to_bytes(4, "little") + contents)
