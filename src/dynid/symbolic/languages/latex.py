"""Writer of generated functions as LaTeX equations, which have intermediate variables for robots with many joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dynid.symbolic.functions import Function
from dynid.symbolic.graph import Node, Value

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

_IN_FULL = 3  # joints
MAX_LATEX_OPERATIONS = 100_000  # operations of a function written in full: loops and steps of Newton's method have more
_SIGNAL_SYMBOLS = {"q": "q", "dq": r"\dot q", "ddq": r"\ddot q", "tau": r"\tau", "p": "p", "memory": "z",
            "q_follow": "q^f", "q_before": "q^-", "dq_before": r"\dot q^-", "memory_before": "z^-"}
_RESULTS = {"tau": r"\tau", "ddq": r"\ddot q", "p_m": "p", "beta": r"\beta", "energy": "E", "memory": "z",
            "found": "q^f"}
LATEX_FUNCTIONS = {"sin": r"\sin", "cos": r"\cos", "tanh": r"\tanh", "atan": r"\arctan", "exp": r"\exp", "max": r"\max",
          "min": r"\min", "sign": r"\operatorname{sign}", "atan2": r"\operatorname{atan2}"}


def equations(program: Program) -> str:
    """Return a LaTeX `align*` environment for each function; joints and parameters are counted from one."""
    few = program.plan.model.dof <= _IN_FULL
    return "\n".join(_equations(function, few and _written_out(function) <= MAX_LATEX_OPERATIONS)
                     for function in program.functions)


def _written_out(function: Function) -> int:
    """Return the number of operations of the fully expanded equations, without intermediate variables."""
    size: dict[int, int] = {}
    for place in function.graph.live(function.values):
        size[place] = 1 + sum(size[k] for k in function.graph.nodes[place].of)
    return sum(size[value.node] for value in function.values)


def _equations(function: Function, full: bool) -> str:
    graph, uses = function.graph, function.graph.uses(function.values)
    texts: dict[int, tuple[str, int]] = {}
    lines: list[str] = []
    for place in graph.live(function.values):
        node = graph.nodes[place]
        text, level = _text(node, texts)
        if not full and node.kind not in ("number", "symbol", "sin", "cos") and uses[place] > 1:
            name = f"x_{{{len(lines) + 1}}}"
            lines.append(f"{name} &= {text}")
            text, level = name, 3
        texts[place] = text, level
    for output in function.outputs:
        symbol = _RESULTS.get(output.name, output.name)
        for k, value in enumerate(output.values):
            if value.number == 0.0 and len(output.shape) == 2:
                continue
            index = str(k + 1) if len(output.shape) == 1 else f"{k // output.shape[1] + 1},{k % output.shape[1] + 1}"
            lines.append(f"{symbol}_{{{index}}} &= {_signed(value, texts)}")
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}"


def _signed(value: Value, texts: dict[int, tuple[str, int]]) -> str:
    text, level = texts[value.node]
    if not value.negative:
        return text
    return f"-{text}" if level > 1 else f"-\\left({text}\\right)"


def _text(node: Node, texts: dict[int, tuple[str, int]]) -> tuple[str, int]:
    def inside(k: int, level: int) -> str:
        text, own = texts[k]
        return text if own >= level else f"\\left({text}\\right)"

    match node.kind:
        case "number":
            return _number(node.value), 3
        case "symbol":
            name, index = node.name[:-1].split("[")
            return f"{_SIGNAL_SYMBOLS[name]}_{{{int(index) + 1}}}", 3
        case "add":
            return f"{texts[node.of[0]][0]} {'-' if node.subtract else '+'} {inside(node.of[1], 2)}", 1
        case "multiply" if node.of[0] == node.of[1]:
            inner = inside(node.of[0], 3)
            return (f"\\left({inner}\\right)^2" if inner.endswith("^2") else f"{inner}^2"), 2
        case "multiply":
            return " \\, ".join(inside(k, 2) for k in node.of), 2
        case "divide":
            return f"\\frac{{{texts[node.of[0]][0]}}}{{{texts[node.of[1]][0]}}}", 3
        case _:
            return _function(node, [texts[k][0] for k in node.of]), 3


def _function(node: Node, of: Sequence[str]) -> str:
    signs = node.negative or (False,) * len(of)
    of = [f"-\\left({x}\\right)" if minus else x for x, minus in zip(of, signs, strict=True)]
    match node.kind:
        case "abs":
            return f"\\left|{of[0]}\\right|"
        case "sqrt":
            return f"\\sqrt{{{of[0]}}}"
        case "pow":
            return f"\\left({of[0]}\\right)^{{{of[1]}}}"
        case "greater":
            return f"\\left[{of[0]} > {of[1]}\\right]"
        case "where":
            return f"\\left({of[0]} \\ne 0 \\;?\\; {of[1]} : {of[2]}\\right)"
        case _:
            return f"{LATEX_FUNCTIONS[node.kind]}\\left({', '.join(of)}\\right)"


def _number(value: float) -> str:
    text = f"{value:.10g}"
    if "e" in text:
        digits, power = text.split("e")
        return f"{digits} \\cdot 10^{{{int(power)}}}"
    return text
