"""`dynid identify` without options on 10^6 rows of 7 joints, and its memory with ten times as many logs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._commands import spent

ROBOT = "kuka-lwr4"
ROWS, PARTS = 1_000_000, 20  # rows in all, and the number of equal logs they are cut into for the memory of workers
FEW = 2  # logs of the smaller run with workers, so that both are busy; all parts are ten times as many

# A process of its own: the kernel counts the memory of a process that starts a command as the command's.
_SIMULATE = """
import sys
from pathlib import Path
import numpy as np
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.robot import Robot
folder, robot, rows, parts = Path(sys.argv[1]), Robot.load(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng, rate, period = np.random.default_rng(0), 1000.0, 20.0
model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
theta = [{"Fv": 1.0, "Fc": 2.0}.get(item.symbol, item.nominal or 0.0) for item in model.parameters]
pieces = []
for k in range(parts):  # every part has its own motion
    t = np.arange(k * rows // parts, (k + 1) * rows // parts) / rate
    a, b = 0.6 * rng.normal(size=(2, robot.dof, 5)) / np.arange(1, 6)
    path = FourierSeries(a, b, np.zeros(robot.dof), period).at(t)
    tau = model.inverse_dynamics(theta, path.q, path.dq, path.ddq)
    tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    pieces.append({"time": t, "position": path.q + 1e-5 * rng.normal(size=tau.shape), "torque": tau})
    np.savez(folder / f"part{k:02d}.npz", **pieces[-1])
np.savez(folder / "whole.npz", **{name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]})
"""


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        progress(f"simulating {ROWS} rows")
        spent([sys.executable, "-c", _SIMULATE, folder, ROBOT, str(ROWS), str(PARTS)])
        parts = sorted(folder.glob("part*.npz"))

        def identify(*words: str | Path) -> Any:
            return spent([sys.executable, "-m", "dynid", "identify", ROBOT, *words, "--json"])

        progress("kernels are compiled")
        identify(parts[0])
        progress(f"{ROWS} rows in one log, everything chosen")
        whole = identify(folder / "whole.npz")
        result: dict[str, Any] = {"rows": ROWS, "cpu_s_1m": whole.cpu_s, "peak_mb_1m": whole.peak_mb}
        for key, logs in (("1x", parts[:FEW]), ("10x", parts)):
            progress(f"{len(logs)} logs, two workers")
            one = identify(*logs, "--workers", "2")
            result |= {f"cpu_s_workers_{key}": one.cpu_s, f"peak_mb_workers_{key}": one.peak_mb}
    result["memory_10x_over_1x"] = result["peak_mb_workers_10x"] / result["peak_mb_workers_1x"]
    return result


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("dynid identify, everything chosen, 7 joints", "CPU time", "peak memory"),
            (f"one log of {result['rows']:,} rows", f"{result['cpu_s_1m']:.1f} s", f"{result['peak_mb_1m']:.0f} MB"),
            *((f"two workers, {key} the logs", f"{result[f'cpu_s_workers_{key}']:.1f} s",
               f"{result[f'peak_mb_workers_{key}']:.0f} MB") for key in ("1x", "10x"))]
