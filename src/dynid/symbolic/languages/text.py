"""Statements: a function's graph as lines of text, whatever the language.

A value that is used once stands where it is used; one that is used more often, or would make a line too long, gets a
name of its own.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dynid.errors import ModelError
from dynid.symbolic.functions import Function
from dynid.symbolic.graph import Node, Value

_LONG = 90  # characters of an expression beyond which it is given a name
_SUM, _PRODUCT, _ATOM = 1, 2, 3


@dataclass(frozen=True)
class Spelling:
    """How a language writes numbers, inputs and functions. pairs: sine and cosine of one angle are asked for at once,
    as the text `pair` gives, with names for both."""

    number: Callable[[float], str]
    symbol: Callable[[str], str]
    function: Callable[[str, Sequence[str]], str]
    statement: Callable[[str, str], str]
    pair: Callable[[str, str, str], str] | None = None
    temporary: str = "x"


class Statements:
    """Lines of one function and the texts of its outputs' values, in order."""

    def __init__(self, function: Function, spelling: Spelling) -> None:
        self._graph, self._spelling, self._function = function.graph, spelling, function
        self._uses = function.graph.uses(function.values)
        self._texts: dict[int, tuple[str, int]] = {}
        self._pairs: dict[int, int] = {}
        self._names = 0
        self.lines: list[str] = []
        for place in function.graph.live(function.values):
            self._texts[place] = self._text(place)
        self.outputs = [self._signed(value) for value in function.values]

    @cached_property
    def inputs(self) -> set[str]:
        """Names of the inputs that are used at all."""
        nodes = self._graph.nodes
        return {nodes[place].name.split("[")[0] for place in self._graph.live(self._function.values)
                if nodes[place].kind == "symbol"}

    def _text(self, place: int) -> tuple[str, int]:
        node, spell = self._graph.nodes[place], self._spelling
        if node.kind in ("sin", "cos") and spell.pair is not None:
            return self._of_pair(node), _ATOM
        text, level = self._expression(node)
        if node.kind in ("number", "symbol") or (self._uses[place] == 1 and len(text) < _LONG):
            return text, level
        return self._named(text), _ATOM

    def _named(self, text: str) -> str:
        name = f"{self._spelling.temporary}{self._names}"
        self._names += 1
        self.lines.append(self._spelling.statement(name, text))
        return name

    def _of_pair(self, node: Node) -> str:
        assert self._spelling.pair is not None
        angle = node.of[0]
        if angle not in self._pairs:
            self._pairs[angle] = len(self._pairs)
            k = self._pairs[angle]
            self.lines.append(self._spelling.pair(self._texts[angle][0], f"s{k}", f"c{k}"))
        return f"{'s' if node.kind == 'sin' else 'c'}{self._pairs[angle]}"

    def _expression(self, node: Node) -> tuple[str, int]:
        spell = self._spelling
        match node.kind:
            case "number":
                return spell.number(node.value), _ATOM
            case "symbol":
                return spell.symbol(node.name), _ATOM
            case "add":
                first, second = (self._texts[k] for k in node.of)
                minus = node.subtract
                right = self._inside(second, _PRODUCT if minus else _SUM)
                return f"{first[0]} {'-' if minus else '+'} {right}", _SUM
            case "multiply":
                return "*".join(self._inside(self._texts[k], _PRODUCT) for k in node.of), _PRODUCT
            case "divide":
                first, second = (self._texts[k] for k in node.of)
                return f"{self._inside(first, _PRODUCT)}/{self._inside(second, _ATOM)}", _PRODUCT
            case _:
                signs = node.negative or (False,) * len(node.of)
                of = [("-" + self._inside(self._texts[k], _ATOM) if minus else self._texts[k][0])
                      for k, minus in zip(node.of, signs, strict=True)]
                return spell.function(node.kind, of), _ATOM

    @staticmethod
    def _inside(text: tuple[str, int], level: int) -> str:
        return text[0] if text[1] >= level else f"({text[0]})"

    def _signed(self, value: Value) -> str:
        text = self._texts[value.node]
        return f"-{self._inside(text, _PRODUCT)}" if value.negative else text[0]


def exact(number: float) -> str:
    """The shortest decimal text that gives the same double, with a point in it."""
    text = repr(float(number))
    return text if any(c in text for c in ".en") else text + ".0"


_TAKEN = {"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "end", "enum",
          "extern", "float", "for", "function", "goto", "if", "inline", "int", "long", "main", "module", "register",
          "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union",
          "unsigned", "void", "volatile", "while", "begin", "baremodule", "quote", "let", "using", "export", "mutable",
          "abstract"}


def identifier(name: str) -> str:
    """A name that is one in every language: letters, digits and underscores, not beginning with a digit."""
    text = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")
    if not text:
        raise ModelError(f"'{name}' has no letter or digit that generated code could be called by", "give a name")
    if text[0].isdigit() or text in _TAKEN or keyword.iskeyword(text):
        text = f"robot_{text}"
    return text
