"""Count how often the regressor is evaluated over the data, in rows, by the functions that ask for it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from dynid import threads
from dynid.model import FlexibleModel, Model
from dynid.model.completion import Completed
from dynid.model.momentum import MomentumForm

# Every way to the regressor. One that is called inside another is not counted again.
ENTRIES = ((Model, "fill"), (Model, "regressor"), (FlexibleModel, "fill"), (FlexibleModel, "regressor"),
           (Completed, "fill"), (Completed, "regressor"), (MomentumForm, "fill"))
PLUMBING = ("dynid.model", "dynid.regression", "dynid.threads")  # rooms that evaluate it on behalf of others


@dataclass
class Passes:
    """Rows of the regressor that were evaluated, by the chain of functions that asked for them, outermost first."""

    rows: Counter[tuple[str, ...]] = field(default_factory=Counter)
    depth: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def by(self, name: str) -> int:
        """Rows below a function, given as `module.function`."""
        return sum(count for chain, count in self.rows.items() if name in chain)

    def table(self, rows: int, frames: int = 3) -> list[tuple[float, str]]:
        """Passes over data of so many rows, by the last functions of each chain, most first."""
        found: Counter[str] = Counter()
        for chain, count in self.rows.items():
            found[" > ".join(chain[-frames:])] += count
        return [(count / rows, name) for name, count in found.most_common()]


@contextmanager
def counted_passes() -> Iterator[Passes]:
    """Count the rows evaluated inside the block, in this process and in one thread, so that callers are known."""
    passes = Passes()
    with mock.patch.object(threads, "thread_count", lambda asked=None: 1):
        patches = [mock.patch.object(owner, name, _counting(getattr(owner, name), passes)) for owner, name in ENTRIES]
        for patch in patches:
            patch.start()
        try:
            yield passes
        finally:
            for patch in patches:
                patch.stop()


def _counting(original: Callable[..., Any], passes: Passes) -> Callable[..., Any]:
    def counted(self: Any, q: Any, *rest: Any, **named: Any) -> Any:
        if not passes.depth and _asks_for_bodies(self, *rest):
            passes.rows[_callers()] += len(q)
        passes.depth += 1
        try:
            return original(self, q, *rest, **named)
        finally:
            passes.depth -= 1

    return counted


def _asks_for_bodies(model: Any, *rest: Any) -> bool:
    """Whether columns of bodies are evaluated. Those of friction alone take no recursion over the bodies."""
    if not isinstance(model, Model) or len(rest) < 3:
        return True
    place = rest[2]
    return any(one.body is not None and (place[:, k] >= 0).any() for k, one in enumerate(model.parameters))


def _callers() -> tuple[str, ...]:
    """Functions of dynid on the stack, outermost first, without those that only pass the work on."""
    found, frame = [], sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("dynid.") and not module.startswith(PLUMBING) and "<" not in frame.f_code.co_name:
            found.append(f"{module.removeprefix('dynid.')}.{frame.f_code.co_name}")
        frame = frame.f_back
    return tuple(reversed(found))
