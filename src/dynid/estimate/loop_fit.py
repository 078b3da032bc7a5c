"""Closed loop of one joint identified from reference and measured position, and the suitability of references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.estimate.instruments.transfer import closed_loop_transfer, response_from
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.robot import numbered_joints
from dynid.signals import at_times
from dynid.simulation import Reference

Serves = Literal["as-they-are", "as-instruments", "no", "unknown"]
_MAX_FITTED_TICKS = 6000  # of all logs together that a loop is fitted to
# Percent of the acceleration by which references may differ to stand in for the motion itself.
_MAX_REFERENCE_ERROR = 2.0
_MAX_STD_GROWTH = 10.0  # percent by which deviations may grow with references as instruments
_TIME_CONSTANTS_TO_SKIP = 5.0  # time constants of the slowest pole until a loop no longer knows how the log began
# percent of fit below which other joints, gravity or friction move a joint too much to see its loop
_MIN_FIT_PERCENT = 95.0
# Share of the references' own misfit that a loop with poles has to stay below for these to be seen.
_MAX_POLE_MISFIT = 0.95


@dataclass(frozen=True)
class LoopFit:
    """Transfer function H(s) = (b1 s + 1) / (a2 s^2 + a1 s + 1) of one joint (Ardiani, eq. 3.5-3.6), fitted by output
    error."""

    joint: str
    a2: float
    a1: float
    b1: float
    fit: float
    reference_fit: float
    acceleration_gap: float
    growth: float
    told: bool
    forgets: bool

    @property
    def linear(self) -> bool:
        """Whether a linear loop explains the response of the joint."""
        return self.fit >= _MIN_FIT_PERCENT and self.forgets

    @property
    def seen(self) -> bool:
        """Whether the log determines the poles of the loop."""
        return self.linear and self.told

    @property
    def natural_frequency(self) -> float:
        """Natural frequency, rad/s (Janot, Vandanjon, Gautier, eq. 42)."""
        return self.a2 ** -0.5

    @property
    def damping(self) -> float:
        """Damping ratio; 1 is critical damping."""
        return 0.5 * self.a1 * self.natural_frequency

    @property
    def serves(self) -> Serves:
        """Use for which the references are suitable: unchanged, as instruments, only filtered by H, or "unknown" if the
        loop is not linear.

        See Ardiani, s. 3.3.5, remark 2, and Janot, Vandanjon, Gautier, s. 4.3.
        """
        if not self.linear:
            return "unknown"
        if self.acceleration_gap <= _MAX_REFERENCE_ERROR:
            return "as-they-are"
        return "as-instruments" if self.growth <= _MAX_STD_GROWTH else "no"

    @output_fields(joint=str, fit=float, reference_fit=float | None, acceleration_gap=float | None,
                   growth=float | None, references_serve=str, natural_frequency=float | None, damping=float | None,
                   transfer=dict[str, float])
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; poles are None if the log does not determine them."""
        return {"joint": self.joint, "fit": self.fit, "reference_fit": self.reference_fit,
                "acceleration_gap": self.acceleration_gap, "growth": self.growth if np.isfinite(self.growth) else None,
                "references_serve": self.serves,
                "natural_frequency": self.natural_frequency if self.seen else None,
                "damping": self.damping if self.seen else None,
                "transfer": {"a2": self.a2, "a1": self.a1, "b1": self.b1}}


def fit_loops(recordings: Recording | Sequence[Recording]) -> tuple[LoopFit, ...]:
    """Fit the closed loop of every moving joint from the references and positions of the logs."""
    logs = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    missing = [log.source for log in logs if log.reference is None]
    if missing or not logs:
        raise RecordingError(f"{missing[0] if missing else 'no log'}: a closed loop can be estimated only with its "
                             "reference; map the commanded positions with --set 'log.reference=[...]'",
                             code="no-reference")
    paths = [Reference.from_recording(log) for log in logs]
    rate = min(path.rate for path in paths)
    stride = max(1, -(-sum(map(len, paths)) // _MAX_FITTED_TICKS))
    few = [(path.q[::stride], at_times(path.t[::stride], log.t, log.q)) for path, log in zip(paths, logs, strict=True)]
    names = logs[0].joints or numbered_joints(logs[0].dof)
    return tuple(_fitted(name, [(x[:, j], y[:, j]) for x, y in few], rate / stride) for j, name in enumerate(names)
                 if any(np.ptp(x[:, j]) > 0 for x, _ in few))


def _fitted(joint: str, pairs: Sequence[tuple[Array, Array]], rate: float) -> LoopFit:
    a2, a1, b1 = found = closed_loop_transfer(pairs, rate, free_start=True)
    answers = [response_from(found, x, y, rate) for x, y in pairs]
    spread = np.sqrt(sum(float(np.sum((y - y.mean()) ** 2)) for _, y in pairs))
    with_loop = np.sqrt(sum(float(np.sum((y - a) ** 2)) for (_, y), a in zip(pairs, answers, strict=True)))
    without = np.sqrt(sum(float(np.sum((y - x) ** 2)) for x, y in pairs))
    slowest = max(float(np.min(-np.roots([a2, a1, 1.0]).real)), 1e-300)
    start = int(min(_TIME_CONSTANTS_TO_SKIP / slowest * rate, min(len(x) for x, _ in pairs) / 5))
    asked, done = (np.concatenate([np.gradient(np.gradient(x))[start:] for x in these])
                   for these in ([x for x, _ in pairs], answers))
    size = max(float(np.linalg.norm(done)), 1e-300)
    correlation = float(asked @ done) / max(size * float(np.linalg.norm(asked)), 1e-300)
    fit, plain = (100.0 * (1.0 - miss / spread) if spread > 0 else 0.0 for miss in (with_loop, without))
    return LoopFit(
        joint, float(a2), float(a1), float(b1), float(fit), float(plain),
        100.0 * float(np.linalg.norm(done - asked)) / size,
        100.0 * (1.0 / correlation - 1.0) if correlation > 0 else np.inf, bool(with_loop < _MAX_POLE_MISFIT * without),
        bool(2.0 * _TIME_CONSTANTS_TO_SKIP / slowest < min(len(x) for x, _ in pairs) / rate))
