"""Findings on causes that the data do not prove state it: probably, consistent with, or the alternatives."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from dynid.validate import conclusion
from dynid.validate.hypotheses.nominal import Sheet, torque_factors
from dynid.validate.verdict_checks import causes, compensated, transfer
from dynid.validate.verdict_checks.cause_findings import FINDINGS

HEDGE = re.compile(r"probably|consistent with|[Oo]ne of\b|doubtful|looks? (the same|similar)|\bor that of\b|\bmay\b")

# Causes that another cause could imitate, and the function that writes the finding on each.
NOT_DECISIVE = {
    **{code: FINDINGS[code] for code in ("drive-gain", "time-scale", "gear-ratio", "gravity-direction",
                                         "residual-follows-backlash")},
    "payload": causes._load, "torque-unit": causes._too_heavy, "gravity-removed": compensated.gravity_removed,
    "resonance": conclusion._oscillations, "another-machine": transfer._why,
}


@pytest.mark.parametrize("code", NOT_DECISIVE)
def test_a_cause_that_others_could_imitate_is_not_stated_as_a_fact(code: str) -> None:
    assert HEDGE.search(inspect.getsource(NOT_DECISIVE[code])), code


@pytest.mark.parametrize("text, is_hedged", [
    ("the gear of joint 5 has backlash of 4.39 mrad", False),
    ("the residual of joint 5 is consistent with backlash", True),
    ("one of friction at reversals, a filter of the drive, or time stamps", True)])
def test_the_check_knows_a_fact_from_a_possibility(text: str, is_hedged: bool) -> None:
    assert bool(HEDGE.search(text)) == is_hedged


@pytest.mark.parametrize(("similar", "is_known"), [(0.0, True), (0.9995, False)])
def test_a_torque_factor_that_the_motion_does_not_determine_is_none(similar, is_known):
    """Gravity and friction that vary alike, as in a short log: the factor between torques is uncertain."""
    rng = np.random.default_rng(3)
    rows, one = 400, rng.normal(size=400)
    gravity = similar * one + np.sqrt(1.0 - similar ** 2) * rng.normal(size=rows)
    tau = 3.0 * gravity + one + rng.normal(size=rows)
    sheet = Sheet(tau, gravity, one[:, None], {}, {}, np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64))
    [factor] = torque_factors(sheet, 1)
    assert factor == pytest.approx(3.0, rel=0.1) if is_known else factor is None
