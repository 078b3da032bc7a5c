"""Code for accelerators on the processor: CUDA compiled as C++, its loader and PyTorch on stand-ins, Rust compiled."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_stand_ins import cupy_on_host, torch_on_numpy
from programs import EVERY_FUNCTION, STRICT, close, every_term, plain, some_values, stribeck
from refusals import refused

from dynid.errors import ModelError
from dynid.model import Dahl, Model, RigidBodies, Viscous
from dynid.robot import Robot
from dynid.symbolic import Program, generate


def program_of(name: str, mode: str = "base", terms: Any = plain, what: Any = EVERY_FUNCTION) -> Program:
    model = terms(Robot.builtin(name))
    return generate(model, what, parameters=mode, values=some_values(model, np.random.default_rng(0)), name="arm")


def remembering(robot: Robot) -> Model:
    return Model(robot, (RigidBodies(), Viscous(), Dahl()))


def self_test_as_cpp(program: Program, folder: Path, real: str) -> float:
    """What the self-test of the CUDA header returns, compiled as C++ with all warnings as errors."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler here")
    (folder / "arm.cuh").write_text(program.cuda(real))
    (folder / "main.cpp").write_text('#include <cstdio>\n#include "arm.cuh"\nint main()\n{\n'
                                     '  std::printf("%.17g\\n", (double)arm_self_test());\n}\n')
    subprocess.run([compiler, "-std=c++14", "-O0", *STRICT, "main.cpp", "-o", "main"], cwd=folder, check=True,
                   capture_output=True, text=True)
    return float(subprocess.run([str(folder / "main")], check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize(("name", "mode", "terms", "real", "bar"), [
    ("arm3r", "full", every_term, "double", 1e-12), ("arm3r", "fixed", stribeck, "float", 2e-6),
    ("scara2", "base", remembering, "double", 1e-12), ("four-bar", "fixed", plain, "double", 1e-12)])
def test_cuda_as_cpp(tmp_path, name, mode, terms, real, bar):
    """Every kernel and both rollouts, by way of the functions that launch them."""
    what = [one for one in EVERY_FUNCTION if name != "four-bar" or one != "coriolis_matrix"]
    assert self_test_as_cpp(program_of(name, mode, terms, what), tmp_path, real) < bar


def test_a_wrong_stored_value_fails_the_self_test(tmp_path):
    """The self-test can fail: one stored torque is changed."""
    program = program_of("scara2", "fixed", what=["inverse_dynamics"])
    text = program.cuda()
    first = re.search(r"tau_is\[\d+\] = \{\n\s+([-0-9.e]+)", text)
    assert first is not None
    changed = text[:first.start(1)] + str(float(first[1]) + 1.0) + text[first.end(1):]
    assert self_test_as_cpp(_Written(program, changed), tmp_path, "double") > 1e-2


class _Written:
    """A program whose CUDA header is this text."""

    def __init__(self, program: Program, text: str) -> None:
        self.name, self._text = program.name, text

    def cuda(self, real: str) -> str:
        return self._text


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """The CuPy loader of a program, on the stand-in."""

    def load(program: Program, real: str = "double") -> dict[str, Any]:
        monkeypatch.setitem(sys.modules, "cupy", cupy_on_host(tmp_path))
        (tmp_path / "arm.cuh").write_text(program.cuda(real))
        names: dict[str, Any] = {"__file__": str(tmp_path / "arm_cupy.py")}
        exec(program.cuda_loader(real), names)
        return names

    return load


@pytest.mark.parametrize(("mode", "terms", "real", "bar"), [("base", plain, "double", 1e-12),
                                                            ("fixed", remembering, "float", 2e-6)])
def test_the_cupy_loader(loaded, mode, terms, real, bar):
    assert loaded(program_of("scara2", mode, terms), real)["self_test"]() < bar


def test_draws_in_one_batch(loaded):
    """p for each state gives what each set gives by itself, in inverse dynamics and in rollouts."""
    program = program_of("arm3r", what=["inverse_dynamics", "forward_dynamics"])
    module, rng = loaded(program), np.random.default_rng(2)
    model = program.plan.model
    theta = np.array([some_values(model, np.random.default_rng(seed)) for seed in range(5)])
    p = np.array([module["prepare"](one) for one in theta]).T
    q, dq, ddq = rng.normal(size=(3, 3, 5))
    found = module["inverse_dynamics"](q, dq, ddq, p)
    wanted = [model.inverse_dynamics(theta[i], q[:, i], dq[:, i], ddq[:, i]) for i in range(5)]
    close(found.T, np.array(wanted))
    together = module["rollout"](q, dq, q[None], 0.0 * dq[None], 5.0, 1.0, 1e-3, 20, p=p)
    one = module["rollout"](q[:, 2:3], dq[:, 2:3], q[None, :, 2:3], 0.0 * dq[None, :, 2:3], 5.0, 1.0, 1e-3, 20,
                            p=p[:, 2])
    np.testing.assert_array_equal(together[0][:, 2], one[0][:, 0])


def rolled(model: Model, theta: np.ndarray, q: np.ndarray, dq: np.ndarray, q_ref: np.ndarray, kp: float, kd: float,
           h: float, steps: int, method: str) -> tuple[np.ndarray, np.ndarray]:
    """The same rollouts (samples, dof) by the model's own forward dynamics; references (rows, dof)."""
    for k in range(steps):
        tau = np.clip(kp * (q_ref[min(k, len(q_ref) - 1)] - q) - kd * dq, -20.0, 20.0)

        def slope(state: np.ndarray, tau: np.ndarray = tau) -> np.ndarray:
            return np.array([state[1], model.forward_dynamics(theta, state[0], state[1], tau)])

        state = np.array([q, dq])
        if method == "euler":
            dq = dq + h * slope(state)[1]
            q = q + h * dq
        else:
            a = slope(state)
            b = slope(state + h / 2 * a)
            c = slope(state + h / 2 * b)
            q, dq = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
    return q, dq


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_rollouts_against_forward_dynamics_of_the_model(loaded, method):
    """With a reference that moves, and the states on the way."""
    program = program_of("arm3r", "fixed", what=["forward_dynamics"])
    model, rng = program.plan.model, np.random.default_rng(4)
    theta = some_values(model, np.random.default_rng(0))
    q, dq = rng.normal(size=(2, 3, 6))
    reference = rng.normal(size=(7, 3))
    found = loaded(program)["rollout"](q, dq, reference, np.zeros((7, 3)), 30.0, 3.0, 2e-3, 12, limit=20.0,
                                       method=method, every=5)
    wanted = rolled(model, theta, q.T, dq.T, reference, 30.0, 3.0, 2e-3, 12, method)
    close(found[0].T, wanted[0], 1e-11)
    close(found[1].T, wanted[1], 1e-11)
    halfway = rolled(model, theta, q.T, dq.T, reference, 30.0, 3.0, 2e-3, 10, method)
    assert found[2].shape == (2, 2, 3, 6)
    close(found[2][1, 0].T, halfway[0], 1e-11)


@pytest.mark.parametrize(("call", "words"), [
    (lambda m: m["inverse_dynamics"](np.zeros((2, 4)), np.zeros((3, 4)), np.zeros((3, 4))), "q must be"),
    (lambda m: m["inverse_dynamics"](np.zeros((3, 4)), np.zeros((3, 5)), np.zeros((3, 4))), "differ in states"),
    (lambda m: m["rollout"](np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((0, 3)), np.zeros((0, 3)), 1.0, 1.0, 1e-3, 5),
     "q_ref and dq_ref must be"),
    (lambda m: m["rollout"](np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((1, 3)), np.zeros((1, 3)), 1.0, 1.0, 1e-3, 5,
                            method="verlet"), "method must be")])
def test_bad_calls_of_the_loader(loaded, call, words):
    module = loaded(program_of("arm3r", "fixed", what=["inverse_dynamics", "forward_dynamics"]))
    with pytest.raises(ValueError, match=words):
        call(module)


@pytest.mark.parametrize(("name", "mode", "terms"), [("arm3r", "base", every_term), ("scara2", "fixed", stribeck),
                                                     ("scara2", "base", remembering)])
def test_torch_text_on_numpy(monkeypatch, name, mode, terms):
    """Formulae and shapes; PyTorch itself is tested where it is installed."""
    monkeypatch.setitem(sys.modules, "torch", torch_on_numpy())
    names: dict[str, Any] = {}
    exec(program_of(name, mode, terms).torch(), names)
    assert names["self_test"]() < 1e-12


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_torch_itself():
    import torch
    program = program_of("arm3r", "base", every_term)
    names: dict[str, Any] = {}
    exec(program.torch(), names)
    assert names["self_test"]() < 1e-12
    inputs = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    p = torch.tensor(program.matrix @ program.values)
    assert torch.autograd.gradcheck(lambda *x: names["inverse_dynamics"](*x, p), inputs, atol=1e-6)


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
@pytest.mark.parametrize(("terms", "mode", "real", "bar"), [(every_term, "base", "double", 1e-12),
                                                            (stribeck, "fixed", "float", 1e-6)])
def test_rust_without_its_standard_library(tmp_path, terms, mode, real, bar):
    """Compiled as a crate of its own without the standard library, then run by a program that has it."""
    (tmp_path / "arm.rs").write_text("#![no_std]\n" + program_of("scara2", mode, terms).rust(real))
    (tmp_path / "main.rs").write_text('fn main() { println!("{:e}", arm::self_test()); }\n')
    for command in (["arm.rs", "--crate-type=rlib"], ["main.rs", "--extern", "arm=libarm.rlib"]):
        subprocess.run(["rustc", "-D", "warnings", "--edition=2021", *command], cwd=tmp_path, check=True,
                       capture_output=True, text=True)
    assert float(subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout) < bar


def test_what_cannot_be_is_a_sentence():
    online = generate(Robot.builtin("scara2"), ["online"])
    for write in (online.cuda, online.cuda_loader, online.jax, online.torch, online.rust):
        with refused(ModelError, "only-in-c"):
            write()
    program = generate(Robot.builtin("scara2"), ["gravity"])
    for write in (program.cuda, program.rust):
        with refused(ModelError, "bad-model", "'double'", "'float'", "'half'"):
            write("half")


def test_the_benchmark_states_why_it_is_skipped(monkeypatch):
    """Without a GPU there is nothing to measure, and the table says so."""
    monkeypatch.setenv("PATH", "/nowhere")
    benchmark = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "accelerator.py"))
    found = benchmark["run"](lambda words: None)
    assert list(found) == ["skipped"] and "no NVIDIA GPU" in found["skipped"]
    assert benchmark["table"](found)[1] == (found["skipped"],)


def test_no_rollout_where_positions_of_a_loop_are_an_input():
    robot = Robot.builtin("four-bar")
    given = generate(robot, ["forward_dynamics"], following="given")
    assert "rollout" not in given.cuda() + given.jax() + given.torch()
    assert "rollout" in generate(robot, ["forward_dynamics"]).cuda()
