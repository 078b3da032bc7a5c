"""Parameters: the names, units and constraints of what a model can identify."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError


@dataclass(frozen=True)
class Parameter:
    """One number to identify.

    owner: index of the joint (from 0) it stands with in the list. part: link or joint name beside it in tables.
    body: name of the rigid body whose ten numbers it belongs to. positive: physics forbids values below zero.
    nominal: value the robot's source gives, if it does.
    """

    name: str
    unit: str
    owner: int
    part: str
    body: str | None = None
    positive: bool = False
    nominal: float | None = None


@dataclass(frozen=True, eq=False)
class Parameters:
    """The ordered parameters of a model."""

    items: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items]
        for name in set(names):
            if names.count(name) > 1:
                raise ModelError(f"parameter '{name}' stands twice in the model: two of its terms give the same one")

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.items)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(item.unit for item in self.items)

    @property
    def positive(self) -> Bools:
        """Which must not be below zero (parameters,)."""
        return np.array([item.positive for item in self.items], dtype=bool)

    @property
    def bodies(self) -> dict[str, Ints]:
        """For each rigid body the places of its ten numbers, in the order XX XY XZ YY YZ ZZ MX MY MZ M."""
        places: dict[str, list[int]] = {}
        for k, item in enumerate(self.items):
            if item.body is not None:
                places.setdefault(item.body, []).append(k)
        return {body: np.array(columns) for body, columns in places.items()}

    @property
    def nominal(self) -> Array | None:
        """The values the robot's source gives (parameters,), or None where one is missing."""
        values = [item.nominal for item in self.items]
        return None if any(v is None for v in values) else np.array(values, dtype=float)

    def index(self, name: str) -> int:
        """Place of a parameter by name."""
        for k, item in enumerate(self.items):
            if item.name == name:
                return k
        raise ModelError(f"the model has no parameter '{name}'; it has {', '.join(self.names)}")

    def vector(self, values: Mapping[str, float] | ArrayLike) -> Array:
        """Values by name, or already in order, as one checked vector (parameters,)."""
        if isinstance(values, Mapping):
            unknown = [name for name in values if name not in self.names]
            if unknown:
                raise ModelError(f"the model has no parameter '{unknown[0]}'; it has {', '.join(self.names)}")
            missing = [name for name in self.names if name not in values]
            if missing:
                raise ModelError(f"no value is given for parameter '{missing[0]}'")
            values = [values[name] for name in self.names]
        vector = np.ascontiguousarray(values, dtype=float)
        if vector.shape != (len(self),):
            raise ModelError(f"the model has {len(self)} parameters, got values of shape {vector.shape}")
        if not np.isfinite(vector).all():
            name = self.names[int(np.argmin(np.isfinite(vector)))]
            raise ModelError(f"the value of parameter '{name}' is not finite")
        return vector

    def order(self, groups: Sequence[str]) -> list[int]:
        """All places, group after group: order(["M", "MX MY MZ"]) puts all masses first, then all first moments
        body by body, then the rest as it stands. A group names kinds, that is names without their number."""
        kinds = [item.name.rstrip("0123456789") for item in self.items]
        rank = {kind: k for k, group in enumerate(groups) for kind in group.split()}
        unknown = [kind for kind in rank if kind not in kinds]
        if unknown:
            raise ModelError(f"the model has no parameters of kind '{unknown[0]}'; "
                             f"it has {', '.join(dict.fromkeys(kinds))}")
        return sorted(range(len(self)), key=lambda k: rank.get(kinds[k], len(groups)))
