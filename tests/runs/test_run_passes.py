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
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose positions are exact, or quantised with the step (rad) that is asked for: noise of the positions takes
    one more evaluation of the columns. Where "rough" is asked for, friction changes with the position."""
    model, theta = arm()
    q, dq, ddq = fourier(model.dof, seconds=ROWS / 200.0, seed=1)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.01 * np.random.default_rng(1).normal(size=q.shape)
    path = tmp_path_factory.mktemp("log") / "log.npz"
    step = 0.0 if request.param == "rough" else request.param
    tau += 0.5 * np.abs(np.sin(3.0 * q)) * np.sign(dq) if request.param == "rough" else 0.0
    write_npz(Recording(np.arange(ROWS) / 200.0, step * np.round(q / step) if step else q, tau,
                        joints=model.robot.joint_names), path)
    return path


def passes_of(log: Path, **settings: Any) -> Passes:
    with counted_passes() as passes:
        run(RunSettings.from_values({"robot": "arm3r", "logs": [str(log)], **settings}))
    return passes


@pytest.mark.parametrize("log", [0.0], indirect=True)
def test_a_default_run_with_every_choice(log: Path) -> None:
    """Cut-off, friction and method are chosen, and hypotheses of the verdict are weighed."""
    passes = passes_of(log, model={"friction": ["auto"]})
    assert passes.total <= 15 * ROWS, (passes.total / ROWS, passes.table(ROWS))
    # The bodies' columns are evaluated once for the choice of friction, the compression and its checks.
    once = passes.by("estimate.friction_choice.choose_terms") + passes.by("runs.loading.compressed")
    assert once <= 1.5 * ROWS, passes.table(ROWS)


@pytest.mark.parametrize("log", [0.0, 2.0 * np.pi / 2**14], indirect=True, ids=["exact", "quantised"])
def test_a_run_by_wls_with_everything_named(log: Path) -> None:
    """One for the compression, the fit and its residuals; one for noise of the positions; two at other cut-offs; half
    for drive gains."""
    passes = passes_of(log, method="wls", model=FRICTION, prepare={"cutoff": 10.0})
    assert passes.total <= 5 * ROWS, (passes.total / ROWS, passes.table(ROWS))
    spent = passes.by("estimate.motion_errors.motion_shift") + passes.by("validate.cutoff_influence.cutoff_dependence")
    assert spent <= 3.1 * ROWS, passes.table(ROWS)  # and some rows that tell which columns are dry


@pytest.mark.parametrize("log", ["rough"], indirect=True)
def test_a_run_by_wls_that_screens_hypotheses(log: Path) -> None:
    """Residuals of every joint let the verdict doubt its motion: all hypotheses about it are screened."""
    passes = passes_of(log, method="wls", model=FRICTION, prepare={"cutoff": 10.0})
    screened = passes.by("validate.hypotheses.weigh._motions")
    assert 0.5 * ROWS < screened < ROWS, passes.table(ROWS)
    assert passes.total <= 5 * ROWS, (passes.total / ROWS, passes.table(ROWS))
