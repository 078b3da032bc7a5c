"""Job: the functions that workers run, and what all of their items share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from dynid.errors import NotPossibleError

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Report = TypeVar("Report")

TRIES = 3  # workers that an item may cost before it is given up
LOST = ("a worker process ended before its work was done, {tries} times with the same item: too little memory, or a "
        "script that starts workers without \"if __name__ == '__main__':\" around it; use fewer workers, or "
        "workers = 1")


@dataclass(frozen=True, eq=False)
class Job(Generic[Shared, Item, Report]):
    """work(shared, item) gives a report, or, where there is an add, a report and a part of a sum; add(shared, part,
    part) adds two parts. Both are functions of modules, so that other processes find them; shared is sent to each
    worker once. lost: the report that represents an item that cost several workers, from the item and a sentence;
    without it that ends the work."""

    work: Callable[[Shared, Item], Any]
    shared: Shared
    lost: Callable[[Item, str], Report] | None = None
    add: Callable[[Shared, Any, Any], Any] | None = None

    @property
    def for_workers(self) -> Job[Shared, Item, Report]:
        """What of it workers need."""
        return replace(self, lost=None)

    def perform(self, item: Item) -> tuple[Any, Any]:
        """The report of an item, and its part of the sum, None where there is none."""
        found = self.work(self.shared, item)
        return (found, None) if self.add is None else found

    def summed(self, one: Any, other: Any) -> Any:
        """Two parts in one; a part that is None counts for nothing."""
        if one is None or other is None:
            return other if one is None else one
        assert self.add is not None
        return self.add(self.shared, one, other)

    def given_up(self, item: Item) -> Report:
        """What represents an item that cost several workers."""
        why = LOST.format(tries=TRIES)
        if self.lost is None:
            raise NotPossibleError(why)
        return self.lost(item, why)


class Engine(Protocol):
    """Somewhere that a job is done. A handle represents a part of the sum, which stays where it was made."""

    def reports(self, items: Sequence[Any], ordered: bool) -> Iterator[tuple[int, Any, Any]]:
        """Place, report and handle of every item, as they are done or, `ordered`, in their order."""
        ...

    def add(self, one: Any, other: Any) -> Any:
        """A handle of the sum of two parts, which workers make."""
        ...

    def value(self, handle: Any) -> Any:
        """The part that a handle represents."""
        ...


class Here:
    """This process."""

    def __init__(self, job: Job[Any, Any, Any]) -> None:
        self._job = job

    def reports(self, items: Sequence[Any], ordered: bool) -> Iterator[tuple[int, Any, Any]]:
        for k in range(len(items)):
            yield k, *self._job.perform(items[k])

    def add(self, one: Any, other: Any) -> Any:
        return self._job.summed(one, other)

    def value(self, handle: Any) -> Any:
        return handle
