"""dynid identifies the dynamic model of a robot from its own motion.

The package `dynid` itself has the most used names: robot, model, log, estimate, verdict, and uses of a result. Other
names are in namespaces: ``dynid.terms`` (friction, rotors, springs), ``dynid.controllers``, ``dynid.trajectories``,
``dynid.simulation``, ``dynid.estimate``, ``dynid.validate``, ``dynid.payloads`` (with drive gains), ``dynid.actuators``
and ``dynid.literature`` (published methods for comparison). Every name is loaded when it is first used, so ``import
dynid`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynid.kernel_cache import choose_cache
from dynid.version import __version__ as __version__

choose_cache()  # before numba is loaded

NAMESPACES = ("actuators", "controllers", "estimate", "literature", "payloads", "regression", "report", "simulation",
              "symbolic", "terms", "trajectories", "validate")

# Module -> public names that it defines, in the order of the main path. The block below repeats it for type checkers.
_NAMES_BY_MODULE = {
    "dynid.robot": "Robot",
    "dynid.model": "FlexibleModel Model Parameter Parameters make_terms",
    "dynid.model.completion": "complete",
    "dynid.recording.mapping": "Mapping",
    "dynid.recording.preparation": "Preparation",
    "dynid.recording": "Recording Samples",
    "dynid.recording.measured": "recording_from_joints",
    "dynid.recording.sample_preparation": "prepare",
    "dynid.recording.log_reading": "read",
    "dynid.regression": "BaseParameters base_parameters",
    "dynid.regression.compression": "fold",
    "dynid.datasets.dataset": "Dataset",
    "dynid.consistency": "Consistency nearest",
    "dynid.simulation": "Reference VirtualRobot simulate",
    "dynid.estimate": "Estimate Problem choose_terms methods",
    "dynid.runs.front": "identify load",
    "dynid.excitation": "Limits",
    "dynid.excitation.motion_design": "excite",
    "dynid.validate.contract": "check_method",
    "dynid.estimate.cutoff_choice": "choose_cutoff",
    "dynid.validate.comparison": "compare",
    "dynid.symbolic": "generate",
    "dynid.validate": "cross_validate estimate_gravity physics",
    "dynid.validate.reconstruction": "reconstruct",
    "dynid.validate.conclusion": "verdict",
    "dynid.online": "Online",
    "dynid.dynamics": "Wrench",
    "dynid.contacts": "ExternalWrench find_contacts",
    "dynid.payloads": "LivePayload",
    "dynid.payloads.estimation": "payload",
    "dynid.actuators": "identify_actuators",
    "dynid.report": "write_report",
    "dynid.runs": "Run RunSettings",
    "dynid.runs.identification": "run",
    "dynid.errors": "DynidError ModelError NotPossibleError RecordingError RobotError",
    "dynid.findings": "Finding",
}
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}

if TYPE_CHECKING:
    from dynid import actuators as actuators
    from dynid import controllers as controllers
    from dynid import estimate as estimate
    from dynid import literature as literature
    from dynid import payloads as payloads
    from dynid import simulation as simulation
    from dynid import terms as terms
    from dynid import trajectories as trajectories
    from dynid import validate as validate
    from dynid.actuators import identify_actuators as identify_actuators
    from dynid.consistency import Consistency as Consistency
    from dynid.consistency import nearest as nearest
    from dynid.contacts import ExternalWrench as ExternalWrench
    from dynid.contacts import find_contacts as find_contacts
    from dynid.datasets.dataset import Dataset as Dataset
    from dynid.dynamics import Wrench as Wrench
    from dynid.errors import DynidError as DynidError
    from dynid.errors import ModelError as ModelError
    from dynid.errors import NotPossibleError as NotPossibleError
    from dynid.errors import RecordingError as RecordingError
    from dynid.errors import RobotError as RobotError
    from dynid.estimate import Estimate as Estimate
    from dynid.estimate import Problem as Problem
    from dynid.estimate import choose_terms as choose_terms
    from dynid.estimate import methods as methods
    from dynid.estimate.cutoff_choice import choose_cutoff as choose_cutoff
    from dynid.excitation import Limits as Limits
    from dynid.excitation.motion_design import excite as excite
    from dynid.findings import Finding as Finding
    from dynid.model import FlexibleModel as FlexibleModel
    from dynid.model import Model as Model
    from dynid.model import Parameter as Parameter
    from dynid.model import Parameters as Parameters
    from dynid.model import make_terms as make_terms
    from dynid.model.completion import complete as complete
    from dynid.online import Online as Online
    from dynid.payloads import LivePayload as LivePayload
    from dynid.payloads.estimation import payload as payload
    from dynid.recording import Recording as Recording
    from dynid.recording import Samples as Samples
    from dynid.recording.log_reading import read as read
    from dynid.recording.mapping import Mapping as Mapping
    from dynid.recording.measured import recording_from_joints as recording_from_joints
    from dynid.recording.preparation import Preparation as Preparation
    from dynid.recording.sample_preparation import prepare as prepare
    from dynid.regression import BaseParameters as BaseParameters
    from dynid.regression import base_parameters as base_parameters
    from dynid.regression.compression import fold as fold
    from dynid.report import write_report as write_report
    from dynid.robot import Robot as Robot
    from dynid.runs import Run as Run
    from dynid.runs import RunSettings as RunSettings
    from dynid.runs.front import identify as identify
    from dynid.runs.front import load as load
    from dynid.runs.identification import run as run
    from dynid.simulation import Reference as Reference
    from dynid.simulation import VirtualRobot as VirtualRobot
    from dynid.simulation import simulate as simulate
    from dynid.symbolic import generate as generate
    from dynid.validate import cross_validate as cross_validate
    from dynid.validate import estimate_gravity as estimate_gravity
    from dynid.validate import physics as physics
    from dynid.validate.comparison import compare as compare
    from dynid.validate.conclusion import verdict as verdict
    from dynid.validate.contract import check_method as check_method
    from dynid.validate.reconstruction import reconstruct as reconstruct

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name in NAMESPACES:
        return import_module(f"dynid.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'dynid' has no attribute '{name}'")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES, *NAMESPACES])
