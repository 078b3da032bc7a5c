"""Compressed logs of a fleet in its store, read robot by robot to limit memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dynid.datasets.fold_store import FoldStore
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.errors import DynidError
from dynid.model import LinearModel


class KeptFolds(Mapping[str, list[LogFold]]):
    """Compressed logs of each robot by name, ordered by date and source; read from the store on demand."""

    def __init__(self, store: FoldStore, model: LinearModel, entries: Sequence[ManifestEntry]) -> None:
        self._store, self._model = store, model
        self._entries: dict[str, list[ManifestEntry]] = {}
        for entry in sorted(entries, key=lambda one: (one.date, one.source)):
            self._entries.setdefault(entry.robot, []).append(entry)
        order = dict.fromkeys(entry.robot for entry in entries)
        self._entries = {name: self._entries[name] for name in order}

    def __getitem__(self, robot: str) -> list[LogFold]:
        return [self._load(entry) for entry in self._entries[robot]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _load(self, entry: ManifestEntry) -> LogFold:
        found = self._store.load(entry, self._model)
        if found is None:
            path = self._store.path(entry.sha256)
            path.unlink(missing_ok=True)  # so that the next call folds the log again
            raise DynidError(f"the compressed log of {entry.source} in {path} is damaged and was removed; repeat the "
                             "call to read that log again")
        return found
