"""Contacts in a log: their times, links and forces, and the distinction between a push and a payload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.contacts.contact_free_errors import gaussian_level
from dynid.contacts.external_wrench import ExternalWrench, WrenchRows, frame_jacobian
from dynid.contacts.observer import ModelRows
from dynid.findings import Finding
from dynid.model import Model, Payload
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.recording import Recording
from dynid.regression import BaseParameters
from dynid.threads import one_blas_thread

_MAX_MEAN_SQUARE_LEFT = 4.0  # mean square of the residual, in standard deviations, up to which a hypothesis is accepted
_MIN_EXPLAINED_SHARE = 0.9  # smallest share of the external torque that an accepted hypothesis explains
_NEARLY_ALL = 0.98  # explained share with which a larger residual is accepted
_EXCLUDING_RATIO = 2.0  # ratio of the two hypotheses' mean squares, beyond which the worse one is ruled out
SIGNIFICANT_MASS = 4.0  # standard deviations by which a payload's mass must exceed zero
MIN_CONTACT_ROWS = 6  # rows, each one filter window apart
_RANK_TOLERANCE = 1e-6  # share of the largest singular value below which a singular value is zero
_SECONDS_BETWEEN_CONTACTS = 0.2  # s without contact between two contacts
_MAX_TOUCHED_SHARE = 0.5  # share of a log: if more of it has contact, the cause is not a contact
_MIN_FREE_MOTION_SECONDS = 60.0  # s of free motion; with less, the rate of false alarms is extrapolated far
_MAX_FREE_NOISE = 20.0  # detection threshold over that of Gaussian noise, beyond which the motion had contacts


@dataclass(frozen=True, eq=False)
class Contact:
    """One contact of the robot with its environment.

    Attributes:
        start, stop: times of the first and last row, s.
        alarm: time of detection, s.
        link: name of the link that is most probably in contact.
        probabilities: probability (links,) that each link is in contact.
        wrench, std: mean wrench at the estimation frame (6,), N and N m, and the standard deviation of one row.
        link_wrench, link_std: mean wrench at the frame of the link in contact (6,), and its standard deviation.
        peak: largest force at the estimation frame, N.
        peak_time: time of the largest force, s.
        finding: finding on the kind of contact: push, payload or undecided.
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
        """Return the contact as plain data for JSON."""
        return {**plain(vars(self)), "probability": float(self.probabilities.max()), "is": self.finding.code}


@dataclass(frozen=True, eq=False)
class ContactLog:
    """External wrenches and contacts of a log.

    Attributes:
        source: name of the log.
        rows, delay: wrenches of all samples, and the delay of their estimates, s.
        contacts: contacts in order of time.
        findings: findings on the whole log."""

    source: str
    rows: WrenchRows
    delay: float
    contacts: tuple[Contact, ...]
    findings: tuple[Finding, ...]


@one_blas_thread()
def find_contacts(outside: ExternalWrench, log: Recording) -> ContactLog:
    """Return the contacts that an estimator of external wrenches detects in a log."""
    rows, delay = outside.of_log(log)
    contacts = tuple(_contact(outside, log, rows.rows(slice(a, b)), delay) for a, b in _spans(rows))
    return ContactLog(log.source, rows, delay, contacts, _remarks(outside, log, rows))


def _spans(rows: WrenchRows) -> list[tuple[int, int]]:
    """Return the index of the first row of each contact, and of the row after its last row."""
    on = np.flatnonzero(rows.touched)
    if not len(on):
        return []
    parted = np.flatnonzero((np.diff(on) > 1) | (np.diff(rows.t[on]) > _SECONDS_BETWEEN_CONTACTS))
    return list(zip(on[np.append(0, parted + 1)].tolist(), (on[np.append(parted, len(on) - 1)] + 1).tolist(),
                    strict=True))


def _contact(outside: ExternalWrench, log: Recording, rows: WrenchRows, delay: float) -> Contact:
    loud = np.flatnonzero(rows.statistic > 0.5 * outside.free.level)
    rows = rows.rows(slice(0, int(loud[-1]) + 1))
    # Filtering mixes the ends of a contact with free motion: its middle shows the link best.
    middle = rows.rows(slice(len(rows) // 4, max(len(rows) - len(rows) // 4, len(rows) // 4 + 1)))
    share = outside.link_probabilities(middle)
    link = outside.robot.body_names[int(np.argmax(share))]
    at_link, spread = outside.at_frame(middle, link)
    force = np.linalg.norm(rows.wrench[:, :3], axis=1)
    return Contact(float(rows.t[0]), float(rows.t[-1]), float(rows.t[0]) + delay, link, share,
                   middle.wrench.mean(axis=0), np.sqrt(np.mean(middle.std ** 2, axis=0)), at_link.mean(axis=0),
                   np.sqrt(np.diagonal(spread, axis1=1, axis2=2).mean(axis=0)), float(force.max()),
                   float(rows.t[int(np.argmax(force))]), judged(outside, log, rows, link))


def _remarks(outside: ExternalWrench, log: Recording, rows: WrenchRows) -> tuple[Finding, ...]:
    found, free = list[Finding](), outside.free
    share = float(np.mean(rows.touched)) if len(rows) else 0.0
    if share > _MAX_TOUCHED_SHARE:
        text = (f"External forces seem to act on the robot in {100 * share:.0f} % of {log.source}: it may carry a "
                "load, be a different robot, be mounted differently, or be logged in other units than the identified "
                "one.")
        found.append(Finding("contact-everywhere", "problem", "warning", text, "touched all along",
                             logs=(log.source,), evidence={"share": share}))
    if free.seconds < _MIN_FREE_MOTION_SECONDS:
        text = (f"Only {free.seconds:.0f} s of free motion are available, too short to calibrate a threshold "
                f"with {free.alarms:g} false alarm{'s' * (free.alarms != 1.0)} per hour; log 5 minutes or more "
                "without contact.")
        found.append(Finding("free-motion-short", "problem", "info", text, "little free motion",
                             evidence={"seconds": free.seconds}))
    normal = gaussian_level(outside.robot.dof, free.bandwidth, free.alarms / 3600.0)
    if free.level > _MAX_FREE_NOISE * normal:
        text = ("The motion given as free of contact has residuals far above its noise: the detection threshold is "
                f"{free.level:.0f}, instead of {normal:.0f} for Gaussian noise. Check that nobody touched the robot.")
        found.append(Finding("free-motion-rough", "problem", "warning", text, "free motion is not free",
                             evidence={"level": free.level, "normal": normal}))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class HypothesisFit:
    """Weighted least-squares fit of the external torques by a hypothesis on a contact: a constant wrench or a payload.

    Attributes:
        values, std: fitted wrench (6,) or inertial parameters of a payload (10,), and their standard deviations.
        left: mean square of the residual torques, in units of the noise variance.
        share: share of the squared torques that the hypothesis explains, at most one.
    """

    values: Array
    std: Array
    left: float
    share: float


def judged(outside: ExternalWrench, log: Recording, rows: WrenchRows, link: str) -> Finding:
    """Return the finding on a contact in a log: a push, a payload, or undecided; rows: wrenches during the contact.
    link: name of the link in contact."""
    window = outside.free.options.used_window
    inner = (rows.t > rows.t[0] + 2.0 * window) & (rows.t < rows.t[-1] - 2.0 * window)
    part = rows.rows(np.flatnonzero(inner)[::max(1, round(window * outside.free.options.rate))])
    start, stop = float(rows.t[0]), float(rows.t[-1])
    interval = f"From {start:.3f} s to {stop:.3f} s"
    if len(part) < MIN_CONTACT_ROWS:
        return Finding("contact-short", "problem", "info",
                       f"{interval} something touched {link}, for too short a time to determine whether "
                       "it stayed there.", "short contact",
                       evidence={"start": start, "stop": stop})
    load = _fitted(_load_columns(outside, log, part), part)
    still = _fitted(np.swapaxes(frame_jacobian(outside.robot, outside.frame, None, part.torques.q), 1, 2), part)
    mass, z_score = float(load.values[9]), float(load.values[9] / max(load.std[9], 1e-300))
    evidence = {"start": start, "stop": stop, "mass": mass, "mass_std": float(load.std[9]), "load_left": load.left,
                "load_share": load.share, "constant_left": still.left, "constant_share": still.share}
    fits = (load.left < _MAX_MEAN_SQUARE_LEFT and load.share > _MIN_EXPLAINED_SHARE) or load.share > _NEARLY_ALL
    explains = fits and z_score > SIGNIFICANT_MASS
    if explains and still.left > max(_EXCLUDING_RATIO * load.left, _MAX_MEAN_SQUARE_LEFT):
        text = (f"{interval} the external force on {outside.frame} moves with the body: a payload of {mass:.3g} kg "
                f"explains {100 * load.share:.0f} % of it, a constant force {100 * max(still.share, 0.0):.0f} %; "
                "identify the payload with dynid payload.")
        return Finding("contact-payload", "problem", "warning", text, "a payload", evidence=evidence)
    if explains and load.left <= max(_EXCLUDING_RATIO * still.left, _MAX_MEAN_SQUARE_LEFT):
        text = (f"{interval} a constant force on {outside.frame} and a payload of {mass:.3g} kg there explain the data "
                "equally well: the robot rotated too little to distinguish them.")
        return Finding("contact-or-payload", "problem", "info", text, "a push or a payload", evidence=evidence)
    text = (f"{interval} an external force acts on {link} and does not move with it: a payload explains "
            f"{100 * max(load.share, 0.0):.0f} % of it and leaves a residual of {load.left ** 0.5:.1f} standard "
            "deviations.")
    return Finding("contact-push", "problem", "info", text, "a push", evidence=evidence)


def _load_columns(outside: ExternalWrench, log: Recording, part: WrenchRows) -> Array:
    """Return the filtered regressor (m, dof, 10) of a payload on the frame, at the times of the given rows."""
    model = Model(outside.robot, (Payload(outside.frame),))
    rows = ModelRows(model, BaseParameters(model.parameters, np.arange(10), np.eye(10)), outside.free.options)
    window = 10.0 * outside.free.options.used_window
    near = log.between(max(float(part.t[0]) - window, float(log.t[0])), float(part.t[-1]) + window)
    blocks = rows.push(near.t, near.q, near.tau)
    t, columns = np.concatenate([one.t for one in blocks]), np.concatenate([rows.columns(one)[0] for one in blocks])
    # The joint torques of a payload have the opposite sign of those of an external wrench.
    return -np.asarray(columns[np.searchsorted(t, part.t - 0.5 / outside.free.options.rate)])


def _fitted(columns: Array, rows: WrenchRows) -> HypothesisFit:
    """Return the weighted least-squares fit of the joint torques on columns (m, dof, k)."""
    factor = np.linalg.cholesky(rows.torque_covariance)
    a = np.linalg.solve(factor, columns).reshape(-1, columns.shape[2])
    b = np.linalg.solve(factor, rows.torques.tau[:, :, None]).reshape(-1)
    scale = np.maximum(np.linalg.norm(a, axis=0), 1e-300)
    u, s, v = np.linalg.svd(a / scale, full_matrices=False)
    kept = s > _RANK_TOLERANCE * s[0]
    back = v[kept].T / s[kept]
    values = back @ (u[:, kept].T @ b) / scale
    left = float(np.sum((b - a @ values) ** 2))
    free = max(len(b) - int(kept.sum()), 1)
    # Residuals of free motion are correlated beyond a window, so standard deviations are scaled by the fit's residual.
    std = np.sqrt(np.sum(back ** 2, axis=1)) / scale * max(1.0, left / free) ** 0.5
    return HypothesisFit(values, std, left / free, 1.0 - left / max(float(b @ b), 1e-300))
