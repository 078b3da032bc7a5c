"""LinearModel: the least that identification needs of a model."""

from __future__ import annotations

from typing import Protocol

from dynid.arrays import Array
from dynid.model.parameters import Parameters


class LinearModel(Protocol):
    """The least that identification needs: a user's own model is any object with these three.

    regressor takes (samples, dof) arrays and gives (samples, dof, parameters).
    """

    @property
    def dof(self) -> int: ...

    @property
    def parameters(self) -> Parameters: ...

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array: ...
