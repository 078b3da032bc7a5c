"""Plan of an actuator experiment: recordings with commands and purposes, and expected standard errors of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array

RESIDUAL_STD = 5e-3  # rad: position error of fitted simulations of real servos (go2: 6 mrad, BAM: 20 mrad)
RESIDUAL_TIME = 0.1  # s over which position errors are correlated: rows within this time count as one
MAX_RELATIVE_STD = 0.5  # standard error relative to the value of a parameter, beyond which it is not identified
START_HOLD = 0.5  # s of rest at the home posture before and after each part
RANGE_SHARE = 0.9  # share of the range that commands use; the remainder is a margin for overshoot
SPEED_SHARE = 0.9  # share of the speed limit that smooth commands use
MIN_CHIRP_FREQUENCY = 0.2  # Hz, at the beginning of a chirp
ROWS_PER_PERIOD = 8.0  # rows of the command in the shortest period of a chirp
STEP_HOLDS = (0.3, 1.0)  # s: shortest and longest time between two steps
MAX_STEP_TIME = 0.25  # s that a step may take at the speed limit
SMALL_STEP_SHARES = (0.01, 0.06)  # smallest and largest of the small steps, relative to half the range
STEP_KINDS = ("steps", "small steps")  # recordings whose commands jump; the servo limits its own speed


@dataclass(frozen=True, eq=False)
class ExperimentPart:
    """One recording of an actuator experiment.

    Attributes:
        kind: kind of the commands, a key of PART_KINDS such as "chirp".
        gains: drive law parameters to set for this recording, such as {"kp": 16.0}.
        load: name of the load to mount, see `design_actuator_experiment`; empty for a robot without a load.
        t: times (rows,), s.
        command: commanded positions (rows, joints), rad or m.
        separates: factors by which standard errors grow without this recording, for the parameters that need the
            recording most.
    """

    kind: str
    gains: Mapping[str, float]
    load: str
    t: Array
    command: Array
    separates: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Title of a recording: its kind, gains and load as text."""
        return ", ".join([self.kind, *(f"{name} {value:g}" for name, value in self.gains.items()),
                          *([self.load] if self.load else [])])


@dataclass(frozen=True, eq=False)
class ActuatorExperiment:
    """A plan of recordings for actuator identification.

    Attributes:
        parts: the recordings, in the order in which they were chosen.
        joints: names of the joints.
        rate: rows per second of the commands.
        parameters: names of the unknown parameters, with their joints.
        units: units of these parameters.
        values: nominal values that the design assumes (parameters,).
        std: expected standard errors (parameters,), with position errors of 5 mrad (RESIDUAL_STD).
        sizes: scales of the parameters (parameters,): the larger of nominal and typical values.
        notes: sentences on limits of the design.
        collisions: text on obstacles that the recordings were checked against or not.
    """

    parts: tuple[ExperimentPart, ...]
    joints: tuple[str, ...]
    rate: float
    parameters: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    std: Array
    sizes: Array
    notes: tuple[str, ...] = ()
    collisions: str = "collisions are not checked"

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Parameters whose expected standard error exceeds half of their scale (`sizes`); offsets are not listed."""
        return tuple(name for name, size, std in zip(self.parameters, self.sizes, self.std, strict=True)
                     if std > MAX_RELATIVE_STD * size and not name.startswith("offset"))

    @property
    def std_words(self) -> tuple[str, ...]:
        """Expected standard errors as text; "not determined" for parameters that the experiment does not identify."""
        return tuple("not determined" if name in self.not_identified else f"{std:.2g}"
                     for name, std in zip(self.parameters, self.std, strict=True))


def plan_text(plan: ActuatorExperiment, files: Sequence[str]) -> str:
    """Return the plan as Markdown: each recording with its purpose, and the expected standard errors of parameters.

    files: names of the command files of the recordings.
    """
    lines = ["# Actuator experiment", "", f"{len(plan.parts)} recordings at {plan.rate:g} Hz of "
             f"{', '.join(plan.joints)}; {plan.collisions}. Watch the first run, ready to stop it.", ""]
    for k, (part, file) in enumerate(zip(plan.parts, files, strict=True), 1):
        lines += [f"## {k}. {part.title}", "",
                  f"Commands: `{file}`, {part.t[-1]:g} s. Why: {PART_KINDS[part.kind][1]}."]
        if part.separates:
            lines += ["Without this recording the expected standard errors would grow: " + ", ".join(
                f"{name} {factor:.2g} times" for name, factor in part.separates.items()) + "."]
        lines.append("")
    lines += ["## Expected standard errors", "",
              f"With residuals of {1e3 * RESIDUAL_STD:g} mrad that are correlated over {RESIDUAL_TIME:g} s, at the "
              "assumed values.", "", "| parameter | assumed | standard error | unit |",
              "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {value:.3g} | {std} | {unit} |" for name, value, std, unit in
              zip(plan.parameters, plan.values, plan.std_words, plan.units, strict=True)]
    lines += ["", *(f"- {note[0].upper()}{note[1:]}." for note in plan.notes)]
    if plan.not_identified:
        lines += [f"- Not determined by this experiment: {', '.join(plan.not_identified)}."]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, eq=False)
class Room:
    """Limits of the commands of one joint.

    Attributes:
        low, high: lowest and highest position, rad or m.
        speed: highest speed, rad/s or m/s.
        home: position at which each recording begins and ends, rad or m.
    """

    low: float
    high: float
    speed: float
    home: float

    @property
    def middle(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def half(self) -> float:
        return 0.5 * RANGE_SHARE * (self.high - self.low)


def _sweep(turns: float) -> Callable[[Array, Room, np.random.Generator, float], Array]:
    """Return a function for commands that move back and forth at constant speed, `turns` times in the recording."""
    def command(t: Array, room: Room, rng: np.random.Generator, phase: float) -> Array:
        duration = float(t[-1])
        size = min(room.half, SPEED_SHARE * room.speed * duration / (4.0 * turns))
        phase_of_turn = (turns * t / duration + 0.25 + 0.3 * phase) % 1.0
        return room.middle + size * (1.0 - 4.0 * np.abs(phase_of_turn - 0.5))
    return command


def _chirp(highest: float) -> Callable[[Array, Room, np.random.Generator, float], Array]:
    """Return a function for sine commands with a frequency that rises to `highest`, Hz, within the speed limit."""
    def command(t: Array, room: Room, rng: np.random.Generator, phase: float) -> Array:
        duration, top = float(t[-1]), min(highest, (len(t) - 1) / float(t[-1]) / ROWS_PER_PERIOD)
        frequency = MIN_CHIRP_FREQUENCY + (top - MIN_CHIRP_FREQUENCY) * t / duration
        angle = 2 * np.pi * np.cumsum(frequency) * (t[1] - t[0]) + 2 * np.pi * phase
        size = np.minimum(room.half, SPEED_SHARE * room.speed / (2 * np.pi * frequency))
        return room.middle + size * np.sin(angle)
    return command


def _steps(t: Array, room: Room, rng: np.random.Generator, phase: float) -> Array:
    """Return commands (rows,) that jump to random positions and stay there for random times."""
    largest = min(2 * room.half, MAX_STEP_TIME * room.speed)
    at, level, command = 0.0, room.home, np.full(len(t), room.home)
    while at < t[-1]:
        low, high = max(room.middle - room.half, level - largest), min(room.middle + room.half, level + largest)
        level = float(rng.uniform(min(low, high), max(low, high)))
        command[t >= at] = level
        at += float(rng.uniform(*STEP_HOLDS))
    return command


def _small_steps(t: Array, room: Room, rng: np.random.Generator, phase: float) -> Array:
    """Return commands (rows,) with small steps about several postures; some steps do not overcome static friction."""
    postures = room.middle + room.half * np.array([-0.7, 0.0, 0.7])
    place = np.minimum((3 * t / t[-1]).astype(int), 2)
    sizes = room.half * rng.uniform(*SMALL_STEP_SHARES, size=int(t[-1] / 0.25) + 2) \
        * (-1.0) ** np.arange(int(t[-1] / 0.25) + 2)
    command: Array = postures[place] + sizes[(t / 0.25).astype(int)]
    for change in (np.flatnonzero(np.diff(place)) + 1).tolist():  # from posture to posture at half the speed limit
        rows = int(np.ceil(2 * abs(command[change] - command[change - 1]) / room.speed / (t[1] - t[0])))
        stop = min(change + rows, len(t))
        command[change:stop] = np.linspace(command[change - 1], command[min(stop, len(t) - 1)], stop - change)
    return command


def _lift_and_drop(t: Array, room: Room, rng: np.random.Generator, phase: float) -> Array:
    """Return commands (rows,) that lift a load slowly to alternating sides, hold it, and return fast."""
    period, half = 4.0, room.half
    fast = min(2.0 * half / (SPEED_SHARE * room.speed), 0.3 * period)
    u = (t + phase * period) % period
    side = np.where(((t + phase * period) // period).astype(int) % 2 == 0, 1.0, -1.0)
    lift = np.clip(u / (0.6 * period), 0.0, 1.0)
    drop = np.clip((u - 0.7 * period) / fast, 0.0, 1.0)
    return room.middle + side * half * (lift - drop)


PART_KINDS: Mapping[str, tuple[Callable[[Array, Room, np.random.Generator, float], Array], str]] = {
    "slow sweep": (_sweep(1.0), "at low constant speed only gravity and dry friction cause the tracking error"),
    "sweep": (_sweep(3.0), "at another constant speed, viscous friction and back-EMF differ from dry friction"),
    "chirp": (_chirp(2.5), "accelerations show inertia, and the phase shows damping"),
    "fast chirp": (_chirp(8.0), "at high frequency the delay and the armature dominate"),
    "steps": (_steps, "jumps reach saturation and show the delay"),
    "small steps": (_small_steps, "some steps end in sticking, which shows static friction, backlash and encoder bias"),
    "lift and drop": (_lift_and_drop, "friction under load differs between lifting and lowering"),
}


def part_command(kind: str, duration: float, rate: float, rooms: list[Room], seed: int, share: float = 1.0) \
        -> tuple[Array, Array]:
    """Return times (rows,), s, and commanded positions (rows, joints) of one recording.

    Args:
        kind: kind of the commands, a key of PART_KINDS such as "chirp".
        duration: total time, s, including the rests at both ends.
        rate: rows per second.
        rooms: limits of each joint.
        seed: seed of the random steps.
        share: amplitude of the commands relative to the full range about the home posture.
    """
    t = np.arange(round(duration * rate) + 1) / rate
    rng = np.random.default_rng([seed, list(PART_KINDS).index(kind)])
    inner = t[(t >= START_HOLD) & (t <= duration - START_HOLD)] - START_HOLD
    found = np.empty((len(t), len(rooms)))
    for j, room in enumerate(rooms):
        raw = PART_KINDS[kind][0](inner - inner[0], room, rng, j / len(rooms))
        lead = max(2.0 * float(np.ptp(raw)) / room.speed, 0.2)  # s between the home position and the motion
        fade = np.minimum(np.clip((inner - inner[0]) / lead, 0.0, 1.0), np.clip((inner[-1] - inner) / lead, 0.0, 1.0))
        smooth = fade ** 3 * (10.0 - 15.0 * fade + 6.0 * fade ** 2)
        away = np.zeros(len(t))
        away[(t >= START_HOLD) & (t <= duration - START_HOLD)] = share * smooth * (raw - room.home)
        if kind not in STEP_KINDS:  # fading in adds to the speed of the motion itself
            away *= min(1.0, room.speed / max(rate * float(np.abs(np.diff(away)).max()), 1e-12))
        found[:, j] = np.clip(room.home + away, room.low, room.high)
    return t, found
