"""Methods of dataclasses that are compiled at their first use.

Python compiles six methods of a frozen dataclass from text when its module is imported. A command imports some 350 of
these classes and calls few of their methods. Compiling all of them takes a tenth of the time of a short command, so the
command line compiles each method at its first use. The byte code of these methods is stored next to that of this
module, because compiling the methods that a command does use takes half as long. The resulting classes are the same.
"""

from __future__ import annotations

import atexit
import dataclasses
import marshal
import sys
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Any

_MOST_STORED = 4_000  # methods; a command uses some 200, and texts of earlier versions remain


def compile_methods_at_first_use() -> None:
    """Compile methods of all dataclasses defined from now on at their first use, before Python 3.13.

    Python 3.13 and later compile all methods of a class at once, which takes less time, and are not changed.
    """
    compiled = getattr(dataclasses, "_create_fn", None)
    if compiled is not None and compiled is not _LazyMethod:
        _LazyMethod.compiled = staticmethod(compiled)
        setattr(dataclasses, "_create_fn", _LazyMethod)  # noqa: B010
        setattr(dataclasses, "exec", _StoredCode().run)  # noqa: B010


class _LazyMethod:
    """Placeholder of a method in a class, which is replaced by the compiled method at its first lookup."""

    __slots__ = ("_made", "_options", "_parts")
    compiled: Callable[..., Any]

    def __init__(self, *parts: Any, **options: Any) -> None:
        self._parts, self._options = parts, options
        self._made: Callable[..., Any] | None = None

    @property
    def __name__(self) -> str:
        return str(self._parts[0])

    def __get__(self, instance: Any, owner: type) -> Any:
        method: Any = self._compiled()
        for one in owner.__mro__:
            if vars(one).get(self.__name__) is self:
                method.__qualname__ = f"{one.__qualname__}.{self.__name__}"
                setattr(one, self.__name__, method)
        return method.__get__(instance, owner)

    def __call__(self, instance: Any) -> Any:
        """Return the result of the compiled `__repr__`, which dataclasses wrap in a guard against recursion."""
        return self._compiled()(instance)

    def _compiled(self) -> Callable[..., Any]:
        if self._made is None:
            self._made = self.compiled(*self._parts, **self._options)
        return self._made


class _StoredCode:
    """Byte code of methods by their text, from earlier processes. Without write access to the folder, or if Python is
    told not to write byte code, nothing is stored."""

    def __init__(self) -> None:
        self.path = Path(cache_from_source(__file__)).with_name(f"methods.{sys.implementation.cache_tag}")
        self.known: dict[str, bytes] = {}
        self.is_changed = False
        try:
            version, known = marshal.loads(self.path.read_bytes())
            self.known = known if version == MAGIC_NUMBER and len(known) <= _MOST_STORED else {}
        except (OSError, ValueError, EOFError, TypeError):
            return

    def run(self, text: str, *names: Any) -> None:
        """Execute a text like `exec`."""
        stored = self.known.get(text)
        code = compile(text, "<string>", "exec", dont_inherit=True) if stored is None else marshal.loads(stored)
        if stored is None:
            self.known[text] = marshal.dumps(code)
            if not self.is_changed and not sys.dont_write_bytecode:
                self.is_changed = True
                atexit.register(self.write)
        exec(code, *names)

    def write(self) -> None:
        from dynid.errors import DynidError
        from dynid.files import write_whole

        try:
            with write_whole(self.path, "wb") as file:
                marshal.dump((MAGIC_NUMBER, self.known), file)
        except (DynidError, OSError):
            return
