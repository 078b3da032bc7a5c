"""Check that the options of a method have the types of its signature."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from dynid.errors import ModelError

_TYPE_WORDS = {float: "a number", int: "a whole number", str: "a word", bool: "true or false", type(None): "nothing"}


def check_options(method: str, functions: Sequence[Callable[..., Any]], options: Mapping[str, Any]) -> None:
    """Raise an error if an option of a method does not have the type in the signatures of its functions."""
    try:
        hints = {name: hint for function in functions for name, hint in get_type_hints(function).items()}
    except (NameError, TypeError):  # a custom method with types that are not available at run time
        return
    for name, value in options.items():
        kinds = _kinds(hints.get(name, Any))
        if kinds is not None and not any(_has_type(value, kind) for kind in kinds):
            words = " or ".join(dict.fromkeys(_TYPE_WORDS[kind] for kind in kinds if kind is not type(None)))
            raise ModelError(f"option '{name}' of method '{method}' takes {words}, got {value!r}")


def _kinds(hint: Any) -> set[type] | None:
    """Return the built-in types that a type hint allows; None if it allows other types too."""
    if get_origin(hint) in (Union, types.UnionType):
        found = [_kinds(part) for part in get_args(hint)]
        return None if None in found else {kind for part in found if part is not None for kind in part}
    if get_origin(hint) is Literal:
        return {type(value) for value in get_args(hint)}
    return {hint} if hint in _TYPE_WORDS else None


def _has_type(value: Any, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, Real if kind is float else Integral if kind is int else kind)
