"""Names, units, constraints and kinds of the parameters of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError

Group = Literal["body", "rotor", "friction", "offset", "stiffness", "other"]
# Meaning of each symbol in a parameter's name; {k} is the number in symbols such as Ft4_. The meaning of a symbol that
# is not listed is that of its kind, such as D, which is a delay or a damping.
SYMBOLS = {
    "XX": "moment of inertia about x", "YY": "moment of inertia about y", "ZZ": "moment of inertia about z",
    "XY": "product of inertia xy", "XZ": "product of inertia xz", "YZ": "product of inertia yz",
    "MX": "first moment along x", "MY": "first moment along y", "MZ": "first moment along z", "M": "mass",
    "Ia": "reflected rotor inertia", "Iam": "rotor inertia, motor side", "Jm": "rotor inertia of a flexible joint",
    "Fv": "viscous friction", "Fvm": "viscous friction, motor side",
    "Fvd": "half the difference of viscous friction between directions",
    "Fvp": "viscous friction in positive direction", "Fvn": "viscous friction in negative direction",
    "Fc": "Coulomb friction", "Fcm": "Coulomb friction, motor side",
    "Fcp": "Coulomb friction in positive direction", "Fcn": "Coulomb friction in negative direction",
    "Fo": "torque offset", "Fom": "torque offset, motor side",
    "Fs": "static friction", "Fsc": "Stribeck friction, arctan term", "Fnl": "Stribeck friction, power term",
    "Fb": "breakaway friction above Coulomb friction",
    "Ft": "friction curve, step {k}", "Fp": "polynomial friction, degree {k}", "Fw": "friction drift, time knot {k}",
    "Fl": "load-dependent friction", "Flm": "load-dependent friction, motor drives the link",
    "Flg": "load-dependent friction, link drives the motor",
    "Fct": "Coulomb friction per kelvin", "Fvt": "viscous friction per kelvin",
    "Fd": "presliding (Dahl) friction", "Fz": "presliding (LuGre) friction", "Fh": "hysteresis, play operator {k}",
    "Rc": "torque ripple, cosine of order {k}", "Rs": "torque ripple, sine of order {k}",
    "Cc": "cable torque, cosine of order {k}", "Cs": "cable torque, sine of order {k}",
    "Fg": "gas spring force", "Kg": "gas spring stiffness", "Kc": "counterbalance spring stiffness"}


@dataclass(frozen=True)
class Kind:
    """Physical kind of a parameter; a custom term may define its own kind.

    Attributes:
        words: name of the kind in a sentence, such as "viscous friction".
        group: role in the equations of motion: "body" (one of the ten inertial parameters of a body), "rotor" (inertia
            on one axis), "friction" (opposes the motion), "offset" (constant torque), "stiffness" (depends on the
            position), or "other".
        urdf: attribute of a URDF joint that stores it, or empty.
        mjcf: attribute of an MJCF joint that stores it, or empty.
    """

    words: str
    group: Group = "other"
    urdf: str = ""
    mjcf: str = ""

    def unwritten(self) -> Kind:
        """Return the kind without URDF and MJCF attributes, for a parameter that is only one part of a curve."""
        return Kind(self.words, self.group)


INERTIA = Kind("inertia", "body")
PRODUCT = Kind("product of inertia", "body")
MOMENT = Kind("first moment", "body")
MASS = Kind("mass", "body")
ROTOR = Kind("rotor inertia", "rotor", mjcf="armature")
VISCOUS = Kind("viscous friction", "friction", urdf="damping", mjcf="damping")
DRY = Kind("Coulomb friction", "friction", urdf="friction", mjcf="frictionloss")
FRICTION = Kind("friction", "friction")
HYSTERESIS = Kind("hysteresis", "friction")
OFFSET = Kind("offset", "offset")
SPRING = Kind("spring stiffness", "stiffness")
OTHER = Kind("parameter")

BODY = (INERTIA, PRODUCT, PRODUCT, INERTIA, PRODUCT, INERTIA, MOMENT, MOMENT, MOMENT, MASS)  # ten inertial parameters


def symbol_meaning(symbol: str, kind: Kind) -> str:
    """Return the meaning of a parameter from its symbol (such as "Fc" or "Ft4_"), or else from its kind."""
    stem = symbol[:-1].rstrip("0123456789") if symbol.endswith("_") else symbol
    number = symbol[len(stem):].rstrip("_")
    words = SYMBOLS.get(stem, kind.words)
    return words.format(k=number) if number and "{k}" in words else f"{words}, number {number}" if number else words


@dataclass(frozen=True)
class Parameter:
    """One standard parameter of a model.

    Attributes:
        name: unique name, such as "Fc3".
        unit: SI unit.
        owner: index of the joint that it belongs to, from 0.
        part: name of the link or joint that it belongs to.
        body: name of the rigid body, for an inertial parameter; else None.
        positive: whether physics excludes negative values.
        nominal: value in the robot file, or None.
        kind: physical kind.
        symbol: name without the number of its joint or body, such as "Fc". Default: the name without trailing digits.
        bounds: lower and upper bound that every method respects.
        ridge: weight of a ridge penalty toward zero. Least squares add ridge |column|^2 value^2 to the cost.
    """

    name: str
    unit: str
    owner: int
    part: str
    body: str | None = None
    positive: bool = False
    nominal: float | None = None
    kind: Kind = OTHER
    symbol: str = ""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if not self.bounds[0] < self.bounds[1] or not self.ridge >= 0.0:
            raise ModelError(f"parameter '{self.name}' needs a lower bound below its upper bound and a non-negative "
                             f"ridge, got {self.bounds} and {self.ridge}")
        if not self.symbol:
            object.__setattr__(self, "symbol", self.name.rstrip("0123456789") or self.name)

    @property
    def meaning(self) -> str:
        """Meaning of the parameter in words, with its link or joint, such as "Coulomb friction, joint3"."""
        return f"{symbol_meaning(self.symbol, self.kind)}, {self.part}"

    @property
    def never_negative(self) -> bool:
        """Whether a negative value is unphysical, as for `positive` parameters, masses and moments of inertia."""
        return self.positive or self.kind in (INERTIA, MASS)


@dataclass(frozen=True, eq=False)
class Parameters:
    """The ordered parameters of a model. Derived quantities are cached."""

    items: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in (item.name for item in self.items):
            if name in seen:
                raise ModelError(f"parameter '{name}' occurs twice in the model, because two terms define it",
                                 "remove one of them; for example, 'stribeck' includes 'viscous', 'coulomb' and "
                                 "'offset'", "repeated-parameter")
            seen.add(name)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.items)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    @cached_property
    def units(self) -> tuple[str, ...]:
        return tuple(item.unit for item in self.items)

    @cached_property
    def positive(self) -> Bools:
        """Mask (parameters,) of parameters that must not be negative."""
        return np.array([item.positive for item in self.items], dtype=bool)

    @cached_property
    def bounds(self) -> Array:
        """Lower and upper bounds (2, parameters), infinite by default."""
        return np.array([item.bounds for item in self.items], dtype=float).reshape(-1, 2).T

    @cached_property
    def ridge(self) -> Array:
        """Ridge weights (parameters,): share of a column's squared norm that regularises a parameter toward zero."""
        return np.array([item.ridge for item in self.items], dtype=float)

    @cached_property
    def bodies(self) -> dict[str, Ints]:
        """Indices of the ten parameters of each rigid body, in the order XX XY XZ YY YZ ZZ MX MY MZ M."""
        places: dict[str, list[int]] = {}
        for k, item in enumerate(self.items):
            if item.body is not None:
                places.setdefault(item.body, []).append(k)
        return {body: np.array(columns) for body, columns in places.items()}

    @property
    def nominal(self) -> Array | None:
        """Values in the robot file (parameters,), or None if a value is missing."""
        values = [item.nominal for item in self.items]
        return None if any(v is None for v in values) else np.array(values, dtype=float)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    def of_group(self, *groups: Group) -> Bools:
        """Return the mask (parameters,) of parameters whose kind belongs to one of the given groups."""
        return np.array([item.kind.group in groups for item in self.items], dtype=bool)

    def index(self, name: str) -> int:
        """Return the index of a parameter by name."""
        if name in self._places:
            return self._places[name]
        raise ModelError(f"the model has no parameter '{name}'; it has {', '.join(self.names)}",
                         code="unknown-parameter")

    def vector(self, values: Mapping[str, float] | ArrayLike) -> Array:
        """Return parameter values as a checked vector (parameters,); values: given by name, or in order."""
        if hasattr(values, "to_dict"):  # a column of a pandas table
            values = values.to_dict()
        if isinstance(values, Mapping):
            unknown = [name for name in values if name not in self._places]
            if unknown:
                raise ModelError(f"the model has no parameter '{unknown[0]}'; it has {', '.join(self.names)}")
            missing = [name for name in self.names if name not in values]
            if missing:
                raise ModelError(f"no value is given for parameter '{missing[0]}'; give the values of all parameters")
            values = [values[name] for name in self.names]
        vector = np.ascontiguousarray(values, dtype=float)
        if vector.shape != (len(self),):
            raise ModelError(f"the model has {len(self)} parameters, got values of shape {vector.shape}")
        if not np.isfinite(vector).all():
            name = self.names[int(np.argmin(np.isfinite(vector)))]
            raise ModelError(f"the value of parameter '{name}' is not finite")
        return vector

    def order(self, groups: Sequence[str]) -> list[int]:
        """Return the indices of all parameters sorted by groups of symbols: order(["M", "MX MY MZ"]) has all masses
        first, then all first moments body by body, then the other parameters."""
        symbols = [item.symbol for item in self.items]
        rank = {symbol: k for k, group in enumerate(groups) for symbol in group.split()}
        unknown = [symbol for symbol in rank if symbol not in symbols]
        if unknown:
            raise ModelError(f"the model has no parameters of kind '{unknown[0]}'; "
                             f"it has {', '.join(dict.fromkeys(symbols))}", code="unknown-parameter-kind")
        return sorted(range(len(self)), key=lambda k: rank.get(symbols[k], len(groups)))
