"""Windows over which instruments are tapered and velocities smoothed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.estimate.instruments.equations import hann, smooth, smoothed_velocity, soften, taper
from dynid.recording import Samples

RATE = 500.0


def samples(rows: int = 1000) -> Samples:
    t = np.arange(rows) / RATE
    q, dq, ddq = (np.column_stack([f(3.0 * t), f(5.0 * t)]) for f in (np.sin, np.cos, np.sin))
    return Samples.from_arrays(q, dq, ddq, q, rate=RATE)


def test_a_window_keeps_straight_lines_and_takes_noise_away() -> None:
    window = hann(RATE)
    assert len(window) % 2 == 1 and np.isclose(window.sum(), 1.0) and np.array_equal(window, window[::-1])
    line = np.linspace(-1.0, 2.0, 400)
    half = len(window) // 2
    assert np.allclose(smooth(line, window)[half:-half], line[half:-half], atol=1e-12)
    noise = np.random.default_rng(0).normal(size=20_000)
    assert np.isclose(smooth(noise, window).std(), np.sqrt(np.sum(window ** 2)), rtol=0.05)


def test_a_softened_mask_is_zero_where_it_was_and_falls_inside_its_ones() -> None:
    part = samples()
    mask = np.zeros((1000, 2), dtype=bool)
    mask[200:800, 0] = True
    soft, size = soften(mask, part), len(hann(RATE))
    assert np.all(soft[~mask] == 0.0) and np.allclose(soft[200 + size:800 - size, 0], 1.0, atol=1e-12)
    assert np.all(np.diff(soft[200:500, 0]) >= -1e-12) and 0.0 < soft[200 + size // 2, 0] < 1.0


def test_tapers_drop_the_start_and_bridge_short_gaps() -> None:
    part = samples()
    keep = part.keep.copy()
    keep[500:505, 0] = False  # 10 ms, shorter than the window
    keep[500:540, 1] = False  # 80 ms, longer
    found = taper(replace(part, keep=keep), 0.2)
    assert np.all(found[:100] == 0.0) and np.all(found[[0, -1]] == 0.0)
    assert abs(found[502, 0] - 1.0) < 1e-12 and found[520, 1] == 0.0


def test_velocities_are_smoothed_in_each_segment_alone() -> None:
    part = samples()
    jump = replace(part, dq=np.where(np.arange(1000)[:, None] < 500, 1.0, -1.0) * np.ones((1, 2)),
                   segments=np.array([[0, 500], [500, 1000]]))
    assert np.allclose(smoothed_velocity(jump), jump.dq, atol=1e-12)
