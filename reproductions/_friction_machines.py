"""Virtual machines whose joints have one or no friction term beyond the usual ones, and their logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.excitation import FourierSeries
from dynid.model import DataContext, Model, make_terms, term_from_table
from dynid.recording import Recording
from dynid.regression import base_parameters
from dynid.robot import Robot
from reproductions._machines import coloured, gantry, scara

RATE, SECONDS, HARMONICS = 200.0, 20.0, 8
SPEED, SLIDING_SPEED = 2.0, 0.5  # greatest, rad/s and m/s
WHITE, COLOURED, MEMORY = 0.02, 0.01, 0.02  # torque noise: shares of each joint's effective torque; s
COUNT, SLIDING_COUNT = 1e-5, 2e-6  # rad and m, of the positions' white noise
EXPLAINED = 0.02  # share of its joint's torque that a term explains beyond the usual friction and the bodies
NONE = 0.4  # share of the joints that have the usual friction alone
_SHARES = {"Fv": 0.08, "Fc": 0.1, "Fo": 0.03}  # of the bodies' effective torque, at the greatest speed
_LARGEST = {"load": 0.4, "load apart": 0.4, "delay": 0.03}  # beyond which no machine has it
_OWN = {"scara": scara, "gantry": gantry}


@dataclass(frozen=True)
class Extra:
    """A term beyond the usual friction: its table, and values of its parameters by symbol, up to a common factor."""

    name: str
    table: dict[str, Any]
    values: dict[str, float]


@dataclass(frozen=True, eq=False)
class FrictionLog:
    """A log, the model of its machine without friction, the values of its usual friction by name, the largest speeds of
    the joints (dof,), and the additional friction term of each joint with its values by name, or None."""

    certain: Model
    log: Recording
    usual: dict[str, float]
    speeds: Array
    extras: tuple[Extra | None, ...]
    values: tuple[dict[str, float], ...]

    def curve(self, joint: int, velocity: Array) -> Array:
        """Return the true friction of a joint at velocities (samples,), without its offset."""
        extra, zero = self.extras[joint], np.zeros((len(velocity), self.certain.dof))
        assert extra is not None
        moving = zero.copy()
        moving[:, joint] = velocity
        model = Model(self.certain.robot, (term_from_table({**extra.table, "joints": [joint + 1]}),))
        own = model.inverse_dynamics(self.values[joint], zero, moving, zero)[:, joint]
        return np.asarray(own + self.usual[f"Fv{joint + 1}"] * velocity + self.usual[f"Fc{joint + 1}"])

    def truth(self, joint: int) -> dict[str, float]:
        """Return the true values by name of the parameters of the additional friction term of a joint."""
        extra, own = self.extras[joint], self.values[joint]
        viscous = self.usual[f"Fv{joint + 1}"] if extra is not None and extra.name == "asymmetry" else 0.0
        return {name: value + viscous for name, value in own.items()}


def drawn_extra(rng: np.random.Generator, speed: float, shaped: bool) -> Extra | None:
    """Return a random kind of friction, or none. speed: largest speed of the joint; shaped: curves that are not sums of
    steps."""
    order, angle, way = float(rng.integers(12, 40)), rng.uniform(0, 2 * np.pi), int(rng.integers(2))
    curve = Extra("curve", {"kind": "curve", "widths": [0.1, 0.3], "speed": speed},
                  {"Ft1_": rng.uniform(), "Ft2_": rng.uniform()})
    if shaped:
        curve = Extra("curve", {"kind": "stribeck", "alpha": rng.uniform(0.3, 0.6), "Kv": 1e4}, {"Fnl": 1.0})
    every = (curve, Extra("load", {"kind": "load"}, {"Fl": 1.0}),
             Extra("load apart", {"kind": "load", "separate": True}, {("Flm", "Flg")[way]: 1.0}),
             Extra("asymmetry", {"kind": "asymmetric-viscous"}, {("Fvp", "Fvn")[way]: 1.0}),
             Extra("cable", {"kind": "cable"}, {"Cc2_": np.cos(angle), "Cs2_": np.sin(angle)}),
             Extra("ripple", {"kind": "ripple", "orders": [order]},
                   {f"Rc{order:g}_": np.cos(angle), f"Rs{order:g}_": np.sin(angle)}),
             Extra("delay", {"kind": "delay"}, {"D": 1.0}))
    return None if rng.uniform() < NONE else every[rng.integers(len(every))]


def friction_log(name: str, seed: int, *, shaped: bool = False) -> FrictionLog:
    """Return a log of a machine with random friction, with noise on positions and torques."""
    robot, rng = _OWN[name]() if name in _OWN else Robot.builtin(name), np.random.default_rng([seed, len(name)])
    robot = replace(robot, terms=())
    sliding = np.array([joint.prismatic for joint in robot.joints])
    t = np.arange(round(SECONDS * RATE)) / RATE
    a, b = rng.normal(size=(2, robot.dof, HARMONICS))
    q0 = np.where(sliding, 0.0, rng.uniform(-1.0, 1.0, robot.dof))
    top = np.abs(FourierSeries(a, b, q0, SECONDS).at(t).dq).max(axis=0)
    scale = (np.where(sliding, SLIDING_SPEED, SPEED) * rng.uniform(0.6, 1.0, robot.dof) / top)[:, None]
    motion = FourierSeries(a * scale, b * scale, q0, SECONDS).at(t)
    certain = Model(robot, make_terms(robot))
    usual = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    theta = np.array([0.0 if item.nominal is None or item.body is None else item.nominal for item in usual.parameters])
    speed = np.abs(motion.dq).max(axis=0)
    size = np.sqrt(np.mean(usual.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq) ** 2, axis=0))
    for k, item in enumerate(usual.parameters):
        if item.body is None:
            theta[k] = _SHARES[item.symbol] * size[item.owner] / (speed[item.owner] if item.symbol == "Fv" else 1.0)
    tau = usual.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    size = np.sqrt(np.mean(tau ** 2, axis=0))
    base = base_parameters(usual)
    columns = usual.regressor(motion.q[::8], motion.dq[::8], motion.ddq[::8])[:, :, base.independent] / size[:, None]
    found, values, whole = list[Extra | None](), list[dict[str, float]](), tau.copy()
    for j in range(robot.dof):
        extra = drawn_extra(rng, float(speed[j]), shaped)
        added, own = _torque(usual, theta, extra, j, motion, t, tau, columns) if extra else (np.zeros(len(t)), {})
        found.append(extra if own else None)
        values.append(own)
        whole[:, j] += added
    noise = WHITE * rng.normal(size=tau.shape) + COLOURED * coloured(rng, tau.shape, MEMORY * RATE)
    q = motion.q + np.where(sliding, SLIDING_COUNT, COUNT) * rng.normal(size=tau.shape)
    friction = {item.name: value for item, value in zip(usual.parameters, theta, strict=True) if item.body is None}
    return FrictionLog(certain, Recording(t, q, whole + size * noise, joints=robot.joint_names), friction, speed,
                       tuple(found), tuple(values))


def _torque(usual: Model, theta: Array, extra: Extra, j: int, motion: Any, t: Array, tau: Array,
            columns: Array) -> tuple[Array, dict[str, float]]:
    """Return the torque (rows,) of an additional friction term, and its parameter values. The part that the columns
    (rows, joints, base) of the model cannot explain has the size `EXPLAINED`; nothing is returned if the term would
    have to be too large."""
    def torque(table: dict[str, Any], values: dict[str, float]) -> tuple[Array, dict[str, float]]:
        alone = Model(usual.robot, (term_from_table({**table, "joints": [j + 1]}),))
        model = alone.bind(DataContext(bodies=usual.body_numbers(theta)))
        own = {item.name: values.get(item.symbol, 0.0) for item in model.parameters}
        return model.regressor(motion.q, motion.dq, motion.ddq)[:, j] @ list(own.values()), own

    added, own = torque(extra.table, extra.values)
    if extra.name == "delay":
        added = -np.gradient(tau[:, j], t)
    size = np.sqrt(np.mean(tau[:, j] ** 2))
    taken = columns.reshape(-1, columns.shape[2])
    if extra.name == "load apart":  # beyond what one share of load explains, too
        same = np.zeros(columns.shape[:2])
        same[:, j] = torque({"kind": "load"}, {"Fl": 1.0})[0][::8] / size
        taken = np.column_stack([taken, same.ravel()])
    wanted = np.zeros(columns.shape[:2])
    wanted[:, j] = added[::8] / size
    left = wanted.ravel() - taken @ np.linalg.lstsq(taken, wanted.ravel(), rcond=1e-10)[0]
    factor = EXPLAINED / np.sqrt(np.sum(left ** 2) / len(wanted))
    if factor > _LARGEST.get(extra.name, np.inf):
        return np.zeros(len(t)), {}
    own = {name: factor * value for name, value in own.items()}
    return (np.interp(t - factor, t, tau[:, j]) - tau[:, j] if extra.name == "delay" else factor * added), own
