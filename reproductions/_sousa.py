"""Published base vectors: Sousa, tables 4.9 and 6.1."""

from __future__ import annotations

import numpy as np

from dynid.model import Parameter, Parameters
from dynid.regression import BaseParameters
from dynid.robot import inertia as ten
from reproductions._printed import printed

# Table 6.1, after Yoshida and Khalil 2000: the base parameters of a 3-link robot.
EXPRESSIONS = ("YY1 + YY2 + YY3 + M3", "XX2 - YY2 - M3", "XY2", "XZ2 - MZ3", "YZ2", "ZZ2 + M3", "MX2 + M3", "MY2",
               "XX3 - YY3", "XY3", "XZ3", "YZ3", "ZZ3", "MX3", "MY3")
FIRST, SECOND, NEAREST = (np.array(printed("001", "6.1").values(column)[:len(EXPRESSIONS)])
                          for column in ("first", "second", "nearest"))

# Table 4.9, one row a base parameter: weighted LS, its nearest feasible, constrained, constrained with more limits.
WAM = np.column_stack([printed("001", "4.9").values(column) for column in printed("001", "4.9").columns])


def three_links() -> BaseParameters:
    """The base parameters of table 6.1 over three free bodies."""
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


# Table 4.4: the same as table 4.5 below of trajectory A.
TRAJECTORY_A = np.array([
    [0.53, -0.01, 0.17, 0.08, 0.60, 0.20, -0.38, -0.17, 0.21, 0.11, -0.35, 0.15, 0.50],
    [0.43, -0.19, 0.34, 0.24, 0.11, 0.05, -0.04, 0.19, -0.43, -0.19, -0.45, 0.36, -0.11],
    [0.00, 0.55, -0.12, 0.39, -0.13, -0.07, 0.38, 1.21, 0.27, 0.55, 0.06, -0.32, 0.54],
    [0.32, -0.20, -0.50, 0.17, 0.06, -0.15, -0.44, -0.00, 0.58, -0.10, 0.46, 0.01, 1.76],
    [0.06, -0.03, -0.41, -0.02, 0.65, 0.68, -0.36, 0.66, 0.43, -0.18, -0.14, -0.14, -1.28],
    [0.48, 0.03, 0.32, 0.13, 0.04, 0.20, -0.07, 0.55, 0.38, 0.19, 0.45, 0.15, -0.11],
    [0.79, 0.70, 0.08, 0.02, 1.22, -0.28, 0.40, -0.13, 0.31, 0.79, -0.09, 0.49, 0.42],
])

# Table 4.5: a_1..a_6, b_1..b_6 (rad/s) and q_0 (rad) of each joint of trajectory B, period 12.5 s.
TRAJECTORY_B = np.array("""
0.02 0.55 0.08 -0.30 0.46 0.14 -0.41 0.26 0.15 0.50 -0.60 -0.21 0.15
-0.27 0.41 -0.15 -0.30 0.08 -0.15 0.27 -0.47 -0.28 -0.51 0.11 -0.34 -0.24
0.01 -0.52 0.62 -0.14 -0.46 0.47 -0.02 -0.20 -0.15 -0.41 0.73 0.04 0.39
0.00 -0.16 0.06 0.39 0.55 -0.04 0.60 -0.06 0.69 0.25 -0.66 0.12 1.18
-0.79 -1.34 0.50 -0.62 -0.30 -0.55 -0.08 0.01 -0.59 0.42 -0.43 0.43 -1.41
0.07 0.22 0.39 0.12 -0.45 1.05 -0.39 -0.15 0.51 0.14 -0.20 0.13 0.02
-0.12 -0.80 0.29 0.07 0.99 -0.28 -0.64 -0.75 -0.55 0.81 0.36 -0.65 -0.07
""".split(), dtype=float).reshape(7, 13)

# Table 4.8: lower and upper corner of each link's bounding box in its frame, m; eq. 4.39: the arm weighs at most 27 kg.
BOXES = np.array("""
-0.14 -0.174 -0.084  0.14 0.174 0.346
-0.084 -0.174 -0.084  0.084 0.174 0.17
-0.09 -0.55 -0.045  0.04 0.04 0.045
-0.045 -0.045 -0.05  0.095 0.045 0.83
-0.045 -0.02 -0.045  0.045 0.1 0.045
-0.045 -0.06 -0.02  0.045 0.045 0.06
-0.045 -0.045 -0.018  0.045 0.045 0.001
""".split(), dtype=float).reshape(7, 2, 3)
HEAVIEST = 27.0

# Tables 5.1 and 5.2: gains of joints 1-4 and 5-7, 1/s^2 and 1/s.
GAINS = {"slow": (np.repeat([156.3, 123.5], (4, 3)), np.repeat([25.0, 22.2], (4, 3))),
         "tight": (np.repeat([2500.0, 625.0], (4, 3)), np.repeat([100.0, 50.0], (4, 3)))}

# Table 4.3: gains of the controller that tracks the motions for regression (eq. 4.16), N m/rad and N m s/rad.
TRACKING = (np.array([200.0, 200.0, 40.0, 40.0, 3.0, 3.0, 0.5]), np.array([5.0, 5.0, 1.0, 1.0, 0.2, 0.2, 0.0]))
