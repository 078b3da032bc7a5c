"""Weighted least squares of 7 joints and 64 base parameters, compared with Pinocchio in a loop and numpy's QR."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks._peers import best, motion, pinocchio_of
from dynid.estimate import Estimate, Problem, choose_terms, identify
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot

SAMPLES, PEER_SAMPLES = 100_000, 10_000

# Its own process, so that the peak is this work's alone. "held": all samples in memory; "streamed": pieces that are
# made, folded and forgotten, as a log larger than memory is.
_MEMORY = """
import json, re, sys, time
from pathlib import Path
import numpy as np
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.robot import Robot
robot = Robot.builtin("kuka-lwr4")
model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
base, count, way = base_parameters(model), int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
def piece(n):
    return Samples.from_arrays(*(rng.standard_normal((n, 7)) for _ in range(4)))
fold(TorqueEquations.from_model(model, piece(20_000), base))
parts = [piece(count)] if way == "held" else (piece(50_000) for _ in range(count // 50_000))
start = time.perf_counter()
regression = None
for part in parts:
    one = fold(TorqueEquations.from_model(model, part, base))
    regression = one if regression is None else (regression + one).joined(10)
rows, seconds = regression.rows[0], time.perf_counter() - start
identify(Problem(model, regression, tuple(parts) if way == "held" else ()), method="wls")
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)) / 1024
print(json.dumps({"rows": rows, "us": 1e6 * seconds / rows, "peak_mb": peak}))
"""


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("kuka-lwr4")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    base = base_parameters(model)
    q, dq, ddq, noise = motion(SAMPLES, robot.dof, 4)
    theta = model.parameters.vector(model.parameters.nominal)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.1 * noise
    samples = Samples.from_arrays(q, dq, ddq, tau)
    result: dict[str, Any] = {"samples": SAMPLES, "joints": robot.dof, "base_parameters": len(base)}

    progress("Pinocchio in a loop, numpy's QR of the stored matrix")
    peer, few = _Peer(robot, len(base)), slice(0, PEER_SAMPLES)
    result["us_pinocchio_numpy"] = 1e6 * best(lambda: peer.identify(q[few], dq[few], ddq[few], tau[few]),
                                              3) / PEER_SAMPLES
    progress("dynid")

    def ours(part: Samples, threads: int | None = None) -> Estimate:
        problem = Problem.from_model(model, part, base=base, threads=threads)
        return identify(Problem(model, problem.regression), method="wls")  # as the peer: no second look at residuals

    same = ours(Samples.from_arrays(q[few], dq[few], ddq[few], tau[few])).predict(q[few], dq[few], ddq[few])
    theirs = peer.identify(q[few], dq[few], ddq[few], tau[few])
    result["largest_difference_of_torques"] = float(np.abs(same - theirs).max() / np.abs(theirs).max())
    result["us_dynid"] = 1e6 * best(lambda: ours(samples)) / SAMPLES
    result["us_dynid_one_thread"] = 1e6 * best(lambda: ours(samples, 1), 3) / SAMPLES
    result["us_dynid_with_honest_deviations"] = 1e6 * best(
        lambda: identify(Problem.from_model(model, samples, base=base), method="wls"), 3) / SAMPLES
    progress("a friction curve and load")
    rich = Model(robot, make_terms(robot, friction=("curve", "load", "offset")))
    wide = base_parameters(rich)
    result["us_dynid_with_curve_and_load"] = 1e6 * best(
        lambda: identify(Problem(rich, Problem.from_model(rich, samples, base=wide).regression), method="wls"),
        3) / SAMPLES
    result["times_slower_with_curve_and_load"] = result["us_dynid_with_curve_and_load"] / result["us_dynid"]
    progress("friction chosen, a log of 20 s")
    result["cpu_s_friction_chosen_20_s"] = _chosen(robot)
    result["speedup_vs_pinocchio_numpy"] = result["us_pinocchio_numpy"] / result["us_dynid"]
    result["speedup_one_thread"] = result["us_pinocchio_numpy"] / result["us_dynid_one_thread"]

    for name, count in (("100k", 100_000), ("1m", 1_000_000)):
        for way in ("held", "streamed"):
            progress(f"{count} samples {way}: memory and time")
            runs = [_memory(count, way) for _ in range(3)]
            key = name if way == "held" else f"{name}_streamed"
            result[f"peak_mb_{key}"] = max(one["peak_mb"] for one in runs)
            result[f"us_fold_{key}"] = min(one["us"] for one in runs)
    result["time_per_sample_1m_over_100k"] = result["us_fold_1m"] / result["us_fold_100k"]
    return result


class _Peer:
    """Identification without dynid: stack the regressor, QR for OLS, weight by joint, QR again. It uses Pinocchio's
    parameters, order and frames, and a set of independent columns that was found beforehand."""

    def __init__(self, robot: Robot, base_count: int) -> None:
        self.model = pinocchio_of(robot)
        self.data, self.dof = self.model.createData(), robot.dof
        q, dq, ddq = motion(300, robot.dof)
        stacked = self.stack(q, dq, ddq).reshape(-1, 13 * robot.dof)
        norms = np.linalg.norm(stacked, axis=0)
        scaled = stacked / np.where(norms > 1e-9, norms, np.inf)
        self.columns: list[int] = []
        for c in range(scaled.shape[1]):
            kept = scaled[:, self.columns]
            if norms[c] > 1e-9 and (not self.columns or np.linalg.norm(
                    scaled[:, c] - kept @ np.linalg.lstsq(kept, scaled[:, c], rcond=None)[0]) > 1e-7):
                self.columns.append(c)
        assert len(self.columns) == base_count

    def stack(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> np.ndarray:
        n, rigid = self.dof, 10 * self.dof
        stacked = np.zeros((len(q), n, 13 * n))
        for s in range(len(q)):
            stacked[s, :, :rigid] = pin.computeJointTorqueRegressor(self.model, self.data, q[s], dq[s], ddq[s])
        joints = np.arange(n)
        stacked[:, joints, rigid + joints] = dq
        stacked[:, joints, rigid + n + joints] = np.sign(dq)
        stacked[:, joints, rigid + 2 * n + joints] = 1.0
        return stacked

    def identify(self, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Predicted torques of the weighted fit."""
        w = self.stack(q, dq, ddq)[:, :, self.columns]

        def solve(weights: np.ndarray) -> np.ndarray:
            full, r = np.linalg.qr((w * weights[:, None]).reshape(-1, len(self.columns)))
            return np.linalg.solve(r, full.T @ (tau * weights).ravel())

        residual = tau - w @ solve(np.ones(self.dof))
        return w @ solve(1.0 / residual.std(axis=0))


def _chosen(robot: Robot) -> float:
    """CPU seconds of `choose_terms` on 20 s at 200 Hz, the better of two."""
    rng = np.random.default_rng(0)
    made = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "load", "offset")))
    t = np.arange(4000) / 200.0
    a, b = rng.normal(size=(2, robot.dof, 6)) / np.arange(1, 7)
    path = FourierSeries(a, b, np.zeros(robot.dof), 20.0).at(t)
    theta = [{"Fl": 0.1, "Fv": 1.0, "Fc": 1.0}.get(item.symbol, item.nominal or 0.0) for item in made.parameters]
    tau = made.inverse_dynamics(theta, path.q, path.dq, path.ddq)
    tau = tau + 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    samples = Samples.from_arrays(path.q, path.dq, path.ddq, tau, rate=200.0)
    took = []
    for _ in range(2):
        start = process_time()
        choose_terms(Model(robot), samples)
        took.append(process_time() - start)
    return min(took)


def _memory(count: int, way: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", _MEMORY, str(count), way], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    peer = result["us_pinocchio_numpy"]
    rows = [("way", "us a sample", "times faster", "peak MB")]
    rows.append(("Pinocchio loop + numpy QR", f"{peer:.1f}", "1.0", ""))
    for name, key in (("dynid, all threads", "us_dynid"), ("dynid, one thread", "us_dynid_one_thread"),
                      ("dynid with honest deviations", "us_dynid_with_honest_deviations"),
                      ("dynid, friction curve and load", "us_dynid_with_curve_and_load")):
        rows.append((name, f"{result[key]:.2f}", f"{peer / result[key]:.1f}", ""))
    rows.append(("friction chosen, 20 s of 7 joints: CPU s", f"{result['cpu_s_friction_chosen_20_s']:.2f}", "", ""))
    for key in ("100k", "100k_streamed", "1m", "1m_streamed"):
        rows.append((f"fold of {key.replace('_', ', ')}", f"{result[f'us_fold_{key}']:.2f}", "",
                     f"{result[f'peak_mb_{key}']:.0f}"))
    return rows
