"""Detection of contacts in logs of the robot of an earlier result, and the files of the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.contacts import ContactLog, ExternalWrench, find_contacts, free_motion
from dynid.contacts.contacts import Contact
from dynid.contacts.external_wrench import PRIOR
from dynid.contacts.observer import ObserverMethod, parameter_covariance
from dynid.errors import RecordingError
from dynid.files import free_paths, write_json, write_whole
from dynid.findings import Finding
from dynid.output_fields import array_of, output_fields, record
from dynid.progress import ProgressCallback, silent
from dynid.recording import Recording
from dynid.report import write_page
from dynid.report.pages.contact import CONTACT, ContactData
from dynid.runs.arguments import settings_for_other_logs
from dynid.runs.loading import read_logs
from dynid.runs.models import make_robot
from dynid.runs.results import load

CONTACTS_FILE, SERIES_FILE, REPORT = "contacts.json", "wrench.csv", "report.html"
_WRENCH_AXES = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")


@dataclass(frozen=True)
class ContactOptions:
    """Options of contact detection, see `dynid.ExternalWrench`.

    Attributes:
        frame, axes: frame of the external wrench, and its components.
        free: logs without contact; by default those of the result.
        method, window, prior, alarms: options of `dynid.ExternalWrench`.
        trust: see `load`.
    """

    frame: str | None = None
    axes: str | None = None
    free: tuple[str, ...] = ()
    method: ObserverMethod = "momentum"
    window: float = 0.03
    prior: tuple[float, float] = PRIOR
    alarms: float = 1.0
    trust: bool = False


_TOUCHED_LOG = record("ContactLog", log=str, touched=bool, touched_share=float, contacts=list[Contact],
                      findings=list[Finding])


@dataclass(frozen=True, eq=False)
class FoundContacts:
    """Contacts in logs of the robot of an earlier result.

    Attributes:
        source: folder of the result.
        outside: estimator of external wrenches, calibrated on free motion.
        logs: contacts in each log.
    """

    source: str
    outside: ExternalWrench
    logs: tuple[ContactLog, ...]

    @output_fields(result=str, robot=str, frame=str, axes=str, links=list[str], method=str, window_s=float,
                   delay_s=float, prior=list[float], level=float, false_alarms_an_hour=float, free_motion_s=float,
                   torque_std=list[float], acceleration_std=list[float], friction_std=list[float],
                   logs=array_of(_TOUCHED_LOG))
    def to_dict(self) -> dict[str, Any]:
        """Return the detected contacts as plain data for JSON."""
        outside, free = self.outside, self.outside.free
        return {"result": self.source, "robot": outside.robot.name, "frame": outside.frame,
                "axes": outside.axes or outside.robot.base, "links": list(outside.robot.body_names),
                "method": free.options.method, "window_s": free.options.used_window, "delay_s": self.logs[0].delay,
                "prior": [float(outside.prior[0]), float(outside.prior[3])], "level": free.level,
                "false_alarms_an_hour": free.alarms, "free_motion_s": free.seconds,
                "torque_std": free.torque.tolist(), "acceleration_std": free.acceleration.tolist(),
                "friction_std": free.friction.tolist(),
                "logs": [{"log": log.source, "touched": bool(log.contacts),
                          "touched_share": float(np.mean(log.rows.touched)),
                          "contacts": [one.to_dict() for one in log.contacts],
                          "findings": [one.to_dict() for one in log.findings]} for log in self.logs]}


def contacts_of_result(folder: str | Path, logs: Sequence[str], options: ContactOptions,
                       given: Mapping[str, Any] | None = None, progress: ProgressCallback = silent) -> FoundContacts:
    """Return the contacts in logs of the robot of an earlier result; given: settings that override those of the run."""
    progress("reading the result")
    estimate, settings = load(folder, trust=options.trust)
    robot = make_robot(settings)
    for name in (options.frame, options.axes):
        if name is not None:
            robot.frame(name)  # raises for an unknown frame before any log is read
    parameter_covariance(estimate)
    other = settings_for_other_logs(settings, given or {}, str(folder))
    try:
        own = other if options.free else settings
        quiet = _raw(read_logs(options.free or settings.unloaded, own, robot, progress))
    except RecordingError as problem:
        if options.free:
            raise
        raise RecordingError(f"the logs of the result, which show free motion, cannot be read: {problem.reason}",
                             "give a log without contact with --free") from None
    progress("calibrating on free motion")
    free = free_motion(estimate, quiet, options.method, options.window, options.alarms)
    outside = ExternalWrench(estimate, options.frame, free=free, axes=options.axes, prior=options.prior)
    touched = []
    for log in _raw(read_logs(logs, other, robot, progress)):
        progress(f"detecting contacts in {log.source}")
        touched.append(find_contacts(outside, log))
    return FoundContacts(str(folder), outside, tuple(touched))


def _raw(logs: Any) -> list[Recording]:
    """Return the recordings; raise an error if they hold currents instead of torques."""
    found: list[Recording] = list(logs)
    for one in found:
        if one.unscaled:
            raise RecordingError(f"{one.source}: contains currents with unknown drive gains",
                                 "give drive_gain as numbers in the [log] table of a file, with --mapping FILE.toml")
    return found


def contact_files(logs: int) -> dict[str, str]:
    """Return the names of the result files for a given number of logs, by kind."""
    return {"contacts": CONTACTS_FILE} | {f"{kind}{_numbered(k)}": name.replace(".", f"{_numbered(k)}.")
                                          for k in range(logs)
                                          for kind, name in (("wrench", SERIES_FILE), ("report", REPORT))}


def _numbered(log: int) -> str:
    """Return the suffix of the file names of a log (from 0); empty for the first."""
    return "" if log == 0 else f"_{log + 1}"


def save_contacts(found: FoundContacts, folder: str | Path, command: str = "", *,
                  force: bool = False) -> dict[str, str]:
    """Write contacts, wrenches over time and a report for each log into a folder; return the path of each file."""
    paths = free_paths(folder, contact_files(len(found.logs)), force)
    write_json(paths["contacts"], found.to_dict())
    for k, log in enumerate(found.logs):
        more = _numbered(k)
        _write_series(log, paths[f"wrench{more}"])
        write_page(CONTACT, page_data(found, log, command), paths[f"report{more}"])
    return {what: str(path) for what, path in paths.items()}


def page_data(found: FoundContacts, log: ContactLog, command: str = "") -> ContactData:
    """Return the data of the contact page for one log."""
    outside = found.outside
    return ContactData(f"{outside.robot.name}: external forces on {outside.frame}", outside.robot, log, outside.frame,
                       outside.axes or outside.robot.base, outside.free.level, outside.free.alarms, command)


def _write_series(log: ContactLog, path: Path) -> None:
    """Write time, wrench, standard deviations, statistic and contact state of a log, one line per sample."""
    rows = log.rows
    head = ["time", *_WRENCH_AXES, *(f"std_{name}" for name in _WRENCH_AXES), "statistic", "touched"]
    table = np.column_stack([rows.t, rows.wrench, rows.std, rows.statistic, rows.touched])
    with write_whole(path) as file:
        file.write(",".join(head) + "\n")
        np.savetxt(file, table, delimiter=",", fmt="%.9g")
