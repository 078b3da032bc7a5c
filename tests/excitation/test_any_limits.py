"""Random robots and random limits: a motion that respects all on a fine grid, or one sentence that says why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from robots import random_robot

from dynid.errors import DynidError
from dynid.excitation import (
    Fourier,
    FourierPlusQuintic,
    HalfSpace,
    Limits,
    PriorKnowledge,
    Search,
    Splines,
    Workspace,
    excite,
)
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.robot import Robot

NO_DEADLINE = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True, "database": None}


@st.composite
def cases(draw: Any) -> tuple[Robot, dict[str, Any], dict[str, Any]]:
    """A robot, limits by name and options of excite."""
    rng = np.random.default_rng(draw(st.integers(0, 2 ** 32 - 1)))
    robot = random_robot(rng, draw(st.integers(1, 4)))
    n = robot.dof
    wide = draw(st.sampled_from([0.3, 1.0, 3.0]))
    limits: dict[str, Any] = {"lower": -wide * rng.uniform(0.2, 1.0, n), "upper": wide * rng.uniform(0.2, 1.0, n),
                              "velocity": rng.uniform(0.2, 3.0, n), "acceleration": rng.uniform(0.5, 10.0, n),
                              "torque": np.inf}
    if draw(st.booleans()):
        limits["jerk"] = rng.uniform(5.0, 80.0, n)
    if draw(st.booleans()):
        limits["torque"] = rng.uniform(5.0, 400.0, n)
    maker = draw(st.sampled_from([Fourier, FourierPlusQuintic, Splines]))
    duration, harmonics, rest = draw(st.sampled_from([1.0, 4.0, 10.0])), draw(st.integers(2, 5)), draw(st.booleans())
    shape = {} if maker is Splines else {"harmonics": harmonics}
    options: dict[str, Any] = {"family": maker(duration, rest=rest, **shape),
                               "criterion": draw(st.sampled_from(["condition", "a", "d"]))}
    posture = draw(st.sampled_from(["free", "start", "both"]))
    if posture != "free":
        limits["start"] = rng.uniform(limits["lower"], limits["upper"])
    if posture == "both":
        same = maker is Fourier
        limits["end"] = limits["start"] if same else rng.uniform(limits["lower"], limits["upper"])
    if draw(st.booleans()):
        normal = rng.normal(size=3)
        limits["space"] = Workspace.from_robot(robot, radius=rng.uniform(0.0, 0.1), margin=0.01,
                                               planes=[HalfSpace(normal, -rng.uniform(0.3, 2.0), "wall")])
    return robot, limits, options


def assert_motion_or_sentence(case: tuple[Robot, dict[str, Any], dict[str, Any]]) -> bool:
    robot, given_limits, options = case
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb()))
    limits = Limits.from_robot(robot, **given_limits)
    theta = np.array([0.1 if p.nominal is None else p.nominal for p in model.parameters])
    try:
        found = excite(model, limits, prior=PriorKnowledge(nominal=theta), search=Search(budget=0.15), **options)
    except DynidError as error:
        text = str(error)
        assert "\n" not in text and len(text) > 30 and "nan" not in text
        return False
    assert found.report.ok
    # Ten times finer than the search's own samples (at most 500), and not a multiple of them.
    t = np.linspace(0.0, found.trajectory.duration, 5003)
    motion = found.trajectory.at(t)
    assert np.isfinite(motion.q).all()
    assert (motion.q >= limits.lower - 1e-9).all() and (motion.q <= limits.upper + 1e-9).all()
    for signal, bound in ((motion.dq, limits.velocity), (motion.ddq, limits.acceleration), (motion.jerk, limits.jerk)):
        assert (np.abs(signal) <= bound * (1 + 1e-9)).all()
    if np.isfinite(limits.torque).any():
        torques = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
        # The sign of a velocity that passes zero between the check's grid and this one moves Coulomb's 0.1 N m.
        assert (np.abs(torques) <= limits.torque + 1e-6 * limits.torque + 0.2).all()
    if limits.space is not None:
        assert limits.space.slack(motion.q).min(initial=np.inf) >= -1e-9
    for posture, row in ((limits.start, 0), (limits.end, -1)):
        if posture is not None:
            np.testing.assert_allclose(motion.q[row], posture, atol=1e-5)
    if options["family"].rest:
        np.testing.assert_allclose(motion.dq[[0, -1]], 0.0, atol=1e-6)
    return True


@settings(max_examples=12, **NO_DEADLINE)
@given(cases())
def test_a_dozen_robots(case: tuple[Robot, dict[str, Any], dict[str, Any]]) -> None:
    assert_motion_or_sentence(case)


@pytest.mark.slow
def test_a_thousand_robots() -> None:
    found = []

    @settings(max_examples=1000, **NO_DEADLINE)
    @given(cases())
    def each(case: tuple[Robot, dict[str, Any], dict[str, Any]]) -> None:
        found.append(assert_motion_or_sentence(case))

    each()
    # Refusing everything would be no art.
    assert np.mean(found) > 0.5
