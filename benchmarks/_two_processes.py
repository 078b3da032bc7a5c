"""Throughput of two independent processes on this machine, relative to one process.

Two cores share caches and memory, and may be two threads of one core. The measured ratio is therefore the largest
speedup that two workers can reach on this machine. Each process loads its modules, reports that it is ready, and starts
at a common signal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_LOOP = """
import importlib.util, json, sys, time
import numpy as np
spec = importlib.util.spec_from_file_location("fleet_benchmark", sys.argv[1])
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
model, files = bench.model_of(), sys.argv[2].split("|")
small = np.random.default_rng(0).normal(size=(48, 48))

def logs():
    return bench.plain_loop(model, files)[0]

def arithmetic():
    begun = time.perf_counter()
    for _ in range(20000):
        small @ small
    return time.perf_counter() - begun

work = {"logs": logs, "arithmetic": arithmetic}
bench.plain_loop(model, files[:1])
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(work[line.strip()]()), flush=True)
"""
_TIMES = 3  # one alone and two at once in turn, so that other work on the machine meets both


class Pair:
    """Two processes, each with files of its own."""

    def __init__(self, bench: str, files: tuple[list[str], list[str]]) -> None:
        self._both = [subprocess.Popen([sys.executable, "-c", _LOOP, bench, "|".join(own)], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(bench).parent)
                      for own in files]

    def __enter__(self) -> Pair:
        for one in self._both:
            assert one.stdout is not None and one.stdout.readline().strip() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._both:
            assert one.stdin is not None
            one.stdin.close()
            one.wait()

    def gain(self, work: str) -> float:
        """Return the work of two simultaneous processes divided by that of one process in the same time, from the best
        of several times."""
        alone, together = [], []
        for _ in range(_TIMES):
            alone.append(self._times(work, self._both[:1])[0])
            together.append(max(self._times(work, self._both)))
        return 2.0 * min(alone) / min(together)

    @staticmethod
    def _times(work: str, processes: list[subprocess.Popen[str]]) -> list[float]:
        for one in processes:
            assert one.stdin is not None
            one.stdin.write(work + "\n")
            one.stdin.flush()
        return [float(json.loads(one.stdout.readline())) for one in processes if one.stdout is not None]
