"""Output-error problem of one joint chain: its unknown parameters, its logs, and the simulation of its positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.chains import LARGEST_STEP, Chain, LogSignals, simulate_chain
from dynid.actuators.laws import DriveLaw
from dynid.actuators.parameters import MECHANICAL_PARAMETERS, ActuatorParameter, mechanical_numbers
from dynid.arrays import Array
from dynid.recording import Recording
from dynid.robot import Robot

# Largest number of simulations with estimated initial states. With more, the states of the measured motion are used,
# which limits the number of unknowns.
MAX_ESTIMATED_STARTS = 100


@dataclass(frozen=True, eq=False)
class ActuatorLog:
    """A log with its own gains and robot.

    Attributes:
        recording: measured and commanded positions.
        gains: drive law parameters during this log, such as {"kp": 16.0}.
        robot: the robot or pendulum of this log, if it differs from that of the other logs.
    """

    recording: Recording
    gains: Mapping[str, float] = field(default_factory=dict)
    robot: Robot | None = None


@dataclass(frozen=True)
class Unknown:
    """An unknown of the estimation: a parameter of a joint, or an initial state of a simulation.

    Attributes:
        name, item: name and description of the parameter.
        joint: index of the joint in the chain; -1 for a parameter that all joints of the chain share.
        log, segment: log and simulation of an initial state; -1 for a parameter.
    """

    name: str
    joint: int
    item: ActuatorParameter
    log: int = -1
    segment: int = -1

    @property
    def is_nuisance(self) -> bool:
        """Whether the unknown is an initial state of a simulation and not a parameter of a joint."""
        return self.segment >= 0


@dataclass(frozen=True, eq=False)
class ChainLog:
    """One log of a chain of joints.

    Attributes:
        chain: the chain with the links of that log.
        recording, signals: the log, and its signals for simulation.
        gains: drive law parameters during this log.
        rows: work array of the compiled dynamics, see `Chain.packed`.
        drive: signals that the law reads from the recording, see `DriveLaw.signals`.
    """

    chain: Chain
    recording: Recording
    signals: LogSignals
    gains: Mapping[str, float]
    rows: Array
    drive: Mapping[str, Array]

    @staticmethod
    def from_log(chain: Chain, log: ActuatorLog, law: DriveLaw, gap: float, restart: float | None) -> ChainLog:
        drive = law.signals(log.recording)
        signals = LogSignals.from_log(log.recording, chain.joints, drive, gap, restart)
        return ChainLog(chain, log.recording, signals, log.gains, chain.packed(), drive)

    def part(self, start: int, stop: int, gap: float, restart: float | None) -> ChainLog:
        """Return the rows from `start` to `stop` as a new log; gap, restart: see `LogSignals.from_log`."""
        recording, drive = self.recording[start:stop], {name: own[start:stop] for name, own in self.drive.items()}
        signals = LogSignals.from_log(recording, self.chain.joints, drive, gap, restart)
        return replace(self, recording=recording, signals=signals, drive=drive)


def joint_numbers(law: DriveLaw, values: Mapping[str, float]) -> Array:
    """Return the inputs of the compiled simulation (JOINT_COLUMNS,) of a joint, from its parameter values by name."""
    numbers = np.zeros(c.JOINT_COLUMNS)
    numbers[[c.U_LIMIT, c.TORQUE_LIMIT]], numbers[c.TORQUE_GAIN] = np.inf, 1.0
    for column, value in {**mechanical_numbers(values), **law.numbers(values)}.items():
        numbers[column] = value
    numbers[[c.TORQUE_GAIN, c.BACK_EMF]] *= values.get("torque_scale", 1.0)
    return numbers


# A joint that does not move is simulated with a very large inertia and without a drive.
_FIXED_JOINT = np.zeros(c.JOINT_COLUMNS)
_FIXED_JOINT[c.ARMATURE], _FIXED_JOINT[[c.U_LIMIT, c.TORQUE_LIMIT]] = 1e9, np.inf  # kg m^2; N m


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """Output-error problem of one joint chain: the fit of simulated to measured positions of its logs.

    Attributes:
        law: the drive law.
        names: names of the joints.
        logs: logs of the chain.
        known: given values, one table per joint.
        unknowns: parameters that are estimated.
        step: largest step of the simulation, s.
        slope_step: largest step of the simulations for sensitivities, which need less accuracy than residuals, s.
        still: indices of joints that do not move in any log, which are fixed at their positions.
    """

    law: DriveLaw
    names: tuple[str, ...]
    logs: tuple[ChainLog, ...]
    known: tuple[Mapping[str, float], ...]
    unknowns: tuple[Unknown, ...]
    step: float = LARGEST_STEP
    slope_step: float = LARGEST_STEP
    still: tuple[int, ...] = ()

    @property
    def coarse(self) -> ChainProblem:
        """The same estimation problem with the longer integration step that suffices for sensitivities."""
        return self if self.step == self.slope_step else replace(self, step=self.slope_step)

    @property
    def moving(self) -> list[int]:
        """Indices of the joints that move in at least one log."""
        return [j for j in range(self.dof) if j not in self.still]

    @property
    def dof(self) -> int:
        return len(self.names)

    @property
    def lower(self) -> Array:
        return np.array([one.item.lower for one in self.unknowns])

    @property
    def upper(self) -> Array:
        return np.array([one.item.upper for one in self.unknowns])

    @property
    def log_rows(self) -> list[int]:
        """Number of rows (samples) of each log."""
        return [len(log.signals.t) for log in self.logs]

    def affected_rows(self, k: int) -> slice:
        """Return the rows that unknown k affects: the rows of one simulation for an initial state, all rows for a
        parameter."""
        one = self.unknowns[k]
        if not one.is_nuisance:
            return slice(None)
        first = sum(self.log_rows[:one.log])
        bounds = [*self.logs[one.log].signals.starts.tolist(), self.log_rows[one.log]]
        return slice(first + bounds[one.segment], first + bounds[one.segment + 1])

    def label(self, k: int) -> str:
        """Return the name of an unknown with its joint."""
        one = self.unknowns[k]
        return one.name if one.joint < 0 else f"{one.name} of {self.names[one.joint]}"

    def values(self, x: Array) -> list[dict[str, float]]:
        """Return the values of all parameters of each joint by name, from the values x of the unknowns (unknowns,)."""
        tables = [dict(table) for table in self.known]
        for one, value in zip(self.unknowns, x, strict=True):
            if one.is_nuisance:
                continue
            for j in range(self.dof) if one.joint < 0 else (one.joint,):
                tables[j][one.name] = float(value)
        return tables

    def numbers(self, x: Array, log: ChainLog) -> Array:
        """Return the inputs of the compiled simulation (dof, JOINT_COLUMNS) from values x of the unknowns."""
        return np.array([_FIXED_JOINT if j in self.still else joint_numbers(self.law, {**values, **log.gains})
                         for j, values in enumerate(self.values(x))])

    def simulate(self, x: Array, log: ChainLog, encoder: tuple[Array, Array] | None = None) -> Array | None:
        """Return simulated positions (rows, dof) of a log; None if the simulation diverges.

        encoder: resolutions and origins (dof,), rad, of the rounding of positions in the drives and in the log.
        """
        rows = log.rows
        if any(one.name == "link_scale" for one in self.unknowns):
            rows = log.chain.packed(np.array([values.get("link_scale", 1.0) for values in self.values(x)]))
        numbers = self.numbers(x, log)
        if encoder is not None:
            numbers[:, c.ENCODER_COUNT], numbers[:, c.ENCODER_ORIGIN] = encoder
        signals = self._started(x, log).at_speeds(self.speed_limits(x, log))
        motion = simulate_chain(log.chain, signals, numbers, rows=rows.copy(), step=self.step)
        if motion is None:
            return None
        for j in self.still:
            motion[0, :, j] = np.median(log.signals.q[:, j])
        return motion[0]

    def speed_limits(self, x: Array, log: ChainLog) -> Array:
        """Return the speed limits (dof,) of the drives' targets, rad/s; infinite without a limit."""
        return np.array([{**values, **log.gains}.get("speed_limit", np.inf) for values in self.values(x)])

    def _started(self, x: Array, log: ChainLog) -> LogSignals:
        """Return the signals of a log with the estimated initial states of its simulations."""
        own = [(one, value) for one, value in zip(self.unknowns, x, strict=True)
               if one.is_nuisance and self.logs[one.log] is log] if self.has_starts else []
        if not own and not self.still:
            return log.signals
        first = log.signals.first.copy()
        first[:, 1, list(self.still)] = 0.0
        for one, value in own:
            first[one.segment, 0 if one.name == "start_position" else 1, one.joint] += value
        return replace(log.signals, first=first)

    @property
    def has_starts(self) -> bool:
        """Whether initial states of simulations are among the unknowns."""
        return bool(self.unknowns) and self.unknowns[-1].is_nuisance

    def with_starts(self) -> ChainProblem:
        """Return the problem with the initial states of its simulations as further unknowns, unless there are many."""
        if self.has_starts or sum(len(log.signals.starts) for log in self.logs) > MAX_ESTIMATED_STARTS:
            return self
        more = [Unknown(name, j, MECHANICAL_PARAMETERS[name], k, s) for k, log in enumerate(self.logs)
                for s in range(len(log.signals.starts)) for j in self.moving
                for name in ("start_position", "start_velocity")]
        return replace(self, unknowns=(*self.unknowns, *more))

    def residuals(self, x: Array, encoder: tuple[Array, Array] | None = None) -> Array | None:
        """Return measured minus simulated positions (rows of all logs, dof); None if a simulation diverges.

        encoder: see `simulate`.
        """
        parts = []
        for log in self.logs:
            simulated = self.simulate(x, log, encoder)
            if simulated is None:
                return None
            parts.append(log.signals.q - simulated)
        return np.concatenate(parts)

    def estimating(self, names: Sequence[str], *, shared: Sequence[str] = ()) -> ChainProblem:
        """Return the problem with other unknowns: parameters `names` of each joint, and `shared` parameters of all
        joints."""
        items = self.items
        if self.logs:
            # A command is logged at most one interval after it was sent, so the delay is at least minus one interval.
            interval = max(float(np.median(np.diff(log.signals.t))) for log in self.logs)
            items["delay"] = replace(items["delay"], lower=-interval)
        return replace(self, unknowns=(*(Unknown(name, j, items[name]) for j in self.moving for name in names),
                                       *(Unknown(name, -1, items[name]) for name in shared)))

    @property
    def items(self) -> dict[str, ActuatorParameter]:
        """Descriptions of all parameters of a joint and its drive law by name."""
        return {**MECHANICAL_PARAMETERS, **{item.name: item for item in self.law.parameters}}

    def start(self, values: Sequence[Mapping[str, float]]) -> Array:
        """Return initial values (unknowns,) within the bounds, from tables of parameter values of each joint."""
        start = []
        for one in self.unknowns:
            rows = values if one.joint < 0 else [values[one.joint]]
            own = [row[one.name] for row in rows if one.name in row]
            start.append(float(np.mean(own)) if own else one.item.value)
        return np.clip(np.array(start), self.lower, self.upper)
