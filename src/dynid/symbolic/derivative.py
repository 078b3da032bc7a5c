"""Derivatives of values on the graph."""

from __future__ import annotations

from collections.abc import Mapping

from dynid.errors import ModelError
from dynid.symbolic.graph import Graph, Node, Value


class Derivatives:
    """Derivatives along given rates of some inputs; each node's derivative is computed once."""

    def __init__(self, graph: Graph, rates: Mapping[Value, Value]) -> None:
        self._graph, self._known = graph, {by.node: rate for by, rate in rates.items()}

    def __call__(self, value: Value) -> Value:
        found = self._of_node(value.node)
        return -found if value.negative else found

    def _of_node(self, place: int) -> Value:
        if place not in self._known:
            for k in self._graph.live([Value(self._graph, place)]):  # inner ones first, so that nothing recurses
                if k not in self._known:
                    self._known[k] = self._rule(k, self._graph.nodes[k])
        return self._known[place]

    def _rule(self, place: int, node: Node) -> Value:
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
                one, other = (-known[k] if minus else known[k]
                              for k, minus in zip(node.of[1:], node.negative[1:], strict=True))
                return graph.apply("where", -x if node.negative[0] else x, one, other)
            case _:
                raise ModelError(f"the derivative of '{node.kind}' is not known to code generation")
