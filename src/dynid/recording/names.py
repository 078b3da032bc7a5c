"""Short names of logs that still distinguish them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath


def short_name(source: str, among: Iterable[str] = ()) -> str:
    """Return the last part of a log's path, with as many folders as distinguish it from the others."""
    others = [other for other in dict.fromkeys(among) if other != source]
    longest = max(len(PurePath(part).parts) for part in source.split(", "))
    for count in range(1, longest + 1):
        name = _tail(source, count)
        if name and all(name != _tail(other, count) for other in others):
            return name
    return source


def _tail(source: str, count: int) -> str:
    """Return the last `count` parts of each path in a source, which may consist of several files."""
    return ", ".join(str(PurePath(*PurePath(part).parts[-count:])) for part in source.split(", "))


def distinct(sources: Sequence[str]) -> tuple[str, ...]:
    """Return names without repetition: the second log of a name is called 'name (2)'."""
    counts: Counter[str] = Counter()
    found = []
    for source in sources:
        counts[source] += 1
        found.append(source if counts[source] == 1 else f"{source} ({counts[source]})")
    return tuple(found)
