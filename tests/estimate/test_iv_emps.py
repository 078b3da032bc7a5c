"""Closed-loop methods on the real log of the EMPS, against its published parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat

from dynid.estimate import Estimate, Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.simulation import Cascade, Reference, simulate

PUBLISHED = {"M1": 95.1089, "Fv1": 203.5034, "Fc1": 20.3935, "Fo1": -3.1648}
ROBOT = Robot.builtin("emps")
MODEL = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb", "offset")))


@pytest.fixture(scope="module")
def emps(data: Callable[..., Path]) -> tuple[Recording, Cascade]:
    file = loadmat(data("emps", "DATA_EMPS.mat"))
    t, q, reference, command = (file[name].ravel().astype(float) for name in ("t", "qm", "qg", "vir"))
    kp, kv, gain = (float(file[name].ravel()[0]) for name in ("kp", "kv", "gtau"))
    log = Recording(t, q[:, None], gain * command[:, None], reference=reference[:, None], source="DATA_EMPS.mat")
    return log, Cascade(kp, kv, gain)


def off(estimate: Estimate, name: str) -> float:
    """Percent from the published value."""
    return 100.0 * abs(estimate.values[estimate.names.index(name)] / PUBLISHED[name] - 1.0)


def test_the_published_parameters_simulate_the_log(emps: tuple[Recording, Cascade]) -> None:
    log, law = emps
    theta = np.array([PUBLISHED.get(p.name, 0.0) for p in MODEL.parameters])
    run = simulate(MODEL, theta, law, Reference.from_recording(log))
    assert np.sqrt(np.mean((run.q - log.q) ** 2)) < 2e-5


FILTERS: list[dict[str, Any]] = [{"cutoff": 100, "decimate": 10}, {"cutoff": 20}, {}]


@pytest.mark.parametrize(("method", "settings"), [
    *(("iv", settings) for settings in FILTERS), ("didim", FILTERS[0]), ("cloe", FILTERS[0]), ("clie", FILTERS[1]),
    *(pytest.param(method, settings, marks=pytest.mark.slow) for method, settings in (
        ("didim", FILTERS[1]), ("didim", FILTERS[2]), ("cloe", FILTERS[1]), ("cloe", FILTERS[2]),
        ("clie", FILTERS[0]), ("clie", FILTERS[2])))], ids=str)
def test_filtered(emps: tuple[Recording, Cascade], method: str, settings: dict[str, Any]) -> None:
    log, law = emps
    samples = prepare(log, **settings)
    estimate = identify(Problem.from_model(MODEL, samples, recordings=log, controller=law), method=method)
    assert off(estimate, "M1") < 0.5
    assert off(estimate, "Fc1") < 3.0
    assert off(estimate, "Fv1") < 4.0
    late = estimate.diagnostics["notes"][0]
    assert late.code == "controller-speed-late" and late.evidence == {"ticks": 1.0}  # the log's own torques show it
    assert 0.05 < estimate.std[0] < 1.0


@pytest.mark.parametrize(("method", "options"), [("iv", {}), ("iv", {"instruments": "transfer"}), ("didim", {})])
def test_coarse_positions_and_no_filter(emps: tuple[Recording, Cascade], method: str, options: dict[str, str]) -> None:
    log, law = emps
    rough = replace(log, q=np.round(log.q / 1e-5) * 1e-5)
    samples = prepare(rough, method="none", torque_cutoff="none", slow=0.0)
    problem = Problem.from_model(MODEL, samples, recordings=rough, controller=law)
    assert off(identify(problem, method="ols"), "M1") > 90.0
    estimate = identify(problem, method=method, **options)
    assert off(estimate, "M1") < 0.5
    assert off(estimate, "Fc1") < 3.0
    assert estimate.diagnostics["iterations"] <= 4
