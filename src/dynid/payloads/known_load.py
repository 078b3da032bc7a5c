"""Drive gains from logs of motor currents with and without a known load.

With c_j = 1 / gain of joint j, W_j the columns of its regressor, i_j its motor current, and d_j the torque of the known
load (zero in the logs without the load),

    i_j = c_j (W_j beta + d_j) + noise.

Torques of known parameters of the robot are part of d_j.

The currents are on the left-hand side, because they contain the noise. The usual regression of the load's torque on
currents would give gains that are too low. The estimate of c and beta is maximum likelihood, on triangular factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.datasets.identifiable import DataFacts, bind_to_data
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, Payload, required_robot_model
from dynid.payloads.payload_methods import extended_base
from dynid.recording import Samples
from dynid.recording.drive_gains import DriveGains
from dynid.regression import BaseParameters, Factor, TorqueEquations, fold
from dynid.regression.factor import triangular
from dynid.regression.known import KnownValues
from dynid.robot import inertia as ten

_LOAD_BLOCKS = 8  # blocks of time for a jackknife, in the logs with the load, and in those without
_GAUSS_NEWTON_STEPS = 30  # largest number of iterations
MAX_GAIN_UNCERTAINTY = 0.1  # relative standard error above which a gain is not identified
# Share of the largest effect of the load's weight on a joint, below which a joint is unaffected.
_MIN_WEIGHT_SHARE = 0.05


@dataclass(frozen=True)
class KnownLoad:
    """A load with known inertial parameters `numbers` (10,), SI units, in its mounting frame; std: relative standard
    deviation of the mass."""

    frame: str
    numbers: tuple[float, ...]
    std: float = 0.0

    @staticmethod
    def from_mass(frame: str, mass: float, centre: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None,
                  std: float = 0.0) -> KnownLoad:
        """Return a load from mass (kg), centre of mass in the frame (m) and inertia about the centre of mass.

        The inertia is 3 x 3 or six entries XX XY XZ YY YZ ZZ, kg m^2; None for a point mass. std: relative standard
        deviation of the mass.
        """
        if not mass > 0:
            raise ModelError(f"the mass of a known load must be positive, got {mass} kg", code="not-above-zero")
        about = np.zeros(6) if inertia is None else np.asarray(inertia, dtype=float)
        matrix = about if about.shape == (3, 3) else ten.symmetric(about)
        numbers = ten.from_central(mass, np.asarray(centre, dtype=float), matrix)
        if not ten.can_exist(numbers):
            raise ModelError(f"a known load of {mass:g} kg with this inertia is not physically consistent",
                             "give its inertia about its centre of mass, in kg m^2", code="load-not-consistent")
        return KnownLoad(frame, tuple(float(x) for x in numbers), std)


def gains_from_known_load(model: Model, unloaded: Sequence[Samples], loaded: Sequence[Samples],
                          load: KnownLoad, known: KnownValues | None = None) -> DriveGains:
    """Return the gains of all drives from logs with motor currents in place of torques, without and with a known load.

    A joint on which the load's weight has no effect, such as a first joint with a vertical axis, has no gain. known:
    known standard parameters of the robot; those with a standard deviation are not used.
    """
    if not unloaded or not loaded:
        raise NotPossibleError("drive gains from a known load need a log without the load and a log with the load",
                               code="no-log-with-load")
    found = bind_to_data(model, DataFacts.from_samples([*unloaded, *loaded]), known)
    model, base = required_robot_model(found.model, "a drive gain from a known load"), found.base
    payload = Payload(load.frame)
    numbers = np.array(load.numbers)
    blocks = [*_rows(model, base, payload, unloaded, np.zeros(10)), *_rows(model, base, payload, loaded, numbers)]
    weight = _weight(model, payload, loaded, numbers)
    carries = weight > _MIN_WEIGHT_SHARE * weight.max(initial=0.0)
    if not carries.any():
        raise NotPossibleError("the known load causes no torque at any joint", "check the frame of the load and the "
                               "direction of gravity")
    whole = _sum(blocks)
    noise = _noise(whole, len(base), [sum(part[j][1] for part in blocks) for j in range(model.dof)])
    per_torque = _likeliest(whole, noise, _start(whole, noise, carries))
    each = np.array([_likeliest(_sum(blocks[:k] + blocks[k + 1:]), noise, per_torque) for k in range(len(blocks))])
    gains, n = 1.0 / per_torque, len(blocks)
    moved = (1.0 / each - gains) / gains
    covariance = (n - 1) / n * moved.T @ moved + load.std ** 2
    relative = np.sqrt(np.diag(covariance))
    is_known = carries & (relative < MAX_GAIN_UNCERTAINTY)
    reasons = {name: f"its uncertainty from the logs is {100 * share:.0f} %" if loaded_ else
               "the weight of the load causes no torque: the axis is vertical, or passes through the load"
               for name, sure, loaded_, share in zip(model.joint_names, is_known, carries, relative, strict=True)
               if not sure}
    return DriveGains(model.joint_names, np.where(is_known, gains, np.nan),
                      np.where(is_known, relative * np.abs(gains), np.inf), "from a known load", reasons, covariance)


def _rows(model: Model, base: BaseParameters, payload: Payload, logs: Sequence[Samples],
          numbers: Array) -> list[list[tuple[Array, int]]]:
    """Return the triangular factor of [W_j d_j i_j] and the number of rows of each joint j, for each block of the logs.

    W_j: regressor on all base columns; d_j: torque of the load and of known parameters of the robot; i_j: current.
    numbers: inertial parameters (10,) of the load.
    """
    whole = Model(model.robot, (*model.terms, payload))
    values = np.concatenate([np.array(list(base.known.values())), numbers])
    # Known parameters are columns here, because their torque is not subtracted from currents.
    joint = extended_base(replace(base, known={}), whole,
                          [*base.known, *(p.name for p in payload.parameters(model.robot))])
    folded = fold(TorqueEquations.from_model(whole, logs, joint), blocks=_LOAD_BLOCKS)

    def reduced(factor: Factor) -> tuple[Array, int]:
        full = np.zeros((len(factor.r), len(joint)))
        full[:, factor.columns] = factor.r[:, :-1]
        columns = [full[:, :len(base)], full[:, len(base):] @ values, factor.r[:, -1]]
        return triangular(np.column_stack(columns)), factor.rows

    return [[reduced(factor) for factor in block.factors] for block in folded.blocks]


def _sum(parts: Sequence[Sequence[tuple[Array, int]]]) -> list[Array]:
    return [triangular(np.vstack([part[j][0] for part in parts])) for j in range(len(parts[0]))]


def _weight(model: Model, payload: Payload, logs: Sequence[Samples], numbers: Array) -> Array:
    """Return the torque of a load's weight in each joint (dof,), root mean square along the logs."""
    robot = model.robot
    frame = robot.frame(payload.frame)
    inertias = np.zeros((robot.dof, 10))
    inertias[frame.body] = ten.change_frame(frame.pose) @ numbers
    torques = np.vstack([dynamics.gravity(robot, inertias, log.q[::10]) for log in logs])
    return np.sqrt(np.mean(torques ** 2, axis=0))


def _noise(whole: Sequence[Array], b: int, rows: Sequence[int]) -> Array:
    """Return the standard deviation of each joint's current (dof,) about the best fit by its own columns."""
    size = np.array([abs(r[b + 1, b + 1]) / np.sqrt(max(n - b, 1)) for r, n in zip(whole, rows, strict=True)])
    return np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))


def _start(whole: Sequence[Array], noise: Array, carries: Bools) -> Array:
    """Return the initial current per torque of every joint (dof,): from the joint's own equations if the joint carries
    the load, otherwise from the parameters of the other joints."""
    own = np.array([np.linalg.lstsq(r[:, :-1], r[:, -1], rcond=1e-10)[0][-1] for r in whole])
    good = carries & (own * np.sign(np.median(own[carries])) > 0)
    if not good.any():
        raise NotPossibleError("currents increase where the known load reduces the torque", "check the setting "
                               "log.torque_sign")
    start = np.where(good, own, np.median(own[good]))
    beta = _robot(whole, noise, start, good)
    for j in [int(k) for k in np.flatnonzero(~good)]:
        torque = whole[j][:, :-2] @ beta + whole[j][:, -2]
        start[j] = float(torque @ whole[j][:, -1]) / max(float(torque @ torque), 1e-300)
        start[j] = start[j] if start[j] * np.median(own[good]) > 0 else np.median(own[good])
    return start


def _robot(whole: Sequence[Array], noise: Array, c: Array, use: Bools) -> Array:
    """Return the base parameters (b,) for given currents per torque c (dof,), from the joints in the mask `use`."""
    rows = np.vstack([c[j] * r[:, :-2] / noise[j] for j, r in enumerate(whole) if use[j]])
    right = np.concatenate([(r[:, -1] - c[j] * r[:, -2]) / noise[j] for j, r in enumerate(whole) if use[j]])
    return np.asarray(np.linalg.lstsq(rows, right, rcond=1e-10)[0])


def _likeliest(whole: Sequence[Array], noise: Array, start: Array) -> Array:
    """Return the current per torque of every joint (dof,), jointly with the robot's parameters, by Gauss-Newton."""
    c, dof, b = start.copy(), len(whole), whole[0].shape[1] - 2
    everyone = np.ones(dof, dtype=bool)
    for _ in range(_GAUSS_NEWTON_STEPS):
        beta = _robot(whole, noise, c, everyone)
        height = len(whole[0])
        rows, right = np.zeros((height * dof, b + dof)), np.zeros(height * dof)
        for j, r in enumerate(whole):
            here = slice(j * height, (j + 1) * height)
            torque = r[:, :-2] @ beta + r[:, -2]
            rows[here, :b], rows[here, b + j] = c[j] * r[:, :-2] / noise[j], torque / noise[j]
            right[here] = (r[:, -1] - c[j] * torque) / noise[j]
        step = np.linalg.lstsq(rows, right, rcond=1e-10)[0][b:]
        step = np.clip(step, -0.5 * np.abs(c), 0.5 * np.abs(c))  # never through zero
        c = c + step
        if np.all(np.abs(step) < 1e-7 * np.abs(c)):
            break
    return c
