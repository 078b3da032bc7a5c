"""The whole command `dynid identify` with its report on a real log of 25 s and 7 joints, and the first one ever."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynid.errors import NotPossibleError

SOURCE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DYNID_DATA", SOURCE.parent / "shared" / "data")) / "kuka_lwr4"
METHODS = {"cpu_s_auto": "auto", "cpu_s_wls": "wls", "cpu_s_pc_wls": "pc-wls", "cpu_s_pc_ridge": "pc-ridge"}
REPEATS = 6


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    if not DATA.is_dir():
        raise NotPossibleError("the log 'kuka_lwr4' is not below the data folder; set DYNID_DATA to where it is")
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        fresh = {"NUMBA_CACHE_DIR": f"{folder}/kernels", "PYTHONPYCACHEPREFIX": f"{folder}/bytes",
                 "PYTHONDONTWRITEBYTECODE": ""}
        progress("the first command after an installation: byte code and kernels are compiled")
        seconds["first_s"] = _identify("wls", Path(folder, "first"), fresh)
        for name, method in METHODS.items():
            for repeat in range(REPEATS + 1):  # what this method alone compiles is in the cache after one more
                progress(f"{method}, run {repeat}")
                spent = _identify(method, Path(folder, f"{method}-{repeat}"), fresh)
                seconds[name] = spent if repeat < 2 else min(seconds[name], spent)
    return seconds


def _identify(method: str, output: Path, variables: dict[str, str]) -> float:
    """CPU seconds (user and system, threads and children included) of one command in a process of its own."""
    words = ["identify", DATA / "kuka_lwr4.urdf", DATA / "measurements_1.npz", "--mapping",
             SOURCE / "reproductions" / "mappings" / "kuka_lwr4.toml", "--friction", "viscous,coulomb,offset",
             "--method", method, "-o", output, "--json"]
    child = subprocess.Popen([sys.executable, "-m", "dynid", *map(str, words)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise NotPossibleError(f"dynid identify by {method} failed: {said.strip()}")
    return usage.ru_utime + usage.ru_stime


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("dynid identify with report, 25 s of 7 joints", "CPU time"),
            *((method, f"{result[name]:.2f} s") for name, method in METHODS.items()),
            ("wls, first command after an installation", f"{result['first_s']:.1f} s")]
