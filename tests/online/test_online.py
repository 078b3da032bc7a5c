"""Online: the stream's estimate is that of the same data all at once, however they came."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online.streams import Truth, arm, coloured, motion, truth, weighted
from refusals import refused
from robots import random_robot

import dynid
from dynid.consistency import Consistency
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Problem, identify
from dynid.model import Dahl, FrictionCurve, Hysteresis, LuGreFriction, Model, RigidBodies, Term, Viscous
from dynid.online import Online
from dynid.regression import TorqueEquations, base_parameters, fold


@pytest.fixture(scope="module")
def data() -> Truth:
    return truth()


def relative(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def test_a_stream_in_a_few_lines(data: Truth) -> None:
    online = dynid.Online(data.model)
    for q, dq, ddq, tau in zip(*data.signals, strict=True):
        online.update(q, dq, ddq, tau)
    estimate = online.estimate()
    assert online.samples == 1500 and online.restarts == ()
    assert relative(estimate.values, dynid.identify(data.model, data.samples, "wls").values) < 1e-10
    assert relative(online.values, estimate.values) < 1e-12
    assert np.all(np.abs(estimate.values - data.beta) < 5 * estimate.std)
    assert all(one.status == "identified" for one in online.verdict())
    assert np.abs(online.residual(*data.signals)).max() < 6 * 0.3
    assert "Online by rls: 1500 samples" in repr(online)


def test_more_joints_than_are_rotated_at_a_time() -> None:
    model = Model(random_robot(np.random.default_rng(4), 10), (RigidBodies(), Viscous()))
    base, rng = base_parameters(model), np.random.default_rng(5)
    q, dq, ddq = motion(400, 10, seed=3)
    tau = model.inverse_dynamics(rng.normal(size=len(model.parameters)), q, dq, ddq) + rng.normal(size=q.shape)
    rows = model.regressor(q, dq, ddq)[:, :, base.independent]
    wanted, *_ = np.linalg.lstsq(rows.reshape(-1, len(base)), tau.reshape(-1), rcond=None)
    singly, at_once = (Online(model, forgetting=None, noise=1.0, base=base) for _ in range(2))
    at_once.update(q, dq, ddq, tau)
    for sample in zip(q, dq, ddq, tau, strict=True):
        singly.update(*sample)
    assert relative(at_once.values, wanted) < 1e-9 and relative(singly.values, wanted) < 1e-9


def test_blocks_joined_in_steps_hold_all_that_came() -> None:
    data = truth(3000)
    singly, at_once = Online(data.model, noise=0.3), Online(data.model, noise=0.3)
    at_once.update(*data.signals)
    for sample in zip(*data.signals, strict=True):
        singly.update(*sample)
    for online in (singly, at_once):
        found = online._stream.recursion.regression()
        whole = fold(TorqueEquations.from_model(data.model, data.samples, data.base))
        assert 16 < len(found.blocks) <= 33 and found.rows == whole.rows
        for one, two in zip(found.factors, whole.factors, strict=True):
            assert relative(one.r.T @ one.r, two.r.T @ two.r) < 1e-12 and one.power == pytest.approx(two.power)
    assert np.allclose(singly.estimate().std, at_once.estimate().std, rtol=1e-9)


def test_a_copy_goes_on_by_itself() -> None:
    data = truth(200)
    online = Online(data.model, noise=0.3)
    for sample in zip(*data.part(slice(0, 130)), strict=True):  # in the middle of the steps after a chunk
        online.update(*sample)
    other = copy.deepcopy(online)
    for one in (online, other):
        for sample in zip(*data.part(slice(130, None)), strict=True):
            one.update(*sample)
    assert np.array_equal(online.values, other.values)
    assert np.allclose(online.estimate().std, other.estimate().std, rtol=1e-12)


@pytest.mark.parametrize("method", ["rls", "cls", "s-rls"])
def test_equals_batch_least_squares_with_the_same_prior(data: Truth, method: str) -> None:
    online = Online(data.model, method, prior=(0.0, 10.0), forgetting=None, noise=1.0)  # P0 = 1e2
    online.update(*data.signals)
    assert relative(online.values, weighted(data, np.ones(1500), prior=10.0)) < 1e-11
    offline = dynid.identify(data.model, data.samples, method, prior_std=10.0, noise=1.0)
    assert relative(offline.values, online.values) < 1e-11
    without = Online(data.model, method, forgetting=None, noise=1.0)
    without.update(*data.signals)
    assert relative(without.values, dynid.identify(data.model, data.samples, "ols").values) < 1e-11
    assert relative(dynid.identify(data.model, data.samples, method).values,
                    dynid.identify(data.model, data.samples, "wls").values) < 1e-10


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 700), max_size=12), forgetting=st.sampled_from([None, 0.995, "prior", "evidence",
                                                                                    "directional:0.99", "bounded"]))
def test_any_split_of_the_stream_gives_the_same(cuts: list[int], forgetting: str | float | None) -> None:
    data = SPLIT
    whole, parts = (Online(data.model, forgetting=forgetting) for _ in range(2))
    whole.update(*data.signals)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 700], strict=True):
        if stop > start:
            parts.update(*data.part(slice(start, stop)))
    assert relative(parts.values, whole.values) < 1e-8
    a, b = whole.estimate(), parts.estimate()
    assert np.allclose(a.std, b.std, rtol=1e-6) and a.cov_type == b.cov_type


SPLIT = truth(700)


def test_a_change_of_load_restarts_and_is_followed() -> None:
    data = truth(4000, noise=0.5, pole=0.9)
    extra = np.zeros(len(data.model.parameters))
    extra[[data.model.parameters.index(name) for name in ("M3", "MX3")]] = 1.0, 0.3
    tau = data.tau.copy()
    tau[2000:] += data.model.inverse_dynamics(extra, *(x[2000:] for x in data.signals[:3]))
    wanted = data.beta + data.base.reduce(extra)
    default, stubborn = Online(data.model), Online(data.model, forgetting=None)
    for online in (default, stubborn):
        online.update(*data.signals[:3], tau)
    assert default.restarts and 2000 < default.restarts[0] < 2200
    errors = [np.sqrt(np.mean((data.rows[2000:] @ (online.values - wanted)) ** 2)) for online in (default, stubborn)]
    assert errors[0] < 0.25 and errors[1] > 1.0
    estimate = default.estimate()
    assert np.mean(np.abs(estimate.values - wanted) < 3.0 * estimate.std) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", ["prior", "evidence"])
@pytest.mark.parametrize("pole", [0.0, 0.9])
def test_stated_intervals_hold_the_truth(forgetting: str, pole: float) -> None:
    model = arm()
    base, theta = base_parameters(model), np.random.default_rng(11).normal(size=len(model.parameters))
    beta, held = base.reduce(theta), np.zeros((2, 100))
    for k in range(100):
        q, dq, ddq = motion(3000, 3, seed=1000 + k)
        noise = coloured(3000, 3, np.random.default_rng(k), pole=pole, size=0.5)
        tau, online = model.inverse_dynamics(theta, q, dq, ddq) + noise, Online(model, forgetting=forgetting, base=base)
        for half, part in enumerate((slice(0, 1500), slice(1500, 3000))):
            online.update(q[part], dq[part], ddq[part], tau[part])
            low, high = online.estimate().conf_int().T
            held[half, k] = np.mean((low <= beta) & (beta <= high))
    assert np.all((held.mean(axis=1) > 0.90) & (held.mean(axis=1) < 0.98))


def test_instruments_in_any_order_are_batch_instrumental_variables(data: Truth) -> None:
    rng, b = np.random.default_rng(5), len(data.base)
    noisy = (data.q + 1e-3 * rng.normal(size=data.q.shape), data.dq + 0.05 * rng.normal(size=data.q.shape),
             data.ddq + 1.0 * rng.normal(size=data.q.shape))
    z, y = data.rows.reshape(-1, b), data.model.regressor(*noisy)[:, :, data.base.independent].reshape(-1, b)
    expected = np.linalg.solve(z.T @ y, z.T @ data.tau.reshape(-1))
    for method in ("riv", "civ"):
        online = Online(data.model, method, forgetting=None)
        for k in range(0, 1500, 333):
            part = slice(k, k + 333)
            online.update(*(x[part] for x in noisy), data.tau[part], (data.q[part], data.dq[part], data.ddq[part]))
        assert relative(online.values, expected) < 1e-8
        estimate = online.estimate()
        assert np.all(np.abs(estimate.values - data.beta) < 5 * estimate.std)
    prior = Online(data.model, "riv", prior=(0.0, 10.0), forgetting=None)
    prior.update(*noisy, data.tau, (data.q, data.dq, data.ddq))
    assert relative(prior.values, np.linalg.solve(z.T @ y + np.eye(b) / 100.0, z.T @ data.tau.reshape(-1))) < 1e-8


def test_instruments_that_do_not_follow_the_motion_are_refused(data: Truth) -> None:
    online = Online(data.model, "riv", forgetting=None)
    online.update(*data.signals, motion(1500, 3, seed=99))
    with pytest.raises(NotPossibleError) as refusal:
        online.estimate()
    assert refusal.value.code == "instruments-too-weak"
    with refused(ModelError, "no-reference"):
        Online(data.model, "civ", forgetting=None).update(*data.signals)


def test_mrls_is_least_squares_on_what_is_kept(data: Truth) -> None:
    online = Online(data.model, "mrls", prior=(0.5, 1.0), forgetting=None, noise=1.0)
    still = [x.copy() for x in data.signals]
    for k, x in enumerate(still):  # first only the last joint moves
        if k < 3:
            x[:400, :2] = 0.0
    for block in range(0, 1500, 100):
        online.update(*(x[block:block + 100] for x in still))
        kept = np.array([one.status == "identified" for one in online.verdict()])
        y = data.model.regressor(*(x[:block + 100] for x in still[:3]))[:, :, data.base.independent]
        y, rest = y.reshape(-1, len(kept)), still[3][:block + 100].reshape(-1)
        size = np.linalg.norm(y[:, kept], axis=0)
        expected = np.full(len(kept), 0.5)
        expected[kept] = np.linalg.lstsq(y[:, kept] / size, rest - y[:, ~kept] @ expected[~kept], rcond=None)[0] / size
        assert relative(online.values, expected) < 1e-8
        if block == 0:
            assert {one.status for one in online.verdict()} == {"identified", "dependent", "not-excited"}
    assert kept.all()


def test_mrls_limits_go_from_standard_to_base_parameters(data: Truth) -> None:
    limits = {name: (-0.1, 0.1) for name in data.model.parameters.names}
    online = Online(data.model, "mrls", forgetting=None, limits=limits)
    online.update(*data.signals)
    reach = 0.1 * np.abs(data.base.matrix).sum(axis=1)
    assert np.all(np.abs(online.values) <= reach + 1e-12) and np.any(np.isclose(np.abs(online.values), reach))


def test_verdict_names_what_a_parameter_depends_on() -> None:
    data = truth(200)
    online = Online(data.model, forgetting=None)
    assert all(one.status == "not-excited" for one in online.verdict())
    q = np.tile(data.q[0], (50, 1))
    online.update(q, 0 * q, 0 * q, np.tile(data.tau[0], (50, 1)))  # at rest: gravity and offset look alike
    found = {one.name: one for one in online.verdict()}
    assert found["Fv1"].status == found["Fc2"].status == "not-excited"
    assert found["Fo1"].status == "identified"  # no other column shows in the torque about the vertical
    assert found["Fo3"].status == "dependent" and "MX3R" in found["Fo3"].others


@pytest.mark.parametrize("forgetting", ["prior", "evidence", "directional", "exponential:0.999", "vector", "variable",
                                        "bounded", "none"])
def test_state_saves_and_resumes(data: Truth, tmp_path: Path, forgetting: str) -> None:
    through = Online(data.model, prior=(0.0, 100.0), forgetting=forgetting, slow=0.01, robust=3.0)
    first = Online(data.model, prior=(0.0, 100.0), forgetting=forgetting, slow=0.01, robust=3.0)
    through.update(*data.signals)
    first.update(*data.part(slice(0, 801)))
    first.save(tmp_path / "stream.npz")
    again = Online.load(tmp_path / "stream.npz", data.model)
    again.update(*data.part(slice(801, None)))
    assert relative(again.values, through.values) < 1e-9
    assert np.allclose(again.estimate().std, through.estimate().std, rtol=1e-7)
    assert again.samples == 1500 and again.restarts == through.restarts
    with refused(ModelError, "bad-model", "stream.npz", "39", "26"):
        Online.load(tmp_path / "stream.npz", truth(10, name="scara2").model)
    (tmp_path / "bad.npz").write_bytes((tmp_path / "stream.npz").read_bytes()[:500])
    with refused(RecordingError, "bad-recording", "bad.npz"):
        Online.load(tmp_path / "bad.npz", data.model)


def test_bad_samples_are_named_and_leave_the_estimate_as_it_was(data: Truth) -> None:
    online = Online(data.model)
    online.update(*data.part(slice(0, 500)))
    before = online.values
    q, dq, ddq, tau = (x.copy() for x in data.part(slice(500, 510)))
    tau[3, 1] = np.nan
    with refused(ModelError, "bad-model", "tau", "'joint2'", "sample 3"):
        online.update(q, dq, ddq, tau)
    with refused(ModelError, "bad-model", "dq", "'joint2'"):
        online.update(q[0], np.array([0.0, np.inf, 0.0]), ddq[0], tau[0])
    with refused(ModelError, "bad-model", "(4,)"):
        online.update(np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4))
    with refused(ModelError, "lengths-differ"):
        online.update(q, dq[:3], ddq, tau)
    assert np.array_equal(online.values, before) and online.samples == 500


def test_what_is_known_comes_as_a_prior(data: Truth) -> None:
    exact = Online(data.model, prior={"Fc1": float(data.beta[data.base.names.index("Fc1")])}, forgetting=None,
                   noise=1.0)
    exact.update(*data.signals)
    assert "Fc1" not in exact.base.names
    expected = dynid.identify(data.model, data.samples, "ols", known=exact.base.known)
    assert relative(exact.values, expected.values) < 1e-10
    one = np.array([exact.predict(*(x[k] for x in data.signals[:3])) for k in range(3)])
    assert np.allclose(one, expected.predict(*(x[:3] for x in data.signals[:3])))
    first = Online(data.model, forgetting=None, noise=0.3)
    first.update(*data.part(slice(0, 700)))
    later = Online(data.model, prior=first.estimate(), forgetting=None)
    later.update(*data.part(slice(700, None)))
    whole = Online(data.model, forgetting=None)
    whole.update(*data.signals)
    assert np.all(np.abs(later.values - whole.values) < 1.0 * first.estimate().std)


def test_outliers_count_less_on_request(data: Truth) -> None:
    rng, tau = np.random.default_rng(3), data.tau.copy()
    tau[(rng.random(tau.shape) < 0.03) & (np.arange(1500)[:, None] > 300)] += 30.0  # the first rows cannot be judged
    plain, robust = Online(data.model, forgetting=None), Online(data.model, forgetting=None, robust=2.0)
    for online in (plain, robust):
        online.update(*data.signals[:3], tau)
    far = [np.linalg.norm(data.rows @ (online.values - data.beta)) for online in (plain, robust)]
    assert far[1] < 0.3 * far[0]


def test_rows_that_add_little_are_left_out(data: Truth) -> None:
    every, few = (Online(data.model, prior=(0.0, 10.0), forgetting=None, noise=0.3, adds=adds) for adds in (0.0, 0.02))
    for online in (every, few):
        online.update(*data.signals)
    rows = [sum(online.estimate().diagnostics.rows_per_joint) for online in (every, few)]
    assert rows[0] == 4500 and rows[1] < 2000
    p, count = 100.0 * np.eye(len(data.base)), 0  # the same choice in covariance form
    for y in data.rows:
        for x in y[::-1] / 0.3:
            if x @ p @ x >= 0.02:
                p, count = p - np.outer(p @ x, p @ x) / (1.0 + x @ p @ x), count + 1
    assert abs(count - rows[1]) <= 3
    far = [np.linalg.norm(data.rows @ (online.values - data.beta)) for online in (every, few)]
    assert far[1] < 2.5 * far[0]


def test_a_model_of_ones_own_and_lists_of_numbers_are_welcome() -> None:
    model = dynid.terms.Scara()
    q, dq, ddq = motion(400, 2)
    theta = np.arange(1.0, 1.0 + len(model.parameters))
    tau = model.regressor(q, dq, ddq) @ theta
    online = Online(model)
    for k in range(200):
        online.update(q[k].tolist(), dq[k].tolist(), ddq[k].tolist(), tau[k].tolist())
    online.update(q[200:], dq[200:], ddq[200:], tau[200:])
    assert relative(online.predict(q, dq, ddq), tau) < 1e-9
    for method in ("riv", "s-rls", "s-rls-b", "line-by-line"):  # by default these forget nothing
        assert "forgetting none" in repr(Online(model, method))


def test_repeated_changes_keep_deviations_below_what_was_given() -> None:
    data = truth(6000, noise=0.5)
    tau, extra = data.tau.copy(), np.zeros(len(data.model.parameters))
    extra[data.model.parameters.index("MX3")] = 2.0
    torque = data.model.inverse_dynamics(extra, *data.signals[:3])
    for k in range(1000, 6000, 1000):
        tau[k:] += (1.0 if (k // 1000) % 2 else -1.0) * torque[k:]
    online = Online(data.model, prior=(0.0, 5.0), noise=0.5)
    online.update(*data.signals[:3], tau)
    assert len(online.restarts) >= 5
    estimate = online.estimate()
    assert np.all(estimate.std < 5.0) and relative(online.values, estimate.values) < 1e-10


def test_slow_joints_are_left_out(data: Truth) -> None:
    online = Online(data.model, forgetting=None, slow=0.5, noise=1.0)
    online.update(*data.signals)
    keep = np.abs(data.dq) >= 0.5
    y = data.rows[keep]
    size = np.linalg.norm(y, axis=0)
    assert relative(online.values, np.linalg.lstsq(y / size, data.tau[keep], rcond=None)[0] / size) < 1e-10


def test_the_nearest_robot_that_can_exist_comes_from_a_thread_of_its_own() -> None:
    model = arm()
    theta = model.parameters.nominal
    assert theta is not None
    q, dq, ddq = motion(1500, 3)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    online = Online(model, forgetting=None)
    online.update(q[:750], dq[:750], ddq[:750], tau[:750])
    found = online.consistent()
    online.update(q[750:], dq[750:], ddq[750:], tau[750:])  # goes on meanwhile
    estimate = found.result(timeout=60)
    assert estimate.theta is not None and not Consistency(model.parameters).violations(estimate.theta)
    half = dynid.Samples.from_arrays(q[:750], dq[:750], ddq[:750], tau[:750], rate=100.0)
    batch = dynid.identify(model, half, "pc-wls")
    assert np.allclose(estimate.values, batch.values, atol=0.1 * np.abs(batch.values).max(), rtol=0.05)
    with refused(ModelError, "bad-model", "'riv'", "'rls'"):
        Online(model, "riv", forgetting=None).consistent()


def test_the_ridge_of_a_friction_curve_counts_as_in_weighted_least_squares() -> None:
    """Parameters with a ridge have the values that `wls` gives them on the same rows."""
    model = Model(dynid.Robot.builtin("arm3r"), (RigidBodies(), FrictionCurve()))
    q, dq, ddq = motion(1500, 3)
    rng = np.random.default_rng(4)
    tau = model.inverse_dynamics(np.abs(rng.normal(size=len(model.parameters))), q, dq, ddq)
    tau += 0.3 * rng.normal(size=q.shape)
    problem = Problem.from_model(model, dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0))
    assert np.any(problem.base.ridge > 0.0)
    batch = identify(problem, method="wls")
    online = Online(problem.model, base=problem.base, forgetting=None, slow=0.0)
    online.update(q, dq, ddq, tau)
    found = online.estimate()
    assert relative(found.values, batch.values) < 1e-3


@pytest.mark.parametrize("term", [Hysteresis(radii=(0.02, 0.3), unit="rad"), Dahl(reach=0.1),
                                  LuGreFriction(reach=0.1, ratio=1.5, vs=0.3)], ids=lambda term: term.kind)
def test_a_stream_has_the_memory_of_the_whole_log(term: Term, tmp_path: Path) -> None:
    """Sample by sample, in blocks, after a pause at rest, and resumed from a file: the equations are those at once."""
    model = Model(arm().robot, (RigidBodies(), term))
    q, dq, ddq = motion(300, 3, seed=3)
    q[120:160], dq[120:160], ddq[120:160] = q[120], 0.0, 0.0
    tau = np.random.default_rng(0).normal(size=q.shape)
    base = base_parameters(model)
    samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    used = samples.keep.copy()
    used[145:160] = False  # a robot at rest for more than 25 samples
    whole = fold(TorqueEquations.from_model(model, dataclasses.replace(samples, keep=used), base))
    singly, in_blocks = (Online(model, forgetting=None, noise=1.0, base=base) for _ in range(2))
    for sample in zip(q, dq, ddq, tau, strict=True):
        singly.update(*sample)
    for start, stop in ((0, 50), (50, 130), (130, 300)):
        in_blocks.update(q[start:stop], dq[start:stop], ddq[start:stop], tau[start:stop])
        in_blocks.save(tmp_path / "stream.npz")
        in_blocks = Online.load(tmp_path / "stream.npz", model)
    for online in (singly, in_blocks):
        found = online._stream.recursion.regression()
        for ours, theirs in zip(found.factors, whole.factors, strict=True):
            assert relative(ours.r.T @ ours.r, theirs.r.T @ theirs.r) < 1e-10
