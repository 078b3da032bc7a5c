"""Presets for logs of common recorders, with the sources of their names and remarks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dynid.errors import did_you_mean
from dynid.plugins import load_plugin, plugin_names, usable_plugins

# Alternative settings: a given one replaces the other.
_ALTERNATIVE_SETTINGS = ((("rate",), ("time", "time_unit")),
                         (("torque", "torque_scale"), ("current", "drive_gain", "torque_free")),
                         (("current", "drive_gain"), ("torque", "torque_scale", "torque_free")),
                         (("ratio",), ("coupling",)))


@dataclass(frozen=True)
class Preset:
    """Settings of a `Mapping` for one recorder.

    Attributes:
        name: name of the preset.
        recorder: the program that writes such logs.
        settings: settings of the mapping.
        columns: patterns that must all match for automatic detection; empty if names are not specific.
        minds: remarks for users of the preset.
        needs: settings that the user has to give, each with its message.
        source: documentation of names and units.
        refusal: why such a log cannot be used.
    """

    name: str
    recorder: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    minds: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    refusal: str | None = None

    def fits(self, names: Iterable[str]) -> bool:
        """Return whether a file with these columns was written by this recorder."""
        known = list(names)
        return bool(self.columns) and all(any(re.fullmatch(one, name) for name in known) for one in self.columns)


_RTDE_COLUMNS = {"time": "timestamp", "position": "actual_q_{i}", "velocity": "actual_qd_{i}",
                 "reference": "target_q_{i}", "reference_velocity": "target_qd_{i}",
                 "temperature": "joint_temperatures_{i}"}
_RTDE_MINDS = "rows may repeat or skip a timestamp where the writer is not synchronised with the controller"
_JOINT_STATE_COLUMNS = {"time": "stamp", "position": "position/{joint}", "velocity": "velocity/{joint}"}
_REGISTERS = {"time": "time", "position": "present_position_{joint}", "reference": "goal_position_{joint}",
              "velocity": "present_velocity_{joint}", "motor_current": "present_current_{joint}",
              "temperature": "present_temperature_{joint}", "unit": "ticks", "offset": -2048, "torque_free": True}
_LIBFRANKA = "frankaemika/libfranka: src/logging/robot_state_log.cpp, include/franka/robot_state.h"
_RTDE_SOURCE = "UniversalRobots/RTDE_Python_Client_Library: rtde/csv_writer.py, examples/record_configuration.xml"

PRESETS: Mapping[str, Preset] = {one.name: one for one in (
    Preset("joint-state", "bags of sensor_msgs/JointState (ROS 1, ROS 2, MCAP)",
           {**_JOINT_STATE_COLUMNS, "torque": "effort/{joint}"},
           minds=("the meaning of effort depends on the driver: a torque, a current, an estimate of external torques "
                  "or zeros; see its documentation",),
           source="ros-controls/ros2_controllers: joint_state_broadcaster; sensor_msgs/JointState"),
    Preset("joint-state-current", "bags of sensor_msgs/JointState whose effort is a current, as in Universal Robots' "
                                  "driver until 2026", {**_JOINT_STATE_COLUMNS, "current": "effort/{joint}"},
           minds=("needs drive_gain, N m per A; the bag does not show whether effort is a current or a torque",),
           source="UniversalRobots/Universal_Robots_ROS2_Driver: doc/usage, pull request 1551"),
    Preset("franka-ros", "franka_ros, topic franka_state_controller/joint_states",
           {**_JOINT_STATE_COLUMNS, "torque": "effort/{joint}", "topic": "/franka_state_controller/joint_states"},
           minds=("30 Hz by default, too slow for inertias: raise publish_rate",
                  "effort is tau_J, measured on the link side of the gears, so it contains little gear friction"),
           source="frankaemika/franka_ros: franka_state_controller.cpp, default_controllers.yaml"),
    Preset("messii", "bags of the MESSII data set of a KUKA iiwa (Ardiani, C.4.3)",
           {"position": {"topic": "/jointMeasured"}, "velocity": {"topic": "/jointMeasured"},
            "torque": {"topic": "/jointMeasured"}, "reference": {"topic": "/jointCommanded"},
            "reference_velocity": {"topic": "/jointCommanded"}, "target_torque": {"topic": "/jointCommanded"},
            "external_torque": {"topic": "/jointExternal"}, "wrench": {"topic": "/FT_sensor"}},
           minds=("bags of its folder ROS are filtered already: give method = \"none\" under [prepare]",
                  "columns of its .log files are not documented; map them in a [log] table",
                  "its motions: PTP, SPL (dynid motion points, spline), DS (dynid excite), and one joint after the "
                  "other (dynid motion friction, inertia)"),
           source="Ardiani, thesis 2023, appendix C.4"),
    Preset("ur-rtde-torque", "Universal Robots: RTDE record.py or ur_rtde, with actual_current_as_torque",
           {**_RTDE_COLUMNS, "torque": "actual_current_as_torque_{i}"},
           columns=("actual_q_0", "actual_current_as_torque_0"),
           minds=("from PolyScope 5.23 and 10.11; whether gravity is included is not documented: check at a standstill",
                  _RTDE_MINDS),
           source="UniversalRobots/Universal_Robots_Client_Library: src/rtde/data_package.cpp"),
    Preset("ur-rtde", "Universal Robots: RTDE record.py or ur_rtde",
           {**_RTDE_COLUMNS, "current": "actual_current_{i}", "target_torque": "target_moment_{i}",
            "target_current": "target_current_{i}"},
           columns=("actual_q_0", "actual_current_0"),
           minds=('needs drive_gain, N m per A, or drive_gain = "from-log" where target_moment and target_current are '
                  "recorded", "target_moment and target_current come from the controller's own model, they are not "
                              "measured",
                  _RTDE_MINDS), source=_RTDE_SOURCE),
    Preset("libfranka", "libfranka: franka::logToCSV",
           {"time": "time", "time_unit": "ms", "position": "state.q[{i}]", "velocity": "state.dq[{i}]",
            "torque": "state.tau_J[{i}]", "reference": "state.q_d[{i}]", "reference_velocity": "state.dq_d[{i}]",
            "external_torque": "state.tau_ext_hat_filtered[{i}]"},
           columns=(r"time", r"state\.q\[0\]", r"state\.tau_J\[0\]"),
           minds=("time is in whole milliseconds", "a log contains 50 states by default: raise log_size",
                  "tau_J is measured on the link side, gravity included; it contains little gear friction"),
           source=_LIBFRANKA),
    Preset("panda-py", "panda-py: get_log() saved as NPZ",
           {"time": "time", "time_unit": "ms", "position": "q", "velocity": "dq", "torque": "tau_J",
            "external_torque": "tau_ext_hat_filtered"},
           columns=("time", "q", "tau_J", "tau_ext_hat_filtered"),
           minds=("time is in milliseconds", "rows are recorded at 1 kHz, and only while a controller runs"),
           source="JeanElsner/panda-py: src/panda.cpp"),
    Preset("lerobot-openarm", "LeRobot datasets of OpenArm with use_velocity_and_torque",
           {"time": "timestamp", "position": {"array": "observation.state", "columns": "{joint}.pos"},
            "velocity": {"array": "observation.state", "columns": "{joint}.vel"},
            "torque": {"array": "observation.state", "columns": "{joint}.torque"}, "unit": "deg",
            "episode_column": "episode_index"},
           minds=("30 Hz by default, too slow for inertias", "give episode = N: time restarts in each episode"),
           source="huggingface/lerobot: robots/openarm_follower, motors/damiao"),
    Preset("lerobot", "LeRobot datasets: positions and actions of joints called NAME.pos",
           {"time": "timestamp", "position": {"array": "observation.state", "columns": "{joint}.pos"},
            "reference": {"array": "action", "columns": "{joint}.pos"}, "torque_free": True},
           columns=("observation.state", "action", "episode_index", "timestamp"),
           minds=("positions are in degrees (use_degrees, the default of recent versions) or normalised to -100..100; "
                  "the dataset does not state which", "commands of a teleoperated dataset are the leader arm's "
                  "motion, slow and with little excitation; 30 Hz is too slow for inertias",
                  "each episode of a folder is a log; for a single Parquet file give episode = N"),
           needs={"unit": "the dataset does not state whether its positions are in degrees or normalised to -100..100; "
                          "add --set log.unit=deg, or --set log.unit=normalised --set log.calibration=FILE.json"},
           source="huggingface/lerobot: robots/so_follower, motors/motors_bus.py, datasets"),
    Preset("bam", "BAM: logs of a pendulum test bench (JSON)",
           {"time": "timestamp", "position": "position", "reference": "goal_position", "velocity": "speed",
            "supply_voltage": "input_volts", "temperature": "temp", "enabled": "torque_enable", "torque_free": True},
           columns=("timestamp", "position", "goal_position"),
           minds=("entries with the torque switched off, as at the end of lift_and_drop, are ignored",
                  "`load` is zero or in the unit of the servo and is not used"),
           source="Rhoban/bam: bam/feetech/record.py, bam/dynamixel/record.py"),
    Preset("pace", "PACE (pace-sim2real): tensors that torch.save wrote, or the same keys in NPZ",
           {"time": "time", "position": "dof_pos", "reference": "des_dof_pos", "torque_free": True},
           columns=("time", "dof_pos", "des_dof_pos"),
           minds=("joints are in the order of the robot's configuration; if the file differs, set joints = [...]",),
           source="leggedrobotics/pace-sim2real: scripts/pace/data_collection.py"),
    Preset("feetech", "registers of Feetech STS and SMS servos, as examples/record_feetech.py writes them",
           {**_REGISTERS, "supply_voltage": "present_voltage_{joint}", "duty": "present_load_{joint}",
            "scale": {"motor_current": 0.0065, "supply_voltage": 0.1, "duty": 0.001}},
           columns=("present_position_.+", "goal_position_.+", "present_load_.+"),
           minds=("position zero is tick 2048; other servos: ticks_per_turn = 1024 for SCS",
                  "load is the duty cycle of the drive in 0.1 %; sign bits have to be decoded by the recorder"),
           source="huggingface/lerobot: motors/feetech/tables.py; Feetech STS memory table"),
    Preset("dynamixel", "registers of Dynamixel X servos, as examples/record_dynamixel.py writes them",
           {**_REGISTERS, "velocity_unit": "rpm", "supply_voltage": "present_input_voltage_{joint}",
            "duty": "present_pwm_{joint}", "scale": {"motor_current": 0.00269, "velocity": 0.229,
                                                     "supply_voltage": 0.1, "duty": 1.0 / 885.0}},
           columns=("present_position_.+", "goal_position_.+", "present_pwm_.+"),
           minds=("position zero is tick 2048", "a current of 1 is 2.69 mA (XM, XH); XL330 and XC330 have 1 mA: "
                                                "--set 'log.scale={motor_current=0.001, velocity=0.229, "
                                                "supply_voltage=0.1, duty=0.00113}'"),
           source="huggingface/lerobot: motors/dynamixel/tables.py; Robotis control table of the X series"),
    Preset("abb-egm", "abb_libegm's logger", columns=("R_FB_POS_RJ1", "R_FB_VEL_RJ1"),
           source="ros-industrial/abb_libegm: src/egm_logger.cpp, proto/egm.proto",
           refusal="logs of ABB's externally guided motion contain positions and velocities but no joint torques or "
                   "currents, so nothing can be identified from them"),
)}

# Words in column or topic names of torques that do not move the robot, and why these cannot be used.
_NO_TORQUE = (
    (re.compile(r"(?<![a-z])ext(ernal)?(?![a-z])"),
     "are estimates of external torques, without the torques of the robot's own model"),
    (re.compile(r"(?<![a-z])tau_j_d(?![a-z])"), "are commanded torques without gravity and friction"),
)


def overlaid(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings `common` overridden by `own`, without those that exclude a setting of `own`."""
    table = dict(common)
    for these, those in (pair for one, other in _ALTERNATIVE_SETTINGS for pair in ((one, other), (other, one))):
        if any(own.get(key) is not None for key in these):
            table = {key: value for key, value in table.items() if key not in those}
    return {**table, **own}


def known_presets() -> dict[str, Preset]:
    """Return presets by name: built-in ones, then those of plugins."""
    return {**PRESETS, **{name: one for name, one in usable_plugins("dynid.presets").items()
                          if isinstance(one, Preset) and name not in PRESETS}}


def find_preset(name: Any) -> Preset:
    """Return the preset of this name; raise ValueError if there is none."""
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    if name in plugin_names("dynid.presets"):
        found = load_plugin("dynid.presets", name)
        if isinstance(found, Preset):
            return found
        raise ValueError(f"the plugin '{name}' of the group dynid.presets is a {type(found).__name__}, not a Preset")
    raise ValueError(f"there is no preset '{name}'; {did_you_mean(str(name), known_presets())}")


def recognised(names: Iterable[str]) -> list[Preset]:
    """Return the presets that match a file with these columns, the most specific first."""
    known = list(names)
    return [preset for preset in known_presets().values() if preset.fits(known)]


def no_torque(name: str) -> str | None:
    """Return why a column or topic of this name holds no usable torque, or None."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return next((why for pattern, why in _NO_TORQUE if pattern.search(spaced)), None)
