"""Simulation of the machine's closed loop along each log's reference, with any parameters, for closed-loop methods."""

from dynid.estimate.closed_loop.loop import Loop, SimulatedRun, closed_loop_facts, make_loop
from dynid.estimate.closed_loop.motion import at_samples, friction_sign_unclear, tracking
from dynid.estimate.closed_loop.options import AnyStart, LoopOptions, Start
from dynid.estimate.closed_loop.references import Log
from dynid.estimate.closed_loop.speed_lag import law_of_log
from dynid.estimate.closed_loop.start import first_run, regular_parameters

__all__ = [
    "AnyStart", "Log", "Loop", "LoopOptions", "SimulatedRun", "Start", "at_samples", "closed_loop_facts", "first_run",
    "friction_sign_unclear", "law_of_log", "make_loop", "regular_parameters", "tracking"]
