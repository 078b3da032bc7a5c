"""3R arm and LWR IV+ (Simionato, tables 5.2-5.5): 24 extractions, their physical consistency and internal forces.

The document does not print its random numbers, motions and limits of the total mass, so the study checks conclusions
and not digits. The full loss is that of eq. 2.30 and 2.31: inertias, boxes of the centres of mass and the total mass.
The boxes are the bounds of each set's own width. The limits of the total mass are those of data sheets for all three
widths, as s. 5.1 states. Feasibility is tested with the normal boxes. Only with these are c7z of the tight set p_32,
and centres of loose sets with full loss, outside, as tables 5.2 to 5.5 state. No robot has the base values of the LWR
IV+, so its full losses are penalties.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dynid.consistency import Consistency, Ellipsoid
from dynid.estimate import Problem, identify
from dynid.excitation import FourierSeries
from dynid.extraction import SEARCHES, BaseValues, Extraction, ExtractionOptions, extract, violation_reason
from dynid.extraction.sine_motion import new_motion
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.report.drawing import thinned
from dynid.robot import Robot
from dynid.validate import SetComparison, compare_sets
from reproductions._printed import Comparison, printed
from reproductions._simionato import published_bounds, whole_mass
from reproductions.simionato_coefficients import MASS_FIRST, PERIOD, TABLE_5_1, series_inside_limits

RobotName = Literal["arm3r", "kuka-lwr4"]
# The six sets of each robot in tables 5.2 to 5.5: bounds and loss.
SETTINGS = (("normal", "partial"), ("normal", "full"), ("tight", "partial"), ("tight", "full"), ("loose", "partial"),
            ("loose", "full"))
# The robots and their tables.
CASES = {"arm3r": "5.2", "arm3r, friction": "5.3", "kuka-lwr4": "5.4", "kuka-lwr4, friction": "5.5"}
FIRST_SET = {"arm3r": 1, "arm3r, friction": 13, "kuka-lwr4": 25, "kuka-lwr4, friction": 37}
NUMBERS = (0, 3, 4, 7, 8, 11)  # p_1 p_4 p_5 p_8 p_9 p_12, and so on
NOISE, SINE_NOISE = 10.0 ** (-30.0 / 20.0), 10.0 ** (-40.0 / 20.0)  # of the motion, 30 dB; of the new sine, 40 dB
SAMPLING: dict[RobotName, float] = {"arm3r": 0.01, "kuka-lwr4": 0.034}  # s (s. 5.1, 5.3)
SEED = 0


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {"robots": {}, "checks": {}}
    for case in CASES:
        name, friction = _robot(case), "friction" in case
        progress(f"{case}: identifying the base values")
        given, theta = _base_values(name, friction)
        sets = [_extracted(given, name, width, loss, progress) for width, loss in SETTINGS]
        compared = compare_sets(sets, new_motion(Robot.builtin(name), 3), {"true": theta})
        found["robots"][case] = {**_facts(case, given, theta, compared), "curves": _curves(case, compared),
                                 "validation_percent": _validated(given, theta, case)}
    found["searches"] = _searches(progress)
    found["spheres"] = _spheres(progress)
    progress("loose bounds with the whole mass open")
    found["open_mass_force_difference"] = _loose_without_mass()
    progress("the same masses and centres, other inertias")
    found["same_bodies_force_difference"] = _forces_without_inertia()
    checks = {**_set_checks(found), **_force_checks(found)}
    found["checks"] = {sentence: bool(holds) for sentence, holds in checks.items()}
    found["demonstrations"] = {  # an identity of rigid-body dynamics
        f"inertias have no part in the forces at all: {found['same_bodies_force_difference']:.1e} N":
            bool(found["same_bodies_force_difference"] < 1e-9),
        "3R: with the whole mass open, against eq. 2.31, loose full sets are off by 50 to 500 N as in figures 5.6 and "
        f"5.12: {', '.join(f'{x:.0f}' for x in found['open_mass_force_difference'])}":
            all(50.0 <= x <= 500.0 for x in found["open_mass_force_difference"]),
        "LWR IV+, against chapter 6: impossible inertias alone, with masses open up to 12 kg, do more to forces than "
        "centres outside alone, and less than a quarter of that with the masses of tight bounds": bool(all(
            sets["normal, partial"]["force_difference"] > max(sets["loose, full"]["force_difference"],
                                                              4.0 * sets["tight, partial"]["force_difference"])
            for sets in _by_robot(found["robots"], "kuka-lwr4").values()))}
    found["printed"] = [_compared(case, one["sets"]) for case, one in found["robots"].items()]
    return found


def _compared(case: str, sets: dict[str, Any]) -> dict[str, Any]:
    """Which inertias and centres of mass of the six sets are not feasible. The document's random numbers and mass
    limits are not printed, so that no single entry is claimed."""
    found = Comparison(printed("004", CASES[case]))
    for row in sets.values():
        inertia, centres = _violations(row["ours"])
        found.compare_word(row["set"], "inertia", inertia, claimed=False)
        found.compare_word(row["set"], "centres", centres, claimed=False)
    return found.summary()


def _violations(words: str) -> tuple[str, str]:
    """Links and centres of 'inertia 1 3, c1x c3z', as the tables have them: '1-3' and 'c1x-c3z'."""
    parts = [] if words == "feasible" else words.split(", ")
    inertia = [part.removeprefix("inertia ") for part in parts if part.startswith("inertia")]
    centres = [part for part in parts if part.startswith("c")]
    return tuple("-".join(part[0].split()) if part else "none" for part in (inertia, centres))


def _as_words(case: str, row: str) -> str:
    """Return a row of a printed table as text, such as 'inertia 1 3, c1x c3z'."""
    inertia, centres = printed("004", CASES[case]).rows[row]
    said = [] if inertia == "none" else [f"inertia {inertia.replace('-', ' ')}"]
    return ", ".join(said + ([] if centres == "none" else [centres.replace("-", " ")])) or "feasible"


def _robot(case: str) -> RobotName:
    return "arm3r" if case.startswith("arm3r") else "kuka-lwr4"


def _base_values(name: RobotName, friction: bool) -> tuple[BaseValues, np.ndarray]:
    """Return base values identified from simulated motions, and the true parameters. With friction the motions have
    noise of 30 dB, and torques are those of the noisy motions (s. 5.2), so the fit is exact. Motions respect tables 3.3
    and 3.5; the LWR IV+ has three of them, two with friction (s. 5.4)."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"))) if friction else Model(robot)
    rng = np.random.default_rng(SEED)
    step = SAMPLING[name]
    t = np.arange(0.0, 20.0, step)
    series = TABLE_5_1 if name == "arm3r" else series_inside_limits(robot, 2 if friction else 3, rng)
    motions = [FourierSeries(c[:, :5], c[:, 5:10], c[:, 10], PERIOD, 1.5).at(t) for c in series]
    signals = [np.concatenate([getattr(one, part) for one in motions]) for part in ("q", "dq", "ddq")]
    if friction:
        signals = [x + NOISE * x.std(axis=0) * rng.normal(size=x.shape) for x in signals]
    theta = model.parameters.vector(model.parameters.nominal)
    tau = model.inverse_dynamics(theta, *signals)
    estimate = identify(Problem.from_model(model, Samples.from_arrays(*signals, tau, rate=1.0 / step),
                                           base=base_parameters(model, MASS_FIRST)), method="ols")
    return BaseValues.from_estimate(estimate), theta


def _validated(given: BaseValues, theta: np.ndarray, case: str) -> float:
    """Torque error (percent) of the identified base values on a new sine of 10 s at 0.01 s, with noise of 40 dB where
    there is friction (fig. 5.3, 5.8, 5.14, 5.18)."""
    sine = new_motion(given.model.robot, 7, rate=100.0)
    rng, signals = np.random.default_rng([SEED, 40]), [sine.q, sine.dq, sine.ddq]
    if "friction" in case:
        signals = [x + SINE_NOISE * x.std(axis=0) * rng.normal(size=x.shape) for x in signals]
    tau = given.model.inverse_dynamics(theta, *signals)
    ours = given.model.regressor(*signals) @ np.linalg.lstsq(given.matrix, given.values, rcond=None)[0]
    return float(100.0 * np.linalg.norm(ours - tau) / np.linalg.norm(tau))


def _extracted(given: BaseValues, name: RobotName, width: Any, loss: str,
               progress: Callable[[str], None]) -> Extraction:
    """Return one of the 24 sets, with bounds alone or the full loss, which is a penalty if no robot has the base
    values."""
    progress(f"{given.model.robot.name}: {width} bounds, {loss} loss")
    weighed = name == "kuka-lwr4" and loss == "full"
    options = ExtractionOptions(loss="partial" if loss == "partial" else "full", seed=SEED,
                                form="penalty" if weighed else "exact", runs=3 if weighed else 10)
    start = time.process_time()  # of the processor: others may use the machine too
    bounds = published_bounds(name, width)
    own = bounds.boxes(given.model.parameters.bodies)  # of this width, where the normal ones are the judge's
    found = extract(given, replace(bounds, contours=own), options)
    return replace(found, seconds=time.process_time() - start)


def _facts(case: str, given: BaseValues, theta: np.ndarray, compared: SetComparison) -> dict[str, Any]:
    """Return the results of the six sets of one robot and of the cone programme as plain values."""
    bounds = published_bounds(_robot(case), "normal")
    judge = Consistency(given.model.parameters, margin=0.0, centres=bounds.contours, positive=False)
    rows = {}
    for (width, loss), number, one in zip(SETTINGS, NUMBERS, compared.sets, strict=True):
        apart = compared.force_differences(one.name)
        wrong = _short(judge, one.theta)
        rows[f"{width}, {loss}"] = {
            "set": f"p_{FIRST_SET[case] + number}", "published": _as_words(case, f"p_{FIRST_SET[case] + number}"),
            "ours": wrong, "reason": violation_reason(judge.violations(one.theta)),
            "form": one.form, "base_distance": one.distance, "base_relative_distance": one.relative_distance,
            "outside_bounds": list(one.outside), "torque_error": compared.torque_error(one.name),
            "force_difference": float(apart.max()), "force_difference_per_joint": apart.tolist(),
            "mass": float(one.theta[judge.places[:, 9]].sum()), "seconds": one.seconds,
            "evaluations": one.evaluations}
    cones = compared.sets[0].cones
    assert cones is not None
    return {"coefficients": len(given.values), "sets": rows, "true": _short(judge, theta),
            "true_reason": violation_reason(judge.violations(theta)), "cones": cones.to_dict(),
            "true_outside_bounds": {width: _true_outside(case, given, theta, width)
                                    for width in ("loose", "normal", "tight")}}


def _curves(case: str, compared: SetComparison) -> dict[str, Any]:
    """Torques, N m, and norms of the forces inside, N, of the true set and the six, by joint, as they are drawn."""
    names = ["true", *(f"p_{FIRST_SET[case] + number}" for number in NUMBERS)]
    torques = np.hstack([compared.torques[name] for name in (compared.reference, *(one.name for one in compared.sets))])
    forces = np.hstack([compared.wrenches.forces[compared.wrenches.names.index(name)]
                        for name in (compared.reference, *(one.name for one in compared.sets))])
    dof = forces.shape[1] // len(names)
    t, columns = thinned(compared.motion.t, np.hstack([torques, forces]), 300)
    half = len(names) * dof
    return {"t": t, "torques": {name: columns[k * dof:(k + 1) * dof] for k, name in enumerate(names)},
            "forces": {name: columns[half + k * dof:half + (k + 1) * dof] for k, name in enumerate(names)}}


def _true_outside(case: str, given: BaseValues, theta: np.ndarray, width: Any) -> list[str]:
    """Bounds of table A.5 or A.6 that the true parameters break."""
    from dynid.extraction.conditions import Conditions
    from dynid.extraction.extraction import outside_bounds
    consistency = Consistency(given.model.parameters, margin=0.0)
    return list(outside_bounds(Conditions(consistency, published_bounds(_robot(case), width)), theta))


def _short(judge: Consistency, theta: np.ndarray) -> str:
    """Return a set in the notation of the document: 'inertia 1 3, c1x c3z'."""
    names = list(judge.bodies)
    inertia = [str(names.index(v.link) + 1) for v in judge.violations(theta)
               if v.kind in ("mass", "not-positive-definite", "triangle")]
    centres = []
    for k, (name, columns) in enumerate(judge.bodies.items()):
        limit = judge.centres[name]
        com = theta[columns[6:9]] / theta[columns[9]]
        centres += [f"c{k + 1}{axis}" for axis, low, x, high in zip("xyz", limit.low, com, limit.high, strict=True)
                    if not low <= x <= high]
    said = [f"inertia {' '.join(dict.fromkeys(inertia))}"] if inertia else []
    return ", ".join(said + ([" ".join(centres)] if centres else [])) or "feasible"


def _searches(progress: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Return the sets of the 3R arm with tight bounds and the full loss by every search."""
    given, _ = _base_values("arm3r", False)
    found = {}
    for search in SEARCHES:
        progress(f"arm3r: {search}")
        one = extract(given, published_bounds("arm3r", "tight"), loss="full", search=search, seed=SEED)
        found[search] = {"reason": one.reason, "base_relative_distance": one.relative_distance, "seconds": one.seconds,
                         "outside_bounds": len(one.outside)}
    return found


def _spheres(progress: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """The LWR IV+ with boxes, and with spheres around the boxes of its last two links, as contours (s. 5.3)."""
    given, _ = _base_values("kuka-lwr4", False)
    boxes = published_bounds("kuka-lwr4", "normal")
    round_ones = {}
    for name in ("link6", "link7"):
        box = boxes.contours[name]
        round_ones[name] = Ellipsoid(0.5 * (box.low + box.high), np.full(3, 0.5 * float((box.high - box.low).max())))
    found = {}
    for words, bounds in (("boxes", boxes), ("spheres", replace(boxes, contours={**boxes.contours, **round_ones}))):
        progress(f"kuka-lwr4: {words} as contours")
        one = extract(given, bounds, loss="full", form="penalty", runs=2, seed=SEED)
        found[words] = {"reason": one.reason, "base_distance": one.distance, "seconds": one.seconds}
    return found


def _loose_without_mass() -> list[float]:
    """Return the error (N) of the forces of loose full sets of the 3R arm without limits on the total mass."""
    found = []
    for friction in (False, True):
        given, theta = _base_values("arm3r", friction)
        loose = published_bounds("arm3r", "loose")
        own = replace(loose, contours=loose.boxes(given.model.parameters.bodies), mass=None)
        one = extract(given, own, loss="full", runs=10, seed=SEED)
        compared = compare_sets([one], new_motion(Robot.builtin("arm3r"), 3), {"true": theta})
        found.append(float(compared.force_differences(
            one.name).max()))
    return found


def _forces_without_inertia() -> float:
    """Largest difference (N) of the forces inside of two sets that differ in their inertias alone."""
    robot = Robot.builtin("arm3r")
    model = Model(robot)
    theta = model.parameters.vector(model.parameters.nominal)
    other = theta.copy()
    for columns in model.parameters.bodies.values():
        other[columns[:6]] += 0.05 * np.array([1.0, -2.0, 0.5, -3.0, 1.0, 1.0])
    from dynid.validate import wrench_comparison
    return float(wrench_comparison(model, {"a": theta, "b": other}, new_motion(robot)).difference("a", "b").max())


def _set_checks(found: dict[str, Any]) -> dict[str, bool]:
    """Return the conclusions of tables 5.2 to 5.5 on the sets, and those of the cone programme."""
    robots = found["robots"]
    every = {(case, name): row for case, one in robots.items() for name, row in one["sets"].items()}
    exact = [row for row in every.values() if row["form"] == "exact"]
    three, seven = _by_robot(robots, "arm3r"), _by_robot(robots, "kuka-lwr4")
    tight = max(row["seconds"] for (case, name), row in every.items() if "arm3r" in case and "tight" in name)
    longest = max(row["seconds"] for (case, _), row in every.items() if "kuka" in case)
    least = {case: robots[case]["cones"]["distance"] for case in seven}
    masses = [(row["mass"], whole_mass(_robot(case))) for (case, name), row in every.items()
              if name.endswith("full")]
    worst = max(one["validation_percent"] for one in robots.values())
    return {
        f"the identified base values predict the torques of a new sine (fig. 5.3, 5.8, 5.14, 5.18): {worst:.1e} %":
            worst < 1e-6,
        "the whole mass of every full loss is inside eq. 2.31":
            all(low * (1.0 - 1e-6) <= mass <= high * (1.0 + 1e-6) for mass, (low, high) in masses),
        f"base values met to 1e-6 in {len(exact)} of 24 sets, all but the full losses of the LWR IV+":
            len(exact) == 18 and max(row["base_relative_distance"] for row in exact) < 1e-6,
        f"3R with tight bounds in under 10 s: {tight:.2f} s of CPU time": tight < 10.0,
        f"LWR IV+ in under 60 s: {longest:.1f} s of CPU time": longest < 60.0,
        "every partial loss gives inertias that cannot exist (tables 5.2-5.5)":
            all("inertia" in row["ours"] for (_, name), row in every.items() if name.endswith("partial")),
        "no full loss gives inertias that cannot exist (tables 5.2-5.5)":
            all("inertia" not in row["ours"] for (_, name), row in every.items() if name.endswith("full")),
        "normal bounds and the full loss give sets that can exist, for all four":
            all(one["sets"]["normal, full"]["ours"] == "feasible" for one in robots.values()),
        "tight bounds and the full loss too for the 3R; for the LWR IV+ but for c7z, as p_32, and c1y, of which table "
        "A.5 has tight bounds outside the normal ones":
            all(sets["tight, full"]["ours"] == "feasible" for sets in three.values())
            and all({"c7z"} <= set(sets["tight, full"]["ours"].split()) <= {"c1y", "c7z"} for sets in seven.values()),
        "other searches make no difference to the 3R with tight bounds (s. 5.1): all four give sets that can exist":
            all(one["reason"] == "feasible" and not one["outside_bounds"] and one["base_relative_distance"] < 1e-6
                for one in found["searches"].values()),
        "spheres for the last links of the LWR IV+ make no difference (s. 5.3): both can exist, equally far off":
            all(one["reason"] == "feasible" for one in found["spheres"].values())
            and abs(np.log(found["spheres"]["spheres"]["base_distance"] / found["spheres"]["boxes"]["base_distance"]))
            < np.log(1.5),
        "the cone programme: some robot has the 3R's base values, none has the LWR IV+'s":
            all(robots[case]["cones"]["possible"] for case in three)
            and not any(robots[case]["cones"]["possible"] for case in seven),
        "the weighed sets of the LWR IV+ are off by more than the cone programme's least, by less than three times":
            all(least[case] <= row["base_distance"] * (1 + 1e-6) < 3.0 * least[case]
                for case, sets in seven.items() for row in sets.values() if row["form"] == "penalty"),
        "table A.5 excludes the truth: c7z (normal and loose), fv6 (all)":
            any("cz of link 'link7'" in x for x in robots["kuka-lwr4"]["true_outside_bounds"]["normal"])
            and all(any(x.startswith("Fv6") for x in outside)
                    for outside in robots["kuka-lwr4, friction"]["true_outside_bounds"].values()),
    }


def _by_robot(robots: dict[str, Any], name: str) -> dict[str, Any]:
    """The sets of one robot, without and with friction."""
    return {case: one["sets"] for case, one in robots.items() if _robot(case) == name}


def _force_checks(found: dict[str, Any]) -> dict[str, bool]:
    """Return the conclusions of chapters 5 and 6 on torques and internal forces."""
    three, seven = _by_robot(found["robots"], "arm3r"), _by_robot(found["robots"], "kuka-lwr4")
    mixed = [np.array(sets["loose, partial"]["force_difference_per_joint"]) for sets in three.values()]
    return {
        "3R: torques of every set on a new motion are the true ones (fig. 5.4, 5.10)":
            all(row["torque_error"] < 1e-6 for sets in three.values() for row in sets.values()),
        "3R: the feasible set from tight bounds is closer in its forces than the one from normal (p_8, p_20)":
            all(sets["tight, full"]["force_difference"] < sets["normal, full"]["force_difference"]
                for sets in three.values()),
        "3R: sets with impossible inertias alone are no farther than 50 N, one of them closer than a feasible one":
            all(sets[name]["force_difference"] < 50.0 for sets in three.values()
                for name in ("normal, partial", "tight, partial"))
            and any(sets["tight, partial"]["force_difference"] < sets["normal, full"]["force_difference"]
                    for sets in three.values()),
        "3R: where both are wrong the first link carries the most of it and the third little (fig. 5.6 e, f)":
            all(x[0] > 3.0 * x[2] for x in mixed),
        "LWR IV+: loose sets with centres outside are off by tens to hundreds of newtons (printed 2e1 to 5e2)":
            all(20.0 <= sets[name]["force_difference"] < 1000.0 for sets in seven.values()
                for name in ("loose, partial", "loose, full")),
    }


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "set", "bounds, loss", "published", "ours", "base values off", "forces off, N", "CPU s")]
    for case, one in result["robots"].items():
        for name, row in one["sets"].items():
            rows.append((case, row["set"], name, row["published"], row["ours"], f"{row['base_distance']:.1e}",
                         f"{row['force_difference']:.1f}", f"{row['seconds']:.2f}"))
        cones = one["cones"]
        rows.append((case, "", "cone programme", "", "a robot has them" if cones["possible"] else "no robot has them",
                     f"{cones['distance']:.1e}", "", f"{cones['milliseconds'] / 1e3:.3f}"))
    return rows
