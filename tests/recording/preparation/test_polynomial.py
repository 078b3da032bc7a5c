"""Polynomial kernels: the identity that moves derivatives onto the kernel, their orders, delays and responses."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.special import eval_jacobi, roots_jacobi

from dynid.errors import NotPossibleError
from dynid.recording.preparation.polynomial import PolynomialKernel

RATE = 1000.0
W = 2 * np.pi * np.array([0.7, 1.3])


def smooth(derivative: int) -> np.ndarray:
    """A derivative of 0.5 sin(w1 t + 1) + sin(w2 t), 4 s at 1 kHz."""
    t = np.arange(4000) / RATE
    return (np.array([0.5, 1.0]) * W ** derivative * np.sin(np.outer(t, W) + [1.0, 0.0] + 0.5 * np.pi * derivative)
            ).sum(axis=1)


@pytest.mark.parametrize("window", [0.02, 0.044])
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("exponent", [3.0, 5.0])
def test_the_kernel_s_derivative_differentiates_what_it_smooths(window, order, exponent):
    kernel = PolynomialKernel(window, order, exponent, exponent).on_samples(RATE)
    whole, inside = np.array([[0, 4000]]), slice(100, -100)
    for derivative in (1, 2):
        moved = kernel.applied(smooth(0)[:, None], RATE, whole, derivative)[inside, 0]
        smoothed = kernel.applied(smooth(derivative)[:, None], RATE, whole)[inside, 0]
        assert np.abs(moved - smoothed).max() < 1e-7 * np.abs(smoothed).max()


def test_taps_are_the_integral_of_the_document():
    """Eq. 16-20 by Jacobi's polynomials of scipy, which are not normalised, on a fine grid."""
    window, order, alpha, beta = 0.1, 2, 3.0, 4.0
    kernel = PolynomialKernel(window, order, alpha, beta, delay=0.03)
    x = np.linspace(-1.0, 1.0, 20001)
    weight = (1 - x) ** alpha * (1 + x) ** beta
    at, total = 1.0 - 2.0 * 0.03 / window, np.zeros_like(x)
    for i in range(order + 1):
        p = eval_jacobi(i, alpha, beta, x)
        total += p * eval_jacobi(i, alpha, beta, at) / np.trapezoid(weight * p ** 2, x)
    expected = 2.0 / window * weight * total
    lags = 0.5 * window * (1.0 - x)
    np.testing.assert_allclose(kernel.values(lags), expected, atol=1e-6 * np.abs(expected).max())
    slope = np.gradient(expected, lags)
    np.testing.assert_allclose(kernel.values(lags, 1)[5:-5], slope[5:-5], atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("order", [0, 1, 2])
def test_polynomials_pass_to_one_order_more_at_a_zero_of_the_next(order):
    kernel = PolynomialKernel(0.2, order)
    zeros = roots_jacobi(order + 1, 3.0, 3.0)[0]
    assert kernel.delay_s == pytest.approx(0.1 * (1.0 - zeros.max()))
    t = np.arange(400) / RATE
    # Off the samples' grid: the taps are those of the continuous kernel, exact to degree N + 2.
    for degree in range(order + 3):
        found = np.convolve(t ** degree, kernel.taps(RATE), mode="valid")
        exact = (t[-len(found):] - kernel.delay_s) ** degree
        off = np.abs(found - exact).max() / np.abs(exact).max()
        assert off < 1e-9 if degree <= order + 1 else off > 1e-6


def test_the_delay_of_the_document():
    assert PolynomialKernel(0.044, 1).delay_s == pytest.approx(14.7e-3, abs=0.05e-3)


@pytest.mark.parametrize("suppressed", [(50.0,), (50.0, 83.0)])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_named_frequency_does_not_pass(order, suppressed):
    plain = PolynomialKernel(0.06, order).on_samples(RATE)
    kernel = PolynomialKernel(0.06, order, suppress=suppressed).on_samples(RATE)
    f = np.array(suppressed)
    for derivative in (0, 1):
        assert np.abs(kernel.response(f, RATE, derivative)).max() < 1e-12
    assert np.abs(plain.response(f, RATE)).max() > 1e-3
    low = np.array([0.5, 1.0, 2.0])
    assert np.abs(kernel.response(low, RATE) - plain.response(low, RATE)).max() < 2e-3
    wave = np.sin(2 * np.pi * np.arange(2000) / RATE * suppressed[-1])[:, None]
    assert np.abs(kernel.applied(wave, RATE, np.array([[0, 2000]]))[100:-100]).max() < 1e-12


def test_the_cut_off_is_where_the_gain_is_one_half():
    for kernel in (PolynomialKernel(0.1, 0), PolynomialKernel(0.1, 1), PolynomialKernel(0.1, 2, 5.0, 5.0)):
        assert abs(kernel.response(np.array([kernel.cutoff]), 10_000.0)[0]) == pytest.approx(0.5, abs=2e-3)


def test_larger_exponents_damp_what_is_fast():
    f = np.array([200.0, 300.0])
    gains = [np.abs(PolynomialKernel(0.05, 0, a, a).response(f, RATE)).max() for a in (3.0, 5.0, 8.0)]
    assert gains[0] > 3 * gains[1] > 9 * gains[2]


@pytest.mark.parametrize("wrong, said", [({"window": 0.0}, ("not-possible", "window", "got 0.0")),
                                         ({"order": 9}, ("not-possible", "0 to 8", "got 9")),
                                         ({"alpha": 2.0}, ("not-possible", "got 2.0")),
                                         ({"delay": 0.2}, ("not-possible", "delay", "0.1 s", "got 0.2")),
                                         ({"suppress": (5.0,)}, ("window-too-short",))])
def test_kernels_that_cannot_be_are_refused(wrong, said):
    with refused(NotPossibleError, *said):
        PolynomialKernel(**{"window": 0.1, **wrong})


def test_a_window_of_too_few_samples_is_refused():
    with refused(NotPossibleError, "window-too-short", "3 samples"):
        PolynomialKernel(0.003, 1).taps(RATE)
