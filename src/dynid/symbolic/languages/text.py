"""Conversion of a function's expression graph to lines of code in any language.

A value that is used once is written in place. A value that is used more often, or would make a line too long, is given
a name. Sines and cosines of the joints come first, so that no value is kept across a call. Independent operations are
placed next to each other.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.symbolic.functions import Function
from dynid.symbolic.graph import FUNCTIONS, Graph, Node, Value

MAX_EXPRESSION_LENGTH = 90  # characters of an expression beyond which it is given a name
_SUM_PRECEDENCE, _PRODUCT_PRECEDENCE, _ATOM_PRECEDENCE = 1, 2, 3


@dataclass(frozen=True)
class Spelling:
    """Syntax of a programming language.

    Attributes:
        number, symbol: text of a number and of an input.
        function: text of a function call, from the name and the texts of the arguments.
        statement: text of an assignment, from the name and the expression.
        angles: takes the texts of angles and the number of earlier angles. It returns lines that compute all sines and
            cosines together, and the texts of both for each angle. None: sines and cosines are computed one by one.
        always: whether sines and cosines can only be computed by `angles`.
    """

    number: Callable[[float], str]
    symbol: Callable[[str], str]
    function: Callable[[str, Sequence[str]], str]
    statement: Callable[[str, str], str]
    angles: Callable[[Sequence[str], int], tuple[list[str], list[tuple[str, str]]]] | None = None
    always: bool = False


class Statements:
    """Lines of code of one function, and the texts of its output values in order."""

    def __init__(self, function: Function, spelling: Spelling) -> None:
        self._graph, self._spelling, self._function = function.graph, spelling, function
        self._uses = function.graph.uses(function.values)
        self._texts: dict[int, tuple[str, int]] = {}
        self._angles: dict[int, tuple[str, str]] = {}
        self._names = 0
        self.lines: list[str] = []
        early, angles, late = _ordered(function.graph, function.values)
        for place in early:
            self._texts[place] = self._text(place)
        if spelling.angles is not None and (spelling.always or len(angles) > 1):
            self._pair(angles)
        for place in late:
            self._texts[place] = self._text(place)
        self.outputs = [self._signed(value) for value in function.values]

    @cached_property
    def inputs(self) -> set[str]:
        """Names of the inputs that the statements use."""
        nodes = self._graph.nodes
        return {nodes[place].name.split("[")[0] for place in self._graph.live(self._function.values)
                if nodes[place].kind == "symbol"}

    def _text(self, place: int) -> tuple[str, int]:
        node, spell = self._graph.nodes[place], self._spelling
        if node.kind in ("sin", "cos"):
            if spell.always and node.of[0] not in self._angles:
                self._pair(node.of)
            if node.of[0] in self._angles:
                return self._angles[node.of[0]][node.kind == "cos"], _ATOM_PRECEDENCE
        text, level = self._expression(node)
        if node.kind in ("number", "symbol") or (self._uses[place] == 1 and len(text) < MAX_EXPRESSION_LENGTH):
            return text, level
        return self._named(text), _ATOM_PRECEDENCE

    def _named(self, text: str) -> str:
        name = f"x{self._names}"
        self._names += 1
        self.lines.append(self._spelling.statement(name, text))
        return name

    def _pair(self, angles: Sequence[int]) -> None:
        """Add lines that compute sine and cosine of the given angles together, and store their texts."""
        assert self._spelling.angles is not None
        lines, pairs = self._spelling.angles([self._texts[k][0] for k in angles], len(self._angles))
        self.lines += lines
        self._angles |= dict(zip(angles, pairs, strict=True))

    def _expression(self, node: Node) -> tuple[str, int]:
        spell = self._spelling
        match node.kind:
            case "number":
                return spell.number(node.value), _ATOM_PRECEDENCE
            case "symbol":
                return spell.symbol(node.name), _ATOM_PRECEDENCE
            case "add":
                first, second = (self._texts[k] for k in node.of)
                minus = node.subtract
                right = self._inside(second, _PRODUCT_PRECEDENCE if minus else _SUM_PRECEDENCE)
                return f"{first[0]} {'-' if minus else '+'} {right}", _SUM_PRECEDENCE
            case "multiply":
                return "*".join(self._inside(self._texts[k], _PRODUCT_PRECEDENCE) for k in node.of), _PRODUCT_PRECEDENCE
            case "divide":
                first, second = (self._texts[k] for k in node.of)
                text = f"{self._inside(first, _PRODUCT_PRECEDENCE)}/{self._inside(second, _ATOM_PRECEDENCE)}"
                return text, _PRODUCT_PRECEDENCE
            case _:
                signs = node.negative or (False,) * len(node.of)
                of = [("-" + self._inside(self._texts[k], _ATOM_PRECEDENCE) if minus else self._texts[k][0])
                      for k, minus in zip(node.of, signs, strict=True)]
                return spell.function(node.kind, of), _ATOM_PRECEDENCE

    @staticmethod
    def _inside(text: tuple[str, int], level: int) -> str:
        return text[0] if text[1] >= level else f"({text[0]})"

    def _signed(self, value: Value) -> str:
        text = self._texts[value.node]
        return f"-{self._inside(text, _PRODUCT_PRECEDENCE)}" if value.negative else text[0]


def _ordered(graph: Graph, values: Sequence[Value]) -> tuple[list[int], list[int], list[int]]:
    """Return the nodes that compute arguments of sines and cosines, these arguments, and all other nodes by depth."""
    live, nodes, functions, depth = graph.live(values), graph.nodes, set[int](), dict[int, int]()
    angles: list[int] = []
    for place in live:
        node = nodes[place]
        depth[place] = (node.kind in ("add", "multiply", "divide")) + max((depth[k] for k in node.of), default=0)
        if node.kind in ("sin", "cos") and node.of[0] not in functions and node.of[0] not in angles:
            angles.append(node.of[0])
        if node.kind in FUNCTIONS or any(k in functions for k in node.of):
            functions.add(place)
    early = set(graph.live([Value(graph, k) for k in angles]))
    early |= {place for place in live if nodes[place].kind in ("number", "symbol")}
    first = [place for place in live if nodes[place].kind in ("sin", "cos") and nodes[place].of[0] in angles]
    late = sorted((place for place in live if place not in early.union(first)), key=lambda place: depth[place])
    return sorted(early), angles, [*first, *late]


def prepared_rows(matrix: Array, product: str, first: int = 0) -> list[str]:
    """Return a line of code for each entry of p = matrix theta.

    product: format of a coefficient times an entry of theta; first: index of the first entry of theta.
    """
    return ["        " + (" + ".join(product.format(exact(row[c]), c + first) for c in np.flatnonzero(row)) or "0.0")
            + "," for row in matrix]


def exact(number: float) -> str:
    """Return the shortest decimal text of a double, with a point."""
    text = repr(float(number))
    return text if any(c in text for c in ".en") else text + ".0"


_RESERVED_WORDS = frozenset((
    "auto break case char const continue default do double else end enum extern float for function goto if inline "
    "int long main module register restrict return short signed sizeof static struct switch typedef union "
    "unsigned void volatile while begin baremodule quote let using export mutable abstract"
).split())


def identifier(name: str) -> str:
    """Return a name that is valid in every language: letters, digits and underscores, not starting with a digit."""
    text = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")
    if not text:
        raise ModelError(f"the name '{name}' of the generated code has no letter or digit",
                         "give another name with --name, or name=... in Python")
    if text[0].isdigit() or text in _RESERVED_WORDS or keyword.iskeyword(text):
        text = f"robot_{text}"
    return text
