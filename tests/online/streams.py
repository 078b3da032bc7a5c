"""Streams for tests: a small arm on a motion that excites it, and what covariance-form equations make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid import Model, Robot, Samples
from dynid.arrays import Array
from dynid.regression import BaseParameters, base_parameters
from dynid.terms import Coulomb, Offset, RigidBodies, Viscous


def arm(name: str = "arm3r") -> Model:
    return Model(Robot.builtin(name), (RigidBodies(), Viscous(), Coulomb(), Offset()))


def motion(samples: int, dof: int, *, rate: float = 100.0, seed: int = 0, size: float = 1.0) -> list[Array]:
    """Positions, velocities and accelerations (samples, dof): sums of sines, exact."""
    rng, t = np.random.default_rng(seed), np.arange(samples)[:, None] / rate
    found = [np.zeros((samples, dof)) for _ in range(3)]
    for frequency in (0.1, 0.23, 0.41, 0.7):
        amplitude, phase, w = size * rng.normal(size=dof), rng.uniform(0, 6, dof), 2 * np.pi * frequency
        found[0] += amplitude * np.sin(w * t + phase)
        found[1] += amplitude * w * np.cos(w * t + phase)
        found[2] -= amplitude * w * w * np.sin(w * t + phase)
    return found


def coloured(samples: int, dof: int, rng: np.random.Generator, *, pole: float = 0.9, size: float = 1.0) -> Array:
    """Noise (samples, dof) of first order with this pole and deviation."""
    from scipy.signal import lfilter

    white = rng.normal(size=(samples + 200, dof))
    return np.asarray(size * np.sqrt(1 - pole ** 2) * lfilter([1.0], [1.0, -pole], white, axis=0)[200:])


@dataclass(frozen=True)
class Truth:
    """A stream with known parameters."""

    model: Model
    base: BaseParameters
    beta: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array

    @property
    def signals(self) -> tuple[Array, Array, Array, Array]:
        return self.q, self.dq, self.ddq, self.tau

    def part(self, rows: slice) -> tuple[Array, Array, Array, Array]:
        return self.q[rows], self.dq[rows], self.ddq[rows], self.tau[rows]

    @property
    def rows(self) -> Array:
        """The regressor of all samples on the base parameters (samples, dof, base)."""
        return self.model.regressor(self.q, self.dq, self.ddq)[:, :, self.base.independent]

    @property
    def samples(self) -> Samples:
        return Samples.from_arrays(*self.signals, rate=100.0)


def truth(samples: int = 1500, *, name: str = "arm3r", seed: int = 0, noise: float = 0.3, pole: float = 0.0) -> Truth:
    model = arm(name)
    base, rng = base_parameters(model), np.random.default_rng(seed + 1000)
    q, dq, ddq = motion(samples, model.dof, seed=seed)
    theta = rng.normal(size=len(model.parameters))
    tau = model.inverse_dynamics(theta, q, dq, ddq) + coloured(samples, model.dof, rng, pole=pole, size=noise)
    return Truth(model, base, base.reduce(theta), q, dq, ddq, tau)


def commanded(samples: int = 8000, *, rate: float = 200.0) -> tuple[Truth, Array, Array]:
    """A stream with position noise of 1e-3 rad, its stamps (s), and commanded positions that the motion lags by two
    samples."""
    data, rng = truth(10), np.random.default_rng(7)
    q, dq, ddq = motion(samples + 2, 3, rate=rate)
    tau = data.model.inverse_dynamics(data.base.expand(data.beta), q, dq, ddq) + 0.3 * rng.normal(size=q.shape)
    noisy, part = q + 1e-3 * rng.normal(size=q.shape), slice(0, samples)
    return (Truth(data.model, data.base, data.beta, noisy[part], dq[part], ddq[part], tau[part]),
            np.arange(samples) / rate, q[2:])


def weighted(data: Truth, weights: Array, prior: float | None = None, prior_weight: float = 1.0) -> Array:
    """Least squares of all rows by lstsq, sample t counting weights[t] times, with prior rows beta = 0 +- prior."""
    b, root = len(data.base), np.sqrt(weights)
    y = (data.rows * root[:, None, None]).reshape(-1, b)
    tau = (data.tau * root[:, None]).reshape(-1)
    if prior is not None:
        y = np.vstack([y, np.sqrt(prior_weight) * np.eye(b) / prior])
        tau = np.append(tau, np.zeros(b))
    size = np.linalg.norm(y, axis=0)
    return np.asarray(np.linalg.lstsq(y / size, tau, rcond=None)[0] / size)
