"""Motions worth recording: trajectories, what they excite, their limits, and the search for the best."""

from dynid.excite.approach import approach
from dynid.excite.check import LimitReport, Usage, check
from dynid.excite.criteria import CRITERIA, Criterion
from dynid.excite.design import Design
from dynid.excite.excitation import Excitation
from dynid.excite.information import Information, magnitudes
from dynid.excite.limits import Limits
from dynid.excite.limits_file import read_limits
from dynid.excite.optimise import excite
from dynid.excite.points import quintics, quintics_within, trapezoids
from dynid.excite.read import read_trajectory
from dynid.excite.space import Capsule, HalfSpace, Space, box, inside_box, sphere
from dynid.excite.sweeps import PayloadPair, friction_sweep, gravity_sweep, payload_pair
from dynid.excite.trajectory import BSpline, FourierQuintic, FourierSeries, Motion, Path, Piecewise, Slowed, Trajectory
from dynid.excite.write import write_trajectory

__all__ = [
    "CRITERIA", "BSpline", "Capsule", "Criterion", "Design", "Excitation", "FourierQuintic", "FourierSeries",
    "HalfSpace", "Information", "LimitReport", "Limits", "Motion", "Path", "PayloadPair", "Piecewise", "Slowed",
    "Space", "Trajectory", "Usage", "approach", "box", "check", "excite", "friction_sweep", "gravity_sweep",
    "inside_box", "magnitudes", "payload_pair", "quintics", "quintics_within", "read_limits", "read_trajectory",
    "sphere", "trapezoids", "write_trajectory",
]
