"""Plan of an actuator experiment: its recordings, which parameters each separates, and the expected standard errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dynid.actuators.experiment_parts import PART_KINDS
from dynid.arrays import Array

RESIDUAL_STD = 5e-3  # rad: what simulations of real servos miss after a fit (go2: 6 mrad, BAM: 20 mrad)
RESIDUAL_TIME = 0.1  # s over which such residuals are correlated: rows within it count as one
MAX_RELATIVE_STD = 0.5  # of a parameter's value, beyond which it is not identified


@dataclass(frozen=True, eq=False)
class ExperimentPart:
    """One recording of an experiment.

    Attributes:
        kind: one of PART_KINDS.
        gains: drive law parameters to set for it, such as {"kp": 16.0}.
        load: which load to mount, as `loads` of the experiment calls it; empty for a robot without one.
        t: times (rows,), s.
        command: commanded positions (rows, joints), rad or m.
        separates: parameters whose standard errors grow most without this part, and by which factor.
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
        units: their units.
        values: nominal values that the design assumes (parameters,).
        std: expected standard errors (parameters,), with residuals of RESIDUAL_STD.
        sizes: nominal values, or sizes that matter where these are smaller (parameters,).
        notes: what limits the design, one sentence each.
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

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Parameters whose expected standard error exceeds half of their nominal value, without offsets, which are
        zero."""
        return tuple(name for name, size, std in zip(self.parameters, self.sizes, self.std, strict=True)
                     if std > MAX_RELATIVE_STD * size and not name.startswith("offset"))


    @property
    def std_words(self) -> tuple[str, ...]:
        """Expected standard errors as text; "not determined" for parameters without."""
        return tuple("not determined" if name in self.not_identified else f"{std:.2g}"
                     for name, std in zip(self.parameters, self.std, strict=True))


def plan_text(plan: ActuatorExperiment, files: Sequence[str]) -> str:
    """Return the plan as Markdown: each recording with what it separates, and the standard errors to expect.

    Args:
        plan: the experiment.
        files: command file of each part.
    """
    lines = ["# Actuator experiment", "", f"{len(plan.parts)} recordings at {plan.rate:g} Hz of "
             f"{', '.join(plan.joints)}. Collisions are not checked: watch the first run, hand on the stop.", ""]
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
