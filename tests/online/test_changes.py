"""Changes: what explains the data after a restart."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import arm, coloured, motion

from dynid.online import Online


def stream(kind: str, seed: int, samples: int = 6000) -> Online:
    """A small arm that changes in the middle of a stream."""
    model, rng = arm(), np.random.default_rng(seed)
    theta = np.abs(rng.normal(size=len(model.parameters))) + 0.5
    q, dq, ddq = motion(samples, 3, seed=seed)
    after, place = theta.copy(), model.parameters.index
    if kind == "load":
        for name, value in (("M3", 0.6), ("MX3", 0.15), ("ZZ3", 0.05)):
            after[place(name)] += value
    elif kind == "friction":
        for j in (1, 2, 3):
            after[place(f"Fc{j}")] *= 2.5
            after[place(f"Fv{j}")] *= 1.5
    tau = np.vstack([model.inverse_dynamics(x, q[part], dq[part], ddq[part]) for x, part in (
        (theta, slice(0, samples // 2)), (after, slice(samples // 2, None)))])
    if kind == "drive-gain":
        tau[samples // 2:, 1] *= 1.15
    elif kind == "inner contact":
        push = 4.0 * np.sin(7.0 * np.arange(samples // 2)[:, None] / 100.0 + np.array([0.0, 1.0, 2.0]))
        tau[samples // 2:, :2] += push[:, :2]
    elif kind == "contact":
        tau[samples // 2:] += 4.0 * np.sin(7.0 * np.arange(samples // 2)[:, None] / 100.0 + np.array([0.0, 1.0, 2.0]))
    online = Online(model)
    online.update(q, dq, ddq, tau + coloured(samples, 3, rng, pole=0.8, size=0.3))
    return online


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("kind", "of"), [("load", "all"), ("friction", "all joints"), ("drive-gain", "joint2")])
def test_a_change_is_told_from_others(kind: str, of: str, seed: int) -> None:
    online = stream(kind, seed)
    (change, *_) = online.changes()
    assert 3000 < change.sample < 3400
    best, second = change.explanations[:2]
    assert (best.kind, best.of) == (kind, of)
    assert best.evidence - second.evidence > 3.0 and best.explained > 0.8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_no_parameters_follow_is_a_contact(seed: int) -> None:
    found = stream("contact", seed).changes()
    assert found and np.mean(["contact" in change.cause for change in found]) > 0.8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_contact_on_an_inner_body_leaves_the_joints_beyond_it_alone(seed: int) -> None:
    best = stream("inner contact", seed).changes()[0].explanations[0]
    assert (best.kind, best.of) == ("contact", "joint2")


def test_no_change_no_restart() -> None:
    assert stream("none", 4).changes() == ()


def test_a_saved_stream_has_all_its_changes(tmp_path) -> None:
    online = stream("load", 1)
    online.update(*motion(3000, 3, seed=9), np.random.default_rng(5).normal(size=(3000, 3)))  # a second change
    before = online.changes()
    assert len(before) > 1
    online.save(tmp_path / "stream.npz")
    assert Online.load(tmp_path / "stream.npz", arm()).changes() == before
