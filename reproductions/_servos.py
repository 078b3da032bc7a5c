"""Logs of servos with a pendulum, simulated in plain numpy at a fine step: a source that shares no code with dynid.

Many logs are simulated side by side. A step is: half a step of the position, a whole step of the velocity, and half a
step of the position. A step in which the velocity changes its sign is divided where it is zero: from there the joint
rests if friction can hold it. The drive sees the position through its encoder, and receives each command, held until
the next, after a delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
GRAVITY = 9.81
FRICTION_NAMES = ("coulomb", "viscous", "stribeck", "stribeck_speed", "load_motor", "load_external",
                  "stribeck_load_motor", "stribeck_load_external", "quadratic_motor", "quadratic_external")


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


def budget(f: Mapping[str, Array], motor: Array, external: Array, speed: Array) -> Array:
    """Friction budget of BAM, M6 with all parameters."""
    fade = np.exp(-np.abs(speed / f["stribeck_speed"]) ** 2)
    total = f["coulomb"] + np.abs(f["load_external"] * external - f["load_motor"] * motor)
    total = total + fade * (f["stribeck"] + np.abs(f["stribeck_load_external"] * external
                                                   - f["stribeck_load_motor"] * motor))
    opposed = np.sign(external) != np.sign(motor)
    square = np.where(np.abs(external) < np.abs(motor), f["quadratic_external"] * external ** 2,
                      f["quadratic_motor"] * motor ** 2)
    return total + fade * np.where(opposed, square, 0.0)


def simulate(servos: Sequence[Servo], commands: Array, rate: float, *, bits: int | None = 12,
             step: float = 5e-4) -> Array:
    """Encoder positions (logs, rows) of servos that follow commands (logs, rows), held at `rate` Hz."""
    count, rows = commands.shape
    every = max(round(1.0 / (rate * step)), 1)
    h = 1.0 / (rate * every)

    def each(values: Sequence[float]) -> Array:
        return np.array(values, dtype=float)

    def gain(name: str, default: float = 0.0) -> Array:
        return each([one.gains.get(name, default) for one in servos])

    friction = {name: each([one.friction.get(name, 0.0) for one in servos]) for name in FRICTION_NAMES}
    friction["stribeck_speed"] = np.where(friction["stribeck_speed"] > 0, friction["stribeck_speed"], 1.0)
    moment = each([one.mass * one.length * GRAVITY for one in servos])
    inertia = each([one.mass * one.length ** 2 + one.armature for one in servos])
    delay, offset = each([one.delay for one in servos]), each([one.offset for one in servos])
    limit = each([one.torque_limit for one in servos])
    voltage = np.array([one.law == "voltage" for one in servos])
    cascade = np.array([one.law == "cascade" for one in servos])
    current = np.array([one.law == "current" for one in servos])
    bias, play = each([one.bias for one in servos]), each([0.5 * one.backlash for one in servos])
    kp, ki, kd = gain("kp"), gain("ki"), gain("kd")
    kt, resistance, kv = gain("kt", 1.0), gain("resistance", 1.0), gain("kv")
    vin, scale, clip = gain("vin", 1.0), gain("gain", 1.0), gain("limit", 1.0)
    counts = np.inf if bits is None else 2 ** bits / (2 * np.pi)
    late = np.round(delay / h).astype(int)
    q, v, z = np.where(current, 0.0, commands[:, 0] - bias), np.zeros(count), np.zeros(count)
    shown = q.copy()  # by the encoder, which the play moves
    out, log = np.zeros((count, rows)), np.arange(count)
    seen = (lambda x: x) if bits is None else (lambda x: np.round(x * counts) / counts)

    def pushed(v: Array, z: Array, half: Array, error: Array, wanted: Array, span: Array) -> tuple[Array, Array, Array]:
        """Velocity and integral after `span` s, with friction against the velocity or the push; and the mean speed."""
        duty = np.clip(scale * kp * error, -clip, clip)
        external = -moment * np.sin(half)
        middle, after, grown = v, v, z
        for _ in range(3):  # again with the velocity and the integral in the middle of the step
            loop = kp * error - middle
            grown = z + span * np.where(cascade, loop, error)
            integral = 0.5 * (z + grown)
            motor = np.where(voltage, kt * vin * duty / resistance - kt ** 2 * middle / resistance, 0.0)
            motor = np.where(cascade, kt * (kv * loop + ki * integral), motor)
            motor = np.where(voltage | cascade, motor, kp * error + ki * integral - kd * middle)
            motor = np.where(current, kt * wanted, motor)
            motor = np.clip(motor, -limit, limit)
            net = motor + external - offset - friction["viscous"] * middle
            most = budget(friction, motor, external, middle)
            dry = np.where(v != 0.0, np.sign(v) * most, np.clip(net, -most, most))
            after = v + span * (net - dry) / inertia
            middle = 0.5 * (v + after)
        return after, grown, middle

    whole = np.full(count, h)
    for row in range(rows):
        out[:, row] = seen(shown + bias)
        for s in range(every):
            at = np.maximum((row * every + s - late) // every, 0)
            half = q + 0.5 * h * v
            wanted = commands[log, at]
            error = wanted - seen(np.clip(shown, half - play, half + play) + bias)
            after, grown, middle = pushed(v, z, half, error, wanted, whole)
            turned = v * after < 0.0
            if turned.any():
                first = np.where(turned, v / np.where(turned, v - after, 1.0), 1.0) * h
                _, at_rest, _ = pushed(v, z, half, error, wanted, first)
                last, later, mean = pushed(np.where(turned, 0.0, v), at_rest, half, error, wanted, h - first)
                middle = np.where(turned, (0.5 * v * first + mean * (h - first)) / h, middle)
                after, grown = np.where(turned, last, after), np.where(turned, later, grown)
            q, v, z = q + h * middle, after, grown
            shown = np.clip(shown, q - play, q + play)
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
