"""Forgetting: once a sample, by equations, and without harm at rest."""

from __future__ import annotations

import numpy as np
import pytest
from online.streams import Truth, coloured, truth, weighted
from refusals import refused

import dynid
from dynid.errors import ModelError
from dynid.estimate.recursive.forgetting import parse_forgetting
from dynid.online import Directional, Exponential, Online, StartUp, VectorForgetting


@pytest.fixture(scope="module")
def data() -> Truth:
    return truth()


def relative(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize(("forgetting", "factors"), [
    (0.999, np.full(1500, 0.999)), (Exponential(0.99), np.full(1500, 0.99)),
    (StartUp(0.999, 0.95, 0.99), 0.999 + (0.95 - 0.999) * 0.99 ** np.arange(1, 1501)),
    ("start-up:0.9995,0.97", 0.9995 + (0.97 - 0.9995) * 0.99 ** np.arange(1, 1501))])
def test_forgetting_is_once_a_sample(data: Truth, forgetting: object, factors: np.ndarray) -> None:
    online = Online(data.model, prior=(0.0, 10.0), forgetting=forgetting, noise=1.0)
    online.update(*data.signals)
    log = np.cumsum(np.log(factors))
    expected = weighted(data, np.exp(log[-1] - log), prior=10.0, prior_weight=float(np.exp(log[-1])))
    assert relative(online.values, expected) < 1e-10
    assert relative(online.estimate().values, expected) < 1e-10


def test_square_root_form_holds_over_sixty_thousand_samples() -> None:
    data = truth(60_000)
    online = Online(data.model, forgetting=0.999, noise=1.0)
    online.update(*data.signals)
    assert relative(online.values, weighted(data, 0.999 ** np.arange(59_999, -1, -1.0))) < 1e-11


def test_vector_forgetting_is_equation_4_12() -> None:
    data = truth(300)
    chosen = {"1": 0.999, "Fc2": 0.99}
    online = Online(data.model, prior=(0.0, 10.0), forgetting=VectorForgetting(chosen, 0.995), noise=1.0)
    online.update(*data.signals)
    b = len(data.base)
    owners = [data.base.parameters.items[c].owner for c in data.base.independent]
    factors = np.array([0.99 if name == "Fc2" else 0.999 if owner == 0 else 0.995
                        for name, owner in zip(data.base.names, owners, strict=True)])
    p, beta = 100.0 * np.eye(b), np.zeros(b)
    for y, tau in zip(data.rows, data.tau, strict=True):
        gain = p @ y.T @ np.linalg.inv(np.eye(len(tau)) + y @ p @ y.T)
        beta, p = beta + gain @ (tau - y @ beta), (p - gain @ y @ p) / np.outer(factors, factors)
    assert relative(online.values, beta) < 1e-8
    text = Online(data.model, prior=(0.0, 10.0), forgetting="vector:0.995,1=0.999,Fc2=0.99", noise=1.0)
    for k in range(300):
        text.update(*(x[k] for x in data.signals))
    assert relative(text.values, beta) < 1e-8


def test_vector_forgetting_without_a_prior_starts_from_the_printed_one() -> None:
    """A stream that begins at rest leaves most directions open; factors of single joints must not spread that."""
    moving = truth(600)
    still = np.repeat(moving.q[:1], 30, axis=0)
    torque = moving.model.inverse_dynamics(moving.base.expand(moving.beta), still, 0 * still, 0 * still)
    signals = [np.concatenate(pair) for pair in zip((still, 0 * still, 0 * still, torque), moving.signals, strict=True)]
    forgetting = "vector:0.9995,1=0.999"
    plain = dynid.identify(moving.model, moving.samples, "wls")
    free, given = (Online(moving.model, forgetting=forgetting, noise=0.3, slow=0.0, **prior)
                   for prior in ({}, {"prior": (0.0, 10.0)}))
    for online in (free, given):
        online.update(*signals)
    assert np.array_equal(free.values, given.values)
    assert np.all(np.abs(free.values - plain.values) < 3.0 * plain.std)


def test_vector_forgetting_as_text() -> None:
    assert parse_forgetting("vector:0.99, 2=0.9, ZZ1R=1") == VectorForgetting({"2": 0.9, "ZZ1R": 1.0}, 0.99)
    assert parse_forgetting("vector:2=0.9") == VectorForgetting({"2": 0.9})
    for text, words in (("vector:0.99,2=fast", ("bad-forgetting-factor", "'vector:0.99,2=fast'")),
                        ("exponential:0.99,2=0.9", ("single-forgetting-factor", "'exponential'")),
                        ("vector:0.99,2=0.1", ("bad-forgetting-factor", "0.5"))):
        with refused(ModelError, *words):
            parse_forgetting(text)


def test_directional_forgetting_loses_only_what_comes() -> None:
    data, factor = truth(300), 0.98
    online = Online(data.model, prior=(0.0, 10.0), forgetting=Directional(factor), noise=1.0)
    online.update(*data.signals)
    b = len(data.base)
    h, beta = np.eye(b) / 100.0, np.zeros(b)
    for y, tau in zip(data.rows, data.tau, strict=True):
        for x, torque in zip(y[::-1], tau[::-1], strict=True):
            v = h @ x
            h = h - (1 - factor) * np.outer(v, v) / (x @ v) + np.outer(x, x)
            beta = beta + np.linalg.solve(h, x * (torque - x @ beta))
    assert relative(online.values, beta) < 1e-8



@pytest.mark.parametrize("slow", [None, 0.0])
@pytest.mark.parametrize("forgetting", ["prior", "evidence", "directional"])
def test_ten_minutes_at_rest_leave_the_estimate_where_it_was(forgetting: str, slow: float | None) -> None:
    # Standard errors from blocks of time need more blocks than 1,500 rows have; directional forgetting's own are not.
    rows, growth = (1500, 1.5) if forgetting == "directional" else (3000, 1.25)
    data, rng = truth(rows, noise=0.5, pole=0.9), np.random.default_rng(3)
    online = Online(data.model, prior=(0.0, 10.0), forgetting=forgetting, noise=0.5, slow=slow)
    online.update(*data.signals)
    before = online.estimate()
    q = np.tile(data.q[-1], (60_000, 1))
    torque = data.model.inverse_dynamics(data.base.expand(data.beta), q[0], 0 * q[0], 0 * q[0])
    online.update(q, 0 * q, 0 * q, torque + coloured(60_000, 3, rng, pole=0.9, size=0.5))
    after = online.estimate()
    assert np.all(np.abs(after.values - before.values) < 2.0 * before.std)
    assert np.all(after.std < growth * before.std) and np.all(after.std < 10.0) and online.restarts == ()
    assert np.all(np.abs(after.values - data.beta) < 4.0 * after.std)
    assert online.left_out == (60_000 - 25 if slow is None else 0)


def test_exponential_forgetting_winds_up_where_rest_counts() -> None:
    data = truth(1500)
    online = Online(data.model, forgetting=0.999, slow=0.0)
    online.update(*data.signals)
    before = np.linalg.norm(online._stream.recursion.r)
    q = np.tile(data.q[-1], (60_000, 1))
    online.update(q, 0 * q, 0 * q, np.tile(data.tau[-1], (60_000, 1)))
    moving = [data.base.names.index(name) for name in ("Fv1", "Fc2")]
    assert np.all(np.abs(online._stream.recursion.r[moving, moving]) < 1e-6 * before)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_vector_forgetting_of_instruments_is_equation_4_12_with_their_p(one_by_one: bool) -> None:
    """P of civ is the inverse of Z'Y, not symmetric; the printed recursion with factors on both sides."""
    data = truth(300)
    q, dq, ddq, _ = data.signals
    rng = np.random.default_rng(0)
    reference = (q + 1e-3 * rng.normal(size=q.shape), dq + 1e-2 * rng.normal(size=q.shape),
                 ddq + 0.1 * rng.normal(size=q.shape))
    chosen = VectorForgetting({"1": 0.999, "Fc2": 0.99}, 0.995)
    online = Online(data.model, "civ", prior=(0.0, 10.0), forgetting=chosen, noise=1.0)
    if one_by_one:
        for k in range(300):
            online.update(*(x[k] for x in data.signals), reference=tuple(x[k] for x in reference))
    else:
        online.update(*data.signals, reference=reference)
    b = len(data.base)
    factors = chosen.plan(data.base, 0, 1)[1]
    z_rows = data.model.regressor(*reference)[:, :, data.base.independent]
    p, beta = 100.0 * np.eye(b), np.zeros(b)
    for y, z, tau in zip(data.rows, z_rows, data.tau, strict=True):
        gain = p @ z.T @ np.linalg.inv(np.eye(len(tau)) + y @ p @ z.T)
        beta, p = beta + gain @ (tau - y @ beta), (p - gain @ y @ p) / np.outer(factors, factors)
    assert relative(online.values, beta) < 1e-7
