"""Contacts of Ardiani, s. 4.9, on a virtual KUKA iiwa: detection time and link of pushes of 40 N, and false alarms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.contacts import ContactLog, ExternalWrench, find_contacts
from dynid.estimate import Problem, identify
from dynid.recording.sample_preparation import prepare
from reproductions._pushes import Push, motion, pushed, random_pushes
from reproductions.online_iiwa import Machine, machine, random_points

OWN_STUDY = True  # no document prints it
FORCE, LINKS = 40.0, ("link2", "link3", "link4", "link5", "link6", "link7")
POINTS, LOGS, FREE_LOGS = 20, 2, 10  # of a motion; logs with pushes of each kind; logs of about 100 s without
IN_ALL = {"logs": 1, "free_logs": 4}  # the smaller study of `--all`: about 120 pushes and 7 minutes of free motion
IN_TIME = 0.02  # s
FELT = 2.0  # times the alarm's level that a push must reach in the joints, to be known when most of it is in the filter
AXES = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")


def singular_points(made: Machine, seed: int) -> Array:
    """Postures near those in which the elbow is stretched, the wrist's axes are parallel, or the arm stands upright."""
    rng = np.random.default_rng(seed)
    points = random_points(made.model.robot, seed, POINTS)
    points[:, 3] = 0.1 * rng.normal(size=POINTS)
    points[::2, 5] = 0.05 * rng.normal(size=POINTS // 2)
    points[1::4, 1] = 0.05 * rng.normal(size=POINTS // 4)
    return points


def judged(made: Machine, outside: ExternalWrench, found: ContactLog, push: Push) -> dict[str, Any]:
    """Return when a push was detected, on which link, and the error of its wrench at that link."""
    robot, window, rows = made.model.robot, outside.free.options.used_window, found.rows
    alarms = np.flatnonzero((rows.statistic > outside.free.level) & (rows.t + found.delay >= push.start)
                            & (rows.t < push.stop))
    felt = next((one for one in found.contacts if one.start < push.stop and one.stop > push.start), None)
    inner = rows.rows(np.flatnonzero((rows.t > push.start + window) & (rows.t < push.stop - window)))
    truth = push.at_link(robot, inner.torques.q)
    wrench, covariance = outside.at_frame(inner, push.link)
    std = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    plain = (np.linalg.pinv(np.swapaxes(dynamics.jacobian(robot, push.link, inner.torques.q), 1, 2))
             @ inner.torques.tau[:, :, None])[:, :, 0]
    torques = np.einsum("mij,mi->mj", dynamics.jacobian(robot, push.link, inner.torques.q), truth)
    return {"link": push.link, "found": None if felt is None else felt.link,
            "after": float(rows.t[alarms[0]] + found.delay - push.start) if len(alarms) else None,
            "felt": float(np.linalg.norm(torques.mean(axis=0))),
            "levels": float(np.mean(np.sum(torques * np.linalg.solve(inner.torque_covariance, torques[:, :, None])
                                           [:, :, 0], axis=1))) / outside.free.level,
            "inside": np.mean(np.abs(wrench - truth) < 2.0 * std, axis=0).tolist(),
            "rms": float(np.sqrt(np.mean(np.sum((wrench - truth)[:, :3] ** 2, axis=1)))),
            "plain_rms": float(np.sqrt(np.mean(np.sum((plain - truth)[:, :3] ** 2, axis=1)))),
            "std": float(np.sqrt(np.mean(np.sum(std[:, :3] ** 2, axis=1))))}


def summed(pushes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    after = np.array([np.inf if one["after"] is None else one["after"] for one in pushes])
    clear = np.array([one["levels"] >= FELT for one in pushes])
    return {"pushes": len(pushes), "in_time": int(np.sum(after <= IN_TIME)), "clear": int(clear.sum()),
            "clear_in_time": int(np.sum(after[clear] <= IN_TIME)),
            "found": int(np.isfinite(after).sum()), "weak_felt_Nm": [one["felt"] for one, yes in
                                                                      zip(pushes, clear, strict=True) if not yes],
            "median_ms": 1e3 * float(np.median(after)), "slowest_ms": 1e3 * float(np.max(after[np.isfinite(after)])),
            "late": [{k: one[k] for k in ("link", "felt", "levels", "after")}
                     for one, t in zip(pushes, after, strict=True) if t > IN_TIME],
            "right_link": int(sum(one["link"] == one["found"] for one in pushes)),
            "inside_percent": (100.0 * np.mean([one["inside"] for one in pushes], axis=0)).tolist(),
            "force_rms": float(np.sqrt(np.mean([one["rms"] ** 2 for one in pushes]))),
            "plain_rms": float(np.sqrt(np.mean([one["plain_rms"] ** 2 for one in pushes]))),
            "median_rms": float(np.median([one["rms"] for one in pushes])),
            "median_plain_rms": float(np.median([one["plain_rms"] for one in pushes])),
            "force_std": float(np.sqrt(np.mean([one["std"] ** 2 for one in pushes])))}


def free_time(made: Machine, outside: ExternalWrench, logs: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the false alarms in motion without contact, and the rate that follows from the largest values of the
    statistic."""
    seconds, alarms, maxima = 0.0, 0, []
    block = round(5.0 * outside.free.options.used_window * outside.free.options.rate)
    for k in range(logs):
        progress(f"free motion, {k + 1} of {logs}, {alarms} false alarms so far")
        log = made.log(random_points(made.model.robot, 1000 + k, POINTS), 1000 + k)
        rows, _ = outside.of_log(log)
        alarms += int(np.sum(np.diff(rows.touched.astype(int)) == 1) + rows.touched[0])
        seconds += len(rows) / outside.free.options.rate
        count = len(rows) // block
        maxima.append(rows.statistic[:count * block].reshape(count, block).max(axis=1))
    largest = np.sort(np.concatenate(maxima))[::-1]
    kept = max(20, len(largest) // 50)  # the largest two in a hundred: the tail that is extrapolated
    excess = float(np.mean(largest[:kept] - largest[kept]))
    rate = kept / seconds * np.exp(-max(outside.free.level - float(largest[kept]), 0.0) / excess)
    return {"hours": seconds / 3600.0, "alarms": alarms, "an_hour_by_the_tail": 3600.0 * float(rate),
            "level": outside.free.level, "largest": largest[:5].tolist()}


def run(progress: Callable[[str], None], logs: int = LOGS, free_logs: int = FREE_LOGS) -> dict[str, Any]:
    made = machine()
    robot = made.model.robot
    progress("identifying the robot")
    samples = prepare(made.log(random_points(robot, 1, POINTS), 1), cutoff=8.0, slow=0.01)
    estimate = identify(Problem.from_model(made.model, samples, base=made.base), method="wls")
    outside = ExternalWrench(estimate, "link7", free=made.log(random_points(robot, 2, POINTS), 2))
    kinds = {"anywhere": lambda seed: random_points(robot, seed, POINTS),
             "near singular postures": lambda seed: singular_points(made, seed)}
    found: dict[str, Any] = {}
    for number, (kind, points) in enumerate(kinds.items()):
        one = []
        for k in range(logs):
            progress(f"pushes {kind}, log {k + 1} of {logs}")
            seed = 200 + 10 * number + k
            reference = motion(made, points(seed))
            pushes = random_pushes(robot, reference.duration, FORCE, seed, LINKS)
            contacts = find_contacts(outside, pushed(made, reference, pushes, seed))
            one += [judged(made, outside, contacts, push) for push in pushes]
        found[kind] = summed(one)
    free = free_time(made, outside, free_logs, progress)
    checks: dict[str, bool] = {}
    for kind, one in found.items():
        checks |= {
            f"pushes of {FORCE:g} N {kind}: {one['clear_in_time']} of {one['clear']} that the joints feel with "
            f"{FELT:g} levels known within {1e3 * IN_TIME:g} ms, in the median after {one['median_ms']:.1f} ms; "
            f"{one['in_time']} of all {one['pushes']}": one["clear_in_time"] == one["clear"],
            f"{kind}: at least 90 % inside two stated deviations on every axis (at least "
            f"{min(one['inside_percent']):.1f} %)": min(one["inside_percent"]) >= 90.0,
            f"{kind}: {one['force_rms']:.1f} N off in the mean, the pseudo-inverse {one['plain_rms']:.0f} N":
                one["force_rms"] < one["plain_rms"]}
    checks[f"{free['alarms']} false alarms in {free['hours']:.2f} h of free motion, {free['an_hour_by_the_tail']:.2f} "
           "an hour by the tail of what was seen, at most one an hour is stated"] = (
        free["alarms"] <= max(1.0, free["hours"]) and free["an_hour_by_the_tail"] <= 1.0)
    return {"logs": logs, "free_logs": free_logs, "pushes": found, "free": free,
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("pushes", *result["pushes"])]
    every = list(result["pushes"].values())
    rows += [(words, *(form(one) for one in every)) for words, form in (
        ("known within 20 ms", lambda one: f"{one['in_time']} of {one['pushes']}"),
        ("of those that joints feel", lambda one: f"{one['clear_in_time']} of {one['clear']}"),
        ("known after, median and slowest, ms", lambda one: f"{one['median_ms']:.1f}, {one['slowest_ms']:.1f}"),
        ("on the right link", lambda one: f"{one['right_link']} of {one['pushes']}"),
        ("force off, rms and stated, N", lambda one: f"{one['force_rms']:.1f}, {one['force_std']:.1f}"),
        ("force off, median push, N", lambda one: f"{one['median_rms']:.1f}"),
        ("by the pseudo-inverse, rms and median, N", lambda one: f"{one['plain_rms']:.0f}, "
                                                                 f"{one['median_plain_rms']:.1f}"))]
    rows += [(f"inside two deviations, {name}, %", *(f"{one['inside_percent'][k]:.1f}" for one in every))
             for k, name in enumerate(AXES)]
    free = result["free"]
    rows.append((f"false alarms in {free['hours']:.2f} h", str(free["alarms"]),
                 f"{free['an_hour_by_the_tail']:.2f} an hour by the tail"))
    return rows
