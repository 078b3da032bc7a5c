"""The compressed regression of one log, with its manifest entry."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, load_arrays
from dynid.datasets.log_source import LogFacts
from dynid.errors import RecordingError
from dynid.model import LinearModel
from dynid.output_fields import output_fields
from dynid.regression import Regression


@dataclass(frozen=True)
class ManifestEntry:
    """Entry of one log in a manifest.

    Attributes:
        source: name of the log, usually its path.
        sha256: hash of its bytes and its mapping.
        rows: samples read.
        start, stop: s, of the log's own clock.
        robot: name of the robot in a fleet.
        date: ISO 8601; empty where it is not known.
        motion: name of the commanded motion, where it is known.
        stamp: size and time of its file, to recognise it without reading.
        facts: facts from reading the log.
    """

    source: str
    sha256: str
    rows: int
    start: float
    stop: float
    robot: str = ""
    date: str = ""
    motion: str = ""
    stamp: str = ""
    facts: LogFacts | None = None

    @property
    def span(self) -> float:
        """Duration, s."""
        return self.stop - self.start

    @output_fields(own_fields=True, without=("facts",), span_s=float)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        table = {name: value for name, value in asdict(self).items() if name != "facts"}
        return {**table, "span_s": self.span}

    def stored(self) -> dict[str, Any]:
        """Return plain data for a manifest."""
        return asdict(self)

    @staticmethod
    def of(table: dict[str, Any]) -> ManifestEntry:
        """Return an entry from the data of `stored`."""
        known = {name: table[name] for name in ManifestEntry.__dataclass_fields__ if name in table}
        facts = known.get("facts")
        return ManifestEntry(**{**known, "facts": None if facts is None else LogFacts.from_table(facts)})


@dataclass(frozen=True, eq=False)
class LogFold:
    """The compressed regression of one log. noise: X_j' C_j X_j of each joint's own columns, if computed."""

    entry: ManifestEntry
    regression: Regression
    noise: tuple[Array, ...] | None = None

    def packed(self) -> bytes:
        """Return the log as bytes, for transfer and storage."""
        raw = BytesIO()
        arrays = {f"noise{j}": matrix for j, matrix in enumerate(self.noise or ())}
        self.regression.write(raw, entry=np.array(json.dumps(self.entry.stored())), **arrays)
        return raw.getvalue()

    @staticmethod
    def load(path: Path | bytes, model: LinearModel) -> LogFold:
        """Return the log from `packed` bytes or their file, for the model it was compressed with."""
        named = "the data of a worker" if isinstance(path, bytes) else path
        try:
            arrays = load_arrays(path)
        except (OSError, KeyError, ValueError, EOFError, IndexError):
            raise RecordingError(f"{named} is not the compressed regression of a log") from None
        regression = Regression.of_arrays(arrays, model, named)
        try:
            entry = ManifestEntry.of(json.loads(str(arrays["entry"])))
        except (KeyError, ValueError, TypeError):
            raise RecordingError("these bytes are not the compressed regression of a log") from None
        noise = tuple(arrays[f"noise{j}"] for j in range(regression.dof)) if "noise0" in arrays else None
        return LogFold(entry, regression, noise)

    def of_entry(self, entry: ManifestEntry) -> LogFold:
        """Return the same regression for a log with another path, robot or date."""
        regression = replace(self.regression, sources=(entry.source,), blocks=tuple(
            replace(block, spans=tuple(replace(span, source=entry.source) for span in block.spans))
            for block in self.regression.blocks))
        return LogFold(entry, regression, self.noise)


def signature(*parts: Any) -> str:
    """Return a short hash of the parts."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]
