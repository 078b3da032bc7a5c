"""riv and civ from raw samples with commanded positions: against the printed recursion on rows made with numpy alone,
against the truth where positions are noisy, and from every kind of source."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import Truth, commanded
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.online import FeedOptions, Online
from dynid.online.causal import derivative_kernels, low_pass_kernel
from dynid.online.sources import parsed

RATE, CUTOFF = 200.0, 20.0
WIDE = FeedOptions(cutoff=CUTOFF, rate=RATE, step=5)


@pytest.fixture(scope="module")
def noisy() -> tuple[Truth, Array, Array]:
    return commanded(rate=RATE)


def filtered(x: Array, kernel: Array) -> Array:
    """A kernel over the columns of x (samples, columns), only where it is whole."""
    return np.column_stack([np.convolve(column, kernel, mode="valid") for column in x.T])


def printed_civ(data: Truth, reference: Array, deviation: float) -> Array:
    """Base values (base,) by eq. 4.7 to 4.9 of Ardiani on rows that are filtered and decimated as those of `feed`."""
    low = low_pass_kernel(CUTOFF, RATE)
    kernels = derivative_kernels(low, RATE)
    late = len(kernels[0]) // 2
    dof, width = data.q.shape[1], len(data.base)
    along = {}
    for name, positions in (("y", data.q), ("z", reference)):
        rows = data.model.regressor(*(filtered(positions, k) for k in kernels))[..., data.base.independent]
        along[name] = filtered(rows.reshape(len(rows), -1), low)[::5].reshape(-1, dof, width)
    torques = filtered(data.tau[late:len(data.tau) - late], low)[::5]
    beta, p = np.zeros(width), deviation ** 2 * np.eye(width)
    for y, z, tau in zip(along["y"], along["z"], torques, strict=True):
        for j in range(dof - 1, -1, -1):
            gain = p @ z[j] / (1.0 + y[j] @ p @ z[j])
            beta = beta + gain * (tau[j] - y[j] @ beta)
            p = p - np.outer(gain, y[j] @ p)
    return beta


@pytest.mark.parametrize("method", ["riv", "civ"])
def test_fed_samples_give_the_printed_recursion(noisy: tuple[Truth, Array, Array], method: str) -> None:
    data, t, reference = noisy
    online = Online(data.model, method, prior=(0.0, 10.0), noise=1.0, slow=0.0, feeding=WIDE)
    for part in (slice(0, 1), slice(1, 3000), slice(3000, 8000)):
        online.feed(t[part], data.q[part], data.tau[part], reference[part])
    expected = printed_civ(data, reference, 10.0)
    assert online.events == () and online.samples > 1500
    assert np.abs(online.values - expected).max() < 1e-8 * np.abs(expected).max()


def test_instruments_are_free_of_the_bias_that_noisy_positions_give(noisy: tuple[Truth, Array, Array]) -> None:
    data, t, reference = noisy
    found = {}
    for method in ("rls", "civ"):
        online = Online(data.model, method, forgetting=None, noise=1.0, feeding=WIDE)
        online.feed(t, data.q, data.tau, reference)
        estimate = online.estimate()
        found[method] = np.abs(estimate.values - data.beta) / estimate.std
    assert np.mean(found["civ"] < 3.0) > 0.9
    assert found["rls"].max() > 2.0 * found["civ"].max()


def test_momentum_rows_with_instruments_find_the_truth(noisy: tuple[Truth, Array, Array]) -> None:
    data, t, reference = noisy
    online = Online(data.model, "civ", noise=1.0, feeding=FeedOptions(cutoff=CUTOFF, rate=RATE, equations="kernel"))
    online.feed(t, data.q, data.tau, reference)
    estimate = online.estimate()
    assert np.mean(np.abs(estimate.values - data.beta) < 3.0 * estimate.std) > 0.9


def test_samples_without_references(noisy: tuple[Truth, Array, Array]) -> None:
    data, t, reference = noisy
    online = Online(data.model, "civ", feeding=WIDE)
    with refused(ModelError, "no-reference"):
        online.feed(t[0], data.q[0], data.tau[0])
    with refused(ModelError, "bad-shape", "(2,)"):
        online.feed(t[0], data.q[0], data.tau[0], reference[0, :2])
    online.feed(t[:500], data.q[:500], data.tau[:500], reference[:500])
    online.feed(t[500], data.q[500], data.tau[500])
    online.feed(t[501:1000], data.q[501:1000], data.tau[501:1000], reference[501:1000])
    (event,) = online.events
    assert event.code == "not-finite" and "commanded position" in event.text
    plain, other = Online(data.model, feeding=WIDE), Online(data.model, feeding=WIDE)
    plain.feed(t[:1000], data.q[:1000], data.tau[:1000])
    other.feed(t[:1000], data.q[:1000], data.tau[:1000], reference[:1000])
    assert np.array_equal(plain.values, other.values)


def test_lines_with_commanded_positions() -> None:
    said: list[str] = []
    for line in ('{"t": 1, "q": [1, 2], "tau": [3, 4], "reference": [5, 6]}', "1, 1, 2, 3, 4, 5, 6"):
        found = parsed(line, 2, said.append)
        assert found is not None and found.reference is not None
        assert found.reference.tolist() == [[5.0, 6.0]] and found.tau.tolist() == [[3.0, 4.0]]
    plain = parsed("1, 1, 2, 3, 4", 2, said.append)
    assert plain is not None and plain.reference is None and said == []
    assert parsed("1, 1, 2, 3, 4, 5", 2, said.append) is None
    assert parsed('{"t": 1, "q": [1, 2], "tau": [3, 4], "reference": [5]}', 2, said.append) is None
    assert len(said) == 2 and "1 commanded positions" in said[0]
