"""Bodies with known inertia, whose torques are known and whose parameters are not identified."""

from __future__ import annotations

from dynid.model.model import Model
from dynid.robot import Robot
from dynid.robot.roles import held_bodies


def held_values(model: Model | Robot) -> dict[str, float]:
    """Return the ten parameters of every body with known inertia, by name: known values for `identify`."""
    robot = model.robot if isinstance(model, Model) else model
    held = held_bodies(robot)
    if not held:
        return {}
    parameters = (model if isinstance(model, Model) else Model(robot)).parameters
    return {one.name: one.nominal for one in parameters if one.body in held and one.nominal is not None}
