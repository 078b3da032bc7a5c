"""Base parameters of Ardiani (tables 2.6, B.2), Sousa (4.4-4.6) and Simionato (A.1-A.4), compared with computed values.

The values follow from printed inputs alone. The tolerance is half a unit of the last printed digit of the result plus
the effect of rounded inputs. Coefficients of document 004 are cut off instead of rounded, so a whole unit is allowed.
Expressions are compared in tests/regression/test_published_base.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot
from reproductions._printed import Comparison, printed
from reproductions._sousa import TRAJECTORY_A, TRAJECTORY_B

MASS_FIRST = ["M", "MX MY MZ"]  # Simionato, eq. 2.5: all masses, then first moments, then inertias
WAM_PERIOD, WAM_SAMPLES = 12.5, 400  # s (eq. 4.22) and samples of a period
COEFFICIENT_ROUNDING = 0.005  # half a unit of the last digit of tables 4.4 and 4.5
ROUNDING_DRAWS = 20  # motions that round to the printed one, from which the tolerance of the condition number follows
ROUNDING_SPREADS = 2.0  # standard deviations of the condition numbers of these motions


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("KUKA iiwa: table 2.5 regrouped")
    tables = [_iiwa()]
    progress("3R arm and KUKA LWR IV+: coefficients")
    tables += _simionato()
    progress("Barrett WAM: drawings")
    tables.append(_drawings())
    progress("Barrett WAM: condition numbers of motions A and B")
    tables += [_condition("A", TRAJECTORY_A, printed("001", "4.4")), _condition("B", TRAJECTORY_B,
                                                                               printed("001", "4.5"))]
    return {"printed": [one.summary() for one in tables], "checks": {}}


def _iiwa() -> Comparison:
    """Table 2.6 from table 2.5: four decimals on both sides, half a unit for each standard parameter by its
    coefficient. Friction is in both tables alike."""
    table = printed("000", "2.6")
    robot = Robot.builtin("kuka-iiwa14")
    base = base_parameters(Model(robot))
    found = Comparison(table)
    for name, value, row in zip(base.names, base.reduce(base.parameters.nominal), base.matrix, strict=True):
        found.compare(name, "value", value, rounding=0.5e-4 * float(np.abs(row).sum()))
    found.leave_out("friction is not regrouped: the same numbers are in table 2.5")
    return found


def _simionato() -> list[Comparison]:
    found = []
    for name, inertial, friction in (("arm3r", "A.1", "A.2"), ("kuka-lwr4", "A.3", "A.4")):
        robot = Robot.builtin(name)
        base = base_parameters(Model(robot, make_terms(robot, defaults=True)), MASS_FIRST)
        values = _by_leading(base)
        for number in (inertial, friction):
            table = printed("004", number)
            found.append(Comparison(table))
            for expression in table.rows:
                # A bare 0 is exact.
                digit = 0.0 if table.text(expression, "value") == "0" else table.half_digit(expression, "value")
                found[-1].compare(expression, "value", values[_terms(expression)], rounding=digit,
                                  claimed=expression not in MISPRINTED)
    return found


# 5.2102 is printed where the printed inputs give 5.2103 and more: off by more than one unit of the last digit.
MISPRINTED = ("6.25YY2-6.5746YY4+6.25ZZ3-6.5746ZZ5+M3+M4-5MY3-5.1282MY5",)


def _terms(expression: str) -> frozenset[str]:
    """Return the standard parameters in an expression."""
    return frozenset(re.findall(r"[A-Z][A-Za-z]*\d", expression))


def _by_leading(base: BaseParameters) -> dict[frozenset[str], float]:
    """Value of each base parameter by the standard parameters that it combines."""
    values = base.reduce(base.parameters.vector(base.parameters.nominal))
    return {frozenset(terms): float(value) for terms, value in zip(base.coefficients().values(), values, strict=True)}


def _drawings() -> Comparison:
    """Compare the column of the manufacturer's drawings. Its lists differ by grams, so that not all values are
    reproduced."""
    table = printed("001", "4.6 drawings")
    base = base_parameters(Model(Robot.builtin("barrett-wam")))
    values = dict(zip((name.rstrip("R") for name in base.names), base.reduce(base.parameters.nominal), strict=True))
    found = Comparison(table)
    for row in table.rows:
        found.compare(row, "CAD", values[row], claimed=False)
    return found


def _condition(name: str, series: Array, table: Any) -> Comparison:
    """Return the condition number of the regressor along a motion of table 4.4 or 4.5, and the effect of the rounded
    coefficients on it."""
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    rng = np.random.default_rng(0)
    around = [_condition_number(model, base, series + COEFFICIENT_ROUNDING * rng.uniform(-1.0, 1.0, series.shape))
              for _ in range(ROUNDING_DRAWS)]
    found = Comparison(table)
    found.compare(name, "condition", _condition_number(model, base, series),
                  rounding=ROUNDING_SPREADS * float(np.std(around)), claimed=False)
    return found


def _condition_number(model: Model, base: BaseParameters, series: Array) -> float:
    motion = FourierSeries(series[:, :6], series[:, 6:12], series[:, 12], WAM_PERIOD).at(
        np.arange(WAM_SAMPLES) * WAM_PERIOD / WAM_SAMPLES)
    rows = model.regressor(motion.q, motion.dq, motion.ddq)[:, :, base.independent]
    return float(np.linalg.cond(rows.reshape(-1, len(base))))


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("table", "entry", "printed", "ours", "tolerance")]
    for one in result["printed"]:
        rows += [(f"{one['document']}, {one['table']}", f"{entry['row']} {entry['column']}", f"{entry['printed']:g}",
                  f"{entry['ours']:.6g}{'' if entry['within'] else ' (off)'}", f"{entry['tolerance']:.1g}")
                 for entry in one["entries"]]
    return rows
