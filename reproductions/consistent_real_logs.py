"""Physical consistency on real logs of TX40, LWR4+ and Panda: consistency of wls, and the cost of constraints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynid.consistency import Consistency
from dynid.consistency import test as is_possible
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import free_fall, positive_inertia_share, reconstruct
from reproductions._data import data, log
from reproductions.tx40_ls import SLOW

OWN_STUDY = True  # no document prints it
FRICTION = ("viscous", "coulomb", "offset")
ROBOTS = {"tx40": ("tx40_mdh_modified.urdf", ()), "kuka_lwr4": ("kuka_lwr4.urdf", ("measurements_1.npz",)),
          "panda": ("panda_arm.urdf", ())}
FILTERS: dict[str, dict[str, Any]] = {"tx40": {"cutoff": 100, "decimate": 10, "stages": 2, "slow": SLOW},
                                      "kuka_lwr4": {"cutoff": 8}, "panda": {"cutoff": 5}}
COST, NEXT, HALVES = 0.3, 3.0, 1.5  # percent: of consistency; of the prior on file 2 and on the other half


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {"robots": {}, "checks": {}}
    for name in ROBOTS:
        progress(f"{name}: reading, fitting, falling")
        model, recording = _robot(name)
        one = found["robots"][name] = _study(model, prepare(recording, **FILTERS[name]))
        found["checks"] |= {f"{name}: {sentence}": holds for sentence, holds in one.pop("checks").items()}
    progress("kuka_lwr4: a prior from file 1, tried on file 2")
    model, first = _robot("kuka_lwr4")
    second = prepare(log("kuka_lwr4", model.robot, "measurements_2.npz"), cutoff=8)
    prior = identify(Problem.from_model(model, prepare(first, cutoff=8)), method="pc-ridge")
    error = reconstruct(prior, second).total.relative_error
    found["prior"] = {"strength": prior.diagnostics["strength"], "fit on file 1": prior.diagnostics["relative_error"],
                      "robot's file on file 1": prior.diagnostics["nominal_relative_error"],
                      "prediction of file 2": error}
    found["checks"][f"kuka_lwr4: the prior predicts file 2 to {NEXT} %: {error:.2f} %"] = error <= NEXT
    progress("panda: the prior's halves")
    model, recording = _robot("panda")
    middle = recording.t[0] + 0.5 * recording.duration
    halves = [prepare(half, cutoff=5) for half in (recording.between(recording.t[0], middle),
                                                   recording.between(middle, recording.t[-1] + 1.0))]
    for own, other, words in ((0, 1, "first half on second"), (1, 0, "second half on first")):
        estimate = identify(model, halves[own], method="pc-ridge")
        error = reconstruct(estimate, halves[other]).total.relative_error
        found["prior"][f"panda, {words}"] = error
        found["checks"][f"panda: the prior's {words} at most {HALVES} %: {error:.2f} %"] = error <= HALVES
    return found


def _robot(name: str) -> tuple[Model, Recording]:
    urdf, parts = ROBOTS[name]
    robot = Robot.from_urdf(data(name, urdf))
    wrist = {"rotor": True, "extra": [{"kind": "coupled-wrist", "joints": [5, 6]}]} if name == "tx40" else {}
    return Model(robot, make_terms(robot, friction=FRICTION, **wrist)), log(name, robot, *parts)


def _study(model: Model, samples: Samples) -> dict[str, Any]:
    """Compare the unconstrained and the consistent fit of one log, also in a simulated free fall."""
    problem = Problem.from_model(model, samples)
    free, bound = identify(problem, method="wls"), identify(problem, method="pc-wls")
    tested = is_possible(Consistency(model.parameters), free.values, problem.base)
    proof = tested.certificate
    cost = bound.diagnostics["relative_error"] - free.diagnostics["relative_error"]
    wrong = Consistency(model.parameters, margin=0.0).violations(bound.full)
    falls = {name: free_fall(model, bound.full, friction=friction)
             for name, friction in (("with friction", True), ("without", False))}
    proved = not tested.possible and proof is not None and proof.verify()
    return {
        "relative_error": {one.method: one.diagnostics["relative_error"] for one in (free, bound)}, "cost": cost,
        "unconstrained": {"possible": tested.possible, "distance": tested.distance, "proved": proved,
                          "gap": proof.gap if proof else 0.0, "because_of": list(tested.reasons),
                          "positive_definite": positive_inertia_share(model, free.full, samples=2000),
                          "free_fall": free_fall(model, free.full).sentence},
        "constrained": {"positive_definite": positive_inertia_share(model, bound.full, samples=2000),
                        "active": bound.diagnostics["active"],
                        "free_fall": {name: fall.sentence for name, fall in falls.items()}},
        "checks": {
            "the unconstrained fit cannot exist, proved by a certificate": proved,
            "the constrained fit can": not wrong,
            f"consistency costs less than {COST} percentage points: {cost:.3f}": cost < COST,
            "it falls for ten seconds and its energy never grows": all(fall.stable for fall in falls.values()),
        }}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("log", "wls, %", "pc-wls, %", "wls off by", "positive definite, %", "wls cannot exist because of")]
    for name, one in result["robots"].items():
        off = one["unconstrained"]
        rows.append((name, *(f"{one['relative_error'][method]:.2f}" for method in ("wls", "pc-wls")),
                     f"{off['distance']:.3g}",
                     f"{100 * off['positive_definite']:.0f}, {100 * one['constrained']['positive_definite']:.0f}",
                     "; ".join(off["because_of"][:4])))
    return [*rows, *((f"pc-ridge, {name}", "", f"{value:.3g}", "", "", "") for name, value in result["prior"].items())]
