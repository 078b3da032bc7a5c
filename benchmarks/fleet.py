"""Compression of 64 logs of 100,000 samples and 7 joints by one and two workers, compared with a plain loop."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dynid.datasets import Dataset
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.log_files import find_logs
from dynid.recording.log_reading import read
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import on_grid, prepare_gridded
from dynid.recording.write import write_npz
from dynid.regression import base_parameters, fold, prepared_equations
from dynid.robot import Robot

LOGS, SAMPLES, FEW = 64, 100_000, 8
RATE, CUTOFF = 1000.0, 20.0
PREPARE = {"cutoff": CUTOFF}
ROBOTS, LOGS_A_DAY, DAYS = 10_000, 1, 365  # of the fleet on paper

# Its own process, so that times of processor and peaks of memory are this work's alone.
_RUN = """
import importlib.util, json, resource, sys, time
from dataclasses import replace
from dynid.regression import base_parameters
if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("fleet_benchmark", sys.argv[1])
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    model, sources, workers, store = bench.model_of(), sys.argv[2].split("|"), int(sys.argv[3]), sys.argv[4] or None
    bench.plain_loop(model, sources[:1])  # compiled code is loaded, as for the plain loop
    begun, started = time.perf_counter(), time.process_time()
    times = []
    dataset = bench.dataset_of(model, sources, workers, store)
    dataset = replace(dataset, progress=lambda done, total: times.append(time.perf_counter() - begun))
    _, found = dataset.fold(model, base_parameters(model))
    wall, cpu = time.perf_counter() - begun, time.process_time() - started
    own, crew = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu += crew.ru_utime + crew.ru_stime
    first = min(4, len(times) - 1)  # once all workers are at it
    print(json.dumps({"wall": wall, "running": (times[-1] - times[first]) / max(len(times) - 1 - first, 1),
                      "start": times[0], "cpu": cpu, "read": found.read, "own_mb": own.ru_maxrss / 1024,
                      "worker_mb": crew.ru_maxrss / 1024}))
"""


def model_of() -> Model:
    robot = Robot.builtin("kuka-lwr4")
    return Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))


def dataset_of(model: Model, sources: list[str], workers: int, store: str | None) -> Dataset:
    """Return the dataset of all logs, one of which is read."""
    return Dataset.from_files(sources, model.robot, prepare=PREPARE, workers=workers, store=store, pilot_rows=1)


def write_logs(folder: Path, model: Model, count: int, samples: int, progress: Callable[[str], None]) -> None:
    """Write logs of one motion, each with slightly different positions."""
    rng, t = np.random.default_rng(0), np.arange(samples) / RATE
    a, b = rng.normal(size=(2, model.dof, 5))
    moved = FourierSeries(0.3 * a, 0.3 * b, np.zeros(model.dof), 10.0).at(t)
    theta = np.array([parameter.nominal or 0.1 for parameter in model.parameters])
    q, tau = moved.q, model.inverse_dynamics(theta, moved.q, moved.dq, moved.ddq)
    tau += 0.1 * rng.normal(size=tau.shape)
    for k in range(count):
        if k % 8 == 0:
            progress(f"{k} of {count} logs written")
        write_npz(Recording(t, q, tau + 1e-3 * k, joints=model.robot.joint_names), folder / f"log-{k:03d}.npz")


def plain_loop(model: Model, files: list[str]) -> tuple[float, float]:
    """Return the elapsed time and the CPU time, s, of reading, preparing and compressing one log after the other."""
    base, chosen = base_parameters(model), Preparation.from_settings(PREPARE)
    wall, cpu = time.perf_counter(), time.process_time()
    total = None
    for name in files:
        samples = prepare_gridded(on_grid(read(name, robot=model.robot), chosen, spectrum=False), chosen)
        one = fold(prepared_equations(model, (samples,), base), blocks=1, threads=1)
        total = one if total is None else (total + one).joined(10)
    return time.perf_counter() - wall, time.process_time() - cpu


def _folded(sources: list[str], workers: int, store: str = "") -> dict[str, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(_RUN)
        script.flush()
        command = [sys.executable, script.name, __file__, "|".join(sources), str(workers), store]
        said = subprocess.run(command, capture_output=True, text=True, check=True,
                              cwd=Path(__file__).parent)
    return dict(json.loads(said.stdout.strip().splitlines()[-1]))


def run(progress: Callable[[str], None], logs: int = LOGS, samples: int = SAMPLES) -> dict[str, Any]:
    from benchmarks._two_processes import Pair  # of this folder, which workers do not look in

    model = model_of()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "logs"
        folder.mkdir()
        write_logs(folder, model, logs + 1, samples, progress)
        files = [log.source for log in find_logs(folder)]
        new, files = files[-1], files[:-1]
        few = files[:min(FEW, logs)]
        progress("the plain loop")
        plain_loop(model, few[:1])  # compiles
        plain = plain_loop(model, few)
        progress("two processes beside each other")
        half = max(len(few) // 2, 1)
        with Pair(__file__, (few[:half], few[-half:])) as pair:
            ceilings = pair.gain("logs"), pair.gain("arithmetic")
        progress("one worker")
        one = _folded(files, 1)
        progress("two workers")
        two, small = _folded(files, 2, str(Path(name) / "store")), _folded(few, 2)
        progress("one log more")
        again = _folded([*files, new], 1, str(Path(name) / "store"))
        stored = sum(path.stat().st_size for path in (Path(name) / "store").rglob("*.npz")) / (logs + 1)
        read_bytes = sum(Path(file).stat().st_size for file in files) / logs
    return {**result_of(plain, len(few), one, two, small, again, logs, samples, stored, read_bytes),
            **gains(one, two, *ceilings)}


def gains(one: dict[str, float], two: dict[str, float], ceiling: float, arithmetic: float) -> dict[str, float]:
    """speedup_2_workers: of the wall clock of the whole call; on one worker the call works in its own process, on two
    it starts both, which is counted (start_2_workers_s: until the first log is done). speedup_running: of the time a
    log takes once all are at work. ceiling_2_processes: what two plain loops in processes of their own get done in the
    time of one alone, on this machine in this run; ceiling_arithmetic: the same of products that stay in the first
    cache. speedup_over_ceiling: speedup_running over the first of these."""
    running = one["running"] / two["running"]
    return {"speedup_2_workers": one["wall"] / two["wall"], "start_2_workers_s": two["start"],
            "speedup_running": running, "ceiling_2_processes": ceiling, "ceiling_arithmetic": arithmetic,
            "speedup_over_ceiling": running / ceiling}


def result_of(plain: tuple[float, float], plain_logs: int, one: dict[str, float], two: dict[str, float],
              small: dict[str, float], again: dict[str, float], logs: int, samples: int, stored: float,
              read_bytes: float) -> dict[str, Any]:
    """efficiency: throughput per second of the processor on one worker over the plain loop's."""
    year = ROBOTS * LOGS_A_DAY * DAYS
    cpu_a_log = one["cpu"] / logs
    return {
        "logs": logs, "samples": samples, "plain_s_per_log": plain[1] / plain_logs, "one_worker_s_per_log": cpu_a_log,
        "efficiency": (plain[1] / plain_logs) / cpu_a_log,
        "processor_2_workers": one["cpu"] / two["cpu"], "peak_worker_mb": two["worker_mb"],
        "peak_worker_few_logs_mb": small["worker_mb"], "peak_one_worker_mb": one["own_mb"],
        "second_run_reads": again["read"], "second_run_s": again["wall"], "fold_bytes": stored,
        "log_bytes": read_bytes, "fleet": {
            "robots": ROBOTS, "logs": year, "read_tb": year * read_bytes / 1e12, "core_hours": year * cpu_a_log / 3600,
            "folds_tb": year * stored / 1e12}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("work", "value"),
            ("plain loop, processor a log", f"{result['plain_s_per_log']:.2f} s"),
            ("one worker, processor a log", f"{result['one_worker_s_per_log']:.2f} s"),
            ("efficiency against the plain loop", f"{result['efficiency']:.2f}"),
            ("speedup on two workers, their start included", f"{result['speedup_2_workers']:.2f}"),
            ("the same once they are running", f"{result['speedup_running']:.2f}"),
            ("what two plain loops gain on this machine", f"{result['ceiling_2_processes']:.2f}"),
            ("speedup over that", f"{result['speedup_over_ceiling']:.2f}"),
            ("peak of a worker", f"{result['peak_worker_mb']:.0f} MB"),
            ("the same with few logs", f"{result['peak_worker_few_logs_mb']:.0f} MB"),
            ("logs read by a second run with a new one", f"{result['second_run_reads']:.0f}"),
            ("a fold", f"{result['fold_bytes'] / 1e3:.0f} kB"),
            (f"{ROBOTS} robots, a log of {result['samples']} rows a day for a year",
             f"{result['fleet']['read_tb']:.1f} TB read, {result['fleet']['core_hours']:.0f} core hours, "
             f"{result['fleet']['folds_tb']:.2f} TB of folds")]
