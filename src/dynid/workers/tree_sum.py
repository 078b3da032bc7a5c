"""Sums over a fixed tree: the same to the last bit in whatever order, and wherever, the parts are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Part = TypeVar("Part")


class TreeSum(Generic[Part]):
    """The sum of `count` parts that come in any order.

    Neighbours are added in pairs, then pairs in pairs, as the places of the parts say; a pair is added as soon as both
    are there, so parts that come about in order are not kept. A part that is None counts for nothing.
    """

    def __init__(self, count: int, add: Callable[[Part, Part], Part]) -> None:
        self._add = add
        self._waiting: dict[tuple[int, int], Part | None] = {}
        self._sizes = [count]
        while self._sizes[-1] > 1:
            self._sizes.append((self._sizes[-1] + 1) // 2)

    def put(self, place: int, part: Part | None) -> None:
        """Take the part of a place in."""
        level, value = 0, part
        while level < len(self._sizes) - 1:
            other = place ^ 1
            if other < self._sizes[level]:
                if (level, other) not in self._waiting:
                    break
                beside = self._waiting.pop((level, other))
                first, second = (value, beside) if place < other else (beside, value)
                value = second if first is None else first if second is None else self._add(first, second)
            level, place = level + 1, place // 2
        self._waiting[level, place] = value

    @property
    def total(self) -> Part | None:
        """The sum, once all parts are there; None where all of them were."""
        return self._waiting[len(self._sizes) - 1, 0] if self._sizes[0] else None


def tree_sum(parts: Sequence[Part], add: Callable[[Part, Part], Part]) -> Part:
    """The sum of one or more parts."""
    tree = TreeSum[Part](len(parts), add)
    for place, part in enumerate(parts):
        tree.put(place, part)
    total = tree.total
    assert total is not None
    return total
