"""Conversion of a recording of a robot with a free base to the equations that its signals allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.errors import RecordingError
from dynid.floating.base_signals import (
    GRAVITY_RANGE,
    BaseMotion,
    FloatingLog,
    FootWrench,
    Imu,
    QuaternionOrder,
    check_order,
    order_errors,
    rates_in_radians,
    specific_force_ratio,
    with_bias,
    without_repetition,
)
from dynid.floating.contacts import Contact, assign_feet, find_feet, standing_from_loads
from dynid.floating.preparation import DEFAULT_GUARD, FloatingEquations, WholeBody, expanded
from dynid.recording import Recording
from dynid.recording.mapping import Mapping
from dynid.recording.whole_body import ALWAYS, NEVER, name_words
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

_UNIT_TOLERANCE = 0.05  # largest error of the norm of a quaternion, which is then normalised; otherwise it is refused
_KIND_REASONS = {
    "wrenches": "all rows, because forces on the feet and joint torques are measured",
    "base": "rows of the base alone, because forces on the feet are measured and joint torques are not",
    "projected": "rows without contact forces, because contacts are known and their forces are not measured",
    "flight": "rows without contacts, because only the given sensor touches the robot"}


@dataclass(frozen=True, eq=False)
class FloatingRules:
    """Options of the equations of a robot with a free base.

    Attributes:
        equations: kind of the equations. Default: chosen from the signals of each log.
        motion: source of the base motion. Default: chosen from the signals of each log.
        guard: time before and after a contact in which it still counts as active, s.
        noise: standard deviations of the equations (6 + n,), by which projected rows are whitened, or None.
    """

    equations: FloatingEquations | None = None
    motion: BaseMotion | None = None
    guard: float = DEFAULT_GUARD
    noise: tuple[float, ...] | None = None


def whole_body_recording(recording: Recording, robot: Robot, mapping: Mapping, rules: FloatingRules) -> Recording:
    """Return a recording whose samples are equations of the whole robot, from a recording of joints and base.

    Args:
        recording: recording as read, with the signals of the base in `base_signals`.
        robot: the robot with a free base.
        mapping: frames of feet and IMU, axes and order of the columns.
        rules: options of the equations.
    """
    log, notes = floating_log(recording, robot, mapping)
    log = replace(log, motion=rules.motion)
    if log.base_motion == "imu" and log.imu is not None and log.imu.bias is None:
        log, remark = with_bias(robot, log)
        notes.append(remark)
    kind = rules.equations or chosen_equations(log, mapping)
    stated = f"as specified, {kind}" if rules.equations else f"{kind}: {_KIND_REASONS[kind]}"
    notes += [f"motion of the base from {_log_source(log)}", f"equations {stated}"]
    noise = None if rules.noise is None else np.array(rules.noise)
    whole = expanded(robot, log, kind, noise=noise, guard=rules.guard, notes=(*recording.notes, *notes))
    return replace(whole, base_signals=recording.base_signals, base_columns=recording.base_columns,
                   dropped=recording.dropped, dropped_rows=recording.dropped_rows)


def _log_source(log: FloatingLog) -> str:
    if log.base_motion == "imu":
        assert log.imu is not None
        return f"the imu at frame '{log.imu.frame}'"
    return {"pose": "its position and orientation", "velocity": "its velocity and orientation"}[log.base_motion]


def floating_log(recording: Recording, robot: Robot, mapping: Mapping) -> tuple[FloatingLog, list[str]]:
    """Return the signals of a recording of a robot with a free base, and sentences on the assumptions made."""
    notes = list[str]()
    recording = replace(recording, base_signals=_readable(recording, notes))
    signals, orientation = recording.base_signals, None
    if "base_orientation" in signals:
        orientation = _orientation(recording, mapping, notes)
    velocity = signals.get("base_velocity")
    if velocity is not None and mapping.base_velocity_axes == "base":
        velocity = None if orientation is None else np.einsum(
            "sij,sj->si", dynamics.rotations(orientation), np.asarray(velocity))
    imu = _imu(recording, robot, mapping, notes)
    if imu is None and ("imu_specific_force" in signals or _rate(recording) is not None) and (orientation is None or (
            velocity is None and "base_position" not in signals)):
        _refuse_imu(recording, robot)
    contacts, standing, wrenches = _contacts(recording, robot, mapping, notes)
    if recording.wrench is not None:
        frame = mapping.wrench_frame or robot.bodies[SIX - 1].name
        notes.append(f"the wrench acts on frame '{frame}'" + ("" if mapping.wrench_frame else
                                                              "; state another with --set log.wrench_frame=..."))
        robot.frame(frame)
        wrenches = (*wrenches, FootWrench(frame, np.asarray(recording.wrench)))
    tau = None if recording.is_torque_free else recording.tau
    return FloatingLog(recording.t, recording.q, tau, signals.get("base_position"), orientation, imu, wrenches,
                       contacts, standing, recording.source, velocity), notes


def chosen_equations(log: FloatingLog, mapping: Mapping) -> FloatingEquations:
    """Return the kind of equations that the signals of a log allow."""
    complete = bool(log.wrenches) and all(_is_complete(log, one) for one in log.wrenches)
    if mapping.contact == NEVER:
        return "flight"
    if complete:
        return "base" if log.tau is None else "wrenches"
    if log.tau is not None and log.standing is not None:
        return "projected"
    lacks = "joint torques" if log.tau is None else "contacts"
    raise RecordingError(f"{log.source} has neither complete forces on the feet nor {lacks}, so no equation is free of "
                         "unknown forces", "map the forces with --set 'log.foot_force=[...]' or contacts with --set "
                         "'log.contact=[...]'; if all feet stand throughout, --set log.contact=always, and if nothing "
                         "touches the robot, --set log.contact=never", code="log-lacks-signal")


def _is_complete(log: FloatingLog, wrench: FootWrench) -> bool:
    """Return whether a sensor measures all force components at its foot; a point contact transmits no moment."""
    kinds = {contact.frame: contact.kind for contact in log.contacts}
    return np.shape(wrench.values)[1] == SIX or kinds.get(wrench.frame, "point") == "point"


def _orientation(recording: Recording, mapping: Mapping, notes: list[str]) -> Array:
    """Return unit quaternions x y z w (samples, 4) of the log."""
    given = np.asarray(recording.base_signals["base_orientation"], dtype=float)
    norm = np.linalg.norm(given, axis=1)
    wrong = np.flatnonzero(np.abs(norm - 1.0) > _UNIT_TOLERANCE)
    if len(wrong):
        raise RecordingError(f"{recording.source}: the orientation of the base has the norm {norm[wrong[0]]:.3g} in "
                             f"sample {wrong[0]}; a unit quaternion has the norm 1", "map the four columns with --set "
                             "'log.base_orientation=[...]'", code="not-unit-quaternion")
    given = given / norm[:, None]
    letters = [name_words(name)[-1][-1:] for name in recording.base_columns.get("base_orientation", ())]
    order = mapping.quaternion
    choices: dict[QuaternionOrder, Array] = {"xyzw": given, "wxyz": np.ascontiguousarray(given[:, [1, 2, 3, 0]])}
    if order is None and sorted(letters) == ["w", "x", "y", "z"]:
        named = np.ascontiguousarray(given[:, [letters.index(axis) for axis in "xyzw"]])
        check_order(recording.t, _rate(recording), named, choices, recording.source)
        return named
    if order is None:
        order, why = _quaternion_order(recording, choices)
        notes.append(f"the quaternion of the base is read in the order {order}, {why}; state it with --set "
                     "log.quaternion=xyzw or wxyz")
    else:
        check_order(recording.t, _rate(recording), choices[order], choices, recording.source)
    return choices[order]


def _readable(recording: Recording, notes: list[str]) -> dict[str, Array]:
    """Return the signals of the base without repeated values, and with angular rates in rad/s."""
    t, signals = np.asarray(recording.t), without_repetition(recording.t, recording.base_signals, notes)
    for name in ("imu_angular_rate", "base_angular_velocity"):
        if name in signals:
            signals[name] = rates_in_radians(t, np.asarray(signals[name]), signals.get("base_orientation"),
                                             signals.get("imu_specific_force"), notes)
    return signals


def _quaternion_order(recording: Recording, choices: dict[QuaternionOrder, Array]) -> tuple[QuaternionOrder, str]:
    """Return the order of quaternion components that fits the angular rates of an IMU best, and the reason as text.
    Without an IMU, the order is chosen for which the base is more upright."""
    rate = _rate(recording)
    if rate is not None and float(np.std(rate)) > 0.0:
        errors = order_errors(recording.t, rate, choices)
        return min(choices, key=lambda order: errors[order]), "because it fits the angular rates"
    upright = {order: float(np.mean(dynamics.rotations(one)[:, 2, 2])) for order, one in choices.items()}
    return max(choices, key=lambda order: upright[order]), "in which the base is more upright"


def _rate(recording: Recording) -> Array | None:
    found = recording.base_signals.get("imu_angular_rate", recording.base_signals.get("base_angular_velocity"))
    return None if found is None else np.asarray(found)


def _imu(recording: Recording, robot: Robot, mapping: Mapping, notes: list[str]) -> Imu | None:
    force, rate = recording.base_signals.get("imu_specific_force"), _rate(recording)
    if force is None or rate is None:
        return None
    ratio = specific_force_ratio(robot, np.asarray(force))
    if not GRAVITY_RANGE[0] <= ratio <= GRAVITY_RANGE[1]:
        notes.append(f"the imu is not used: its specific force is {ratio:.3g} times gravity on average, so it is "
                     "probably in another unit or without gravity")
        return None
    root = robot.bodies[SIX - 1].name
    named = [frame.name for frame in robot.frames if frame.body == SIX - 1 and "imu" in name_words(frame.name)]
    frame = mapping.imu_frame or (named[0] if named else root)
    if mapping.imu_frame is None:
        notes.append(f"the imu is assumed at frame '{frame}', with the axes of this frame; state another frame with "
                     "--set log.imu_frame=...")
    robot.frame(frame)
    return Imu(frame, rate, np.asarray(force))


def _refuse_imu(recording: Recording, robot: Robot) -> None:
    """Raise an error for an IMU that cannot be used, if the log has no other motion of the base."""
    signals, source = recording.base_signals, recording.source
    if "imu_specific_force" not in signals:
        raise RecordingError(f"{source}: the log has the angular rate of the base, but neither the specific force of "
                             "an imu nor an orientation with a position or velocity, so the motion of the base is "
                             "unknown", "map the accelerometer with --set 'log.imu_specific_force=[...]', or the "
                             "pose with --set 'log.base_position=[...]' and --set 'log.base_orientation=[...]'",
                             code="no-base-motion")
    if _rate(recording) is None:
        raise RecordingError(f"{source}: the log has the specific force of the imu, but not its angular rate, so the "
                             "motion of the base is unknown", "map the angular rate with --set "
                             "'log.imu_angular_rate=[...]'", code="no-base-motion")
    ratio = specific_force_ratio(robot, np.asarray(signals["imu_specific_force"]))
    raise RecordingError(f"{source}: the specific force of the imu is {ratio:.3g} times gravity on average, so it is "
                         "probably in another unit or without gravity, and the log has no other motion of the base",
                         "log the specific force in m/s^2 with gravity, or map the pose with --set "
                         "'log.base_position=[...]' and --set 'log.base_orientation=[...]'", code="no-base-motion")


def _contacts(recording: Recording, robot: Robot, mapping: Mapping, notes: list[str]
              ) -> tuple[tuple[Contact, ...], Bools | None, tuple[FootWrench, ...]]:
    """Return the contacts, the mask of active contacts, and the measured forces of the feet."""
    signals, columns, source = recording.base_signals, recording.base_columns, recording.source
    wrenches: tuple[FootWrench, ...] = ()
    loads: dict[str, Array] = {}
    if "foot_force" in signals:
        values = np.asarray(signals["foot_force"])
        found = assign_feet(robot, columns.get("foot_force", ()), mapping.feet, "foot_force", source, values.shape[1])
        notes += [found.note] if found.note else []
        parts = values.reshape(len(values), len(found.frames), found.width)
        loads = {name: np.linalg.norm(parts[:, k, :3], axis=1) if found.width > 1 else parts[:, k, 0]
                 for k, name in enumerate(found.frames)}
        if found.width == 1:
            notes.append("each foot has one force column, which is used to detect contact and not as a force")
        else:
            axes = mapping.foot_force_axes
            wrenches = tuple(FootWrench(name, np.ascontiguousarray(parts[:, k]), axes, mapping.foot_radius)
                             for k, name in enumerate(found.frames))
            notes.append(f"forces on the feet are read in the axes of {'the world' if axes == 'world' else 'each foot'}"
                         "; state others with --set log.foot_force_axes=world or frame")
    feet = tuple(mapping.feet or loads or find_feet(robot))
    if mapping.contact in (ALWAYS, NEVER):
        if mapping.contact == ALWAYS and not feet:
            raise RecordingError(f"{source}: all feet are in contact, but no frame of robot '{robot.name}' is named "
                                 "like a foot", "name the frames with --set 'log.feet=[\"...\"]'", code="unknown-feet")
        contacts = _as_contacts(feet, mapping)
        return contacts, np.full((len(recording), len(feet)), mapping.contact == ALWAYS), wrenches
    if "contact" in signals:
        flags = np.asarray(signals["contact"])
        found = assign_feet(robot, columns.get("contact", ()), mapping.feet, "contact", source, flags.shape[1])
        notes += [found.note] if found.note else []
        if len(np.unique(flags[:: max(1, len(flags) // 1000)])) <= 2:
            standing = flags > 0.5 * max(1.0, float(flags.max()))
        else:
            standing, _ = standing_from_loads(flags, mapping.contact_threshold)
        if not np.any(standing):
            raise RecordingError(f"{source}: no foot is ever in contact according to {', '.join(columns['contact'])}",
                                 "if nothing touches the robot, add --set log.contact=never; otherwise map other "
                                 "columns with --set 'log.contact=[...]' or forces with --set 'log.foot_force=[...]'",
                                 code="never-in-contact")
        return _as_contacts(found.frames, mapping), standing, wrenches
    if loads:
        standing, limits = standing_from_loads(np.stack(list(loads.values()), axis=1), mapping.contact_threshold)
        notes.append("contacts from the forces: " + ", ".join(
            f"{name} {'throughout' if limit == -np.inf else f'above {limit:.3g}'}"
            for name, limit in zip(loads, limits, strict=True)))
        return _as_contacts(tuple(loads), mapping), standing, wrenches
    return (), None, wrenches


def _as_contacts(frames: Sequence[str], mapping: Mapping) -> tuple[Contact, ...]:
    return tuple(Contact(name, mapping.foot_kind, mapping.foot_radius) for name in frames)


def whole_bodies(recordings: Sequence[Recording]) -> tuple[WholeBody, ...]:
    """Return the functions that convert recordings of a robot with a free base to samples; other recordings are
    skipped."""
    return tuple(one.to_samples for one in recordings if isinstance(one.to_samples, WholeBody))


def with_noise(recording: Recording | None, noise: Sequence[float]) -> Recording | None:
    """Return a recording whose projected rows are whitened by the standard deviations of the equations (6 + n,)."""
    if recording is None or not isinstance(recording.to_samples, WholeBody):
        return recording
    return replace(recording, to_samples=replace(recording.to_samples, noise=np.array(noise)))
