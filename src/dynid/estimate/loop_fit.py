"""Identification of the closed loops of joints: transfer functions, controller gains, and suitability of references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError, RecordingError
from dynid.estimate.instruments.transfer import closed_loop_transfer, response_from
from dynid.output_fields import output_fields
from dynid.plain import finite, plain
from dynid.recording import Recording
from dynid.robot import numbered_joints
from dynid.signals import at_times
from dynid.simulation import Cascade, Controller, Reference, control_law
from dynid.simulation.plant import per_joint

Serves = Literal["as-they-are", "as-instruments", "no", "unknown"]
_MAX_FITTED_TICKS = 6000  # control periods of all logs together to which a loop is fitted
# Percent of the acceleration: largest difference of references that may replace the measured motion.
_MAX_REFERENCE_ERROR = 2.0
_MAX_STD_GROWTH = 10.0  # percent: largest increase of standard errors with references as instruments
_TIME_CONSTANTS_TO_SKIP = 5.0  # time constants of the slowest pole after which the initial state has decayed
# percent of fit below which disturbances hide the loop of a joint
_MIN_FIT_PERCENT = 95.0
# Largest misfit of a loop with poles, relative to that of the references, for determined poles.
_MAX_POLE_MISFIT = 0.95


@dataclass(frozen=True)
class LoopFit:
    """Transfer function H(s) = (b1 s + 1) / (a2 s^2 + a1 s + 1) from reference to position of one joint, by the
    output-error method (Ardiani, eq. 3.5-3.6).

    Attributes:
        joint: name of the joint.
        a2, a1, b1: coefficients of H, s^2 and s.
        fit: share of the positions' standard deviation that H explains, percent.
        reference_fit: the same for the reference in place of the output of H, percent.
        acceleration_gap: difference of reference and loop in acceleration, percent of the loop's acceleration.
        growth: increase of standard errors if references are the instruments, percent.
        determined: whether H explains the positions better than the reference does, which determines its poles.
        forgets: whether the log is long compared with the time constant of the slowest pole.
    """

    joint: str
    a2: float
    a1: float
    b1: float
    fit: float
    reference_fit: float
    acceleration_gap: float
    growth: float
    determined: bool
    forgets: bool

    @property
    def linear(self) -> bool:
        """Whether a linear closed loop explains the response of the joint to its reference."""
        return self.fit >= _MIN_FIT_PERCENT and self.forgets

    @property
    def seen(self) -> bool:
        """Whether the log determines the poles of the closed loop."""
        return self.linear and self.determined

    @property
    def natural_frequency(self) -> float:
        """Natural frequency of the closed loop, rad/s (Janot, Vandanjon, Gautier, eq. 42)."""
        return self.a2 ** -0.5

    @property
    def damping(self) -> float:
        """Damping ratio of the closed loop; 1 is critical damping."""
        return 0.5 * self.a1 * self.natural_frequency

    @property
    def serves(self) -> Serves:
        """How references may replace the measured positions: "as-they-are" (unchanged), "as-instruments", "no" (only
        filtered by H), or "unknown" if no linear loop explains the log.

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
        """Return the object as plain data for JSON; poles are None if the log does not determine them."""
        return {"joint": self.joint, "fit": self.fit, "reference_fit": self.reference_fit,
                "acceleration_gap": self.acceleration_gap, "growth": finite(self.growth),
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
    fit, reference_fit = (100.0 * (1.0 - miss / spread) if spread > 0 else 0.0 for miss in (with_loop, without))
    return LoopFit(
        joint, float(a2), float(a1), float(b1), float(fit), float(reference_fit),
        100.0 * float(np.linalg.norm(done - asked)) / size,
        100.0 * (1.0 / correlation - 1.0) if correlation > 0 else np.inf, bool(with_loop < _MAX_POLE_MISFIT * without),
        bool(2.0 * _TIME_CONSTANTS_TO_SKIP / slowest < min(len(x) for x, _ in pairs) / rate))


@dataclass(frozen=True, eq=False)
class ControllerFit:
    """Gains of tau = kp (qr - q) + kd (follow dqr - dq), identified for the commanded joints.

    The closed loop H = C G / (1 + C G) with G = 1 / (J s^2) is solved for the controller C (Ardiani, eq. 3.3, 3.6 and
    3.7): kp = J / a2, kd = J a1 / a2, follow = b1 / a1. Friction, gravity and coupling count as disturbances.

    Attributes:
        loops: the identified loop of each commanded joint.
        places: (loops,), the joint of each loop, counted from 0.
        kp, kd, follow: (loops,), the gains.
        inertias: (dof,), of all joints, kg m^2 or kg.
    """

    loops: tuple[LoopFit, ...]
    inertias: Array
    places: tuple[int, ...]
    kp: Array
    kd: Array
    follow: Array

    @property
    def law(self) -> Cascade:
        """Control law for simulation, with velocity feed-forward if the median of `follow` is above one half."""
        if len(self.loops) < len(self.inertias):
            raise ModelError(f"only {len(self.loops)} of {len(self.inertias)} joints have a moving reference, so the "
                             "controllers of other joints cannot be estimated", "give a log in which every joint moves",
                             "joint-at-rest")
        return Cascade(self.kp / self.kd, self.kd, feedforward=bool(np.median(self.follow) > 0.5))

    def pole_ratio(self, controller: Controller) -> Array | None:
        """Return the natural frequency in the log divided by that of a given controller (loops,), usually 0.8 to 1.2
        (Janot, Vandanjon, Gautier, eq. 47); nan if undetermined, None for a law without poles."""
        gains = control_law(controller).tuned(self.inertias).gains(len(self.inertias))
        if gains is None or np.any(gains.kp <= 0):
            return None
        wanted = np.sqrt(gains.kp / self.inertias)[list(self.places)]
        return np.array([loop.natural_frequency / omega if loop.seen else np.nan
                         for loop, omega in zip(self.loops, wanted, strict=True)])

    @output_fields(LoopFit, pole_ratio=float | None, kp=float | None, kd=float | None, feedforward=float | None)
    def to_dict(self, controller: Controller | None = None) -> list[dict[str, Any]]:
        """Return the fit as plain data for JSON, one entry per joint; controller: law for the ratio of poles."""
        ratio = None if controller is None else self.pole_ratio(controller)
        ratios = [None] * len(self.loops) if ratio is None else plain(ratio)
        return [{**loop.to_dict(), "pole_ratio": one, "kp": float(kp) if loop.seen else None,
                 "kd": float(kd) if loop.seen else None, "feedforward": float(follow) if loop.seen else None}
                for loop, one, kp, kd, follow in zip(self.loops, ratios, self.kp, self.kd, self.follow, strict=True)]


def identify_controller(recordings: Recording | Sequence[Recording], inertia: ArrayLike) -> ControllerFit:
    """Identify the controller gains of every moving joint from logs with references.

    `inertia` is the inertia of each joint, kg m^2 or kg, one number or one per joint, such as the largest along the
    motion (`dynid.simulation.joint_inertia`). Reference and position alone determine only gains per inertia.
    """
    loops = fit_loops(recordings)
    first = recordings if isinstance(recordings, Recording) else recordings[0]
    dof, names = first.dof, list(first.joints or numbered_joints(first.dof))
    own = per_joint(inertia, dof, "inertia")
    if not np.all(own > 0):
        raise ModelError(f"the inertia of joint {int(np.argmin(own)) + 1} is {own.min():.3g}, so its gains cannot be "
                         "computed", "give inertias above zero", "inertia-not-positive")
    a2, a1, b1 = (np.array([getattr(loop, name) for loop in loops]) for name in ("a2", "a1", "b1"))
    places = tuple(names.index(loop.joint) for loop in loops)
    moved = own[list(places)]
    return ControllerFit(loops, own, places, moved / a2, moved * a1 / a2, b1 / a1)
