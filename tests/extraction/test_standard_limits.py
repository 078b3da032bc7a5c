"""Limits of standard parameters from bounds of bodies: against bodies drawn inside the bounds, and in mrls."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import arm, motion
from refusals import refused

import dynid
from dynid.errors import ModelError
from dynid.estimate.recursive.result import base_limits, standard_limits
from dynid.extraction import robot_bounds
from dynid.model import Model
from dynid.robot import Robot


@pytest.mark.parametrize("width", ["loose", "normal", "tight"])
def test_limits_are_the_smallest_that_hold_every_body(width: str) -> None:
    model = Model(Robot.builtin("kuka-iiwa14"))
    bounds = robot_bounds(model, width)  # type: ignore[arg-type]
    limits, rng = bounds.standard_limits(model.parameters), np.random.default_rng(0)
    for columns, low, high in zip(model.parameters.bodies.values(), bounds.low, bounds.high, strict=True):
        drawn = np.where(rng.random((20_000, 10)) < 0.5, low, high)  # corners, where products are extreme
        drawn[::4] = rng.uniform(low, high, (5000, 10))
        drawn[::3, 1:4] *= (low[1:4] > 0.0) | (high[1:4] < 0.0)  # centres on an axis, where squares are least
        m, c = drawn[:, 0], drawn[:, 1:4]
        shift = m[:, None, None] * (np.sum(c ** 2, axis=1)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None, :])
        inertia = drawn[:, 4:] + np.stack([shift[:, i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))],
                                          axis=1)
        standard = np.column_stack([inertia, m[:, None] * c, m])
        least, most = np.array([limits[model.parameters.items[k].name] for k in columns]).T
        assert np.all(standard >= least - 1e-12) and np.all(standard <= most + 1e-12)
        assert np.allclose(standard.min(axis=0), least, atol=1e-12) and np.allclose(standard.max(axis=0), most)


def test_mrls_within_the_limits_of_a_robots_file() -> None:
    model = arm()
    q, dq, ddq = motion(400, 3)
    tau = 20.0 * model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    free, held = (dynid.identify(model, samples, "mrls", **options) for options in ({}, {"limits": "tight"}))
    low, high = base_limits(held.base, robot_bounds(model, "tight").standard_limits(model.parameters))
    assert np.any((free.values < low) | (free.values > high))
    assert np.all((held.values >= low) & (held.values <= high))
    live = dynid.Online(model, "mrls", limits="tight", forgetting=None)
    live.update(q, dq, ddq, tau)
    assert np.allclose(live.values, held.values, rtol=1e-9)
    named = dynid.identify(model, samples, "mrls", limits={"Fv1": [0.1, 0.2]})
    assert 0.1 <= named.values[named.names.index("Fv1")] <= 0.2


def test_limits_that_are_none_are_refused() -> None:
    model = arm()
    for given, words in (({"Q": (0.0, 1.0)}, ("unknown-parameter", "'Q'")), ({"M1": 3.0}, ("bad-limits", '"normal"')),
                         ("nowhere.toml", ("bad-model", "'nowhere.toml'"))):
        with refused(ModelError, *words):
            standard_limits(model, given)  # type: ignore[arg-type]
