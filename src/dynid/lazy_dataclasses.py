"""Methods of dataclasses that are compiled at their first call.

Python compiles six methods of a frozen dataclass from text when its module is imported. A command imports some 350 of
these classes and calls few of their methods except `__init__`, so that compiling the others takes a tenth of a short
command. Only the process of the command line does without it; its classes behave the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

# The signature of a class is that of its `__init__`, which is therefore compiled at once.
_COMPILED_AT_FIRST_CALL = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})


def compile_methods_at_first_call() -> None:
    """Compile methods of all dataclasses defined from now on at their first call, if this Python compiles each alone.

    Python 3.13 and later compile the methods of a class at once, which takes less time, and are left as they are.
    """
    compiled = getattr(dataclasses, "_create_fn", None)
    if compiled is None or compiled.__module__ == __name__:
        return

    def created(name: str, *parts: Any, **options: Any) -> Callable[..., Any]:
        return _at_first_call(name, lambda: compiled(name, *parts, **options)) \
            if name in _COMPILED_AT_FIRST_CALL else compiled(name, *parts, **options)

    setattr(dataclasses, "_create_fn", created)  # noqa: B010


def _at_first_call(name: str, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """Return a method that calls the one of `make` and takes its place in the class."""
    made: list[Callable[..., Any]] = []

    def method(self: Any, *arguments: Any) -> Any:
        if not made:
            made.append(make())
            made[0].__qualname__ = method.__qualname__
            for one in type(self).__mro__:
                if vars(one).get(name) is method:
                    setattr(one, name, made[0])
        return made[0](self, *arguments)

    method.__name__ = name
    return method
