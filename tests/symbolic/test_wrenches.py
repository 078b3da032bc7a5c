"""Generated wrenches between bodies (Simionato, eq. 2.12-2.14, 2.32) against Pinocchio and dynid's kernels."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import random_robot, to_pinocchio

from dynid import dynamics
from dynid.errors import ModelError
from dynid.model import Model
from dynid.robot import Robot
from dynid.symbolic import generate


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("parameters", ["fixed", "full"])
def test_wrenches_are_those_of_pinocchio(seed: int, parameters: str) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 4)  # turning and sliding joints, branches
    program = generate(robot, ["wrenches", "inverse_dynamics"], parameters=parameters)
    q, dq, ddq = rng.normal(size=(3, 5, 4))
    given = {} if parameters == "fixed" else {"p": np.tile(program.numbers_of(Model(robot).parameters.nominal), (5, 1))}
    found = program("wrenches", q=q, dq=dq, ddq=ddq, **given)
    np.testing.assert_allclose(found, dynamics.link_wrenches(robot, None, q, dq, ddq), rtol=1e-10, atol=1e-10)
    torques = program("inverse_dynamics", q=q, dq=dq, ddq=ddq, **given)
    model = to_pinocchio(robot)
    data = model.createData()
    order = [model.getJointId(name) for name in robot.joint_names]
    at = [model.joints[k].idx_v for k in order]
    for s in range(5):
        moved = np.zeros((3, 4))
        moved[:, at] = q[s], dq[s], ddq[s]
        np.testing.assert_allclose(torques[s], pin.rnea(model, data, *moved)[at], rtol=1e-9, atol=1e-9)
        # Pinocchio's joint frames may be turned against ours: lengths are alike, and the part along the axis.
        theirs = np.array([[np.linalg.norm(data.f[k].linear), np.linalg.norm(data.f[k].angular)] for k in order])
        ours = np.array([[np.linalg.norm(one[:3]), np.linalg.norm(one[3:])] for one in found[s]])
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_c_code_gives_the_same(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    robot = Robot.builtin("arm3r")
    program = generate(robot, ["wrenches"], parameters="fixed", name="arm")
    (tmp_path / "arm.h").write_text(program.c())
    (tmp_path / "arm.c").write_text('#include "arm.h"\nvoid run(const double *q, const double *dq, const double *ddq, '
                                    "double *out) { arm_wrenches(q, dq, ddq, (void *)out); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", "arm.so", "arm.c", "-lm"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "arm.so"))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 3))
    out = np.zeros((3, 6))
    library.run(*(ctypes.c_void_p(x.ctypes.data) for x in (q, dq, ddq, out)))
    np.testing.assert_allclose(out, dynamics.link_wrenches(robot, None, q, dq, ddq), rtol=1e-12, atol=1e-12)


def test_what_cannot_be_generated_is_refused() -> None:
    with refused(ModelError, "not-base-parameters", "wrenches", "--parameters"):
        generate(Robot.builtin("arm3r"), ["wrenches"], parameters="base")
    with refused(ModelError, "no-wrench-code", "link_wrenches"):
        generate(Robot.builtin("four-bar"), ["wrenches"], parameters="fixed")
