"""The set of physically consistent parameters of a robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.blocks import Cone, ConeConstraint, Kind, svec, triangle
from dynid.consistency.limits import Box, CentreLimit, Ellipsoid, MassLimit
from dynid.errors import ModelError
from dynid.model import Parameters
from dynid.regression.base import parsed
from dynid.robot import inertia as ten

InertiaForm = Literal["pseudo", "spatial"]
ViolationKind = Literal["missing", "mass", "not-positive-definite", "triangle", "centre-of-mass", "size", "positive",
                        "mass-limit", "interval"]

# Unit of parameters in the solver: a body of one kilogram and one decimetre.
LENGTH = 0.1
# Default lower bound of eigenvalues (kg, kg m^2): above rounding errors of files, below the eigenvalues of real links.
MARGIN = 1e-8
# Upper bound of the mass of a robot whose file has no masses, kg. Without it, masses that have no effect on the motion
# would diverge in the solver.
HEAVIEST = 1e3
# Largest plausible distance of a centre of mass from the frame of its link, m.
FARTHEST = 10.0


@dataclass(frozen=True)
class Violation:
    """A violated condition of physical consistency. link: body or parameter. amount: excess, in the message's unit."""

    link: str
    kind: ViolationKind | Kind
    message: str
    amount: float


@dataclass(frozen=True, eq=False)
class Consistency:
    """The set of physically consistent parameter vectors.

    Attributes:
        parameters: the model's parameters.
        form: "pseudo", the 4 x 4 pseudo-inertia of every body (Ardiani, eq. 1.47), or "spatial", the 6 x 6 inertia
            matrix (Sousa, eq. 3.19), which does not include the triangle inequality.
        margin: smallest allowed eigenvalue of each matrix, kg and kg m^2 (Sousa, eq. 3.29).
        centres: limits on centres of mass, by link.
        masses: limits on masses of links, kg.
        positive: whether parameters such as friction and rotor inertia must not be negative.
        heaviest: upper bound of the total mass, kg, which also bounds masses that have no effect on the motion.
        known: exact values of parameters, by name.
        largest: upper bound of the absolute value of parameters that the motion does not determine, by name.
        dissipating: rows (k, parameters) by name: the named friction dissipates power if rows @ theta >= 0.
        intervals: bounds of combinations such as "ZZ1 + 0.25 M2" from other estimates (Sousa, s. 2.6.3).

    >>> model = dynid.Model(dynid.Robot.load("kuka-lwr4"))
    >>> dynid.nearest(dynid.Consistency(model.parameters), model.parameters.nominal).possible
    False
    """

    parameters: Parameters
    form: InertiaForm = "pseudo"
    margin: float = MARGIN
    centres: Mapping[str, CentreLimit] = field(default_factory=dict)
    masses: tuple[MassLimit, ...] = ()
    positive: bool = True
    heaviest: float = HEAVIEST
    known: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    dissipating: Mapping[str, Array] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.form not in ("pseudo", "spatial"):
            raise ModelError(f"the inertia condition has form 'pseudo' (4 x 4) or 'spatial' (6 x 6), not '{self.form}'")
        if not np.isfinite(self.margin) or self.margin < 0:
            raise ModelError(f"the margin of the inertia matrices must be a non-negative number, got {self.margin}")
        for body in [*self.centres, *(body for limit in self.masses for body in limit.bodies)]:
            if body not in self.bodies:
                raise ModelError(f"a limit is given for link '{body}', which is not in the model; its links are "
                                 f"{', '.join(self.bodies) or 'none'}")
        for text, (low, high) in self.intervals.items():
            if not (np.isfinite([low, high]).all() and low < high):
                raise ModelError(f"the interval of '{text}' needs a finite lower and a larger upper value, got {low} "
                                 f"and {high}", code="bad-interval")
        for body, limit in self.centres.items():
            away = limit.outside(np.zeros(3))
            if away > FARTHEST:
                raise ModelError(f"the centre of mass of link '{body}' is limited to points at least {away:.4g} m from "
                                 "the link's frame; give the limit in metres, in the link's "
                                 "frame", code="limit-too-far")

    @cached_property
    def bodies(self) -> dict[str, Ints]:
        """Indices of the ten inertial parameters of each body, by name of the body."""
        bodies = self.parameters.bodies
        for body, columns in bodies.items():
            if len(columns) != 10:
                raise ModelError(f"body '{body}' has {len(columns)} inertial parameters in the model, not ten; add "
                                 "the term of rigid bodies to the model")
        return bodies

    @cached_property
    def places(self) -> Ints:
        """Indices (bodies, 10) of the ten inertial parameters of every body."""
        return np.array(list(self.bodies.values()), dtype=np.int64).reshape(-1, 10)

    @cached_property
    def basis(self) -> Array:
        """Basis matrices (10, n, n): their sum, weighted by ten inertial parameters, is the matrix of a body."""
        return ten.pseudo_inertia(np.eye(10)) if self.form == "pseudo" else ten.spatial_inertia(np.eye(10))

    def matrices(self, theta: Array) -> Array:
        """Return the inertia matrices (bodies, n, n) at theta (parameters,), which must be positive definite."""
        tens = theta[self.places]
        return ten.pseudo_inertia(tens) if self.form == "pseudo" else ten.spatial_inertia(tens)

    def smallest_eigenvalue(self, theta: Array) -> float:
        """Return the smallest eigenvalue of all inertia matrices, kg or kg m^2; infinite without bodies."""
        return float(np.linalg.eigvalsh(self.matrices(theta)).min()) if self.bodies else np.inf

    @cached_property
    def blocks(self) -> tuple[ConeConstraint, ...]:
        """All conditions as cone constraints: first those of the bodies, last the limit of the total mass."""
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[ConeConstraint]:
        n = self.basis.shape[1]
        size = np.where(np.arange(n) < 3, 1.0 / LENGTH, 1.0)
        row, column = triangle(n)
        rows, balance = svec(self.basis).T, size[row] * size[column]
        kind: Kind = "pseudo-inertia" if self.form == "pseudo" else "spatial-inertia"
        below = -self.margin * svec(np.eye(n))
        for body, columns in self.bodies.items():
            yield ConeConstraint(f"{kind} of link '{body}'", kind, "psd", columns, rows, below, balance, body)
        if self.positive:
            for k in np.flatnonzero(self.parameters.positive):
                item = self.parameters.items[k]
                if self.known.get(item.name, -1.0) >= 0.0:  # fixed; an inequality too would leave no interior
                    continue
                yield ConeConstraint(
                    f"{item.name} of '{item.part}' not negative", "positive", "nonnegative", np.array([k]),
                    np.ones((1, 1)), np.zeros(1), np.ones(1))
        for name, value in self.known.items():
            place = self.parameters.index(name)
            item = self.parameters.items[place]
            yield ConeConstraint(f"{name} of '{item.part}' = {value:g} {item.unit}", "known", "zero", np.array([place]),
                                 np.ones((1, 1)), np.array([-value]), np.array([1.0 / max(1.0, abs(value))]), item.part)
        for name, high in self.largest.items():
            place = self.parameters.index(name)
            item = self.parameters.items[place]
            sides = [[-1.0]] if item.positive else [[-1.0], [1.0]]
            yield ConeConstraint(f"{name} of '{item.part}' within {high:.4g} {item.unit}", "torque", "nonnegative",
                                 np.array([place]), np.array(sides), np.full(len(sides), high),
                                 np.full(len(sides), 1.0 / max(1.0, high)))
        for name, rows in self.dissipating.items():
            own = np.flatnonzero(np.any(rows != 0.0, axis=0))
            yield ConeConstraint(
                f"{name} dissipates power", "friction", "nonnegative", own, rows[:, own], np.zeros(len(rows)),
                1.0 / np.abs(rows).max(axis=1))
        for text, (low, high) in self.intervals.items():
            coefficients = parsed(text, self.parameters)
            columns = np.flatnonzero(coefficients)
            yield ConeConstraint(f"{text} between {low:g} and {high:g}", "interval", "nonnegative", columns,
                                 np.array([coefficients[columns], -coefficients[columns]]), np.array([-low, high]),
                                 np.full(2, 1.0 / max(high - low, 1e-6)))
        for body, limit in self.centres.items():
            yield _centre_block(body, self.bodies[body][6:], limit)
        for mass in self.masses:
            yield from self._mass_blocks(mass)
        if self.bodies:
            yield from self._mass_blocks(MassLimit(high=self.heaviest))

    def _mass_blocks(self, limit: MassLimit) -> Iterator[ConeConstraint]:
        columns = np.array([self.bodies[body][9] for body in limit.bodies or self.bodies], dtype=np.int64)
        body = limit.bodies[0] if len(limit.bodies) == 1 else None
        balance = np.array([1.0 / max(1.0, abs(limit.low or 0.0), abs(limit.high or 0.0))])

        def constraint(text: str, cone: Cone, sign: float, value: float) -> ConeConstraint:
            """Return the constraint that sign * (total mass - value) lies in a cone."""
            return ConeConstraint(text, "mass", cone, columns, np.full((1, len(columns)), sign),
                                  np.array([-sign * value]), balance, body)

        if limit.low is not None and limit.equal:
            yield constraint(limit.text, "zero", 1.0, limit.low)
            return
        if limit.low is not None:
            yield constraint(MassLimit(limit.low, None, limit.bodies).text, "nonnegative", 1.0, limit.low)
        if limit.high is not None:
            yield constraint(MassLimit(None, limit.high, limit.bodies).text, "nonnegative", -1.0, limit.high)

    def with_known(self, theta: Array) -> Array:
        """Return the parameters (parameters,) with known values set exactly, which solvers do not ensure."""
        exact = theta.copy()
        for name, value in self.known.items():
            exact[self.parameters.index(name)] = value
        return exact

    # -- a full parameter vector -------------------------------------------------------------------------
    def slack(self, theta: Array) -> float:
        """Return the smallest distance of theta (parameters,) from a constraint's boundary; negative outside."""
        return min((block.slack(theta) for block in self.blocks), default=np.inf)

    def violations(self, theta: Array, tolerance: float = 0.0) -> tuple[Violation, ...]:
        """Return the conditions that theta (parameters,) violates by more than the tolerance."""
        theta = self.parameters.vector(theta)
        return tuple(v for v in self._violations(theta) if v.amount > tolerance)

    def _violations(self, theta: Array) -> Iterator[Violation]:
        for body, columns in self.bodies.items():
            yield from body_violations(body, theta[columns], self.centres.get(body), triangle_too=self.form == "pseudo")
        for k in np.flatnonzero(self.parameters.positive) if self.positive else ():
            item = self.parameters.items[k]
            if theta[k] < 0:
                message = f"{item.name} of '{item.part}' is negative: {theta[k]:.4g} {item.unit}"
                yield Violation(item.name, "positive", message, float(-theta[k]))
        for text, (low, high) in self.intervals.items():
            value = float(parsed(text, self.parameters) @ theta)
            if not low <= value <= high:
                yield Violation(text, "interval", f"{text} is {value:.6g}, outside {low:g} to {high:g}",
                                max(low - value, value - high))
        for limit in self.masses:
            mass = float(sum(theta[self.bodies[body][9]] for body in limit.bodies or self.bodies))
            over = max(0.0 if limit.low is None else limit.low - mass, 0.0 if limit.high is None else mass - limit.high)
            if over > 1e-9 * max(1.0, abs(mass)):
                yield Violation(limit.whose, "mass-limit", f"{limit.text} is violated: the mass is {mass:.6g} kg", over)


def _centre_block(body: str, columns: Ints, limit: CentreLimit) -> ConeConstraint:
    """Return the limit on the centre of mass c = (MX MY MZ) / M as a constraint on the first moments and the mass."""
    name = f"limit on the centre of mass of link '{body}'"
    if isinstance(limit, Ellipsoid):
        # |inverse (h - m centre)| <= m
        rows = np.vstack([[0.0, 0.0, 0.0, 1.0], np.column_stack([limit.inverse, -limit.inverse @ limit.centre])])
        return ConeConstraint(name, "centre-of-mass", "soc", columns, rows, np.zeros(4), np.ones(4), body)
    normals, offsets = limit.planes
    rows = np.column_stack([normals, offsets])
    return ConeConstraint(name, "centre-of-mass", "nonnegative", columns, rows, np.zeros(len(rows)),
                 1.0 / np.maximum(np.linalg.norm(rows, axis=1), 1e-3), body)


def body_violations(link: str, numbers: Array, centre: CentreLimit | None = None, *,
                    triangle_too: bool = True) -> Iterator[Violation]:
    """Yield the conditions that a link's ten parameters violate: mass, inertia, triangle inequality, centre."""
    faults = list(ten.body_faults(link, numbers))
    # If the inertia is not positive definite, the triangle inequality gives no further information.
    definite = all(fault.kind != "not-positive-definite" for fault in faults)
    for fault in faults:
        if fault.kind != "missing" and (fault.kind != "triangle" or (triangle_too and definite)):
            yield Violation(link, fault.kind, fault.message, max(fault.violation, np.finfo(float).tiny))
    if centre is not None and numbers[9] > 0:
        com = ten.to_central(numbers)[1]
        outside = centre.outside(com)
        if outside > 0:
            inside = "box" if isinstance(centre, Box) else "ellipsoid" if isinstance(centre, Ellipsoid) else "hull"
            at = ", ".join(f"{x:.4g}" for x in com)
            yield Violation(link, "centre-of-mass", f"the centre of mass of link '{link}' at ({at}) m is "
                                                    f"{outside:.4g} m outside its {inside}", outside)
