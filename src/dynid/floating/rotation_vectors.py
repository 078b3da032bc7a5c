"""Rotation vectors, rad: their quaternions, the angular velocity of their rates, and errors of orientation."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array


def quaternions_of_vectors(vector: Array) -> Array:
    """Return unit quaternions x y z w (samples, 4) of rotation vectors (samples, 3), rad."""
    angle = np.linalg.norm(vector, axis=1, keepdims=True)
    return np.hstack([0.5 * np.sinc(angle / (2 * np.pi)) * vector, np.cos(0.5 * angle)])


def body_rates(vector: Array, first: Array, second: Array) -> tuple[Array, Array]:
    """Return angular velocity and acceleration in body axes (samples, 3) of a rotation vector and its two derivatives.

    With the right Jacobian of the exponential, w = r' - a r x r' + b r x (r x r').
    """
    square = np.einsum("si,si->s", vector, vector)[:, None]
    size = np.sqrt(np.maximum(square, 1e-12))
    a, b = (1 - np.cos(size)) / size ** 2, (size - np.sin(size)) / size ** 3
    # Derivatives of a and b by the square of the angle, times its rate.
    slope_a = (size * np.sin(size) - 2 * (1 - np.cos(size))) / (2 * size ** 4)
    slope_b = ((1 - np.cos(size)) * size - 3 * (size - np.sin(size))) / (2 * size ** 5)
    small = square < 1e-3  # series where the differences above lose digits
    slope_a = np.where(small, -1 / 24 + square / 360, slope_a)
    slope_b = np.where(small, -1 / 120 + square / 2520, slope_b)
    rate = 2 * np.einsum("si,si->s", vector, first)[:, None]
    turn = np.cross(vector, first)
    twice = np.cross(vector, turn)
    velocity = first - a * turn + b * twice
    turn_rate = np.cross(vector, second)
    twice_rate = np.cross(first, turn) + np.cross(vector, turn_rate)
    return velocity, second - a * turn_rate - slope_a * rate * turn + b * twice_rate + slope_b * rate * twice


def rotation_errors(target: Array, here: Array) -> Array:
    """Return rotation vectors (samples, 3), to first order, that rotate `here` to `target`, both (samples, 3, 3)."""
    off = target @ here.transpose(0, 2, 1)
    return 0.5 * np.stack([off[:, i, j] - off[:, j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=1)


def right_jacobians(vector: Array) -> Array:
    """Return the matrices (samples, 3, 3) from rates of a rotation vector (samples, 3) to angular velocity in body
    axes."""
    zero = np.zeros_like(vector)
    columns = [body_rates(vector, np.broadcast_to(unit, vector.shape), zero)[0] for unit in np.eye(3)]
    return np.stack(columns, axis=2)
