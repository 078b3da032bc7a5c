"""Read logs of pendulum test benches in the format of BAM (Rhoban/bam), and read and write JSON parameter files of
BAM."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from dynid.actuators.chains import pendulum
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.parameters import FRICTION_MODELS, MECHANICAL_PARAMETERS
from dynid.actuators.problem import ActuatorLog
from dynid.arrays import Bools
from dynid.errors import ModelError, RecordingError
from dynid.files import read_small, write_json
from dynid.recording import Recording
from dynid.recording.json_tables import PendulumBench, bam_bench, has_switch
from dynid.recording.log_reading import read

MIN_SUPPLY_VOLTAGE = 1.0  # V: smallest plausible supply voltage; recorders that do not measure the voltage write zero
# Duty cycle per unit of kp and rad of error, and largest duty cycle, of servo families by patterns of motor names; the
# first match counts. BAM measured those of Feetech, Dynamixel MX, XL-320 and XL330; those of other Dynamixel X
# follow from their manual: 4096 ticks per turn, kp / 128 of the error in ticks, of 885 units of PWM.
SERVO_FAMILIES: Mapping[str, Mapping[str, float]] = {
    r"(sts?|sms|scs)_?-?\d+": {"gain": 0.166, "limit": 0.97}, r"mx_?-?\d+": {"gain": 0.158, "limit": 0.9625},
    r"xl_?-?320": {"gain": 0.05048199, "limit": 1.0}, r"x[lc]_?-?330": {"gain": 0.00246, "limit": 1.0},
    r"x[lcmhw]_?-?\d+": {"gain": 0.00575504, "limit": 1.0}}
# Motors that receive currents kp (q_des - q) - damping sqrt(kp) dq from the recorder: largest current, A, and damping.
CURRENT_FAMILIES: Mapping[str, Mapping[str, float]] = {
    r"erob.*50": {"current_limit": 12.0, "damping": 1.0}, r"erob": {"current_limit": 12.0, "damping": 2.0},
    r"hls": {"current_limit": 0.36, "damping": 0.08}}
_BAM_NAMES = {
    "kt": "kt", "resistance": "R", "armature": "armature", "coulomb": "friction_base", "viscous": "friction_viscous",
    "stribeck": "friction_stribeck", "stribeck_speed": "dtheta_stribeck", "stribeck_shape": "alpha",
    "load": "load_friction_base", "stribeck_load": "load_friction_stribeck", "load_motor": "load_friction_motor",
    "load_external": "load_friction_external", "stribeck_load_motor": "load_friction_motor_stribeck",
    "stribeck_load_external": "load_friction_external_stribeck", "quadratic_motor": "load_friction_motor_quad",
    "quadratic_external": "load_friction_external_quad", "delay": "command_delay"}


@dataclass(frozen=True)
class BamParameters:
    """Parameters of an actuator as BAM stores them.

    Attributes:
        model: friction model, "m1" to "m6".
        actuator: BAM's name of the actuator, such as "sts3215".
        values: parameters by dynid's names, SI units.
        other: numbers of the file that dynid has no parameter for, by their names in the file.
    """

    model: str
    actuator: str
    values: Mapping[str, float]
    other: Mapping[str, float] = field(default_factory=dict)


def motor_constants(families: Mapping[str, Mapping[str, float]], motor: str) -> Mapping[str, float]:
    """Return the constants of a motor's family by the name of the motor, such as "sts3215"; empty if unknown."""
    name = motor.strip().lower()
    return next((constants for family, constants in families.items() if re.search(rf"(?<![a-z]){family}", name)), {})


def bench_law(paths: Sequence[str | Path]) -> str:
    """Return the name of the drive law for BAM logs: "cascade" for motors that receive currents, else "voltage".

    Raises:
        RecordingError: the logs are of different motors, so no common parameters exist.
    """
    motors: dict[str, str | Path] = {}
    for path in paths:
        try:
            motors.setdefault(bam_bench(path).motor.strip().lower(), path)
        except RecordingError:  # the log reader reports this error
            continue
    if len(motors) > 1:
        (one, first), (other, second) = list(motors.items())[:2]
        raise RecordingError(f"the logs are of different motors: '{one[:40]}' in {first}, '{other[:40]}' in {second}",
                             "give the logs of one motor at a time", "different-motors")
    return "cascade" if any(motor_constants(CURRENT_FAMILIES, motor) for motor in motors) else "voltage"


def bam_log(path: str | Path, given: Collection[str] = ()) -> ActuatorLog:
    """Return a BAM log with its pendulum and gains, as input of `identify_actuators` with the drive law of `bench_law`.

    Firmware gain and supply voltage come from the file. A logged supply voltage is used instead, unless the recorder
    wrote zeros. The returned supply voltage is zero while the torque is switched off.

    Args:
        path: the JSON file.
        given: names of drive law parameters that the user specifies; their values in the file are ignored.
    """
    bench = bam_bench(path)
    # The on/off signal is stored as the duty cycle, so that it is removed together with invalid rows.
    recording = read(path, {"preset": "bam", "enabled": None, "duty": "torque_enable"}
                     if has_switch(path) else {"preset": "bam"})
    recording = replace(recording, joints=(bench.motor.strip() or "joint",))
    is_on = np.ones_like(recording.q, dtype=bool) if recording.duty is None else recording.duty > 0.5
    recording = replace(recording, duty=None)
    constants = motor_constants(CURRENT_FAMILIES, bench.motor)
    if constants:
        recording, gains = _current_bench(bench, constants, recording, is_on)
    else:
        recording, gains = _voltage_bench(path, bench, given, recording, is_on)
    robot = pendulum(bench.mass, bench.length, bench.arm_mass, joint=recording.joints[0])
    return ActuatorLog(recording, {name: value for name, value in gains.items() if name not in given}, robot)


def _voltage_bench(path: str | Path, bench: PendulumBench, given: Collection[str], recording: Recording,
                   is_on: Bools) -> tuple[Recording, dict[str, float]]:
    """Return the log of a voltage-controlled servo, and the gains of its drive."""
    if recording.voltage is not None and np.median(recording.voltage) < MIN_SUPPLY_VOLTAGE:
        recording = replace(recording, voltage=None)
    if not is_on.all():
        supply = recording.voltage if recording.voltage is not None else bench.vin
        if supply is None:
            raise RecordingError(f"{path} states no supply voltage 'vin'", 'add "vin" in V to the file')
        recording = replace(recording, voltage=np.where(is_on, supply, 0.0))
    constants = motor_constants(SERVO_FAMILIES, bench.motor)
    if not constants and "gain" not in given:
        raise ModelError(f"{path}: the drive gain of motor '{bench.motor[:40]}' (duty cycle per kp and rad) is "
                         "unknown", "add --gain gain=0.166 if the motor works like Feetech STS, gain=0.158 like "
                         "Dynamixel MX, gain=0.00576 like Dynamixel X", "unknown-motor")
    gains = {name: value for name, value in (("kp", bench.kp), ("vin", bench.vin)) if value is not None}
    return recording, {**gains, **constants}


def _current_bench(bench: PendulumBench, constants: Mapping[str, float], recording: Recording,
                   is_on: Bools) -> tuple[Recording, dict[str, float]]:
    """Return the log of a current-controlled motor, and the gains of the recorder's position loop as a cascade."""
    kp = 1.0 if bench.kp is None else bench.kp
    damping = (constants["damping"] if bench.damping is None else bench.damping) * math.sqrt(kp)
    limit = constants["current_limit"] if bench.max_amps is None else bench.max_amps
    if damping <= 0.0:
        raise RecordingError("a motor that receives currents needs a damping above zero",
                             'correct "kp" and "damping" in the file', "wrong-gain")
    return replace(recording, voltage=None if is_on.all() else is_on.astype(float)), {
        "kp": kp / damping, "kv": damping, "current_limit": limit}


def read_bam_parameters(path: str | Path) -> BamParameters:
    """Return the actuator parameters from a BAM JSON file."""
    try:
        table = json.loads(read_small(Path(path)))
    except OSError as problem:
        raise RecordingError(f"cannot read the parameter file {path}: {problem.strerror or problem}") from None
    except (ValueError, RecursionError):
        raise RecordingError(f"{path} is not a valid JSON file; give a parameter file that BAM wrote") from None
    if not isinstance(table, dict) or table.get("model") not in FRICTION_MODELS:
        raise RecordingError(f"{path} states no friction model m1 to m6, so the file is not a parameter file of BAM "
                             "(Better Actuator Models)")
    own = {bam: name for name, bam in _BAM_NAMES.items()}
    numbers: dict[str, float] = {}
    for name, value in table.items():
        if name in ("model", "actuator"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RecordingError(f"{path}: '{str(name)[:40]}' is not a finite number")
        numbers[str(name)] = float(value)
    missing = [bam for name, bam in _BAM_NAMES.items() if name in FRICTION_MODELS[table["model"]]
               and bam not in numbers]
    if missing:
        raise RecordingError(f"{path} has no '{missing[0]}', which friction model {table['model']} needs")
    return BamParameters(table["model"], str(table.get("actuator", "")),
                         {own[name]: value for name, value in numbers.items() if name in own},
                         {name: value for name, value in numbers.items() if name not in own})


def write_bam_parameters(found: ActuatorEstimate | BamParameters, path: str | Path, *, actuator: str = "",
                         joint: str | None = None) -> Path:
    """Write actuator parameters as a JSON file that BAM loads.

    Args:
        found: an estimate with the voltage law, or parameters in BAM's form.
        path: the output file.
        actuator: BAM's name of the actuator, such as "sts3215".
        joint: name of the joint to write, if the estimate has several.
    """
    if isinstance(found, ActuatorEstimate):
        if joint is None and len(found.joints) > 1:
            raise ModelError("a parameter file of BAM contains one actuator, but the estimate has the joints "
                             f"{', '.join(found.joints)}", "give joint=...", "which-joint")
        name = joint or found.joints[0]
        if name not in found.joints:
            raise ModelError(f"the estimate has no joint '{name}'; its joints are {', '.join(found.joints)}",
                             code="unknown-joint")
        if found.law != "voltage":
            raise ModelError(f"a file of BAM needs a torque constant and a resistance, but drive law '{found.law}' "
                             "has neither", "identify with law 'voltage'", "wrong-law")
        found = BamParameters(found.friction, actuator, found.values(name))
    wanted = ("kt", "resistance", "armature", *FRICTION_MODELS[found.model], "delay")
    values = {_BAM_NAMES[name]: float(found.values[name]) for name in wanted if name in found.values}
    if "stribeck" in FRICTION_MODELS[found.model]:
        values["alpha"] = float(found.values.get("stribeck_shape", MECHANICAL_PARAMETERS["stribeck_shape"].value))
    if "command_delay" in values:
        values["command_delay"] = max(values["command_delay"], 0.0)  # BAM's lower bound
    write_json(Path(path), {**found.other, **values, "model": found.model, "actuator": actuator or found.actuator})
    return Path(path)
