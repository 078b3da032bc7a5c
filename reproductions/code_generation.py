"""Code generation, compared with the two-joint example and table 7.1 of Sousa and with the times of Simionato.

Sousa's example (s. 7.1.2 and 7.1.3) prints pose, Jacobian, base parameters and C code of a robot with two joints whose
axes intersect. The printed code is transcribed here and compared with generated code at random states.

Table 7.1 counts the operations of the torques with ten parameters per link for three arms, and gives times in C and in
Python. The study computes these numbers, and those with all parameters inserted as constants, as a controller would use
them. Table B.2 of Ardiani lists the base parameters of the KUKA LBR iiwa with symbolic lengths. The Stanford arm has
the DH table of textbooks, with d2 = 0.154 and d6 = 0.263 m. Times of the documents were measured on their machines and
are only printed.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.regression.base import base_parameters
from dynid.robot import Robot
from dynid.symbolic import base_forms, generate
from reproductions._lagrange import euler_lagrange
from reproductions._printed import Comparison, printed

BASE = {"YY1R": {"YY1", "ZZ2"}, "Fv1": {"Fv1"}, "Fc1": {"Fc1"}, "XX2R": {"XX2", "ZZ2"}, "XY2": {"XY2"}, "XZ2": {"XZ2"},
        "YY2": {"YY2"}, "YZ2": {"YZ2"}, "MX2": {"MX2"}, "MZ2": {"MZ2"}, "Fv2": {"Fv2"}, "Fc2": {"Fc2"}}
TABLE_B_2 = """ZZ1 + YY2
XX2 - YY2 + YY3 + 2 d3 MZ3 + d3^2 (M3 + M4 + M5 + M6 + M7)
ZZ2 + YY3 + 2 d3 MZ3 + d3^2 (M3 + M4 + M5 + M6 + M7)
MY2 - MZ3 - d3 (M3 + M4 + M5 + M6 + M7)
XX3 - YY3 + YY4
ZZ3 + YY4
MY3 - MZ4
XX4 - YY4 + YY5 + 2 d5 MZ5 + d5^2 (M5 + M6 + M7)
ZZ4 + YY5 + 2 d5 MZ5 + d5^2 (M5 + M6 + M7)
MY4 + MZ5 + d5 (M5 + M6 + M7)
XX5 - YY5 + YY6
ZZ5 + YY6
MY5 + MZ6
XX6 - YY6 + YY7
ZZ6 + YY7
MY6 - MZ7
XX7 - YY7""".splitlines()
WHAT = ["inverse_dynamics", "regressor", "inertia", "coriolis", "gravity", "forward_dynamics"]
PYTHON_CALLS, C_CALLS = 300, 300_000  # of the functions that are timed
SAMPLES = 20000  # stacked rows of all joints, about the number of the document's motions


def example() -> Model:
    """Return the robot of Sousa's s. 7.1.2, with rows (alpha, a, d, theta)."""
    rows = [(-math.pi / 2, 0.0, 0.0, math.pi / 2, "revolute"), (math.pi / 2, 0.0, 0.0, -math.pi / 2, "revolute")]
    return Model(Robot.from_dh(rows, name="example"), (RigidBodies(), Viscous(), Coulomb()))


def stanford() -> Robot:
    half = math.pi / 2
    return Robot.from_dh([(-half, 0.0, 0.412, 0.0, "revolute"), (half, 0.0, 0.154, 0.0, "revolute"),
                          (0.0, 0.0, 0.0, -half, "prismatic"), (-half, 0.0, 0.0, 0.0, "revolute"),
                          (half, 0.0, 0.0, 0.0, "revolute"), (0.0, 0.0, 0.263, 0.0, "revolute")], name="stanford")


def printed_code(parms: Sequence[float], q: Sequence[float], dq: Sequence[float], ddq: Sequence[float]) -> list[float]:
    """Return the torques as the C code of Sousa's s. 7.1.3 computes them."""
    sign = np.sign
    x0, x1 = math.cos(q[1]), math.sin(q[1])
    x2, x3 = 9.81 * x1, dq[0]
    x4, x5 = x1 * x3, x0 * x3
    x6 = dq[1] * parms[15] + parms[13] * x5 + parms[16] * x4
    x7, x8 = -x4, -ddq[0]
    x9 = -x8
    x10, x11 = dq[1] * x5 + x1 * x9, dq[1] * x7 + x0 * x9
    x12 = dq[1] * parms[16] + parms[14] * x5 + parms[17] * x4
    x13 = dq[1] * parms[13] + parms[12] * x5 + parms[14] * x4
    x14 = 9.81 * x0
    first = (dq[0] * parms[10] + parms[11] * sign(dq[0]) - parms[3] * x8
             + x0 * (ddq[1] * parms[13] + dq[1] * x12 + parms[12] * x11 + parms[14] * x10 + parms[19] * x2 + x6 * x7)
             - x1 * (-ddq[1] * parms[16] + dq[1] * x13 - parms[14] * x11 - parms[17] * x10 + parms[19] * x14 - x5 * x6))
    second = (ddq[1] * parms[15] + dq[1] * parms[22] + parms[13] * x11 + parms[16] * x10 - parms[18] * x2
              + parms[20] * x14 + parms[23] * sign(dq[1]) - x12 * x5 + x13 * x4)
    return [first, second]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("the example with two joints")
    result: dict[str, Any] = _example()
    progress("operations of three arms")
    result["operations"] = {}
    for name, robot in (("Stanford", stanford()), ("Puma 560", Robot.builtin("puma560")),
                        ("WAM", Robot.builtin("barrett-wam"))):
        start = time.process_time()
        program = generate(robot, ["inverse_dynamics"], parameters="full")
        program.c()
        count = program.ops["inverse_dynamics"]
        result["operations"][name] = {"additions": count.additions, "multiplications": count.multiplications,
                                      "seconds": time.process_time() - start, "ten": _ten_numbers(robot)}
    progress("base parameters by rule")
    forms = [text for text in base_forms(Robot.builtin("kuka-iiwa14")).expressions() if " " in text]
    result["regrouped"] = forms
    progress("times of the 7-joint arm")
    result["times"] = _times()
    counts = Comparison(printed("001", "7.1"))
    for name, found in result["operations"].items():
        for what in ("additions", "multiplications"):
            counts.compare(name, what, found["ten"][what], claimed=False)
    counts.leave_out("times of another computer")
    result["printed"] = [counts.summary()]
    result["demonstrations"] = {
        f"{name}: fewer additions and multiplications than table 7.1, with ten numbers a link and prepared": all(
            found[what] < found["ten"][what] < counts.table.value(name, what)
            for what in ("additions", "multiplications"))
        for name, found in result["operations"].items()}
    checks, times = {}, result["times"]
    checks["the 17 regrouped base parameters of table B.2, as expressions"] = forms == TABLE_B_2
    checks["7 joints, whole model written in less than 5 s (7 minutes printed)"] = times["model_s"] < 5.0
    checks["stacked regressor in less than 60 s (3 hours printed)"] = times["stacking_s"] < 60.0
    result["checks"] = {**result.pop("checks"), **checks}
    return result


def _ten_numbers(robot: Robot) -> dict[str, Any]:
    """Return the operations of the torques with ten inertial parameters per link as inputs, and the time per call, us,
    in plain Python and in C (None without a compiler)."""
    program = generate(robot, ["inverse_dynamics", "wrenches"], parameters="full", name="arm")  # keeps all numbers
    count, numbers = program.ops["inverse_dynamics"], len(program.numbers)
    state = [np.random.default_rng(0).normal(size=size) for size in (robot.dof,) * 3 + (numbers,)]
    found: dict[str, Any] = {}
    exec(program.python(plain=True), found)
    plain = [x.tolist() for x in state]
    start = time.process_time()
    for _ in range(PYTHON_CALLS):
        found["inverse_dynamics"](*plain)
    python = 1e6 * (time.process_time() - start) / PYTHON_CALLS
    return {"additions": count.additions, "multiplications": count.multiplications, "python_us": python,
            "c_us": _c_time(program.c(), robot.dof, numbers)}


def _c_time(header: str, dof: int, numbers: int) -> float | None:
    """Return the time of one call of the torques in C, us, compiled with -O2; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    main = f"""#include <stdio.h>
#include <time.h>
#include "arm.h"
int main(void) {{
  double q[{dof}] = {{0.1}}, dq[{dof}] = {{0.2}}, ddq[{dof}] = {{0.3}}, p[{numbers}] = {{0.4}}, tau[{dof}], sum = 0;
  clock_t start = clock();
  for (long k = 0; k < {C_CALLS}; ++k) {{ q[0] += 1e-9; arm_inverse_dynamics(q, dq, ddq, p, tau); sum += tau[0]; }}
  printf("%.9g %g", 1e6 * (double)(clock() - start) / CLOCKS_PER_SEC / {C_CALLS}, sum);
  return 0;
}}
"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "arm.h").write_text(header)
        (Path(folder) / "main.c").write_text(main)
        subprocess.run([compiler, "-O2", "-o", "main", "main.c", "-lm"], cwd=folder, check=True)
        return float(subprocess.run([f"{folder}/main"], check=True, capture_output=True, text=True).stdout.split()[0])


def _example() -> dict[str, Any]:
    model = example()
    robot, rng = model.robot, np.random.default_rng(0)
    program = generate(model, ["inverse_dynamics", "kinematics", "jacobian"], frame=robot.body_names[-1])
    theta = rng.normal(size=len(model.parameters))
    order = [f"{symbol}{joint}" for joint in (1, 2) for symbol in
             ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M", "Fv", "Fc")]
    parms = [theta[model.parameters.index(name)] for name in order]
    energy = euler_lagrange(robot)
    worst = {"code": 0.0, "pose": 0.0, "jacobian": 0.0}
    for _ in range(100):
        q, dq, ddq = rng.normal(size=(3, 2))
        ours = program("inverse_dynamics", q=q, dq=dq, ddq=ddq, p=program.numbers_of(theta))
        worst["code"] = max(worst["code"], float(np.abs(ours - printed_code(parms, q, dq, ddq)).max()))
        pose, jacobian = _printed_pose(q)
        rotation, place = program("kinematics", q=q)
        worst["pose"] = max(worst["pose"], float(np.abs(rotation - pose).max()), float(np.abs(place).max()))
        worst["jacobian"] = max(worst["jacobian"], float(np.abs(program("jacobian", q=q)[3:] - jacobian).max()))
    base = base_parameters(model, [model.parameters.index(name) for name in
                                   [*(n for n in order if n != "ZZ2"), "ZZ2"]])
    found = {name: set(terms) for name, terms in base.coefficients().items()}
    return {"worst": worst, "base": {name: sorted(terms) for name, terms in found.items()},
            "lagrange_operations": energy.operations.total,
            "newton_euler_operations": program.ops["inverse_dynamics"].total,
            "checks": {"the printed C code's torques to 1e-12": worst["code"] < 1e-12,
                       "the printed pose to 1e-12": worst["pose"] < 1e-12,
                       "the printed Jacobian to 1e-12": worst["jacobian"] < 1e-12,
                       "the 12 printed base parameters": found == BASE}}


def _printed_pose(q: Array) -> tuple[Array, Array]:
    """Return the rotation of the last frame, and the angular part of its Jacobian."""
    s1, c1, s2, c2 = math.sin(q[0]), math.cos(q[0]), math.sin(q[1]), math.cos(q[1])
    return (np.array([[-s1 * s2, -c1, s1 * c2], [s2 * c1, -s1, -c1 * c2], [c2, 0.0, s2]]),
            np.array([[0.0, -c1], [0.0, -s1], [1.0, 0.0]]))


def _times() -> dict[str, float]:
    robot = Robot.builtin("kuka-lwr4")
    start = time.process_time()
    program = generate(robot, WHAT)
    program.c()
    written = time.process_time() - start
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, SAMPLES, robot.dof))
    start = time.process_time()
    stacked = program("regressor", q=q, dq=dq, ddq=ddq).reshape(-1, len(program.numbers))
    return {"model_s": written, "stacking_s": time.process_time() - start, "rows": len(stacked)}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("what", "printed", "ours")]
    rows += [(f"{name}: additions / multiplications, numbers prepared, s to write",
              "{1} / {2}, {0}".format(*printed("001", "7.1").rows[name]),
              f"{found['additions']} / {found['multiplications']}, {found['seconds']:.2f}")
             for name, found in result["operations"].items()]
    rows += [(f"{name}: the same, ten numbers a link; us in Python, in C",
              "{1} / {2}; {3}, {4}".format(*printed("001", "7.1").rows[name]),
              f"{found['ten']['additions']} / {found['ten']['multiplications']}; {found['ten']['python_us']:.0f}, "
              + ("-" if found["ten"]["c_us"] is None else f"{found['ten']['c_us']:.2f}"))
             for name, found in result["operations"].items()]
    worst, times = result["worst"], result["times"]
    rows += [(f"example, largest difference of the {what}", "", f"{value:.1e}") for what, value in worst.items()]
    rows.append(("example, base parameters", str(len(BASE)), str(len(result["base"]))))
    rows.append(("regrouped base parameters, table B.2", str(len(TABLE_B_2)), str(len(result["regrouped"]))))
    rows.append(("7 joints, Newton-Euler, whole model", "7 min", f"{times['model_s']:.2f} s"))
    rows.append((f"7 joints, stacked regressor, {times['rows']} rows", "3 h", f"{times['stacking_s']:.2f} s"))
    return rows
