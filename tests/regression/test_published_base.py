"""Base parameters against the tables that print them, expression by expression and value by value.

Published expressions stand below in dynid's names: J2xy is XY2, m2 c2x is MX2, m2 is M2; L_xx3 is XX3, l_x3 is MX3,
F_vj1 is Fv1, F_vm1 is Fvm1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from _sousa import TRAJECTORY_A

from dynid.model import Model, make_terms
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot

MASS_FIRST = ["M", "MX MY MZ"]  # Simionato, eq. 2.5: all masses, then first moments, then inertias
_TERM = re.compile(r"([+-]?)\s*(?:(\d+(?:\.\d+)?(?:e-?\d+)?)\s+)?([A-Z][A-Za-z]*\d+)\s*")


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


def last_digit(printed: str) -> float:
    """One unit of the last printed digit; a bare 0 in these tables is exact."""
    mantissa, _, exponent = printed.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 1e-12 if float(printed) == 0 else 10.0 ** (int(exponent or 0) - decimals)


def assert_same_values(base: BaseParameters, places: list[int], printed: list[str]) -> None:
    """The printed values within one unit of their last digit: they are cut off, not rounded."""
    nominal = base.parameters.nominal
    assert nominal is not None
    values = base.reduce(nominal)[places]
    for value, text in zip(values, printed, strict=True):
        assert value == pytest.approx(float(text), abs=last_digit(text)), text


# -- N1: 3R arm, Simionato, tables A.1 and A.2 -----------------------------------------------------
A1 = [
    ("44.44 ZZ3 - 20.66 ZZ2 + M2", "0.9235"),
    ("M3 - 44.44 ZZ3", "0.7995"),
    ("4.545 ZZ2 + MX2", "-0.00949"),
    ("MY2", "0.0008"),
    ("6.667 XZ3 - 4.545 XZ2 + MZ2", "0.00296"),
    ("6.667 ZZ3 + MX3", "-0.0119"),
    ("MY3", "0.0024"),
    ("MZ3 - 6.667 XZ3", "0.00108"),
    ("YY1 + YY2 + YY3 - ZZ2 - ZZ3", "0.02631"),
    ("XX2 - YY2 + ZZ2", "0.000498"),
    ("XY2", "0.000127"),
    ("YZ2", "-3.2e-06"),
    ("XX3 - YY3 + ZZ3", "0.000561"),
    ("XY3", "0.000252"),
    ("YZ3", "-1.44e-05"),
]
A2 = [("Fv1", "0.0665"), ("Fv2", "0.1987"), ("Fv3", "0.0399"), ("Fc1", "0.2450"), ("Fc2", "0.1523"), ("Fc3", "0.1827"),
      ("Fo1", "-0.1073"), ("Fo2", "-0.1566"), ("Fo3", "-0.0686")]

# -- N2: KUKA LWR IV+, Simionato, tables A.3 and A.4 -----------------------------------------------
# The first two rows print 0.6575 for 1/d2^2 = 6.5746 three times; the values beside them are those of 6.5746.
A3 = [
    ("6.25 YY2 - 6.5746 YY4 + 6.25 ZZ3 - 6.5746 ZZ5 + M3 + M4 - 5 MY3 - 5.1282 MY5", "5.2103"),  # 5.2102 in print
    ("6.5746 YY4 + 6.5746 ZZ5 + M5 + M6 + M7 + 5.1282 MY5", "3.0671"),
    ("MX2", "0.003618"),
    ("MZ2 - 2.5 ZZ3 - 2.5 YY2 + MY3", "0.2890"),
    ("MX3", "-0.003618"),
    ("MZ3 + MY4", "0"),
    ("MX4", "-0.003618"),
    ("MZ4 - 2.5641 ZZ5 - 2.5641 YY4 - MY5", "0.2550"),
    ("MX5", "-0.00168"),
    ("MZ5 - MY6", "-0.0362"),
    ("MX6", "-0.0004144"),
    ("MZ6 + MZ7", "0.01037"),
    ("MX7", "0"),
    ("MY7", "0"),
    ("YY1 + ZZ2", "0.013774"),
    ("XX2 - YY2 - ZZ2", "-0.004867"),
    ("XY2", "9.415e-05"),
    ("XZ2", "-0.0003145"),
    ("YZ2", "0.009747"),
    ("XX3 - ZZ3 + ZZ4", "-0.023226"),
    ("XY3", "0.0003145"),
    ("XZ3", "-9.5572e-05"),
    ("YY3 + ZZ4", "0.0137742"),
    ("YZ3", "0.002681"),
    ("XX4 - YY4 - ZZ4", "-0.006887"),
    ("XY4", "9.415e-05"),
    ("XZ4", "0.00031455"),
    ("YZ4", "0.009747"),
    ("XX5 - ZZ5 + ZZ6", "0.00547"),
    ("XY5", "-0.0001898"),
    ("XZ5", "-4.474e-05"),
    ("YY5 + ZZ6", "0.008415"),
    ("YZ5", "-0.002023"),
    ("XX6 + YY7 - ZZ6", "0.000822"),
    ("XY6", "-2.463e-06"),
    ("XZ6", "-2.323e-06"),
    ("YY6 + YY7", "0.00436"),
    ("YZ6", "-7.008e-05"),
    ("XX7 - YY7", "0.002178"),
    ("XY7", "0"),
    ("XZ7", "0"),
    ("YZ7", "0"),
    ("ZZ7", "0.0001584"),
]
A4 = list(zip([f"{kind}{j}" for kind in ("Fv", "Fc", "Fo") for j in range(1, 8)],
              "0.0665 0.1987 0.0399 0.2257 0.1023 -0.0132 0.0638 0.245 0.1523 0.1827 0.3591 0.2669 0.1658 0.2109 "
              "-0.1073 -0.1566 -0.0686 -0.2522 0.0045 0.0910 -0.0127".split(), strict=True))


@pytest.mark.parametrize(("name", "inertial", "friction"), [("arm3r", A1, A2), ("kuka-lwr4", A3, A4)])
def test_simionato(name: str, inertial: list[tuple[str, str]], friction: list[tuple[str, str]]) -> None:
    robot = Robot.builtin(name)
    for terms, rows in ((make_terms(robot), inertial), (make_terms(robot, defaults=True), inertial + friction)):
        base = base_parameters(Model(robot, terms), MASS_FIRST)
        expressions, values = map(list, zip(*rows, strict=True))
        assert_same_values(base, assert_same_expressions(base, expressions, 2e-4), values)


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
TABLE_2_6 = {
    "ZZ1R": 0.0643, "XX2R": 2.2711, "ZZ2R": 2.3975, "XY2": -0.0079, "XZ2": 0.0081, "YZ2": 0.0485, "MX2": 0.0072,
    "MY2R": -5.9099, "XX3R": 0.0070, "ZZ3R": 0.0070, "XY3": 0.0062, "XZ3": 0.0087, "YZ3": 0.0, "MX3": 0.0142,
    "MY3R": -0.0359, "XX4R": 0.8110, "ZZ4R": 0.8213, "XY4": -0.0020, "XZ4": -0.0026, "YZ4": 0.0039, "MX4": 0.0012,
    "MY4R": 2.3750, "XX5R": 0.0094, "ZZ5R": 0.0145, "XY5": -0.0009, "XZ5": 0.0043, "YZ5": -0.0045, "MX5": 0.0004,
    "MY5R": -0.0762, "XX6R": 0.0145, "ZZ6R": 0.0175, "XY6": 0.0016, "XZ6": -0.0011, "YZ6": 0.0001, "MX6": -0.0008,
    "MY6R": -0.1166, "XX7R": 0.0010, "ZZ7": 0.0013, "XY7": 0.0, "XZ7": -0.0007, "YZ7": -0.0002, "MX7": -0.0032,
    "MY7": 0.0008,
}


def test_ardiani_regroupings() -> None:
    base = base_parameters(Model(Robot.builtin("kuka-iiwa14")))
    assert (len(B2), len(DIRECT)) == (17, 26)
    assert_same_expressions(base, B2 + DIRECT, 1e-9)


def test_ardiani_table_2_5_gives_table_2_6() -> None:
    base = base_parameters(Model(Robot.builtin("kuka-iiwa14")))
    nominal = base.parameters.nominal
    assert nominal is not None
    assert set(base.names) == set(TABLE_2_6)
    for name, value, row in zip(base.names, base.reduce(nominal), base.matrix, strict=True):
        # Four decimals on both sides: half a unit for each standard parameter by its coefficient, and for the result.
        assert value == pytest.approx(TABLE_2_6[name], abs=0.5e-4 * (1 + np.abs(row).sum()) + 1e-9), name


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


# Table 4.6, second column: base parameters of the bodies from the maker's drawings, joint after joint.
CAD = [0.1328, 1.1810, 0.0000, 0.0001, 1.1890, -0.0000, -0.0092, 2.3328, 0.0039, -0.0000, -0.0000, -0.0070, 0.0000,
       0.1476, -0.0005, 0.1149, -0.0000, -0.0001, 0.1057, 0.0001, -0.1235, 0.5010, 0.0006, -0.0000, 0.0000, 0.0007,
       0.0000, 0.0000, -0.0066, 0.0006, -0.0000, 0.0000, 0.0008, 0.0002, -0.0001, 0.0142, -0.0000, 0.0000, -0.0000,
       0.0000, 0.0001, -0.0000, 0.0000]


def test_sousa_column_of_the_makers_drawings() -> None:
    """Products of inertia to the last digit printed, sign included; the rest to the few grams by which the maker's
    lists differ: 3 g at the elbow are 2e-3 kg m at the shoulder."""
    model = Model(Robot.builtin("barrett-wam"))
    base = base_parameters(model)
    found = base.reduce(model.parameters.nominal)
    assert len(CAD) == len(base) == 43
    products = np.array([name[:2] in ("XY", "XZ", "YZ") for name in base.names])
    np.testing.assert_allclose(found[products], np.array(CAD)[products], atol=1.01e-4)
    np.testing.assert_allclose(found, CAD, atol=2e-3)


def test_sousa_condition_number_of_trajectory_a() -> None:
    model = wam()
    base = base_parameters(model)
    a, b, q0 = TRAJECTORY_A[:, :6], TRAJECTORY_A[:, 6:12], TRAJECTORY_A[:, 12]
    w = 2 * np.pi * 0.08 * np.arange(1, 7)  # eq. 4.22
    wt = np.arange(400)[:, None] * (12.5 / 400) * w
    # Eq. 4.19 and its derivatives; in eq. 4.20 as printed the sine of the velocity has the wrong sign.
    q = q0 + np.sin(wt) @ (a / w).T - np.cos(wt) @ (b / w).T
    dq = np.cos(wt) @ a.T + np.sin(wt) @ b.T
    ddq = -np.sin(wt) @ (a * w).T + np.cos(wt) @ (b * w).T
    y = model.regressor(q, dq, ddq)[:, :, base.independent]
    # 105 in print, from unrounded coefficients.
    assert np.linalg.cond(y.reshape(-1, 76)) == pytest.approx(107.9, abs=0.05)


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
