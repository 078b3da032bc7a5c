"""Trajectories as functions of time, families of trajectories for a search, and their files."""

from dynid.excitation.trajectories.families import (
    BSpline,
    ConstrainedFamily,
    Family,
    Fourier,
    FourierPlusQuintic,
    Splines,
    family_named,
)
from dynid.excitation.trajectories.trajectory import (
    FourierQuintic,
    FourierSeries,
    Joined,
    Motion,
    Piecewise,
    Slowed,
    Trajectory,
    quintic_between,
    times,
)
from dynid.excitation.trajectories.trajectory_file import read_trajectory, write_trajectory

__all__ = [
    "BSpline", "ConstrainedFamily", "Family", "Fourier", "FourierPlusQuintic", "FourierQuintic", "FourierSeries",
    "Joined", "Motion", "Piecewise", "Slowed", "Splines", "Trajectory", "family_named", "quintic_between",
    "read_trajectory", "times", "write_trajectory"]
