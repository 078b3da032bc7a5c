"""dynid identifies the dynamic model of a robot from its own motion.

Every name below is loaded when it is first used, so ``import dynid`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynid.kernel_cache import choose_cache
from dynid.version import __version__ as __version__

choose_cache()  # before numba is loaded

# Public name -> module that defines it, in the order that data walks through them; the block below says the same to
# type checkers.
_MODULES = {
    "BreakawayFriction": "dynid.model",
    "Robot": "dynid.robot",
    "AsymmetricCoulomb": "dynid.model",
    "AsymmetricViscous": "dynid.model",
    "Cable": "dynid.model",
    "Coulomb": "dynid.model",
    "Counterbalance": "dynid.model",
    "CoupledWrist": "dynid.model",
    "Curve": "dynid.model",
    "Dahl": "dynid.model",
    "Delay": "dynid.model",
    "DifferentialDrive": "dynid.model",
    "Drift": "dynid.model",
    "Dry": "dynid.model",
    "ExponentialStribeck": "dynid.model",
    "FlexibleModel": "dynid.model",
    "FrictionCurve": "dynid.model",
    "GasSpring": "dynid.model",
    "Kind": "dynid.model",
    "Linear": "dynid.model",
    "LoadFriction": "dynid.model",
    "LuGreFriction": "dynid.model",
    "Model": "dynid.model",
    "MotorSide": "dynid.model",
    "Offset": "dynid.model",
    "Parameter": "dynid.model",
    "Parameters": "dynid.model",
    "Payload": "dynid.model",
    "PolynomialFriction": "dynid.model",
    "PolynomialSpring": "dynid.model",
    "RigidBodies": "dynid.model",
    "RippleTorque": "dynid.model",
    "RotorInertia": "dynid.model",
    "Scara": "dynid.model",
    "Sign": "dynid.model",
    "Spring": "dynid.model",
    "Stribeck": "dynid.model",
    "TemperatureFriction": "dynid.model",
    "Viscous": "dynid.model",
    "breakaway": "dynid.validate.breakaway",
    "complete": "dynid.model.complete",
    "curve": "dynid.model",
    "make_terms": "dynid.model",
    "register_term": "dynid.model",
    "Mapping": "dynid.recording.mapping",
    "both_sides": "dynid.recording.both_sides",
    "Preparation": "dynid.recording.preparation",
    "Recording": "dynid.recording",
    "Samples": "dynid.recording",
    "recording_of_measured": "dynid.recording.measured",
    "prepare": "dynid.recording.prepare",
    "read": "dynid.recording.read",
    "BaseParameters": "dynid.regression",
    "FilteredEquations": "dynid.regression",
    "Known": "dynid.regression",
    "Regression": "dynid.regression",
    "TorqueEquations": "dynid.regression",
    "base_parameters": "dynid.regression",
    "equations_of": "dynid.regression",
    "fold": "dynid.regression.fold",
    "BaseValues": "dynid.extraction",
    "Bounds": "dynid.extraction",
    "Dataset": "dynid.datasets.dataset",
    "Consistency": "dynid.consistency",
    "Extraction": "dynid.extraction",
    "ExtractionOptions": "dynid.extraction",
    "extract": "dynid.extraction.extract",
    "robot_bounds": "dynid.extraction.robot_bounds",
    "nearest": "dynid.consistency",
    "Cascade": "dynid.simulation",
    "CompensatedPD": "dynid.simulation",
    "ComputedTorque": "dynid.simulation",
    "Flexible": "dynid.simulation",
    "Impedance": "dynid.simulation",
    "PD": "dynid.simulation",
    "PID": "dynid.simulation",
    "Poles": "dynid.simulation",
    "Reference": "dynid.simulation",
    "TaskSpace": "dynid.simulation",
    "TorqueDriven": "dynid.simulation",
    "VirtualRobot": "dynid.simulation",
    "simulate": "dynid.simulation",
    "Estimate": "dynid.estimate",
    "Problem": "dynid.estimate",
    "choose_terms": "dynid.estimate",
    "essential": "dynid.estimate.essential",
    "identify": "dynid.estimate",
    "Iteration": "dynid.estimate.iterations",
    "identify_controller": "dynid.estimate.controller_fit",
    "loop_fits": "dynid.estimate.loop_fit",
    "methods": "dynid.estimate",
    "Fourier": "dynid.excitation",
    "FourierPlusQuintic": "dynid.excitation",
    "FourierSeries": "dynid.excitation",
    "Limits": "dynid.excitation",
    "Measurement": "dynid.excitation",
    "PriorKnowledge": "dynid.excitation",
    "Search": "dynid.excitation",
    "Splines": "dynid.excitation",
    "excite": "dynid.excitation.excite",
    "check_method": "dynid.validate.contract",
    "choose_cutoff": "dynid.estimate.cutoff_choice",
    "compare": "dynid.validate.compare",
    "Program": "dynid.symbolic",
    "generate": "dynid.symbolic",
    "base_forms": "dynid.symbolic",
    "closed_form_base": "dynid.symbolic",
    "cross_validate": "dynid.validate",
    "cutoff_dependence": "dynid.validate.cutoff_dependence",
    "estimate_gravity": "dynid.validate",
    "physics": "dynid.validate",
    "reconstruct": "dynid.validate.reconstruct",
    "residual_tests": "dynid.validate.residual_tests",
    "simulation_checks": "dynid.validate",
    "trackings": "dynid.validate",
    "verdict": "dynid.validate.verdict",
    "Online": "dynid.online",
    "Wrench": "dynid.dynamics",
    "ExternalWrench": "dynid.contacts",
    "find_contacts": "dynid.contacts",
    "DriveGains": "dynid.recording.drive_gains",
    "KnownLoad": "dynid.payloads",
    "LivePayload": "dynid.payloads",
    "PayloadEstimate": "dynid.payloads",
    "gains_from_known_load": "dynid.payloads",
    "gains_from_log": "dynid.recording.drive_gains",
    "payload": "dynid.payloads.payload",
    "sensor_payload": "dynid.payloads",
    "ReportData": "dynid.report",
    "write_report": "dynid.report",
    "Run": "dynid.runs",
    "RunSettings": "dynid.runs",
    "run": "dynid.runs.run",
    "DynidError": "dynid.errors",
    "ModelError": "dynid.errors",
    "NotPossibleError": "dynid.errors",
    "RecordingError": "dynid.errors",
    "RobotError": "dynid.errors",
    "Finding": "dynid.findings",
}

if TYPE_CHECKING:
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
    from dynid.estimate import identify as identify
    from dynid.estimate import methods as methods
    from dynid.estimate.controller_fit import identify_controller as identify_controller
    from dynid.estimate.cutoff_choice import choose_cutoff as choose_cutoff
    from dynid.estimate.essential import essential as essential
    from dynid.estimate.iterations import Iteration as Iteration
    from dynid.estimate.loop_fit import loop_fits as loop_fits
    from dynid.excitation import Fourier as Fourier
    from dynid.excitation import FourierPlusQuintic as FourierPlusQuintic
    from dynid.excitation import FourierSeries as FourierSeries
    from dynid.excitation import Limits as Limits
    from dynid.excitation import Measurement as Measurement
    from dynid.excitation import PriorKnowledge as PriorKnowledge
    from dynid.excitation import Search as Search
    from dynid.excitation import Splines as Splines
    from dynid.excitation.excite import excite as excite
    from dynid.extraction import BaseValues as BaseValues
    from dynid.extraction import Bounds as Bounds
    from dynid.extraction import Extraction as Extraction
    from dynid.extraction import ExtractionOptions as ExtractionOptions
    from dynid.extraction.extract import extract as extract
    from dynid.extraction.robot_bounds import robot_bounds as robot_bounds
    from dynid.findings import Finding as Finding
    from dynid.model import AsymmetricCoulomb as AsymmetricCoulomb
    from dynid.model import AsymmetricViscous as AsymmetricViscous
    from dynid.model import BreakawayFriction as BreakawayFriction
    from dynid.model import Cable as Cable
    from dynid.model import Coulomb as Coulomb
    from dynid.model import Counterbalance as Counterbalance
    from dynid.model import CoupledWrist as CoupledWrist
    from dynid.model import Curve as Curve
    from dynid.model import Dahl as Dahl
    from dynid.model import Delay as Delay
    from dynid.model import DifferentialDrive as DifferentialDrive
    from dynid.model import Drift as Drift
    from dynid.model import Dry as Dry
    from dynid.model import ExponentialStribeck as ExponentialStribeck
    from dynid.model import FlexibleModel as FlexibleModel
    from dynid.model import FrictionCurve as FrictionCurve
    from dynid.model import GasSpring as GasSpring
    from dynid.model import Kind as Kind
    from dynid.model import Linear as Linear
    from dynid.model import LoadFriction as LoadFriction
    from dynid.model import LuGreFriction as LuGreFriction
    from dynid.model import Model as Model
    from dynid.model import MotorSide as MotorSide
    from dynid.model import Offset as Offset
    from dynid.model import Parameter as Parameter
    from dynid.model import Parameters as Parameters
    from dynid.model import Payload as Payload
    from dynid.model import PolynomialFriction as PolynomialFriction
    from dynid.model import PolynomialSpring as PolynomialSpring
    from dynid.model import RigidBodies as RigidBodies
    from dynid.model import RippleTorque as RippleTorque
    from dynid.model import RotorInertia as RotorInertia
    from dynid.model import Scara as Scara
    from dynid.model import Sign as Sign
    from dynid.model import Spring as Spring
    from dynid.model import Stribeck as Stribeck
    from dynid.model import TemperatureFriction as TemperatureFriction
    from dynid.model import Viscous as Viscous
    from dynid.model import curve as curve
    from dynid.model import make_terms as make_terms
    from dynid.model import register_term as register_term
    from dynid.model.complete import complete as complete
    from dynid.online import Online as Online
    from dynid.payloads import KnownLoad as KnownLoad
    from dynid.payloads import LivePayload as LivePayload
    from dynid.payloads import PayloadEstimate as PayloadEstimate
    from dynid.payloads import gains_from_known_load as gains_from_known_load
    from dynid.payloads import sensor_payload as sensor_payload
    from dynid.payloads.payload import payload as payload
    from dynid.recording import Recording as Recording
    from dynid.recording import Samples as Samples
    from dynid.recording.both_sides import both_sides as both_sides
    from dynid.recording.drive_gains import DriveGains as DriveGains
    from dynid.recording.drive_gains import gains_from_log as gains_from_log
    from dynid.recording.mapping import Mapping as Mapping
    from dynid.recording.measured import recording_of_measured as recording_of_measured
    from dynid.recording.preparation import Preparation as Preparation
    from dynid.recording.prepare import prepare as prepare
    from dynid.recording.read import read as read
    from dynid.regression import BaseParameters as BaseParameters
    from dynid.regression import FilteredEquations as FilteredEquations
    from dynid.regression import Known as Known
    from dynid.regression import Regression as Regression
    from dynid.regression import TorqueEquations as TorqueEquations
    from dynid.regression import base_parameters as base_parameters
    from dynid.regression import equations_of as equations_of
    from dynid.regression.fold import fold as fold
    from dynid.report import ReportData as ReportData
    from dynid.report import write_report as write_report
    from dynid.robot import Robot as Robot
    from dynid.runs import Run as Run
    from dynid.runs import RunSettings as RunSettings
    from dynid.runs.run import run as run
    from dynid.simulation import PD as PD
    from dynid.simulation import PID as PID
    from dynid.simulation import Cascade as Cascade
    from dynid.simulation import CompensatedPD as CompensatedPD
    from dynid.simulation import ComputedTorque as ComputedTorque
    from dynid.simulation import Flexible as Flexible
    from dynid.simulation import Impedance as Impedance
    from dynid.simulation import Poles as Poles
    from dynid.simulation import Reference as Reference
    from dynid.simulation import TaskSpace as TaskSpace
    from dynid.simulation import TorqueDriven as TorqueDriven
    from dynid.simulation import VirtualRobot as VirtualRobot
    from dynid.simulation import simulate as simulate
    from dynid.symbolic import Program as Program
    from dynid.symbolic import base_forms as base_forms
    from dynid.symbolic import closed_form_base as closed_form_base
    from dynid.symbolic import generate as generate
    from dynid.validate import cross_validate as cross_validate
    from dynid.validate import estimate_gravity as estimate_gravity
    from dynid.validate import physics as physics
    from dynid.validate import simulation_checks as simulation_checks
    from dynid.validate import trackings as trackings
    from dynid.validate.breakaway import breakaway as breakaway
    from dynid.validate.compare import compare as compare
    from dynid.validate.contract import check_method as check_method
    from dynid.validate.cutoff_dependence import cutoff_dependence as cutoff_dependence
    from dynid.validate.reconstruct import reconstruct as reconstruct
    from dynid.validate.residual_tests import residual_tests as residual_tests
    from dynid.validate.verdict import verdict as verdict

__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """Load a public name from its module (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'dynid' has no attribute '{name}'")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
