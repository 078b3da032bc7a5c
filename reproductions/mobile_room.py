"""Mobile robot in a room (Ardiani, E.2.1, E.3.2): an exciting motion inside limits, with slip and external forces.

The document searches for its motion by SQP with limits on position, speed, acceleration and heading, and prints neither
these limits nor the path. This study uses a room of 6 m by 6 m, 1 m/s, 1.5 rad/s, 1 m/s^2, 2 rad/s^2, and a heading
within half a turn of the start. The Fourier series has five terms, 0.1 rad/s and 30 s, as printed.

The robot is that of table E.1, with the noise and the slips of `mobile-robot`. Pushes are steps of force on its body, a
quarter of the largest torque of the wheels, which no sensor measures. Instrumental variables are not better than least
squares if the robot is pushed, so this is not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem, identify
from dynid.excitation.room import Room, RoomMotion, room_motion, speeds_condition
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.simulation import Poles, Reference, Simulation, simulate
from reproductions.mobile_robot import BASE, DRIVE, DURATION, PULSATION, RATE, logged
from reproductions.mobile_robot import motion as printed_motion

ROOM = Room(3.0, 1.0, 1.5, 1.0, 2.0, np.pi)
STARTS, LOGS, OMEGA = 4, 4, 10.0  # random starts of the search, seeds, rad/s of the wheels' loops
PUSH, PUSH_TIME = 0.25, 0.5  # of the largest torque, s
METHODS = ("LS", "IV")


def designed() -> tuple[RoomMotion, list[float]]:
    """Return the motion with the smallest condition number of several searches, and the condition number of each
    search."""
    found = [room_motion(ROOM, pulsation=PULSATION, duration=DURATION, seed=seed) for seed in range(STARTS)]
    numbers = [one.condition_number() for one in found]
    return found[int(np.argmin(numbers))], numbers


def wheels_of(series: RoomMotion) -> Reference:
    """Return the motion as angles of both wheels."""
    speeds, rates, _ = series.sampled(RATE)
    inverse = np.linalg.inv(DRIVE.to_body)
    dq, ddq = speeds @ inverse.T, rates @ inverse.T
    q = np.vstack([np.zeros(2), np.cumsum(0.5 * (dq[1:] + dq[:-1]), axis=0) / RATE])
    return Reference(q, dq, ddq, RATE)


def pushed(reference: Reference, peak: float, seed: int) -> tuple[Simulation, Array]:
    """Return the robot with forward and backward steps of force on its body, and the equivalent torques of its wheels
    (ticks, 2)."""
    law = Poles(OMEGA).tuned(np.diag(DRIVE.inertia_matrix(BASE.theta, np.zeros(2))))
    kp, kv = np.asarray(law.kp), np.asarray(law.kv)
    rng, force = np.random.default_rng([seed, 7]), np.zeros((len(reference.q), 2))
    rows = int(PUSH_TIME * RATE)
    for sign in (1.0, -1.0):
        at = int(rng.integers(len(force) - rows))
        force[at:at + rows, 0] += sign * 2.0 * PUSH * peak / BASE.radius
    shove = BASE.wheel_torques(BASE.disturbance(np.zeros(len(force)), force=force))

    def torque(t: float, q: Array, dq: Array, qr: Array, dqr: Array, ddqr: Array) -> Array:
        return kv * (kp * (qr - q) - dq) + shove[min(int(t * RATE + 0.5), len(force) - 1)]

    return simulate(DRIVE, BASE.theta, torque, reference, step=1.0 / RATE / 4.0), shove


def estimates(log: Recording) -> dict[str, Array]:
    """Return estimates by filtered least squares and by instrumental variables without a filter, as in `mobile-robot`.
    """
    measured: dict[str, Any] = {"velocity": "measured", "velocity_delay": 0.0, "slow": 0.0}
    smooth = prepare(log, cutoff=1.0, **measured)
    raw = prepare(log, method="none", torque_cutoff="none", decimate=5, **measured)
    return {"LS": identify(Problem.from_model(DRIVE, smooth), method="wls").full,
            "IV": identify(Problem.from_model(DRIVE, raw, recordings=log, controller=Poles(OMEGA)), method="iv").full}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("looking for a motion inside the room")
    series, numbers = designed()
    speeds, rates, planned = series.sampled(RATE)
    printed = printed_motion()
    theirs = printed.dq @ DRIVE.to_body.T, printed.ddq @ DRIVE.to_body.T
    truth, reference = BASE.theta, wheels_of(series)
    moved = simulate(DRIVE, truth, Poles(OMEGA), reference, step=0.25 / RATE)
    path = DRIVE.pose(moved.dq, RATE)
    peak = float(np.abs(moved.tau).max())
    off: dict[str, dict[str, list[float]]] = {case: {name: [] for name in METHODS}
                                              for case in ("white noise", "slips", "pushes")}
    drift: dict[str, list[float]] = {"white noise": [], "slips": [], "slips known": []}
    for seed in range(LOGS):
        progress(f"log {seed + 1} of {LOGS}")
        plain, slipping = (logged(moved, reference, seed, kind) for kind in (False, True))
        other, force = pushed(reference, peak, seed)
        shoved = logged(other, reference, seed, False)
        shoved = Recording(shoved.t, shoved.q, shoved.tau - force, dq=shoved.dq, reference=shoved.reference,
                           reference_velocity=shoved.reference_velocity, joints=shoved.joints, source=shoved.source)
        for case, log in (("white noise", plain), ("slips", slipping), ("pushes", shoved)):
            for name, found in estimates(log).items():
                off[case][name].append(100.0 * float(np.median(np.abs(found / truth - 1.0))))
        slip = BASE.radius * (np.asarray(plain.dq) - np.asarray(slipping.dq))  # the wheels turn more than they roll
        for case, log, known in (("white noise", plain, 0.0), ("slips", slipping, 0.0),
                                 ("slips known", slipping, slip)):
            place = DRIVE.pose(log.dq, RATE, known)
            drift[case].append(float(np.linalg.norm(place[-1, :2] - path[-1, :2])))
    return _result(series, numbers, speeds_condition(*theirs), DRIVE.pose(printed.dq, RATE), path,
                   float(ROOM.left(speeds, rates, planned).min()), off, drift)


def _result(series: RoomMotion, numbers: list[float], theirs: float, their_path: Array, path: Array, left: float,
            off: dict[str, dict[str, list[float]]], drift: dict[str, list[float]]) -> dict[str, Any]:
    medians = {case: {name: float(np.median(one)) for name, one in found.items()} for case, found in off.items()}
    ends = {case: float(np.median(one)) for case, one in drift.items()}
    reach, turn = float(np.abs(path[:, :2]).max()), float(np.abs(path[:, 2]).max())
    checks = {
        f"the motion keeps to all limits, {100 * left:.1f} % left of the nearest": left >= 0.0,
        f"the robot that follows it stays in the room and makes no circle: {reach:.2f} of {ROOM.half:g} m, {turn:.2f} "
        f"of {ROOM.heading:.2f} rad": reach <= ROOM.half and turn <= ROOM.heading,
        f"all {STARTS} searches end below a condition number of 5, {max(numbers):.2f} at most": max(numbers) < 5.0,
        "they end at different motions, as the document says of local minima": np.ptp(numbers) > 1e-3,
        f"white noise: LS {medians['white noise']['LS']:.2f}, IV {medians['white noise']['IV']:.2f} % off in the "
        "median parameter and log, below 5": max(medians["white noise"].values()) < 5.0,
        f"slips and pushes: LS gets worse, {medians['slips']['LS']:.1f} and {medians['pushes']['LS']:.1f} %": min(
            medians[case]["LS"] for case in ("slips", "pushes")) > medians["white noise"]["LS"],
        f"slips: IV is better than LS, {medians['slips']['IV']:.1f} and {medians['slips']['LS']:.1f} %":
            medians["slips"]["IV"] < medians["slips"]["LS"],
        f"the pose from wheel speeds alone ends {100 * ends['slips']:.0f} cm off with slips, "
        f"{100 * ends['white noise']:.1f} without, {100 * ends['slips known']:.1f} where eq. E.3 counts them":
            ends["slips"] > 3.0 * ends["white noise"] and ends["slips known"] < 1.5 * ends["white noise"] + 1e-6}
    return {"cosines": series.cosines.tolist(), "sines": series.sines.tolist(), "condition_numbers": numbers,
            "condition_printed_motion": theirs, "path": path[::10].tolist(), "printed_path": their_path[::10].tolist(),
            "off_percent": off, "medians": medians, "end_off_m": drift,
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    path, theirs = np.array(result["path"]), np.array(result["printed_path"])
    rows = [("what", "table E.2", "in the room")]
    rows.append(("condition number of the regressor", f"{result['condition_printed_motion']:.1f}",
                 f"{min(result['condition_numbers']):.2f}"))
    for k, name in enumerate(("x, m", "y, m", "heading, rad")):
        rows.append((f"{name}, from and to",
                     *(f"{one[:, k].min():.2f}, {one[:, k].max():.2f}" for one in (theirs, path))))
    for case, found in result["medians"].items():
        rows += [(f"{case}, {name}: off in the median, %", "", f"{value:.2f}") for name, value in found.items()]
    rows += [(f"{case}: end of the pose off, m", "", f"{np.median(found):.3f}")
             for case, found in result["end_off_m"].items()]
    return rows
