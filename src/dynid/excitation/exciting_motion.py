"""A designed motion, its quality, and its use of every limit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics import forward_kinematics
from dynid.errors import ModelError
from dynid.excitation.home_connection import approach
from dynid.excitation.limits.limit_check import LimitReport, check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.standing.whole_body_trajectory import WholeBodyTrajectory
from dynid.excitation.trajectories.trajectory import Trajectory, times
from dynid.excitation.trajectories.trajectory_file import write_trajectory
from dynid.model import LinearModel, complete
from dynid.regression import BaseParameters


def nominal_base_values(base: BaseParameters) -> Array:
    """Return the nominal base values (base,), nan if a part is unknown."""
    nominal = np.array([np.nan if p.nominal is None else p.nominal for p in base.parameters])
    return np.array([row[row != 0] @ nominal[row != 0] for row in base.matrix])


@dataclass(frozen=True, eq=False)
class ExcitingMotion:
    """An exciting motion.

    Attributes:
        trajectory: with the path from and to home, if requested.
        core: the exciting part.
        value, condition: criterion, and condition number of the unscaled base regressor, over the core at `rate` (Hz).
        deviations: (base,), expected standard errors under torque noise `noise`, together with earlier logs if given.
        noise: (dof,), N m, independent between samples; default: a share of each joint's typical torque.
        history: (seconds, best value) during the search.
        report: use of every limit.
        torque: the nominal model with the torque limits, if known.
        interrupted: whether the user stopped the search.
    """

    trajectory: Trajectory
    core: Trajectory
    model: LinearModel
    base: BaseParameters
    limits: Limits
    criterion: str
    value: float
    condition: float
    deviations: Array
    noise: Array
    rate: float
    history: tuple[tuple[float, float], ...]
    report: LimitReport
    torque: TorqueLimit | None
    seed: int
    starts: int
    elapsed: float
    interrupted: bool = False

    def from_home(self, home: ArrayLike) -> ExcitingMotion:
        """Return the motion with the path from a home posture (dof,) and back, by quintics within all limits."""
        whole = approach(self.core, home, self.limits, self.torque)
        limits = replace(self.limits, start=None, end=None).reaching(home)
        report = check_limits(whole, limits, self.torque, points=10000, unchecked=self.report.unchecked)
        return replace(self, trajectory=whole, report=report)

    @property
    def relative_deviations(self) -> Array:
        """Expected standard error of every base parameter in percent of its nominal value; infinite if that is
        unknown."""
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = 100.0 * self.deviations / np.abs(nominal_base_values(self.base))
        return np.where(np.isfinite(relative), relative, np.inf)

    def configurations(self, t: ArrayLike) -> Array:
        """Return configurations at times t (m,) as kinematics need them: (m, dof), or (m, 7 + n) of a free base."""
        if isinstance(self.trajectory, WholeBodyTrajectory):
            return self.trajectory.states(t).q
        return self.trajectory.at(t).q

    def torques(self, theta: Array, t: ArrayLike) -> Array:
        """Return torques (m, dof) of parameters theta at times t (m,).

        Those of standing robots are from the nominal model, and nan for the base.
        """
        if isinstance(self.trajectory, WholeBodyTrajectory):
            joints = self.trajectory.torques(t)
            return np.hstack([np.full((len(joints), self.trajectory.dof - joints.shape[1]), np.nan), joints])
        q, dq, ddq, _ = self.trajectory.at(t)
        return self.model.regressor(*(np.ascontiguousarray(x) for x in (q, dq, ddq))) @ theta

    def plots(self, rate: float | None = None) -> dict[str, Any]:
        """Return arrays for plots of every joint within its limits: t (m,), q, dq, ddq, jerk (m, dof), and the limits
        (dof,)."""
        t = times(self.trajectory, self.rate if rate is None else rate)
        motion = self.trajectory.at(t)
        return {"t": t, **motion._asdict(), "joints": self.limits.names, "lower": self.limits.lower,
                "upper": self.limits.upper, "velocity": self.limits.velocity, "acceleration": self.limits.acceleration,
                "jerk_limit": self.limits.jerk, "history": self.history}

    def preview(self, frames: int = 100) -> dict[str, Any]:
        """Return data for an animation: t (frames,), s, and the positions of the bodies (frames, dof, 3) in the base
        frame, m."""
        robot = complete(self.model).robot
        if robot is None:
            raise ModelError("this model has no robot to draw")
        t = np.linspace(0.0, self.trajectory.duration, frames)
        poses = forward_kinematics(robot, self.configurations(t))
        return {"t": t, "bodies": robot.body_names, "parents": robot.parents, "places": poses[:, :, :3, 3]}

    def summary(self) -> str:
        """Return a summary of a few lines."""
        lines = [f"{self.core.duration:g} s motion of {self.core.dof} joints, {self.criterion} {self.value:.4g}, "
                 f"condition number {self.condition:.1f}, from {self.starts} starts in {self.elapsed:.1f} s"
                 + (" (interrupted, best so far)" if self.interrupted else "")]
        lines.append(f"expected standard errors at {self.rate:g} Hz and noise of "
                     f"{', '.join(f'{x:.3g}' for x in self.noise)} N m:")
        order = np.argsort(-self.relative_deviations)
        for k in order[:10]:
            relative = self.relative_deviations[k]
            shown = f"{relative:.2g} %" if np.isfinite(relative) else "nominal not known or zero"
            lines.append(f"  {self.base.names[k]:8s} {self.deviations[k]:.3g} {self.base.units[k]}  ({shown})")
        tight = sorted(self.report.usages, key=lambda u: -u.excess)[:5]
        lines += ["closest to their limits:", *(f"  {usage}" for usage in tight)]
        lines += [f"note: {note}" for note in self.report.unchecked]
        return "\n".join(lines)

    def save(self, path: str | Path, rate: float | None = None) -> None:
        """Write the motion atomically to .csv, .npz or .yaml (ROS 2 JointTrajectory), by the extension of the path.

        That of a robot with standing feet also has the pose of the base and the torques of the nominal model.
        """
        rate, names = self.rate if rate is None else rate, self.limits.names
        whole = self.trajectory
        if isinstance(whole, WholeBodyTrajectory):
            write_trajectory(whole.joints, path, rate=rate, joints=names[-whole.joints.dof:], extra=whole.columns)
        else:
            write_trajectory(whole, path, rate=rate, joints=names)
