"""Compiled loss functions of the extraction, for searches with millions of evaluations.

In the exact form, a candidate x contains the free standard parameters. In the penalty form, x contains mass, centre of
mass and central inertia of every body, then the other parameters. Losses are the sums of squares of `Conditions`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.kernel_store import njit


@njit(cache=True, is_storable=False)
def full_vector(x: Any, exact: bool, offset: Any, spread: Any, places: Any, rest: Any) -> Any:
    """Return the standard parameters (parameters,) of a candidate x (variables,) of a search. In the exact form, the
    standard parameters are offset + spread x; in the penalty form, x has mass, centre of mass and central inertia of
    each body, which are converted by Steiner's theorem."""
    if exact:
        theta = offset.copy()
        for i in range(len(theta)):
            for k in range(len(x)):
                theta[i] += spread[i, k] * x[k]
        return theta
    theta = np.empty(len(offset))
    for b in range(len(places)):
        m, cx, cy, cz = x[10 * b], x[10 * b + 1], x[10 * b + 2], x[10 * b + 3]
        p = places[b]
        theta[p[0]] = x[10 * b + 4] + m * (cy * cy + cz * cz)
        theta[p[1]] = x[10 * b + 5] - m * cx * cy
        theta[p[2]] = x[10 * b + 6] - m * cx * cz
        theta[p[3]] = x[10 * b + 7] + m * (cx * cx + cz * cz)
        theta[p[4]] = x[10 * b + 8] - m * cy * cz
        theta[p[5]] = x[10 * b + 9] + m * (cx * cx + cy * cy)
        theta[p[6]], theta[p[7]], theta[p[8]], theta[p[9]] = m * cx, m * cy, m * cz, m
    for k in range(len(rest)):
        theta[rest[k]] = x[10 * len(places) + k]
    return theta


@njit(cache=True)
def squared_moments_short(xx: float, xy: float, xz: float, yy: float, yz: float, zz: float, size: float,
                          room: float) -> float:
    """Return the sum of squares by which eigenvalues of tr(I)/2 - I are below the margin `room`, in units of `size`.

    The entries of the inertia matrix I are xx .. zz. Its eigenvalues are computed in closed form.
    """
    mean = (xx + yy + zz) / 3.0
    off = xy * xy + xz * xz + yz * yz
    a, b, c = xx - mean, yy - mean, zz - mean
    p = math.sqrt((a * a + b * b + c * c + 2.0 * off) / 6.0)
    total = 0.0
    angle = 0.0
    if p > 0.0:
        half = (a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)) / (2.0 * p * p * p)
        angle = math.acos(min(1.0, max(-1.0, half))) / 3.0
    for k in range(3):
        moment = mean + 2.0 * p * math.cos(angle + 2.0 * math.pi * k / 3.0)
        short = (1.5 * mean - moment) / size - room
        if short < 0.0:
            total += short * short
    return total


@njit(cache=True)
def squared_excess(value: float, low: float, high: float, width: float) -> float:
    """Return the squared distance of a value from an interval, in units of the interval's width; zero inside."""
    over = max(value - high, low - value, 0.0) / width
    return over * over


@njit(cache=True)
def broken(theta: Any, places: Any, rest: Any, box: Any, rest_box: Any, light: Any, inertia: bool, sizes: Any,
           planes: Any, spheres: Any, whole: Any, room: float) -> Any:
    """Return the sum of squared violations of bounds, and that of physical conditions, by standard parameters theta.
    The other arguments are arrays of `Conditions`, in the order of `Landscape.arrays`."""
    bounds, physics, mass = 0.0, 0.0, 0.0
    x = np.empty((len(places), 10))
    for b in range(len(places)):
        p = places[b]
        m = max(theta[p[9]], light[b])
        hx, hy, hz = theta[p[6]], theta[p[7]], theta[p[8]]
        x[b, 0], x[b, 1], x[b, 2], x[b, 3] = theta[p[9]], hx / m, hy / m, hz / m
        x[b, 4] = theta[p[0]] - (hy * hy + hz * hz) / m
        x[b, 5] = theta[p[1]] + hx * hy / m
        x[b, 6] = theta[p[2]] + hx * hz / m
        x[b, 7] = theta[p[3]] - (hx * hx + hz * hz) / m
        x[b, 8] = theta[p[4]] + hy * hz / m
        x[b, 9] = theta[p[5]] - (hx * hx + hy * hy) / m
        mass += theta[p[9]]
        for k in range(10):
            bounds += squared_excess(x[b, k], box[0, b, k], box[1, b, k], box[2, b, k])
        if inertia:
            physics += squared_moments_short(x[b, 4], x[b, 5], x[b, 6], x[b, 7], x[b, 8], x[b, 9], sizes[b], room)
    for k in range(len(rest)):
        bounds += squared_excess(theta[rest[k]], rest_box[0, k], rest_box[1, k], rest_box[2, k])
    for k in range(len(planes)):
        b = int(planes[k, 0])
        side = planes[k, 1] * x[b, 1] + planes[k, 2] * x[b, 2] + planes[k, 3] * x[b, 3] + planes[k, 4]
        if side < 0.0:
            physics += side * side
    for k in range(len(spheres)):
        b, square = int(spheres[k, 0]), 0.0
        for i in range(3):
            along = 0.0
            for j in range(3):
                along += spheres[k, 4 + 3 * i + j] * (x[b, 1 + j] - spheres[k, 1 + j])
            square += along * along
        over = math.sqrt(square) - 1.0
        if over > 0.0:
            physics += over * over
    return bounds, physics + squared_excess(mass, whole[0], whole[1], whole[2])


@njit(cache=True)
def loss(x: Any, weight: float, space: Any, base: Any, conditions: Any) -> float:
    """Return the loss of a candidate: squared distance from the base values (eq. 2.28 or 2.29), plus squared violations
    of bounds and weighted squared violations of physical conditions (eq. 2.30)."""
    exact, offset, spread, places, rest = space
    theta = full_vector(x, exact, offset, spread, places, rest)
    matrix, values = base
    total = 0.0
    for i in range(len(values)):
        off = -values[i]
        for k in range(len(theta)):
            off += matrix[i, k] * theta[k]
        total += off * off
    bounds, physics = broken(theta, places, rest, *conditions)
    return total + bounds + weight * physics


@njit(cache=True, is_storable=False)
def losses(many: Any, weight: float, space: Any, base: Any, conditions: Any) -> Any:
    """Return the losses (n,) of many candidates (n, variables)."""
    found = np.empty(len(many))
    for k in range(len(many)):
        found[k] = loss(many[k], weight, space, base, conditions)
    return found
