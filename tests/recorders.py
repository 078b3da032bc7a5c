"""Files as the recorders of bus servos write them, with the defects of real recordings, from a plain simulation."""

from __future__ import annotations

import json

import numpy as np

STEP = 5e-4  # s, of the integration
KT, RESISTANCE, ARMATURE, COULOMB, VISCOUS = 1.2, 2.7, 0.02, 0.04, 0.02


def trajectory(name, t):
    """Goal position and switch of the torque, as BAM's trajectories of 6 s."""
    if name == "lift_and_drop":
        u = np.clip(t / 2.0, 0.0, 1.0)
        return -np.pi / 2 * u ** 2 * (3 - 2 * u), t < 2.0
    if name == "sin_time_square":
        return np.sin(t ** 2), True
    if name == "sin_sin":
        return np.sin(t) * np.pi / 2 + np.sin(5 * t) * 0.5 * np.sin(2 * t), True
    if name == "nothing":
        return 0.0, False
    u = np.clip(t / 3.0, 0.0, 1.0)
    return np.pi / 2 * (u ** 2 * (3 - 2 * u)), True


def bam_file(path, name, *, kp=16, mass=0.3, length=0.15, vin=7.4, gain=0.166, limit=0.97, motor="sts3215", seed=0,
             sag=0.0, duration=6.0, **facts):
    """Write a log of a pendulum bench: stamps of a bus that jitters and drops packets, 12 bits."""
    rng = np.random.default_rng(seed)
    stamps, now = [], 0.0
    while now < duration:
        stamps.append(now)
        now += 0.012 + 0.004 * rng.random() + (0.05 if rng.random() < 0.01 else 0.0)
    entries, q, dq, at = [], 0.0, 0.0, 0.0
    count = 2 * np.pi / 4096
    for stamp, until in zip(stamps, [*stamps[1:], duration], strict=True):
        goal, on = trajectory(name, stamp)
        entries.append({"position": round(q / count) * count, "speed": dq, "load": 0.0,
                        "input_volts": round(10 * (vin - sag * abs(dq))) / 10, "temp": 31.0, "timestamp": stamp,
                        "goal_position": float(goal), "torque_enable": bool(on)})
        while at < until:
            volts = (vin - sag * abs(dq)) * np.clip(gain * kp * (goal - q), -limit, limit)
            motor_torque = KT / RESISTANCE * (volts - KT * dq) if on else 0.0
            inertia = mass * length ** 2 + ARMATURE
            torque = motor_torque - VISCOUS * dq - 9.81 * mass * length * np.sin(q)
            dq += STEP / inertia * (torque - np.clip(torque + inertia * dq / STEP, -COULOMB, COULOMB))
            q += STEP * dq
            at += STEP
    table = {"mass": mass, "length": length, "kp": kp, "vin": vin, "motor": motor, "trajectory": name, **facts}
    path.write_text(json.dumps({**table, "entries": entries}))
    return path
