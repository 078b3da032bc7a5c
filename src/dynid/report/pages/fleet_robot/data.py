"""Data of the page on one robot of a fleet."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True, eq=False)
class FleetRobotData:
    """Data of the page on one robot of a fleet.

    Attributes:
        sentences: what differs or changed.
        names, units: of the base parameters.
        values, std: (base,), with the fleet as a prior.
        alone, alone_std: (base,), without the prior.
        mean: (base,), of the fleet.
        lean: (base,), percent of a value that comes from the prior.
        dates, days, sources: of the logs in order; days since the first (logs,).
        history, history_std: (logs, base), estimates of single logs, nan where a log does not excite a parameter.
        errors: (logs, dof), percent, of each log with its own estimate.
        changed: a parameter, the day and the date of each change.
    """

    title: str
    sentences: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    alone: Array
    alone_std: Array
    mean: Array
    lean: Array
    dates: tuple[str, ...]
    days: Array
    sources: tuple[str, ...]
    history: Array
    history_std: Array
    joints: tuple[str, ...]
    errors: Array
    changed: tuple[tuple[str, float, str], ...] = ()
