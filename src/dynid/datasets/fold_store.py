"""FoldStore: the folds of logs in a folder, so that the next run folds only what is new.

    STORE/KEY/manifest.json     every log that went in: file, hash, rows, span, robot, date
    STORE/KEY/HASH.npz          the fold of a log, by the hash of its content

KEY represents the model, how logs are read, and what was asked of the preparation; a fold is never used for another.
Files are written whole, and a fold is found by what its log contains: two runs at once write the same files, and no log
counts twice under two names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.datasets.log_source import LogSource
from dynid.errors import DynidError, RecordingError
from dynid.files import write_whole
from dynid.model import LinearModel

MANIFEST = "manifest.json"


class FoldStore:
    """The folds in a folder that were made with one key."""

    def __init__(self, folder: str | Path, key: str) -> None:
        self.folder = Path(folder) / key
        self.entries: dict[str, ManifestEntry] = {}
        self._read()

    def _read(self) -> None:
        """Add the entries of the manifest on disk; entries of this run take precedence."""
        path = self.folder / MANIFEST
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            found = {place: ManifestEntry.of(one) for place, one in table["logs"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DynidError(f"{path} cannot be read as the manifest of the cache; remove {self.folder}, "
                             "and all logs are read again") from None
        self.entries = {**found, **self.entries}

    def known(self, log: LogSource) -> ManifestEntry | None:
        """The entry of a log that was folded before and has not changed since; its file is not read for that."""
        entry = self.entries.get(log.place)
        if entry is None or entry.stamp != log.stamp() or not self.path(entry.sha256).is_file():
            return None
        first = log.files[0]
        return replace(entry, source=log.source, robot=first.robot, date=first.date, motion=first.motion)

    def path(self, sha256: str) -> Path:
        """The file of a fold."""
        return self.folder / f"{sha256[:32]}.npz"

    def load(self, entry: ManifestEntry, model: LinearModel) -> LogFold | None:
        """A fold; None where its file is damaged, so that the log is folded again."""
        try:
            return LogFold.load(self.path(entry.sha256), model).of_entry(entry)
        except RecordingError:
            return None

    def bytes_of(self, entry: ManifestEntry) -> bytes:
        """A fold as it is kept; nothing where its file is gone."""
        try:
            return self.path(entry.sha256).read_bytes()
        except OSError:
            return b""

    def keep(self, place: str, entry: ManifestEntry, packed: bytes) -> None:
        """Write the fold of the log at a place (`LogSource.place`), whole or not at all."""
        with write_whole(self.path(entry.sha256), "wb") as file:
            file.write(packed)
        self.entries[place] = entry

    def write(self) -> None:
        """Write the manifest, with what others wrote meanwhile."""
        self._read()
        said: Mapping[str, Any] = {"logs": {place: entry.stored() for place, entry in sorted(self.entries.items())}}
        with write_whole(self.folder / MANIFEST) as file:
            json.dump(said, file, indent=1)
