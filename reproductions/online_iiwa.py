"""Ardiani, chapters 3 and 4, on a virtual KUKA iiwa: recursive methods, start values and a changing load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, nearest
from dynid.estimate import Estimate, Problem, identify
from dynid.excitation import Limits
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.excitation.waypoints import quintics_within
from dynid.model import Coulomb, Model, Offset, RigidBodies, Viscous
from dynid.online import Exponential, Online, VectorForgetting
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.regression import BaseParameters, base_parameters
from dynid.report.drawing import thinned
from dynid.robot import Robot
from dynid.simulation import ComputedTorque, Reference, VirtualRobot
from dynid.validate import reconstruct
from reproductions._printed import Comparison, printed

RATE, RAW = 1000.0, 100.0  # Hz, of the controller, and of what unfiltered methods are given
POINTS = 50  # random ones, as in s. 3.3.6.1
REFERENCE_CUTOFF = 16.0  # Hz, that of the least error on blocks left out (`choose_cutoff`): it takes least away
FIRST_CUTOFF, FIRST_EVERY = 3.5, 20  # Hz, and one row in so many, of situation 1 (s. 3.3.6.1)
AT_ONCE = 8192  # samples
EVOLUTION_POINTS = 150  # of figures 3.1 to 3.4
EVOLVING = ("ZZ2R", "XX2R", "MY2R", "ZZ4R", "XX4R", "MY4R", "ZZ6R", "XX6R", "Fc4")  # of figure 3.1, and one of 3.3
CASE_RATES = {"A": 43.92, "B": 43.08, "C": 43.18, "D": 24.49}  # Hz, of the estimation in s. 4.6
ENCODER, NOISE = 2e-5, (0.15, 0.2, 0.1, 0.12, 0.05, 0.05, 0.04)  # rad a count, N m
LOAD, STATIONS = 2.0, 14  # kg added in the box (s. 4.8), and trips between the two work-stations
EQUAL = ("rls", "cls", "s-rls")
BLOCK, EVERY = 5, 4  # samples between estimates, and of the estimates one that is kept for figures
SHOWN = ("XX4R", "ZZ4R", "MX4", "MY4R", "XY4", "Fc4")  # as in table 4.1
FACTORS: dict[str, Any] = {
    "prior (default)": "prior", "evidence": "evidence", "0.999": Exponential(0.999), "0.9995": Exponential(0.9995),
    "0.9999": Exponential(0.9999), "0.999 and 0.99901 by joint": VectorForgetting(
        dict.fromkeys(("2", "4", "6", "7"), 0.999), 0.99901),
    "0.9999 and 0.999901 by joint": VectorForgetting(dict.fromkeys(("2", "4", "6", "7"), 0.9999), 0.999901)}


@dataclass(frozen=True, eq=False)
class Machine:
    """The virtual iiwa, the physically consistent robot nearest to table 2.5, and the model of its controller."""

    model: Model
    base: BaseParameters
    theta: Array
    believed: Array
    encoder: float = ENCODER

    @property
    def beta(self) -> Array:
        return self.base.reduce(self.theta)

    def log(self, points: Array, seed: int, *, share: float = 0.6, theta: Array | None = None) -> Recording:
        """A log of the motion through points (rows, dof) that stops at each, at a share of the top speeds."""
        return self.record(quintics_within(points, self.limits(share)), seed, theta=theta)

    def limits(self, share: float) -> Limits:
        """Limits of motions at a share of the top speeds."""
        robot = self.model.robot
        return Limits.from_robot(robot, acceleration=np.full(robot.dof, 6.0), velocity=share * robot.limit("velocity"))

    def record(self, path: Trajectory, seed: int, *, theta: Array | None = None) -> Recording:
        """A log of the machine that follows a path."""
        motion = path.at(np.arange(int(path.duration * RATE)) / RATE)
        law = ComputedTorque(self.model, self.believed, kp=np.full(7, 1e4), kd=np.full(7, 200.0))
        machine = VirtualRobot(self.model, self.theta if theta is None else theta, law, encoder=self.encoder,
                               torque_noise=NOISE, smooth="stick")
        return machine.record(Reference.from_arrays(motion.q, motion.dq, motion.ddq, rate=RATE), seed=seed)


def machine() -> Machine:
    robot = Robot.builtin("kuka-iiwa14")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(), Offset()))
    theta = nearest(Consistency(model.parameters), model.parameters.nominal).theta
    rng = np.random.default_rng(3)
    friction = np.array([p.name[0] == "F" for p in model.parameters])
    believed = np.where(friction, 0.0, theta * (1.0 + 0.03 * rng.normal(size=len(theta))))
    return Machine(model, base_parameters(model), theta, believed)


def random_points(robot: Robot, seed: int, count: int = POINTS) -> Array:
    return np.random.default_rng(seed).uniform(0.8 * robot.limit("lower"), 0.8 * robot.limit("upper"), (count, 7))


def raw_motion(q: Array, rate: float) -> tuple[Array, Array, Array]:
    """Positions with derivatives by central differences, nothing filtered."""
    dq = np.gradient(q, 1.0 / rate, axis=0)
    ddq = np.zeros_like(q)
    ddq[1:-1] = (q[2:] - 2.0 * q[1:-1] + q[:-2]) * rate ** 2
    return q, dq, ddq


# -- table 3.3 -------------------------------------------------------------------------------------
def sequential(made: Machine, problem: Problem, others: list[Samples]) -> dict[str, Any]:
    names = (*EQUAL, "s-rls-b", "line-by-line")
    options = {name: {} if name == "line-by-line" else {"prior_std": 10.0} for name in names}
    for name in EQUAL:
        options[name] |= {"noise": 1.0}
    found = {name: identify(problem, method=name, **options[name]) for name in names}
    errors = {name: [[joint.relative_error for joint in reconstruct(one, log).joints] for log in others]
              for name, one in found.items()}
    off = {name: float(np.abs(found[name].values - found["rls"].values).max()) for name in EQUAL}
    worse = max(abs(a - b) for name in names[3:] for mine, theirs in zip(errors[name], errors["rls"], strict=True)
                for a, b in zip(mine, theirs, strict=True))
    return {"errors": errors, "equal_to": off, "sequential_off": worse}


def printed_gap() -> float:
    """Largest difference between sequential methods and least squares in table 3.3, points."""
    one = printed("000", "3.3")
    return max(abs(one.value(f"{motion}, {name}", joint) - one.value(f"{motion}, rls, cls, s-rls", joint))
               for motion in ("spline", "DS") for name in ("s-rls-b", "line-by-line") for joint in one.columns)


# -- s. 3.3.6: situations 1 and 2, riv against rls -------------------------------------------------
def raw_motion_at_all_stamps(q: Array) -> tuple[Array, Array, Array]:
    """Return positions at the controller's rate, with differences over the interval of the low rate and without a
    filter. With one time stamp in ten, nine tenths of the torques are lost, and the standard error is three times that
    of least squares on filtered data, which uses all of them. The time stamps in between are therefore used too, each
    with the derivatives that it would have after down-sampling."""
    step = int(RATE / RAW)
    back, here, forth = q[:-2 * step], q[step:-step], q[2 * step:]
    return here, (forth - back) * (0.5 * RAW), (forth - 2.0 * here + back) * RAW ** 2


def instruments(made: Machine, log: Recording) -> dict[str, Any]:
    """Compare instrumental variables without a filter and filtered least squares, for every parameter that both
    determine to 5 %."""
    step = int(RATE / RAW)
    raw = (*raw_motion_at_all_stamps(log.q), log.tau[step:-step])
    wanted = raw_motion_at_all_stamps(log.reference)

    def run(method: str, motion: tuple[Array, ...] = raw, along: tuple[Array, ...] = wanted,
            **options: Any) -> Estimate:
        online = Online(made.model, method, forgetting=None, base=made.base, slow=0.01, **options)
        for start in range(0, len(motion[0]), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            online.update(*(x[part] for x in motion), tuple(x[part] for x in along))
        return online.estimate()

    filtered = identify(made.model, prepare(log, cutoff=REFERENCE_CUTOFF, slow=0.01), "rls")
    noise, believed = np.array(NOISE), (made.base.reduce(made.believed), 0.1)
    found = {"riv": run("riv", noise=noise), "riv with a prior": run("riv", noise=noise, prior=believed),
             "raw least squares": run("rls")}
    share = np.maximum(found["riv"].relative_std, filtered.relative_std)
    main, sure = share < 1.0, share < 5.0
    first, commanded = (prepare(one, cutoff=FIRST_CUTOFF, order=2, velocity="differentiate", thin=FIRST_EVERY,
                                slow=0.0) for one in (log, replace(log, q=log.reference)))
    _, here, there = np.intersect1d(np.round(RATE * first.t), np.round(RATE * commanded.t), return_indices=True)
    situations = {"first": run("riv", tuple(x[here] for x in (first.q, first.dq, first.ddq, first.tau)),
                               tuple(x[there] for x in (commanded.q, commanded.dq, commanded.ddq)), noise=noise,
                               prior=believed),
                  "second": found["riv"]}
    measured, along = (tuple(x[rows] for x in (one.q, one.dq, one.ddq)) for one, rows in (
        (first, here), (commanded, there)))
    result: dict[str, Any] = {"situations": situations, "evolution": evolution(
        made, (*measured, first.tau[here]), along, noise, believed)}
    for name, one in found.items():
        off = 100.0 * np.abs(one.values / filtered.values - 1.0)
        result[name] = {"main_off": float(off[main].max()), "main": int(main.sum()), "sure": int(sure.sum()),
                        "sure_off": float(off[sure].max()), "median_off": float(np.median(off[sure])),
                        "beyond": int(np.sum(off[sure] > 2.0))}
    return result


def evolution(made: Machine, motion: tuple[Array, ...], along: tuple[Array, ...], noise: Array,
              believed: tuple[Array, float]) -> dict[str, Any]:
    """Figures 3.1, 3.3 and 3.4: estimates over time on filtered data, by riv and rls with and without knowledge."""
    cases: dict[str, tuple[str, Any]] = {"riv": ("riv", believed), "rls": ("rls", believed),
                                         "rls, no knowledge": ("rls", (0.0, 10.0))}
    ends = np.linspace(0, len(motion[0]), EVOLUTION_POINTS + 1).astype(int)
    found: dict[str, Any] = {"t": (ends[1:] * FIRST_EVERY / RATE).tolist()}
    for name, (method, prior) in cases.items():
        online = Online(made.model, method, forgetting=None, base=made.base, slow=0.0, noise=noise, prior=prior)
        history = []
        for start, stop in pairwise(ends):
            part = slice(start, stop)
            online.update(*(x[part] for x in motion), tuple(x[part] for x in along) if method == "riv" else None)
            history.append(online.values)
        found[name] = {one: [float(x[made.base.names.index(one)]) for x in history] for one in EVOLVING}
    return found


# -- s. 4.6: cases A to D --------------------------------------------------------------------------
def starts(made: Machine, log: Recording) -> dict[str, dict[str, dict[str, Any]]]:
    """Extremes and settling times of joint 4's parameters from four starts, by civ on unfiltered data at the printed
    rates."""
    rng = np.random.default_rng(8)
    inertial = np.array([name[0] != "F" for name in made.base.names])
    known = np.where(inertial, made.base.reduce(made.believed), 0.0)
    cases = {"A": (made.beta * (1 + 0.02 * rng.normal(size=len(made.beta))), 0.1, 0.1),
             "B": (known, np.where(inertial, 0.1, 1.0), 0.1), "C": (0.0, 1.0, 0.1),
             "D": (known, np.where(inertial, 0.1, 1.0), 0.0)}
    found = {}
    for case, (values, deviation, slow) in cases.items():
        step = round(RATE / CASE_RATES[case])
        q, tau, reference = log.q[::step], log.tau[::step], log.reference[::step]
        raw, along = raw_motion(q, RATE / step), raw_motion(reference, RATE / step)
        online = Online(made.model, "civ", prior=(values, deviation), forgetting=None, noise=1.0, base=made.base,
                        slow=slow)
        history = []
        for k in range(2, len(q) - BLOCK - 2, BLOCK):
            part = slice(k, k + BLOCK)
            online.update(*(x[part] for x in raw), tau[part], tuple(x[part] for x in along))
            history.append(online.values)
        found[case] = _features(made, np.array(history), BLOCK * step / RATE)
    return found


def _features(made: Machine, history: Array, interval: float) -> dict[str, dict[str, Any]]:
    """Return the largest and smallest value of each shown parameter, the time, s, after which it stays within half of
    its final value (the mean of 50 samples), and its values over time. interval: time between estimates, s."""
    found, last = {}, 50 // BLOCK
    t = (np.arange(len(history)) + 1) * interval
    for name in SHOWN:
        x = history[:, made.base.names.index(name)]
        final = float(x[-last:].mean())
        outside = np.flatnonzero(np.abs(x - final) > 0.5 * abs(final))
        never = len(outside) and outside[-1] >= len(x) - last - 1
        found[name] = {"max": float(x.max()), "min": float(x.min()), "final": final,
                       "settled": None if never else float(t[outside[-1]]) if len(outside) else 0.0,
                       "t": t[::EVERY].tolist(), "values": x[::EVERY].tolist()}
    return found


# -- s. 4.8: a load that changes at the work-stations ----------------------------------------------
def trips(made: Machine, before: Estimate) -> dict[str, Any]:
    """Return the mass of the load, estimated from all base parameters with and without it, while the load is added and
    removed."""
    rng = np.random.default_rng(21)
    stations = np.array([[0.6, 0.5, 0.2, -1.2, 0.3, 0.9, 0.2], [0.0, 0.1, 0.0, -1.5, -0.3, 1.1, -0.4],
                         [-0.7, 0.6, -0.2, -1.0, 0.2, 0.8, 0.5]])
    one_way = np.vstack([stations, stations[1::-1]])
    box = np.zeros(len(made.model.parameters))
    loads, parts = [], []
    for k in range(STATIONS // 2):
        mass = LOAD if (k // 2) % 2 else 0.0
        for name, value in (("M7", mass), ("MZ7", 0.25 * mass), ("XX7", 0.08 * mass), ("YY7", 0.08 * mass)):
            box[made.model.parameters.index(name)] = value
        log = made.log(one_way + 0.02 * rng.normal(size=one_way.shape), 40 + k, theta=made.theta + box)
        parts.append(prepare(log, cutoff=10.0, slow=0.05))
        loads.append(mass)
    matrix = made.base.matrix[:, [made.model.parameters.index("M7")]]
    rows = {name: made.base.names.index(name) for name in ("MY4R", "MY2R")}
    result: dict[str, Any] = {}
    for name, way in FACTORS.items():
        online = Online(made.model, prior=before, forgetting=way, base=made.base)
        errors, after = [], []
        for part, mass in zip(parts, loads, strict=True):
            keep = part.keep.all(axis=1)
            online.update(*(x[keep] for x in (part.q, part.dq, part.ddq, part.tau)))
            change = np.array([online.values[k] - before.values[k] for k in rows.values()])
            share = np.array([float(matrix[k, 0]) for k in rows.values()])
            found = float(change @ share / (share @ share))
            errors.append(found - mass)
            after.append(found)
        result[name] = {"mass": after, "worst": float(np.max(np.abs(errors))), "restarts": len(online.restarts)}
    return {"loads": loads, "ways": result}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    made = machine()
    robot = made.model.robot
    progress("recording a motion of random points")
    log = made.log(random_points(robot, 1), 1)
    samples = prepare(log, cutoff=8.0, slow=0.01)
    others = [prepare(made.log(random_points(robot, k, 20), k), cutoff=8.0, slow=0.01) for k in (2, 3, 4)]
    progress("table 3.3")
    problem = Problem.from_model(made.model, samples, base=made.base)
    table_33 = sequential(made, problem, others[:2])
    progress("instruments without a filter")
    iv = instruments(made, log)
    situations, over_time = iv.pop("situations"), iv.pop("evolution")
    times, columns = thinned(others[0].t, np.hstack([others[0].tau, situations["first"].predict(
        others[0].q, others[0].dq, others[0].ddq)]), 300)
    errors_32 = {name: [[joint.relative_error for joint in reconstruct(one, part).joints] for part in others]
                 for name, one in situations.items()}
    progress("cases A to D")
    cases = starts(made, log)
    progress("a changing load")
    load = trips(made, identify(problem, method="rls"))
    default = load["ways"]["prior (default)"]
    main = ("XX4R", "ZZ4R", "MY4R")
    late = {case: [one[name]["settled"] for name in main] for case, one in cases.items()}
    middle = max(x for rows in errors_32.values() for row in rows for x in row[1:4])
    apart = max(abs(a - b) for rows in zip(*errors_32.values(), strict=True) for a, b in zip(*rows, strict=True))
    same = table_33["equal_to"]
    shown = {
        f"the load is followed within one trip at the default: off by {default['worst']:.2f} kg of {LOAD:g} at most":
            default["worst"] < 0.25 * LOAD,
        f"rls and cls, which run one recursion here, are the same to {same['cls']:.1e}": same["cls"] < 1e-8,
        "no fixed factor of the document does as well as the default": all(
            one["worst"] > default["worst"] for name, one in load["ways"].items() if name[0] == "0")}
    checks = {
        f"table 3.3: s-rls, joint after joint, is rls to {same['s-rls']:.1e}": same["s-rls"] < 1e-8,
        f"table 3.2: joints 2 to 4 below 4 % in both situations, {middle:.2f} at most": middle < 4.0,
        f"table 3.2: both situations give close torques, within {apart:.2f} points, 9 printed": apart < 9.0,
        f"table 3.3: sequential ones within {table_33['sequential_off']:.2f} points of them on every joint, at most "
        f"{printed_gap():.2f} as printed": table_33["sequential_off"] <= printed_gap(),
        **{f"unfiltered {name} within {iv[name]['sure_off']:.2f} % of filtered rls on each of the {iv[name]['sure']} "
           f"parameters known to 5 %, at most 2, in the median {iv[name]['median_off']:.2f} %":
           iv[name]["sure_off"] < 2.0 for name in ("riv", "riv with a prior")},
        f"raw least squares is not: {iv['raw least squares']['sure_off']:.0f} % off, and beyond 2 % on "
        f"{iv['raw least squares']['beyond']} of them": iv["raw least squares"]["sure_off"] > 5.0,
        "with a start from knowledge (A, B) the main parameters of joint 4 are settled from the beginning": all(
            x == 0.0 for case in "AB" for x in late[case]),
        "without (C) they take time": any(x is None or x > 1.0 for x in late["C"])}
    return {"evolution": over_time, "figure_3_2": {"t": times, "sensed": columns[:7], "reconstructed": columns[7:]},
            "table_3_3": table_33, "table_3_2": errors_32, "demonstrations": shown,
            "printed": _compared(situations, cases), "instruments": iv, "starts": cases, "load": load,
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def _compared(situations: dict[str, Estimate], cases: dict[str, dict[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Table 3.1 within two standard errors of both, and table 4.1."""
    estimates = Comparison(printed("000", "3.1"))
    for column, one in situations.items():
        for row, value, std in zip(one.names, one.values, one.std, strict=True):
            if row[:2] in ("Fc", "Fv", "Fo"):
                continue
            stated = 0.01 * estimates.table.value(row, f"{column}%") * abs(estimates.table.value(row, column))
            estimates.compare(row, column, float(value), noise=2.0 * float(np.hypot(stated, std)), claimed=False)
    estimates.leave_out("friction of the real robot is not that of the virtual one",
                        [entry for entry in estimates.table.entries if entry[0][0] == "F"])
    estimates.leave_out("the noise of the log is not printed")
    starts_table = Comparison(printed("000", "4.1"))
    for row, column in starts_table.table.entries:
        case, what = column.split("-")
        ours = cases[case][row][{"s": "settled"}.get(what, what)]
        settled_at_once = what == "s" and starts_table.table.value(row, column) == 0.0 and row != "Fc4"
        starts_table.compare(row, column, np.inf if ours is None else float(ours), claimed=settled_at_once)
    real = "errors of the real robot, whose friction is not all printed"
    others = [Comparison(printed("000", number)) for number in ("3.2", "3.3")]
    for one in others:
        one.leave_out(real)
    return [one.summary() for one in (estimates, *others, starts_table)]


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("table 3.3, relative error, %", *(f"joint {j}" for j in range(1, 8)))]
    for name, logs in result["table_3_3"]["errors"].items():
        rows += [(f"{name}, motion {k}", *(f"{x:.2f}" for x in one)) for k, one in enumerate(logs, 2)]
    rows += [(f"{name}, unfiltered, off from filtered rls, %", f"known to 1 %: {one['main_off']:.2f}",
              f"to 5 %: {one['sure_off']:.2f}", f"median {one['median_off']:.2f}")
             for name, one in result["instruments"].items()]
    for case, found in result["starts"].items():
        rows.append((f"case {case}, settled after, s", *(
            f"{name}: {'-' if one['settled'] is None else format(one['settled'], '.1f')}"
            for name, one in found.items())))
    rows.append(("load, kg", *(f"{x:.1f}" for x in result["load"]["loads"])))
    for name, one in result["load"]["ways"].items():
        rows.append((f"found: {name}", *(f"{x:.2f}" for x in one["mass"])))
    width = max(map(len, rows))
    return [row + ("",) * (width - len(row)) for row in rows]
