"""Writer of generated functions as a Python module: with NumPy for one or many samples, or plain, with only `math`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dynid.escape import python_text
from dynid.symbolic.functions import Function, split
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier, prepared_rows

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_NUMPY = {"abs": "np.abs", "atan": "np.arctan", "atan2": "np.arctan2", "pow": "np.power",
          "max": "np.maximum", "min": "np.minimum", "sign": "np.sign", "greater": "np.greater"}
_COMPILED_FUNCTIONS: WeakKeyDictionary[Any, dict[str, Callable[..., tuple[Any, ...]]]] = WeakKeyDictionary()


def module(program: Program, plain: bool = False) -> str:
    """Return the text of the generated Python module."""
    name = identifier(program.name)
    model = program.plan.model
    about = f"{name}: dynamics of a robot with {model.dof} joints, in SI units. {program.provenance}".rstrip()
    lines = [f'"""{python_text(about)}', "", python_text(f"Joints: {', '.join(model.joint_names)}."),
             "Inputs are " + ("sequences of numbers." if plain else "arrays (n,) or (samples, n)."), '"""', "",
             "import math" if plain else "import numpy as np", ""]
    if program.mode != "fixed":
        lines += [f"P_NAMES = {list(program.parameter_names)!r}", "",
                  f"PARAMETER_NAMES = {list(model.parameters.names)!r}", ""]
    if program.mode == "full":
        lines += ["", "def prepare(theta):",
                  '    """Return the parameters p of the functions (P_NAMES) from theta (PARAMETER_NAMES)."""',
                  "    return [",
                  *prepared_rows(program.matrix, "{}*theta[{}]"), "    ]", ""]
    for function in program.functions:
        about = python_text(f"{function.about} {function.operations}.")
        lines += ["", *_function(function, plain, about)]
    return "\n".join(lines) + "\n"


def _function(function: Function, plain: bool, about: str) -> list[str]:
    statements = Statements(function, _spelling(plain))
    names = [one for one, _ in function.inputs]
    lines = [f"def {function.name}({', '.join(names)}):", f'    """{about}"""']
    if not plain:
        lines += [f"    {one} = np.asarray({one}, dtype=float)" for one in names]
        lines.append(f"    shape = np.broadcast_shapes({', '.join(f'{one}.shape[:-1]' for one in names)})")
    lines += [f"    {line}" for line in statements.lines]
    found = []
    for output, own in zip(function.outputs, split(function.outputs, statements.outputs), strict=True):
        if plain:
            found.append(_nested(own, output.shape))
            continue
        lines.append(f"    {output.name} = np.empty((*shape, {len(own)}))")
        lines += [f"    {output.name}[..., {k}] = {text}" for k, text in enumerate(own)]
        shape = ", ".join(map(str, output.shape))
        found.append(f"{output.name}.reshape((*shape, {shape}))")
    return [*lines, f"    return {', '.join(found)}{',' if len(found) == 1 and not plain else ''}"]


def _nested(texts: Sequence[str], shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"[{', '.join(texts)}]"
    width = shape[1]
    return "[" + ", ".join(f"[{', '.join(texts[k:k + width])}]" for k in range(0, len(texts), width)) + "]"


def _spelling(plain: bool) -> Spelling:
    def of_numpy(function: str, of: Sequence[str]) -> str:
        if function == "where":
            return f"np.where({of[0]} != 0.0, {of[1]}, {of[2]})"
        return f"{_NUMPY.get(function, 'np.' + function)}({', '.join(of)})"

    def of_math(function: str, of: Sequence[str]) -> str:
        match function:
            case "sign":
                return f"(float({of[0]} > 0.0) - float({of[0]} < 0.0))"
            case "greater":
                return f"float({of[0]} > {of[1]})"
            case "where":
                return f"({of[1]} if {of[0]} != 0.0 else {of[2]})"
            case "abs" | "max" | "min":
                return f"{function}({', '.join(of)})"
            case _:
                return f"math.{function}({', '.join(of)})"

    return Spelling(exact, lambda symbol: symbol if plain else symbol.replace("[", "[..., "),
                    of_math if plain else of_numpy, lambda left, right: f"{left} = {right}")


def compiled(program: Program) -> dict[str, Callable[..., tuple[Any, ...]]]:
    """Return the functions of the NumPy module, compiled once per program."""
    if program not in _COMPILED_FUNCTIONS:
        names: dict[str, Any] = {"np": np}
        # Numbers and structure alone: names of functions and signals are dynid's own, and no foreign text is in it.
        lines = [line for function in program.functions for line in _function(function, False, "")]
        exec(compile("\n".join(lines), "<dynid program>", "exec"), names)
        _COMPILED_FUNCTIONS[program] = {function.name: names[function.name] for function in program.functions}
    return _COMPILED_FUNCTIONS[program]
