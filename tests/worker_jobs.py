"""Work for worker processes, in a module that they can import."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from dynid.datasets.log_folds import FoldJob, Item, add_parts, part_task
from dynid.errors import NotPossibleError
from dynid.regression import Regression


def killed_once(folder: str, item: int) -> int:
    """Writes its process's number down, and waits to be killed the first time it has item 1."""
    mark = Path(folder) / f"pid-{item}"
    first = not mark.exists()
    mark.write_text(str(os.getpid()))
    if item == 1 and first:
        time.sleep(60.0)
    return 10 * item


def dies(shared: int, item: int) -> int:
    """Ends its process at one item."""
    if item == shared:
        os._exit(3)
    return item


def raises(shared: int, item: int) -> int:
    """Refuses every item."""
    raise NotPossibleError(f"item {item} cannot be")


def slow(shared: float, item: int) -> int:
    """Takes `shared` seconds."""
    time.sleep(shared)
    return item


def pair_of(shared: int, item: int) -> tuple[int, int]:
    """A report and a part of a sum."""
    return item, shared * item


def plus(shared: int, one: int, other: int) -> int:
    return one + other


def slow_part(job: FoldJob, item: Item) -> Any:
    """The part of a log, which writes its process's number down and waits the first time it has the second log."""
    mark = Path(os.environ["DYNID_TEST_MARK"])
    if item.log.source.endswith("2026-01-03.npz") and not mark.exists():
        mark.write_text(str(os.getpid()))
        time.sleep(60.0)
    return part_task(job, item)


def slow_sum(job: FoldJob, one: Regression, other: Regression) -> Regression:
    """The sum of two parts, which writes its process's number down and waits the first time."""
    mark = Path(os.environ["DYNID_TEST_MARK"])
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        time.sleep(60.0)
    return add_parts(job, one, other)
