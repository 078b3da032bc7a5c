"""Delay of a controller's velocity feedback, estimated from the logged torques.

The logged torque tau shows the velocity v that the controller used: v = (kp (qr - q) + kd follow dqr - tau) / kd, for
the reference qr, the gains kp and kd, and the share `follow` of velocity feed-forward. With a delay d, v = dq - d ddq:
the inertia seems smaller by d kd.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.findings import Note
from dynid.recording import Recording
from dynid.signals import at_times
from dynid.simulation import ControlLaw, Controller, Reference, control_law
from dynid.simulation.kernels import Law

MIN_TICKS_FOR_LAG = 200  # control periods; shorter logs do not determine a delay
_FILTER_BORDER_TICKS = 50  # control periods at either end that are affected by the filter
_CUTOFF_OF_NYQUIST = 0.04  # of half the rate: above it, second differences of positions are noise
_MAX_SPEED_MISMATCH = 0.02  # share of the speed by which a law may differ from the logged torques
_MAX_LAG_TICKS = 100.0  # control periods; larger delays are not plausible
_MIN_LAG_TICKS = 0.05  # control periods; smaller delays count as zero


def law_of_log(controller: Controller, recording: Recording) -> tuple[ControlLaw, tuple[Note, ...]]:
    """Return the control law with the velocity delay estimated from one log with a reference, and notes. The law is
    unchanged if the delay cannot be estimated."""
    law = control_law(controller)
    try:
        gains = law.gains(recording.dof)
        if gains is None or not np.all((gains.kp > 0) & (gains.kd > 0)):
            return law, ()
        return with_speed_lag(law, gains, [(Reference.from_recording(recording), recording)])
    except ModelError:
        return law, ()  # the simulation reports the error


def with_speed_lag(law: ControlLaw, gains: Law, logs: Sequence[tuple[Reference, Recording]]
                   ) -> tuple[ControlLaw, tuple[Note, ...]]:
    """Return the control law with the velocity delay estimated from logs, in sampling periods, and notes. A given delay
    is not changed. No delay is estimated for a law with integral action."""
    if law.speed_lag or np.any(gains.ki != 0.0) or any(len(reference) < MIN_TICKS_FOR_LAG for reference, _ in logs):
        return law, ()
    lags = [lag for reference, recording in logs for lag in joint_lags(gains, reference, recording)]
    known = [lag for lag in lags if lag is not None]
    if len(known) < len(lags):
        return law, (Note("law-not-met", "the logged torques differ by more than 2 % from those of the given "
                                         "control law: check gains and reference"),)
    lag = float(np.clip(np.median(known), 0.0, _MAX_LAG_TICKS))
    if lag < _MIN_LAG_TICKS:
        return law, ()
    lag = round(2.0 * lag) / 2.0 if abs(2.0 * lag - round(2.0 * lag)) < 0.1 else lag  # by finite differences
    text = f"the logged torques are consistent with a velocity feedback delayed by {lag:.3g} sampling periods"
    return law.lagging(lag), (Note("controller-speed-late", text, {"ticks": lag}),)


def joint_lags(gains: Law, reference: Reference, recording: Recording) -> list[float | None]:
    """Return each joint's velocity delay in one log, in sampling periods; None if its torques contradict the gains."""
    from scipy.signal import butter, sosfiltfilt

    rate, cutoff = reference.rate, butter(4, _CUTOFF_OF_NYQUIST, output="sos")
    q, tau = (at_times(reference.t, recording.t, x) for x in (recording.q, recording.tau))
    used = (gains.kp * (reference.q - q) + gains.kd * gains.follow * reference.dq - tau) / gains.kd
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.gradient(dq, 1.0 / rate, axis=0)
    v, dq, ddq = (sosfiltfilt(cutoff, x, axis=0)[_FILTER_BORDER_TICKS:-_FILTER_BORDER_TICKS] for x in (used, dq, ddq))
    seconds = (_lag(*columns) for columns in zip(v.T, dq.T, ddq.T, strict=True))
    return [None if lag is None else lag * rate for lag in seconds]


def _lag(v: Array, dq: Array, ddq: Array) -> float | None:
    """Return the delay (s) of the velocity v that a controller used, by the fit v = gain dq - delay ddq. It is None if
    the fit is poor or the gain is not 1."""
    x = np.column_stack([dq, -ddq])
    (gain, lag), *_ = np.linalg.lstsq(x, v, rcond=None)
    miss = float(np.linalg.norm(v - x @ [gain, lag])) / max(float(np.linalg.norm(v)), 1e-300)
    return float(lag) if miss < _MAX_SPEED_MISMATCH and abs(gain - 1.0) < _MAX_SPEED_MISMATCH else None
