"""What a constrained fit hides, the verdict says: the price of consistency first, and the signs behind it."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.validate import Verdict, verdict


def judged(log, method: str = "pc-wls") -> Verdict:
    problem, estimate = log.fitted(method)
    return verdict(estimate, problem)


@pytest.mark.parametrize("method", ["pc-ols", "pc-wls"])
def test_inverted_torques_are_named_first(simulate, method: str) -> None:
    """Noise of 2 %: least squares meets the torques to that, with every inertia and friction below zero."""
    log = simulate("scara2", changes={f"{name}{j}": 0.3 for name in ("Fv", "Fc") for j in (1, 2)})
    found = judged(log.with_torque(-log.samples.tau), method)
    first, second = found.findings[:2]
    assert (first.code, second.code) == ("consistency-price", "torque-sign")
    assert first.joints == second.joints == tuple(log.problem().regression.joints)
    assert first.evidence["unconstrained_relative_error"] == pytest.approx(2.0, abs=0.1)
    assert first.evidence["relative_error"] > 50.0
    assert "residuals-autocorrelated" not in {one.code for one in found.findings}


@pytest.mark.parametrize("name", ["scara2", "arm3r", "kuka-lwr4"])
def test_healthy_logs_have_no_price(simulate, name: str) -> None:
    assert not {"consistency-price", "torque-sign"} & {one.code for one in judged(simulate(name)).findings}


def test_one_inverted_joint_is_named(simulate) -> None:
    log = simulate("scara2", changes={f"{name}{j}": 0.3 for name in ("Fv", "Fc") for j in (1, 2)})
    found = judged(log.with_torque(log.samples.tau * np.array([1.0, -1.0])))
    [sign] = [one for one in found.findings if one.code == "torque-sign"]
    assert sign.joints == (log.problem().regression.joints[1],)


def test_a_refusal_speaks_of_signs(simulate) -> None:
    log = simulate("arm3r")
    with refused(NotPossibleError, "robot-too-heavy"):
        log.with_torque(-log.samples.tau).fitted("pc-wls")
