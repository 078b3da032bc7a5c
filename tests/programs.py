"""Robots, numbers and compilers for tests of generated code."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    Model,
    MotorSide,
    Offset,
    Payload,
    RigidBodies,
    RotorInertia,
    Spring,
    Stribeck,
    Viscous,
)
from dynid.model.sign import Sign
from dynid.robot import Robot
from dynid.symbolic import RECIPES, Program
from dynid.symbolic.languages.text import identifier

# Without those of models that remember, of loops, and of bodies that base parameters do not determine.
EVERY_FUNCTION = [name for name in RECIPES if name not in ("step", "following", "wrenches")]
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Werror")


def every_term(robot: Robot) -> Model:
    """Return a model with every term that can be combined with the others."""
    coupling = np.eye(robot.dof) + np.eye(robot.dof, k=1) * 0.3
    return Model(robot, (RigidBodies(), RotorInertia(), Viscous(), Offset(), AsymmetricCoulomb(sign=Sign("tanh", 0.1)),
                         AsymmetricViscous(), MotorSide(coupling.tolist()), Spring(1, rest=0.2),
                         Payload(robot.body_names[-1], label="L")))


def stribeck(robot: Robot) -> Model:
    return Model(robot, (RigidBodies(), Stribeck()))


def plain(robot: Robot) -> Model:
    return Model(robot, (RigidBodies(), RotorInertia(), Viscous(), Coulomb(), Offset()))


def some_values(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Return values of all parameters: physically consistent bodies, all other parameters positive."""
    theta = rng.uniform(0.05, 0.5, len(model.parameters))
    inertias = model.robot.inertias
    for k, item in enumerate(model.parameters):
        if item.nominal is not None and item.body in model.robot.body_names:
            theta[k] = inertias[model.robot.body_names.index(item.body)][
                list(model.parameters.bodies[item.body]).index(k)]
    return theta


def close(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-12) -> None:
    """Finite, and equal relative to the largest entry."""
    assert np.all(np.isfinite(ours)) and np.all(np.isfinite(theirs))
    scale = max(float(np.abs(theirs).max()), 1e-300)
    assert np.abs(np.asarray(ours) - theirs).max() / scale < tolerance


def compiled_self_test(program: Program, folder: Path, real: str = "double", batch: int = 1) -> float:
    """What the generated self-test returns, compiled with all warnings as errors."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    name = identifier(program.name)
    (folder / "robot.h").write_text(program.c(real, batch))
    (folder / "main.c").write_text(f'#include <stdio.h>\n#include "robot.h"\nint main(void)\n{{\n  printf("%.17g\\n", '
                                   f'(double){name}_self_test());\n  return 0;\n}}\n')
    standard = "-std=c99" if batch == 1 else "-std=gnu99"  # vectors are an extension
    # The calling convention of vectors is no matter: every function is inline.
    subprocess.run([compiler, standard, "-O1", *STRICT, "-Wno-psabi", "main.c", "-o", "main", "-lm"], cwd=folder,
                   check=True, capture_output=True, text=True)
    return float(subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True).stdout)


def compiled_function(program: Program, folder: Path, name: str) -> Callable[..., np.ndarray]:
    """Return a function of the header, compiled with -O2, that returns its concatenated outputs."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    function = program.function(name)
    sizes = [len(output.values) for output in function.outputs]
    arguments = ", ".join([f"x[{k}]" for k in range(len(function.inputs))] + [f"out + {sum(sizes[:k])}"
                                                                              for k in range(len(sizes))])
    (folder / "robot.h").write_text(program.c())
    head = "void call(const double **x, double *out)"
    (folder / "call.c").write_text(f'#include "robot.h"\n{head};\n{head}\n{{\n'
                                   f'  {identifier(program.name)}_{name}({arguments});\n}}\n')
    library = folder / f"{name}.so"
    subprocess.run([compiler, "-std=c99", "-O2", *STRICT, "-Wno-unused-function", "-shared", "-fPIC", "call.c", "-o",
                    library.name, "-lm"], cwd=folder, check=True, capture_output=True, text=True)
    call = ctypes.CDLL(str(library)).call

    def called(*inputs: np.ndarray) -> np.ndarray:
        out, given = np.empty(sum(sizes)), [np.ascontiguousarray(x, dtype=float) for x in inputs]
        assert len(given) == len(function.inputs)
        pointers = (ctypes.c_void_p * len(given))(*(x.ctypes.data for x in given))
        call(pointers, out.ctypes.data_as(ctypes.c_void_p))
        return out

    return called


def compiled_call(program: Program, folder: Path, name: str, *inputs: np.ndarray) -> np.ndarray:
    """Return the concatenated outputs of a function of the header, compiled with -O2."""
    return compiled_function(program, folder, name)(*inputs)
