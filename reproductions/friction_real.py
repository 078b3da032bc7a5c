"""Automatic choice of friction on one part of real logs, tested on another: TX40, EMPS, Panda, LWR4+."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.estimate import Problem, choose_terms, identify
from dynid.model import Model, Term, make_terms, term_from_table
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import reconstruct
from reproductions._data import data, log

OWN_STUDY = True  # no document prints it
PLAIN = ("viscous", "coulomb", "offset")
TRIED = {"plain": PLAIN, "curve": ("curve", "offset"), "curve and load": ("curve", "load", "offset")}


@dataclass(frozen=True, eq=False)
class Case:
    """One part of the data for the fit, and another for the test. limit: largest error, relative to that of plain
    friction."""

    name: str
    robot: Robot
    terms: tuple[Term, ...]
    fitted: Samples
    tried: Samples
    limit: Callable[[float], float]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    found: dict[str, Any] = {"cases": {}, "checks": {}}
    for case in _cases(progress):
        progress(f"{case.name}: choosing and fitting")
        choice = choose_terms(Model(case.robot, case.terms), case.fitted)
        tried = {name: make_terms(case.robot, friction=kinds)[1:] for name, kinds in TRIED.items()}
        tried["auto"] = tuple(map(term_from_table, choice.tables))
        errors = {name: _error(case, terms) for name, terms in tried.items()}
        limit = case.limit(errors["plain"])
        found["cases"][case.name] = {"relative_error": errors, "at_most": limit, "choice": choice.to_dict()}
        found["checks"][f"{case.name}: at most {limit:.2f} %: {errors['auto']:.2f} %"] = errors["auto"] <= limit
    return found


def _error(case: Case, friction: tuple[Term, ...]) -> float:
    """Relative error on the part that was not fitted, percent."""
    problem = Problem.from_model(Model(case.robot, (*case.terms, *friction)), case.fitted)
    return reconstruct(identify(problem, method="wls"), case.tried).relative_error


def _cases(progress: Callable[[str], None]) -> Iterator[Case]:
    progress("tx40: reading and preparing, 20 Hz")
    robot = Robot.from_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    samples = prepare(log("tx40", robot), cutoff=100, decimate=10, stages=2)
    terms = make_terms(robot, rotor=True, extra=[{"kind": "coupled-wrist", "joints": [5, 6]}])
    even, odd = _tenths(samples)
    yield Case("tx40, even tenths on odd", robot, terms, even, odd, lambda plain: 4.4)
    yield Case("tx40, odd tenths on even", robot, terms, odd, even, lambda plain: 5.3)
    progress("emps: reading and preparing, 20 Hz")
    robot = Robot.builtin("emps")
    even, odd = _tenths(prepare(log("emps", robot, "DATA_EMPS.mat"), cutoff=20))
    yield Case("emps, even tenths on odd", robot, make_terms(robot), even, odd, lambda plain: plain)
    yield Case("emps, odd tenths on even", robot, make_terms(robot), odd, even, lambda plain: plain)
    progress("panda: reading and preparing, 5 Hz")
    robot = Robot.from_urdf(data("panda", "panda_arm.urdf"))
    whole = log("panda", robot)
    middle = whole.t[0] + 0.5 * whole.duration
    first, second = (prepare(half, cutoff=5) for half in (whole.between(whole.t[0], middle),
                                                          whole.between(middle, whole.t[-1] + 1.0)))
    yield Case("panda, first half on second", robot, make_terms(robot), first, second, lambda plain: 1.05 * plain)
    yield Case("panda, second half on first", robot, make_terms(robot), second, first, lambda plain: 1.05 * plain)
    progress("kuka_lwr4: reading and preparing, 8 Hz")
    robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
    first, second = (prepare(log("kuka_lwr4", robot, f"measurements_{k}.npz"), cutoff=8) for k in (1, 2))
    yield Case("kuka_lwr4, file 1 on 2", robot, make_terms(robot), first, second, lambda plain: 1.05 * plain)


def _tenths(samples: Samples) -> tuple[Samples, Samples]:
    """Two sets of alternate tenths of a log."""
    tenth = 10 * np.arange(len(samples)) // len(samples)
    even, odd = (replace(samples, keep=samples.keep & (tenth % 2 == k)[:, None]) for k in (0, 1))
    return even, odd


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("fitted on, tried on: error, %", *TRIED, "auto", "at most")]
    for name, case in result["cases"].items():
        errors = case["relative_error"]
        rows.append((name, *(f"{errors[one]:.2f}" for one in (*TRIED, "auto")), f"{case['at_most']:.2f}"))
    rows.append(("what each joint took, and its part of the joint's error on blocks left out, %",) + 5 * ("",))
    for name, case in result["cases"].items():
        for joint, own in case["choice"]["joints"].items():
            taken = ", ".join(f"{term} {one['gain_percent']:.1f} +- {one['standard_error']:.1f}"
                              for term, one in own["taken"].items())
            rows.append((f"{name.split(',')[0]}, {joint}: {taken or 'viscous and dry'}", *5 * ("",)))
    return rows
