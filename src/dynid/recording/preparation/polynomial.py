"""Polynomial kernels: smoothing and derivatives of a signal as one short filter (Lomakin and Deutscher, eq. 12-27).

Over the last T seconds a signal is approximated by a polynomial of order N, optimal in Jacobi's weight (1 - x)^alpha (1
+ x)^beta. The polynomial is evaluated at a delay. That is an integral of the signal with a fixed kernel,

    x = 1 - 2 s / T,  g(s) = 2/T w(x) R(x),  R(x) = sum over i of P_i(x) P_i(x_d).

As g and its first derivatives vanish at both ends, the derivative of the approximation is the integral of the signal
with the derivative of the kernel. No signal is differentiated.

A sum over samples of the kernel is not exactly the integral. The smallest correction of the weights makes their moments
exact up to degree N + 2 + k for the k-th derivative. It also makes the delay a whole number of samples. Two further
conditions per frequency suppress it completely, such as a resonance or the mains frequency.

A product of signals has kernels too: one factor is approximated by a polynomial, the other stays as it is. With x1 =
sum over i <= N* of c_i P_i on the window (Lomakin and Deutscher, eq. 22-27),

    approximation of x1 x2 = sum over i of c_i(x1) int g_i x2,   c_i(x1) = int g_ci x1,
    g_i(s) = 2/T w(x) P_i(x) R(x),   g_ci(s) = 2/T w(x) P_i(x).

A derivative of x2 is moved to g_i by partial integration. A product of three signals has P_i P_m in place of P_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dynid.arrays import Array, Ints, like
from dynid.errors import NotPossibleError

MOST_DERIVATIVES = 2
MOST_ORDER = 8


@dataclass(frozen=True)
class PolynomialKernel:
    """A polynomial kernel.

    Attributes:
        window: length T, s.
        order: order N.
        alpha, beta: exponents of the weight.
        delay: delay of the approximation, s; by default the nearest zero of the next polynomial, where the
            approximation is one order better.
        suppress: frequencies with zero gain, Hz.
    """

    window: float
    order: int = 1
    alpha: float = 3.0
    beta: float = 3.0
    delay: float | None = None
    suppress: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (self.window > 0 and math.isfinite(self.window)):
            raise NotPossibleError(f"the window of a polynomial kernel must be positive, got {self.window}")
        if not 0 <= self.order <= MOST_ORDER:
            raise NotPossibleError(f"the order of a polynomial kernel is 0 to {MOST_ORDER}, got {self.order}")
        if not min(self.alpha, self.beta) > MOST_DERIVATIVES:
            raise NotPossibleError(f"the exponents of a polynomial kernel must be above {MOST_DERIVATIVES}, so that "
                                   f"its derivatives end at zero, got {self.alpha} and {self.beta}")
        if self.delay is not None and not 0 <= self.delay <= self.window:
            raise NotPossibleError(f"the delay of a polynomial kernel must be within its window of {self.window} s, "
                                   f"got {self.delay}")
        for f in self.suppress:
            if not f * self.window >= 1.0:
                raise NotPossibleError(f"a kernel of {self.window:.4g} s cannot suppress {f:g} Hz, because it "
                                       f"contains less than one period; give a window of at least {1.0 / f:.4g} s",
                                       code="window-too-short")

    def polynomials(self, highest: int) -> tuple[np.polynomial.Polynomial, ...]:
        """Return the orthonormal polynomials of x in the weight, of degree 0 to `highest`."""
        from scipy.special import roots_jacobi

        x, w = roots_jacobi(highest + 2, self.alpha, self.beta)
        powers = np.vander(x, highest + 1, increasing=True)
        _, r = np.linalg.qr(np.sqrt(w)[:, None] * powers)
        r *= np.sign(np.diag(r))[:, None]
        return tuple(np.polynomial.Polynomial(column) for column in np.linalg.inv(r).T)

    @cached_property
    def _polynomials(self) -> tuple[np.polynomial.Polynomial, ...]:
        return self.polynomials(self.order + 1)

    @cached_property
    def delay_s(self) -> float:
        """Delay of the filtered signal relative to the newest sample, s."""
        if self.delay is not None:
            return self.delay
        return 0.5 * self.window * (1.0 - float(np.max(self._polynomials[-1].roots().real)))

    def on_samples(self, rate: float) -> PolynomialKernel:
        """Return the same kernel with a delay of a whole number of samples."""
        return replace(self, delay=min(round(self.delay_s * rate) / rate, self.window))

    @property
    def cutoff(self) -> float:
        """Frequency, Hz, at which the gain first falls to one half."""
        return _half_gain(self.order, self.alpha, self.beta, self.delay_s / self.window) / self.window

    @cached_property
    def shape(self) -> np.polynomial.Polynomial:
        """The polynomial R(x) of the kernel, for x from -1 to 1, which depends on the delay."""
        at = 1.0 - 2.0 * self.delay_s / self.window
        total = np.polynomial.Polynomial([0.0])
        for one in self._polynomials[:-1]:
            total = total + one(at) * one
        return total

    def values(self, s: Array, derivative: int = 0, shape: np.polynomial.Polynomial | None = None) -> Array:
        """Return the kernel's k-th derivative at lags s (s), zero outside the window: g^(k) = (-2/T)^k 2/T (w R)^(k).

        Each derivative is (w R)' = (1 - x)^(a-1) (1 + x)^(b-1) [(b - a - (a + b) x) R + (1 - x^2) R'].

        derivative: k. shape: polynomial in place of R.
        """
        a, b, shape = self.alpha, self.beta, self.shape if shape is None else shape
        for _ in range(derivative):
            first, second = (np.polynomial.Polynomial(x) for x in ([b - a, -(a + b)], [1.0, 0.0, -1.0]))
            shape = first * shape + second * shape.deriv()
            a, b = a - 1.0, b - 1.0
        x = np.clip(1.0 - 2.0 * np.asarray(s, dtype=float) / self.window, -1.0, 1.0)
        return np.asarray((-2.0 / self.window) ** derivative * 2.0 / self.window
                          * (1.0 - x) ** a * (1.0 + x) ** b * shape(x))

    def taps(self, rate: float, derivative: int = 0, shape: np.polynomial.Polynomial | None = None) -> Array:
        """Return the weights (lags,) of the samples, newest first, that give the approximation at the delay.

        rate: Hz. Moments are exact up to degree N + 2 + k: the sum of weights times s^m is (-1)^k m!/(m - k)! times the
        kernel's moment of degree m - k. shape: polynomial in place of R, with which no frequency is suppressed.
        """
        suppress, polynomial = (self.suppress, self.shape) if shape is None else ((), shape)
        count = math.floor(self.window * rate + 1e-9)
        degree = self.order + 2 + derivative
        if count < degree + 2 + 2 * len(suppress):
            raise NotPossibleError(f"a window of {self.window:.4g} s contains {count} samples at {rate:g} Hz, too few "
                                   f"for a polynomial kernel of order {self.order}; give a longer one with --set "
                                   "prepare.kernel_window=SECONDS",
                                   code="window-too-short")
        s = np.arange(count + 1) / rate
        taps, inner = self.values(s, derivative, polynomial) / rate, slice(1, -1)  # the ends stay zero
        x = 1.0 - 2.0 * s[inner] / self.window
        conditions = np.polynomial.legendre.legvander(x, degree).T
        if suppress:
            turns = 2.0 * np.pi * np.outer(suppress, s[inner])
            conditions = np.vstack([conditions, np.cos(turns), np.sin(turns)])
        exact = np.concatenate([self._exact(degree, derivative, polynomial), np.zeros(2 * len(suppress))])
        weight = np.sqrt(np.maximum(self.values(s[inner]) ** 2, 1e-12 * np.max(self.values(s[inner]) ** 2)))
        more, *_ = np.linalg.lstsq(conditions * weight, exact - conditions @ taps[inner], rcond=None)
        taps[inner] += weight * more
        return taps

    def _exact(self, degree: int, derivative: int, shape: np.polynomial.Polynomial) -> Array:
        """Return the required response of the weights to Legendre polynomials of x (degree + 1,).

        It is minus the integral of the kernel times their derivative by the lag; x decreases by 2/T per second of lag.
        """
        from scipy.special import roots_jacobi

        x, w = roots_jacobi(shape.degree() + degree + 2, self.alpha, self.beta)
        legendre, found = np.polynomial.legendre, np.zeros(degree + 1)
        for m, unit in enumerate(np.eye(degree + 1)):
            values = legendre.legval(x, legendre.legder(unit, derivative) if derivative else unit)
            # d/dlag = -2/T d/dx; partial integration changes the sign once per derivative; ds = T/2 dx cancels the 2/T
            # of g.
            found[m] = (2.0 / self.window) ** derivative * float(np.sum(w * shape(x) * values))
        return found

    def response(self, f: Array, rate: float, derivative: int = 0) -> Array:
        """Return the complex gain at frequencies f (Hz), relative to the delayed signal or its derivative."""
        taps = self.taps(rate, derivative)
        phase = np.exp(-2j * np.pi * np.outer(np.asarray(f, dtype=float), np.arange(len(taps)) / rate - self.delay_s))
        whole = (2j * np.pi * np.asarray(f, dtype=float)) ** derivative
        return np.asarray((phase @ taps) / np.where(whole == 0, 1.0, whole))

    def applied(self, x: Array, rate: float, segments: Ints, derivative: int = 0) -> Array:
        """Return the approximation (samples, columns) of x or its derivative at the times of x.

        The delay, a whole number of samples, is compensated. Values within a window of a segment's border are zero.
        """
        from scipy.signal import oaconvolve

        taps, late = self.taps(rate, derivative), round(self.delay_s * rate)
        out = like(x)
        reach = len(taps) - 1
        for start, stop in segments:
            if stop - start <= reach:
                continue
            for j in range(x.shape[1]):
                found = oaconvolve(np.ascontiguousarray(x[start:stop, j]), taps, mode="valid")
                out[start + reach - late:stop - late, j] = found
        return out

    def border(self, rate: float) -> int:
        """Return the number of rows at either end of a segment without an approximation."""
        reach, late = len(self.taps(rate)) - 1, round(self.delay_s * rate)
        return max(late, reach - late)


@lru_cache(maxsize=256)
def _half_gain(order: int, alpha: float, beta: float, delay: float) -> float:
    """Return the frequency, in periods per window, at which a kernel first has gain one half.

    delay: as a fraction of the window.
    """
    from scipy.optimize import brentq

    kernel, s = PolynomialKernel(1.0, order, alpha, beta, delay), np.linspace(0.0, 1.0, 2001)
    values = kernel.values(s)

    def gain(f: float) -> float:
        return float(abs(np.trapezoid(values * np.exp(-2j * np.pi * f * s), s))) - 0.5

    high = 0.1
    while gain(high) > 0.0:
        high += 0.1
    return float(brentq(gain, high - 0.1, high))


@dataclass(frozen=True, eq=False)
class ProductTaps:
    """Weights of samples for products, the oldest sample first, with k = N* + 1 polynomials.

    Attributes:
        smooth: (lags,), g.
        rates: (lags,), g'.
        coefficients: (k, lags), g_ci: coefficients of a signal.
        coefficient_rates: (k, lags), g_ci': those of its derivative.
        accelerations: (k, lags), second derivative of g_i.
        velocities: (k, k, lags), first derivative of the kernel with P_i P_m R.
    """

    smooth: Array
    rates: Array
    coefficients: Array
    coefficient_rates: Array
    accelerations: Array
    velocities: Array

    @staticmethod
    def from_kernel(kernel: PolynomialKernel, product_order: int, rate: float) -> ProductTaps:
        """Return the weights of a kernel at `rate` Hz, with products of order N* = product_order."""
        basis = kernel.polynomials(product_order)

        def taps(derivative: int, *shapes: np.polynomial.Polynomial) -> Array:
            return np.array([kernel.taps(rate, derivative, one)[::-1] for one in shapes])

        velocities = np.array([taps(1, *(one * other * kernel.shape for other in basis)) for one in basis])
        return ProductTaps(kernel.taps(rate)[::-1].copy(), kernel.taps(rate, 1)[::-1].copy(), taps(0, *basis),
                           taps(1, *basis), taps(2, *(one * kernel.shape for one in basis)), velocities)
