"""Whole identifications: settings in one file, everything found in one folder."""

from dynid.runs.run import Run, make_model, run
from dynid.runs.settings import ModelSettings, RunSettings, SimulationSettings

__all__ = ["ModelSettings", "Run", "RunSettings", "SimulationSettings", "make_model", "run"]
