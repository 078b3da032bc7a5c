"""Settings of parallel workers, and functions that process a list of items one by one, or sum the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dynid.threads import thread_count
from dynid.workers.cluster import Cluster
from dynid.workers.job import Here, Job

if TYPE_CHECKING:
    from dynid.workers.processes import Processes

Part = TypeVar("Part")
Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")
Report = TypeVar("Report")


@dataclass(frozen=True)
class Workers:
    """Place of execution of parallel work: processes of this machine, or a Dask cluster.

    Attributes:
        processes: Number of processes, by default one per core.
        scheduler: Address of a Dask scheduler instead, "tcp://host:8786" or "tls://host:8786".
        tls: PEM files for an address that begins with tls://: certificate authority, own certificate, and its key. By
            default those of Dask's own configuration.
    """

    processes: int | None = None
    scheduler: str | None = None
    tls: tuple[str, str, str] | None = None

    def each(self, work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item],
             lost: Callable[[Item, str], Result] | None = None) -> Iterator[tuple[int, Result]]:
        """Yield work(shared, item) of every item with its index, in order of completion.

        work is a function of a module, so that other processes can import it; shared is sent to each of them once. The
        item of a lost worker is processed again by another one. lost: returns the result of an item that caused the
        loss of several workers, from the item and a sentence; without `lost`, the loss of several workers ends the
        work.
        """
        if not items:
            return
        with self._engine(Job(work, shared, lost), len(items)) as engine:
            for k, report, _ in engine.reports(items, ordered=False):
                yield k, report

    def total(self, job: Job[Shared, Item, Report], items: Sequence[Item], take: Callable[[int, Report], bool]) -> Any:
        """Return the sum of the parts of all items, or None without any. Workers add them in pairs over a fixed tree,
        so that the sum does not depend on where it is computed or which items are excluded.

        Args:
            job: the work, and the addition of parts.
            items: sequence that may make its items on demand. Only a few are in progress at once, and an item may be
                requested again.
            take: called with every report, in the order of the items; returns whether the item's part counts.
        """
        if not items:
            return None
        with self._engine(job, len(items)) as engine:
            tree = TreeSum[Any](engine.add)
            for k, report, handle in engine.reports(items, ordered=True):
                if take(k, report):
                    tree.append(handle)
            total = tree.total()
            return None if total is None else engine.value(total)

    def _engine(self, job: Job[Any, Any, Any], count: int) -> AbstractContextManager[Here | Cluster | Processes]:
        if self.scheduler is not None:
            return Cluster(job, self.scheduler, self.tls)
        processes = min(thread_count(self.processes), count)
        if processes <= 1:
            return nullcontext(Here(job))
        from dynid.workers.processes import Processes  # imported here, because other runs do not need its libraries

        return Processes(job, processes)


class TreeSum(Generic[Part]):
    """The sum of parts that arrive one after the other.

    Neighbours are added in pairs, then pairs in pairs: two sums of equally many parts are added as soon as both are
    available, so that at most the depth of the tree is stored. Remaining sums are added from the last one on.
    """

    def __init__(self, add: Callable[[Part, Part], Part]) -> None:
        self._add = add
        self._waiting: list[tuple[int, Part]] = []  # depth and value of each sum, in descending depth

    def append(self, part: Part) -> None:
        """Add the next partial result, in the order of the items."""
        depth = 0
        while self._waiting and self._waiting[-1][0] == depth:
            part = self._add(self._waiting.pop()[1], part)
            depth += 1
        self._waiting.append((depth, part))

    def total(self) -> Part | None:
        """Return the sum of all partial results so far; None before the first."""
        parts = [part for _, part in self._waiting]
        if not parts:
            return None
        total = parts.pop()
        while parts:
            total = self._add(parts.pop(), total)
        return total


def tree_sum(parts: Sequence[Part], add: Callable[[Part, Part], Part]) -> Part:
    """Return the sum of one or more partial results, added in pairs."""
    tree = TreeSum[Part](add)
    for part in parts:
        tree.append(part)
    total = tree.total()
    assert total is not None
    return total
