"""The inertia that a logged loop shows, from responses of known transfer functions by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lsim

from dynid.estimate.closed_loop.loop import Log, apparent_inertia
from dynid.recording import Samples
from dynid.simulation import PD, PID, Cascade, Reference

RATE = 500.0
T = np.arange(3000) / RATE


def logs(inertia: float, numerator: list[float], denominator: list[float]) -> list[Log]:
    """Two logs of one joint: q from qr through numerator / (inertia s^n + denominator)."""
    out = []
    for w in (3.0, 8.0):
        qr = 0.4 * np.sin(w * T) ** 2 + 0.2
        _, q, _ = lsim((numerator, [inertia, *denominator]), qr - 0.2, T)
        column = (q + 0.2)[:, None]
        samples = Samples.from_arrays(column, column * 0.0, column * 0.0, column * 0.0, rate=RATE)
        out.append(Log(samples, Reference.from_arrays(qr[:, None], rate=RATE), False))
    return out


@pytest.mark.parametrize("inertia", [0.3, 4.0])
def test_inertia_of_linear_loops(inertia: float) -> None:
    kp, ki, kd = 90.0, 40.0, 12.0
    cases = [(PD(kp, kd), [kd, kp], [kd, kp]), (PID(kp, ki, kd), [kd, kp, ki], [kd, kp, ki]),
             (Cascade(kp / kd, kd), [kp], [kd, kp])]
    for law, above, below in cases:
        gains = law.gains(1)
        assert gains is not None
        # Inertias are tried in steps of 3 %.
        assert apparent_inertia(gains, logs(inertia, above, below))[0] == pytest.approx(inertia, rel=0.02)
