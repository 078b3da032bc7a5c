"""Simulated machine with flexible joints, from a `FlexibleModel` and its parameter values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import FlexibleModel, Model
from dynid.simulation.plant import Flexible

COMPILED_MOTOR_FRICTION = ("viscous", "coulomb")  # friction of motors that compiled code has


def flexible_machine(model: FlexibleModel, theta: ArrayLike) -> tuple[Model, Array, Flexible]:
    """Return the model of the links, its parameter values (parameters,), and springs and motors, as `simulate` takes
    them.

    The offset of a spring and the skew between encoders belong to the log, not to the machine.
    """
    strange = [kind for kind in model.motor_friction if kind not in COMPILED_MOTOR_FRICTION]
    if strange:
        raise ModelError(f"motors with friction of kind '{strange[0]}' cannot be simulated; there are "
                         f"{' and '.join(COMPILED_MOTOR_FRICTION)}")
    values = dict(zip(model.parameters.names, model.parameters.vector(theta), strict=True))
    n, links = model.links.dof, model.links

    def of_joints(symbol: str, otherwise: float = 0.0) -> Array:
        return np.array([values.get(f"{symbol}{j + 1}", otherwise) if j in model.bending else otherwise
                         for j in range(n)])

    flexible = Flexible(of_joints("K", np.inf), of_joints("D"), of_joints("Jm"), of_joints("Fvm"), of_joints("Fcm"))
    return links, np.array([values[name] for name in links.parameters.names]), flexible

