"""Filter of equations without accelerations, with all parameters resolved.

The rate of a momentum or energy is filtered by the derivative of a kernel, and the force or power by the kernel:

    kernel   sum g' P + sum g F = sum g tau              one row per joint (Lomakin and Deutscher, eq. 28-37)
    products functions of the posture times accelerations and velocities by eq. 21-27 of the same, one row per joint
    power    sum g' T + sum g G.dq = sum g tau.dq        one row per robot (Gautier 1997)
    energy   T(b) - T(a) + int G.dq = int tau.dq         one row per robot (Gautier and Khalil 1988): g = 1 on a window

P and T are momentum and kinetic energy, F and G as in `dynid.model.momentum`. Velocities come from a separate kernel of
order `product_order`. Its bandwidth is three times that of the rows, so that it removes nothing that the rows contain.
Rows of products use it for friction only; there `product_order` is also the order N*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import NotPossibleError
from dynid.recording.preparation.polynomial import MOST_DERIVATIVES, PolynomialKernel, ProductTaps

FilteredKind = Literal["kernel", "products", "energy", "power"]
EquationsKind = Literal["torque", "kernel", "products", "energy", "power"]

_BOX_HALF_GAIN = 0.603355  # periods per window at which sin(pi x) / (pi x) is one half
_KERNEL_BAND_RATIO = 3.0  # bandwidth of the motion's kernel relative to that of the rows
CUTOFF_SHARE_OF_NYQUIST = 0.8  # cut-off relative to the Nyquist frequency of the rows


@dataclass(frozen=True)
class KernelOptions:
    """Options of the polynomial kernel that filters equations without accelerations.

    Attributes:
        order, product_order: order N of the kernel, and N* of products.
        alpha, beta: exponents of the weight.
        delay: delay of the filtered signal, s; None for the latest zero of the polynomial of the next order.
        suppress: suppressed frequencies, Hz.
    """

    order: int = 1
    alpha: float = 3.0
    beta: float = 3.0
    delay: float | None = None
    suppress: tuple[float, ...] = ()
    product_order: int = 2

    def kernel(self, window: float) -> PolynomialKernel:
        """Return the polynomial kernel with a window of given length, s."""
        return PolynomialKernel(window, self.order, self.alpha, self.beta, self.delay, self.suppress)

    def cutoff(self, kind: FilteredKind, window: float) -> float:
        """Return the frequency, Hz, at which the gain of rows over a window (s) falls to one half.

        The product of frequency and window is the same for all windows.
        """
        return (_BOX_HALF_GAIN if kind == "energy" else self._plain.cutoff) / window

    def window(self, kind: FilteredKind, cutoff: float) -> float:
        """Return the window, s, with gain one half at the cut-off (Hz)."""
        return self.cutoff(kind, 1.0) / cutoff

    @cached_property
    def _plain(self) -> PolynomialKernel:
        return PolynomialKernel(1.0, self.order, self.alpha, self.beta)


@dataclass(frozen=True, eq=False)
class RowFilter:
    """Filter that turns the samples of one log into equations without accelerations.

    Attributes:
        kind: kind of the equations.
        window, rate: length of the window, s, and sampling rate, Hz.
        step: decimation factor.
        motion: kernel of positions and velocities.
        kernel: kernel of the rows; None for energies, whose weight is one on the window.
    """

    kind: FilteredKind
    window: float
    rate: float
    step: int
    motion: PolynomialKernel
    kernel: PolynomialKernel | None

    @staticmethod
    def from_options(kind: FilteredKind, window: float, options: KernelOptions, rate: float, rows: int,
                     fewest: int) -> RowFilter:
        """Return the filter of a log of `rows` rows at `rate` Hz, of which at least `fewest` must remain."""
        cutoff = options.cutoff(kind, window)
        kernel = None if kind == "energy" else options.kernel(window).on_samples(rate)
        if kernel is None and options.suppress:
            raise NotPossibleError("energy equations have no kernel, so they cannot suppress a frequency; use "
                                   "--equations power, or remove the setting suppress", code="no-kernel")
        if round(window * rate) < 2:
            raise NotPossibleError(f"a window of {window:.4g} s contains less than two samples at {rate:g} Hz; give a "
                                   "longer one with --set prepare.kernel_window=SECONDS")
        order = options.product_order
        wide = PolynomialKernel(1.0, order, options.alpha, options.beta, 0.5)
        length = max(wide.cutoff / (_KERNEL_BAND_RATIO * cutoff), (order + MOST_DERIVATIVES + 5) / rate)
        half = max(round(0.5 * length * rate), 1)  # samples: the delay is exactly in the middle
        motion = PolynomialKernel(2 * half / rate, order, options.alpha, options.beta, half / rate)
        step = max(1, min(int(CUTOFF_SHARE_OF_NYQUIST * rate / (2.0 * cutoff)), rows // fewest))
        found = RowFilter(kind, window, rate, step, motion, kernel)
        _ = found.taps, motion.taps(rate, 1)  # raises for a window that is too short
        return found

    @property
    def is_of_joints(self) -> bool:
        """Whether there is one row per joint, rather than one for the whole robot."""
        return self.kind in ("kernel", "products")

    @cached_property
    def products(self) -> ProductTaps:
        """Filter weights for equations with products of signals."""
        assert self.kernel is not None
        return ProductTaps.from_kernel(self.kernel, self.motion.order, self.rate)

    @cached_property
    def taps(self) -> Array:
        """Impulse response of the filter (lags,), newest sample first, times the sample period."""
        if self.kernel is not None:
            return self.kernel.taps(self.rate)
        weights = np.full(round(self.window * self.rate) + 1, 1.0 / self.rate)
        weights[[0, -1]] *= 0.5
        return weights

    @cached_property
    def rates(self) -> Array:
        """Derivative of the filter's impulse response (lags,), newest sample first, times the sample period."""
        if self.kernel is not None:
            return self.kernel.taps(self.rate, 1)
        ends = np.zeros(len(self.taps))
        ends[0], ends[-1] = 1.0, -1.0
        return ends

    @cached_property
    def late(self) -> int:
        """Number of samples from the time of a row to the newest sample it uses."""
        return len(self.taps) // 2 if self.kernel is None else round(self.kernel.delay_s * self.rate)

    @property
    def before(self) -> int:
        """Number of samples from the oldest sample that a row uses to the time of the row."""
        return len(self.taps) - 1 - self.late

    @property
    def delay(self) -> float:
        """Delay of a row in a stream, s: the delay of the motion's kernel plus that of the row's kernel."""
        return self.late / self.rate + self.motion.delay_s

    @property
    def cutoff(self) -> float:
        """Frequency, Hz, at which the gain falls to one half."""
        return _BOX_HALF_GAIN / self.window if self.kernel is None else self.kernel.cutoff

    def gain(self, f: Array) -> Array:
        """Return the filter's gain (bins,) at frequencies f (Hz), relative to the gain at zero frequency."""
        phase = np.exp(-2j * np.pi * np.outer(f, np.arange(len(self.taps)) / self.rate))
        return np.asarray(np.abs(phase @ self.taps) / abs(self.taps.sum()))

    def motion_gain(self, f: Array) -> Array:
        """Return the gain (bins,) of the filter of positions and velocities at frequencies f (Hz)."""
        return np.asarray(np.abs(self.motion.response(f, self.rate)))

    def sentence(self) -> str:
        """Return a sentence that describes the filter of the equations."""
        what = {"kernel": "momentum, force and torque of each joint",
                "products": "products of motion and posture, and torque of each joint",
                "power": "energy and power of the whole robot",
                "energy": "energy and work of the whole robot"}[self.kind]
        if self.kernel is None:
            how = f"are computed over windows of {self.window:.4g} s"
        else:
            k = self.kernel
            how = (f"are filtered by a polynomial kernel of order {k.order} over {self.window:.4g} s (alpha = "
                   f"{k.alpha:g}, beta = {k.beta:g}, delay {1000.0 * k.delay_s:.3g} ms"
                   + "".join(f", {f:g} Hz suppressed" for f in k.suppress) + ")")
        if self.kind == "products":
            return (f"{what} {how}, gain 1/2 at {self.cutoff:.3g} Hz, one row every {self.step} samples; one factor of "
                    f"a product is a polynomial of order {self.motion.order}; no acceleration is used")
        return (f"{what} {how}, gain 1/2 at {self.cutoff:.3g} Hz, one row every {self.step} samples; positions and "
                f"velocities come from a kernel of order {self.motion.order} over {self.motion.window:.4g} s, gain "
                f"1/2 at {self.motion.cutoff:.3g} Hz; no acceleration is used")


@dataclass(frozen=True, eq=False)
class FilteredSignals:
    """Signals of a log for equations without accelerations, at the rows of the log's samples.

    Attributes:
        q, dq: (samples, joints), filtered by the kernel of the motion; for products q is as measured.
        tau: (samples, joints), as measured.
        whole: (samples, joints), rows in which all signals exist and the torque is not at its limit.
    """

    filter: RowFilter
    q: Array
    dq: Array
    tau: Array
    whole: Bools

    def __getitem__(self, rows: slice | Ints) -> FilteredSignals:
        """Return the signals at some rows of the samples."""
        return replace(self, q=self.q[rows], dq=self.dq[rows], tau=self.tau[rows], whole=self.whole[rows])
