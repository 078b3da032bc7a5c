"""Exciting trajectories for identification, designed for the most Fisher information within limits."""

from dynid.excitation.exciting_motion import ExcitingMotion, assess, slow_enough
from dynid.excitation.information import Information, magnitudes
from dynid.excitation.limits.limit_check import LimitReport, Usage, check_limits, find_collision
from dynid.excitation.limits.limits_file import read_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.workspace import Capsule, HalfSpace, Workspace, box, inside_box, sphere
from dynid.excitation.motion_design import excite
from dynid.excitation.null_space import SelfMotion, null_space_motion, self_motion
from dynid.excitation.random_motions import Sines, random_points, random_sines, random_spline
from dynid.excitation.room import Room, RoomMotion, room_motion
from dynid.excitation.search.criteria import CRITERIA, Criterion
from dynid.excitation.search.experiment_design import Measurement, PriorKnowledge, Search
from dynid.excitation.standing.options import Standing
from dynid.excitation.standing.whole_body_trajectory import WholeBodyTrajectory
from dynid.excitation.sweeps import (
    PayloadPair,
    coupling_sweep,
    friction_sweep,
    gravity_sweep,
    inertia_sweep,
    payload_pair,
)
from dynid.excitation.trajectories.families import Family, Fourier, FourierPlusQuintic, Splines
from dynid.excitation.trajectories.trajectory import (
    FourierSeries,
    Joined,
    Motion,
    Piecewise,
    Slowed,
    Trajectory,
)
from dynid.excitation.trajectories.trajectory_file import read_trajectory, write_trajectory
from dynid.excitation.waypoints import approach, quintics, quintics_within, trapezoids

__all__ = [
    "CRITERIA", "Capsule", "Criterion", "ExcitingMotion", "Family", "Fourier", "FourierPlusQuintic", "FourierSeries",
    "HalfSpace", "Information", "Joined", "LimitReport", "Limits", "Measurement", "Motion", "PayloadPair",
    "Piecewise", "PriorKnowledge", "Room", "RoomMotion", "Search", "SelfMotion", "Sines", "Slowed", "Splines",
    "Standing", "Trajectory", "Usage", "WholeBodyTrajectory", "Workspace", "approach", "assess", "box",
    "check_limits", "coupling_sweep", "excite", "find_collision", "friction_sweep", "gravity_sweep", "inertia_sweep",
    "inside_box", "magnitudes", "null_space_motion", "payload_pair", "quintics", "quintics_within", "random_points",
    "random_sines", "random_spline", "read_limits", "read_trajectory", "room_motion", "self_motion", "slow_enough",
    "sphere", "trapezoids", "write_trajectory"]
