"""The age of a controller's speed, from torques made with a known one."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.estimate.closed_loop.speed_lag import law_of_log
from dynid.recording import Recording
from dynid.simulation import PD, PID, Cascade, ControlLaw

RATE = 500.0
KP, KD = np.array([300.0, 40.0]), np.array([25.0, 3.0])


def log(ticks: float, follow: float, rows: int = 4000) -> Recording:
    """Torques of tau = kp (qr - q) + kd (follow dqr - v) with v = dq - d ddq, d so many ticks; all in closed form."""
    t = np.arange(rows) / RATE
    (q, dq, ddq), (qr, dqr, _) = sines(t), sines(t + 0.02)
    tau = KP * (qr - q) + KD * (follow * dqr - (dq - ticks / RATE * ddq))
    return Recording(t, q, tau, reference=qr, reference_velocity=dqr)


def sines(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities and accelerations of two joints, each the sum of two sines."""
    w, size = np.array([[2.0, 3.1], [5.0, 7.3]]), np.array([[0.8, 0.5], [0.1, 0.2]])
    phase = w * t[:, None, None]
    parts = size * np.sin(phase), size * w * np.cos(phase), -size * w ** 2 * np.sin(phase)
    return tuple(part.sum(axis=1) for part in parts)


@pytest.mark.parametrize("law", [PD(KP, KD), Cascade(KP / KD, KD)])
@pytest.mark.parametrize(("ticks", "found"), [(1.0, 1.0), (0.5, 0.5), (3.27, 3.27), (0.02, 0.0)])
def test_a_known_age_is_found(law: ControlLaw, ticks: float, found: float) -> None:
    seen, _ = law_of_log(law, log(ticks, float(isinstance(law, PD))))
    # Differences of positions are half or whole ticks old: what is near one is taken for it.
    assert seen.speed_lag == pytest.approx(found, abs=0.0 if 2.0 * found % 1.0 == 0.0 else 0.01)


def test_other_gains_are_noticed_and_nothing_is_read_from_them() -> None:
    law = PD(1.5 * KP, KD)
    seen, notes = law_of_log(law, log(1.0, 1.0))
    assert seen is law and [note.code for note in notes] == ["law-not-met"]


@pytest.mark.parametrize("law", [PD(KP, KD, speed_lag=2.0), PID(KP, 5.0, KD), PD(KP, 0.0), lambda *_: np.zeros(2)])
def test_what_the_torques_cannot_tell_stays_as_given(law: ControlLaw) -> None:
    seen, notes = law_of_log(law, log(1.0, 1.0))
    assert seen.speed_lag == getattr(law, "speed_lag", 0.0) and notes == ()


def test_a_short_log_tells_nothing() -> None:
    seen, notes = law_of_log(PD(KP, KD), log(1.0, 1.0, rows=150))
    assert seen.speed_lag == 0.0 and notes == ()
