"""Observer of external joint torques, sample by sample.

- Method "momentum" is a momentum observer as a finite impulse response filter: sum g' P + sum g F = sum g tau.
- Method "inverse" compares torques of the inverse model with measured torques, both low-pass filtered.

P and F are momentum and force (`MomentumForm`), g is a kernel of `RowFilter`. `Feed` provides the rows. Load-dependent
friction is evaluated at the torque transmitted by the gears (`TransmittedTorque`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.model import LinearModel, Model, complete, robot_model
from dynid.model.term_capabilities import UnderLoad, capabilities
from dynid.online.causal import TimedRows
from dynid.online.feed import Feed, FeedOptions
from dynid.online.motion_rows import RowEntries
from dynid.quantities import RATE, WINDOW, check_quantity
from dynid.regression import BaseParameters
from dynid.regression.equations import Layout

ObserverMethod = Literal["momentum", "inverse"]
OBSERVER_METHODS: tuple[ObserverMethod, ...] = ("momentum", "inverse")

_AT_ONCE = 4096  # raw samples processed at once
_MIN_WINDOW_SAMPLES = 9  # samples in the shortest window
MAX_BRIDGED_PERIODS = 5.0  # sampling periods: longest gap that is interpolated
LOAD_TURNS = 6  # alternating updates of friction and load; each halves the error: gears below 50 % efficiency lock
# windows per period of the cut-off: as smooth as the momentum observer, with three times its delay
_INVERSE_WINDOWS_PER_PERIOD = 0.6


@dataclass(frozen=True)
class FilterOptions:
    """Options of the filter of an observer of external torques.

    Attributes:
        method: "momentum" or "inverse".
        window: length of the filter window, s.
        rate: sampling rate, Hz.
        speeds: speeds (dof,), rad/s or m/s, below which a joint is slow.
    """

    method: ObserverMethod
    window: float
    rate: float
    speeds: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.method not in OBSERVER_METHODS:
            raise ModelError(f"external forces are estimated by method 'momentum' or 'inverse', got '{self.method}'",
                             code="unknown-observer")
        check_quantity(WINDOW, self.window, "the window of an observer", ModelError)
        check_quantity(RATE, self.rate, "the rate of the samples", ModelError)

    @property
    def used_window(self) -> float:
        """Length of the window, s, increased if it would contain too few samples."""
        return max(self.window, _MIN_WINDOW_SAMPLES / self.rate)

    def feeding(self) -> FeedOptions:
        """Return the options of the raw-sample filter (`Feed`). A joint that stops suddenly may be in contact, so it is
        not excluded as stuck."""
        if self.method == "momentum":
            return FeedOptions(rate=self.rate, gap=MAX_BRIDGED_PERIODS / self.rate, equations="kernel",
                               kernel_window=self.used_window, step=1, stuck=False)
        cutoff = min(1.0 / (_INVERSE_WINDOWS_PER_PERIOD * self.used_window), 0.4 * self.rate)
        return FeedOptions(cutoff=cutoff, rate=self.rate, gap=MAX_BRIDGED_PERIODS / self.rate, step=1, stuck=False)


class OutsideTorques(NamedTuple):
    """External joint torques, one row per sample.

    Attributes:
        t: times (m,), s.
        q, dq: filtered positions and velocities (m, dof).
        tau: external torques (m, dof), N m or N.
        model: covariance of tau caused by parameter errors (m, dof, dof).
        slow: share of the filter window in which a joint was slow (m, dof).
    """

    t: Array
    q: Array
    dq: Array
    tau: Array
    model: Array
    slow: Array

    @staticmethod
    def joined(parts: list[OutsideTorques]) -> OutsideTorques:
        """Return the external torques of consecutive intervals of a motion, joined to one object."""
        return parts[0] if len(parts) == 1 else OutsideTorques(*(np.concatenate(x) for x in zip(*parts, strict=True)))

    def rows(self, which: slice | Ints) -> OutsideTorques:
        """Return the torques and all other signals of the selected rows."""
        return OutsideTorques(*(x[which] for x in self))


class ModelRows:
    """Filtered regressor of a model in base parameters, computed sample by sample.

    beside: function for further signals that are filtered like torques, or None. load: function for the torques that
    the gears transmit, or None. For their arguments, see `RowEntries`.
    """

    def __init__(self, model: LinearModel, base: BaseParameters, options: FilterOptions,
                 beside: Callable[[Array, Array], Array] | None = None,
                 load: Callable[[Array, Array, Array], Array] | None = None) -> None:
        self.layout, feeding = Layout.from_model(model, base), options.feeding()
        self._done: list[TimedRows] = []
        self.feed = Feed(complete(model).joint_names, RowEntries(self.layout, feeding.equations, beside, load),
                         self._done.append, feeding, 0.0)

    def push(self, t: Array, q: Array, tau: Array) -> list[TimedRows]:
        """Add raw times (m,), positions (m, dof) and torques (m, dof), and return the rows that are then complete."""
        self._done.clear()
        self.feed.push(t, q, tau)
        return list(self._done)

    def columns(self, rows: TimedRows) -> tuple[Array, Array]:
        """Return the regressor (m, dof, base) and the torques (m, dof) of filtered rows."""
        layout, (m, n) = self.layout, rows.keep.shape
        found, tau = np.zeros((m, n, len(layout.base))), np.empty((m, n))
        for j in range(n):
            part = rows.entries[layout.joint(j)]
            found[:, j, layout.columns[j]], tau[:, j] = part[:-1].T, part[-1]
        return found, tau


@dataclass(frozen=True, eq=False)
class TransmittedTorque:
    """Torques transmitted by the gears, computed from measured torques and identified friction.

    Rotor inertia is not subtracted, because accelerations are available only with delay. External torques are
    transmitted too, and cause friction.

    Attributes:
        model: the identified model.
        theta: parameters of the model (parameters,).
        of_joints: `theta` with zeros for the parameters of bodies and of load-dependent friction (parameters,).
        loaded: load-dependent friction terms with their columns.
    """

    model: Model
    theta: Array
    of_joints: Array
    loaded: tuple[tuple[UnderLoad, Ints], ...]

    @staticmethod
    def from_estimate(estimate: Estimate) -> TransmittedTorque | None:
        """Return the function for the transmitted torques of an estimate; None if no friction depends on load."""
        model = robot_model(estimate.model)
        loaded = () if model is None else tuple(
            (load, columns) for term, columns in model.parts if (load := capabilities(term).load) is not None)
        if model is None or not loaded:
            return None
        alone = np.array([item.body is None for item in model.parameters])
        alone[np.concatenate([columns for _, columns in loaded])] = False
        return TransmittedTorque(model, estimate.full, np.where(alone, estimate.full, 0.0), loaded)

    def __call__(self, q: Array, dq: Array, tau: Array) -> Array:
        """Return transmitted torques (samples, dof) from positions, velocities and measured torques (samples, dof)."""
        without_drives = tau - self.model.inverse_dynamics(self.of_joints, q, dq, np.zeros_like(q))
        load = without_drives
        for _ in range(LOAD_TURNS):
            friction = np.zeros_like(load)
            for term, columns in self.loaded:
                for joint, parameter, column in term.under_load(self.model.robot, load, dq):
                    friction[:, joint] += self.theta[columns[parameter]] * column
            load = without_drives - friction
        return load


class Observer:
    """Observer of the external joint torques of a robot with identified base parameters."""

    def __init__(self, estimate: Estimate, options: FilterOptions) -> None:
        self.estimate, self.options = estimate, options
        self._covariance, self._slow = parameter_covariance(estimate), np.array(options.speeds)
        self._rows = ModelRows(estimate.model, estimate.base, options, self._beside,
                               TransmittedTorque.from_estimate(estimate))

    def _beside(self, q: Array, dq: Array) -> Array:
        """Return positions, velocities and flags of slow joints as rows (3 dof, m), which are filtered like torques."""
        return np.vstack([q.T, dq.T, (np.abs(dq) < self._slow).T])

    @property
    def delay(self) -> float:
        """Delay between a sample and its torque estimate, s; NaN before the first estimate."""
        return self._rows.feed.delay

    @property
    def events(self) -> tuple[str, ...]:
        """Problems found in the samples of the stream, as sentences."""
        return tuple(one.text for one in self._rows.feed.stamps.events.last)

    def push(self, t: Array, q: Array, tau: Array) -> OutsideTorques:
        """Add raw times (m,), positions (m, dof) and torques (m, dof), and return the external torques then known."""
        found = [self._torques(rows) for k in range(0, len(t), _AT_ONCE)
                 for rows in self._rows.push(*(x[k:k + _AT_ONCE] for x in (t, q, tau)))]
        if found:
            return OutsideTorques.joined(found)
        none = np.zeros((0, self._rows.layout.model.dof))
        return OutsideTorques(np.zeros(0), none, none, none, none[:, :, None] * none[:, None], none)

    def _torques(self, rows: TimedRows) -> OutsideTorques:
        """Return the external joint torques: model torques minus measured torques."""
        columns, tau = self._rows.columns(rows)
        q, dq, slow = (x.T.copy() for x in rows.entries[self._rows.layout.rows:].reshape(3, tau.shape[1], len(tau)))
        return OutsideTorques(rows.t, q, dq, columns @ self.estimate.values - tau,
                              columns @ self._covariance @ np.swapaxes(columns, 1, 2), np.abs(slow))


def parameter_covariance(estimate: Estimate) -> Array:
    """Return the covariance (base, base) of the base parameters, zero for parameters that are not identified.

    Raises:
        ModelError: The estimate has no covariance.
    """
    known = np.outer(estimate.identified, estimate.identified)
    covariance = np.where(known, estimate.covariance, 0.0)
    if (covariance.shape != (len(estimate.values),) * 2 or not np.isfinite(covariance).all()
            or not np.diag(covariance).any()):
        raise ModelError("the result has no covariance of its parameters, so the forces would have no standard "
                         "deviation", "identify with a method that computes the covariance, such as --method wls, and "
                         "give that result", code="no-covariance")
    return covariance
