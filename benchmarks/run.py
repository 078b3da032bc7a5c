"""The whole command `dynid identify` on a real log (25 s, 7 joints), compared with a plain Pinocchio script."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._commands import Spent, spent
from dynid.errors import NotPossibleError

SOURCE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DYNID_DATA", SOURCE.parent / "shared" / "data")) / "kuka_lwr4"
ROBOT, LOG = DATA / "kuka_lwr4.urdf", DATA / "measurements_1.npz"
MAPPING = SOURCE / "reproductions" / "mappings" / "kuka_lwr4.toml"
FRICTION = ("--friction", "viscous,coulomb,offset")
COMMANDS: dict[str, tuple[str, ...]] = {
    "default": (),  # friction and method are chosen
    "auto": FRICTION,  # the method is chosen
    "wls": (*FRICTION, "--method", "wls"),
    "pc_wls": (*FRICTION, "--method", "pc-wls"),
    "pc_ridge": (*FRICTION, "--method", "pc-ridge"),
}
REPEATS = 5


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    if not DATA.is_dir():
        raise NotPossibleError("the log 'kuka_lwr4' is not below the data folder; set DYNID_DATA to where it is")
    with tempfile.TemporaryDirectory() as folder:
        return _measured(Path(folder), progress)


def _measured(folder: Path, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the median CPU seconds of every command and of the script, run in turn so that other load affects all
    equally."""
    fresh = {"NUMBA_CACHE_DIR": f"{folder}/kernels", "PYTHONPYCACHEPREFIX": f"{folder}/bytes",
             "PYTHONDONTWRITEBYTECODE": ""}

    def identify(name: str, output: str) -> Spent:
        return spent([sys.executable, "-m", "dynid", "identify", ROBOT, LOG, "--mapping", MAPPING, *COMMANDS[name],
                      "-o", folder / output, "--json"], fresh)

    def script() -> Spent:
        return spent([sys.executable, SOURCE / "benchmarks" / "_plain_script.py", ROBOT, LOG], fresh)

    progress("the first command after an installation: byte code and kernels are compiled")
    result: dict[str, Any] = {"first_s": identify("wls", "first").cpu_s}
    result["script_says"] = script().output.splitlines()[-1]
    for name in COMMANDS:
        progress(f"{name}: what it alone compiles")
        identify(name, f"{name}-warm")
    seconds: dict[str, list[float]] = {name: [] for name in ("script", *COMMANDS)}
    for repeat in range(REPEATS):
        for name, spans in seconds.items():
            progress(f"{name}, run {repeat + 1} of {REPEATS}")
            spans.append((script() if name == "script" else identify(name, f"{name}-{repeat}")).cpu_s)
    result |= {f"cpu_s_{name}": median(spans) for name, spans in seconds.items()}
    return result | {f"ratio_{name}": result[f"cpu_s_{name}"] / result["cpu_s_script"] for name in COMMANDS}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("whole command, 25 s of 7 joints", "CPU time", "ratio to the script"),
            ("plain script: numpy, scipy, Pinocchio", f"{result['cpu_s_script']:.2f} s", "1.0")]
    rows += [(f"dynid identify, {name.replace('_', '-')}", f"{result[f'cpu_s_{name}']:.2f} s",
              f"{result[f'ratio_{name}']:.2f}") for name in COMMANDS]
    return [*rows, ("dynid identify, wls, first after an installation", f"{result['first_s']:.1f} s", "")]
