"""The filters of one log with all parameters resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.errors import NotPossibleError
from dynid.recording.preparation.cutoff import Spectrum
from dynid.recording.preparation.filters import savitzky_golay_cutoff, savitzky_golay_window
from dynid.recording.preparation.options import Method, Preparation
from dynid.recording.preparation.smoother import EQUIVALENT_ORDER

_BORDER_PERIODS = 2.0  # of the cut-off: there the signal's image beyond the border still spoils accelerations by 0.3 %
RATE_ROUNDING = 1e-9  # relative: a rate from time stamps is exact to that; no filter can be designed closer to Nyquist
_ROWS_LEFT = 400  # at least, where decimation is ours to choose
# of the rate: cut-off for judging a velocity when nothing is filtered and there is no spectrum
_COMPARISON_CUTOFF_OF_RATE = 0.05


@dataclass(frozen=True, eq=False)
class Plan:
    """Filters of one log.

    Attributes:
        cutoff: of position and velocity, Hz; with method "none" only for testing the velocity.
        torque: cut-off of the torques in Hz, "same" or "none".
        order: of the filter in one direction, or degree of the polynomial.
        window, border: rows.
        decimate: decimation factor of one stage.
        share: cut-off of decimation relative to the new Nyquist frequency.
    """

    method: Method
    cutoff: float
    torque: float | Literal["same", "none"]
    order: int
    window: int
    border: int
    decimate: int
    share: float
    rate: float
    steps: tuple[str, ...]

    @property
    def torque_cutoff(self) -> float | None:
        """Cut-off of the torques, Hz; None for torques as measured."""
        if isinstance(self.torque, str):
            return self.cutoff if self.torque == "same" else None
        return self.torque

    @property
    def torque_order(self) -> int:
        """Order of the Butterworth on torques that matches the filter of the positions."""
        return {"kalman": EQUIVALENT_ORDER, "butterworth": self.order}.get(self.method, 4)

    @property
    def fewest(self) -> int:
        """Number of rows that a segment needs so that one remains after its borders are dropped."""
        return max(2 * self.border + 1, self.window, 5)


def make_plan(chosen: Preparation, rate: float, rows: int, spectrum: Spectrum | None, source: str) -> Plan:
    """Return the plan with every None of the options `chosen` resolved, for a log of `rows` rows at `rate` Hz with
    this spectrum."""
    method, steps = chosen.method, []
    cutoff, window = chosen.cutoff, 0
    if method == "savitzky-golay" and chosen.window is not None:
        window = 2 * round((chosen.window * rate - 1.0) / 2.0) + 1
        if window <= chosen.order:
            raise NotPossibleError(f"{source}: a window of {chosen.window:g} s contains {window} samples at {rate:g} "
                                   f"Hz, too few for a polynomial of degree {chosen.order}; give a longer window",
                                   code="window-too-short")
        cutoff = cutoff or savitzky_golay_cutoff(window, rate, chosen.order)
    elif cutoff is None and spectrum is not None:
        cutoff = spectrum.common
        if method != "none":
            own = spectrum.cutoff[np.isfinite(spectrum.cutoff)]
            asked = f"the joints need {own.min():.3g} to {own.max():.3g} Hz" if len(own) else (
                f"no noise is visible, the motion reaches {spectrum.band:.2g} Hz")
            steps.append(f"cut-off {cutoff:g} Hz chosen from the spectra of the positions: {asked}")
    elif cutoff is None:
        cutoff = _COMPARISON_CUTOFF_OF_RATE * rate
    _below_nyquist(cutoff, rate, "cut-off", source)
    if method == "savitzky-golay" and not window:
        window = savitzky_golay_window(cutoff, rate, chosen.order)

    decimate, share = _decimation(chosen, cutoff, rate, rows)
    torque = chosen.torque_cutoff or ("none" if decimate > 1 else "same")
    if method == "none" and torque == "same":
        torque = "none"
    if not isinstance(torque, str):
        _below_nyquist(torque, rate, "torque cut-off", source)
    if chosen.border is not None:
        border = round(chosen.border * rate)
    elif method == "none":
        border = 1
    else:
        border = (window + 1) // 2 if window else int(np.ceil(_BORDER_PERIODS * rate / cutoff))
    return Plan(method, cutoff, torque, chosen.order, window, border, decimate, share, rate, tuple(steps))


def _decimation(chosen: Preparation, cutoff: float, rate: float, rows: int) -> tuple[int, float]:
    """Return the decimation factor and relative cut-off: as given, or the largest that the cut-off and the number of
    rows allow."""
    if chosen.decimate is not None:
        return chosen.decimate, chosen.decimate_share
    if chosen.method == "none" or chosen.thin > 1 or chosen.torque_cutoff is not None:
        return 1, chosen.decimate_share
    factor = max(1, min(int(chosen.decimate_share * rate / (2.0 * cutoff)), rows // _ROWS_LEFT))
    return factor, 2.0 * cutoff * factor / rate if factor > 1 else chosen.decimate_share


def _below_nyquist(cutoff: float, rate: float, what: str, source: str) -> None:
    if cutoff >= 0.5 * rate * (1.0 - RATE_ROUNDING):
        raise NotPossibleError(f"{source}: a {what} of {cutoff:g} Hz needs a rate of more than {2 * cutoff:g} Hz, but "
                               f"the log has {rate:g} Hz; give a lower one", code="cutoff-above-rate")
