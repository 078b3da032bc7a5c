"""Measured signals of a robot with a free base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.arrays import Array, Bools, first_not_finite
from dynid.errors import RecordingError
from dynid.floating.contacts import Contact

BaseMotion = Literal["imu", "pose", "velocity"]


@dataclass(frozen=True, eq=False)
class FootWrench:
    """A measured force, or force and moment, that acts on the robot from outside.

    Attributes:
        frame: named frame at whose origin it acts.
        values: force (samples, 3), N, or force and moment (samples, 6), N and N m.
        axes: "frame" for the axes of that frame, as of a sensor in the foot, or "world".
        radius: of a round foot, m, for a force without moment: it acts at the lowest point of the foot.
    """

    frame: str
    values: Array
    axes: Literal["frame", "world"] = "frame"
    radius: float = 0.0


@dataclass(frozen=True, eq=False)
class Imu:
    """An inertial measurement unit (IMU) at a named frame.

    Attributes:
        angular_rate: (samples, 3), rad/s, in its axes.
        specific_force: (samples, 3), m/s^2, in its axes; at rest it points upward.
        bias: (6,), constant errors that are subtracted from the angular rate and the specific force.
        bias_std: (6,), their standard errors, for the uncertainty.
    """

    frame: str
    angular_rate: Array
    specific_force: Array
    bias: Array | None = None
    bias_std: Array | None = None


@dataclass(frozen=True, eq=False)
class FloatingLog:
    """One log of a robot with a free base and n joints.

    The motion of the base is that of an IMU, or its pose (motion capture or a state estimator), or its orientation and
    velocity.

    Attributes:
        t: time (samples,), s.
        q: joint positions (samples, n), rad or m.
        tau: joint torques (samples, n), N m, or None where they are not measured.
        position: position of the root link in the world (samples, 3), m.
        orientation: unit quaternion of the root link, x y z w (samples, 4).
        imu: an IMU, which is used for the motion of the base if there is one.
        wrenches: measured forces on the robot.
        contacts: places that stand still while they touch the ground.
        standing: which contacts stand (samples, contacts).
        source: name of the log for messages.
        velocity: velocity of the root link's origin in the world (samples, 3), m/s.
        motion: "imu", "pose" or "velocity", if the log holds several; default the first of these that it holds.
    """

    t: Array
    q: Array
    tau: Array | None = None
    position: Array | None = None
    orientation: Array | None = None
    imu: Imu | None = None
    wrenches: tuple[FootWrench, ...] = ()
    contacts: tuple[Contact, ...] = ()
    standing: Bools | None = None
    source: str = "memory"
    velocity: Array | None = None
    motion: BaseMotion | None = None

    @property
    def base_motions(self) -> tuple[BaseMotion, ...]:
        """Sources of the motion of the base that the log holds."""
        turned = self.orientation is not None
        found = {"imu": self.imu is not None, "pose": turned and self.position is not None,
                 "velocity": turned and self.velocity is not None}
        return tuple(name for name in get_args(BaseMotion) if found[name])

    @property
    def base_motion(self) -> BaseMotion:
        """Signals from which the motion of the base is computed: "imu", "pose" or "velocity"."""
        return self.motion or self.base_motions[0]

    def pose_at(self, t: Array) -> Array | None:
        """Return position (nan where it is not logged) and quaternion of the base (samples, 7) in the rows nearest to
        times t (samples,); None without an orientation."""
        if self.orientation is None:
            return None
        rows = np.clip(np.searchsorted(0.5 * (self.t[1:] + self.t[:-1]), t), 0, len(self.t) - 1)
        position = np.full((len(self.t), 3), np.nan) if self.position is None else np.asarray(self.position)
        return np.hstack([position, np.asarray(self.orientation)])[rows]

    def __post_init__(self) -> None:
        rows = len(self.t)
        wanted = {"q": self.q, "tau": self.tau, "position": self.position, "orientation": self.orientation,
                  "velocity": self.velocity}
        widths = {"position": 3, "orientation": 4, "velocity": 3}
        for k, one in enumerate(self.wrenches):
            wanted[f"wrench {k + 1} ({one.frame})"] = one.values
        if self.imu is not None:
            wanted |= {"imu.angular_rate": self.imu.angular_rate, "imu.specific_force": self.imu.specific_force}
            widths |= {"imu.angular_rate": 3, "imu.specific_force": 3}
        for name, array in wanted.items():
            if array is None:
                continue
            width = widths.get(name, np.shape(self.q)[1] if name == "tau" else None)
            if np.ndim(array) != 2 or len(array) != rows or (width is not None and np.shape(array)[1] != width):
                raise RecordingError(f"{self.source}: {name} has shape {np.shape(array)}, expected ({rows}, "
                                     f"{width or 'k'})", code="wrong-shape")
            wrong = first_not_finite(np.asarray(array, dtype=float))
            if wrong is not None:
                raise RecordingError(f"{self.source}: {name} is not finite in row {wrong[0]}", code="not-finite")
        if not self.base_motions:
            raise RecordingError(f"{self.source} has no motion of the base; give position and orientation, or an imu",
                                 "map them with --set 'log.base_position=[...]' and --set 'log.base_orientation=[...]',"
                                 " or with --set 'log.imu_specific_force=[...]' and --set 'log.imu_angular_rate=[...]'",
                                 code="no-base-motion")
        if self.motion is not None and self.motion not in self.base_motions:
            raise RecordingError(f"{self.source} holds no motion of the base by '{self.motion}', only by "
                                 f"{', '.join(self.base_motions)}", code="no-base-motion")
        if self.standing is not None and np.shape(self.standing) != (rows, len(self.contacts)):
            raise RecordingError(f"{self.source}: standing has shape {np.shape(self.standing)}, expected ({rows}, "
                                 f"{len(self.contacts)}), a column for each contact", code="wrong-shape")
        wide = [one.frame for one in self.wrenches if np.shape(one.values)[1] not in (3, 6)]
        if wide:
            raise RecordingError(f"{self.source}: the wrench of '{wide[0]}' must have 3 or 6 columns",
                                 code="wrong-shape")
