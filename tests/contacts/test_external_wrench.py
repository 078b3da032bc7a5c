"""Forces from outside: the observer against the truth, deviations that hold, the alarm, the link, push or payload."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from loads import LOAD
from pushed_arm import RATE, SECONDS, arm, estimate, outside, push, recording
from refusals import refused

from dynid import dynamics
from dynid.contacts import ExternalWrench, find_contacts, free_motion
from dynid.contacts.contact_free_errors import gaussian_level, observed_level
from dynid.contacts.external_wrench import posterior
from dynid.contacts.observer import FilterOptions, Observer
from dynid.dynamics import Wrench
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate import Estimate
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.model import Model
from dynid.model.load_friction import LoadFriction
from dynid.regression import base_parameters

ROBOT = arm().model.robot
PRIOR = np.array([100.0] * 3 + [20.0] * 3)


@pytest.mark.parametrize("way", ["momentum", "inverse"])
def test_the_observer_gives_the_torques_of_a_wrench(way: str) -> None:
    """Without noise and with the true parameters, what it finds is J' F at the row's own time."""
    always = [Wrench("link5", lambda t: np.array([30.0, 10.0, 0.0, 0.0, 1.0, 0.0]) * np.sin(2.0 * t))]
    true = replace(estimate(), values=estimate().base.reduce(arm().theta), theta=None)
    log = recording(4, always, noise=0.0)
    rows = Observer(true, FilterOptions(way, 0.03, RATE, (1e-9,) * 7)).push(log.t, log.q, log.tau)
    truth = dynamics.wrench_torques(ROBOT, always, rows.q, rows.t)
    moving = np.abs(rows.dq).min(axis=1) > 0.05  # no sign of a velocity changes within the window
    assert moving.sum() > 500 and np.abs(truth).max() > 10.0
    assert np.abs(rows.tau - truth)[moving].max() < 0.01 * np.abs(truth).max()


def test_the_observer_knows_friction_that_depends_on_load() -> None:
    """With the true parameters the torques of a wrench are found, and the friction of its transmitted torque is not
    taken for a part of it; without load friction in the model the error is many times as large."""
    always = [Wrench("link5", lambda t: np.array([30.0, 10.0, 0.0, 0.0, 1.0, 0.0]) * np.sin(2.0 * t))]
    share, plain = 0.15, arm().model
    model = Model(plain.robot, (*plain.terms, LoadFriction()))
    own = [model.parameters.names.index(name) for name in plain.parameters.names]
    theta = np.array([share if item.symbol == "Fl" else 0.0 for item in model.parameters])
    theta[own] = arm().theta
    bodies = np.array([arm().theta[places] for places in plain.parameters.bodies.values()])
    model = Model(plain.robot, (*plain.terms, LoadFriction(bodies=bodies)))
    base = base_parameters(model)
    true = replace(estimate(), model=model, base=base, values=base.reduce(theta), theta=None,
                   identified=np.ones(len(base), dtype=bool), uncertainty_of=OnDemand.known(
                       Uncertainty(1e-12 * np.eye(len(base)), "correlated")))
    free, log = arm().recording(4, noise=0.0, seconds=SECONDS, rate=RATE), recording(4, always, noise=0.0)
    pushed = log.tau - free.tau
    dq = np.gradient(log.q, log.t, axis=0)
    ddq = np.gradient(dq, log.t, axis=0)
    transmitted = dynamics.inverse_dynamics(plain.robot, bodies, log.q, dq, ddq) + pushed
    log = replace(log, tau=log.tau + share * np.abs(transmitted) * np.sign(dq))

    def errors(one: Estimate) -> float:
        rows = Observer(one, FilterOptions("momentum", 0.03, RATE, (1e-9,) * 7)).push(log.t, log.q, log.tau)
        truth = dynamics.wrench_torques(ROBOT, always, rows.q, rows.t)
        moving = np.abs(rows.dq).min(axis=1) > 0.05
        assert moving.sum() > 500
        return float(np.sqrt(np.mean((rows.tau - truth)[moving] ** 2)) / np.sqrt(np.mean(truth[moving] ** 2)))

    without = replace(estimate(), values=estimate().base.reduce(arm().theta), theta=None)
    assert errors(true) < 0.03
    assert errors(without) > 10.0 * errors(true)


def test_the_posterior_is_least_squares_with_the_prior_as_more_rows() -> None:
    rng = np.random.default_rng(1)
    jacobian, tau = rng.normal(size=(3, 6, 7)), rng.normal(size=(3, 7))
    half = rng.normal(size=(3, 7, 7))
    covariance = half @ np.swapaxes(half, 1, 2) + np.eye(7)
    wrench, spread = posterior(jacobian, tau, covariance, PRIOR)
    for k in range(3):
        factor = np.linalg.cholesky(covariance[k])
        rows = np.vstack([np.linalg.solve(factor, jacobian[k].T), np.diag(1.0 / PRIOR)])
        right = np.append(np.linalg.solve(factor, tau[k]), np.zeros(6))
        assert wrench[k] == pytest.approx(np.linalg.lstsq(rows, right)[0], rel=1e-9)
        assert spread[k] == pytest.approx(np.linalg.inv(rows.T @ rows), rel=1e-8, abs=1e-12)


def test_a_singular_posture_keeps_the_deviation_of_the_prior() -> None:
    """The arm stretched upwards: a force along it is felt by no joint."""
    jacobian = dynamics.jacobian(ROBOT, "tool", np.zeros((1, 7)))
    wrench, spread = posterior(jacobian, np.full((1, 7), 0.01), 1e-4 * np.eye(7)[None], PRIOR)
    assert math.sqrt(spread[0, 2, 2]) == pytest.approx(100.0, rel=1e-6)
    assert np.abs(wrench).max() < 1.0


def test_rices_level_is_crossed_as_often_as_it_says() -> None:
    """Against a simulated sum of squares of independent, smooth normal signals."""
    rng, rate, seconds = np.random.default_rng(2), 500.0, 4000.0
    kernel = np.exp(-0.5 * (np.arange(-60, 61) / 12.0) ** 2)
    noise = rng.normal(size=(3, int(rate * seconds)))
    x = np.array([np.convolve(row, kernel / np.linalg.norm(kernel), mode="valid") for row in noise])
    bandwidth = float(np.sqrt(np.mean(np.diff(x, axis=1) ** 2))) * rate
    level = gaussian_level(3, bandwidth, 0.05)
    above = np.sum(x ** 2, axis=0) > level
    assert int(np.sum(np.diff(above.astype(int)) == 1)) == pytest.approx(0.05 * seconds, rel=0.25)


def test_the_observed_level_follows_a_heavier_tail() -> None:
    rng = np.random.default_rng(3)
    quiet = rng.exponential(2.0, size=200000)  # of independent rows: rate(u) = rate exp(-u / 2)
    level = observed_level(quiet, 100.0, 0.01, 1.0 / 3600.0)
    assert 2.0 * math.log(100.0 * 3600.0) < level < 1.25 * 2.0 * math.log(100.0 * 3600.0)
    assert observed_level(3.0 * quiet, 100.0, 0.01, 1.0 / 3600.0) == pytest.approx(3.0 * level)
    assert observed_level(quiet[:50], 100.0, 0.01, 1.0) == 0.0


def test_pushes_are_found_on_their_links_within_stated_deviations() -> None:
    pushes = [("link4", (0.0, 30.0, 20.0), 2.0, (3.0, 0.0, 0.0)), ("link6", (25.0, -20.0, 0.0), 5.0, (0.0, 0.0, 3.0)),
              ("link7", (0.0, 0.0, -40.0), 8.0, (2.0, 2.0, 0.0)), ("link5", (-30.0, 0.0, 20.0), 11.0, (0.0, 2.0, 2.0))]
    inside, right, names = [], 0, list(ROBOT.body_names)
    for seed in (5, 6, 7):
        log = recording(seed, [push(link, force, start, start + 1.0, moment) for link, force, start, moment in pushes])
        found = find_contacts(outside(), log)
        assert len(found.contacts) == len(pushes)
        for one, (link, force, start, moment) in zip(found.contacts, pushes, strict=True):
            assert abs(one.start - start) < 0.03 and abs(one.stop - start - 1.0) < 0.05
            assert one.alarm - start < 0.06  # at 250 Hz the window holds nine samples
            # A weight that is pushed down for a second may as well hang there.
            assert one.finding.code == "contact-push" or force[:2] == (0.0, 0.0)
            assert one.finding.code in ("contact-push", "contact-or-payload")
            right += one.link == link
            rows = found.rows.rows(np.flatnonzero((found.rows.t > start + 0.1) & (found.rows.t < start + 0.9)))
            wrench, spread = outside().at_frame(rows, link)
            std = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
            inside.append(np.mean(np.abs(wrench - [*force, *moment]) < 2.0 * std, axis=0))
            # A link below is named only where the joints between hardly feel the push.
            torque = dynamics.wrench_torques(ROBOT, [Wrench(link, [*force, *moment])], rows.torques.q)
            units = np.abs(torque / np.sqrt(np.diagonal(rows.torque_covariance, axis1=1, axis2=2))).mean(axis=0)
            assert names.index(one.link) <= names.index(link)
            assert np.all(units[names.index(one.link) + 1:names.index(link) + 1] < 4.0)
    assert right >= 8
    assert np.mean(inside, axis=0).min() > 0.9


def test_free_motion_raises_no_alarm_and_deviations_are_those_of_the_noise() -> None:
    for seed in (8, 9):
        found = find_contacts(outside(), recording(seed))
        assert not found.contacts
        assert [one.code for one in found.findings] == ["free-motion-short"]
        assert np.mean(found.rows.statistic) == pytest.approx(7.0, rel=0.35)


def test_one_sample_at_a_time_gives_what_a_block_gives() -> None:
    log = recording(5, [push("tool", (40.0, 0.0, 0.0), 0.5, 1.0)])
    stream, whole = outside().fresh(), outside().fresh()
    rows = [stream.feed(log.t[k], log.q[k], log.tau[k]) for k in range(300)]
    block = whole.feed(log.t[:300], log.q[:300], log.tau[:300])
    assert np.concatenate([one.wrench for one in rows]) == pytest.approx(block.wrench, rel=1e-9, abs=1e-9)
    assert np.array_equal(np.concatenate([one.touched for one in rows]), block.touched)
    assert block.touched.any() and stream.delay == whole.delay


def test_a_payload_moves_with_the_body_and_a_push_does_not() -> None:
    carried = find_contacts(outside(), recording(10, theta=arm().loaded(LOAD))).contacts
    longest = max(carried, key=lambda one: one.stop - one.start)
    assert longest.finding.code == "contact-payload"
    assert longest.finding.evidence["mass"] == pytest.approx(4.092, rel=0.02)
    for force, code in (((0.0, 0.0, -40.0), "contact-or-payload"), ((40.0, 0.0, 0.0), "contact-push")):
        pushed = find_contacts(outside(), recording(10, [Wrench("tool", [*force, 0.0, 0.0, 0.0])])).contacts
        longest = max(pushed, key=lambda one: one.stop - one.start)
        assert longest.finding.code == code  # in this slow motion a constant weight is as good as a body


def test_another_frame_and_other_axes_turn_the_same_force() -> None:
    log = recording(5, [push("link7", (0.0, 0.0, -40.0), 4.0, 5.0)])
    base, own = (ExternalWrench(estimate(), "link7", free=outside().free, axes=axes).of_log(log)[0]
                 for axes in (None, "link7"))
    turn = dynamics.frame_pose(ROBOT, "link7", base.torques.q)[:, :3, :3]
    # The prior is the same in all directions, so that axes do not matter.
    assert (turn @ own.wrench[:, :3, None])[:, :, 0] == pytest.approx(base.wrench[:, :3], abs=1e-6)


def test_what_cannot_be_is_said_in_a_sentence() -> None:
    free = recording(2)
    with refused(RobotError, "unknown-frame", "hand"):
        ExternalWrench(estimate(), "hand", free=outside().free)
    with refused(ModelError, "frame-of-the-base"):
        ExternalWrench(estimate(), ROBOT.base, free=outside().free)
    with refused(ModelError, "no-covariance"):
        ExternalWrench(estimate().with_covariance(np.zeros_like(estimate().covariance)), free=free)
    six = replace(free, q=free.q[:, :6], tau=free.tau[:, :6], joints=())
    with refused(ModelError, "other-robot"):
        outside().of_log(six)
    with refused(ModelError, "torque-not-measured", "joint3"):
        outside().of_log(replace(free, unmeasured=("joint3",)))
    with refused(NotPossibleError, "no-free-motion", str(free.source)):
        free_motion(estimate(), replace(free, q=np.zeros_like(free.q)))
    with refused(NotPossibleError, "no-free-motion", "5 s"):
        free_motion(estimate(), free.between(0.0, 2.0))
    with refused(ModelError, "out-of-range", "prior", "wrench", "1e-06", "1e+09 N"):
        ExternalWrench(estimate(), free=outside().free, prior=(0.0, 1.0))
    with refused(ModelError, "unknown-observer", "guess"):
        free_motion(estimate(), free, "guess")
    with refused(NotPossibleError, "log-too-short"):
        outside().of_log(free.between(0.0, 0.03))
    with refused(ModelError, "bad-shape", "(1, 7)"):
        outside().fresh().feed(0.0, np.zeros(6), np.zeros(6))


def test_another_robots_log_is_touched_all_along() -> None:
    other = recording(11, theta=1.3 * arm().theta)
    assert "contact-everywhere" in [one.code for one in find_contacts(outside(), other).findings]
