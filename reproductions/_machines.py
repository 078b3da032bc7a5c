"""Six virtual machines with known parameters, a control law, a motion, and recordings in open and closed loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.simulation import Cascade, Poles, Reference, VirtualRobot

RATE, SECONDS, HARMONICS = 500.0, 12.0, 6
SPEED, SLIDING_SPEED = 1.5, 0.4  # greatest, rad/s and m/s
BANDWIDTH = 6.0  # Hz
COUNT, SLIDING_COUNT = 1e-4, 2e-5  # rad and m a step of the encoders, and as much white noise
COARSE_COUNT = 2.0 * np.pi / 2 ** 15  # rad a step of an encoder of 15 bits on the joint side
PINK_MEMORIES = (0.02, 0.06, 0.2, 0.7)  # s, of the parts of equal power of noise that is pink in between
WHITE, COLOURED, MEMORY = 0.02, 0.02, 0.02  # torque noise: shares of each joint's effective torque; s
NOMINAL_WRONG = 0.2  # share by which the nominal model errs
_CANDIDATES = 20  # random motions, of which the best conditioned one is taken


def rod(mass: float, length: float, radius: float, axis: int, start: float = 0.0) -> Array:
    """Return the ten inertial parameters of a cylinder along an axis from `start` to start + length, slightly
    off-centre."""
    com = np.full(3, 0.1 * radius)
    com[axis] = start + 0.5 * length
    across, along = mass * (3 * radius ** 2 + length ** 2) / 12.0, 0.5 * mass * radius ** 2
    return ten.from_central(mass, com, np.diag([along if k == axis else across for k in range(3)]))


def scara() -> Robot:
    """Return a SCARA: two vertical axes, a prismatic axis and a wrist."""
    rows = [(0.0, 0.0, 0.0, 0.0, "revolute"), (0.0, 0.35, 0.0, 0.0, "revolute"), (0.0, 0.3, 0.0, 0.0, "prismatic"),
            (0.0, 0.0, 0.0, 0.0, "revolute")]
    bodies = [rod(8.0, 0.35, 0.06, 0), rod(5.0, 0.3, 0.05, 0), rod(2.0, 0.3, 0.02, 2), rod(1.0, 0.1, 0.05, 0, -0.02)]
    return Robot.from_mdh(rows, name="scara", inertias=bodies)


def gantry() -> Robot:
    """Return a gantry: three orthogonal prismatic axes and a wrist with a lever."""
    quarter = 0.5 * np.pi
    rows = [(quarter, 0.0, 0.0, 0.0, "prismatic"), (quarter, 0.0, quarter, 0.0, "prismatic"),
            (quarter, 0.0, quarter, 0.0, "prismatic"), (0.3, 0.0, 0.0, 0.0, "revolute")]
    bodies = [rod(20.0, 0.8, 0.08, 0), rod(9.0, 0.5, 0.06, 1), rod(4.0, 0.4, 0.04, 2), rod(1.5, 0.2, 0.03, 0)]
    return Robot.from_mdh(rows, name="gantry", inertias=bodies)


# Whatever had to be chosen was chosen on the first four; the others were only judged.
CHOSEN_ON, JUDGED_ON = ("scara", "arm3r", "ur10", "franka-panda"), ("gantry", "scara2")
MACHINES = (*CHOSEN_ON, *JUDGED_ON)
_OWN = {"scara": scara, "gantry": gantry}


@dataclass(frozen=True, eq=False)
class Machine:
    """A robot with rotors, dry and viscous friction, its true parameters (parameters,), and the commanded motion."""

    robot: Robot
    theta: Array
    path: Reference

    @staticmethod
    def from_name(name: str) -> Machine:
        robot = _OWN[name]() if name in _OWN else Robot.builtin(name)
        model = _model(robot)
        theta = np.array([0.0 if item.nominal is None or item.body is None else item.nominal
                          for item in model.parameters])
        path = _motion(model)
        theta = _with_losses(model, theta, path)
        return Machine(robot, theta, path)

    @cached_property
    def model(self) -> Model:
        return _model(self.robot)

    @cached_property
    def base(self) -> BaseParameters:
        return base_parameters(self.model)

    @cached_property
    def law(self) -> Cascade:
        largest = _inertia(self.model, self.theta, self.path).max(axis=0)
        return replace(Poles(2.0 * np.pi * BANDWIDTH).tuned(largest), feedforward=True)

    @cached_property
    def count(self) -> Array:
        return np.array([SLIDING_COUNT if joint.prismatic else COUNT for joint in self.robot.joints])

    @cached_property
    def quiet(self) -> Recording:
        """Return the log of the machine without noise."""
        return VirtualRobot(self.model, self.theta, self.law).record(self.path)

    def record(self, seed: int, *, closed: bool, is_coarse: bool = False, is_pink: bool = False) -> Recording:
        """Return a log with noise. In the closed loop the control law feeds the noise of the positions back into the
        torques; in the open loop only the logged signals have noise. is_coarse: encoders of revolute joints have 15
        bits and no noise except their steps. is_pink: the autocorrelated noise is pink up to 0.7 s."""
        rng = np.random.default_rng(seed)
        log = self.quiet
        size = np.sqrt(np.mean(log.tau ** 2, axis=0))
        if closed:
            count = COARSE_COUNT / COUNT * self.count if is_coarse else self.count
            machine = VirtualRobot(self.model, self.theta, self.law, encoder=count,
                                   position_noise=0.0 * count if is_coarse else count, speed="difference")
            part = count * rng.uniform(-0.5, 0.5, self.model.dof)
            log = machine.record(replace(self.path, q=self.path.q + part), seed=int(rng.integers(2 ** 31)))
        else:
            read = log.q + self.count * rng.normal(size=log.q.shape)
            log = replace(log, q=self.count * np.round(read / self.count))
        noise = WHITE * rng.normal(size=log.tau.shape)
        memories = PINK_MEMORIES if is_pink else (MEMORY,)
        noise += COLOURED / np.sqrt(len(memories)) * np.sum(
            [coloured(rng, log.tau.shape, memory * RATE) for memory in memories], axis=0)
        return replace(log, tau=log.tau + size * noise)

    def nominal(self, seed: int, wrong: float = NOMINAL_WRONG) -> Array:
        """Return nominal parameters (parameters,) of a physically consistent robot with relative errors of a fifth by
        default: a random affine map of the mass density of every body, and random factors on the other parameters."""
        rng = np.random.default_rng([seed, 1])
        theta = self.theta * np.exp(wrong * rng.normal(size=len(self.theta)))
        for places in self.model.parameters.bodies.values():
            pseudo = ten.pseudo_inertia(self.theta[places])
            size = np.sqrt(np.trace(pseudo[:3, :3]) / pseudo[3, 3])
            units = np.array([size, size, size, 1.0])
            turn = np.eye(4)
            turn[:3] += 0.5 * wrong * rng.normal(size=(3, 4))
            turn = turn * units[:, None] / units
            theta[places] = ten.from_pseudo_inertia(np.exp(wrong * rng.normal()) * turn @ pseudo @ turn.T)
        return theta


def coloured(rng: np.random.Generator, shape: tuple[int, int], memory: float) -> Array:
    """Return noise with a standard deviation of one whose autocorrelation falls by e in `memory` rows."""
    from scipy.signal import lfilter

    keep = np.exp(-1.0 / memory)
    news = rng.normal(size=(shape[0] + round(10 * memory), shape[1])) * np.sqrt(1.0 - keep ** 2)
    return np.asarray(lfilter([1.0], [1.0, -keep], news, axis=0))[-shape[0]:]


def _model(robot: Robot) -> Model:
    return Model(robot, make_terms(robot, ("viscous", "coulomb"), rotor=True))


def _inertia(model: Model, theta: Array, path: Reference) -> Array:
    """Return the inertia of each joint along the motion (rows, dof)."""
    return np.array([np.diag(model.inertia_matrix(theta, q)) for q in path.q[::100]])


def _motion(model: Model) -> Reference:
    """Return the random Fourier series with the smallest condition number of the regressor."""
    rng = np.random.default_rng(model.dof)
    sliding = np.array([joint.prismatic for joint in model.robot.joints])
    speed = np.where(sliding, SLIDING_SPEED, SPEED)
    t = np.arange(round(SECONDS * RATE)) / RATE
    base, found = base_parameters(model), []
    for _ in range(_CANDIDATES):
        a, b = rng.normal(size=(2, model.dof, HARMONICS))
        q0 = np.where(sliding, 0.0, rng.uniform(-0.8, 0.8, model.dof))
        top = np.abs(FourierSeries(a, b, q0, SECONDS).at(t[::10]).dq).max(axis=0)
        series = FourierSeries(a * (speed / top)[:, None], b * (speed / top)[:, None], q0, SECONDS)
        few = series.at(t[::20])
        columns = model.regressor(few.q, few.dq, few.ddq)[:, :, base.independent].reshape(-1, len(base))
        found.append((float(np.linalg.cond(columns / np.linalg.norm(columns, axis=0))), series))
    best = min(found, key=lambda item: item[0])[1].at(t)
    return Reference(best.q, best.dq, best.ddq, RATE)


def _with_losses(model: Model, theta: Array, path: Reference) -> Array:
    """Return the parameters (parameters,) with rotors of three tenths of each joint's inertia, dry friction of a tenth
    of its torque, and as much viscous friction at its largest speed."""
    inertia = _inertia(model, theta, path).mean(axis=0)
    names = model.parameters.names
    theta = theta.copy()
    for j in range(model.dof):
        theta[names.index(f"Ia{j + 1}")] = 0.3 * inertia[j]
    torque = np.sqrt(np.mean(model.inverse_dynamics(theta, path.q, path.dq, path.ddq) ** 2, axis=0))
    for j, speed in enumerate(np.abs(path.dq).max(axis=0)):
        theta[names.index(f"Fc{j + 1}")] = 0.1 * torque[j]
        theta[names.index(f"Fv{j + 1}")] = 0.1 * torque[j] / speed
    return theta
