"""Limits of a motion: joints, torques and workspace, their file, and the check of a motion."""

from dynid.excitation.limits.limit_check import LimitReport, Usage, check_limits
from dynid.excitation.limits.limits_file import read_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.limits.workspace import Capsule, HalfSpace, Workspace, box, inside_box, sphere

__all__ = [
    "Capsule", "HalfSpace", "LimitReport", "Limits", "TorqueLimit", "Usage", "Workspace", "box", "check_limits",
    "inside_box", "read_limits", "sphere",
]
