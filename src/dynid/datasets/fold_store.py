"""Store of compressed logs in a folder, so that the next run compresses only new logs.

    STORE/KEY/manifest.json     all logs: file, hash, rows, span, robot, date
    STORE/KEY/HASH.npz          the compressed log, by the hash of its content

KEY identifies the model, the mapping and the requested preparation. Files are written atomically and found by
content: two concurrent runs write the same files, and no log counts twice under two names.
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
    """Store of compressed logs in a folder, for one model and preparation."""

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
        """Return the entry of a log that was compressed before and has not changed, without reading its file."""
        entry = self.entries.get(log.place)
        if entry is None or entry.stamp != log.stamp() or not self.path(entry.sha256).is_file():
            return None
        first = log.files[0]
        return replace(entry, source=log.source, robot=first.robot, date=first.date, motion=first.motion)

    def path(self, sha256: str) -> Path:
        """Return the path of a compressed log in the store."""
        return self.folder / f"{sha256[:32]}.npz"

    def load(self, entry: ManifestEntry, model: LinearModel) -> LogFold | None:
        """Return a compressed log; None if its file is damaged."""
        try:
            return LogFold.load(self.path(entry.sha256), model).of_entry(entry)
        except RecordingError:
            return None

    def bytes_of(self, entry: ManifestEntry) -> bytes:
        """Return a compressed log as bytes; empty if its file is missing."""
        try:
            return self.path(entry.sha256).read_bytes()
        except OSError:
            return b""

    def keep(self, place: str, entry: ManifestEntry, packed: bytes) -> None:
        """Write the compressed log at a place (`LogSource.place`) atomically."""
        with write_whole(self.path(entry.sha256), "wb") as file:
            file.write(packed)
        self.entries[place] = entry

    def write(self) -> None:
        """Write the manifest, merged with entries of concurrent runs."""
        self._read()
        said: Mapping[str, Any] = {"logs": {place: entry.stored() for place, entry in sorted(self.entries.items())}}
        with write_whole(self.folder / MANIFEST) as file:
            json.dump(said, file, indent=1)
