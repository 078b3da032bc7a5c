"""feed: raw positions and torques, prepared as they come; streams with faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from online.streams import Truth, coloured, motion, truth
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.online import FeedOptions, Online
from dynid.online.causal import CausalFilter, CausalRows, derivative_kernels, low_pass_kernel
from dynid.recording import Recording
from dynid.recording.preparation.row_filter import KernelOptions, RowFilter
from dynid.recording.sample_preparation import prepare

RATE = 200.0
KNOWN = FeedOptions(cutoff=8.0, rate=RATE)


@pytest.fixture(scope="module")
def raw() -> tuple[Truth, np.ndarray]:
    """A stream of 30 s at 200 Hz: encoder steps, torque noise, stamps that jitter."""
    data = truth(10)
    rng, count = np.random.default_rng(4), 6000
    t = np.arange(count) / RATE + rng.uniform(-2e-4, 2e-4, count)
    q, dq, ddq = (np.column_stack([np.interp(t, np.arange(count + 1) / RATE, x) for x in signal.T])
                  for signal in motion(count + 1, 3, rate=RATE))
    theta = data.base.expand(data.beta)
    tau = data.model.inverse_dynamics(theta, q, dq, ddq) + coloured(count, 3, rng, size=0.5)
    return Truth(data.model, data.base, data.beta, np.round(q / 1e-5) * 1e-5, dq, ddq, tau), t


def feed(online: Online, data: Truth, t: np.ndarray, rows: slice = slice(None)) -> None:
    online.feed(t[rows], data.q[rows], data.tau[rows])


def error(online: Online, data: Truth) -> float:
    """Relative error of the torques along the true motion, percent."""
    off = data.rows @ (online.values - data.beta)
    return float(100 * np.linalg.norm(off) / np.linalg.norm(data.rows @ data.beta))


def test_raw_samples_give_the_truth_with_a_delay_that_is_stated(raw: tuple[Truth, np.ndarray]) -> None:
    data, t = raw
    online = Online(data.model)
    feed(online, data, t)
    rate, cutoff = online.filter
    assert abs(rate - RATE) < 1.0 and 2.0 < cutoff < 40.0
    assert online.delay == pytest.approx(2 * 1.25 / cutoff, rel=0.1)
    assert error(online, data) < 0.5 and online.events == () and online.restarts == ()
    estimate = online.estimate()
    assert np.mean(np.abs(estimate.values - data.beta) < 3 * estimate.std) > 0.9


def test_kernels_differentiate_what_they_let_through() -> None:
    kernels = derivative_kernels(low_pass_kernel(8.0, RATE), RATE)
    t = (np.arange(len(kernels[0])) - len(kernels[0]) // 2) / RATE
    for frequency in (0.2, 1.0, 3.0):
        w = 2 * np.pi * frequency
        wave = np.sin(w * t + 0.3)
        found = [wave @ kernel[::-1] for kernel in kernels]
        assert found == pytest.approx([np.sin(0.3), w * np.cos(0.3), -w * w * np.sin(0.3)], rel=2e-3)
    assert abs(np.sin(2 * np.pi * 20.0 * t + 1.0) @ kernels[0]) < 5e-3


@pytest.mark.parametrize(("cutoff", "rate"), [(4.0, 1000.0), (8.0, RATE), (20.0, 125.0)])
def test_the_gain_of_a_low_pass_is_flat_in_the_band_of_the_motion(cutoff: float, rate: float) -> None:
    """The positions of a motion pass the filter once: its gain biases inertias, the square of a frequency each."""
    kernel = low_pass_kernel(cutoff, rate)
    lags = (np.arange(len(kernel)) - len(kernel) // 2) / rate
    gains = [kernel @ np.cos(2.0 * np.pi * share * cutoff * lags) for share in (0.02, 0.05, 0.1, 0.2, 0.3)]
    assert gains == pytest.approx([1.0] * 5, abs=5e-4)


@pytest.fixture(scope="module")
def whole(raw: tuple[Truth, np.ndarray]) -> Online:
    """The estimator after the first 2500 samples in one call."""
    data, t = raw
    online = Online(data.model, forgetting=None, feeding=KNOWN)
    feed(online, data, t, slice(0, 2500))
    return online


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 2500), max_size=8))
def test_any_split_gives_the_same(raw: tuple[Truth, np.ndarray], whole: Online, cuts: list[int]) -> None:
    data, t = raw
    parts = Online(data.model, forgetting=None, feeding=KNOWN)
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 2500], strict=True):
        feed(parts, data, t, slice(start, stop))
    assert whole.samples == parts.samples
    assert np.allclose(whole.values, parts.values, rtol=1e-6, atol=1e-8)


def one_by_one(data: Truth, t: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    yield from zip(t, data.q, data.tau, strict=True)


@pytest.fixture(scope="module")
def clean(raw: tuple[Truth, np.ndarray]) -> Online:
    """The estimator after the whole stream, which has no fault."""
    data, t = raw
    online = Online(data.model, feeding=KNOWN)
    feed(online, data, t)
    return online


@pytest.mark.parametrize("fault", ["gap", "pause", "repeated-stamp", "backward-stamp", "clock-restarted", "not-finite",
                                   "stuck-encoder"])
def test_a_fault_is_named_and_the_estimate_stands(raw: tuple[Truth, np.ndarray], clean: Online, fault: str) -> None:
    data, t = raw
    t, q, tau = t.copy(), data.q.copy(), data.tau.copy()
    rows = np.arange(6000)
    if fault == "gap":
        rows = np.delete(rows, np.arange(3000, 3100))
    elif fault == "pause":
        t[3000:] += 3600.0
    elif fault == "repeated-stamp":
        t[3000] = t[2999]
    elif fault == "backward-stamp":
        t[3000] = t[2999] - 0.5
    elif fault == "clock-restarted":
        t[3000:] -= t[3000]
    elif fault == "not-finite":
        q[3000, 1], tau[3010, 2] = np.nan, np.inf
    else:
        moving = 2500 + int(np.argmax(np.abs(data.dq[2500:3500, 0])))
        q[moving:moving + 300, 0] = q[moving, 0]
    online = Online(data.model, feeding=KNOWN)
    for part in (rows[:2400], *rows[2400:4000], rows[4000:]):  # one by one around the fault
        online.feed(t[part], q[part], tau[part])
    assert {one.code for one in online.events} == {fault}
    assert error(online, data) < max(2.0 * error(clean, data), 0.5) and online.restarts == ()
    assert online.samples > 0.75 * clean.samples


def test_a_joint_that_comes_to_rest_is_not_stuck(raw: tuple[Truth, np.ndarray]) -> None:
    data, _ = raw
    t = np.arange(1000) / RATE
    stop = np.clip(t, 0.0, 2.0)
    q = np.tile((0.5 * stop - 0.125 * stop ** 2)[:, None], (1, 3))  # slows down evenly, stands from 2 s on
    online = Online(data.model, feeding=KNOWN)
    online.feed(t, np.round(q / 1e-5) * 1e-5, np.ones((1000, 3)))
    assert online.events == ()


def test_what_does_not_fit_is_refused(raw: tuple[Truth, np.ndarray]) -> None:
    data, t = raw
    online = Online(data.model, feeding=KNOWN)
    feed(online, data, t, slice(0, 2000))
    before = online.values
    with refused(ModelError, "bad-shape"):
        online.feed(t[2000], np.zeros(4), np.zeros(4))
    with refused(ModelError, "bad-shape"):
        online.feed(t[2000:2002], data.q[2000:2003], data.tau[2000:2003])
    with refused(ModelError, "no-reference"):
        Online(data.model, "riv", forgetting=None).feed(t[0], data.q[0], data.tau[0])
    with refused(ModelError, "out-of-range", "cutoff", "-1.0"):
        FeedOptions(cutoff=-1.0)
    with refused(ModelError, "cutoff-above-rate"):
        FeedOptions(cutoff=90.0, rate=100.0)
    assert np.array_equal(online.values, before)


def test_a_short_stream_is_prepared_when_it_ends(raw: tuple[Truth, np.ndarray]) -> None:
    data, t = raw
    online = Online(data.model)
    feed(online, data, t, slice(0, 700))
    assert online.samples == 0 and np.isnan(online.delay)
    assert online.finish() == online.samples > 20


@pytest.mark.parametrize("window", [0.05, 0.2])
@pytest.mark.parametrize("order", [0, 1])
def test_the_stated_delay_of_kernels_is_the_measured_one(window: float, order: int) -> None:
    """A torque that grows evenly comes out as it was `delay` seconds before the sample that completes its row, and at
    the row's own time, of kernels and of the low-passes of the default."""
    rate, slope = 1000.0, 3.0
    t, late = np.arange(2000) / rate, []
    options = KernelOptions(order=order)
    row_filter = RowFilter.from_options("kernel", window, options, rate, len(t), 10)

    def forces(q: np.ndarray, dq: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((1, len(tau))), np.ascontiguousarray(tau.T)

    def whole(q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray]:
        return (np.ascontiguousarray(tau.T),)

    for rows in (CausalRows(forces, CausalFilter.momentum(row_filter), 0.0, np.zeros(1)),
                 CausalRows(whole, CausalFilter.low_pass(row_filter.cutoff, rate), 0.0, np.zeros(1))):
        for k, at in enumerate(t):
            found = rows.push(t[k:k + 1], np.array([[np.sin(at)]]), np.array([[slope * at]]))
            if found is not None:
                late.append((at - found.entries[0, -1] / slope, rows.filter.delay))
                np.testing.assert_allclose(found.t, found.entries[0] / slope, atol=1e-9)
    measured, stated = np.array(late).T
    np.testing.assert_allclose(measured, stated, atol=1e-9)
    assert len({round(one, 9) for one in stated}) == 2


def test_kernels_feed_without_accelerations_and_state_their_delay(raw: tuple[Truth, np.ndarray]) -> None:
    data, t = raw
    online = Online(data.model, feeding=FeedOptions(cutoff=8.0, rate=RATE, equations="kernel"))
    feed(online, data, t)
    window = 1.605 / 8.0  # s: N = 1 and alpha = beta = 3 have gain 1/2 at 1.605 / T
    # A third of the window and half of the motion's, as far as whole samples allow: a third of what low-passes take.
    assert online.delay == pytest.approx(window / 3 + 0.2 * window, abs=2 / RATE)
    assert online.delay < 0.4 * 2 * 1.25 / 8.0
    assert error(online, data) < 0.5 and online.events == () and online.restarts == ()
    estimate = online.estimate()
    assert np.mean(np.abs(estimate.values - data.beta) < 3 * estimate.std) > 0.9


@pytest.mark.parametrize("cuts", [(1, 2, 700), (1234,), tuple(range(0, 2500, 90))])
def test_rows_of_kernels_do_not_depend_on_how_a_stream_is_cut(raw: tuple[Truth, np.ndarray], cuts: tuple[int, ...]
                                                              ) -> None:
    data, t = raw
    known = FeedOptions(rate=RATE, equations="kernel", kernel_window=0.2, suppress=(50.0,))
    whole, parts = (Online(data.model, forgetting=None, feeding=known) for _ in range(2))
    feed(whole, data, t, slice(0, 2500))
    for start, stop in zip([0, *cuts], [*cuts, 2500], strict=True):
        feed(parts, data, t, slice(start, stop))
    assert whole.samples == parts.samples > 50
    assert np.allclose(whole.values, parts.values, rtol=1e-6, atol=1e-8)


def test_rows_of_kernels_are_those_of_a_log(raw: tuple[Truth, np.ndarray]) -> None:
    """At exact stamps, feeding and preparing give the same estimate: the filters are the same ones."""
    data, _ = raw
    t = np.arange(len(data.q)) / RATE
    online = Online(data.model, forgetting=None, noise=1.0, slow=0.0, base=data.base,
                    feeding=FeedOptions(rate=RATE, equations="kernel", kernel_window=0.2))
    online.feed(t, data.q, data.tau)
    samples = prepare(Recording(t=t, q=data.q, tau=data.tau), equations="kernel", kernel_window=0.2, slow=0.0,
                      rate=RATE, border=0.0)
    batch = identify(Problem.from_model(data.model, samples, base=data.base), method="ols")
    scale = np.abs(batch.values).max()
    assert np.abs(online.values - batch.values).max() < 2e-3 * scale


def test_a_stream_of_kernels_is_kept(raw: tuple[Truth, np.ndarray], tmp_path: Path) -> None:
    data, t = raw
    online = Online(data.model, feeding=FeedOptions(cutoff=8.0, rate=RATE, equations="kernel", kernel_order=0))
    feed(online, data, t, slice(0, 3000))
    online.save(tmp_path / "stream.npz")
    again = Online.load(tmp_path / "stream.npz", data.model)
    assert again.facts()["feeding"] == online.facts()["feeding"]
    with refused(ModelError, "equations-not-supported", "'torque'", "'kernel'"):
        FeedOptions(equations="power")
