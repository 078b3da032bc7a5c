"""Results of a fleet comparison and their conversion to plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.datasets.log_fold import ManifestEntry
from dynid.datasets.log_folds import FoldedLogs
from dynid.fleet.change_detection import LogEstimates, PartChange
from dynid.fleet.outliers import Difference, StandingOut
from dynid.fleet.pooling import PooledRobot
from dynid.fleet.prediction_errors import Commanded, CrossPrediction, OutlyingRobot, outlying_robots
from dynid.fleet.robot_fold import RobotFold
from dynid.fleet.robot_scatter import Scatter, TwoWay
from dynid.fleet.settings import FleetSettings
from dynid.fleet.shared import SharedEstimate
from dynid.model import LinearModel
from dynid.output_fields import array_of, map_of, output_fields, record
from dynid.plain import finite, plain
from dynid.robot import Robot
from dynid.runs.settings import RunSettings


@dataclass(frozen=True)
class OddLog:
    """A log that differs from the other logs of its robot; ratio: torque residual of the log with the model of the
    other logs, divided by the residual with the log's own model."""

    robot: str
    source: str
    ratio: float

    @property
    def sentence(self) -> str:
        return (f"{self.robot}: the log {self.source} differs from the robot's other logs: with the model of these "
                f"logs its residuals are {self.ratio:.1f} times those with its own model; it may be of another robot, "
                "or include a payload")


_POOLED_PARAMETER = record("PooledParameter", alone=float | None, alone_std=float | None, value=float | None,
                           std=float | None, lean=float | None)
_FLEET_ROBOT = record("FleetRobot", logs=int, rows=list[int], relative_error=float | None,
                      relative_error_per_joint=list[float | None], parameters=map_of(_POOLED_PARAMETER), gains=Any)
_PARAMETER = record("FleetParameter", mean=float | None, spread_between=float | None, within=float | None,
                    between=float | None, p_within=float | None, p_between=float | None, p_robots=float | None,
                    p_motions=float | None, differs=str, unit=str, expression=str)
_DIFFERENCE = record("FleetDifference", name=str, value=float | None, fleet=float | None, standard_errors=float | None)
_STANDING_OUT = record("StandingOut", robot=str, part=str, probability=float, sentence=str,
                       parameters=array_of(_DIFFERENCE))
_FLEET_SHIFT = record("FleetShift", name=str, before=float | None, after=float | None, standard_errors=float | None)
_FLEET_CHANGE = record("FleetChange", robot=str, part=str, kind=str, date=str, probability=float, sentence=str,
                       parameters=array_of(_FLEET_SHIFT))
_ODD_LOG = record("OddFleetLog", robot=str, source=str, ratio=float)
_OUTLYING = record("OutlyingRobot", robot=str, error=float, usual=float)
_CROSS_PREDICTION = record("CrossPrediction", robots=list[str], joints=list[str], errors=list[list[list[float | None]]])
_SHARED_PARAMETER = record("SharedParameter", value=float | None, std=float | None)
_FAILED_LOG = record("FailedLog", source=str, robot=str, reason=str, code=str | None)
_SCATTER_KEYS = ("within", "between", "p_within", "p_between", "p_robots", "p_motions")


@dataclass(frozen=True, eq=False)
class FleetResult:
    """All results of a fleet comparison.

    Attributes:
        settings, robot, model: settings, robot type and model of the fleet.
        folded: compressed logs that were used, and logs that were excluded.
        robots: compressed logs of each robot, with the noise level of the fleet.
        logs: estimates of each robot's logs.
        scatter, out: scatter of the parameters, and parts of robots that differ from the fleet.
        pooled: estimate of each robot with the fleet as prior.
        shared: joint estimate of common and individual parameters; None if the logs do not allow it, see notes.
        cross: cross-prediction table of the robots.
        odd_logs: logs that differ from the other logs of their robot.
        changes: changes of robots over time.
        notes: remarks on the comparison, as sentences.
        commanded: signals of a motion that several robots made.
        seconds: computing time, s.
        run: settings of a run on the fleet's logs, with the chosen friction and cut-off.
    """

    settings: FleetSettings
    robot: Robot
    model: LinearModel
    folded: FoldedLogs
    robots: tuple[RobotFold, ...]
    logs: tuple[LogEstimates, ...]
    scatter: Scatter
    out: StandingOut
    pooled: tuple[PooledRobot, ...]
    shared: SharedEstimate | None
    cross: CrossPrediction
    changes: tuple[PartChange, ...]
    odd_logs: tuple[OddLog, ...]
    notes: tuple[str, ...]
    commanded: Commanded | None = None
    seconds: float = 0.0
    run: RunSettings | None = None

    @property
    def outlying(self) -> tuple[OutlyingRobot, ...]:
        """Robots whose models predict the other robots much worse than the others' models predict each other."""
        return outlying_robots(self.cross)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences with the main results, the most certain first."""
        return (*(one.sentence for one in self.odd_logs), *(one.sentence for one in self.outlying),
                *(one.sentence for one in self.out.differences), *(one.sentence for one in self.changes))

    @output_fields(robot=str, robots=map_of(_FLEET_ROBOT), parameters=map_of(_PARAMETER),
                   robots_by_motions=TwoWay | None, preparation=dict[str, Any], stand_out=array_of(_STANDING_OUT),
                   changes=array_of(_FLEET_CHANGE), odd_logs=array_of(_ODD_LOG), outlying=array_of(_OUTLYING),
                   cross_prediction=_CROSS_PREDICTION, commanded=Commanded | None,
                   shared=map_of(_SHARED_PARAMETER) | None, logs=list[ManifestEntry], failures=array_of(_FAILED_LOG),
                   copies=dict[str, str], read=int, notes=list[str], sentences=list[str], elapsed_s=float)
    def to_dict(self) -> dict[str, Any]:
        """Return the content of `dynid fleet --json`; numbers that are not finite are None."""
        base = self.out.pooling.base
        return {
            "robot": self.robot.name, "robots": {robot.name: self._robot(k) for k, robot in enumerate(self.robots)},
            "parameters": {name: {
                "mean": finite(self.out.pooling.mean[k]), "spread_between": finite(self.out.pooling.spread[k]),
                **{key: finite(getattr(self.scatter, key)[k]) for key in _SCATTER_KEYS},
                "differs": self.scatter.differs[k], "unit": base.units[k], "expression": base.expressions[k]}
                for k, name in enumerate(base.names)},
            "robots_by_motions": None if self.scatter.crossed is None else self.scatter.crossed.to_dict(base.names),
            "preparation": self.folded.preparation.as_table(),
            "stand_out": [_part(one, "value", "fleet") for one in self.out.differences],
            "changes": [_part(one, "before", "after") for one in self.changes],
            "odd_logs": [dict(vars(one)) for one in self.odd_logs],
            "outlying": [dict(vars(one)) for one in self.outlying],
            "cross_prediction": {"robots": list(self.cross.robots), "joints": list(self.cross.joints),
                                 "errors": plain(self.cross.between())},
            "commanded": None if self.commanded is None else self.commanded.to_dict(),
            "shared": None if self.shared is None else {
                name: {"value": finite(self.shared.values[0, k]), "std": finite(self.shared.std[0, k])}
                for k, name in enumerate(base.names) if self.shared.shared[k]},
            "logs": [entry.to_dict() for entry in self.folded.entries],
            "failures": [{"source": one.source, "robot": one.robot, "reason": one.reason, "code": one.code}
                         for one in self.folded.failures],
            "copies": dict(self.folded.copies), "read": self.folded.read, "notes": list(self.notes),
            "sentences": list(self.sentences), "elapsed_s": self.seconds}

    def _robot(self, k: int) -> dict[str, Any]:
        robot, pooled, names = self.robots[k], self.pooled[k], self.out.pooling.base.names
        alone = robot.solution
        std = np.sqrt(np.maximum(np.diag(robot.covariance), 0.0))
        return {"logs": len(self.logs[k].entries), "rows": list(robot.regression.rows),
                "relative_error": finite(robot.regression.relative_error(alone.beta)),
                "relative_error_per_joint": [finite(x) for x in robot.regression.relative_errors(alone.beta)],
                "parameters": {name: {
                    "alone": finite(alone.beta[i]) if alone.identified[i] else None,
                    "alone_std": finite(std[i]) if alone.identified[i] else None,
                    "value": finite(pooled.values[i]), "std": finite(pooled.std[i]), "lean": finite(pooled.lean[i])}
                    for i, name in enumerate(names)},
                "gains": None if self.shared is None or self.settings.gains is None
                else [finite(x) for x in self.shared.gains[k]]}


def _part(one: Difference | PartChange, first: str, second: str) -> dict[str, Any]:
    """Return a part that differs or changed as plain data; first, second: keys of the two values of each parameter."""
    keys = ("name", first, second, "standard_errors")
    return {**vars(one), "sentence": one.sentence,
            "parameters": [dict(zip(keys, row, strict=True)) for row in one.parameters]}
