"""3-link robot and WAM (Sousa): physical consistency of published base parameters, and the nearest consistent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.consistency import Consistency, Feasibility
from dynid.consistency import test as is_possible
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.validate import free_fall, positive_inertia_line
from reproductions._printed import Comparison, printed
from reproductions._sousa import FIRST, SECOND, WAM, three_links

COLUMNS = ("weighted LS", "nearest feasible", "constrained", "constrained, more limits")
SHARES = np.linspace(0.0, 1.0, 11)
SOLVER_ERROR = 1e-6  # of the thesis' solver, by its s. 6.3.2
WAM_ROUNDING = 0.5e-4  # of the entries of table 4.9 that are input


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("three links of Yoshida and Khalil")
    base = three_links()
    spatial = Consistency(base.parameters, form="spatial", margin=0.0)
    # The least distance is approached as unseen masses grow: "heaviest" lets them.
    heavy = Consistency(base.parameters, form="spatial", margin=0.0, heaviest=1e4)
    found = {"3 links, first": is_possible(spatial, FIRST, base), "3 links, second": is_possible(heavy, SECOND, base),
             "3 links, first, 4 x 4": is_possible(Consistency(base.parameters, margin=0.0), FIRST, base)}
    triangle = found["3 links, first, 4 x 4"].distance
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
        "distance": {name: one.distance for name, one in found.items()},
        "printed": [_three_links(found["3 links, second"]), _wam(worst)],
        "possible": {name: one.possible for name, one in found.items()},
        "proved": {name: _proved(one) for name, one in found.items()},
        "reasons": {name: list(one.reasons) for name, one in found.items()},
        "positive_definite": {"share": SHARES.tolist(), "ratio": line.tolist()},
        "free_fall": {name: fall.sentence for name, fall in falls.items()},
        "checks": {sentence: bool(holds) for sentence, holds in {
            "3 links: the first vector is possible": found["3 links, first"].possible,
            "3 links: the second is not, proved by a certificate": _proved(found["3 links, second"]),
            f"WAM: weighted LS is not possible, squared distance {worst.distance ** 2:.5f}, 0.0077 printed":
                _proved(worst) and abs(worst.distance ** 2 - 0.0077) < 0.5e-4,
            "WAM: the other three are possible to 1e-4, the tables' rounding":
                all(found[f"WAM, {name}"].possible for name in COLUMNS[1:]),
            f"WAM: inertia matrices of weighted LS are not all positive definite: {100 * line[0]:.1f} %": line[0] < 1.0,
            "WAM: those of the constrained solution are": line[-1] == 1.0,
            "WAM: the ratio grows along the line between them": np.all(np.diff(line) >= 0.0),
            "WAM: let go, weighted LS does not last ten seconds": not falls["weighted LS"].stable,
            "WAM: let go, the constrained solution falls and its energy never grows": falls["constrained"].stable,
        }.items()},
        "demonstrations": {f"3 links: with the triangle inequality the first is not consistent, off by {triangle:.1e}":
                           bool(triangle > 0.0 and not found["3 links, first, 4 x 4"].possible)}}


def _three_links(second: Feasibility) -> dict[str, Any]:
    """Table 6.1: the vector nearest to the second, and its distance."""
    table = printed("001", "6.1")
    compared = Comparison(table)
    for row, value in zip(table.rows, second.nearest, strict=False):
        compared.compare(row, "nearest", value, rounding=SOLVER_ERROR)
    compared.compare("distance", "nearest", second.distance)
    compared.leave_out("vectors that are given")
    return compared.summary()


def _wam(weighted: Feasibility) -> dict[str, Any]:
    """Table 4.9: the vector nearest to that of weighted LS, which is given with four decimals."""
    table = printed("001", "4.9")
    compared = Comparison(table)
    for row, value in zip(table.rows, weighted.nearest, strict=True):
        compared.compare(row, "nearest", value, rounding=WAM_ROUNDING)
    compared.leave_out("given", [(row, "WLS") for row in table.rows])
    compared.leave_out("estimates of a log that is not public")
    return compared.summary()


def _proved(found: Feasibility) -> bool:
    """Return whether base parameters are inconsistent, with a certificate that can be verified by arithmetic."""
    return not found.possible and found.certificate is not None and found.certificate.verify()


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("base vector", "distance", "possible", "because of")]
    for name, distance in result["distance"].items():
        rows.append((name, f"{distance:.4e}", "yes" if result["possible"][name] else "no",
                     "; ".join(result["reasons"][name][:3])))
    return rows
