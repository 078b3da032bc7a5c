"""How often a whole run evaluates the regressor over its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import arm, fourier
from passes import Passes, counted_passes

from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.runs import RunSettings, run

ROWS = 4000
FRICTION = {"friction": ["viscous", "coulomb", "offset"]}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, theta = arm()
    q, dq, ddq = fourier(model.dof, seconds=ROWS / 200.0, seed=1)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(1).normal(size=q.shape)
    path = tmp_path_factory.mktemp("log") / "log.npz"
    write_npz(Recording(np.arange(ROWS) / 200.0, q, tau, joints=model.robot.joint_names), path)
    return path


def passes_of(log: Path, **settings: Any) -> Passes:
    with counted_passes() as passes:
        run(RunSettings.of({"robot": "arm3r", "logs": [str(log)], **settings}))
    return passes


def test_a_default_run_with_every_choice(log: Path) -> None:
    """Cut-off, friction and method are chosen: four passes for the first, four for the second, none for the third.
    Hypotheses of the verdict are counted apart: how many are weighed depends on the log."""
    passes = passes_of(log, model={"friction": ["auto"]})
    rows = passes.total - passes.by("validate.verdict.verdict")
    assert rows <= 13 * ROWS, (rows / ROWS, passes.table(ROWS))


def test_a_run_by_wls_with_everything_named(log: Path) -> None:
    """One for the compression, the fit and its residuals; three for errors of the motion; two at other cut-offs."""
    passes = passes_of(log, method="wls", model=FRICTION, prepare={"cutoff": 10.0})
    assert passes.total <= 7 * ROWS, (passes.total / ROWS, passes.table(ROWS))
