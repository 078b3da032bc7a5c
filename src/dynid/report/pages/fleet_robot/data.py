"""FleetRobotData: what the page of one robot of a fleet is made of."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True, eq=False)
class FleetRobotData:
    """What the page shows. sentences: what differs or changed. names, units, and (base,) each: values and std with the
    fleet as a prior, alone and alone_std without it, mean: the fleet's, lean: percent that comes from it. dates: of
    the logs, in order, days (logs,): since the first, sources: their names; history, history_std (logs, base): their
    own estimates, nan where a log does not show a parameter. errors (logs, dof): percent,
    of each log with its own estimate. changed: of each change that was found a parameter, the day, and its date."""

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
