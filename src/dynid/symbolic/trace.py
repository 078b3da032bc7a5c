"""Recording of the terms of a model on an expression graph.

A term is defined by its `entries`, a function of NumPy arrays. Here the function is called with arrays of graph values,
which record arithmetic, the functions below, `np.where`, slices and products with matrices. A user's own term can
therefore be generated as code without further work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.term import Term
from dynid.model.term_capabilities import Step, capabilities, term_name
from dynid.robot import Robot
from dynid.symbolic.graph import Graph, Value, entry_by_name

TRACED_FUNCTIONS = {np.sin: "sin", np.cos: "cos", np.tanh: "tanh", np.arctan: "atan", np.exp: "exp", np.sqrt: "sqrt",
          np.absolute: "abs", np.sign: "sign", np.maximum: "max", np.minimum: "min", np.greater: "greater",
          np.arctan2: "atan2"}
_TRACED_UFUNCS: dict[Any, Callable[..., Value]] = {
    np.add: lambda x, y: x + y, np.subtract: lambda x, y: x - y, np.multiply: lambda x, y: x * y,
    np.divide: lambda x, y: x / y, np.power: lambda x, y: x ** y, np.negative: lambda x: -x, np.positive: lambda x: x,
    np.square: lambda x: x * x}


class Traced(NDArrayOperatorsMixin):
    """An array of graph values that records NumPy's functions."""

    def __init__(self, graph: Graph, values: Any) -> None:
        self.graph = graph
        self.values = np.asarray(values, dtype=object)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def T(self) -> Traced:
        return Traced(self.graph, self.values.T)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Traced:
        return Traced(self.graph, self.values[key])

    def reshape(self, *shape: Any) -> Traced:
        return Traced(self.graph, self.values.reshape(*shape))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Traced:
        if method != "__call__" or options:
            return NotImplemented
        given = [self._lifted(x) for x in inputs]
        if ufunc is np.matmul:
            return Traced(self.graph, given[0] @ given[1])
        if ufunc is np.less:
            ufunc, given = np.greater, given[::-1]
        if ufunc in TRACED_FUNCTIONS:
            name = TRACED_FUNCTIONS[ufunc]
            return self._each(lambda *x: self.graph.apply(name, *x), given)
        if ufunc in _TRACED_UFUNCS:
            return self._each(_TRACED_UFUNCS[ufunc], given)
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.where and len(arguments) == 3:
            return self._each(lambda *x: self.graph.apply("where", *x), [self._lifted(x) for x in arguments])
        if function is np.zeros_like:
            return Traced(self.graph, np.full(self.shape, self.graph.zero))
        if function is np.ones_like:
            return Traced(self.graph, np.full(self.shape, self.graph.one))
        return NotImplemented

    def _lifted(self, x: Any) -> Any:
        if isinstance(x, Traced):
            return x.values
        return np.vectorize(self.graph.value, otypes=[object])(np.asarray(x, dtype=float))

    def _each(self, function: Callable[..., Value], given: Sequence[Any]) -> Traced:
        return Traced(self.graph, np.frompyfunc(function, len(given), 1)(*given))


def evaluated(graph: Graph, outputs: Sequence[Value], inputs: Mapping[str, Array]) -> list[Any]:
    """Return the values (samples,) of graph outputs; inputs: arrays (samples, n) by name."""
    functions: dict[str, Callable[..., Any]] = {name: function for function, name in TRACED_FUNCTIONS.items()}
    functions |= {"pow": np.power, "where": np.where}
    by_name = entry_by_name({name: array.T for name, array in inputs.items()})
    with np.errstate(all="ignore"):
        return graph.replay(outputs, by_name, lambda name, of: functions[name](*of))


def traced_entries(graph: Graph, term: Term, robot: Robot, signals: Sequence[Sequence[Value]],
                   torques: Sequence[Value], memory: Sequence[Value]) -> Iterator[tuple[int, int, Value]]:
    """Yield (joint, parameter, value) for each entry of a term's columns, joint and parameter counted from 0.

    Args:
        graph: graph on which the term is recorded.
        term, robot: the term, and its robot.
        signals: values of q, dq and ddq (dof,).
        torques: values of the torques of the bodies (dof,), for a load-dependent term.
        memory: values of the term's memory (channels,), if it has one.
    """
    q, dq, ddq = (_sample(graph, signal) for signal in signals)
    own = capabilities(term)
    with _named_errors(term):
        if own.load is not None:
            entries = own.load.under_load(robot, _sample(graph, torques), dq)
        elif own.step is not None and own.history is not None:
            entries = own.history.remembered(robot, q, dq, ddq, _sample(graph, memory))
        else:
            entries = term.entries(robot, q, dq, ddq)
        for joint, parameter, values in entries:
            yield int(joint), int(parameter), _single(graph, values)


def traced_step(graph: Graph, term: Term, step: Step, robot: Robot, before: Sequence[Sequence[Value]],
                now: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the memory of a term at a sample, as graph values. before: q, dq and memory at the previous sample. now: q
    and dq at this sample."""
    old, new = ([_sample(graph, signal) for signal in signals] for signals in (before, now))
    with _named_errors(term):
        return [_single(graph, values) for values in step(robot, (old[0], old[1], old[2]), *new)]


def _sample(graph: Graph, signal: Sequence[Value]) -> Any:
    return Traced(graph, np.array(list(signal), dtype=object).reshape(1, -1))


@contextmanager
def _named_errors(term: object) -> Iterator[None]:
    """Add the name of a term to errors that are raised while the term is recorded."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, ModelError) as error:
        kind = term_name(term)
        raise ModelError(f"term '{kind}' cannot be written as code: {error}",
                         "write its entries with NumPy's arithmetic, where, sign, abs, tanh, arctan, exp, sin, cos, "
                         "maximum and minimum") from error


def _single(graph: Graph, values: Traced | ArrayLike) -> Value:
    """Return the graph value of an array with one sample."""
    array = values.values if isinstance(values, Traced) else np.asarray(values, dtype=float)
    return graph.value(array.reshape(-1)[0])
