"""Numbers that also carry their values for other thresholds, and record comparisons whose result would then differ.

A verdict depends on a threshold only through comparisons. One verdict with traced thresholds therefore shows which
changes of thresholds could change it, and only these have to be tested.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

Key = tuple[str, float]  # name of a threshold, and the factor it is multiplied by
REFLECTED = ("add", "sub", "mul", "truediv", "pow", "and", "or")
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("neg", "abs", "invert")


class Traced:
    """A number, or an array, and its values if one threshold were another.

    Attributes:
        value: with the thresholds as they are.
        others: by threshold and factor, the value with that threshold changed.
        decided: thresholds and factors for which some comparison came out otherwise, shared by all numbers of a run.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, others: Mapping[Key, Any], decided: set[Key]) -> None:
        self.value, self.others, self.decided = value, dict(others), decided

    def escape(self) -> Any:
        """Return the plain value. Later computations are not traced, so every threshold that changes the value counts
        as deciding."""
        self.decided.update(key for key, other in self.others.items() if not np.array_equal(self.value, other))
        return self.value

    def __float__(self) -> float:
        return float(self.escape())

    def __index__(self) -> int:
        return int(operator.index(self.escape()))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.escape(), dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.escape(), name)

    def __getitem__(self, place: Any) -> Any:
        return self.escape()[place]

    def __bool__(self) -> bool:
        return bool(_applied(bool, (self,)))

    def __format__(self, how: str) -> str:
        return format(self.escape(), how)

    def any(self, axis: int | None = None, out: None = None) -> Any:
        return _applied(lambda one: np.any(one, axis=axis), (self,))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return getattr(ufunc, method)(*(one.escape() if isinstance(one, Traced) else one for one in inputs),
                                          **options)
        return _applied(ufunc, inputs)


def _applied(function: Callable[..., Any], inputs: Iterable[Any]) -> Any:
    """Return a function of numbers some of which are traced. One truth value is plain, and recorded if it differs."""
    inputs = tuple(inputs)
    traced = [one for one in inputs if isinstance(one, Traced)]

    def at(key: Key | None) -> Any:
        return function(*((one.value if key is None else one.others.get(key, one.value))
                          if isinstance(one, Traced) else one for one in inputs))

    found = Traced(at(None), {key: at(key) for one in traced for key in one.others}, traced[0].decided)
    return found.escape() if isinstance(found.value, bool | np.bool_) else found


def _method(function: Callable[..., Any], reflected: bool = False) -> Callable[..., Any]:
    def method(self: Traced, *other: Any) -> Any:
        return _applied(function, (*other, self) if reflected else (self, *other))

    return method


for _name in (*REFLECTED, *COMPARED, *UNARY):
    setattr(Traced, f"__{_name}__", _method(getattr(operator, f"__{_name}__")))
for _name in REFLECTED:
    setattr(Traced, f"__r{_name}__", _method(getattr(operator, f"__{_name}__"), True))
