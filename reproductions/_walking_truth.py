"""Fits of logs of the MuJoCo simulation by each kind of equations, compared with the true values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from dynid import dynamics
from dynid.estimate.whole_body import WholeBodyEstimate, identify_floating
from dynid.floating import FloatingEquations, FloatingLog, FootWrench, Imu
from dynid.floating.base_signals import with_bias
from dynid.floating.contacts import null_rows, standing_jacobian
from dynid.floating.virtual_walker import standing_motion
from dynid.model import Model, make_terms
from reproductions._walking_world import Walker, WorldLog, humanoid_walker, quadruped_walker

CUTOFF = 8.0  # Hz: above the motion, below most of the noise


@cache
def _models() -> dict[str, Model]:
    return {}


def model_of(walker: Walker) -> Model:
    """Return the model with viscous friction and rotor inertia, like the simulated machine."""
    made = _models()
    if walker.name not in made:
        made[walker.name] = Model(walker.robot, make_terms(walker.robot, friction=("viscous",), rotor=True))
    return made[walker.name]


def truth_of(walker: Walker) -> np.ndarray:
    """Return the standard parameters (parameters,) of the simulated machine."""
    own = {"Fv": walker.damping, "Ia": walker.armature}
    return np.array([own[p.name[:2]] if p.nominal is None else p.nominal for p in model_of(walker).parameters])


@cache
def _test_motion(name: str) -> tuple[np.ndarray, ...]:
    """Return q, dq, ddq of a motion that is not in any log, and the projection onto rows without contact forces."""
    walker = {"quadruped": quadruped_walker, "humanoid": humanoid_walker}[name]()
    motion = standing_motion(walker.robot, walker.feet, walker.posture, duration=4.0, rate=50.0, seed=999,
                             **walker.motion)
    q, dq, ddq = dynamics.root_motion(walker.robot, motion.q, motion.v, motion.a)
    down = -ddq[:, :3] / np.linalg.norm(ddq[:, :3], axis=1, keepdims=True)
    jacobian, owners = standing_jacobian(walker.robot, walker.feet, q, down)
    return q, dq, ddq, *null_rows(jacobian, owners, motion.standing, np.ones(walker.robot.dof))


def floating_log(log: WorldLog, *, imu: bool = True) -> FloatingLog:
    """Return the measured log, with all signals."""
    s, walker = log.signals, log.walker
    unit = Imu("imu", s["gyro"], s["accelerometer"]) if imu else None
    wrenches = tuple(FootWrench(contact.frame, s["wrench"][:, k]) for k, contact in enumerate(walker.feet))
    if "crane" in s:
        wrenches = (FootWrench(walker.robot.body_names[5], s["crane"]),)
    found = FloatingLog(log.t, s["q"], s["tau"], s["position"], s["orientation"], unit, wrenches, walker.feet,
                        s["contact"])
    if unit is None:
        return found
    return with_bias(walker.robot, found)[0]


@dataclass(frozen=True, eq=False)
class Compared:
    """Values (base,), standard errors and true values of one fit."""

    found: WholeBodyEstimate
    values: np.ndarray
    std: np.ndarray
    truth: np.ndarray

    walker: Walker

    @property
    def prediction_error(self) -> float:
        """Return the RMS error of the equations without contact forces, along a motion over standing feet that is not
        in any log. Every kind of equations determines these rows. The unit is N m or N, with orthonormal rows."""
        q, dq, ddq, mixing, keep = _test_motion(self.walker.name)
        error = self.found.problem.base.expand(self.values - self.truth)
        rows = np.einsum("sij,sj->si", mixing, model_of(self.walker).regressor(q, dq, ddq) @ error)
        return float(np.sqrt(np.mean(rows[keep] ** 2)))

    @property
    def inside(self) -> np.ndarray:
        """Return which 95 % intervals of identified parameters contain the true value."""
        low, high = self.found.estimate.conf_int().T
        known = np.isfinite(self.std) & (self.std > 0)
        return ((low < self.truth) & (self.truth < high))[known]


def compared(walker: Walker, log: FloatingLog, equations: FloatingEquations, method: str = "wls",
             cutoff: float = CUTOFF) -> Compared:
    """Fit a log by one kind of equations, and return the fit with the true values."""
    if equations == "base":
        log = replace(log, tau=None)
    found = identify_floating(model_of(walker), log, equations, method, prepare={"cutoff": cutoff})
    return Compared(found, found.estimate.values, np.sqrt(np.diag(found.estimate.covariance)),
                    found.problem.base.reduce(truth_of(walker)), walker)
