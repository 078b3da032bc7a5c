"""Product form: a model's regressor from positions alone, by products of signals over a window.

A term with inertia has the torque A(q) ddq + dq' B(q) dq + r(q). Through a polynomial kernel (Lomakin and Deutscher):

    A(q) ddq     sum over i of c_i(A(q)) int g_i'' q                              eq. 22-27, by parts twice
    dq' B(q) dq  sum over i, m of c_i(B(q)) c_m(dq) int g_im' q                   the same with two factors
    r(q)         r at the approximation of q                                      eq. 21
    friction     int g f(q, dq), with velocities from the motion's kernel

Only kernels are differentiated, never signals. For a product of two velocities, the mean of both orders is used. Eq. 21
holds for Lipschitz functions, which the sign of a velocity is not, so friction is filtered as in the momentum form.
With `is_friction_composed`, friction is evaluated at the approximations of q and dq instead (eq. 19, 21).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model.momentum import TORQUE_AGREEMENT, MomentumForm, TermShare
from dynid.recording.preparation.polynomial import ProductTaps

PRODUCT_ROWS_AT_ONCE = 256  # rows whose windows are in memory at a time
_PROBED_STATES = 4


@dataclass(frozen=True, eq=False)
class Windows:
    """Sliding windows of a filter over some rows, and the signals of the motion filtered by its kernels.

    Attributes:
        q: (samples, dof), positions as measured.
        dq: (samples, dof), velocities from the motion's kernel.
        taps: weights of the kernels.
        step: samples from row to row.
        memory: (samples, channels), states of terms with memory, or None.
        positions, velocities: (rows, dof), polynomial approximations of the motion at the delay of the filter.
        coefficient_rates: (rows, dof, k), coefficients of the velocities.
        accelerations: (rows, dof, k), integrals of g_i'' and positions.
        velocity_products: (rows, dof, k, k), integrals of g_im' and positions.
    """

    q: Array
    dq: Array
    taps: ProductTaps
    step: int
    memory: Array | None
    positions: Array
    velocities: Array
    coefficient_rates: Array
    accelerations: Array
    velocity_products: Array

    @staticmethod
    def from_motion(q: Array, dq: Array, taps: ProductTaps, step: int, memory: Array | None = None) -> Windows:
        """Return the windows over positions and velocities (samples, dof), the first window at the first sample."""
        def through(weights: Array) -> Array:
            found = _through(q.T, weights.reshape(-1, weights.shape[-1]), step)  # (dof, rows, weights)
            return np.moveaxis(found, 0, 1).reshape(found.shape[1], found.shape[0], *weights.shape[:-1])

        return Windows(np.ascontiguousarray(q), np.ascontiguousarray(dq), taps, step, memory,
                       through(taps.smooth), through(taps.rates), through(taps.coefficient_rates),
                       through(taps.accelerations), through(taps.velocities))

    def through(self, signals: Array, weights: Array) -> Array:
        """Return signals (signals, samples) filtered by one kernel (lags,), at all rows (signals, rows)."""
        return _through(signals, weights[None], self.step)[..., 0]

    def coefficients(self, signals: Array) -> Array:
        """Return the polynomial coefficients (signals, rows, k) of signals (signals, samples)."""
        return _through(signals, self.taps.coefficients, self.step)


def _through(signals: Array, weights: Array, step: int) -> Array:
    """Return signals (signals, samples) filtered by k kernels (k, lags): (signals, rows, k) at every step-th window."""
    windows = np.lib.stride_tricks.sliding_window_view(signals, weights.shape[-1], axis=1)[:, ::step]
    return np.asarray(windows @ weights.T)


@dataclass(frozen=True, eq=False)
class ProductForm:
    """Regressor of a model from positions only, by products of signals filtered over a window."""

    dof: int
    parts: tuple[TermShare, ...]
    is_friction_composed: bool = False

    @staticmethod
    def from_momentum(form: MomentumForm) -> ProductForm:
        """Return the product form of a model; an inertial torque must be quadratic in the velocities."""
        q, dq = np.random.default_rng(0).normal(size=(2, _PROBED_STATES, form.model.dof))
        for part in form.parts:
            if not part.accelerating:
                continue
            size = form.model.dof * len(part.columns)
            place = np.arange(size, dtype=np.int64).reshape(form.model.dof, -1)
            rest, once, twice = (_entries(part, place, size, q, scale * dq, np.zeros_like(q)) for scale in (0., 1., 2.))
            if not np.allclose(twice - rest, 4.0 * (once - rest), rtol=0.0,
                               atol=TORQUE_AGREEMENT * max(float(np.abs(twice).max(initial=0.0)), 1e-300)):
                raise ModelError("a term with inertia has torques that are not quadratic in the velocities, so it has "
                                 "no product form; use equations = 'kernel' (--set prepare.equations=kernel)",
                                 code="no-product-form")
        return ProductForm(form.model.dof, form.parts)

    def filled(self, windows: Windows, place: Ints, count: int) -> Array:
        """Return filtered entries (count, rows) of the regressor; place (dof, parameters): row of each entry or -1."""
        out = np.zeros((count, len(windows.positions)))
        for part in self.parts:
            own = np.ascontiguousarray(place[:, part.columns])
            kept = own[own >= 0]
            if not len(kept):
                continue
            dense = np.full_like(own, -1)
            dense[own >= 0] = np.arange(len(kept))
            still = np.zeros_like(windows.positions)
            if part.accelerating:
                out[kept] = _entries(part, dense, len(kept), windows.positions, still, still)
                out[kept] += self._moving(part, dense, len(kept), windows)
            elif self.is_friction_composed and part.channels.start == part.channels.stop:
                out[kept] = _entries(part, dense, len(kept), windows.positions, windows.velocities, still)
            else:
                memory = None if windows.memory is None else windows.memory[:, part.channels]
                out[kept] = windows.through(_entries(part, dense, len(kept), windows.q, windows.dq,
                                                     np.zeros_like(windows.q), memory), windows.taps.smooth)
        return out

    def _moving(self, part: TermShare, place: Ints, count: int, windows: Windows) -> Array:
        """Return the filtered regressor columns (count, rows) of the inertial torques A(q) ddq + dq' B(q) dq."""
        q, unit, still = windows.q, np.eye(self.dof), np.zeros_like(windows.q)

        def more(velocity: Array, acceleration: Array) -> Array:
            return _entries(part, place, count, q, still + velocity, still + acceleration) - rest

        rest = _entries(part, place, count, q, still, still)
        found = np.zeros((count, len(windows.positions)))
        squares = [more(unit[k], np.zeros(self.dof)) for k in range(self.dof)]
        # (rows, k, l, i): coefficients of the velocity of joint k times that of joint l in the integral.
        both = np.einsum("rkm,rlim->rkli", windows.coefficient_rates, windows.velocity_products)
        for k in range(self.dof):
            found += np.einsum("eri,ri->er", windows.coefficients(more(np.zeros(self.dof), unit[k])),
                               windows.accelerations[:, k])
            for other in range(k + 1):
                b = squares[k] if other == k else (more(unit[k] + unit[other], np.zeros(self.dof)) - squares[k]
                                                   - squares[other])
                if np.any(b):
                    mean = 0.5 * (both[:, k, other] + both[:, other, k])
                    found += np.einsum("eri,ri->er", windows.coefficients(b), mean)
        return found


def _entries(part: TermShare, place: Ints, count: int, q: Array, dq: Array, ddq: Array,
             memory: Array | None = None) -> Array:
    """Return the regressor columns (count, samples) of one term; place (dof, columns): row of each column, or -1."""
    out = np.zeros((count, len(q)))
    part.fill(np.ascontiguousarray(q), np.ascontiguousarray(dq), np.ascontiguousarray(ddq), place, out, memory)
    return out
