"""Actuators without torque sensors: drive laws, friction, delay and armature from positions and commands."""

from dynid.actuators.bam_files import BamParameters, bam_log, bench_law, read_bam_parameters, write_bam_parameters
from dynid.actuators.chains import pendulum
from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue, FrictionTrial, SimulatedLog
from dynid.actuators.experiment_plan import ActuatorExperiment, ExperimentPart, plan_text
from dynid.actuators.experiments import design_actuator_experiment
from dynid.actuators.identify import identify_actuators
from dynid.actuators.laws import LAWS, CascadeLaw, CurrentLaw, DriveLaw, DriveSignals, PDLaw, PIDLaw, VoltageLaw
from dynid.actuators.parameters import FRICTION_MODELS, ActuatorParameter
from dynid.actuators.problem import ActuatorLog
from dynid.estimate.simulators.friction_fit import SimulatedJoint
from dynid.recording.json_tables import PendulumBench, bam_bench, write_bam

__all__ = ["FRICTION_MODELS", "LAWS", "ActuatorEstimate", "ActuatorExperiment", "ActuatorLog", "ActuatorParameter",
           "ActuatorValue", "BamParameters", "CascadeLaw", "CurrentLaw", "DriveLaw", "DriveSignals", "ExperimentPart",
           "FrictionTrial", "PDLaw", "PIDLaw", "PendulumBench", "SimulatedJoint", "SimulatedLog", "VoltageLaw",
           "bam_bench", "bam_log", "bench_law", "design_actuator_experiment", "identify_actuators", "pendulum",
           "plan_text", "read_bam_parameters", "write_bam", "write_bam_parameters"]
