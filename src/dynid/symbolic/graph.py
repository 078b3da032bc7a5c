"""Expression graph: arithmetic on unknown numbers, with each value computed once.

A value is a node of the graph with a sign, so that negation is not an operation. Nodes are stored by their operands: a
repeated expression is the same node, constants are evaluated immediately, and unused nodes are not written
(`Graph.live`). The number of operations depends on the recursion that runs on the graph, not on algebraic
simplification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynid.errors import ModelError

Number = float | int
FUNCTIONS: dict[str, Callable[..., float]] = {
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "atan": math.atan, "exp": math.exp, "sqrt": math.sqrt,
    "abs": abs, "sign": lambda x: float((x > 0.0) - (x < 0.0)), "pow": math.pow, "max": max, "min": min,
    "atan2": math.atan2, "greater": lambda x, y: float(x > y), "where": lambda c, x, y: x if c != 0.0 else y}
_ODD_FUNCTIONS = {"sin", "tanh", "atan", "sign"}
_EVEN_FUNCTIONS = {"cos", "abs"}


class Node(NamedTuple):
    """A node of the expression graph: an operation and its operands.

    Attributes:
        kind: "number", "symbol", "add", "multiply", "divide" or a name of `FUNCTIONS`.
        of: indices of the operands among the nodes.
        subtract: for an addition, whether the second operand is subtracted.
        negative: for a function, which of its arguments are negated.
        value: for a number, its size; the sign is stored in `Value`.
        name: for a symbol, its name.
    """

    kind: str
    of: tuple[int, ...] = ()
    subtract: bool = False
    negative: tuple[bool, ...] = ()
    value: float = 0.0
    name: str = ""


class Value:
    """A value of the expression graph: a node with a sign, with arithmetic operators."""

    __slots__ = ("graph", "negative", "node")

    def __init__(self, graph: Graph, node: int, negative: bool = False) -> None:
        self.graph, self.node, self.negative = graph, node, negative

    @property
    def number(self) -> float | None:
        """The number of a constant value, otherwise None."""
        node = self.graph.nodes[self.node]
        if node.kind != "number":
            return None
        return -node.value if self.negative else node.value

    def __neg__(self) -> Value:
        return self if self.node == self.graph.zero.node else Value(self.graph, self.node, not self.negative)

    def __add__(self, other: Value | Number) -> Value:
        return self.graph.add(self, self.graph.value(other))

    def __sub__(self, other: Value | Number) -> Value:
        return self.graph.add(self, -self.graph.value(other))

    def __mul__(self, other: Value | Number) -> Value:
        return self.graph.multiply(self, self.graph.value(other))

    def __truediv__(self, other: Value | Number) -> Value:
        return self.graph.divide(self, self.graph.value(other))

    def __pow__(self, other: Value | Number) -> Value:
        return self.graph.power(self, self.graph.value(other))

    def __rsub__(self, other: Number) -> Value:
        return self.graph.add(self.graph.value(other), -self)

    def __rtruediv__(self, other: Number) -> Value:
        return self.graph.divide(self.graph.value(other), self)

    def __rpow__(self, other: Number) -> Value:
        return self.graph.power(self.graph.value(other), self)

    def __abs__(self) -> Value:
        return self.graph.apply("abs", self)

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and (self.node, self.negative) == (other.node, other.negative)

    def __hash__(self) -> int:
        return hash((self.node, self.negative))


@dataclass(frozen=True)
class Operations:
    """Numbers of operations. Functions such as sin and cos are counted separately; a change of sign is free."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    functions: int = 0

    @property
    def total(self) -> int:
        """Multiplications and additions together, as in the literature."""
        return self.multiplications + self.additions

    def __str__(self) -> str:
        return (f"{self.multiplications} multiplications, {self.additions} additions, {self.divisions} divisions, "
                f"{self.functions} functions")


class Graph:
    """Expression graph: all nodes, each after its operands."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._known: dict[Node, int] = {}
        self.zero, self.one = self.value(0.0), self.value(1.0)

    def _keep(self, node: Node) -> int:
        place = self._known.get(node)
        if place is None:
            place = self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return place

    def value(self, number: Value | Number) -> Value:
        """Return a number as a value of the graph; a value is returned unchanged."""
        if isinstance(number, Value):
            return number
        number = float(number)
        if not math.isfinite(number):
            raise ModelError("a parameter or constant of the model is not finite, so it cannot be written as "
                             "generated code", code="not-finite")
        return Value(self, self._keep(Node("number", value=abs(number))), number < 0.0)

    def symbol(self, name: str) -> Value:
        """Return an input of the expression graph by its name."""
        return Value(self, self._keep(Node("symbol", name=name)))

    def symbols(self, name: str, count: int) -> list[Value]:
        """Return `count` inputs of the expression graph: name[0], name[1] and so on."""
        return [self.symbol(f"{name}[{k}]") for k in range(count)]

    def add(self, a: Value, b: Value) -> Value:
        """Return the graph value a + b."""
        x, y = a.number, b.number
        if x is not None and y is not None:
            return self.value(x + y)
        if x == 0.0:
            return b
        if y == 0.0:
            return a
        if a.node == b.node:
            return self.zero if a.negative != b.negative else self.multiply(a, self.value(2.0))
        if a.node > b.node:
            a, b = b, a
        node = self._keep(Node("add", (a.node, b.node), subtract=a.negative != b.negative))
        return Value(self, node, a.negative)

    def multiply(self, a: Value, b: Value) -> Value:
        """Return the graph value of the product a b."""
        x, y = a.number, b.number
        if x is not None and y is not None:
            return self.value(x * y)
        if x is not None:
            a, b, x, y = b, a, y, x
        if y is not None:
            if y == 0.0:
                return self.zero
            if abs(y) == 1.0:
                return a if y > 0 else -a
            inside = self.nodes[a.node]
            if inside.kind == "multiply" and self.nodes[inside.of[0]].kind == "number":  # c (d x) = (c d) x
                product = self.value(y * self.nodes[inside.of[0]].value * (-1.0 if a.negative else 1.0))
                return self.multiply(product, Value(self, inside.of[1]))
        first, second = (a.node, b.node) if a.node <= b.node else (b.node, a.node)
        if y is not None:  # the number first, so that the rule above finds it
            first, second = b.node, a.node
        return Value(self, self._keep(Node("multiply", (first, second))), a.negative != b.negative)

    def divide(self, a: Value, b: Value) -> Value:
        """Return the graph value a / b."""
        x, y = a.number, b.number
        if y == 0.0:
            raise ModelError("generated code would divide by zero", code="division-by-zero")
        if x == 0.0:
            return self.zero
        if y is not None:
            return self.multiply(a, self.value(1.0 / y)) if x is None else self.value(x / y)
        return Value(self, self._keep(Node("divide", (a.node, b.node))), a.negative != b.negative)

    def power(self, a: Value, b: Value) -> Value:
        """Return a to the power b; small integer powers by multiplication."""
        exponent = b.number
        if exponent is not None and exponent == int(exponent) and 0 <= exponent <= 8:
            product = self.one
            for _ in range(int(exponent)):
                product = self.multiply(product, a)
            return product
        if exponent == 0.5:
            return self.apply("sqrt", a)
        return self.apply("pow", a, b)

    def apply(self, function: str, *of: Value | Number) -> Value:
        """Return the graph value of a function such as sin (see `FUNCTIONS`); it is a constant if all arguments are."""
        values = [self.value(x) for x in of]
        numbers = [x.number for x in values]
        if all(x is not None for x in numbers):
            return self.value(FUNCTIONS[function](*numbers))
        if function == "where" and numbers[0] is not None:
            return values[1] if numbers[0] != 0.0 else values[2]
        if function in _ODD_FUNCTIONS | _EVEN_FUNCTIONS:
            inner = Value(self, values[0].node)
            made = Value(self, self._keep(Node(function, (inner.node,))))
            return -made if function in _ODD_FUNCTIONS and values[0].negative else made
        return Value(self, self._keep(Node(function, tuple(x.node for x in values),
                                           negative=tuple(x.negative for x in values))))

    def again(self, node: Node, made: Mapping[int, Value]) -> Value:
        """Copy a node of another graph to this graph; `made`: values on this graph of the node's operands."""
        return _made(node, made, self.symbol, self._apply, self.value)

    def _apply(self, function: str, of: Sequence[Value]) -> Value:
        return self.apply(function, *of)

    def rewritten(self, outputs: Sequence[Value], made: dict[int, Value]) -> list[Value]:
        """Return the outputs after replacing nodes by the values that `made` has for them; values of other nodes are
        added to `made`."""
        return self.replay(outputs, self.symbol, self._apply, self.value, made)

    def taken_over(self, other: Graph, outputs: Sequence[Value], inputs: Mapping[str, Sequence[Value]]) -> list[Value]:
        """Return copies of another graph's outputs on this graph, with given values for its inputs."""
        return other.replay(outputs, entry_by_name(inputs), self._apply, self.value)

    def live(self, outputs: Iterable[Value]) -> list[int]:
        """Return the nodes that the outputs need, each after its operands."""
        needed, waiting = set[int](), [value.node for value in outputs]
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting.extend(self.nodes[node].of)
        return sorted(needed)

    def operations(self, outputs: Sequence[Value]) -> Operations:
        """Count the operations that the outputs need."""
        count = {"multiply": 0, "add": 0, "divide": 0}
        functions = 0
        for place in self.live(outputs):
            node = self.nodes[place]
            if node.kind in count:
                count[node.kind] += 1
            elif node.kind in FUNCTIONS:
                functions += 1
        return Operations(count["multiply"], count["add"], count["divide"], functions)

    def uses(self, outputs: Sequence[Value]) -> dict[int, int]:
        """Count how often each live node is used, outputs included."""
        times: dict[int, int] = {}
        for place in self.live(outputs):
            for inner in self.nodes[place].of:
                times[inner] = times.get(inner, 0) + 1
        for value in outputs:
            times[value.node] = times.get(value.node, 0) + 1
        return times

    def replay(self, outputs: Sequence[Value], symbol: Callable[[str], Any],
               function: Callable[[str, Sequence[Any]], Any], number: Callable[[float], Any] = float,
               made: dict[int, Any] | None = None) -> list[Any]:
        """Evaluate the outputs on other objects with their own arithmetic, such as arrays or symbols.

        Args:
            outputs: values of this graph.
            symbol: returns the array or symbol of an input, given its name.
            function: returns the result of a function of `FUNCTIONS`, given its name and arguments.
            number: converts a constant.
            made: results of nodes that are known already, by node; the results of all other nodes are added.
        """
        made = {} if made is None else made
        for place in self.live(outputs):
            if place not in made:
                made[place] = _made(self.nodes[place], made, symbol, function, number)
        return signed(outputs, made)


def entry_by_name(inputs: Mapping[str, Any]) -> Callable[[str], Any]:
    """Return a function that returns the entry of an input, given its name in a graph, such as q[2]."""
    def entry(name: str) -> Any:
        signal, index = name[:-1].split("[")
        return inputs[signal][int(index)]

    return entry


def signed(outputs: Sequence[Value], made: Mapping[int, Any]) -> list[Any]:
    """Return the results of graph values, signs included, from the results `made` of their nodes."""
    return [-made[value.node] if value.negative else made[value.node] for value in outputs]


def _made(node: Node, made: Mapping[int, Any], symbol: Callable[[str], Any],
          function: Callable[[str, Sequence[Any]], Any], number: Callable[[float], Any]) -> Any:
    """Evaluate a node from the results `made` of its operands; arguments are as for `Graph.replay`."""
    of = [made[k] for k in node.of]
    match node.kind:
        case "number":
            return number(node.value)
        case "symbol":
            return symbol(node.name)
        case "add":
            return of[0] - of[1] if node.subtract else of[0] + of[1]
        case "multiply":
            return of[0] * of[1]
        case "divide":
            return of[0] / of[1]
        case _:
            signs = node.negative or (False,) * len(of)
            return function(node.kind, [-x if minus else x for x, minus in zip(of, signs, strict=True)])


class Derivatives:
    """Derivatives of graph values by time for given rates of the inputs; each node is differentiated only once."""

    def __init__(self, graph: Graph, rates: Mapping[Value, Value]) -> None:
        self._graph, self._known = graph, {by.node: rate for by, rate in rates.items()}

    def __call__(self, value: Value) -> Value:
        if value.node not in self._known:
            for k in self._graph.live([value]):  # operands come first, so that nothing recurses
                if k not in self._known:
                    self._known[k] = self._rule(k, self._graph.nodes[k])
        return -self._known[value.node] if value.negative else self._known[value.node]

    def _rule(self, place: int, node: Node) -> Value:
        """Return the derivative of node number `place` from the derivatives of its operands."""
        graph, known = self._graph, self._known
        if node.kind in ("number", "symbol"):
            return graph.zero
        x, dx = Value(graph, node.of[0]), known[node.of[0]]
        match node.kind:
            case "add":
                dy = known[node.of[1]]
                return dx - dy if node.subtract else dx + dy
            case "multiply":
                return dx * Value(graph, node.of[1]) + x * known[node.of[1]]
            case "divide":
                y, dy = Value(graph, node.of[1]), known[node.of[1]]
                return (dx - Value(graph, place) * dy) / y
            case "sin":
                return graph.apply("cos", x) * dx
            case "cos":
                return -(graph.apply("sin", x) * dx)
            case "tanh":
                return (1.0 - Value(graph, place) * Value(graph, place)) * dx
            case "atan":
                return dx / (1.0 + x * x)
            case "abs":
                return graph.apply("sign", x) * dx
            case "sign" | "greater":
                return graph.zero
            case "where":
                branches = (-known[k] if minus else known[k]
                            for k, minus in zip(node.of[1:], node.negative[1:], strict=True))
                return graph.apply("where", -x if node.negative[0] else x, *branches)
            case _:
                raise ModelError(f"code generation cannot differentiate the operation '{node.kind}'")
