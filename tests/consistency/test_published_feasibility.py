"""Feasibility of published base vectors: Sousa, tables 4.9 and 6.1."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.consistency import Consistency
from dynid.consistency import test as is_possible
from dynid.model import Model, Parameter, Parameters, make_terms
from dynid.regression import BaseParameters, base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten

# Table 6.1, after Yoshida and Khalil 2000: the base parameters of a 3-link robot.
EXPRESSIONS = ("YY1 + YY2 + YY3 + M3", "XX2 - YY2 - M3", "XY2", "XZ2 - MZ3", "YZ2", "ZZ2 + M3", "MX2 + M3", "MY2",
               "XX3 - YY3", "XY3", "XZ3", "YZ3", "ZZ3", "MX3", "MY3")
FIRST = np.array([6.4, -5.48, 0.072, -0.087, 0.051, 5.6, 6.5, -0.00075, -0.72,
                  -0.0098, -0.0098, -0.00045, 0.72, 0.95, 0.015])
SECOND = np.append(6.2, FIRST[1:])
NEAREST = np.array([6.200951, -5.479049, 0.071966, -0.086967, 0.050999, 5.600000, 6.500000, -0.000750, -0.719049,
                    -0.009819, -0.009817, -0.000450, 0.720000, 0.949999, 0.014966])

# Table 4.9, one row a base parameter: weighted LS, its nearest feasible, constrained, constrained with more limits.
WAM = np.array("""
0.3712 0.3712 0.3380 0.3404  1.6481 1.6481 1.6312 1.6209  1.8033 1.8033 1.8076 1.8116
-0.0610 -0.0610 -0.0603 -0.0598  1.0195 1.0195 1.0705 1.0679  -0.0150 -0.0149 -0.0034 0.0018
0.0135 0.0135 0.0028 -0.0003  1.1703 1.1712 1.2719 1.2805  0.0011 0.0011 0.0067 0.0074
0.0315 0.0315 0.0258 0.0258  2.3913 2.3913 2.3910 2.3914  1.5774 1.5774 1.4507 1.4463
-0.0703 0.0000 0.0000 0.0000  0.6776 0.6776 0.6379 0.6487  -0.0523 -0.0523 -0.0140 -0.0130
0.7613 0.7613 0.7552 0.7536  -0.1035 -0.1035 -0.1042 -0.1036  0.0500 0.0500 0.0065 0.0000
0.0527 0.0531 0.0467 0.0446  0.0130 0.0096 0.0070 0.0063  -0.0565 -0.0559 -0.0499 -0.0518
-0.0239 -0.0098 0.0061 0.0093  -0.0426 -0.0433 -0.0279 -0.0122  0.1693 0.1687 0.1698 0.1711
0.0271 0.0267 0.0244 0.0220  0.6417 0.6417 0.6245 0.6256  0.3491 0.3491 0.3601 0.3655
0.6895 0.6895 0.6997 0.6971  0.1255 0.1255 0.0638 0.0619  0.0830 0.0899 0.0874 0.0855
0.0343 0.0271 0.0204 0.0162  -0.0281 -0.0136 -0.0241 -0.0237  0.0983 0.1002 0.0870 0.0862
0.0070 -0.0006 -0.0003 -0.0030  -0.1133 -0.1116 -0.1130 -0.1127  0.4898 0.4878 0.4918 0.4919
0.5813 0.5813 0.5764 0.5774  0.5446 0.5446 0.5548 0.5568  -0.1257 -0.1257 -0.1192 -0.1174
-0.0458 0.0000 0.0000 0.0000  -0.0019 0.0011 -0.0007 -0.0004  -0.0047 -0.0017 -0.0016 -0.0013
-0.0020 0.0003 -0.0022 -0.0023  0.0028 0.0038 0.0049 0.0049  -0.0038 -0.0002 -0.0013 -0.0011
0.0017 0.0022 0.0026 0.0024  -0.0038 -0.0031 -0.0039 -0.0039  0.0509 0.0509 0.0446 0.0444
-0.0020 0.0000 0.0000 0.0000  -0.0082 -0.0082 -0.0079 -0.0085  0.0148 0.0148 0.0153 0.0153
0.0574 0.0574 0.0567 0.0566  0.0081 0.0081 0.0065 0.0067  0.0041 0.0041 0.0025 0.0026
-0.0029 0.0009 -0.0004 -0.0006  -0.0021 -0.0000 -0.0003 -0.0003  0.0016 0.0001 0.0012 0.0013
-0.0031 0.0017 0.0025 0.0024  -0.0013 -0.0000 -0.0005 -0.0006  0.0018 0.0008 0.0003 0.0004
0.0112 0.0081 0.0112 0.0112  0.0551 0.0551 0.0583 0.0576  0.0394 0.0394 0.0370 0.0374
0.0608 0.0608 0.0606 0.0605  0.0008 0.0008 0.0001 0.0000  -0.0004 0.0001 0.0001 0.0002
0.0020 -0.0000 0.0013 0.0013  -0.0006 -0.0000 -0.0004 -0.0004  0.0010 0.0000 0.0001 0.0001
0.0003 0.0005 0.0006 0.0006  -0.0034 -0.0022 -0.0032 -0.0032  -0.0004 -0.0004 -0.0006 -0.0006
0.0269 0.0269 0.0274 0.0274  0.0188 0.0188 0.0183 0.0183  -0.0118 -0.0118 -0.0115 -0.0115
0.0007 0.0007 0.0004 0.0004
""".split(), dtype=float).reshape(-1, 4)


def three_links() -> BaseParameters:
    parameters = Parameters(tuple(Parameter(f"{name}{k}", unit, k - 1, f"link{k}", body=f"link{k}")
                                  for k in (1, 2, 3) for name, unit in zip(ten.NAMES, ten.UNITS, strict=True)))
    matrix = np.zeros((len(EXPRESSIONS), len(parameters)))
    for row, expression in zip(matrix, EXPRESSIONS, strict=True):
        sign = 1.0
        for word in expression.split():
            if word in "+-":
                sign = -1.0 if word == "-" else 1.0
            else:
                row[parameters.index(word)] = sign
    leading = np.array([parameters.index(expression.split()[0]) for expression in EXPRESSIONS])
    return BaseParameters(parameters, leading, matrix)


def test_three_links_first_vector_is_possible() -> None:
    base = three_links()
    found = is_possible(Consistency(base.parameters, form="spatial", margin=0.0), FIRST, base)
    assert found.possible and found.certificate is None
    assert found.distance < 1e-9
    np.testing.assert_allclose(base.reduce(found.theta), FIRST, atol=1e-9)
    assert np.linalg.eigvalsh(ten.spatial_inertia(found.theta.reshape(3, 10))).min() >= 0


def test_three_links_second_vector_is_not_and_its_nearest_is_the_printed_one() -> None:
    base = three_links()
    # The infimum is approached as unseen masses grow: "heaviest" lets them.
    found = is_possible(Consistency(base.parameters, form="spatial", margin=0.0, heaviest=1e4), SECOND, base)
    assert not found.possible
    np.testing.assert_allclose(found.nearest, NEAREST, atol=1e-6)
    assert found.distance == pytest.approx(1.6497e-3, abs=1e-6)
    assert found.certificate is not None and found.certificate.verify()
    assert found.certificate.gap == pytest.approx(found.distance, rel=1e-4)


def test_three_links_with_the_triangle_inequality_the_first_is_off_too() -> None:
    base = three_links()
    found = is_possible(Consistency(base.parameters, form="pseudo", margin=0.0), FIRST, base)
    assert found.distance == pytest.approx(1.9e-4, abs=5e-6)
    assert found.certificate is not None and found.certificate.verify()
    assert "link3" in found.certificate.reasons[0]


def test_wam_weighted_least_squares_is_infeasible_the_others_not() -> None:
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    assert WAM.shape == (len(base), 4)
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    found = [is_possible(consistency, column, base, tolerance=1e-4) for column in WAM.T]
    assert [one.possible for one in found] == [False, True, True, True]
    assert found[0].distance ** 2 == pytest.approx(0.00773, abs=1e-5)
    np.testing.assert_allclose(found[0].nearest, WAM[:, 1], atol=1e-4)
    assert found[0].certificate is not None and found[0].certificate.verify()
    assert any("Fc2" in reason for reason in found[0].reasons)
    for one in found:
        assert consistency.smallest_eigenvalue(one.theta) >= 0
