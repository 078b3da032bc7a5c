"""Functions that workers run, and their shared data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dynid.errors import NotPossibleError

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Report = TypeVar("Report")

TRIES = 3  # attempts per item that ends its worker
LOST = ("a worker process ended before its work was done, {tries} times with the same item: too little memory, or a "
        "script that starts workers without \"if __name__ == '__main__':\" around it; use fewer workers, or "
        "workers = 1")


@dataclass(frozen=True, eq=False)
class Job(Generic[Shared, Item, Report]):
    """Functions that worker processes run on items, and the data that the items share.

    work(shared, item) returns a report or, if there is `add`, a report and a part of a sum; add(shared, part, part)
    adds two parts. `work` and `add` are functions of modules, so that other processes can import them.

    Attributes:
        shared: data sent to each worker once.
        lost: returns the report of an item that caused the loss of several workers, from the item and a sentence;
            without `lost`, the loss of several workers ends the work.
    """

    work: Callable[[Shared, Item], Any]
    shared: Shared
    lost: Callable[[Item, str], Report] | None = None
    add: Callable[[Shared, Any, Any], Any] | None = None

    @property
    def for_workers(self) -> Job[Shared, Item, Report]:
        """Return the job with only the fields that workers need."""
        return replace(self, lost=None)

    def perform(self, item: Item) -> tuple[Any, Any]:
        """Return the report of an item and its part of the sum, which is None if the job has no sum."""
        found = self.work(self.shared, item)
        return (found, None) if self.add is None else found

    def summed(self, one: Any, other: Any) -> Any:
        """Return the sum of two parts; None counts as zero."""
        if one is None or other is None:
            return other if one is None else one
        assert self.add is not None
        return self.add(self.shared, one, other)

    def given_up(self, item: Item) -> Report:
        """Return the report of an item that caused the loss of several workers."""
        why = LOST.format(tries=TRIES)
        if self.lost is None:
            raise NotPossibleError(why, code="worker-lost")
        return self.lost(item, why)


class Here:
    """Executor that runs a job in this process, without workers. Executors refer to a part of the sum by a handle,
    because the part stays in the process that computed it."""

    def __init__(self, job: Job[Any, Any, Any]) -> None:
        self._job = job

    def reports(self, items: Sequence[Any], ordered: bool) -> Iterator[tuple[int, Any, Any]]:
        """Yield index, report and handle of every item, as they are finished or, if `ordered`, in their order."""
        for k in range(len(items)):
            yield k, *self._job.perform(items[k])

    def add(self, one: Any, other: Any) -> Any:
        """Return a handle of the sum of two parts."""
        return self._job.summed(one, other)

    def value(self, handle: Any) -> Any:
        """Return the partial result that a handle refers to."""
        return handle
