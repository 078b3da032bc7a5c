"""Protocol of the smallest model that can be identified."""

from __future__ import annotations

from typing import Protocol

from dynid.arrays import Array
from dynid.model.parameters import Parameters


class LinearModel(Protocol):
    """Protocol of the simplest model: identification needs only these three members.

    `regressor` takes arrays (samples, dof) and returns (samples, dof, parameters).
    """

    @property
    def dof(self) -> int: ...

    @property
    def parameters(self) -> Parameters: ...

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array: ...
