"""Exciting motions of robots with a free base whose feet stand still on the ground."""

from dynid.excitation.standing.options import Standing, StandingEquations
from dynid.excitation.standing.whole_body_trajectory import WholeBodyTrajectory

__all__ = ["Standing", "StandingEquations", "WholeBodyTrajectory"]
