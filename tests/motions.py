"""Motions and noise for tests: Fourier series with exact derivatives, and noise as filtered torques have it."""

from __future__ import annotations

import numpy as np
from scipy.signal import butter, sosfiltfilt

from dynid.arrays import Array
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot


def fourier(dof: int, *, seconds: float = 20.0, rate: float = 200.0, seed: int = 0, speed: float = 1.5,
            harmonics: int = 5, period: float = 10.0) -> tuple[Array, Array, Array]:
    """q, dq, ddq (samples, dof) of a finite Fourier series whose speeds reach `speed` rad/s (Ardiani, eq. 1.39)."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    w = 2 * np.pi / period * np.arange(1, harmonics + 1)
    a, b = rng.normal(size=(2, harmonics, dof))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    dq = c @ a + s @ b
    size = speed / np.abs(dq).max(axis=0)
    q = (s @ (a / w[:, None]) - c @ (b / w[:, None])) * size + rng.uniform(-0.5, 0.5, dof)
    return q, dq * size, (-s @ (a * w[:, None]) + c @ (b * w[:, None])) * size


def low_passed(rng: np.random.Generator, shape: tuple[int, ...], deviation: float | Array, cutoff: float,
               rate: float) -> Array:
    """Return noise (samples, joints) after a zero-phase low-pass at `cutoff` Hz, scaled to a standard deviation."""
    sos = butter(2, cutoff, fs=rate, output="sos")
    pulse = np.zeros(4096)
    pulse[2048] = 1.0
    gain = np.linalg.norm(sosfiltfilt(sos, pulse))
    return sosfiltfilt(sos, rng.normal(size=shape), axis=0) / gain * deviation


def arm() -> tuple[Model, Array]:
    """The 3R arm of Simionato with its friction, and its parameters."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True))
    theta = model.parameters.nominal
    assert theta is not None
    return model, theta


def motion(model: Model, theta: Array, noise: Array | float = 0.0, *, rate: float = 200.0, **options: float) -> Samples:
    """Samples along a Fourier series with the model's torques and noise (samples, joints)."""
    q, dq, ddq = fourier(model.dof, rate=rate, **options)
    return Samples.from_arrays(q, dq, ddq, model.inverse_dynamics(theta, q, dq, ddq) + noise, rate=rate)
