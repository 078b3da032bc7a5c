"""Closed-loop simulation of the robot along the reference of each log, for closed-loop identification methods."""

from dynid.estimate.closed_loop.loop import (
    Log,
    Loop,
    SimulatedRun,
    at_samples,
    closed_loop_facts,
    make_loop,
    tracking,
)
from dynid.estimate.closed_loop.speed_lag import law_of_log
from dynid.estimate.closed_loop.start import AnyStart, LoopOptions, Start, first_run, regular_parameters

__all__ = [
    "AnyStart", "Log", "Loop", "LoopOptions", "SimulatedRun", "Start", "at_samples", "closed_loop_facts", "first_run",
    "law_of_log", "make_loop", "regular_parameters", "tracking"]
