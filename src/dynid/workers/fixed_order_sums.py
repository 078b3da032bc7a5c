"""Sums over a fixed tree, which are bitwise equal wherever the parts are computed and added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Part = TypeVar("Part")


class TreeSum(Generic[Part]):
    """The sum of parts that arrive one after the other.

    Neighbours are added in pairs, then pairs in pairs: two sums of equally many parts are added as soon as both are
    available, so that at most the depth of the tree is stored. Remaining sums are added from the last one on.
    """

    def __init__(self, add: Callable[[Part, Part], Part]) -> None:
        self._add = add
        self._waiting: list[tuple[int, Part]] = []  # depth of each sum, and the sum; depths fall

    def append(self, part: Part) -> None:
        """Add the next part."""
        depth = 0
        while self._waiting and self._waiting[-1][0] == depth:
            part = self._add(self._waiting.pop()[1], part)
            depth += 1
        self._waiting.append((depth, part))

    def total(self) -> Part | None:
        """Return the sum of all parts so far; None before the first."""
        parts = [part for _, part in self._waiting]
        if not parts:
            return None
        total = parts.pop()
        while parts:
            total = self._add(parts.pop(), total)
        return total


def tree_sum(parts: Sequence[Part], add: Callable[[Part, Part], Part]) -> Part:
    """Return the sum of one or more parts."""
    tree = TreeSum[Part](add)
    for part in parts:
        tree.append(part)
    total = tree.total()
    assert total is not None
    return total
