"""Families of excitation trajectories, and settings of the search for a good one."""

from dynid.excitation import (
    Fourier,
    FourierPlusQuintic,
    FourierSeries,
    Measurement,
    PriorKnowledge,
    Room,
    RoomMotion,
    Search,
    Splines,
    Standing,
    room_motion,
)

__all__ = [
    "Fourier", "FourierPlusQuintic", "FourierSeries", "Measurement", "PriorKnowledge", "Room", "RoomMotion", "Search",
    "Splines", "Standing", "room_motion"]
