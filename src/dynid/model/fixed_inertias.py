"""Known inertial parameters of bodies, which are not identified."""

from __future__ import annotations

from dynid.model.completion import LinearModel, robot_model
from dynid.robot.followers import links_with_fixed_inertia


def fixed_inertia_values(model: LinearModel) -> dict[str, float]:
    """Return the ten inertial parameters of every body with known inertia by name, as known values for `identify`."""
    own = robot_model(model)
    held = () if own is None else links_with_fixed_inertia(own.robot)
    return {one.name: one.nominal for one in model.parameters if one.body in held and one.nominal is not None}
