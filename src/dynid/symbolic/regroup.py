"""Regrouping of sums and products, so that pairs of terms that occur several times are computed once.

(a + b) + c and (a + d) + b share a + b, which a comparison of nodes does not find. All sums are flattened, and the most
frequent pair of terms becomes a value of its own. This is repeated until no pair occurs twice, and then done for
products.
"""

from __future__ import annotations

from collections.abc import Sequence

from dynid.symbolic.graph import Graph, Value, signed

Term = tuple[int, bool]  # a node, and whether it is taken negative
Pair = tuple[int, int, bool]  # two nodes in order, and whether their signs differ


def regrouped(graph: Graph, outputs: Sequence[Value]) -> tuple[Graph, list[Value]]:
    """Return the outputs on a new graph, which needs at most as many operations as the given graph."""
    for kind in ("add", "multiply"):
        graph, outputs = _written_anew(graph, outputs, _flat(graph, outputs, kind), kind)
    return graph, list(outputs)


def _flat(graph: Graph, outputs: Sequence[Value], kind: str) -> dict[int, list[Term]]:
    """Return the terms of every sum (or product) that is not merely a part of one other sum (or product)."""
    uses = graph.uses(outputs)
    live = [place for place in graph.live(outputs) if graph.nodes[place].kind == kind]
    inner = {k for place in live for k in graph.nodes[place].of if graph.nodes[k].kind == kind and uses[k] == 1}
    flat: dict[int, list[Term]] = {}

    for place in live:
        if place not in inner:
            found, waiting = list[Term](), [(place, False)]
            while waiting:  # no recursion: long chains have long sums
                at, negative = waiting.pop()
                node = graph.nodes[at]
                if at == place or at in inner:
                    waiting += [(node.of[1], negative != node.subtract), (node.of[0], negative)]
                else:
                    found.append((at, negative))
            flat[place] = _without_cancelling(found) if kind == "add" else found
    return _shared(flat, len(graph.nodes))


def _without_cancelling(terms: list[Term]) -> list[Term]:
    """Return the terms of a sum without pairs of terms that cancel."""
    left = list(terms)
    for term in terms:
        if term in left and (term[0], not term[1]) in left:
            left.remove(term)
            left.remove((term[0], not term[1]))
    return left


def _shared(flat: dict[int, list[Term]], fresh: int) -> dict[int, list[Term]]:
    """Return the sums with each common pair of terms replaced by a sum of its own; new sums are numbered from
    `fresh`."""
    held: dict[Pair, set[int]] = {}  # for each pair of terms, the sums that contain it

    def note(place: int, is_present: bool) -> None:
        terms = flat[place]
        for i, second in enumerate(terms):
            for first in terms[:i]:
                pair = _pair(first, second)
                if pair is not None and is_present:
                    held.setdefault(pair, set()).add(place)
                elif pair is not None:
                    held.get(pair, set()).discard(place)

    for place in list(flat):
        note(place, True)
    while held:
        pair = max(held, key=lambda one: (len(held[one]), -one[0], -one[1]))
        places = sorted(held[pair])
        if len(places) < 2:
            break
        for place in places:
            note(place, False)
            first = next(t for t in flat[place] if t[0] == pair[0])
            second = next(t for t in flat[place] if t[0] == pair[1] and (t[1] != first[1]) == pair[2])
            rest = list(flat[place])
            rest.remove(first)
            rest.remove(second)
            flat[place] = [*rest, (fresh, first[1])]
            note(place, True)
        flat[fresh] = [(pair[0], False), (pair[1], pair[2])]
        held.pop(pair, None)
        fresh += 1
    return flat


def _pair(a: Term, b: Term) -> Pair | None:
    if a[0] == b[0]:
        return None
    return (a[0], b[0], a[1] != b[1]) if a[0] < b[0] else (b[0], a[0], a[1] != b[1])


def _written_anew(graph: Graph, outputs: Sequence[Value], flat: dict[int, list[Term]],
                  kind: str) -> tuple[Graph, list[Value]]:
    """Return a new graph with the outputs, in which sums (or products) have the terms in `flat`."""
    new = Graph()
    made: dict[int, Value] = {}

    def build(place: int) -> Value:
        if place not in flat:
            return new.again(graph.nodes[place], made)
        total = new.zero if kind == "add" else new.one
        for part in (-made[k] if negative else made[k] for k, negative in flat[place]):
            total = total + part if kind == "add" else total * part
        return total

    waiting = [value.node for value in reversed(outputs)]
    while waiting:  # operands come before a value; there is no recursion, because chains may be long
        place = waiting[-1]
        of = [k for k, _ in flat[place]] if place in flat else graph.nodes[place].of
        missing = [k for k in reversed(of) if k not in made]
        if place not in made and not missing:
            made[place] = build(place)
        if place in made:
            waiting.pop()
        waiting += missing if place not in made else []
    return new, signed(outputs, made)
