"""The online update in C against `dynid.Online` and against least squares at once."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from programs import STRICT, some_values
from refusals import refused

from dynid.errors import ModelError
from dynid.model import Coulomb, Dahl, Model, RigidBodies, RotorInertia, Viscous
from dynid.model.sign import Sign
from dynid.online import Online
from dynid.robot import Robot
from dynid.symbolic import Program, generate
from dynid.symbolic.languages.text import identifier

ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, (RigidBodies(), RotorInertia(), Viscous(), Coulomb(sign=Sign("tanh", 0.1))))
NOISE = np.array([0.5, 0.2, 0.1])
RUN = """
#include "robot.h"
int run(int samples, const {real} *x, const {real} *noise, {real} forgetting, const {real} *p0, const {real} *deviation,
        {real} *p);
int run(int samples, const {real} *x, const {real} *noise, {real} forgetting, const {real} *p0, const {real} *deviation,
        {real} *p)
{{
  {name}_online known;
  {name}_online_start(&known, p0, deviation);
  for (int i = 0; i < samples; ++i, x += 12) {name}_online_update(&known, x, x + 3, x + 6, x + 9, noise, forgetting);
  const int shown = {name}_online_solve(&known, p);
  p[{name}_p_count] = known.squares;
  p[{name}_p_count + 1] = known.rows;
  return shown;
}}
"""


def in_c(program: Program, folder, samples, forgetting, prior=None, real="double"):
    """p, squares, rows and how many numbers were shown, by the compiled header."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    (folder / "robot.h").write_text(program.c(real))
    (folder / "run.c").write_text(RUN.format(name=identifier(program.name), real=real))
    subprocess.run([compiler, "-std=c99", "-O2", *STRICT, "-shared", "-fPIC", "run.c", "-o", "run.so", "-lm"],
                   cwd=folder, check=True, capture_output=True, text=True)
    kind, number = (np.float64, ctypes.c_double) if real == "double" else (np.float32, ctypes.c_float)
    count = len(program.numbers)
    given = prior or (np.zeros(count), np.zeros(count))
    arrays = [np.ascontiguousarray(x, dtype=kind) for x in (samples, NOISE, *given)]
    p = np.empty(count + 2, dtype=kind)
    at = [ctypes.c_void_p(x.ctypes.data) for x in (*arrays, p)]
    shown = ctypes.CDLL(str(folder / "run.so")).run(len(samples), at[0], at[1], number(forgetting), *at[2:])
    return p[:count].astype(float), float(p[count]), float(p[count + 1]), shown


def stream(model: Model, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.normal(size=(3, count, 3)) * np.array([1.0, 2.0, 4.0])[:, None, None]
    return q, dq, ddq, model.inverse_dynamics(some_values(model, rng), q, dq, ddq) + NOISE * rng.normal(size=(count, 3))


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_the_same_estimate_as_dynid_online(tmp_path, forgetting):
    program = generate(MODEL, ["online"])
    samples = stream(MODEL, 400)
    online = Online(MODEL, forgetting=forgetting, noise=NOISE)
    for one in zip(*samples, strict=True):
        online.update(*one)
    p, squares, rows, shown = in_c(program, tmp_path, np.hstack(samples), forgetting)
    expected = program.numbers_of(online.base.expand(online.values))
    assert shown == len(program.numbers) == len(online.base)
    assert np.abs(p - expected).max() < 1e-10 * np.abs(expected).max()
    assert rows == pytest.approx(3 * np.sum(forgetting ** np.arange(400)))
    assert squares == pytest.approx(rows - len(p), rel=0.25)


def test_a_prior_and_forgetting_against_least_squares_at_once(tmp_path):
    program = generate(MODEL, ["online"])
    samples, count = stream(MODEL, 60, seed=1), len(program.numbers)
    values, deviations = np.linspace(-1.0, 1.0, count), np.linspace(0.1, 3.0, count)
    deviations[3] = 0.0  # nothing is known
    y = program("regressor", q=samples[0], dq=samples[1], ddq=samples[2]) / NOISE[:, None]
    root = np.sqrt(0.98) ** np.arange(59, -1, -1)[:, None, None]
    known = np.delete(np.diag(np.where(deviations > 0, 1.0 / np.maximum(deviations, 1e-9), 0.0)), 3, axis=0)
    rows = np.vstack([(root * y).reshape(-1, count), known * np.sqrt(0.98) ** 60])
    right = np.concatenate([(root[:, :, 0] * samples[3] / NOISE).ravel(), known @ values * np.sqrt(0.98) ** 60])
    expected = np.linalg.lstsq(rows, right, rcond=None)[0]
    p, *_ = in_c(program, tmp_path, np.hstack(samples), 0.98, (values, deviations))
    assert np.abs(p - expected).max() < 1e-10 * np.abs(expected).max()


def test_what_no_sample_shows_is_zero_and_counted(tmp_path):
    """Two samples cannot show all numbers, and a joint that is left out shows none of its own."""
    program = generate(MODEL, ["online"])
    p, _, rows, shown = in_c(program, tmp_path, np.hstack(stream(MODEL, 2)), 1.0)
    assert shown == rows == 6 and np.count_nonzero(p) == 6


def test_in_float(tmp_path):
    program = generate(MODEL, ["online"])
    samples = np.hstack(stream(MODEL, 400))
    exact = in_c(program, tmp_path, samples, 1.0)[0]
    (tmp_path / "float").mkdir()
    single = in_c(program, tmp_path / "float", samples, 1.0, real="float")[0]
    assert np.abs(single - exact).max() < 1e-4 * np.abs(exact).max()


def test_what_cannot_be_is_a_sentence():
    with refused(ModelError, "parameters-fixed"):
        generate(ROBOT, ["online"], parameters="fixed")
    program = generate(ROBOT, ["online"])
    with refused(ModelError, "one-sample-at-a-time"):
        program.c(batch=4)
    for write in (program.python, program.julia, program.latex):
        with refused(ModelError, "only-in-c"):
            write()
    remembering = generate(Model(ROBOT, (RigidBodies(), Dahl())), ["online"]).c()
    assert "const double memory[3], const double tau[3]" in remembering
