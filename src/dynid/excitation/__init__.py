"""Motions worth recording: trajectories, what they excite, their limits, and the search for the best."""

from dynid.excitation.approach import approach
from dynid.excitation.check import LimitReport, Usage, check
from dynid.excitation.criteria import CRITERIA, Criterion
from dynid.excitation.design import Design
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Information, magnitudes
from dynid.excitation.limits import Limits
from dynid.excitation.limits_file import read_limits
from dynid.excitation.optimise import excite
from dynid.excitation.points import quintics, quintics_within, trapezoids
from dynid.excitation.read import read_trajectory
from dynid.excitation.space import Capsule, HalfSpace, Space, box, inside_box, sphere
from dynid.excitation.sweeps import PayloadPair, friction_sweep, gravity_sweep, payload_pair
from dynid.excitation.trajectory import (
    BSpline,
    FourierQuintic,
    FourierSeries,
    Motion,
    Path,
    Piecewise,
    Slowed,
    Trajectory,
)
from dynid.excitation.write import write_trajectory

__all__ = [
    "CRITERIA", "BSpline", "Capsule", "Criterion", "Design", "Excitation", "FourierQuintic", "FourierSeries",
    "HalfSpace", "Information", "LimitReport", "Limits", "Motion", "Path", "PayloadPair", "Piecewise", "Slowed",
    "Space", "Trajectory", "Usage", "approach", "box", "check", "excite", "friction_sweep", "gravity_sweep",
    "inside_box", "magnitudes", "payload_pair", "quintics", "quintics_within", "read_limits", "read_trajectory",
    "sphere", "trapezoids", "write_trajectory",
]
