"""Gains of a controller, estimated from references and measured positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.loop_fit import LoopFit, fit_loops
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.robot import numbered_joints
from dynid.simulation import Cascade, Controller, control_law
from dynid.simulation.plant import per_joint


@dataclass(frozen=True, eq=False)
class ControllerFit:
    """Gains of tau = kp (qr - q) + kd (follow dqr - dq), identified for the commanded joints.

    H = C G / (1 + C G) with G = 1 / (J s^2) is solved for C (Ardiani, eq. 3.3, 3.6 and 3.7): kp = J / a2, kd = J a1 /
    a2, follow = b1 / a1. Friction, gravity and coupling are treated as rejected disturbances.

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
        """Return a control law for simulation, with velocity feed-forward if the median share is above one half."""
        if len(self.loops) < len(self.inertias):
            raise ModelError(f"only {len(self.loops)} of "
                             f"{len(self.inertias)} joints have a moving "
                             "reference, so the controllers of the others "
                             "cannot be estimated", "give a log in which every joint moves", "joint-at-rest")
        return Cascade(self.kp / self.kd, self.kd, feedforward=bool(np.median(self.follow) > 0.5))

    def pole_ratio(self, controller: Controller) -> Array | None:
        """Return the natural frequency of the log divided by that of a controller with these inertias (loops,),
        usually 0.8 to 1.2 (Janot, Vandanjon, Gautier, eq. 47); nan if the log does not determine it, None for a law
        without poles."""
        gains = control_law(controller).tuned(self.inertias).gains(len(self.inertias))
        if gains is None or np.any(gains.kp <= 0):
            return None
        wanted = np.sqrt(gains.kp / self.inertias)[list(self.places)]
        return np.array([loop.natural_frequency / omega if loop.seen else np.nan
                         for loop, omega in zip(self.loops, wanted, strict=True)])

    @output_fields(LoopFit, pole_ratio=float | None, kp=float | None, kd=float | None, feedforward=float | None)
    def to_dict(self, controller: Controller | None = None) -> list[dict[str, Any]]:
        """Return plain data for JSON, one entry per joint; controller: the given law, for the ratio of poles."""
        ratio = None if controller is None else self.pole_ratio(controller)
        ratios = [None] * len(self.loops) if ratio is None else [float(x) if np.isfinite(x) else None for x in ratio]
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
                         "computed",
                         "give inertias above zero", "inertia-not-positive")
    a2, a1, b1 = (np.array([getattr(loop, name) for loop in loops]) for name in ("a2", "a1", "b1"))
    places = tuple(names.index(loop.joint) for loop in loops)
    moved = own[list(places)]
    return ControllerFit(loops, own, places, moved / a2, moved * a1 / a2, b1 / a1)
