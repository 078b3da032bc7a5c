"""Ardiani, s. 4.7 and 4.8 (virtual KUKA iiwa): a payload while the robot works, constant (figure 4.3) and changing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from online_iiwa import ENCODER, NOISE, RATE, RAW, Machine, machine, random_points, raw_motion, thinned
from payload_iiwa import ASIDE, FLANGE, FRAME, MASS, POINTS, WALL, box, cylinder, with_load

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem, identify
from dynid.excitation import Limits
from dynid.excitation.waypoints import quintics_within
from dynid.model import Payload
from dynid.online import Exponential, FeedOptions, NoForgetting, Online
from dynid.payloads import LivePayload
from dynid.payloads.loaded import change_by_load
from dynid.recording.sample_preparation import prepare
from dynid.robot import inertia as ten
from dynid.simulation import ComputedTorque, Reference, VirtualRobot

CUTOFF = 8.0  # Hz, of the unloaded log, and of the stream
STATIONS = np.array([[0.6, 0.5, 0.2, -1.2, 0.3, 0.9, 0.2], [0.0, 0.1, 0.0, -1.5, -0.3, 1.1, -0.4],
                     [-0.7, 0.6, -0.2, -1.0, 0.2, 0.8, 0.5]])  # two work-stations and a point between them
WAIT, SPEED = 3.0, 0.4  # s at a work-station, and share of the top speeds
SEEDS = (11, 12, 13)
EVERY = 5  # of the masses found that is kept for figures
AT_ONCE = 20  # samples that are fed at a time
CLOSE, SOON = 0.05, 5.0  # of the mass, and s
WEIGHT, EDGE = 0.5, 0.05  # kg and m, of one weight that is put into the box
JOINT_4, JOINT_2 = ("MY4R", "ZZ4R", "XX4R"), ("MY2R", "ZZ2R", "XX2R")  # equations 4.13
SHOWN = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0)  # s, of figure 4.3


def weights(count: int) -> Array:
    """Ten numbers of a pack of weights that stands in the middle of the box."""
    mass = count * WEIGHT
    return ten.from_central(mass, [ASIDE, 0.0, FLANGE + WALL + 0.5 * EDGE], mass * EDGE ** 2 / 6.0 * np.eye(3))


def nothing() -> Array:
    return np.zeros(10)


def trip(made: Machine, points: Array, seed: int, load: Array) -> tuple[Array, Array]:
    """Positions and torques (samples, dof) at the controller's rate: half a wait, the way, half a wait."""
    robot = made.model.robot
    limits = Limits.of(robot, acceleration=np.full(robot.dof, 6.0), velocity=SPEED * robot.limit("velocity"))
    path = quintics_within(points, limits)
    motion = path.at(np.arange(int(path.duration * RATE)) / RATE)
    half = int(0.5 * WAIT * RATE)
    still = np.zeros((half, robot.dof))
    q = np.vstack([np.repeat(motion.q[:1], half, axis=0), motion.q, np.repeat(motion.q[-1:], half, axis=0)])
    law = ComputedTorque(made.model, made.believed, kp=np.full(7, 1e4), kd=np.full(7, 200.0))
    arm = VirtualRobot(made.model, with_load(made, load), law, encoder=ENCODER, torque_noise=NOISE, smooth="stick")
    log = arm.record(Reference.of(q, *(np.vstack([still, x, still]) for x in (motion.dq, motion.ddq)), rate=RATE),
                     seed=seed)
    return log.q, log.tau


def task(made: Machine, loads: list[Array], seed: int) -> tuple[Array, Array, Array, list[float]]:
    """Stamps, positions and torques of a way to and fro between the work-stations, a load for each way, and when each
    load is put on: in the middle of a wait."""
    rng = np.random.default_rng(seed)
    points, parts, at = STATIONS + 0.02 * rng.normal(size=STATIONS.shape), list[tuple[Array, Array]](), [0.0]
    for k, load in enumerate(loads):
        parts.append(trip(made, points, 100 * seed + k, load))
        at.append(at[-1] + len(parts[-1][0]) / RATE)
        points = np.vstack([points[-1:], points[-2::-1] + 0.02 * rng.normal(size=points[1:].shape)])
    q, tau = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return np.arange(len(q)) / RATE, q, tau, at


def followed(estimate: Estimate, made: Machine, loads: list[Array], seed: int) -> list[dict[str, Any]]:
    """For each load when its mass is found to 5 % for good, s after it was put on and s after the robot moves, how far
    it is off at the end, and the mass over time. No load is found to 5 % of the cylinder."""
    t, q, tau, at = task(made, loads, seed)
    live = LivePayload(estimate, FRAME, feeding=FeedOptions(cutoff=CUTOFF, rate=RATE), gain_deviation=0.0)
    found = []
    for load, begin, end in zip(loads, at[:-1], at[1:], strict=True):
        history = []
        for start in range(round(begin * RATE), round(end * RATE), AT_ONCE):
            part = slice(start, min(start + AT_ONCE, round(end * RATE)))
            live.feed(t[part], q[part], tau[part])
            history.append((float(t[part][-1]) - begin, live.mass))
        late, mass = np.array(history).T
        off = np.flatnonzero(np.abs(mass - load[9]) > CLOSE * (load[9] or MASS))
        after = 0.0 if not len(off) else float(late[off[-1]])
        found.append({"mass": float(load[9]), "found": float(mass[-1]), "std": live.estimate().mass_std,
                      "after_s": after, "after_motion_s": max(after - 0.5 * WAIT, 0.0),
                      "close": not len(off) or bool(off[-1] < len(mass) - 1),
                      "t": (begin + late[::EVERY]).tolist(), "history": mass[::EVERY].tolist()})
    return found


# -- s. 4.7, figure 4.3 ----------------------------------------------------------------------------
def constant(made: Machine, estimate: Estimate, seed: int) -> dict[str, Any]:
    """The cylinder from the start on a motion of random points: M_L and MZ_L of 64 base parameters by civ on unfiltered
    data, cases E1, E2, F and G, and beside them the ten numbers alone."""
    log = made.log(random_points(made.model.robot, seed, POINTS), seed, share=SPEED,
                   theta=with_load(made, cylinder()))
    change, names = change_by_load(estimate, Payload(FRAME)), list(made.base.names)
    moved = np.abs(change).max(axis=1) > 0.0
    small, larger = np.full(len(names), 0.1), np.where(moved, np.sqrt(0.1), 0.1)  # P of 0.01, and 0.1
    cases = {"E1": (JOINT_4, small, NoForgetting()), "E2": (JOINT_4 + JOINT_2, small, NoForgetting()),
             "F": (JOINT_4, larger, NoForgetting()), "G": (JOINT_4, larger, Exponential(0.999))}
    q, tau, reference = thinned(log)
    raw, along, step = raw_motion(q, RAW), raw_motion(reference, RAW), 10
    found: dict[str, Any] = {"t": (np.arange(2, len(q) - 12, step) + step) / RAW}
    for case, (equations, deviation, forgetting) in cases.items():
        online = Online(made.model, "civ", prior=(estimate.values, deviation), forgetting=forgetting, noise=1.0,
                        base=made.base, slow=0.1)
        rows, history = [names.index(name) for name in equations], []
        for k in range(2, len(q) - 12, step):
            part = slice(k, k + step)
            online.update(*(x[part] for x in raw), tau[part], tuple(x[part] for x in along))
            apart = online.values - estimate.values
            share = change[rows, 9]
            history.append((float(share @ apart[rows] / (share @ share)), -float(apart[names.index("MY6R")])))
        found[case] = np.array(history)
    live, history, block = LivePayload(estimate, FRAME, feeding=FeedOptions(cutoff=CUTOFF, rate=RATE)), [], int(
        RATE / RAW) * step
    for k in range(len(found["t"])):
        part = slice(k * block, (k + 1) * block)
        live.feed(log.t[part], log.q[part], log.tau[part])
        history.append((live.mass, float(live.numbers[8])))
    found["ten numbers"] = np.array(history)
    return found


def features(t: Array, mass: Array) -> dict[str, Any]:
    """When a mass is first above 3 kg and when it stays within 5 %, s, None for never in 20 s; how much it goes up and
    down from the tenth second on, kg; and what it is at the times that are shown."""
    t, mass = t[t <= SHOWN[-1]], mass[t <= SHOWN[-1]]
    above, off = np.flatnonzero(mass > 3.0), np.flatnonzero(np.abs(mass - MASS) > CLOSE * MASS)
    late = 0.0 if not len(off) else float(t[off[-1]])
    return {"above_3_kg": float(t[above[0]]) if len(above) else None, "close": None if late >= t[-1] else late,
            "varies": float(np.abs(np.diff(mass[t > 10.0])).sum()), "mass": np.interp(SHOWN, t, mass).tolist()}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    made = machine()
    progress("identifying the robot without load")
    unloaded = prepare(made.log(random_points(made.model.robot, 1, POINTS), 1), cutoff=CUTOFF, slow=0.01, thin=4)
    estimate = identify(Problem.of(made.model, unloaded, base=made.base), method="wls")
    progress("a constant load, figure 4.3")
    figure = constant(made, estimate, 5)
    cases = {name: features(figure["t"], one[:, 0]) for name, one in figure.items() if name != "t"}
    series = {"t": figure["t"].tolist(), **{name: {"M_L": one[:, 0].tolist(), "MZ_L": one[:, 1].tolist()}
                                            for name, one in figure.items() if name != "t"}}
    tasks = {}
    for name, loads in (("cylinder", [cylinder(), nothing(), cylinder(), nothing()]),
                        ("box and weights", [box(), box() + weights(4), box() + weights(1), box()])):
        for seed in SEEDS:
            progress(f"the work-stations: {name}, seed {seed}")
            tasks[f"{name}, seed {seed}"] = followed(estimate, made, loads, seed)
    alone = cases.pop("ten numbers")
    checks = {
        **{f"{name}: {', '.join(format(one['mass'], '.3g') for one in found)} kg within 5 % after "
           f"{', '.join(format(one['after_s'], '.1f') for one in found)} s, at most {SOON:g}":
           all(one["close"] and one["after_s"] <= SOON for one in found) for name, found in tasks.items()},
        f"the cylinder from the start on random points: within 5 % after {alone['close']} s, at most {SOON:g}":
            alone["close"] is not None and alone["close"] <= SOON,
        "none of 64 base parameters at once is within 5 % in 20 s": all(one["close"] is None for one in cases.values()),
        f"F is above 3 kg before E1 ({cases['F']['above_3_kg']} and {cases['E1']['above_3_kg']} s)": _sooner(
            cases["F"]["above_3_kg"], cases["E1"]["above_3_kg"]),
        f"G varies more than F from the tenth second on ({cases['G']['varies']:.2f} and {cases['F']['varies']:.2f} kg)":
            cases["G"]["varies"] > cases["F"]["varies"]}
    return {"cases": {**cases, "ten numbers": alone}, "figure_4_3": series, "tasks": tasks,
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def _sooner(first: float | None, second: float | None) -> bool:
    return first is not None and (second is None or first < second)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("M_L, kg (figure 4.3)", *(f"{t:g} s" for t in SHOWN))]
    rows += [(name, *(f"{x:.2f}" for x in one["mass"])) for name, one in result["cases"].items()]
    for name, found in result["tasks"].items():
        rows.append((f"{name}: true, kg", *(f"{one['mass']:.3f}" for one in found)))
        rows.append(("found", *(f"{one['found']:.3f} +- {one['std']:.2g}" for one in found)))
        rows.append(("to 5 % after, s (of motion)", *(f"{one['after_s']:.1f} ({one['after_motion_s']:.1f})"
                                                      for one in found)))
    width = max(map(len, rows))
    return [row + ("",) * (width - len(row)) for row in rows]
