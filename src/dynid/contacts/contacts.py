"""Contacts along a log: time, link, force, and whether they are a payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.contacts.alarm import gaussian_level
from dynid.contacts.external_wrench import ExternalWrench, WrenchRows
from dynid.contacts.judgement import judged
from dynid.findings import Finding
from dynid.output_fields import output_fields
from dynid.recording import Recording

_SECONDS_BETWEEN_CONTACTS = 0.2  # s without a row, that part two contacts
_MAX_TOUCHED_SHARE = 0.5  # of a log that is touched: then it is not a contact
_MIN_FREE_MOTION_SECONDS = 60.0  # s of free motion, below which the rate of alarms is extrapolated far
_MAX_FREE_NOISE = 20.0  # times the level of normal noise, beyond which free motion was no free motion


@dataclass(frozen=True, eq=False)
class Contact:
    """One contact of the robot with its environment.

    Attributes:
        start, stop: times of its first and last row, s.
        alarm: time of detection, s.
        link: the most probable link.
        probabilities: (links,), of all links.
        wrench, std: (6,), mean at the frame, N and N m, and the standard deviation of one row.
        link_wrench, link_std: (6,), the same at the frame of the link.
        peak: largest force at the frame, N.
        peak_time: its time, s.
        finding: its kind.
    """

    start: float
    stop: float
    alarm: float
    link: str
    probabilities: Array
    wrench: Array
    std: Array
    link_wrench: Array
    link_std: Array
    peak: float
    peak_time: float
    finding: Finding

    @output_fields(start=float, stop=float, alarm=float, link=str, probability=float, probabilities=list[float],
                   wrench=list[float], std=list[float], link_wrench=list[float], link_std=list[float], peak=float,
                   peak_time=float, is_=str, finding=Finding)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"start": self.start, "stop": self.stop, "alarm": self.alarm, "link": self.link,
                "probability": float(self.probabilities.max()), "probabilities": self.probabilities.tolist(),
                "wrench": self.wrench.tolist(), "std": self.std.tolist(), "link_wrench": self.link_wrench.tolist(),
                "link_std": self.link_std.tolist(), "peak": self.peak, "peak_time": self.peak_time,
                "is": self.finding.code, "finding": self.finding.to_dict()}


@dataclass(frozen=True, eq=False)
class ContactLog:
    """External wrenches along a log. rows: per sample, known `delay` s later; contacts: in order; findings: on the
    whole log."""

    source: str
    rows: WrenchRows
    delay: float
    contacts: tuple[Contact, ...]
    findings: tuple[Finding, ...]


def find_contacts(outside: ExternalWrench, log: Recording) -> ContactLog:
    """Find the contacts along a log."""
    rows, delay = outside.of_log(log)
    found = tuple(_contact(outside, log, rows.rows(slice(a, b)), delay) for a, b in _spans(rows))
    return ContactLog(log.source, rows, delay, found, _remarks(outside, log, rows))


def _spans(rows: WrenchRows) -> list[tuple[int, int]]:
    """Return the first row of each contact, and the one after its last."""
    on = np.flatnonzero(rows.touched)
    if not len(on):
        return []
    parted = np.flatnonzero((np.diff(on) > 1) | (np.diff(rows.t[on]) > _SECONDS_BETWEEN_CONTACTS))
    return list(zip(on[np.append(0, parted + 1)].tolist(), (on[np.append(parted, len(on) - 1)] + 1).tolist(),
                    strict=True))


def _contact(outside: ExternalWrench, log: Recording, rows: WrenchRows, delay: float) -> Contact:
    loud = np.flatnonzero(rows.statistic > 0.5 * outside.free.level)
    rows = rows.rows(slice(0, int(loud[-1]) + 1))
    # The ends of a contact are half in the filter: which link it is, its middle says best.
    middle = rows.rows(slice(len(rows) // 4, max(len(rows) - len(rows) // 4, len(rows) // 4 + 1)))
    share = outside.link_probabilities(middle)
    link = outside.robot.body_names[int(np.argmax(share))]
    there, spread = outside.at_frame(middle, link)
    force = np.linalg.norm(rows.wrench[:, :3], axis=1)
    return Contact(float(rows.t[0]), float(rows.t[-1]), float(rows.t[0]) + delay, link, share,
                   middle.wrench.mean(axis=0), np.sqrt(np.mean(middle.std ** 2, axis=0)), there.mean(axis=0),
                   np.sqrt(np.diagonal(spread, axis1=1, axis2=2).mean(axis=0)), float(force.max()),
                   float(rows.t[int(np.argmax(force))]), judged(outside, log, rows, link))


def _remarks(outside: ExternalWrench, log: Recording, rows: WrenchRows) -> tuple[Finding, ...]:
    found, free = list[Finding](), outside.free
    share = float(np.mean(rows.touched)) if len(rows) else 0.0
    if share > _MAX_TOUCHED_SHARE:
        text = (f"External forces seem to act on the robot in {100 * share:.0f} % of {log.source}: it may carry a "
                "load, be another robot, be mounted differently, or be logged in other units than the identified one.")
        found.append(Finding("contact-everywhere", "suspicious", "warning", text, "touched all along",
                             logs=(log.source,), evidence={"share": share}))
    if free.seconds < _MIN_FREE_MOTION_SECONDS:
        text = (f"Only {free.seconds:.0f} s of free motion are available, too short to calibrate {free.alarms:g} "
                "false alarms per hour; log 5 minutes or more without contact.")
        found.append(Finding("free-motion-short", "suspicious", "info", text, "little free motion",
                             evidence={"seconds": free.seconds}))
    normal = gaussian_level(outside.robot.dof, free.bandwidth, free.alarms / 3600.0)
    if free.level > _MAX_FREE_NOISE * normal:
        text = ("The motion given as free has residuals far beyond its noise: an alarm needs a statistic of "
                f"{free.level:.0f}, but Gaussian noise would need {normal:.0f}. Check that nobody touched the robot.")
        found.append(Finding("free-motion-rough", "suspicious", "warning", text, "free motion is not free",
                             evidence={"level": free.level, "normal": normal}))
    return tuple(found)
