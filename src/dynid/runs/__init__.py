"""Complete identifications: settings in one file, and all results in one folder."""

from dynid.runs.identification import Run, run
from dynid.runs.models import make_model, make_robot
from dynid.runs.settings import ModelSettings, RunSettings, SimulationSettings

__all__ = ["ModelSettings", "Run", "RunSettings", "SimulationSettings", "make_model", "make_robot", "run"]
