"""3-link robot and WAM (Sousa): which published base vectors can exist, how far off the others are, what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _sousa import FIRST, NEAREST, SECOND, WAM, three_links

from dynid.consistency import Consistency, Feasibility
from dynid.consistency import test as is_possible
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.validate import free_fall, positive_inertia_line

COLUMNS = ("weighted LS", "nearest feasible", "constrained", "constrained, more limits")
SHARES = np.linspace(0.0, 1.0, 11)
PUBLISHED = {"3 links, first": 0.0, "3 links, second": 1.6497e-3, "3 links, first, 4 x 4": 1.9e-4,
             **{f"WAM, {name}": 0.0 for name in COLUMNS[1:]}, "WAM, weighted LS": float(np.sqrt(0.00773))}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("three links of Yoshida and Khalil")
    base = three_links()
    spatial = Consistency(base.parameters, form="spatial", margin=0.0)
    # The least distance is approached as unseen masses grow: "heaviest" lets them.
    heavy = Consistency(base.parameters, form="spatial", margin=0.0, heaviest=1e4)
    found = {"3 links, first": is_possible(spatial, FIRST, base), "3 links, second": is_possible(heavy, SECOND, base),
             "3 links, first, 4 x 4": is_possible(Consistency(base.parameters, margin=0.0), FIRST, base)}
    near = float(np.abs(found["3 links, second"].nearest - NEAREST).max())
    progress("the WAM's four solutions")
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    wam = base_parameters(model)
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    for name, column in zip(COLUMNS, WAM.T, strict=True):
        found[f"WAM, {name}"] = is_possible(consistency, column, wam, tolerance=1e-4)
    worst = found["WAM, weighted LS"]
    progress("inertia matrices between the weighted and the constrained solution")
    infeasible, feasible = wam.expand(WAM[:, 0]), found["WAM, constrained"].theta
    line = positive_inertia_line(model, infeasible, feasible, shares=SHARES, samples=4000)
    progress("free falls")
    falls = {"weighted LS": free_fall(model, infeasible), "constrained": free_fall(model, feasible)}
    return {
        "distance": {name: one.distance for name, one in found.items()}, "published_distance": PUBLISHED,
        "possible": {name: one.possible for name, one in found.items()},
        "proved": {name: _proved(one) for name, one in found.items()},
        "reasons": {name: list(one.reasons) for name, one in found.items()},
        "positive_definite": {"share": SHARES.tolist(), "ratio": line.tolist()},
        "free_fall": {name: fall.sentence for name, fall in falls.items()},
        "checks": {sentence: bool(holds) for sentence, holds in {
            "3 links: the first vector is possible": found["3 links, first"].possible,
            "3 links: the second is not, proved by a certificate": _proved(found["3 links, second"]),
            f"3 links: distance 1.6497e-3: {found['3 links, second'].distance:.4e}":
                abs(found["3 links, second"].distance - 1.6497e-3) < 1e-6,
            f"3 links: nearest vector as printed, to 1e-6: {near:.1e}": near <= 1e-6,
            "3 links: with the triangle inequality the first is off by 1.9e-4 too":
                abs(found["3 links, first, 4 x 4"].distance - 1.9e-4) < 5e-6,
            f"WAM: weighted LS is not possible, squared distance 0.00773: {worst.distance ** 2:.5f}":
                _proved(worst) and abs(worst.distance ** 2 - 0.00773) < 1e-5,
            "WAM: the other three are possible to 1e-4, the tables' rounding":
                all(found[f"WAM, {name}"].possible for name in COLUMNS[1:]),
            "WAM: the nearest vector is the printed column, to 1e-4":
                np.abs(worst.nearest - WAM[:, 1]).max() <= 1e-4,
            f"WAM: inertia matrices of weighted LS are not all positive definite: {100 * line[0]:.1f} %": line[0] < 1.0,
            "WAM: those of the constrained solution are": line[-1] == 1.0,
            "WAM: the ratio grows along the line between them": np.all(np.diff(line) >= 0.0),
            "WAM: let go, weighted LS does not last ten seconds": not falls["weighted LS"].stable,
            "WAM: let go, the constrained solution falls and its energy never grows": falls["constrained"].stable,
        }.items()}}


def _proved(found: Feasibility) -> bool:
    """Not possible, with a certificate that holds by arithmetic alone."""
    return not found.possible and found.certificate is not None and found.certificate.verify()


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("base vector", "distance, published", "ours", "possible", "because of")]
    for name, distance in result["distance"].items():
        rows.append((name, f"{result['published_distance'][name]:.4e}", f"{distance:.4e}",
                     "yes" if result["possible"][name] else "no", "; ".join(result["reasons"][name][:3])))
    return rows
