"""Execution on a Dask cluster: partial sums stay with the workers, which add them; reports and the total are returned.

A Dask scheduler sends its workers functions to call, and both communicate in pickles. Any process that is a member, or
can connect to a member, therefore can run any program on all others. TLS excludes outsiders; members are not isolated
from each other. Results of a lost worker, and shared data, are computed again from the task graph.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import getitem
from typing import Any, TypeVar

from dynid.errors import DynidError, NotPossibleError
from dynid.version import __version__
from dynid.workers.job import LOST, TRIES, Job

Found = TypeVar("Found")

_ANSWER_TIMEOUT = 30  # s: longest wait for an answer of a cluster
_POLL_INTERVAL = 0.02  # s between two queries of a cluster
_MAX_PENDING_ITEMS = 1000  # largest number of submitted items
_REPORTS_PER_FETCH = 200  # reports fetched at once


class Cluster(AbstractContextManager["Cluster"]):
    """The workers of a Dask scheduler ("tcp://host:8786"). tls: as in `Workers`."""

    def __init__(self, job: Job[Any, Any, Any], address: str, tls: tuple[str, str, str] | None = None) -> None:
        self._job, self._address, self._client = job, address, _client(address, tls)
        try:
            _check_cluster(self._client, address)
            self._there = self._client.submit(_same, job.for_workers, pure=False)
        except BaseException:
            self._client.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def reports(self, items: Sequence[Any], ordered: bool) -> Iterator[tuple[int, Any, Any]]:
        """Yield, for every item, its index, its report, and the Dask future of its partial result."""
        out: dict[int, tuple[Any, Any]] = {}
        sent = left = 0

        def ready() -> list[int]:
            return _done({k: report for k, (report, _) in out.items()}, ordered)

        while left < len(items):
            while sent < min(len(items), left + _MAX_PENDING_ITEMS):
                out[sent] = self._submit(items[sent])
                sent += 1
            places = self._wait(ready)
            reports = self._fetched({k: out[k][0] for k in places}, items)
            for k in places:
                yield k, reports[k], out.pop(k)[1]
                left += 1

    def add(self, one: Any, other: Any) -> Any:
        """Return a Dask future of the sum of two partial results."""
        return self._client.submit(Job.summed, self._there, one, other, pure=False)

    def value(self, handle: Any) -> Any:
        """Wait for a Dask future and return its partial sum."""
        self._wait(handle.done)
        return self._fetched({0: handle}, None)[0]

    def _submit(self, item: Any) -> tuple[Any, Any]:
        """Return Dask futures of an item's report and of its partial result."""
        found = self._client.submit(Job.perform, self._there, item, pure=False)
        report, part = (self._client.submit(getitem, found, which, pure=False) for which in (0, 1))
        return report, part

    def _wait(self, look: Callable[[], Found]) -> Found:
        """Repeat a query to the cluster until its result is not empty, and return the result."""
        silent = 0.0
        while not (found := look()):
            time.sleep(_POLL_INTERVAL)
            silent = silent + _POLL_INTERVAL if self._client.status != "running" else 0.0
            if self._client.status in ("closing", "closed") or silent > _ANSWER_TIMEOUT:
                raise self._gone()
        return found

    def _fetched(self, futures: dict[int, Any], items: Sequence[Any] | None) -> dict[int, Any]:
        """Return the results of finished futures by index.

        If `items` are given, an item that caused the loss of several workers gets a replacement report.
        """
        from distributed import KilledWorker

        found: dict[int, Any] = {}
        good = [k for k, future in futures.items() if future.status == "finished"]
        try:
            found.update(zip(good, self._client.gather([futures[k] for k in good]), strict=True))
        except Exception:  # a result was lost with its worker; each is fetched alone, which waits for its repetition
            found.clear()
        for k in futures.keys() - found.keys():
            try:
                found[k] = futures[k].result(timeout=_ANSWER_TIMEOUT)
            except KilledWorker:
                if items is None:
                    raise NotPossibleError(LOST.format(tries=TRIES), code="worker-lost") from None
                found[k] = self._job.given_up(items[k])
            except (OSError, TimeoutError):
                raise self._gone() from None
            except Exception:
                if futures[k].status in ("cancelled", "lost"):
                    raise self._gone() from None
                raise
        return found

    def _gone(self) -> NotPossibleError:
        return NotPossibleError(f"the Dask scheduler at {self._address} was lost before the work was done",
                                "start it again and repeat the call; finished work is not repeated",
                                code="scheduler-lost")


def _client(address: str, tls: tuple[str, str, str] | None) -> Any:
    try:
        from distributed import Client
        from distributed.security import Security
    except ModuleNotFoundError:
        raise NotPossibleError("work on a cluster needs Dask: run pip install 'dynid[scale]'") from None
    security = None
    if tls is not None:
        if not address.startswith("tls://"):
            raise DynidError(f"TLS needs a scheduler whose address begins with tls://, got {address}",
                             "give --scheduler tls://HOST:PORT", code="tls-without-tls-address")
        for name in tls:
            if not os.access(name, os.R_OK):
                raise DynidError(f"the TLS file {name} cannot be read; give the PEM files of the authority, of the "
                                 "certificate and of its key", code="unreadable-file")
        authority, certificate, key = tls
        security = Security(tls_ca_file=authority, tls_client_cert=certificate, tls_client_key=key,
                            require_encryption=True)
    try:
        return Client(address, timeout=_ANSWER_TIMEOUT, set_as_default=False, security=security)
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:  # the last two: no certificates
        words = " ".join(str(error).split()) or type(error).__name__
        raise NotPossibleError(f"no Dask scheduler answers at {address}: {words}", "start one with 'dask scheduler'",
                               code="no-scheduler") from None


def _done(futures: dict[int, Any], ordered: bool) -> list[int]:
    """Return the indices of finished futures; ordered: only of those before the first unfinished future."""
    found = []
    for k in sorted(futures):
        if futures[k].done():
            found.append(k)
        elif ordered:
            break
        if len(found) == _REPORTS_PER_FETCH:
            break
    return found


def _same(job: Job[Any, Any, Any]) -> Job[Any, Any, Any]:
    return job


def _check_cluster(client: Any, address: str) -> None:
    """Raise an error if a cluster has no workers, or workers with another version of dynid."""
    try:
        client.wait_for_workers(1, timeout=_ANSWER_TIMEOUT)
        versions = set(client.run(_version).values())
    except TimeoutError:
        raise NotPossibleError(f"the Dask scheduler at {address} has no workers; start some with 'dask worker "
                               f"{address}'") from None
    except ModuleNotFoundError as error:
        raise NotPossibleError(f"the workers of the Dask scheduler at {address} have no module '{error.name}'; install "
                               f"dynid {__version__} there") from None
    if versions != {__version__}:
        raise DynidError(f"the workers of the Dask scheduler at {address} have dynid {', '.join(sorted(versions))}, "
                         f"but this process has {__version__}; install one version everywhere")


def _version() -> str:
    return __version__
