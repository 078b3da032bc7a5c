"""Kernels for products of signals: one factor is approximated by a polynomial, the other is integrated.

With x1 = sum over i <= N* of c_i P_i on the window (Lomakin and Deutscher, eq. 22-27),

    approximation of x1 x2 = sum over i of c_i(x1) int g_i x2,   c_i(x1) = int g_ci x1,
    g_i(s) = 2/T w(x) P_i(x) R(x),   g_ci(s) = 2/T w(x) P_i(x).

A derivative of x2 is moved to g_i by partial integration. A product of three signals has P_i P_m in place of P_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.recording.preparation.polynomial import PolynomialKernel


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
    def of(kernel: PolynomialKernel, product_order: int, rate: float) -> ProductTaps:
        """Return the weights of a kernel at `rate` Hz, with products of order N* = product_order."""
        basis = kernel.polynomials(product_order)

        def taps(derivative: int, *shapes: np.polynomial.Polynomial) -> Array:
            return np.array([kernel.taps(rate, derivative, one)[::-1] for one in shapes])

        velocities = np.array([taps(1, *(one * other * kernel.shape for other in basis)) for one in basis])
        return ProductTaps(kernel.taps(rate)[::-1].copy(), kernel.taps(rate, 1)[::-1].copy(), taps(0, *basis),
                           taps(1, *basis), taps(2, *(one * kernel.shape for one in basis)), velocities)
