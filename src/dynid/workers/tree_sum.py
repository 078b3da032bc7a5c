"""Sums over a fixed tree: the same to the last bit wherever the parts are made and added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Part = TypeVar("Part")


class TreeSum(Generic[Part]):
    """The sum of parts that come one after the other.

    Neighbours are added in pairs, then pairs in pairs: two sums of as many parts become one as soon as both are there,
    so that no more of them wait than the tree is deep. What is left over at the end is added from the last one on.
    """

    def __init__(self, add: Callable[[Part, Part], Part]) -> None:
        self._add = add
        self._waiting: list[tuple[int, Part]] = []  # depth of each sum, and the sum; depths fall

    def append(self, part: Part) -> None:
        """Take the next part in."""
        depth = 0
        while self._waiting and self._waiting[-1][0] == depth:
            part = self._add(self._waiting.pop()[1], part)
            depth += 1
        self._waiting.append((depth, part))

    def total(self) -> Part | None:
        """The sum of all parts so far; None before the first."""
        parts = [part for _, part in self._waiting]
        if not parts:
            return None
        total = parts.pop()
        while parts:
            total = self._add(parts.pop(), total)
        return total


def tree_sum(parts: Sequence[Part], add: Callable[[Part, Part], Part]) -> Part:
    """The sum of one or more parts."""
    tree = TreeSum[Part](add)
    for part in parts:
        tree.append(part)
    total = tree.total()
    assert total is not None
    return total
