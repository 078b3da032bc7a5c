"""Writer of generated functions as a Julia module, whose arguments are vectors of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynid.escape import comment, julia_text
from dynid.symbolic.functions import Function, split
from dynid.symbolic.languages.text import Spelling, Statements, exact, identifier, prepared_rows

if TYPE_CHECKING:
    from dynid.symbolic.program import Program


def module(program: Program) -> str:
    """Return the text of the Julia module; indices start at one."""
    name = identifier(program.name)
    title = name[0].upper() + name[1:]
    model = program.plan.model
    about = f"{name}: dynamics of a robot with {model.dof} joints, in SI units. {program.provenance}".rstrip()
    lines = [f"# {comment(about)}", f"module {title}", ""]
    if program.mode != "fixed":
        lines += [f"const P_NAMES = [{', '.join(_text(one) for one in program.parameter_names)}]", "",
                  f"const PARAMETER_NAMES = [{', '.join(_text(one) for one in model.parameters.names)}]", ""]
    if program.mode == "full":
        lines += ['"Return the parameters p of the functions (P_NAMES) from theta (PARAMETER_NAMES)."',
                  "function prepare(theta)", "    return [",
                  *prepared_rows(program.matrix, "{}*theta[{}]", first=1), "    ]", "end", ""]
    for function in program.functions:
        lines += [*_function(function), ""]
    return "\n".join([*lines, "end"]) + "\n"


def _text(name: str) -> str:
    return f'"{julia_text(name)}"'


def _function(function: Function) -> list[str]:
    statements = Statements(function, _SPELLING)
    lines = [_text(f"{function.about} {function.operations}."),
             f"function {function.name}({', '.join(one for one, _ in function.inputs)})"]
    lines += [f"    {line}" for line in statements.lines]
    found = []
    for output, own in zip(function.outputs, split(function.outputs, statements.outputs), strict=True):
        if len(output.shape) == 1:
            found.append(f"[{', '.join(own)}]")
        else:
            width = output.shape[1]
            found.append("[" + "; ".join(" ".join(f"({x})" for x in own[k:k + width])
                                         for k in range(0, len(own), width)) + "]")
    return [*lines, f"    return {', '.join(found)}", "end"]


def _symbol(symbol: str) -> str:
    name, index = symbol[:-1].split("[")
    return f"{name}[{int(index) + 1}]"


def _function_text(function: str, of: Sequence[str]) -> str:
    match function:
        case "greater":
            return f"Float64({of[0]} > {of[1]})"
        case "where":
            return f"ifelse({of[0]} != 0.0, {of[1]}, {of[2]})"
        case "atan2":
            return f"atan({of[0]}, {of[1]})"
        case "pow":
            return f"({of[0]})^({of[1]})"
        case _:
            return f"{function}({', '.join(of)})"


_SPELLING = Spelling(exact, _symbol, _function_text, lambda left, right: f"{left} = {right}")
