"""Generated code of a 7-joint arm on a GPU: states per second in CUDA, JAX and PyTorch, and rollouts.

The arm is the LWR IV+ with viscous and Coulomb friction. Each part runs in a separate process, so that libraries do not
share the memory of the GPU. Without a GPU, or if a package is missing, the result states the reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.robot import Robot
from dynid.runs.motion_design import terms_model
from dynid.symbolic import generate

FUNCTIONS = ["inverse_dynamics", "forward_dynamics", "friction", "inertia", "regressor"]
PARTS = ("nvcc", "cuda", "jax", "torch")
# What an H200 must reach, states or steps a second.
TARGETS = {"cuda fixed_float inverse_dynamics": 3e10, "cuda fixed_double inverse_dynamics": 1.2e10,
           "cuda fixed_float rollout_euler": 2e10, "jax inverse_dynamics": 5e9, "torch inverse_dynamics": 8e9}
_PART_SECONDS = 400.0  # of a part, compilation included


def run(progress: Callable[[str], None], only: tuple[str, ...] | None = None) -> dict[str, Any]:
    device = _device()
    if device is None:
        return {"skipped": "no NVIDIA GPU was found: nvidia-smi is not installed or lists none"}
    result: dict[str, Any] = {"device": device, "robot": "kuka-lwr4", "targets": TARGETS}
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        for part in only or PARTS:
            progress(f"{part} on {device}")
            script = Path(__file__).with_name("_accelerator_device.py")
            try:
                found = subprocess.run([sys.executable, str(script), name, part], capture_output=True, text=True,
                                       timeout=_PART_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                result[part] = {"skipped": f"not finished after {_PART_SECONDS:.0f} s"}
                continue
            result[part] = (json.loads(found.stdout.splitlines()[-1]) if found.returncode == 0 else
                            {"skipped": f"it failed: {(found.stderr.strip().splitlines() or ['no message'])[-1]}"})
    return result


def _device() -> str | None:
    """Name of the first GPU."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    found = subprocess.run([command, "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True,
                           check=False)
    names = found.stdout.strip().splitlines() if found.returncode == 0 else []
    return names[0] if names else None


def write_files(folder: Path) -> None:
    """Write the modules and headers that the parts need, the parameters p, and derivatives to compare gradients with.
    """
    model = terms_model(Robot.builtin("kuka-lwr4"), ("viscous", "coulomb"), False)
    for mode in ("fixed", "base"):
        for real in ("float", "double"):
            name = f"lwr_{'p' if mode == 'base' else mode}_{real}"
            program = generate(model, FUNCTIONS, parameters=mode, name=name)
            (folder / f"{name}.cuh").write_text(program.cuda(real))
            (folder / f"{name}_cupy.py").write_text(program.cuda_loader(real))
            if mode == "base":
                (folder / "p.json").write_text(json.dumps((program.matrix @ program.values).tolist()))
            elif real == "float":
                (folder / f"{name}.py").write_text(program.python())
                (folder / f"{name}_jax.py").write_text(program.jax())
                (folder / f"{name}_torch.py").write_text(program.torch())
                (folder / "slopes.json").write_text(json.dumps(_slopes(program)))


def _slopes(program: Any) -> dict[str, Any]:
    """A state and the slopes of its torques by q, dq and ddq (joints, 3 joints), by CasADi."""
    import casadi
    state = np.random.default_rng(3).normal(size=(3, program.plan.dof))
    function = program.casadi()["inverse_dynamics"]
    symbols = [casadi.SX.sym(one, program.plan.dof) for one in ("q", "dq", "ddq")]
    slope = casadi.Function("slope", symbols, [casadi.jacobian(function(*symbols), casadi.vertcat(*symbols))])
    return {"q": state[0].tolist(), "dq": state[1].tolist(), "ddq": state[2].tolist(),
            "slopes": np.array(slope(*state)).tolist()}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    if "skipped" in result:
        return [("skipped",), (result["skipped"],)]
    rows = [("work", "best, 1/s", "median, 1/s", "target, 1/s")]
    for part in PARTS:
        found = result.get(part, {})
        if "skipped" in found:
            rows.append((f"{part}: {found['skipped']}", "", "", ""))
        rows += _rows(part, found, result["targets"])
    return rows


def _rows(name: str, found: dict[str, Any], targets: dict[str, float]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key, value in found.items():
        if isinstance(value, dict) and "best" in value:
            work = f"{name} {key}"
            rows.append((work, f"{value['best']:.3g}", f"{value['median']:.3g}",
                         f"{targets[work]:.3g}" if work in targets else ""))
        elif isinstance(value, dict):
            rows += _rows(f"{name} {key}", value, targets)
    return rows
