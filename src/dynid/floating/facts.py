"""Prior knowledge about a robot with a free base: its total mass, and left-right symmetry.

Total mass and symmetry are linear equations of the standard parameters, matrix theta = values, in units of their
standard deviations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import LinearModel, Model
from dynid.robot import Robot
from dynid.robot import inertia as ten

Facts = tuple[Array, Array]  # matrix (equations, parameters) and values (equations,)
# Under a reflection at the plane y = 0 products of inertia with y and the first moment along y change sign.
_MIRROR_Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
_MIRRORED_PLACE = 1e-4  # m or rad: largest error of mirrored joints that count as a pair
TOTAL_MASS_STD = 0.005  # default relative standard deviation of a total mass, typical of a scale
_SIDE_NAMES = (("left", "right"), ("Left", "Right"), ("LEFT", "RIGHT"), ("l", "r"), ("L", "R"))


def total_mass(model: LinearModel, mass: float, std: float) -> Facts:
    """Return the equation that the sum of all masses is `mass`, kg, with a standard deviation `std`, kg."""
    if not (mass > 0.0 and std > 0.0 and np.isfinite(mass + std)):
        raise ModelError(f"a total mass needs a value and a standard deviation above zero, got {mass} and {std} kg",
                         code="wrong-total-mass")
    bodies = [p.body is not None and re.fullmatch(r"M(\d+|L\w*)", p.name) is not None for p in model.parameters]
    return np.array(bodies, dtype=float)[None] / std, np.array([mass / std])


def mirrored_links(robot: Robot) -> dict[str, str]:
    """Return pairs of bodies {left: right} whose names differ only by the side and whose joints are mirror images.

    The mirror plane is y = 0 of the root.
    """
    pairs: dict[str, str] = {}
    places = {body.name: i for i, body in enumerate(robot.bodies)}
    for name, i in places.items():
        for twin in _other_side(name):
            if twin in places and i >= robot.free_coordinates and _are_mirrored(robot, i, places[twin], pairs):
                pairs[name] = twin
    return pairs


def _other_side(name: str) -> list[str]:
    """Return candidates for the name of the right-hand counterpart of a left-hand link."""
    twins = []
    for left, right in _SIDE_NAMES:
        for hit in re.finditer(left, name):
            before, after = name[:hit.start()], name[hit.end():]
            starts, ends = not before or not before[-1].islower(), not after or not after[0].isalpha()
            if len(left) > 1 or (starts and ends):
                twins.append(before + right + after)
    return twins


def _are_mirrored(robot: Robot, left: int, right: int, pairs: Mapping[str, str]) -> bool:
    """Return whether two joints are mirror images, on one parent link or on mirrored parents; pairs: names of mirrored
    links so far."""
    a, b = robot.joints[left], robot.joints[right]
    above = (robot.body_names[a.parent], robot.body_names[b.parent])
    if a.kind != b.kind or not (a.parent == b.parent or pairs.get(above[0]) == above[1]):
        return False
    flip = np.diag([1.0, -1.0, 1.0, 1.0])
    poses = [joint.before @ joint.after for joint in (a, b)]
    return bool(np.abs(flip @ poses[0] @ flip - poses[1]).max() < _MIRRORED_PLACE)


def symmetry(model: Model, pairs: Mapping[str, str] | None = None, *, std: float = 0.01) -> Facts:
    """Return equations that left and right links have mirrored inertias, and their joints equal friction and rotor
    inertia.

    Args:
        model: model of the robot.
        pairs: names of bodies {left: right}; by default those of `mirrored_links`.
        std: standard deviation of the differences within a pair, relative to the nominal parameter, or in SI units if
            the parameter has no nominal value.
    """
    robot = model.robot
    chosen = mirrored_links(robot) if pairs is None else dict(pairs)
    if not chosen:
        raise ModelError(f"robot '{robot.name}' has no links whose names and places are mirror images",
                         "name the pairs, {left: right}", code="no-symmetry")
    names, rows, items = model.parameters.names, list[tuple[str, str, float, float]](), model.parameters.items
    numbers = {body.name: i for i, body in enumerate(robot.bodies)}
    for left, right in chosen.items():
        for side in (left, right):
            if side not in numbers:
                raise ModelError(f"robot '{robot.name}' has no body '{side}' that could have a mirror image",
                                 code="unknown-body")
        i, j = numbers[left] + 1, numbers[right] + 1
        size = _body_sizes([items[names.index(f"{name}{i}")].nominal for name in ten.NAMES])
        rows += [(f"{name}{i}", f"{name}{j}", float(_MIRROR_Y[k]), size[k]) for k, name in enumerate(ten.NAMES)]
        rows += [(p.name, f"{p.symbol}{j}", 1.0, abs(p.nominal or 0.0) or 1.0) for p in items
                 if p.owner == i - 1 and p.body is None and f"{p.symbol}{j}" in names]
    matrix = np.zeros((len(rows), len(names)))
    for row, (left, right, sign, scale) in zip(matrix, rows, strict=True):
        row[names.index(left)], row[names.index(right)] = 1.0 / (std * scale), -sign / (std * scale)
    return matrix, np.zeros(len(rows))


def _body_sizes(nominal: Sequence[float | None]) -> list[float]:
    """Return the scale of each of the ten inertial parameters of a body from its nominal values."""
    if any(value is None for value in nominal):
        return [1.0] * 10
    values = np.abs(np.array(nominal, dtype=float))
    inertia, moment = max(values[:6].max(), 1e-6), max(values[6:9].max(), 1e-6)
    return [float(inertia)] * 6 + [float(moment)] * 3 + [float(max(values[9], 1e-6))]
