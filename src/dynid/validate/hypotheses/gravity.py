"""The direction of gravity, from the torques.

The regressor is linear in gravity, so the gravity vector that explains a log best can be estimated. Reversed gravity
can be explained by negative masses: of directions that fit equally well, the one is chosen that agrees with the
nominal model, or for which physically consistent bodies explain the torques.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.identifiable import DataFacts, identifiable_base
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Model, required_robot_model
from dynid.plain import PlainFields
from dynid.recording import Samples
from dynid.regression import BaseParameters, TorqueEquations
from dynid.regression.equations import Layout
from dynid.validate.gains import nominal_bodies
from dynid.validate.hypotheses.screen import solved
from dynid.validate.thresholds import EQUALLY_EXPLAINED, GRAVITY_MISFIT_RATIO, NOISE_FLOOR

_DIFFERENCE_ANGLE = 0.03  # rad: step of the finite differences
_MAX_ROUNDS = 6
_MIN_STEP_GAIN = 0.002  # share by which a step has to reduce the misfit for the iteration to continue
_EARTH_GRAVITY = 9.81  # m/s^2: default if the robot file has no gravity
_NOMINAL_DECIDES = 0.5  # correlation of measured and nominal gravity torques above which the sign of gravity is known
_SLANTING = np.array([0.48, 0.6, -0.64])  # unit vector that is parallel to no coordinate axis


@dataclass(frozen=True, eq=False)
class Gravity(PlainFields):
    """The direction of gravity in the base frame.

    Attributes:
        vector: (3,), m/s^2.
        angle: angle from the given direction, degrees.
        std: (2,), standard errors of the direction along two axes orthogonal to it, degrees.
        misfit, given, without: mean squared residuals in units of the joints' noise, with this, with the given and
            without gravity.
        consistent: relative error of the best physically consistent robot, percent; None if the opposite direction did
            not fit equally well.
    """

    vector: Array
    angle: float
    std: Array
    misfit: float
    given: float
    without: float
    consistent: float | None = None

    @property
    def is_removed(self) -> bool:
        """Whether no gravity explains the torques as well as the best direction does."""
        return self.without <= EQUALLY_EXPLAINED * self.misfit

    @property
    def is_ambiguous(self) -> bool:
        """Whether this direction and no gravity explain the torques equally well, as for an arm with parallel axes that
        lies on its side."""
        return self.is_removed and self.misfit <= EQUALLY_EXPLAINED * self.without


def with_gravity(model: Model, gravity: Array) -> Model:
    """Return the same model with another gravity."""
    return replace(model, robot=model.robot.with_gravity(gravity.tolist()))


@dataclass(frozen=True, eq=False)
class _Misfits:
    """Mean squared residuals as a function of gravity.

    Since tau = (Y_0 + g_x Y_x + g_y Y_y + g_z Y_z) beta, the residuals follow from the normal equations of all four
    parts: normal (4, base + 1, 4, base + 1), summed over the joints in units of their noise (dof,).
    """

    normal: Array
    noise: Array
    rows: int

    @staticmethod
    def from_logs(model: Model, logs: tuple[Samples, ...], base: BaseParameters, given: Array, noise: Array | None
                  ) -> _Misfits:
        """Compute the normal equations. given (3,): gravity of the single-joint fits that estimate an unknown noise."""
        corners = _SLANTING + np.vstack([np.zeros(3), 0.3 * np.eye(3)])  # each column is excited
        layout = Layout.from_model(with_gravity(model, corners[0]), base)
        each = [TorqueEquations.from_layout(layout, with_gravity(model, corner), logs) for corner in corners]
        inverse = np.linalg.inv(np.column_stack([np.ones(4), corners]))  # from torques at the corners to (0, x, y, z)
        columns, b = layout.columns, len(base)
        own = [np.zeros((4, len(c) + 1, 4, len(c) + 1)) for c in columns]
        rows = np.zeros(len(own))
        for piece in each[0].pieces():
            parts = [equations.rows(piece) for equations in each]
            entries = np.tensordot(inverse, [part.entries for part in parts], axes=1)
            for j in range(len(own)):
                use = parts[0].keep[:, j]
                own[j] += _normal(entries[:, layout.joint(j)][:, :, use])
                rows[j] += use.sum()
        if noise is None:
            found = [_under(one, given) for one in own]
            power = np.array([float(one[-1, -1]) for one in found])
            left = np.array([solved(one)[1] for one in found]) + NOISE_FLOOR ** 2 * power
            noise = np.where(left > 0, np.sqrt(left / np.maximum(rows, 1.0)), 1.0)
        whole = np.zeros((4, b + 1, 4, b + 1))
        for j, one in enumerate(own):
            at, four = np.append(columns[j], b), np.arange(4)
            whole[np.ix_(four, at, four, at)] += one / noise[j] ** 2
        return _Misfits(whole, noise, int(rows.sum()))

    def left(self, gravity: Array) -> float:
        """Return the mean squared residual of the best parameters under a gravity (3,), in units of the noise."""
        return solved(_under(self.normal, gravity))[1] / max(self.rows, 1)


def _normal(entries: Array) -> Array:
    """Return a joint's normal equations (4, k, 4, k) from its equations' parts in 1, g_x, g_y, g_z (4, k, rows)."""
    flat = entries.reshape(entries.shape[0] * entries.shape[1], entries.shape[2])
    size = np.einsum("im,im->i", flat, flat).reshape(entries.shape[:2])
    seen = np.flatnonzero((size > 1e-18 * (size.max(axis=0) + 1e-300)).ravel())
    out = np.zeros((len(flat), len(flat)))
    out[np.ix_(seen, seen)] = flat[seen] @ flat[seen].T
    return out.reshape(entries.shape[:2] * 2)


def _under(normal: Array, gravity: Array) -> Array:
    """Return the normal equations (k, k) for one gravity (3,)."""
    parts = np.concatenate([[1.0], gravity])
    left = (parts @ normal.reshape(4, -1)).reshape(normal.shape[1:])
    return np.asarray(left.transpose(0, 2, 1) @ parts)


def estimate_gravity(problem: Problem, logs: tuple[Samples, ...] | None = None, noise: Array | None = None,
                     worth: float = 1.0, *, prefers_axes: bool = False) -> Gravity:
    """Return the direction of gravity that explains the problem's logs, with the magnitude of the robot's gravity.

    The coordinate axes, the directions between them and the given direction are tried, and the best is refined by
    Newton steps on the sphere. If the best direction and its opposite fit equally well, the nominal model decides, or
    physical consistency.

    Args:
        problem: the problem, with a model of a robot.
        logs, noise: logs and standard deviations of the torques (dof,); default: those of the problem.
        worth: ratio to the residual with the given gravity, above which a direction is not tested for consistency.
        prefers_axes: whether a coordinate axis, or the opposite of the given direction, is taken if it explains the
            torques as well as the best direction does.
    """
    model, data = _robotic(problem), problem.data if logs is None else logs
    own = np.asarray(model.robot.gravity, dtype=float)
    size = float(np.linalg.norm(own)) or _EARTH_GRAVITY
    start = own / size if np.any(own) else np.array([0.0, 0.0, -1.0])
    # Under an oblique gravity all observable columns are excited; columns that vanish under a direction stay at zero.
    base = identifiable_base(with_gravity(model, size * _SLANTING), DataFacts.from_samples(data))
    misfits = _Misfits.from_logs(model, data, base, size * start, noise)

    def left(direction: Array) -> float:
        return misfits.left(size * direction)

    around = np.array([point for point in product((-1.0, 0.0, 1.0), repeat=3) if any(point)])
    around /= np.linalg.norm(around, axis=1)[:, None]
    axes = [start, -start, *(axis for axis in around if abs(axis @ start) < 0.999)]
    tried = sorted(((left(axis), k) for k, axis in enumerate(axes)))
    direction, misfit, std = _refined(axes[tried[0][1]], tried[0][0], left, float(misfits.rows))
    if prefers_axes:
        plain = max((start, -start, *np.eye(3), *(-np.eye(3))), key=lambda axis: float(axis @ direction))
        value = left(plain)
        if value <= EQUALLY_EXPLAINED * misfit:
            direction, misfit = plain + 0.0, value  # no negative zeros
    given = next(value for value, k in tried if k == 0)
    opposite = left(-direction)
    exists = {}
    is_ambiguous = min(opposite, misfit) > max(opposite, misfit) / GRAVITY_MISFIT_RATIO and misfit <= worth * given
    agreement = _nominal_agreement(problem, data, size * direction) if is_ambiguous else 0.0
    if agreement < -_NOMINAL_DECIDES:
        direction, misfit = -direction, opposite
    elif is_ambiguous and agreement < _NOMINAL_DECIDES:
        exists = {sign: _exists(problem, data, sign * size * direction) for sign in (1.0, -1.0)}
        if exists[-1.0] is not None and (exists[1.0] is None or exists[-1.0] < exists[1.0] / GRAVITY_MISFIT_RATIO):
            direction, misfit = -direction, opposite
    consistent = exists.get(1.0 if direction @ axes[tried[0][1]] > 0 else -1.0)
    angle = float(np.rad2deg(np.arccos(np.clip(direction @ start, -1.0, 1.0))))
    return Gravity(size * direction, angle, np.rad2deg(std), misfit, given, misfits.left(np.zeros(3)), consistent)


def _refined(direction: Array, misfit: float, left: Any, rows: float) -> tuple[Array, float, Array]:
    """Return the best direction, its mean squared residual, and standard errors (2,), rad, along two orthogonal axes,
    by Newton steps on a paraboloid through six points around the direction."""
    step, std = _DIFFERENCE_ANGLE, np.full(2, np.nan)
    for _ in range(_MAX_ROUNDS):
        across = np.linalg.svd(direction[None])[2][1:]

        def at(x: float, y: float, direction: Array = direction, across: Array = across) -> Array:
            moved = direction + x * across[0] + y * across[1]
            return np.asarray(moved / np.linalg.norm(moved))

        f = {key: left(at(*(step * np.array(key)))) for key in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1))}
        slope = np.array([f[1, 0] - f[-1, 0], f[0, 1] - f[0, -1]]) / (2.0 * step)
        curve = np.array([f[1, 0] + f[-1, 0] - 2.0 * misfit, f[0, 1] + f[0, -1] - 2.0 * misfit]) / step ** 2
        mixed = (f[1, 1] - f[1, 0] - f[0, 1] + misfit) / step ** 2
        values, vectors = np.linalg.eigh(np.array([[curve[0], mixed], [mixed, curve[1]]]))
        values = np.maximum(np.abs(values), 1e-9)
        move = -vectors @ ((vectors.T @ slope) / values)
        move *= min(1.0, 0.3 / max(float(np.linalg.norm(move)), 1e-12))
        std = np.sqrt(2.0 * misfit / rows / values)
        before = misfit
        for _ in range(3):
            new = at(*move)
            value = left(new)
            if value < misfit:
                direction, misfit = new, value
                break
            move *= 0.3
        if misfit > (1.0 - _MIN_STEP_GAIN) * before:
            break
    return direction, misfit, std


def _nominal_agreement(problem: Problem, logs: tuple[Samples, ...], gravity: Array) -> float:
    """Return the correlation of the measured torques, scaled by each joint's RMS, with the nominal torques under a
    gravity (3,); zero without a nominal model."""
    theta, part = nominal_bodies(problem)[0], max(logs, key=len)
    if not np.any(theta):
        return 0.0
    still, tau = np.zeros_like(part.q), part.tau - part.tau.mean(axis=0)
    known = with_gravity(_robotic(problem), gravity).inverse_dynamics(theta, part.q, still, still)
    known, size = known - known.mean(axis=0), np.maximum(tau.std(axis=0), 1e-300)
    one, other = (tau / size).ravel(), (known / size).ravel()
    return float(one @ other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-300))


def _exists(problem: Problem, logs: tuple[Samples, ...], gravity: Array) -> float | None:
    """Return the relative error, percent, of the best physically consistent robot under a gravity; None without one."""
    model = with_gravity(_robotic(problem), gravity)
    try:
        return float(identify(Problem.from_model(model, logs, threads=problem.threads), method="pc-wls")
                     .diagnostics.relative_error)
    except NotPossibleError:
        return None


def _robotic(problem: Problem) -> Model:
    return required_robot_model(problem.model, "an estimate of the direction of gravity")
