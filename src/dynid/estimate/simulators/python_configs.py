"""Actuator configurations for mjlab and Isaac Lab as Python files, with the classes of these simulators."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from dynid.escape import python_text
from dynid.estimate.simulators.friction_fit import SimulatedJoint
from dynid.version import __version__

IsaacFriction = Literal["torque", "coefficient"]
_MJLAB_TIMESTEP, _ISAAC_TIMESTEP = 0.005, 0.005  # s, as in their examples; the user edits it in the generated file


def mjlab_config(robot: str, model_file: str, joints: Sequence[SimulatedJoint]) -> str:
    """Return a Python file with the robot's `EntityCfg` for mjlab.

    Armature, damping and frictionloss of the joints are in the MJCF `model_file` in the same folder; mjlab adds the
    actuators.
    """
    driven = [joint for joint in joints if joint.stiffness is not None]
    used = sorted({_mjlab_class(joint) for joint in driven})
    lines = [_head(robot, "mjlab"), "from __future__ import annotations", "",
             *(["import dataclasses"] if any(joint.delay > 0 for joint in driven) else []),
             "from pathlib import Path", "", "import mujoco",
             *([f"from mjlab.actuator import {', '.join(used)}"] if used else []),
             "from mjlab.entity import EntityArticulationInfoCfg, EntityCfg", "",
             f"MODEL_FILE = Path(__file__).parent / {_string(model_file)}"]
    if any(joint.delay > 0 for joint in driven):
        lines += ["", f"PHYSICS_DT = {_MJLAB_TIMESTEP}  # s: set to the timestep of your simulation", "", "",
                  "def delayed(cfg, seconds):",
                  '    """Return the actuator with a command delay; before mjlab 1.6 that was a class of its own."""',
                  "    lag = round(seconds / PHYSICS_DT)",
                  "    try:",
                  "        from mjlab.actuator import DelayedActuatorCfg",
                  "    except ImportError:",
                  "        return dataclasses.replace(cfg, delay_min_lag=lag, delay_max_lag=lag)",
                  '    return DelayedActuatorCfg(base_cfg=cfg, delay_target="position", delay_min_lag=lag, '
                  "delay_max_lag=lag)"]
    lines += ["", "", "def get_spec() -> mujoco.MjSpec:", '    """Return the identified robot."""',
              "    return mujoco.MjSpec.from_file(str(MODEL_FILE))", "", "", "ACTUATORS = ("]
    for joint in driven:
        made = f"{_mjlab_class(joint)}({', '.join(f'{key}={value}' for key, value in _mjlab_values(joint).items())})"
        lines.append(f"    delayed({made}, {joint.delay!r})," if joint.delay > 0 else f"    {made},")
    lines += [")", "", "ROBOT_CFG = EntityCfg(",
              "    spec_fn=get_spec, articulation=EntityArticulationInfoCfg(actuators=ACTUATORS))", ""]
    return "\n".join(lines)


def isaaclab_config(robot: str, model_file: str, joints: Sequence[SimulatedJoint],
                    friction: IsaacFriction = "torque") -> str:
    """Return a Python file with the actuators of the robot for Isaac Lab.

    Args:
        robot: name of the robot.
        model_file: URDF or MJCF in the same folder, which Isaac Lab converts.
        joints: joints with their drives.
        friction: "torque" for Isaac Sim 5.0 and later, where joint friction is a torque. "coefficient" for earlier
            versions, where it is a coefficient of the transmitted force and cannot represent a torque: friction is then
            omitted, and viscous friction is part of the damping gain.
    """
    groups: dict[tuple[str, float, float], list[SimulatedJoint]] = {}
    for joint in joints:  # one group has one stall torque and one delay
        kind = _isaac_class(joint)
        stall = joint.force_limit if kind == "DCMotorCfg" else 0.0
        groups.setdefault((kind, stall, joint.delay), []).append(joint)
    delayed = any(joint.delay > 0 for joint in joints)
    lines = [_head(robot, "Isaac Lab"), "from __future__ import annotations", "",
             f"from isaaclab.actuators import {', '.join(sorted({kind for kind, _, _ in groups}))}", "",
             f"MODEL_FILE = {_string(model_file)}  # beside this file; convert it with Isaac Lab's importer"]
    if delayed:
        lines.append(f"PHYSICS_DT = {_ISAAC_TIMESTEP}  # s: set to the timestep of your simulation")
    lines += ["", *_isaac_notes(friction), "ACTUATORS = {"]
    for k, ((kind, _, _), own) in enumerate(groups.items()):
        group = f"dynid_{k + 1}"
        lines += [f'    "{group}": {kind}(', *_isaac_lines(kind, own, friction), "    ),"]
    return "\n".join([*lines, "}", ""])


def _mjlab_class(joint: SimulatedJoint) -> str:
    limited = np.isfinite(joint.force_limit) and np.isfinite(joint.velocity_limit)
    return "DcMotorActuatorCfg" if limited else "BuiltinPositionActuatorCfg"


def _mjlab_values(joint: SimulatedJoint) -> dict[str, str]:
    values = {"target_names_expr": f"({_string(re.escape(joint.name))},)", "stiffness": repr(joint.stiffness or 0.0),
              "damping": repr(joint.kd or 0.0),
              **{name: repr(value) for name, value in joint.passive().items() if name != "damping"}}
    if np.isfinite(joint.force_limit):
        values["effort_limit"] = repr(joint.force_limit)
    if _mjlab_class(joint) == "DcMotorActuatorCfg":
        values |= {"saturation_effort": repr(joint.force_limit), "velocity_limit": repr(joint.velocity_limit)}
    return values


def _isaac_class(joint: SimulatedJoint) -> str:
    if joint.stiffness is not None and joint.delay > 0:
        return "DelayedPDActuatorCfg"
    limited = np.isfinite(joint.force_limit) and np.isfinite(joint.velocity_limit)
    return "DCMotorCfg" if joint.stiffness is not None and limited else "ImplicitActuatorCfg"


def _isaac_notes(friction: IsaacFriction) -> list[str]:
    if friction == "torque":
        return ["# Isaac Sim 5.0 and later: friction and dynamic_friction are torques (N m or N), viscous_friction is",
                "# N m s/rad or N s/m. Earlier versions read friction as a coefficient of the transmitted force, and",
                "# have no viscous friction: export again with --isaaclab-friction coefficient."]
    return ["# Isaac Sim before 5.0: friction is a coefficient of the transmitted force, which cannot hold an",
            "# identified Coulomb friction torque. It is left out. Viscous friction is part of damping, which is exact",
            "# as long as the velocity target is zero."]


def _isaac_lines(kind: str, joints: Sequence[SimulatedJoint], friction: IsaacFriction) -> list[str]:
    explicit = kind != "ImplicitActuatorCfg"

    def table(value: Callable[[SimulatedJoint], float | None]) -> str | None:
        found = {joint.name: value(joint) for joint in joints}
        if all(one is None for one in found.values()):
            return None
        return "{" + ", ".join(f"{_string(re.escape(name))}: {one!r}" for name, one in found.items()
                               if one is not None) + "}"

    def finite(value: float) -> float | None:
        return value if np.isfinite(value) else None

    def gain(joint: SimulatedJoint) -> float | None:
        if friction == "coefficient":
            return (joint.kd or 0.0) + (joint.damping or 0.0)
        return joint.kd if joint.kd is not None else (0.0 if joint.stiffness is not None else None)

    values = {"stiffness": table(lambda joint: joint.stiffness), "damping": table(gain),
              "effort_limit" if explicit else "effort_limit_sim": table(lambda joint: finite(joint.force_limit)),
              "velocity_limit" if explicit else "velocity_limit_sim": table(lambda joint: finite(joint.velocity_limit)),
              "armature": table(lambda joint: joint.armature)}
    if friction == "torque":
        values |= {"friction": table(lambda joint: joint.frictionloss),
                   "dynamic_friction": table(lambda joint: joint.frictionloss),
                   "viscous_friction": table(lambda joint: joint.damping)}
    names = ", ".join(_string(re.escape(joint.name)) for joint in joints)
    lines = [f"        joint_names_expr=[{names}],"]
    for key, text in values.items():
        if text is not None:
            lines.append(f"        {key}={text},")
        elif key in ("stiffness", "damping"):
            lines.append(f"        {key}=None,  # not identified: that of the USD file")
    if kind == "DCMotorCfg":
        lines.append(f"        saturation_effort={joints[0].force_limit!r},")
    if kind == "DelayedPDActuatorCfg":
        lines += [f"        {which}=round({joints[0].delay!r} / PHYSICS_DT)," for which in ("min_delay", "max_delay")]
    return lines


def _head(robot: str, target: str) -> str:
    return (f'"""{python_text(robot)} for {target}, as identified by dynid {__version__}. SI units, joint side."""\n')


def _string(text: str) -> str:
    return f'"{python_text(text)}"'
