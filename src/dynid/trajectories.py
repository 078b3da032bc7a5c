"""Families of excitation trajectories, and how the search for a good one is set up."""

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
