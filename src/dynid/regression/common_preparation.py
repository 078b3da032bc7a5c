"""CommonPreparation: one way from logs to samples for many logs, from what a few of them ask for.

The few are drawn by a hash of their names, not by the order of these, which goes by robot and date. Where the cut-off
is not given, each of them chooses its own; the settings of the log with the middle one (the upper of two) hold for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynid.errors import DynidError, NotPossibleError
from dynid.recording.log_files import LogFile
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import prepare
from dynid.recording.read import read
from dynid.robot import Robot

SAMPLE = 5  # logs that are asked for a cut-off
_PARTS = 3  # of a path that count for the draw, so that it is the same wherever the folder of the logs lies


@dataclass(frozen=True)
class CommonPreparation:
    """preparation: of all logs. cutoffs: Hz, what each log that was looked at asks for, by source; None for one that is
    prepared without."""

    preparation: Preparation
    cutoffs: Mapping[str, float | None]

    @property
    def sentence(self) -> str:
        """In words, from what the cut-off was chosen."""
        chosen, asked = self.preparation.cutoff, [x for x in self.cutoffs.values() if x is not None]
        if chosen is None or len(asked) < 2:
            return ""
        return (f"the cut-off of {chosen:.3g} Hz is the middle one of those that {len(asked)} logs, drawn by a hash of "
                f"their names, ask for: {', '.join(f'{x:.3g}' for x in sorted(asked))} Hz")

    def to_dict(self) -> dict[str, Any]:
        return {"preparation": self.preparation.as_table(), "cutoffs": dict(self.cutoffs)}

    @staticmethod
    def of(table: Mapping[str, Any]) -> CommonPreparation:
        """From what `to_dict` gave."""
        return CommonPreparation(Preparation.of(table["preparation"], "the store of folds"), dict(table["cutoffs"]))


def common_preparation(logs: Sequence[LogFile], asked: Preparation, mapping: LogMapping,
                       robot: Robot | None) -> CommonPreparation:
    """What some logs of many choose for all. Logs that cannot be used are passed over; where the cut-off is given, one
    log is enough."""
    most = SAMPLE if asked.cutoff is None and asked.method != "none" else 1
    found: list[tuple[str, Preparation]] = []
    reason = "none of the logs is there"
    for log in sorted(logs, key=_drawn):
        try:
            with log.local() as path:
                samples = prepare(read(path, mapping, robot), asked)
        except DynidError as problem:
            reason = str(problem)
            continue
        except Exception as problem:  # whatever a damaged file makes a reader raise
            reason = f"{log.source} cannot be read: {type(problem).__name__}: {problem}"
            continue
        found.append((log.source, Preparation.of(dict(samples.settings)).elsewhere()))
        if len(found) == most:
            break
    if not found:
        raise NotPossibleError(f"none of {len(logs)} logs can be used; the last said: {reason}")
    ordered = sorted(found, key=lambda one: one[1].cutoff or 0.0)
    return CommonPreparation(ordered[len(ordered) // 2][1], {source: one.cutoff for source, one in found})


def _drawn(log: LogFile) -> str:
    parts = log.source.replace("\\", "/").split("/")
    return hashlib.sha256("/".join(parts[-_PARTS:]).encode()).hexdigest()
