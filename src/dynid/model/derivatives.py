"""Derivatives of a term's entries by the motion, from the same lines that compute the entries.

A term is defined by its `entries`, a function of arrays. Called with the signals below, these lines compute each entry
together with its derivatives by the positions, velocities and accelerations of the joints (forward accumulation).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from dynid.arrays import Array

Partials = dict[tuple[int, int], Any]  # by signal and joint: derivative (samples,), or a number for all samples
_Rule = Callable[..., Any]  # derivative by one argument, from the result and the arguments

_COMPARISONS = (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
_DERIVATIVE_RULES: dict[Any, tuple[_Rule, ...]] = {
    np.add: (lambda f, x, y: 1.0, lambda f, x, y: 1.0), np.subtract: (lambda f, x, y: 1.0, lambda f, x, y: -1.0),
    np.multiply: (lambda f, x, y: y, lambda f, x, y: x), np.divide: (lambda f, x, y: 1.0 / y, lambda f, x, y: -f / y),
    np.power: (lambda f, x, y: np.where(np.equal(y, 0.0), 0.0, y * x ** (y - 1.0)), lambda f, x, y: f * np.log(x)),
    np.negative: (lambda f, x: -1.0,), np.positive: (lambda f, x: 1.0,), np.square: (lambda f, x: 2.0 * x,),
    np.sin: (lambda f, x: np.cos(x),), np.cos: (lambda f, x: -np.sin(x),), np.tanh: (lambda f, x: 1.0 - f * f,),
    np.arctan: (lambda f, x: 1.0 / (1.0 + x * x),), np.exp: (lambda f, x: f,), np.sqrt: (lambda f, x: 0.5 / f,),
    np.absolute: (lambda f, x: np.sign(x),), np.sign: (lambda f, x: 0.0,),
    np.maximum: (lambda f, x, y: np.greater_equal(x, y), lambda f, x, y: np.less(x, y)),
    np.minimum: (lambda f, x, y: np.less_equal(x, y), lambda f, x, y: np.greater(x, y)),
    np.arctan2: (lambda f, y, x: x / (x * x + y * y), lambda f, y, x: -y / (x * x + y * y))}


class NotDifferentiableError(TypeError):
    """A term's entries use an operation that this module has no derivative of."""


class Differentiated(NDArrayOperatorsMixin):
    """Values (samples,) of a function of the motion, with their derivatives by the signals of the joints."""

    def __init__(self, value: Any, partials: Partials) -> None:
        self.value, self.partials = value, partials

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NotDifferentiableError("an array of values alone would lose their derivatives")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        values = [x.value if isinstance(x, Differentiated) else x for x in inputs]
        if method != "__call__" or options or (ufunc not in _DERIVATIVE_RULES and ufunc not in _COMPARISONS):
            return NotImplemented
        found = ufunc(*values)
        if ufunc in _COMPARISONS:
            return found
        partials: Partials = {}
        for x, rule in zip(inputs, _DERIVATIVE_RULES[ufunc], strict=True):
            if isinstance(x, Differentiated):
                slope = rule(found, *values)
                for key, own in x.partials.items():
                    partials[key] = partials[key] + slope * own if key in partials else slope * own
        return Differentiated(found, partials)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in (np.zeros_like, np.ones_like) and not options:
            return function(self.value)
        if function is not np.where or len(arguments) != 3 or isinstance(arguments[0], Differentiated):
            raise NotDifferentiableError(f"there is no derivative of {function.__name__}")
        chosen, *both = arguments
        parts = [x.partials if isinstance(x, Differentiated) else {} for x in both]
        values = [x.value if isinstance(x, Differentiated) else x for x in both]
        return Differentiated(np.where(chosen, *values), {
            key: np.where(chosen, parts[0].get(key, 0.0), parts[1].get(key, 0.0)) for key in {**parts[0], **parts[1]}})


class Signal:
    """Positions, velocities or accelerations of all joints (samples, dof), of which a term takes columns."""

    __array_ufunc__ = None  # operators with arrays are those below

    def __init__(self, values: Array, number: int) -> None:
        self.values, self.number, self.shape, self.ndim = values, number, values.shape, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NotDifferentiableError("an array of values alone would lose their derivatives")

    def __getitem__(self, key: Any) -> Differentiated:
        rows, joint = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
        if rows != slice(None) or not isinstance(joint, int | np.integer):
            raise NotDifferentiableError("only whole columns have derivatives")
        return Differentiated(self.values[:, joint], {(self.number, int(joint) % self.shape[1]): 1.0})

    def __matmul__(self, weights: Array) -> Differentiated:
        if np.ndim(weights) != 1:
            raise NotDifferentiableError("only sums over the joints have derivatives")
        return Differentiated(self.values @ weights, {(self.number, j): float(weights[j])
                                                      for j in np.flatnonzero(weights).tolist()})
