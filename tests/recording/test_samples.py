"""Parts of samples: every signal is cut alike, segments are re-based, and signals of another length are refused."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from filtered_logs import simulated
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording import Decimation, Samples
from dynid.recording.decimate import decimate_columns, decimated, decimated_rows
from dynid.recording.sample_preparation import prepare

ROWS, DOF = 400, 2
SIGNALS = ("t", "q", "dq", "ddq", "tau", "keep", "raw_tau", "temperature", "wrench", "mixing", "base_pose")


def numbered() -> Samples:
    """Samples with every signal, whose values say which row they belong to; rows 150 to 160 are in no segment."""
    row = np.arange(ROWS, dtype=float)

    def signal(first: float, columns: int = DOF) -> Any:
        return first + row[:, None] + np.zeros(columns)

    return replace(Samples.from_arrays(*(signal(k) for k in range(4)), t=row, rate=100.0), keep=signal(0) % 3 > 0,
                   segments=np.array([[0, 150], [160, ROWS]]), raw_tau=signal(4), temperature=signal(5),
                   wrench=signal(6, 6), mixing=signal(7, DOF * DOF).reshape(-1, DOF, DOF), base_pose=signal(8, 7),
                   settings={"cutoff": 5.0}, joints=("a", "b"))


def assert_rows(part: Samples, whole: Samples, rows: Any) -> None:
    for name in SIGNALS:
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])


def test_every_signal_of_samples_is_known_to_the_tests() -> None:
    """A new field with an entry a row must be cut too."""
    other = {"segments", "rate", "decimation", "joints", "source", "steps", "settings", "spectrum", "unmeasured",
             "filtered", "gain_covariance"}
    assert {field.name for field in fields(Samples)} == {*SIGNALS, *other}


@pytest.mark.parametrize(("rows", "segments"), [
    (slice(100, 200), [[0, 50], [60, 100]]), (slice(None, 120), [[0, 120]]), (slice(-40, None), [[0, 40]]),
    (slice(152, 158), np.zeros((0, 2))), (slice(300, 200), np.zeros((0, 2)))])
def test_a_slice_has_the_same_rows_of_all_signals(rows: slice, segments: Any) -> None:
    whole = numbered()
    part = whole[rows]
    assert_rows(part, whole, rows)
    np.testing.assert_array_equal(part.segments, segments)
    assert (part.rate, part.settings, part.joints) == (whole.rate, whole.settings, whole.joints)


def test_stretches_follow_each_other_and_keep_their_borders() -> None:
    whole = numbered()
    part = whole.select([(10, 30), (140, 170), (390, 400)])
    assert_rows(part, whole, np.r_[10:30, 140:170, 390:400])
    np.testing.assert_array_equal(part.segments, [[0, 20], [20, 30], [40, 50], [50, 60]])
    none = whole.select([])
    assert len(none) == 0 and none.segments.shape == (0, 2)


def test_one_row_in_so_many_starts_anew_in_every_segment() -> None:
    whole = numbered()
    part = whole.every(40)
    assert_rows(part, whole, [0, 40, 80, 120, 160, 200, 240, 280, 320, 360])
    np.testing.assert_array_equal(part.segments, [[0, 4], [4, 10]])
    assert part.rate == 2.5


def test_decimated_samples_have_the_torques_of_parallel_decimation() -> None:
    whole = replace(numbered(), decimation=Decimation(10))
    part = decimated(whole)
    rows = decimated_rows(whole.segments, Decimation(10))
    np.testing.assert_array_equal(part.tau, decimate_columns(whole.tau, Decimation(10), whole.segments))
    for name in ("q", "temperature", "wrench", "keep"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows])
    assert part.decimation is None and part.rate == 10.0 and part.raw_tau is None
    assert decimated(numbered()).tau is not part.tau


def test_filtered_signals_are_cut_with_the_others() -> None:
    _, _, log = simulated("scara2", seconds=5.0)
    samples = prepare(log, equations="kernel", cutoff=5.0)
    signals = samples.filtered
    assert signals is not None
    part = samples[100:400].filtered
    assert part is not None
    for name in ("q", "dq", "tau", "whole"):
        np.testing.assert_array_equal(getattr(part, name), getattr(signals, name)[100:400])
    assert part.filter is signals.filter
    with refused(RecordingError, "bad-recording", "filtered.q", "(300, 2)", "(5000, 2)"):
        replace(samples, filtered=part)


@pytest.mark.parametrize("name", [name for name in SIGNALS if name != "q"])
def test_a_signal_of_another_length_is_refused(name: str) -> None:
    whole = numbered()
    with refused(RecordingError, "bad-recording", f"memory: {name} "):
        replace(whole, **{name: getattr(whole, name)[:-1]})


@pytest.mark.parametrize("segments", [[[0, ROWS + 1]], [[-1, 5]], [[20, 10]], [0, 10]])
def test_segments_outside_the_rows_are_refused(segments: Any) -> None:
    with refused(RecordingError, "bad-recording", "segments"):
        replace(numbered(), segments=np.array(segments))
    if np.ndim(segments) == 2:
        with refused(RecordingError, "bad-recording", "stretches"):
            numbered().select(segments)


def test_a_slice_with_a_step_is_refused_and_says_what_to_use() -> None:
    with refused(RecordingError, "bad-slice", "2"):
        numbered()[::2]
