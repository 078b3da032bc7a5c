"""Generated code of a 7-joint arm: generation time, operations, and speed compared with SymPy, CasADi and Pinocchio."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks._classical import casadi_c, sympy_c
from benchmarks._peers import best, motion, pinocchio_of
from dynid.errors import NotPossibleError
from dynid.robot import Robot
from dynid.symbolic import Program, generate

WHAT = ["inverse_dynamics", "regressor", "inertia", "coriolis", "gravity", "forward_dynamics"]
COMPARED = ["inverse_dynamics", "inertia", "gravity"]
SAMPLES, CALLS = 4096, 300
FLAGS = ["-O2", "-shared", "-fPIC", "-Wno-psabi"]
# Vectors of four doubles want registers of 32 bytes; -O2 alone takes those of 16, where two at a time is the limit.
WIDE = {"wide": ["-march=native"], "ours4": ["-march=native"], "avx2": ["-mavx2", "-mfma"]}
FOURS = ("ours4", "plain4", "avx2")


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NotPossibleError("this benchmark compiles C with gcc, which is not installed", "install gcc")
    robot = Robot.builtin("kuka-lwr4")
    result: dict[str, Any] = {"robot": robot.name}
    progress("writing")
    generate(Robot.builtin("scara2"), WHAT).c()  # imports and first use are not what is asked
    wall, cpu = time.perf_counter(), time.process_time()
    program = generate(robot, WHAT)
    text = program.c()
    result["seconds"], result["wall_s"] = time.process_time() - cpu, time.perf_counter() - wall
    result["characters"] = len(text)
    for name, key in (("kuka-lwr4", "lwr"), ("barrett-wam", "wam"), ("puma560", "puma")):
        result[f"ops_{key}"] = generate(Robot.builtin(name), ["inverse_dynamics"]).ops["inverse_dynamics"].total
    result["ops_inertia_lwr"] = program.ops["inertia"].total
    result["ops_regressor_lwr"] = program.ops["regressor"].total
    with tempfile.TemporaryDirectory() as name:
        _speeds(robot, Path(name), compiler, result, progress)
    return result


def _speeds(robot: Robot, folder: Path, compiler: str, result: dict[str, Any],
            progress: Callable[[str], None]) -> None:
    fixed = generate(robot, COMPARED, parameters="fixed", name="ours")
    progress("SymPy writes its code")
    start = time.process_time()
    (folder / "sympy.c").write_text(sympy_c(robot))
    result["seconds_sympy"] = time.process_time() - start
    progress("CasADi writes its code")
    start = time.process_time()
    casadi_c(robot, folder)
    result["seconds_casadi"] = time.process_time() - start
    (folder / "ours.c").write_text(fixed.c() + _loops(fixed, 1))
    (folder / "wide.c").write_text(fixed.c() + _loops(fixed, 1))
    for one in FOURS:
        (folder / f"{one}.c").write_text(fixed.c(batch=4) + _loops(fixed, 4))
    (folder / "sympy.c").write_text((folder / "sympy.c").read_text() + _peer_loops(_SYMPY))
    (folder / "peer.c").write_text((folder / "peer.c").read_text() + _peer_loops(_CASADI))
    progress("compiling")
    libraries = {}
    for one in ("ours", "wide", *_runnable(FOURS), "sympy", "peer"):
        flags = [*FLAGS, *WIDE.get(one, [])]
        subprocess.run([compiler, *flags, f"{one}.c", "-o", f"{one}.so", "-lm"], cwd=folder, check=True,
                       capture_output=True)
        libraries[one] = ctypes.CDLL(str(folder / f"{one}.so"))
    q, dq, ddq = motion(SAMPLES, robot.dof)
    progress("running")
    reference = {}
    for function in COMPARED:
        size = robot.dof ** 2 if function == "inertia" else robot.dof
        for one in libraries:
            out = np.empty((SAMPLES, size))
            call = getattr(libraries[one], f"loop_{function}")
            pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in _laid_out(one, q, dq, ddq, out)]
            call(*pointers, ctypes.c_int(SAMPLES))
            found = out if one not in FOURS else _laid_back(_LAID[-1], size)
            if one == "ours":
                reference[function] = found.copy()
            error = np.abs(found - reference[function]).max() / np.abs(reference[function]).max()
            if not error < 1e-10:
                raise NotPossibleError(f"the {function} of '{one}' differs from ours by {error:.1e}, so their times "
                                       "cannot be compared")
            seconds = best(lambda call=call, pointers=pointers: call(*pointers, ctypes.c_int(SAMPLES)), 60)
            result[f"ns_{function}_{one}"] = 1e9 * seconds / SAMPLES
    for peer, key in (("sympy", "sympy"), ("peer", "casadi")):
        result[f"speedup_vs_{key}"] = min(result[f"ns_{f}_{peer}"] / result[f"ns_{f}_ours"] for f in COMPARED)
    result["speedup_batch4"] = result["ns_inverse_dynamics_wide"] / result["ns_inverse_dynamics_ours4"]
    for one in ("plain4", "avx2"):  # both beside one at a time by -O2 alone
        if one in libraries:
            key = "speedup_batch4_o2" if one == "plain4" else "speedup_batch4_avx2"
            result[key] = result["ns_inverse_dynamics_ours"] / result[f"ns_inverse_dynamics_{one}"]
    model = pinocchio_of(robot)
    data = model.createData()
    seconds = best(lambda: [pin.rnea(model, data, q[s], dq[s], ddq[s]) for s in range(CALLS)], 40)
    result["ns_inverse_dynamics_pinocchio"] = 1e9 * seconds / CALLS
    result["speedup_vs_pinocchio"] = result["ns_inverse_dynamics_pinocchio"] / result["ns_inverse_dynamics_ours"]


def _runnable(names: tuple[str, ...]) -> list[str]:
    """Those that this processor has the registers for."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        flags = ""
    return [one for one in names if one != "avx2" or (" avx2 " in flags and " fma " in flags)]


_LAID: list[np.ndarray] = []


def _laid_out(one: str, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, out: np.ndarray) -> list[np.ndarray]:
    """Inputs and output as a library takes them: four samples side by side for those that take four."""
    if one not in FOURS:
        return [q, dq, ddq, out]
    _LAID[:] = [_aligned(np.ascontiguousarray(x.reshape(-1, 4, x.shape[1]).swapaxes(1, 2))) for x in (q, dq, ddq, out)]
    return _LAID


def _aligned(values: np.ndarray) -> np.ndarray:
    """The same at an address that vectors may have."""
    room = np.empty(values.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    found = room[start:start + values.nbytes].view(float).reshape(values.shape)
    found[:] = values
    return found


def _laid_back(values: np.ndarray, size: int) -> np.ndarray:
    return values.swapaxes(1, 2).reshape(-1, size)


_SIGNATURE = "void loop_{name}(const {kind} *q, const {kind} *dq, const {kind} *ddq, {kind} *out, int samples)\n"


def _loops(program: Program, batch: int) -> str:
    n, kind, text = program.plan.dof, "double" if batch == 1 else "ours_vector", "\n"
    for function in program.functions:
        size = sum(len(output.values) for output in function.outputs)
        arguments = ", ".join(f"{one} + {n} * i" for one, _ in function.inputs)
        text += _SIGNATURE.format(name=function.name, kind=kind) + "{\n  (void)dq; (void)ddq;\n"
        call = f"ours_{function.name}({arguments}, out + {size} * i)"
        text += f"  for (int i = 0; i < samples / {batch}; ++i) {call};\n}}\n"
    return text


_SYMPY = "sympy_{name}(q + 7 * i, dq + 7 * i, ddq + 7 * i, out + {size} * i);"
_CASADI = ("const double *arg[3] = {{q + 7 * i, dq + 7 * i, ddq + 7 * i}}; double *res[1] = {{out + {size} * i}}; "
           "casadi_{name}(arg, res, 0, 0, 0);")


def _peer_loops(call: str) -> str:
    """Loops over samples for the functions that are compared; call: a peer's, by name and size of its result."""
    text = "\n"
    for name in COMPARED:
        text += _SIGNATURE.format(name=name, kind="double")
        body = call.format(name=name, size=49 if name == "inertia" else 7)
        text += f"{{ for (int i = 0; i < samples; ++i) {{ {body} }} }}\n"
    return text


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("function", "ours, ns", "4 at a time", "SymPy", "CasADi", "Pinocchio")]
    for function in COMPARED:
        theirs = f"{result['ns_inverse_dynamics_pinocchio']:.0f}" if function == "inverse_dynamics" else ""
        rows.append((function, *(f"{result[f'ns_{function}_{one}']:.0f}" for one in ("ours", "ours4", "sympy", "peer")),
                     theirs))
    rows.append(("written in, CPU s", f"{result['seconds']:.2f}", "", f"{result['seconds_sympy']:.1f}",
                 f"{result['seconds_casadi']:.2f}", ""))
    rows.append(("4 at a time, times faster by -O2, -mavx2 -mfma, -march=native",
                 *(f"{result[key]:.1f}" if key in result else "" for key in (
                     "speedup_batch4_o2", "speedup_batch4_avx2", "speedup_batch4")), "", ""))
    rows.append(("torque operations LWR, WAM, Puma", f"{result['ops_lwr']}, {result['ops_wam']}, {result['ops_puma']}",
                 "", "", "", ""))
    return rows
