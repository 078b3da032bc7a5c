"""Base parameters of serial arms by rule (Gautier and Khalil; Ardiani, s. 1.3.2.1 A), a check on the numerical ones."""

from __future__ import annotations

import numpy as np

from dynid.errors import ModelError
from dynid.model import Model
from dynid.regression.base import BaseParameters
from dynid.robot import Robot
from dynid.robot import inertia as ten

_XX, _XY, _XZ, _YY, _YZ, _ZZ, _MX, _MY, _MZ, _M = range(10)
_PARALLEL = 1e-9


def closed_form_base(robot: Robot) -> BaseParameters:
    """Base parameters of the rigid bodies of a serial arm with turning joints and frames on them (MDH or URDF about z).

    Mass spread along a joint's axis moves neither with the joint nor against it, so it may as well belong to the link
    before. From the last link to the first, YY (with the same XX), MZ and M are handed over that way; then what the
    first joints cannot move is dropped.
    """
    n = robot.dof
    for joint in robot.joints:
        if joint.prismatic:
            raise ModelError(f"the closed-form rules hold for turning joints, '{joint.name}' slides")
        if not np.allclose(joint.after, np.eye(4)):
            raise ModelError(f"the closed-form rules want the frame of link {joint.name} on its joint with z along its "
                             "axis (modified DH); use base_parameters")
    if not robot.serial:
        raise ModelError(f"the closed-form rules hold for serial arms, robot '{robot.name}' has branches")

    # rows[10 j + k] is the combination of standard parameters that stands in for number k of link j.
    rows = np.eye(10 * n)
    for j in range(n - 1, -1, -1):
        link = rows[10 * j:10 * j + 10]
        on_axis = np.zeros_like(link)
        on_axis[_XX] = on_axis[_YY] = link[_YY]
        on_axis[_MZ], on_axis[_M] = link[_MZ], link[_M]
        if j > 0:
            rows[10 * (j - 1):10 * j] += ten.change_frame(robot.joints[j].before) @ on_axis
        link -= on_axis

    kept: list[int] = []
    pose, first_axis, first_point = np.eye(4), np.zeros(3), np.zeros(3)
    parallel = collinear = True  # to the first axis, for all joints so far
    for j, joint in enumerate(robot.joints):
        pose = pose @ joint.before
        axis, point = pose[:3, 2], pose[:3, 3]
        if j == 0:
            first_axis, first_point = axis, point
        parallel = parallel and bool(np.linalg.norm(np.cross(axis, first_axis)) < _PARALLEL)
        apart = np.linalg.norm(np.cross(point - first_point, first_axis))
        collinear = collinear and parallel and bool(apart < _PARALLEL)
        numbers = [_ZZ, _MX, _MY] if parallel else [_XX, _XY, _XZ, _YZ, _ZZ, _MX, _MY]
        upright = bool(np.linalg.norm(np.cross(robot.gravity, first_axis)) < _PARALLEL * 10.0)
        if collinear and upright:
            numbers = [_ZZ]
        kept += [10 * j + k for k in numbers]
    matrix = np.where(np.abs(rows[kept]) < 1e-12, 0.0, rows[kept])
    return BaseParameters(Model(robot).parameters, np.array(kept, dtype=np.int64), matrix)
