"""A window of time, and a log whose first rows are damaged in several columns at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.log_reading import read

T = np.arange(500) * 0.01
TABLE = np.column_stack([T, np.sin(T), np.cos(2 * T), 3 * np.cos(T), 2 * np.sin(3 * T) + 1])
HEAD = ["t", "q1", "q2", "tau1", "tau2"]
Rows = list[list[str]]


def cells() -> Rows:
    return [[repr(value) for value in row] for row in TABLE.tolist()]


def write(path: Path, rows: Rows, header: bool = True) -> Path:
    path.write_text("\n".join(",".join(row) for row in [*([HEAD] if header else []), *rows]) + "\n")
    return path


def first(count: int, damage: dict[int, str]) -> Callable[[Rows], Rows]:
    """The first rows with other cells, by column."""
    return lambda rows: [[damage.get(i, cell) for i, cell in enumerate(row)] if k < count else row
                         for k, row in enumerate(rows)]


@pytest.mark.parametrize("at_once", [None, 100])
@pytest.mark.parametrize(("damage", "why"), [
    (first(3, {0: "abc", 1: "x", 2: "y", 3: "z", 4: "w"}), "is not a number"),
    (first(3, dict.fromkeys(range(5), "nan")), "which is not plausible"),
    (first(3, {0: "", 1: "", 3: ""}), "is empty"),
    (first(3, {0: "99999.5", 1: "1e30", 3: "1e20"}), "not a plausible position"),
    (first(3, {0: "99999.5"}), "time stamp does not fit"),
    (first(3, {0: "-1e8"}), "time stamp does not fit"),
    (first(3, {1: "5000", 2: "-7000", 3: "80000"}), "far outside the range of all later rows"),
    (lambda rows: [row[:2] for row in rows[:3]] + rows[3:], "it has 2 of 5 cells"),
])
def test_damaged_first_rows_are_dropped_and_listed(tmp_path: Path, damage: Callable[[Rows], Rows], why: str,
                                                   at_once: int | None) -> None:
    path = write(tmp_path / "log.csv", damage(cells()))
    recording = read(path, bad_rows="drop", at_once=at_once)
    np.testing.assert_allclose(recording.t, T[3:] - T[3], atol=1e-12)
    np.testing.assert_array_equal(recording.q, TABLE[3:, 1:3])
    assert recording.dropped == 3
    assert [(one.file, one.row) for one in recording.dropped_rows] == [(str(path), row) for row in (2, 3, 4)]
    assert all(why in one.why for one in recording.dropped_rows)
    assert any(note.startswith("3 of ") and "rows ignored" in note and why in note for note in recording.notes)


def test_a_first_row_that_is_cut_off_does_not_decide_how_many_columns_there_are(tmp_path: Path) -> None:
    rows = cells()
    path = write(tmp_path / "log.csv", [rows[0][:2], rows[1][:1], *rows[2:]], header=False)
    recording = read(path, bad_rows="drop", time=1, position="2-3", torque="4-5")
    assert len(recording) == 498 and recording.dropped == 2


def test_nanoseconds_keep_their_digits_behind_a_damaged_first_row(tmp_path: Path) -> None:
    rows = cells()
    for k, row in enumerate(rows):
        row[0] = str(1_700_000_000_000_000_001 + k * 10_000_000) if k else "?"
    recording = read(write(tmp_path / "log.csv", rows), bad_rows="drop")
    np.testing.assert_allclose(np.diff(recording.t), 0.01, rtol=0, atol=1e-12)


def test_a_log_that_comes_from_afar_is_kept(tmp_path: Path) -> None:
    """Values far from the others that are reached in steps are a motion."""
    table = TABLE.copy()
    table[:20, 1:] += 100.0 * np.linspace(1.0, 0.0, 20)[:, None] ** 2
    path = write(tmp_path / "log.csv", [[repr(value) for value in row] for row in table.tolist()])
    assert read(path, bad_rows="drop").dropped == 0


def test_two_runs_in_one_file_stay_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", [*cells(), *cells()])
    with refused(RecordingError, "time-backwards", "row 502"):
        read(path, bad_rows="drop")


@pytest.mark.parametrize("at_once", [None, 77])
@pytest.mark.parametrize(("start", "stop", "rows"), [(1.0, 2.0, slice(100, 200)), (None, 0.5, slice(0, 50)),
                                                     (4.5, None, slice(450, 500)), (4.9, 100.0, slice(490, 500))])
def test_a_window_of_time(tmp_path: Path, start: float | None, stop: float | None, rows: slice,
                          at_once: int | None) -> None:
    table = TABLE.copy()
    table[:, 0] += 1000.0  # the window counts from the first row
    path = write(tmp_path / "log.csv", [[repr(value) for value in row] for row in table.tolist()])
    recording = read(path, at_once=at_once, start=start, stop=stop)
    np.testing.assert_allclose(recording.t, T[rows], atol=1e-9)
    np.testing.assert_array_equal(recording.q, TABLE[rows, 1:3])
    assert any(note.startswith("only rows from") and "the log ends at 4.99 s" in note for note in recording.notes)


def test_damage_outside_the_window_does_not_matter(tmp_path: Path) -> None:
    rows = cells()
    rows[10][1] = rows[10][3] = "abc"
    rows[400][2] = "nan"
    path = write(tmp_path / "log.csv", rows)
    recording = read(path, start=1.0, stop=3.0)
    assert len(recording) == 200 and recording.dropped == 0
    with refused(RecordingError, "bad-row", "row 402", "'q2'"):
        read(path, start=1.0)


@pytest.mark.parametrize(("window", "message"), [
    ({"start": 2.0, "stop": 1.0}, ("wrong-setting", "start = 2 s", "stop = 1 s")),
    ({"start": -1.0}, ("wrong-setting", "'start'")),
    ({"stop": float("nan")}, ("wrong-setting", "'stop'")),
    ({"start": "soon"}, ("wrong-setting", "'start'", "'soon'")),
    ({"start": 50.0, "stop": 60.0}, ("empty-window", "log.csv", "50 s", "60 s", "4.99 s")),
])
def test_a_bad_window_is_a_sentence(tmp_path: Path, window: dict[str, float], message: tuple[str, ...]) -> None:
    path = write(tmp_path / "log.csv", cells())
    with refused(RecordingError, *message):
        read(path, **window)
