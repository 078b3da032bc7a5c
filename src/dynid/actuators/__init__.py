"""Actuators without torque sensors: drive laws, friction, delay and armature from positions and commands."""

from dynid.actuators.chains import pendulum
from dynid.actuators.estimate import ActuatorEstimate, ActuatorValue, FrictionTrial, SimulatedLog
from dynid.actuators.identify import identify_actuators
from dynid.actuators.laws import LAWS, CascadeLaw, CurrentLaw, DriveLaw, DriveSignals, PDLaw, PIDLaw, VoltageLaw
from dynid.actuators.parameters import FRICTION_MODELS, ActuatorParameter
from dynid.actuators.problem import ActuatorLog

__all__ = ["FRICTION_MODELS", "LAWS", "ActuatorEstimate", "ActuatorLog", "ActuatorParameter", "ActuatorValue",
           "CascadeLaw", "CurrentLaw", "DriveLaw", "DriveSignals", "FrictionTrial", "PDLaw", "PIDLaw", "SimulatedLog",
           "VoltageLaw", "identify_actuators", "pendulum"]
