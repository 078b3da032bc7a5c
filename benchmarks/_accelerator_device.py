"""Speed of generated code on a GPU. It needs the generated files and the package of one part, and nothing of dynid.

    python _accelerator_device.py FOLDER cuda|nvcc|jax|torch     prints one JSON object

Arrays are random and far larger than the caches. Times are of the device, or with a wait for it; best and median of
`REPETITIONS`.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STATES = 2 ** 24  # 0.5 GB for each array of seven joints in float
ROLLOUT_STATES, ROLLOUT_STEPS = 2 ** 21, 64
JACOBIAN_STATES = 2 ** 20  # 49 numbers a state
REPETITIONS = 20
JOINTS = 7
CHECKED_STATES = 4096  # compared with double on the processor of the host


def motion(count: int, dtype: Any) -> list[np.ndarray]:
    """q, dq, ddq (joints, count): rad, rad/s, rad/s^2."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((JOINTS, count), dtype=np.float32).astype(dtype) * scale for scale in (1.0, 1.0, 3.0)]


def relative(found: Any, wanted: Any) -> float:
    """Return the norm of the difference relative to the norm of the reference."""
    found, wanted = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def rates(seconds: list[float], work: float) -> dict[str, float]:
    """Return states or steps per second."""
    return {"best": work / min(seconds), "median": work / statistics.median(seconds)}


def cuda_part(folder: Path) -> dict[str, Any]:
    """Kernels compiled by NVRTC and launched through CuPy."""
    import cupy
    result: dict[str, Any] = {"cupy": cupy.__version__, "states": STATES, "rollout_states": ROLLOUT_STATES,
                              "rollout_steps": ROLLOUT_STEPS}
    block = cupy.ones(2 ** 28, dtype=cupy.float32)
    result["copy_bytes_per_second"] = rates(cuda_seconds(cupy.copyto, cupy.empty_like(block), block),
                                            2 * block.nbytes)["best"]
    del block
    wanted: Any = None
    for real in ("double", "float"):
        for mode in ("fixed", "p"):
            result[f"{mode}_{real}"], found = cuda_variant(folder, mode, real)
            wanted = found if wanted is None else wanted
            result[f"{mode}_{real}"]["error_against_double"] = relative(found, wanted)
            cupy.get_default_memory_pool().free_all_blocks()
    return result


def cuda_seconds(call: Callable[..., Any], *arguments: Any) -> list[float]:
    """Times of a call on the device."""
    import cupy
    for _ in range(3):
        call(*arguments)
    found = []
    for _ in range(REPETITIONS):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        call(*arguments)
        end.record()
        end.synchronize()
        found.append(1e-3 * cupy.cuda.get_elapsed_time(start, end))
    return found


def cuda_variant(folder: Path, mode: str, real: str) -> tuple[dict[str, Any], np.ndarray]:
    """Rates of one header, and the torques of the checked states. mode: "fixed", or "p" for numbers as an input."""
    import cupy
    loaded = importlib.import_module(f"lwr_{mode}_{real}_cupy")
    dtype, launch = loaded.DTYPE, loaded._launch
    own: dict[str, Any] = {"self_test": loaded.self_test()}
    numbers = [cupy.asarray(json.loads((folder / "p.json").read_text()), dtype=dtype)] if mode == "p" else []
    given = [*numbers, cupy.int32(0)] if numbers else []
    q, dq, ddq = (cupy.asarray(x) for x in motion(STATES, dtype))
    tau = cupy.full_like(q, cupy.nan)
    seconds = cuda_seconds(launch, "inverse_dynamics", STATES, (q, dq, ddq, *given, tau))
    own["inverse_dynamics"] = rates(seconds, STATES)
    own["bytes_per_second"] = 4 * q.nbytes / min(seconds)
    own["all_written"] = bool(cupy.isfinite(tau).all())
    found = cupy.asnumpy(tau[:, :CHECKED_STATES])
    seconds = cuda_seconds(launch, "forward_dynamics", STATES, (q, dq, ddq, *given, tau))
    own["forward_dynamics"] = rates(seconds, STATES)
    q, dq, ddq, tau = (x[:, :ROLLOUT_STATES].copy() for x in (q, dq, ddq, tau))
    if numbers:  # a set for every state, as for draws
        given = [cupy.tile(numbers[0][:, None], (1, ROLLOUT_STATES)), cupy.int32(1)]
        seconds = cuda_seconds(launch, "inverse_dynamics", ROLLOUT_STATES, (q, dq, ddq, *given, tau))
        own["inverse_dynamics_p_each"] = rates(seconds, ROLLOUT_STATES)
    q_ref, zero = q[None].copy(), cupy.zeros_like(q)[None]
    law = [dtype(x) for x in (50.0, 5.0, 100.0) for _ in range(JOINTS)]
    for method in ("euler", "rk4"):
        seconds = cuda_seconds(launch, f"rollout_{method}", ROLLOUT_STATES, (
            q, dq, q_ref, zero, cupy.int32(1), cupy.int32(1), *law, *given, dtype(1e-4), cupy.int32(ROLLOUT_STEPS),
            cupy.uint64(0), cupy.int32(1)))
        own[f"rollout_{method}"] = rates(seconds, ROLLOUT_STATES * ROLLOUT_STEPS)
    own["finite"] = bool(cupy.isfinite(q).all())
    return own, found


def nvcc_part(folder: Path) -> dict[str, Any]:
    """Launch wrappers of the header, compiled by nvcc: the self-test runs every one of them."""
    compiler = shutil.which("nvcc")
    if compiler is None:
        return {"skipped": "nvcc is not installed"}
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for mode in ("fixed", "p"):
            for real in ("float", "double"):
                robot = f"lwr_{mode}_{real}"
                (Path(name) / "main.cu").write_text(
                    f'#include <cstdio>\n#include "{robot}.cuh"\nint main()\n{{\n  '
                    f'std::printf("%.17g\\n", (double){robot}_self_test());\n}}\n')
                subprocess.run([compiler, "-std=c++17", "-arch=native", "-O3", f"-I{folder.resolve()}", "main.cu", "-o",
                                "main"], cwd=name, check=True)
                found = subprocess.run([str(Path(name) / "main")], check=True, capture_output=True, text=True)
                result[f"self_test_{mode}_{real}"] = float(found.stdout)
    return result


def jax_part(folder: Path) -> dict[str, Any]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    if jax.default_backend() != "gpu":
        return {"skipped": f"JAX runs on {jax.default_backend()}, not on a GPU"}
    module = importlib.import_module("lwr_fixed_float_jax")
    arrays = [jax.device_put(x) for x in motion(STATES, np.float32)]
    rows = [tuple(x) for x in arrays]

    def timed(call: Callable[..., Any], given: Any) -> list[float]:
        call = jax.jit(call)
        for _ in range(3):
            jax.block_until_ready(call(*given))
        found = []
        for _ in range(REPETITIONS):
            start = time.perf_counter()
            jax.block_until_ready(call(*given))
            found.append(time.perf_counter() - start)
        return found

    result: dict[str, Any] = {"jax": jax.__version__, "states": STATES, "self_test_float": module.self_test()}
    for name in ("inverse_dynamics", "forward_dynamics"):
        result[name] = rates(timed(getattr(module, name), arrays), STATES)
        result[f"{name}_rows"] = rates(timed(getattr(module, f"{name}_rows"), rows), STATES)
    tau = np.asarray(jax.jit(module.inverse_dynamics)(*(x[:, :CHECKED_STATES] for x in arrays)))
    result["error_against_double"] = relative(tau, reference(folder))
    fewer = [x[:, :JACOBIAN_STATES] for x in arrays]
    slopes = jax.vmap(jax.jacfwd(module.inverse_dynamics), in_axes=-1, out_axes=-1)
    result["jacobian_by_q"] = rates(timed(slopes, fewer), JACOBIAN_STATES)
    fewer = [x[:, :ROLLOUT_STATES] for x in arrays]

    def roll(q: Any, dq: Any, q_ref: Any) -> Any:
        return module.rollout(q, dq, q_ref[None], 0.0 * q_ref[None], 50.0, 5.0, 1e-4, ROLLOUT_STEPS, limit=100.0)

    result["rollout_euler"] = rates(timed(roll, (*fewer[:2], fewer[0])), ROLLOUT_STATES * ROLLOUT_STEPS)
    return result


def torch_part(folder: Path) -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {"skipped": "PyTorch finds no GPU"}
    module = importlib.import_module("lwr_fixed_float_torch")
    arrays = [torch.from_numpy(x).cuda() for x in motion(STATES, np.float32)]
    rows = [tuple(x.unbind(0)) for x in arrays]

    def timed(call: Callable[..., Any], given: Any) -> list[float]:
        call = torch.compile(call)
        for _ in range(3):
            call(*given)
        found = []
        for _ in range(REPETITIONS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call(*given)
            end.record()
            torch.cuda.synchronize()
            found.append(1e-3 * start.elapsed_time(end))
        return found

    result: dict[str, Any] = {"torch": torch.__version__, "states": STATES,
                              "self_test": module.self_test(), "self_test_gpu": module.self_test(device="cuda"),
                              "self_test_float": module.self_test(torch.float32)}
    for name in ("inverse_dynamics", "forward_dynamics"):
        result[name] = rates(timed(getattr(module, name), arrays), STATES)
        result[f"{name}_rows"] = rates(timed(getattr(module, f"{name}_rows"), rows), STATES)
    tau = torch.compile(module.inverse_dynamics)(*(x[:, :CHECKED_STATES].contiguous() for x in arrays))
    result["error_against_double"] = relative(tau.cpu(), reference(folder))
    result |= torch_gradients(folder)
    return result


def reference(folder: Path) -> np.ndarray:
    """Return the torques of the checked states in double precision, by the generated NumPy module."""
    module = importlib.import_module("lwr_fixed_float")
    return module.inverse_dynamics(*(x[:, :CHECKED_STATES].T.astype(float) for x in motion(STATES, np.float32)))[0].T


def torch_gradients(folder: Path) -> dict[str, float]:
    """Compare derivatives of the torques by automatic differentiation with those of CasADi, stored with the generated
    files, and with central differences."""
    import torch
    module = importlib.import_module("lwr_fixed_float_torch")
    stored = json.loads((folder / "slopes.json").read_text())
    inputs = [torch.tensor(stored[one], dtype=torch.float64) for one in ("q", "dq", "ddq")]
    found = torch.cat(torch.autograd.functional.jacobian(module.inverse_dynamics, tuple(inputs)), dim=1)
    step, columns = 1e-6, []
    for k in range(3):
        for j in range(JOINTS):
            ends = []
            for sign in (1.0, -1.0):
                moved = [x.clone() for x in inputs]
                moved[k][j] += sign * step
                ends.append(module.inverse_dynamics(*moved))
            columns.append((ends[0] - ends[1]) / (2.0 * step))
    return {"gradient_error_casadi": relative(found, stored["slopes"]),
            "gradient_error_differences": relative(found, torch.stack(columns, dim=1))}


PARTS = {"cuda": cuda_part, "nvcc": nvcc_part, "jax": jax_part, "torch": torch_part}


def main(folder: str, part: str) -> None:
    sys.path.insert(0, folder)
    start = time.perf_counter()
    try:
        result = PARTS[part](Path(folder))
    except ModuleNotFoundError as error:
        result = {"skipped": f"the Python package '{error.name}' is not installed"}
    print(json.dumps(result | {"seconds": round(time.perf_counter() - start, 1)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
