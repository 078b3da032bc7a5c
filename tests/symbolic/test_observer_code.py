"""The momentum observer in C against the external torque of a simulation, whose filtered value is known."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from programs import STRICT, some_values
from refusals import refused

from dynid.errors import ModelError
from dynid.model import Coulomb, LoadFriction, Model, RigidBodies, RotorInertia, Viscous
from dynid.model.sign import Sign
from dynid.robot import Robot
from dynid.symbolic import generate

MODEL = Model(Robot.builtin("arm3r"), (RigidBodies(), RotorInertia(), Viscous(), Coulomb(sign=Sign("tanh", 0.1))))
GAIN, STEP, STEPS = np.array([40.0, 25.0, 60.0]), 1e-3, 200
OUTSIDE = np.array([3.0, -2.0, 0.5])  # N m, from the first sample on
RUN = """
#include "arm.h"
void run(int samples, const double *x, const double *p, const double *gain, double h, double *out);
void run(int samples, const double *x, const double *p, const double *gain, double h, double *out)
{
  arm_observer state;
  arm_observer_start(&state);
  for (int i = 0; i < samples; ++i, x += 9, out += 3) arm_observer_update(&state, x, x + 3, p, x + 6, gain, h, out);
}
"""


def pushed_motion(theta: np.ndarray) -> np.ndarray:
    """q, dq and the motor torques (samples, 9) of the arm while something pushes, by Runge-Kutta of fourth order."""
    q, dq = np.array([0.3, -0.5, 0.8]), np.array([0.5, -0.4, 0.2])

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        tau = motor(t)
        return np.array([state[1], MODEL.forward_dynamics(theta, state[0], state[1], tau + OUTSIDE)])

    def motor(t: float) -> np.ndarray:
        return np.array([2.0, 4.0, 1.0]) * np.sin(2.0 * np.pi * np.array([1.0, 1.5, 2.0]) * t)

    rows, state = [], np.array([q, dq])
    for k in range(STEPS):
        t = k * STEP
        rows.append([*state[0], *state[1], *motor(t)])
        a = slope(t, state)
        b = slope(t + STEP / 2, state + STEP / 2 * a)
        c = slope(t + STEP / 2, state + STEP / 2 * b)
        state = state + STEP / 6 * (a + 2 * b + 2 * c + slope(t + STEP, state + STEP * c))
    return np.array(rows)


def test_external_torques_behind_their_filter(tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    theta = some_values(MODEL, np.random.default_rng(0))
    program = generate(MODEL, ["observer"], name="arm", values=theta)
    (tmp_path / "arm.h").write_text(program.c())
    (tmp_path / "run.c").write_text(RUN)
    subprocess.run([compiler, "-std=c99", "-O1", *STRICT, "-shared", "-fPIC", "run.c", "-o", "run.so", "-lm"],
                   cwd=tmp_path, check=True, capture_output=True, text=True)
    rows, found = np.ascontiguousarray(pushed_motion(theta)), np.full((STEPS, 3), np.nan)
    p = np.ascontiguousarray(program.numbers_of(theta))
    at = [ctypes.c_void_p(x.ctypes.data) for x in (rows, p, GAIN, found)]
    ctypes.CDLL(str(tmp_path / "run.so")).run(STEPS, *at[:3], ctypes.c_double(STEP), at[3])
    t = STEP * np.arange(STEPS)[:, None]
    implicit = OUTSIDE * (1.0 - (1.0 + GAIN * STEP) ** -(t / STEP))  # of the observer's own steps
    assert np.abs(found - implicit).max() < 1e-4 * np.abs(OUTSIDE).max()
    assert np.abs(found - OUTSIDE * (1.0 - np.exp(-GAIN * t))).max() < 0.02 * np.abs(OUTSIDE).max()


def test_what_cannot_be_is_a_sentence():
    program = generate(MODEL, ["observer"])
    with refused(ModelError, "one-sample-at-a-time"):
        program.c(batch=4)
    with refused(ModelError, "only-in-c"):
        program.jax()
    loaded = Model(MODEL.robot, (RigidBodies(), LoadFriction()))
    with refused(ModelError, "load-dependent-friction"):
        generate(loaded, ["observer"], values=some_values(loaded, np.random.default_rng(0))).c()
