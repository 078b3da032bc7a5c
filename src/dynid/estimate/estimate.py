"""Estimate: the one result of every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools
from dynid.model import LinearModel, complete
from dynid.regression import BaseParameters


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of the base parameters, how sure they are, and how they were found.

    values (base,), covariance (base, base): one-sigma deviations are `std`. identified (base,): False where the data
    say nothing of a parameter; its value is then whatever the method fell back to and its deviation is infinite.
    theta (parameters,): all standard parameters, where the method gives them; the values are then their combinations.
    diagnostics: numbers of the fit (see `dynid.estimate.diagnostics`). provenance: what repeats it.
    """

    method: str
    model: LinearModel
    base: BaseParameters
    values: Array
    covariance: Array
    identified: Bools
    theta: Array | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def std(self) -> Array:
        """One-sigma deviation of each base parameter (base,); infinite where not identified."""
        return np.where(self.identified, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def relative_std(self) -> Array:
        """Deviation in percent of the value (base,) (Janot, Vandanjon, Gautier, eq. 19); infinite for zero."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * self.std / np.where(size > 0, size, 1.0), np.inf)

    @property
    def full(self) -> Array:
        """A full vector (parameters,) with the same torques: `theta`, or the base values with zeros for the rest."""
        return self.base.expand(self.values) if self.theta is None else self.theta

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Torques (samples, dof) along a motion."""
        return complete(self.model).inverse_dynamics(self.full, q, dq, ddq)

    def with_provenance(self, **facts: Any) -> Estimate:
        """The same estimate with more said about where it comes from."""
        return replace(self, provenance={**self.provenance, **facts})

    def summary(self) -> str:
        """A table that can be pasted into a paper."""
        from dynid.estimate.summary import summary
        return summary(self)

    def to_urdf(self, path: str | Path, source: str | Path | None = None, *, with_payload: bool = False,
                unchecked: bool = False) -> tuple[str, ...]:
        """Write the robot's own URDF (or `source`) with these values in place; see `dynid.estimate.export`."""
        from dynid.estimate.export import write_urdf
        return write_urdf(self, path, source, with_payload=with_payload, unchecked=unchecked)

    def to_mjcf(self, path: str | Path, *, with_payload: bool = False, unchecked: bool = False) -> tuple[str, ...]:
        """Write the robot with these values as MJCF for MuJoCo; see `dynid.estimate.export`."""
        from dynid.estimate.export import write_mjcf
        return write_mjcf(self, path, with_payload=with_payload, unchecked=unchecked)
