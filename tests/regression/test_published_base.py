"""Base parameters against the tables that print them, expression by expression.

Their values are compared by `dynid reproduce base-parameters`.

Published expressions stand below in dynid's names: J2xy is XY2, m2 c2x is MX2, m2 is M2; L_xx3 is XX3, l_x3 is MX3,
F_vj1 is Fv1, F_vm1 is Fvm1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dynid.model import Model, make_terms
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot
from reproductions._printed import printed

MASS_FIRST = ["M", "MX MY MZ"]  # Simionato, eq. 2.5: all masses, then first moments, then inertias
_TERM = re.compile(r"([+-]?)\s*(?:(\d+(?:\.\d+)?(?:e-?\d+)?)\s*)?([A-Z][A-Za-z]*\d+)\s*")


def coefficients(expression: str) -> dict[str, float]:
    """{'ZZ1': 1.0, 'M2': 0.25} of 'ZZ1 + 0.25 M2'."""
    found: dict[str, float] = {}
    at = 0
    while at < len(expression):
        match = _TERM.match(expression, at)
        assert match, expression[at:]
        sign, size, name = match.groups()
        found[name] = (-1.0 if sign == "-" else 1.0) * float(size or 1)
        at = match.end()
    return found


def assert_same_expressions(base: BaseParameters, published: list[str], digits: float) -> list[int]:
    """Every published expression is one of ours, with coefficients to `digits` relative; where each stands."""
    assert len(base) == len(published)
    ours = list(base.coefficients().values())
    places = []
    for expression in published:
        wanted = coefficients(expression)
        places.append(next((k for k, mine in enumerate(ours) if set(mine) == set(wanted)), -1))
        assert places[-1] >= 0, f"{expression} is none of {base.expressions}"
        for name, value in wanted.items():
            assert ours[places[-1]][name] == pytest.approx(value, rel=digits), expression
    assert sorted(places) == list(range(len(base)))
    return places


# -- N1, N2: 3R arm and KUKA LWR IV+, Simionato, tables A.1 to A.4 -----------------------------------
# The first two rows of A.3 print 0.6575 for 1/d2^2 = 6.5746 three times; the values beside them are those of 6.5746.
A1, A2, A3, A4 = (list(printed("004", number).rows) for number in ("A.1", "A.2", "A.3", "A.4"))


@pytest.mark.parametrize(("name", "inertial", "friction"), [("arm3r", A1, A2), ("kuka-lwr4", A3, A4)])
def test_simionato(name: str, inertial: list[str], friction: list[str]) -> None:
    robot = Robot.builtin(name)
    for terms, rows in ((make_terms(robot), inertial), (make_terms(robot, defaults=True), inertial + friction)):
        assert_same_expressions(base_parameters(Model(robot, terms), MASS_FIRST), rows, 2e-4)


def test_counts_of_simionato() -> None:
    assert (len(A1), len(A1 + A2), len(A3), len(A3 + A4)) == (15, 24, 43, 64)


# -- N3: KUKA iiwa 14, Ardiani, tables B.2 and 2.6 (d3 = 0.42, d5 = 0.40) ---------------------------
M37 = " ".join(f"{{0}} {{1:.17g}} M{i}" for i in range(3, 8))
M57 = " ".join(f"{{0}} {{1:.17g}} M{i}" for i in range(5, 8))
B2 = [
    "ZZ1 + YY2",
    "XX2 - YY2 + YY3 + 0.84 MZ3 " + M37.format("+", 0.42**2),
    "ZZ2 + YY3 + 0.84 MZ3 " + M37.format("+", 0.42**2),
    "MY2 - MZ3 " + M37.format("-", 0.42),
    "XX3 - YY3 + YY4",
    "ZZ3 + YY4",
    "MY3 - MZ4",
    "XX4 - YY4 + YY5 + 0.8 MZ5 " + M57.format("+", 0.4**2),
    "ZZ4 + YY5 + 0.8 MZ5 " + M57.format("+", 0.4**2),
    "MY4 + MZ5 " + M57.format("+", 0.4),
    "XX5 - YY5 + YY6",
    "ZZ5 + YY6",
    "MY5 + MZ6",
    "XX6 - YY6 + YY7",
    "ZZ6 + YY7",
    "MY6 - MZ7",
    "XX7 - YY7",
]
DIRECT = [f"{kind}{i}" for i in range(2, 8) for kind in ("XY", "XZ", "YZ", "MX")] + ["MY7", "ZZ7"]

def test_ardiani_regroupings() -> None:
    base = base_parameters(Model(Robot.builtin("kuka-iiwa14")))
    assert (len(B2), len(DIRECT)) == (17, 26)
    assert_same_expressions(base, B2 + DIRECT, 1e-9)


# -- N4: Barrett WAM, Sousa, tables 4.2 and 4.4 -----------------------------------------------------
def masses(sign: str, size: str, first: int) -> str:
    return " ".join(f"{sign} {size} M{i}" for i in range(first, 8))


TABLE_4_2 = [
    "YY1 + Iam1 + ZZ2", "Fv1 + Fvm1", "Fc1 + Fcm1", "Fo1 - Fom1",
    "XX2 - ZZ2 + ZZ3 - 1.1 MY3 " + masses("+", "0.300475", 3), "XY2", "XZ2",
    "YY2 + ZZ3 - 1.1 MY3 " + masses("+", "0.300475", 3), "YZ2", "MX2", "MZ2 - MY3 " + masses("+", "0.55", 3),
    "Fv2 + 2 Fvm3", "Fc2", "Fo2 + 1.68 Fo3 - 2 Fom3", "Fvm2 - Fvm3", "Fcm2", "Fom2 - 1.68 Fo3 + Fom3", "Iam2",
    "XX3 - ZZ3 + 0.002025 M3 + ZZ4", "XY3 - 0.045 MY3", "XZ3",
    "YY3 - 0.002025 M3 + ZZ4 " + masses("-", "0.00405", 4), "YZ3", "MX3 " + masses("+", "0.045", 3), "MZ3 + MY4",
    "Fv3 + 0.70861678 Fvm3", "Fc3", "Fcm3", "Iam3",
    "XX4 - ZZ4 + 0.002025 M4 + ZZ5 - 0.6 MY5 " + masses("+", "0.092025", 5), "XY4 + 0.045 MY4", "XZ4",
    "YY4 - 0.002025 M4 + ZZ5 - 0.6 MY5 " + masses("+", "0.087975", 5), "YZ4", "MX4 " + masses("-", "0.045", 4),
    "MZ4 - MY5 " + masses("+", "0.3", 5), "Fv4 + Fvm4", "Fc4 + Fcm4", "Fo4 + Fom4", "Iam4",
    "XX5 - ZZ5 + ZZ6", "XY5", "XZ5", "YY5 + ZZ6", "YZ5", "MX5", "MZ5 + MY6",
    "Fv5 + 2 Fvm6", "Fc5", "Fo5 + Fo6 + 2 Fom6", "Fvm5 - Fvm6", "Fcm5", "Fom5 - Fo6 - Fom6", "Iam5",
    "XX6 - ZZ6 + YY7 + 0.12 MZ7 + 0.0036 M7", "XY6", "XZ6", "YY6 + YY7 + 0.12 MZ7 + 0.0036 M7", "YZ6", "MX6",
    "MZ6 + MZ7 + 0.06 M7", "Fv6 + 2 Fvm6", "Fc6", "Fcm6", "Iam6",
    "XX7 - YY7", "XY7", "XZ7", "YZ7", "ZZ7", "MX7", "MY7", "Fv7 + Fvm7", "Fc7 + Fcm7", "Fo7 - Fom7", "Iam7",
]


def wam() -> Model:
    robot = Robot.builtin("barrett-wam")
    return Model(robot, make_terms(robot, defaults=True))


def test_sousa_expressions_in_their_order() -> None:
    base = base_parameters(wam())
    assert len(TABLE_4_2) == 76
    assert assert_same_expressions(base, TABLE_4_2, 1e-7) == list(range(76))


# -- N8: Staubli TX40, the table of base parameters identified on the real log ----------------------
def test_tx40_has_those_of_its_reference_and_a_rotor(data: Callable[..., Path]) -> None:
    robot = Robot.builtin("staubli-tx40")
    base = base_parameters(Model(robot, make_terms(robot, defaults=True)))
    published = []
    for line in data("tx40", "TX40_bp_5.csv").read_text().splitlines():
        text = re.sub(r"\bI([xyz]{2})(\d)", lambda m: m[1].upper() + m[2], line.split(",")[0].replace("*", " "))
        text = re.sub(r"\bm([xyz])(\d)", lambda m: "M" + m[1].upper() + m[2], text)
        for theirs, ours in ((r"\bm(\d)", r"M\1"), (r"\bfvm", "Fvm"), (r"\bfsm", "Fcm"), (r"\bfv", "Fv"),
                             (r"\bfs", "Fc"), (r"\boff", "Fo")):
            text = re.sub(theirs, ours, text)
        published.append(text)
    # The file has 60 rows; the rotor of joint 6, which it leaves out, is the 61st.
    assert len(published) == 60
    assert_same_expressions(base, [*published, "Ia6"], 1e-5)
