"""Records of the iterations of an identification method, and of their simulated motions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynid.arrays import Array
from dynid.output_fields import map_of, output_fields, record
from dynid.plain import plain

POINTS = 400  # rows of the first log that are kept for figures
QUANTITIES = ("position", "velocity", "acceleration")


_ERROR_FIELDS: dict[str, Any] = {f"{name}_error{of}_per_joint": list[float | None] for name in QUANTITIES
                                 for of in ("", "_from_reference")}


@dataclass(frozen=True, eq=False)
class StepMotion:
    """Simulated motion of one iteration compared with the measured motion.

    Attributes:
        t: (points,), s, times of selected rows of the first log.
        measured, q: (points, dof), measured and simulated positions at these rows.
        errors: errors of position, velocity and acceleration over all logs (3, dof), percent of the measured motion
            about its mean position; nan for a joint at rest.
        from_reference: (3, dof), the same relative to the references, or None (Janot, Vandanjon, Gautier, fig. 8-9).
        torque_error: errors of the simulated controller's torques (dof,), percent, or None.
        tracking_error: error of all positions, percent.
    """

    t: Array
    measured: Array
    q: Array
    errors: Array
    from_reference: Array | None
    torque_error: Array | None
    tracking_error: float

    @output_fields(optional=[f"{name}_error_from_reference_per_joint" for name in QUANTITIES],
                   tracking_error=float | None, simulated_torque_error_per_joint=list[float | None] | None,
                   **_ERROR_FIELDS)
    def to_dict(self) -> dict[str, Any]:
        """Return the errors as plain data for JSON; the curves are only in the saved file of the estimate."""
        named = {f"{name}_error_per_joint": plain(self.errors[k]) for k, name in enumerate(QUANTITIES)}
        if self.from_reference is not None:
            named |= {f"{name}_error_from_reference_per_joint": plain(self.from_reference[k])
                      for k, name in enumerate(QUANTITIES)}
        return {"tracking_error": self.tracking_error, **named,
                "simulated_torque_error_per_joint": None if self.torque_error is None else plain(self.torque_error)}


_STEP_VALUE = record("IterationValue", value=float | None, std=float | None)


@dataclass(frozen=True, eq=False)
class Iteration:
    """One step of an iterative method.

    Attributes:
        values: base parameters (base,).
        std: (base,), standard errors, None if they were not computed.
        relative_error_per_joint: (dof,), torque error on the data, percent.
        number: number of the step, from 1; for a filter the number of passes so far.
        change: relative change of the torques in this step, None if unknown.
        step: largest change of a parameter in standard errors, None if unknown.
        simulated_relative_error: torque error in the equations of this step, percent.
        motion: motion of the simulated robot, or None.
    """

    values: Array
    relative_error_per_joint: Array
    number: float = 1.0
    std: Array | None = None
    change: float | None = None
    step: float | None = None
    simulated_relative_error: float | None = None
    motion: StepMotion | None = None

    @output_fields(number=float, change=float | None, step=float | None, values=map_of(_STEP_VALUE),
                   relative_error_per_joint=list[float | None], simulated_relative_error=float | None,
                   motion=StepMotion | None)
    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the object as plain data for JSON; names: names of the base parameters."""
        std = [None] * len(names) if self.std is None else plain(self.std)
        return {"number": self.number, "change": self.change, "step": self.step,
                "values": {name: {"value": float(value), "std": deviation}
                           for name, value, deviation in zip(names, self.values, std, strict=True)},
                "relative_error_per_joint": plain(self.relative_error_per_joint),
                "simulated_relative_error": self.simulated_relative_error,
                "motion": None if self.motion is None else self.motion.to_dict()}


def numbered(iterations: Sequence[Iteration]) -> tuple[Iteration, ...]:
    """Return the iterations numbered from 1."""
    return tuple(replace(one, number=float(k)) for k, one in enumerate(iterations, start=1))
