"""Whole identifications: settings in one file, everything found in one folder."""

from dynid.run.run import Run, make_model, run
from dynid.run.settings import ModelSettings, RunSettings, SimulationSettings

__all__ = ["ModelSettings", "Run", "RunSettings", "SimulationSettings", "make_model", "run"]
