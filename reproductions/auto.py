"""Method auto on real logs: the method that cross-validation chooses on one part, and its error on another part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import reconstruct
from reproductions._data import data, log
from reproductions.tx40_ls import SLOW

OWN_STUDY = True  # no document prints it
FRICTION, OFFSET = ("viscous", "coulomb"), ("viscous", "coulomb", "offset")
CANDIDATES = ("wls", "pc-wls", "pc-ridge")
LIMIT = 1.10  # times the better of wls and pc-wls on data that the choice has not seen
STRETCHES = 20  # of a log, ranked by speed, to part slow from fast


@dataclass(frozen=True, eq=False)
class Split:
    """A model with samples for training and samples for testing. by_heart: whether both have the same motion and the
    model can memorise it. The method that memorises the motion then predicts its repetition best, so the ratio is
    printed and not checked."""

    model: Model
    name: str
    train: Samples
    test: Samples
    by_heart: bool = False


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {"splits": {}, "checks": {}}
    for split in _splits():
        progress(split.name)
        one = found["splits"][split.name] = _tried(split)
        if not split.by_heart:
            found["checks"][f"{split.name}: {one['choice']} is at most {LIMIT:.2f} times the better of wls and pc-wls: "
                            f"{one['ratio']:.2f}"] = one["ratio"] <= LIMIT
        if split.name.startswith("kuka_lwr4 1 -> 2"):
            found["checks"][f"{split.name}: a method that can exist is chosen"] = one["choice"].startswith("pc-")
    return found


def _tried(split: Split) -> dict[str, Any]:
    """Return the chosen method, and the errors of all candidates in cross-validation and on the other part."""
    problem = Problem.from_model(split.model, split.train)
    chosen = identify(problem, method="auto", candidates=CANDIDATES)
    other: dict[str, float | None] = {}
    for name in CANDIDATES:
        try:
            other[name] = reconstruct(identify(problem, method=name), split.test).total.relative_error
        except DynidError:
            other[name] = None
    best = min(error for name, error in other.items() if error is not None and name != "pc-ridge")
    error = reconstruct(chosen, split.test).total.relative_error
    candidates = chosen.diagnostics["choice"]["candidates"]
    return {"choice": chosen.method, "reason": chosen.diagnostics["choice"]["reason"], "error": error,
            "ratio": float(error or 0.0) / best, "left_out": {one["method"]: one["error"] for one in candidates},
            "spread": {one["method"]: one["spread"] for one in candidates}, "other": other}


def _splits() -> Iterator[Split]:
    emps = Robot.builtin("emps")
    yield from _parts("emps", _model(emps), log("emps", emps, "DATA_EMPS.mat"), {"cutoff": 100, "decimate": 10})
    robot = Robot.from_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    wrist = [{"kind": "coupled-wrist", "joints": [5, 6]}]
    yield from _parts("tx40", _model(robot, rotor=True, extra=wrist), log("tx40", robot),
                      {"cutoff": 100, "decimate": 10, "stages": 2, "slow": SLOW})
    robot = Robot.from_urdf(data("panda", "panda_arm.urdf"))
    yield from _parts("panda", _model(robot), log("panda", robot), {"cutoff": 5})
    robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    logs = [log("kuka_lwr4", robot, f"measurements_{k}.npz") for k in (1, 2)]
    first, second = (prepare(one, cutoff=8) for one in logs)
    for model, words in ((_model(robot, friction=FRICTION), ""), (_model(robot), ", with offsets")):
        yield Split(model, f"kuka_lwr4 1 -> 2{words}", first, second, by_heart=bool(words))
        yield Split(model, f"kuka_lwr4 2 -> 1{words}", second, first, by_heart=bool(words))
    for k, samples in ((1, first), (2, second)):
        yield _by_speed(f"kuka_lwr4 {k}", model, samples)


def _model(robot: Robot, **more: Any) -> Model:
    return Model(robot, make_terms(robot, **{"friction": OFFSET, **more}))


def _parts(name: str, model: Model, recording: Recording, filters: dict[str, Any]) -> Iterator[Split]:
    """Return splits of a log: each half predicts the other, and the slow part predicts the fast part."""
    middle = recording.t[0] + 0.5 * recording.duration
    first, second = (prepare(half, **filters) for half in (recording.between(recording.t[0], middle),
                                                           recording.between(middle, recording.t[-1] + 1.0)))
    yield Split(model, f"{name} first half -> second", first, second)
    yield Split(model, f"{name} second half -> first", second, first)
    yield _by_speed(name, model, prepare(recording, **filters))


def _by_speed(name: str, model: Model, samples: Samples) -> Split:
    """Return the slower half of the intervals of a log for training and the faster half for testing."""
    stretch = np.minimum(np.arange(len(samples)) * STRETCHES // len(samples), STRETCHES - 1)
    scaled = (samples.dq / np.sqrt(np.mean(samples.dq ** 2, axis=0))) ** 2
    speed = np.array([scaled[stretch == k].mean() for k in range(STRETCHES)])
    slow = (speed <= np.median(speed))[stretch]
    train, test = (replace(samples, keep=samples.keep & rows[:, None]) for rows in (slow, ~slow))
    return Split(model, f"{name} slow part -> fast part", train, test)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("train -> test", *(f"{name}, left out" for name in CANDIDATES),
             *(f"{name}, test" for name in CANDIDATES), "chosen", "ratio")]
    for name, one in result["splits"].items():
        left = (f"{one['left_out'][method]:.2f} +- {one['spread'][method]:.2f}"
                if one["left_out"].get(method) is not None else "-" for method in CANDIDATES)
        other = ("-" if one["other"][method] is None else f"{one['other'][method]:.2f}" for method in CANDIDATES)
        rows.append((name, *left, *other, one["choice"], f"{one['ratio']:.2f}"))
    return rows
