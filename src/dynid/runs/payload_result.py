"""Identification of a payload from loaded logs and an earlier result without load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.estimate import Estimate
from dynid.files import free_paths, write_json
from dynid.output_fields import output_fields
from dynid.payloads.controllers import Entry, entries
from dynid.payloads.estimation import payload
from dynid.payloads.payload_methods import PAYLOAD_METHODS, PayloadMethod
from dynid.payloads.result import PayloadEstimate
from dynid.payloads.sensor import fused, sensor_payload
from dynid.progress import ProgressCallback, silent
from dynid.recording import Samples
from dynid.recording.drive_gains import gain_covariance
from dynid.recording.preparation import Preparation
from dynid.regression import Regression
from dynid.report import write_page
from dynid.report.pages.payload import PAYLOAD, PayloadData
from dynid.robot import FREE_COORDINATES, Robot
from dynid.runs.arguments import settings_for_other_logs, uses_stored_gains
from dynid.runs.drive_gains import with_own_gains
from dynid.runs.loading import Resting, prepared
from dynid.runs.logs import LogEntry
from dynid.runs.models import make_robot
from dynid.runs.results import load, load_regression
from dynid.runs.settings import RunSettings

AnyPayloadMethod = PayloadMethod | Literal["sensor", "both"]
METHODS: tuple[AnyPayloadMethod, ...] = (*PAYLOAD_METHODS, "sensor", "both")
_FREE_BASE_METHODS: tuple[PayloadMethod, ...] = ("together", "residual", "difference")
FILES = {"payload": "payload.json", "report": "report.html"}  # files of a payload folder


@dataclass(frozen=True, eq=False)
class FoundPayload:
    """A payload, the result it was identified with, the samples of its logs, controller settings (`entries`, empty if
    the mass is not identified), and notes."""

    source: str
    payload: PayloadEstimate
    estimate: Estimate
    robot: Robot
    samples: tuple[Samples, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()

    @output_fields(PayloadEstimate, result=str, robot=str, controllers=dict[str, Entry], notes=list[str])
    def to_dict(self) -> dict[str, Any]:
        """Return the payload as plain data for JSON."""
        return {"result": self.source, "robot": self.robot.name, **self.payload.to_dict(),
                "controllers": {one.maker: one.to_dict() for one in self.entries}, "notes": list(self.notes)}


@dataclass(frozen=True)
class PayloadOptions:
    """Options for a payload, see `dynid.payload`.

    Attributes:
        frame, mass, gain_std, consistent: as in `dynid.payload`.
        method: "sensor" is `sensor_payload`, "both" combines it with joint torques.
        unloaded: logs of the same motion without the payload, for "same-motion"; default: those of the result.
        trust: see `load`.
    """

    frame: str | None = None
    method: AnyPayloadMethod | None = None
    mass: float | tuple[float, float] | None = None
    gain_std: float | None = None
    consistent: bool = True
    unloaded: tuple[str, ...] = ()
    trust: bool = False


def find_payload(folder: str | Path, logs: Sequence[LogEntry], options: PayloadOptions | None = None,
                 given: Mapping[str, Any] | None = None, progress: ProgressCallback = silent) -> FoundPayload:
    """Identify the payload on the robot of an earlier result from logs prepared in the same way.

    given: overriding settings, see `merged`; a table "log" replaces the run's unless it only has a time window.
    """
    options = PayloadOptions() if options is None else options
    progress("reading the result")
    estimate, settings = load(folder, trust=options.trust)
    robot = make_robot(settings, allows_free_base=True)
    if robot.has_free_base and options.method not in (None, *_FREE_BASE_METHODS):
        raise RobotError(f"robot '{robot.name}' has a free base: method '{options.method}' does not estimate a payload "
                         "on it", f"use --method {' or '.join(_FREE_BASE_METHODS)}", code="free-base-unsupported")
    if options.frame is not None:
        robot.frame(options.frame)  # raises for an unknown frame before any log is read
    data: Regression | list[Samples] | None = load_regression(folder, estimate)
    if isinstance(data, Regression) and data.dof != estimate.model.dof:
        data = None
    stored, settings = settings, settings_for_other_logs(settings, given or {}, str(folder))
    notes = (stored_gains_note(folder, settings),) if uses_stored_gains(stored, settings.log) else ()
    chosen, resting = Preparation.from_settings(settings.prepare).elsewhere(), list[Resting]()
    samples = [with_own_gains(recording, one, settings)
               for recording, one in prepared(logs, settings, robot, chosen, progress, resting)]
    if not samples:
        raise resting[0].problem
    if options.method == "same-motion":
        names = options.unloaded or settings.unloaded
        data = [one for _, one in prepared(names, settings, robot, chosen, progress)]
    progress("estimating the payload")
    if robot.has_free_base:
        samples = [_with_free_base_gains(one, options.gain_std) for one in samples]
        options = replace(options, gain_std=None)
    found = _found(estimate, robot, samples, data, options)
    sound = found.has_mass and found.identified.all() and found.consistent
    sound = sound and not robot.has_free_base and not any(one.severity == "fatal" for one in found.findings)
    typed = entries(found) if sound else ()
    return FoundPayload(str(folder), found, estimate, robot, tuple(samples), typed, notes)


def stored_gains_note(folder: str | Path, settings: RunSettings) -> str:
    """Return a sentence that states whose drive gains are used, with their standard errors."""
    std = 100.0 * np.sqrt(np.diag(np.asarray(settings.log["gain_std"], dtype=float)))
    known = std[std > 0.0]
    spread = f"{known.min():.2g} to {known.max():.2g} %" if len(known) else "0 %"
    return f"drive gains and their standard errors ({spread}) are those that {folder} contains"


def _with_free_base_gains(samples: Samples, gain_std: float | None) -> Samples:
    """Return samples of a robot with a free base, with the covariance of the drive gains in their equations.

    Only the equations of joints have drive gains, because force sensors measure the equations of the base. Projected
    equations combine joint torques, so all projected equations have gains.
    """
    if samples.gain_covariance is not None and gain_std is None:
        return samples
    gains = gain_covariance(gain_std, samples.dof)
    if samples.mixing is None:
        gains[:FREE_COORDINATES] = gains[:, :FREE_COORDINATES] = 0.0
    return replace(samples, gain_covariance=gains)


def _found(estimate: Estimate, robot: Robot, samples: Sequence[Samples], data: Regression | list[Samples] | None,
           options: PayloadOptions) -> PayloadEstimate:
    """Return the payload estimated by the requested method."""
    method = options.method
    if method == "sensor":
        return sensor_payload(robot, samples, options.frame, consistent=options.consistent)[0]
    by_torques = payload(estimate, samples, options.frame, method=None if method == "both" else method, unloaded=data,
                         mass=options.mass, gain_std=options.gain_std, consistent=options.consistent)
    if method != "both":
        return by_torques
    return fused(by_torques, sensor_payload(robot, samples, options.frame, consistent=options.consistent)[0])


def save_payload(found: FoundPayload, folder: str | Path, command: str = "", *, force: bool = False) -> dict[str, str]:
    """Write a payload and its report into a folder; return the path of each file by its kind."""
    paths = free_paths(folder, FILES, force)
    write_json(paths["payload"], found.to_dict())
    write_page(PAYLOAD, page_data(found, command), paths["report"])
    return {what: str(path) for what, path in paths.items()}


def page_data(found: FoundPayload, command: str = "") -> PayloadData:
    """Return the data of the payload page, with load torques and measured torques of the first log."""
    samples = found.samples[0]
    without = found.estimate.predict(samples)
    return PayloadData(f"{found.robot.name}: payload on {found.payload.frame}", found.robot, found.payload,
                       found.entries, samples, without, load_torques(found.robot, found.payload, samples), command)


def load_torques(robot: Robot, found: PayloadEstimate, samples: Samples) -> Array:
    """Return the torques (samples, dof) of a payload alone along a log."""
    from dynid import dynamics
    from dynid.robot import inertia as ten

    frame = robot.frame(found.frame)
    inertias = np.zeros((robot.dof, 10))
    inertias[frame.body] = ten.change_frame(frame.pose) @ found.numbers
    return dynamics.inverse_dynamics(robot, inertias, samples.q, samples.dq, samples.ddq)
