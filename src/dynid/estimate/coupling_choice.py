"""Motor couplings between neighbouring joints as candidate terms of a robot model.

A motor can be coupled to two joints, as in many wrists and parallel drives (`CoupledWrist`). Robot files rarely state
such a coupling. The motor's inertia and friction then act on both joints, which no term of one joint can represent. A
coupling is a property of the mechanism: it is selected or not, and never regularised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate.choice import student_quantile
from dynid.model import CoupledWrist, Model, Sign, chosen, joint_parameter
from dynid.model.parameters import Parameter
from dynid.model.term import Entries
from dynid.model.terms import RATE, TORQUE
from dynid.robot import Robot

# Probability of a false coupling in all tests together: the quantile is that of Student's t at 1 - 0.05 / candidates
# (Bonferroni).
FALSE_COUPLINGS = 0.05
# Smallest relative reduction of the squared error of both joints on a typical block: a missing coupling dominates
# their errors. On robots without a coupling no candidate reduced them significantly by a third.
LEAST_COUPLING_GAIN = 0.5
SYMBOLS = ("Iam", "Fvm", "Fcm", "Fcn")  # the last is dry friction for joints with opposite directions


@dataclass(frozen=True)
class Coupling:
    """Coupling of joint b's motor to joint a, both counted from 0: its speed is dq_b + ratio dq_a, ratio 1 or -1."""

    a: int
    b: int
    ratio: float

    @property
    def names(self) -> tuple[str, str, str]:
        """Parameter names of the motor's inertia, viscous and dry friction in `NeighbourCouplings`."""
        return f"Iam{self.b + 1}", f"Fvm{self.b + 1}", f"{'Fcm' if self.ratio > 0 else 'Fcn'}{self.b + 1}"

    def table(self, joints: Sequence[str], sign: Sign) -> dict[str, Any]:
        """Return the coupling as a table of a run file. joints: names of all joints. sign: smoothed sign function."""
        return {"kind": CoupledWrist.kind, "joints": [joints[self.a], joints[self.b]], "ratio": self.ratio,
                "sign": {"kind": sign.kind, "width": _narrower(sign, self.a, self.b).one_width}}

    def is_passive(self, values: Mapping[str, float]) -> bool:
        """Return whether friction with this coupling dissipates energy at every speed, for parameter values by name."""
        _, viscous, dry = (values.get(name, 0.0) for name in self.names)
        own = [values.get(f"Fv{j + 1}", 0.0) for j in (self.a, self.b)]
        return dry >= 0.0 and viscous * self.ratio >= 0.0 and min(own) >= 0.0 and own[0] * own[1] >= viscous ** 2


@dataclass(frozen=True)
class NeighbourCouplings:
    """Regressor columns of couplings between all pairs of neighbouring joints, for both directions of the motor.

    Attributes:
        sign: smoothed sign of a velocity, with a width for each joint.
        exceptions: joints, counted from 0, whose motors are known.
    """

    kind = "neighbour-couplings"
    sign: Sign
    exceptions: tuple[int, ...] = ()

    @staticmethod
    def beside(model: Model, sign: Sign) -> NeighbourCouplings:
        """Return the coupling columns for joints whose motors are not yet described by a term of the model."""
        known: set[int] = set()
        for term in model.terms:
            if isinstance(term, CoupledWrist):
                known |= {*chosen(model.robot, term.joints)}
            elif getattr(term, "kind", "") == "motor-side":
                known |= {*range(model.dof)}
        return NeighbourCouplings(sign, tuple(sorted(known)))

    def pairs(self, robot: Robot) -> tuple[tuple[int, int], ...]:
        """Return pairs of a joint and its successor in the chain of the same type (both revolute or both prismatic)."""
        joints = robot.joints
        pairs = ((joint.parent, b) for b, joint in enumerate(joints) if joint.parent >= robot.free_coordinates)
        return tuple((a, b) for a, b in pairs
                     if joints[a].prismatic == joints[b].prismatic and not {a, b} & {*self.exceptions})

    def candidates(self, robot: Robot) -> tuple[Coupling, ...]:
        return tuple(Coupling(a, b, ratio) for a, b in self.pairs(robot) for ratio in (1.0, -1.0))

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        units = (("kg m^2", "kg"), RATE, TORQUE, TORQUE)
        return tuple(joint_parameter(robot, symbol, b, unit)
                     for _, b in self.pairs(robot) for symbol, unit in zip(SYMBOLS, units, strict=True))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, (a, b) in enumerate(self.pairs(robot)):
            sign = _narrower(self.sign, a, b)
            same, opposite = (sign(dq[:, b] + ratio * dq[:, a]) for ratio in (1.0, -1.0))
            for here, other, side in ((a, b, -1.0), (b, a, 1.0)):
                yield from ((here, 4 * k, ddq[:, other]), (here, 4 * k + 1, dq[:, other]), (here, 4 * k + 2, same),
                            (here, 4 * k + 3, side * opposite))


def _narrower(sign: Sign, a: int, b: int) -> Sign:
    """Return the sign function whose width is the smaller one of two joints."""
    return min(sign.of_joint(a), sign.of_joint(b), key=lambda narrow: narrow.one_width)


def choose_couplings(candidates: Sequence[Coupling], losses: Callable[[Sequence[Coupling]], Array],
                     exact: Array) -> tuple[Coupling, ...]:
    """Return the couplings that clearly reduce the cross-validation errors of their joints.

    Args:
        candidates: candidate couplings.
        losses: function that returns squared cross-validation errors (blocks, dof) for a set of couplings.
        exact: squared error of a block below which errors are rounding errors (dof,).
    """
    found: tuple[Coupling, ...] = ()
    while True:
        taken = {joint for coupling in found for joint in (coupling.a, coupling.b)}
        free = [coupling for coupling in candidates if not {coupling.a, coupling.b} & taken]
        tested = [(_gain(coupling, losses(found), losses((*found, coupling)), exact, len(candidates)), k, coupling)
                  for k, coupling in enumerate(free)]
        gain, _, best = max(tested, default=(0.0, 0, None))
        if best is None or not gain > 0.0:
            return found
        found = (*found, best)


def _gain(coupling: Coupling, before: Array, after: Array, exact: Array, tried: int) -> float:
    """Return the mean decrease of the log squared error of both joints by a coupling; zero if not significant."""
    own = [coupling.a, coupling.b]
    gains = np.log(before[:, own].sum(axis=1) + exact[own].sum()) - np.log(after[:, own].sum(axis=1) + exact[own].sum())
    n = len(gains)
    # Fits share most of their data (Nadeau and Bengio, 2003).
    error = float(gains.std(ddof=1)) * np.sqrt(1.0 / n + 1.0 / (n - 1))
    needed = max(student_quantile(n - 1, 1.0 - FALSE_COUPLINGS / tried) * error, -np.log1p(-LEAST_COUPLING_GAIN))
    return float(gains.mean()) if gains.mean() > needed else 0.0

