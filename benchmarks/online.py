"""Online estimation of 7 joints and 64 base parameters: regressor, update and solution, per sample or in blocks."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._peers import best
from dynid.model import Coulomb, Model, Offset, RigidBodies, Viscous
from dynid.online import Online
from dynid.regression import base_parameters
from dynid.robot import Robot

SAMPLES, BLOCK, PEER, LONG = 20_000, 512, 300, 1_000_000


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    model = Model(Robot.builtin("kuka-iiwa14"), (RigidBodies(), Viscous(), Coulomb(), Offset()))
    base, rng = base_parameters(model), np.random.default_rng(0)
    t = np.arange(SAMPLES)[:, None] / 1000.0
    waves = [(rng.normal(size=7), rng.uniform(0.0, 6.0, 7), 2.0 * np.pi * f) for f in (0.1, 0.23, 0.41, 0.7)]
    q = sum(a * np.sin(w * t + p) for a, p, w in waves)
    dq = sum(a * w * np.cos(w * t + p) for a, p, w in waves)
    ddq = sum(-a * w * w * np.sin(w * t + p) for a, p, w in waves)
    rows = model.regressor(q, dq, ddq)[:, :, base.independent]
    tau = rows @ rng.normal(size=len(base)) + 0.5 * rng.normal(size=(SAMPLES, 7))

    def online() -> Online:
        return Online(model, base=base, noise=0.5)

    online().update(q[:600], dq[:600], ddq[:600], tau[:600], history=True)
    online().update(q[0], dq[0], ddq[0], tau[0])
    progress("one call a sample")
    one, times, cpu = online(), np.zeros(SAMPLES), np.zeros(SAMPLES)
    gc.disable()
    for k in range(SAMPLES):
        busy, start = time.thread_time(), time.perf_counter()
        one.update(q[k], dq[k], ddq[k], tau[k])
        times[k], cpu[k] = time.perf_counter() - start, time.thread_time() - busy
    gc.enable()
    bursts = np.array([times[k:k + 20].mean() for k in range(0, SAMPLES, 20)])
    progress("blocks")
    block = [x[:BLOCK] for x in (q, dq, ddq, tau)]
    in_blocks = best(lambda: one.update(*block, history=True), 60) / BLOCK
    result: dict[str, Any] = {
        "joints": 7, "base_parameters": len(base), "samples": SAMPLES, "us_per_sample": 1e6 * float(np.median(times)),
        "p99_us": 1e6 * float(np.percentile(times, 99)), "max_us": 1e6 * float(times.max()),
        "us_cpu": 1e6 * float(np.median(cpu)), "p99_us_cpu": 1e6 * float(np.percentile(cpu, 99)),
        "us_best_burst": 1e6 * float(bursts.min()), "us_block": 1e6 * in_blocks,
        "hz": 1.0 / float(np.median(times)), "document_hz": 54.0}
    progress("the covariance form in numpy")
    result["us_numpy_covariance_form"] = 1e6 * best(lambda: covariance_form(model, base, q, dq, ddq, tau), 5) / PEER
    result["speedup_vs_numpy"] = result["us_numpy_covariance_form"] / result["us_best_burst"]  # both undisturbed
    progress("statsmodels")
    result["us_statsmodels_without_regressor"] = statsmodels_peer(rows, tau)
    progress("a million samples")
    result["mb_more_after_a_million"] = growth(online(), (q, dq, ddq, tau))
    return result


def covariance_form(model: Model, base: Any, q: Any, dq: Any, ddq: Any, tau: Any) -> np.ndarray:
    """Ardiani, eq. 1.55, with P kept symmetric: regressor, gain, update."""
    p, beta, eye = 100.0 * np.eye(len(base)), np.zeros(len(base)), np.eye(7)
    for k in range(PEER):
        y = model.regressor(q[k], dq[k], ddq[k])[:, base.independent]
        gain = np.linalg.solve(eye + y @ p @ y.T, y @ p).T
        beta = beta + gain @ (tau[k] - y @ beta)
        p = p - gain @ y @ p
        p = 0.5 * (p + p.T)
    return beta


def statsmodels_peer(rows: np.ndarray, tau: np.ndarray) -> float:
    """Return the time per sample (us) of recursive least squares by statsmodels on a given regressor."""
    from statsmodels.regression.recursive_ls import RecursiveLS

    y, x = tau[:PEER].reshape(-1), rows[:PEER].reshape(7 * PEER, -1)
    with np.errstate(invalid="ignore"):
        return 1e6 * best(lambda: RecursiveLS(y, x).fit(), 3) / PEER


def growth(online: Online, signals: tuple[np.ndarray, ...]) -> float:
    """Megabytes by which the process grew from the hundred-thousandth sample to the millionth."""
    first = 0
    for done in range(0, LONG, SAMPLES):
        if done == LONG // 10:
            first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        online.update(*signals)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) / 1024.0


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    ours = result["us_per_sample"]
    rows = [("7 joints, 64 base parameters", "us a sample", "against one call a sample"),
            ("dynid, one call a sample", f"{ours:.1f} (p99 {result['p99_us']:.0f})", "1.0"),
            ("dynid, in blocks, solved at every sample", f"{result['us_block']:.1f}",
             f"{result['us_block'] / ours:.2f}")]
    for key, name in (("us_numpy_covariance_form", "covariance form in numpy"),
                      ("us_statsmodels_without_regressor", "statsmodels, without the regressor")):
        rows.append((name, f"{result[key]:.1f}", f"{result[key] / ours:.1f}"))
    rows.append(("the document", f"{1e6 / result['document_hz']:.0f}", f"{1e6 / result['document_hz'] / ours:.0f}"))
    rows.append((f"memory grows by {result['mb_more_after_a_million']:.1f} MB over a million samples", "", ""))
    return rows
