"""Conversion of generated functions to CasADi functions and SymPy matrices, if these packages are installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynid.errors import NotPossibleError
from dynid.symbolic.functions import split
from dynid.symbolic.graph import entry_by_name
from dynid.symbolic.languages.text import identifier

if TYPE_CHECKING:
    from dynid.symbolic.program import Program


def casadi_functions(program: Program) -> dict[str, Any]:
    """Return CasADi functions by name; each output is a matrix."""
    casadi = _package("casadi")
    found = {}
    for function in program.functions:
        symbols = {one: casadi.SX.sym(one, size) for one, size in function.inputs}
        flat = function.graph.replay(function.values, entry_by_name(symbols), _functions(casadi, {
            "abs": casadi.fabs, "max": casadi.fmax, "min": casadi.fmin, "pow": lambda x, y: x ** y,
            "greater": lambda x, y: x > y, "where": casadi.if_else}))
        outputs = []
        for output, own in zip(function.outputs, split(function.outputs, flat), strict=True):
            rows, columns = output.shape if len(output.shape) == 2 else (output.shape[0], 1)
            outputs.append(casadi.reshape(casadi.vertcat(*own), columns, rows).T)
        found[function.name] = casadi.Function(identifier(function.name), list(symbols.values()), outputs,
                                               [one for one, _ in function.inputs],
                                               [output.name for output in function.outputs])
    return found


def sympy_matrices(program: Program) -> dict[str, Any]:
    """Return SymPy matrices {function: {output: matrix}}, in symbols q0, q1, .., dq0, .."""
    sympy = _package("sympy")
    found: dict[str, Any] = {}
    for function in program.functions:
        symbols = {one: [sympy.Symbol(f"{one}{k}", real=True) for k in range(size)] for one, size in function.inputs}
        flat = function.graph.replay(function.values, entry_by_name(symbols), _functions(sympy, {
            "abs": sympy.Abs, "max": sympy.Max, "min": sympy.Min, "pow": sympy.Pow,
            "greater": lambda x, y: sympy.Piecewise((1.0, x > y), (0.0, True)),
            "where": lambda c, x, y: sympy.Piecewise((x, sympy.Ne(c, 0)), (y, True))}))
        parts = zip(function.outputs, split(function.outputs, flat), strict=True)
        found[function.name] = {output.name: sympy.Matrix(*(*output.shape, 1)[:2], own) for output, own in parts}
    return found


def _functions(package: Any, own: dict[str, Callable[..., Any]]) -> Callable[[str, Sequence[Any]], Any]:
    return lambda name, of: (own.get(name) or getattr(package, name))(*of)


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise NotPossibleError(f"this function needs the Python package '{name}', which is not installed",
                               f"install it: pip install {name}") from None
