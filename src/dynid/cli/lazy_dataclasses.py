"""Methods of dataclasses that are compiled at their first use.

Python compiles six methods of a frozen dataclass from text when its module is imported. A command imports some 350 of
these classes and calls few of their methods. Compiling all of them takes a tenth of the time of a short command, so the
command line compiles each method at its first use. The resulting classes are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


def compile_methods_at_first_use() -> None:
    """Compile methods of all dataclasses defined from now on at their first use, before Python 3.13.

    Python 3.13 and later compile all methods of a class at once, which takes less time, and are not changed.
    """
    compiled = getattr(dataclasses, "_create_fn", None)
    if compiled is not None and compiled is not _LazyMethod:
        _LazyMethod.compiled = staticmethod(compiled)
        setattr(dataclasses, "_create_fn", _LazyMethod)  # noqa: B010


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
