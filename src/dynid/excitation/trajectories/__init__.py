"""Trajectories as functions of time, families of trajectories for a search, and their files."""

from dynid.excitation.trajectories.composite import Joined, Slowed
from dynid.excitation.trajectories.constrained_family import ConstrainedFamily
from dynid.excitation.trajectories.families import BSpline, Family, Fourier, FourierPlusQuintic, Splines, family_named
from dynid.excitation.trajectories.fourier import FourierQuintic, FourierSeries
from dynid.excitation.trajectories.polynomial import Piecewise, quintic_between
from dynid.excitation.trajectories.trajectory import Motion, Trajectory, times
from dynid.excitation.trajectories.trajectory_file import read_trajectory, write_trajectory

__all__ = [
    "BSpline", "ConstrainedFamily", "Family", "Fourier", "FourierPlusQuintic", "FourierQuintic", "FourierSeries",
    "Joined", "Motion", "Piecewise", "Slowed", "Splines", "Trajectory", "family_named", "quintic_between",
    "read_trajectory", "times", "write_trajectory"]
