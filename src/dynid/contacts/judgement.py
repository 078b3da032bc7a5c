"""Classification of an external wrench as a push or a payload, which moves with the body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.contacts.external_wrench import ExternalWrench, WrenchRows
from dynid.contacts.observer import ModelRows
from dynid.contacts.wrench_posterior import frame_jacobian
from dynid.findings import Finding
from dynid.model import Model, Payload
from dynid.recording import Recording
from dynid.regression import BaseParameters

_MAX_MEAN_SQUARE_LEFT = 4.0  # mean square left over, in deviations, up to which a hypothesis explains what acts
_MIN_EXPLAINED_SHARE = 0.9  # of the external torque that a hypothesis explains at least
_NEARLY_ALL = 0.98  # share with which it may leave a larger mean square
_EXCLUDING_RATIO = 2.0  # times the mean square of the other hypothesis, beyond which one of both is ruled out
SIGNIFICANT_MASS = 4.0  # deviations that a mass is above zero
MIN_CONTACT_ROWS = 6  # rows a window apart
_RANK_TOLERANCE = 1e-6  # of the largest singular value


@dataclass(frozen=True, eq=False)
class HypothesisFit:
    """Fit of a hypothesis: its values with standard deviations, the normalised mean square residual, and the
    explained share."""

    values: Array
    std: Array
    left: float
    share: float


def judged(outside: ExternalWrench, log: Recording, rows: WrenchRows, link: str) -> Finding:
    """Return the finding on a contact; rows: of the contact alone. link: the touched one."""
    window = outside.free.options.used_window
    inner = (rows.t > rows.t[0] + 2.0 * window) & (rows.t < rows.t[-1] - 2.0 * window)
    part = rows.rows(np.flatnonzero(inner)[::max(1, round(window * outside.free.options.rate))])
    start, stop = float(rows.t[0]), float(rows.t[-1])
    said = f"From {start:.3f} s to {stop:.3f} s"
    if len(part) < MIN_CONTACT_ROWS:
        return Finding("contact-short", "suspicious", "info",
                       f"{said} something touched {link}, for too short a time to determine whether "
                       "it stayed there.", "short contact",
                       evidence={"start": start, "stop": stop})
    load = _fitted(_load_columns(outside, log, part), part)
    still = _fitted(np.swapaxes(frame_jacobian(outside.robot, outside.frame, None, part.torques.q), 1, 2), part)
    mass, sure = float(load.values[9]), float(load.values[9] / max(load.std[9], 1e-300))
    evidence = {"start": start, "stop": stop, "mass": mass, "mass_std": float(load.std[9]), "load_left": load.left,
                "load_share": load.share, "constant_left": still.left, "constant_share": still.share}
    fits = (load.left < _MAX_MEAN_SQUARE_LEFT and load.share > _MIN_EXPLAINED_SHARE) or load.share > _NEARLY_ALL
    explains = fits and sure > SIGNIFICANT_MASS
    if explains and still.left > max(_EXCLUDING_RATIO * load.left, _MAX_MEAN_SQUARE_LEFT):
        text = (f"{said} the external force on {outside.frame} moves with the body: a payload of {mass:.3g} kg "
                f"explains {100 * load.share:.0f} % of it, a constant force {100 * max(still.share, 0.0):.0f} %; "
                "identify it with dynid payload.")
        return Finding("contact-payload", "suspicious", "warning", text, "a payload", evidence=evidence)
    if explains and load.left <= max(_EXCLUDING_RATIO * still.left, _MAX_MEAN_SQUARE_LEFT):
        text = (f"{said} a constant force on {outside.frame} and a payload of {mass:.3g} kg there explain the data "
                "equally well: the robot rotated too little to distinguish them.")
        return Finding("contact-or-payload", "suspicious", "info", text, "a push or a payload", evidence=evidence)
    text = (f"{said} an external force acts on {link} and does not move with it: a payload explains "
            f"{100 * max(load.share, 0.0):.0f} % of it and leaves a residual of {load.left ** 0.5:.1f} standard "
            "deviations.")
    return Finding("contact-push", "suspicious", "info", text, "a push", evidence=evidence)


def _load_columns(outside: ExternalWrench, log: Recording, part: WrenchRows) -> Array:
    """Return filtered columns (m, dof, 10) of the joint torques by a payload on the frame, at the times of
    these rows."""
    model = Model(outside.robot, (Payload(outside.frame),))
    every = np.arange(10)
    rows = ModelRows(model, BaseParameters(model.parameters, every, np.eye(10)), outside.free.options)
    window = 10.0 * outside.free.options.used_window
    near = log.between(max(float(part.t[0]) - window, float(log.t[0])), float(part.t[-1]) + window)
    found = rows.push(near.t, near.q, near.tau)
    t, columns = np.concatenate([one.t for one in found]), np.concatenate([rows.columns(one)[0] for one in found])
    # Joints have to hold a payload, where they are relieved by what a wrench does.
    return -np.asarray(columns[np.searchsorted(t, part.t - 0.5 / outside.free.options.rate)])


def _fitted(columns: Array, rows: WrenchRows) -> HypothesisFit:
    """Return the least-squares fit of the joint torques on columns (m, dof, k), each row in its own standard
    deviations."""
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
    # Residuals of free motion last longer than a window: a deviation counts no more rows than the fit leaves over.
    std = np.sqrt(np.sum(back ** 2, axis=1)) / scale * max(1.0, left / free) ** 0.5
    return HypothesisFit(values, std, left / free, 1.0 - left / max(float(b @ b), 1e-300))
