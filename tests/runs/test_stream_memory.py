"""A run with `stream_rows` holds no more memory for a longer log."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dynid import Model, Robot, make_terms
from dynid.excitation import FourierSeries
from dynid.recording.samples import Samples
from dynid.regression.stretches import ENOUGH_ROWS, stretches

# The command line in this process, with a thread that notes the most anonymous memory, MB: pages of files do not count.
PROGRAM = """
import json, sys, threading, time
def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024
peak = 0.0
def watch():
    global peak
    while True:
        peak = max(peak, anonymous())
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
from dynid.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as left:
    print(json.dumps({"code": left.code or 0, "peak": peak}))
"""


def write_log(path: Path, rows: int, robot: Robot) -> None:
    """An NPZ file of uncompressed arrays: the same 20 s again and again, with noise."""
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    rng = np.random.default_rng(0)
    theta = np.array([0.3 if p.nominal is None else p.nominal for p in model.parameters])
    a, b = 0.1 * rng.normal(size=(2, robot.dof, 4))
    motion = FourierSeries(a, b, np.zeros(robot.dof), 20.0).at(np.arange(20_000) / 1000.0)
    tau = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    again = -(-rows // len(tau))
    q, tau = (np.tile(x, (again, 1))[:rows] for x in (motion.q, tau))
    np.savez(path, t=np.arange(rows) / 1000.0, q=q, tau=tau + 0.02 * rng.normal(size=tau.shape))


def peak(path: Path) -> float:
    """MB of anonymous memory that an identification takes at most."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM, "identify", "kuka-lwr4", str(path), "--set",
                            "stream_rows=50000", "--method", "wls"], capture_output=True, text=True, timeout=600)
    said = json.loads(ended.stdout.splitlines()[-1])
    assert said["code"] == 0, ended.stderr
    return float(said["peak"])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to tell memory from files")
def test_memory_of_a_streamed_run_hardly_grows_with_the_log(tmp_path: Path) -> None:
    """It was 1.1 kB a row: motion with noise and spectra of all rows at once."""
    robot, sizes = Robot.load("kuka-lwr4"), (200_000, 800_000)
    for rows in sizes:
        write_log(tmp_path / f"{rows}.npz", rows, robot)
    peak(tmp_path / f"{sizes[0]}.npz")  # compiles
    small, large = (peak(tmp_path / f"{rows}.npz") for rows in sizes)
    assert (large - small) * 2**20 / (sizes[1] - sizes[0]) < 150.0  # bytes a row, of 120 in the file


def test_stretches_are_rows_of_the_data() -> None:
    rng = np.random.default_rng(1)
    rows = 4 * ENOUGH_ROWS
    whole = Samples.of(*rng.normal(size=(4, rows, 2)), rate=100.0)
    short = Samples.of(*rng.normal(size=(4, 50, 2)), rate=100.0)
    found = stretches([whole, short])
    cut = found[0]
    assert ENOUGH_ROWS / 2 < sum(map(len, found.values())) < 2 * ENOUGH_ROWS
    at = np.rint(cut.t * 100.0).astype(int)
    for name in ("q", "dq", "ddq", "tau"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name)[at])
    assert all(np.all(np.diff(at[a:b]) == 1) for a, b in cut.segments) and at.max() > 0.7 * rows
    assert stretches([short])[0] is short
