"""Models bound to data, with the base parameters that the data can identify and the prior of known values.

Every room that identifies from data, recorded or streamed, makes its base parameters here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array
from dynid.floating.identifiable import floating_base_parameters
from dynid.floating.preparation import FloatingEquations, WholeBody
from dynid.floating.whole_body import whole_bodies
from dynid.model import DataContext, LinearModel, Model, bound, robot_model
from dynid.recording import Recording, Samples
from dynid.regression import BaseParameters, base_parameters
from dynid.regression.equations import unmeasured_joints
from dynid.regression.known import KnownValues, Prior, with_known

_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, eq=False)
class DataFacts:
    """Facts about logs or a stream on which a model and its base parameters depend.

    Attributes:
        unmeasured: joints, counted from 0, whose torque is not measured in any log.
        context: speeds, ranges, times and temperatures, to which terms of the model are bound; None for unknown ones.
        bodies: the whole-body equations of the logs of a robot with a free base.
    """

    unmeasured: tuple[int, ...] = ()
    context: DataContext = field(default_factory=DataContext)
    bodies: tuple[WholeBody, ...] = ()

    @staticmethod
    def from_samples(logs: Sequence[Samples], recordings: Sequence[Recording] = ()) -> DataFacts:
        """Return the facts about prepared logs and about their recordings, if these are available."""
        return DataFacts.from_recordings(recordings) if not len(logs) else DataFacts(
            tuple(unmeasured_joints(logs)), _context(logs, top_speeds(logs), motion_ranges(logs)),
            whole_bodies(recordings))

    @staticmethod
    def from_recordings(recordings: Sequence[Recording]) -> DataFacts:
        """Return the facts about recordings that are not prepared yet, so that their top speeds are unknown."""
        return DataFacts(tuple(unmeasured_joints(recordings)), _context(recordings), whole_bodies(recordings))


@dataclass(frozen=True, eq=False)
class BoundModel:
    """A model with its data-dependent terms set, its base parameters, and the prior of uncertain known values or None.

    Exactly known values are in `base.known`.
    """

    model: LinearModel
    base: BaseParameters
    prior: Prior | None = None


def bind_to_data(model: LinearModel, facts: DataFacts, known: KnownValues | None = None, *,
                 base: BaseParameters | None = None, priority: Sequence[int] | None = None) -> BoundModel:
    """Return a model bound to data, with its base parameters and the prior of known values.

    Args:
        model: the model.
        facts: facts about the data.
        known: known standard parameters, see `Regression.given`, in addition to inertias that the robot file states as
            known.
        base: base parameters without the known values. Default: those that the data can identify.
        priority: order of all columns, see `base_parameters`.
    """
    model = bound(model, facts.context)
    return BoundModel(model, *with_known(model, identifiable_base(model, facts, priority) if base is None else base,
                                         known))


def identifiable_base(model: LinearModel, facts: DataFacts, priority: Sequence[int] | None = None) -> BaseParameters:
    """Return the base parameters that the equations of data can identify with sufficient excitation."""
    own = robot_model(model)
    if facts.bodies and own is not None:
        return _floating_base(own, facts.bodies)
    return base_parameters(model, priority, unmeasured=facts.unmeasured)


def _floating_base(model: Model, bodies: Sequence[WholeBody]) -> BaseParameters:
    """Return the base parameters that the equations of logs of a robot with a free base can identify."""
    def sees_wrench(body: WholeBody) -> bool:  # while a robot is suspended, a sensor measures the whole force on it
        return body.equations == "wrenches" or bool(
            body.equations == "flight" and body.log.tau is not None and body.log.wrenches)

    projected = [body for body in bodies if body.equations == "projected"]
    if projected and not any(map(sees_wrench, bodies)):
        schedules = sorted({tuple(map(bool, row)) for body in projected if body.log.standing is not None
                            for row in np.unique(np.asarray(body.log.standing), axis=0)})
        return floating_base_parameters(model, "projected", contacts=projected[0].log.contacts, schedules=schedules)
    is_free_flight = all(body.equations == "flight" and not body.log.wrenches for body in bodies)
    kind: FloatingEquations = "wrenches" if any(map(sees_wrench, bodies)) else "flight" if is_free_flight else "base"
    return floating_base_parameters(model, kind)


def _context(logs: Sequence[Samples] | Sequence[Recording], speeds: Array | None = None, ranges: Array | None = None
             ) -> DataContext:
    """Return the quantities of logs that set terms of a model: top speeds and ranges (dof,) or None, times and
    temperatures."""
    if not len(logs):
        return DataContext()
    warm = [log.temperature for log in logs if log.temperature is not None]
    times = min(float(log.t[0]) for log in logs), max(float(log.t[-1]) for log in logs)
    return DataContext(speeds=speeds, ranges=ranges, times=times,
                       temperatures=np.mean(np.concatenate(warm), axis=0) if warm else None)


def top_speeds(logs: Sequence[Samples]) -> Array:
    """Return the top speed of each joint (dof,) over the valid samples, rad/s or m/s; one for a joint at rest."""
    top = np.zeros(logs[0].dof)
    for log in logs:
        for start in range(0, len(log), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            top = np.maximum(top, np.where(log.keep[rows], np.abs(log.dq[rows]), 0.0).max(axis=0, initial=0.0))
    return np.where(top > 0, top, 1.0)


def motion_ranges(logs: Sequence[Samples]) -> Array:
    """Return the range of motion of each joint (dof,) over the segments of all logs, rad or m; one for a joint at
    rest."""
    low, high = np.full((2, logs[0].dof), np.inf) * np.array([[1.0], [-1.0]])
    for log in logs:
        for start, stop in log.segments:
            for at in range(start, stop, _ROWS_AT_ONCE):
                rows = log.q[at:min(at + _ROWS_AT_ONCE, stop)]
                low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    found = high - low
    return np.where(found > 0, found, 1.0)
