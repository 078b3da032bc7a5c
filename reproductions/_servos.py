"""Logs of servos with a pendulum, simulated at a fine step by formulas of their own: dynid only compiles the loop.

A step is: half a step of the position, a whole step of the velocity, and half a
step of the position. A step in which the velocity changes its sign is divided where it is zero: from there the joint
rests if friction can hold it. The drive sees the position through its encoder, and receives each command, held until
the next, after a delay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.kernel_store import njit

Array = NDArray[np.float64]
GRAVITY = 9.81
FRICTION_NAMES = ("coulomb", "viscous", "stribeck", "stribeck_speed", "load_motor", "load_external",
                  "stribeck_load_motor", "stribeck_load_external", "quadratic_motor", "quadratic_external")
GAINS = {"kp": 0.0, "ki": 0.0, "kd": 0.0, "kt": 1.0, "resistance": 1.0, "kv": 0.0, "vin": 1.0, "gain": 1.0,
         "limit": 1.0}  # with their values where a servo states none
PROPORTIONAL, VOLTAGE, CASCADE, CURRENT = 0, 1, 2, 3  # "pd" and "pid" have one formula
LAWS = {"voltage": VOLTAGE, "cascade": CASCADE, "current": CURRENT}
COMPILED = {"nogil": True, "cache": True, "error_model": "numpy"}


@dataclass(frozen=True)
class Servo:
    """Truth of one log: pendulum, law ("pd", "pid", "cascade", "voltage", "current"), its gains and the friction of the
    joint. With "current", commands are currents, A, and the pendulum starts at rest below its axis.

    bias: by which the encoder shows too much, rad. backlash: play between encoder and joint, rad.
    """

    mass: float
    length: float
    armature: float
    law: str
    gains: Mapping[str, float]
    friction: Mapping[str, float]
    delay: float = 0.0
    offset: float = 0.0
    torque_limit: float = np.inf
    bias: float = 0.0
    backlash: float = 0.0


@njit(**COMPILED)
def _budget(f, motor, external, speed):
    """Friction budget of BAM, M6 with all parameters, which have the order of FRICTION_NAMES."""
    coulomb, _, stribeck, stribeck_speed, load_motor, load_external = f[0], f[1], f[2], f[3], f[4], f[5]
    fade = math.exp(-(speed / stribeck_speed) ** 2)
    total = coulomb + abs(load_external * external - load_motor * motor)
    total += fade * (stribeck + abs(f[7] * external - f[6] * motor))
    if np.sign(external) != np.sign(motor):
        total += fade * (f[9] * external ** 2 if abs(external) < abs(motor) else f[8] * motor ** 2)
    return total


@njit(**COMPILED)
def _clip(x, limit):
    return min(max(x, -limit), limit)


@njit(**COMPILED)
def _pushed(law, gains, f, body, v, z, half, error, wanted, span):
    """Velocity and integral after `span` s, with friction against the velocity or the push; and the mean speed."""
    kp, ki, kd, kt, resistance, kv, vin, scale, clip = gains
    moment, inertia, offset, limit = body
    external = -moment * math.sin(half)
    middle, after, grown = v, v, z
    for _ in range(3):  # again with the velocity and the integral in the middle of the step
        loop = kp * error - middle
        grown = z + span * (loop if law == CASCADE else error)
        integral = 0.5 * (z + grown)
        if law == VOLTAGE:
            motor = kt * vin * _clip(scale * kp * error, clip) / resistance - kt ** 2 * middle / resistance
        elif law == CASCADE:
            motor = kt * (kv * loop + ki * integral)
        elif law == CURRENT:
            motor = kt * wanted
        else:
            motor = kp * error + ki * integral - kd * middle
        motor = _clip(motor, limit)
        net = motor + external - offset - f[1] * middle
        most = _budget(f, motor, external, middle)
        dry = np.sign(v) * most if v != 0.0 else _clip(net, most)
        after = v + span * (net - dry) / inertia
        middle = 0.5 * (v + after)
    return after, grown, middle


@njit(**COMPILED)
def _seen(x, counts):
    """What an encoder shows of a position; counts are per radian, 0 without rounding."""
    return np.round(x * counts) / counts if counts > 0.0 else x


@njit(**COMPILED)
def _simulate_one(law, gains, f, body, sensor, late, commands, every, h, out):
    """Write the encoder positions of one servo, one per command, into `out`; commands are delayed by `late` steps."""
    bias, play, counts = sensor
    q = 0.0 if law == CURRENT else commands[0] - bias
    v, z, shown = 0.0, 0.0, q  # the play moves what the encoder shows
    for step in range(len(commands) * every):
        if step % every == 0:
            out[step // every] = _seen(shown + bias, counts)
        half = q + 0.5 * h * v
        wanted = commands[max((step - late) // every, 0)]
        error = wanted - _seen(min(max(shown, half - play), half + play) + bias, counts)
        after, grown, middle = _pushed(law, gains, f, body, v, z, half, error, wanted, h)
        if v * after < 0.0:
            first = v / (v - after) * h
            _, at_rest, _ = _pushed(law, gains, f, body, v, z, half, error, wanted, first)
            after, grown, mean = _pushed(law, gains, f, body, 0.0, at_rest, half, error, wanted, h - first)
            middle = (0.5 * v * first + mean * (h - first)) / h
        q, v, z = q + h * middle, after, grown
        shown = min(max(shown, q - play), q + play)


def simulate(servos: Sequence[Servo], commands: Array, rate: float, *, bits: int | None = 12,
             step: float = 5e-4) -> Array:
    """Encoder positions (logs, rows) of servos that follow commands (logs, rows), held at `rate` Hz."""
    every = max(round(1.0 / (rate * step)), 1)
    h = 1.0 / (rate * every)
    counts = 0.0 if bits is None else 2 ** bits / (2 * np.pi)
    out = np.zeros(commands.shape)
    for one, wanted, shown in zip(servos, commands, out, strict=True):
        gains = tuple(float(one.gains.get(name, default)) for name, default in GAINS.items())
        friction = np.array([one.friction.get(name, 0.0) for name in FRICTION_NAMES])
        friction[3] = friction[3] if friction[3] > 0.0 else 1.0
        body = (one.mass * one.length * GRAVITY, one.mass * one.length ** 2 + one.armature, float(one.offset),
                float(one.torque_limit))
        _simulate_one(LAWS.get(one.law, PROPORTIONAL), gains, friction, body,
                      (float(one.bias), 0.5 * one.backlash, counts), round(one.delay / h), np.array(wanted), every, h,
                      shown)
    return out


def motions(count: int, rows: int, rate: float, seed: int | Sequence[int], reach: float = 0.9) -> Array:
    """Commands (count, rows): sums of sines of 0.1 to 2.5 Hz with steps between them, each log its own."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / rate
    found = np.zeros((count, rows))
    for k in range(count):
        waves = [np.sin(2 * np.pi * f * t + phase) / (0.5 + f)
                 for f, phase in zip(rng.uniform(0.1, 2.5, 7), rng.uniform(0, 2 * np.pi, 7), strict=True)]
        steps = rng.uniform(-0.5, 0.5, rows // int(2 * rate) + 1)[np.arange(rows) // int(2 * rate)]
        found[k] = np.sum(waves, axis=0) + steps
        found[k] *= reach / np.max(np.abs(found[k]))
    return found
