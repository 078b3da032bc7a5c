"""Excerpts of logs: how many rows, from where, whatever the order of logs, and the same rows as pieces of equations."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from dynid.model import Model, RigidBodies
from dynid.recording import Decimation, Recording, Samples
from dynid.recording.excerpts import SHORTEST_STRETCH, STRETCHES, excerpt, moving_excerpt
from dynid.regression import TorqueEquations
from dynid.regression.residual_series import excerpt_pieces
from dynid.robot import Robot


def log(rows: int, source: str = "memory", **changes: object) -> Samples:
    """A log whose position is the number of its row."""
    count = np.arange(rows, dtype=float)[:, None] + np.zeros(2)
    return replace(Samples.from_arrays(count, 0.0 * count, 0.0 * count, count, rate=1000.0, source=source), **changes)


def rows_of(part: Samples) -> list[tuple[int, int]]:
    """Half-open ranges of the original rows of each segment."""
    for a, b in part.segments:
        np.testing.assert_array_equal(np.diff(part.q[a:b, 0]), 1.0)
    return [(int(part.q[a, 0]), int(part.q[b - 1, 0]) + 1) for a, b in part.segments]


def test_all_data_are_taken_where_there_are_no_more_rows() -> None:
    logs = (log(3000), log(2000))
    assert excerpt(logs, 5000) == logs
    assert excerpt(logs, 4999) != logs


def test_one_log_gives_stretches_in_the_middle_of_equal_parts() -> None:
    part, = excerpt([log(80_000)], 16_000)
    assert rows_of(part) == [(10_000 * k + 4000, 10_000 * k + 6000) for k in range(STRETCHES)]


def test_every_log_has_its_share_whatever_the_order() -> None:
    logs = [log(rows, name) for rows, name in ((40_000, "c"), (20_000, "a"), (5000, "b"))]
    found = {part.source: rows_of(part) for part in excerpt(logs, 8000)}
    for order in permutations(logs):
        parts = excerpt(order, 8000)
        assert [part.source for part in parts] == [one.source for one in order]
        assert {part.source: rows_of(part) for part in parts} == found
    taken = {name: sum(b - a for a, b in ranges) for name, ranges in found.items()}
    assert sum(taken.values()) == pytest.approx(8000, abs=STRETCHES * SHORTEST_STRETCH)
    assert taken["c"] == pytest.approx(2 * taken["a"], rel=0.3) and taken["b"] >= 600


def test_logs_of_one_name_are_told_apart_by_their_content() -> None:
    logs = [log(20_000), replace(log(20_000), t=5.0 + np.arange(20_000) / 1000.0)]
    forth, back = excerpt(logs, 6000), excerpt(logs[::-1], 6000)
    for one, other in zip(forth, back[::-1], strict=True):
        np.testing.assert_array_equal(one.t, other.t)


def test_stretches_end_at_gaps_and_start_on_the_rows_of_decimation() -> None:
    gaps = log(60_000, segments=np.array([[7, 20_003], [21_000, 41_000], [41_000, 60_000]]), decimation=Decimation(10))
    part, = excerpt([gaps], 12_000)
    assert sum(b - a for a, b in part.segments) == pytest.approx(12_000, rel=0.1)
    for a, b in rows_of(part):
        start = max(s for s, _ in gaps.segments if s <= a)
        assert (a - start) % 10 == 0
        assert any(s <= a and b <= e for s, e in gaps.segments)
        assert b - a >= 10 * SHORTEST_STRETCH


def test_short_segments_are_taken_whole_and_slivers_are_not() -> None:
    pieces = np.column_stack([np.arange(0, 50_000, 50), np.arange(50, 50_050, 50)])
    part, = excerpt([log(50_000, segments=pieces)], 4000)
    assert {b - a for a, b in part.segments} == {50}
    assert len(part) == pytest.approx(4000, rel=0.25)


def test_many_short_logs_leave_some_out_rather_than_cut_stretches_short() -> None:
    logs = [log(400, f"{k:03}") for k in range(200)]
    parts = excerpt(logs, 4000)
    assert 20 <= len(parts) <= 80 and sum(map(len, parts)) == pytest.approx(4000, rel=0.3)
    assert min(b - a for part in parts for a, b in rows_of(part)) >= SHORTEST_STRETCH // 2


def test_recordings_are_cut_into_as_many_of_their_own() -> None:
    count = np.arange(100_000, dtype=float)[:, None]
    recording = Recording(t=count[:, 0] / 1000.0, q=count, tau=count, temperature=count, external_torque=count)
    assert moving_excerpt([recording], 100_000) == (recording,)
    pieces = moving_excerpt([recording, replace(recording, source="other")], 16_000)
    assert [len(piece) for piece in pieces] == [2000] * STRETCHES
    for piece in pieces:
        for signal in (piece.temperature, piece.external_torque, piece.tau, 1000.0 * piece.t[:, None]):
            np.testing.assert_allclose(signal, piece.q, rtol=1e-12)


def test_recordings_are_cut_where_the_robot_moves() -> None:
    """It moves from 20 s to 30 s and from 60 s to 70 s, in an hour of flickering encoders."""
    rate, step = 100.0, 1e-4
    t = np.arange(360_000) / rate
    q = step * np.random.default_rng(0).integers(0, 2, size=(len(t), 2)).astype(float)
    for start in (20.0, 60.0):
        rows = (t >= start) & (t < start + 10.0)
        q[rows, 1] += 0.2 * np.sin(2 * np.pi * 0.1 * (t[rows] - start))
    log = Recording(t=t, q=q, tau=q)
    pieces = moving_excerpt([log], 60_000)
    assert [(piece.t[0], round(piece.duration)) for piece in pieces] == [(19.0, 12), (59.0, 12)]
    for piece in moving_excerpt([log, replace(log, source="other")], 1600):
        assert np.ptp(piece.q[:, 1]) > 0.01
    still = Recording(t=t, q=q[:, :1], tau=q[:, :1])
    assert moving_excerpt([still], len(t)) == (still,)


@pytest.mark.parametrize("decimation", [None, Decimation(10)])
def test_pieces_of_an_excerpt_are_rows_of_the_whole(decimation: Decimation | None) -> None:
    """The same rows as the excerpt has, but decimated with what is around them."""
    rng = np.random.default_rng(0)
    logs = [replace(Samples.from_arrays(*rng.normal(size=(4, 30_000, 2)), rate=1000.0, source=name),
                    decimation=decimation)
            for name in "ab"]
    equations = TorqueEquations.from_model(Model(Robot.builtin("scara2"), (RigidBodies(),)), logs)
    assert excerpt_pieces(equations, 60_000) == equations.pieces()
    pieces = excerpt_pieces(equations, 12_000)
    whole = {(piece.log, row): equations.rows(piece).entries[:, k] for piece in equations.pieces()
             for k, row in enumerate(piece.rows) if row % 1000 == 0}
    compared = 0
    for piece in pieces:
        entries = equations.rows(piece).entries
        for k, row in enumerate(piece.rows):
            if row % 1000 == 0:
                np.testing.assert_allclose(entries[:, k], whole[piece.log, row], rtol=1e-9, atol=1e-12)
                compared += 1
    assert compared > 5
    taken = {(piece.log, float(logs[piece.log].t[row])) for piece in pieces for row in piece.rows}
    step = 1 if decimation is None else 10
    assert taken == {(k, float(t)) for k, part in enumerate(excerpt(logs, 12_000))
                     for a, b in part.segments for t in part.t[a:b:step]}
