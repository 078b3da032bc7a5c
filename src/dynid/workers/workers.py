"""Worker settings, and the two ways to use them: for each item, or for the sum of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from dynid.threads import thread_count
from dynid.workers.cluster import Cluster
from dynid.workers.fixed_order_sums import TreeSum
from dynid.workers.job import Engine, Here, Job
from dynid.workers.processes import Processes

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")
Report = TypeVar("Report")


@dataclass(frozen=True)
class Workers:
    """Where work is executed.

    Attributes:
        processes: Their number, by default one for each core.
        scheduler: Address of a Dask scheduler instead, "tcp://host:8786" or "tls://host:8786".
        tls: PEM files of the authority, of the own certificate and of its key, for an address that begins with tls://;
            by default those of Dask's own configuration.
    """

    processes: int | None = None
    scheduler: str | None = None
    tls: tuple[str, str, str] | None = None

    def each(self, work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item],
             lost: Callable[[Item, str], Result] | None = None) -> Iterator[tuple[int, Result]]:
        """Yield work(shared, item) of every item with its index, in the order in which they are finished.

        work is a function of a module, so that other processes can import it; shared is sent to each of them once. The
        item of a lost worker is done again by another one. lost: returns the result of an item that caused the loss of
        several workers, from the item and a sentence; without it such a loss ends the work.
        """
        if not items:
            return
        with self._engine(Job(work, shared, lost), len(items)) as engine:
            for k, report, _ in engine.reports(items, ordered=False):
                yield k, report

    def total(self, job: Job[Shared, Item, Report], items: Sequence[Item], take: Callable[[int, Report], bool]) -> Any:
        """Return the sum of the parts of all items, or None without any. Workers add them in pairs over a fixed tree,
        so it is the same to the last bit wherever it is computed, and whichever items are excluded.

        Args:
            take: called with every report, in the order of the items; returns whether the item's part counts.
            items: may create each one on request; a fixed number of them is pending at once, and some may be requested
                again.
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

    def _engine(self, job: Job[Any, Any, Any], count: int) -> AbstractContextManager[Engine]:
        if self.scheduler is not None:
            return Cluster(job, self.scheduler, self.tls)
        processes = min(thread_count(self.processes), count)
        return nullcontext(Here(job)) if processes <= 1 else Processes(job, processes)
