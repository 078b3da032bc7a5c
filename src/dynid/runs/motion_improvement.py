"""Parameters that a designed motion improves over an earlier result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.report.pages.motion import MotionData

# Factor by which a standard error must decrease: a second log of the same kind gives the square root of two.
_MIN_STD_RATIO = 1.5
_MAX_NAMED_PARAMETERS = 6  # parameters named in a sentence


@dataclass(frozen=True)
class Improvement:
    """Effect of a motion on one parameter: standard error before (None for an unidentified parameter) and after."""

    name: str
    unit: str
    before: float | None
    after: float

    @property
    def times(self) -> float | None:
        """Factor by which the standard error decreases; None if the parameter was not identified before."""
        return None if self.before is None else self.before / self.after


def improvements(data: MotionData) -> list[Improvement]:
    """Return the parameters that a motion should improve, the largest improvement first. Parameters that a second log
    of the same kind would improve as much are omitted."""
    if data.before is None:
        return []
    found = data.excitation
    known = np.isfinite(data.values) & np.isfinite(data.before)
    each = [Improvement(name, unit, float(before) if yes else None, float(after)) for name, unit, before, after, yes in
            zip(found.base.names, found.base.units, data.before, found.std, known, strict=True)
            if np.isfinite(after)]
    return sorted((one for one in each if one.times is None or one.times > _MIN_STD_RATIO),
                  key=lambda one: -np.inf if one.times is None else -one.times)


def improvement_sentence(data: MotionData) -> str:
    """Return a sentence on the parameters that a motion improves most."""
    found = improvements(data)
    if not found:
        return ("the earlier logs determine as much as this motion can: no standard error would decrease by more than "
                "a third")
    words = [f"{one.name} to {one.after:.2g} {one.unit}" + (" (not identified before)" if one.times is None else
             f" ({one.times:.2g} times less)") for one in found[:_MAX_NAMED_PARAMETERS]]
    more = f" and {len(found) - _MAX_NAMED_PARAMETERS} more" if len(found) > _MAX_NAMED_PARAMETERS else ""
    return f"together with the earlier logs this motion reduces the standard error of {', '.join(words)}{more}"
