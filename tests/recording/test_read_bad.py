"""Bad logs: each gives a sentence with file and row or joint, or notes that say what was left out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.robot import Body, Joint, Robot

NAMES = ("t", "q1", "q2", "tau1", "tau2")


@pytest.fixture
def rows() -> list[list[str]]:
    """A clean log of 200 rows at 100 Hz, as cells."""
    t = np.arange(200) * 0.01
    table = np.column_stack([t, np.sin(t), np.cos(2 * t), 3 * np.cos(t), 2 * np.sin(3 * t) + 1])
    return [[repr(value) for value in row] for row in table.tolist()]


@pytest.fixture(autouse=True, params=["pyarrow", "numpy only"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numpy only":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


def write(path: Path, rows: list[list[str]], end: str = "\n") -> Path:
    path.write_text("\n".join(",".join(row) for row in [list(NAMES), *rows]) + end)
    return path


@pytest.mark.parametrize(("cell", "column", "named"), [
    ("1e282", 4, ("'tau2'", "1e+282", "torque")),
    ("1e7", 1, ("'q1'", "1e+07", "position")),
    ("nan", 2, ("'q2'", "nan")),
    ("inf", 3, ("'tau1'", "inf")),
    ("", 2, ("'q2'",)),
    ("abc", 1, ("'q1'", "'abc'")),
    ("1_0", 1, ("'q1'", "'1_0'")),
    ("nan", 0, ("'t'", "nan")),
    ("1e282", 0, ("'t'", "1e+282")),
])
def test_a_bad_cell_is_named_or_its_row_dropped(tmp_path: Path, rows: list[list[str]], cell: str, column: int,
                                                named: tuple[str, ...]) -> None:
    rows[120][column] = cell  # the 121st row after the header, row 122 of the file
    path = write(tmp_path / "log.csv", rows)
    with refused(RecordingError, "bad-row", "log.csv row 122", *named, "bad_rows"):
        read(path)
    recording = read(path, bad_rows="drop")
    assert len(recording) == 199
    np.testing.assert_allclose(recording.t, np.delete(np.arange(200) * 0.01, 120))
    assert any(note.startswith("1 of 200 rows ignored: ") and "row 122" in note for note in recording.notes)


def test_many_bad_rows_are_counted(tmp_path: Path, rows: list[list[str]]) -> None:
    for i in (3, 50, 51, 52, 199):
        rows[i][3] = "nan"
    recording = read(write(tmp_path / "log.csv", rows), bad_rows="drop")
    assert len(recording) == 195
    note = next(note for note in recording.notes if "ignored" in note)
    assert note.startswith("5 of 200") and "row 5" in note and "row 52" in note and note.endswith("and 2 more")
    for row in rows:
        row[1] = "nan"
    with refused(RecordingError, "no-usable-row"):
        read(write(tmp_path / "log.csv", rows), bad_rows="drop")


@pytest.mark.parametrize("cut", [",0.1", ",0.1,0.2,0.3", ""])
def test_a_truncated_last_line(tmp_path: Path, rows: list[list[str]], cut: str) -> None:
    path = write(tmp_path / "log.csv", rows, end="\n2.0" + cut)
    have = 1 + cut.count(",")
    with refused(RecordingError, "bad-row", "log.csv row 202", f"'{NAMES[have - 1]}'"):
        read(path)
    recording = read(path, bad_rows="drop")
    assert len(recording) == 200
    assert any("1 of 201 rows ignored" in note and "row 202" in note for note in recording.notes)


def test_two_rows_in_one_line_and_a_missing_line_end(tmp_path: Path, rows: list[list[str]]) -> None:
    rows[10] += rows[11]
    with refused(RecordingError, "bad-row", "log.csv", "row 12", "10 cells"):
        read(write(tmp_path / "log.csv", rows))
    rows[10] = rows[10][:5]
    recording = read(write(tmp_path / "log.csv", rows, end=""))
    assert len(recording) == 200
    assert any("no line end" in note for note in recording.notes)


def test_rows_are_counted_as_an_editor_does(tmp_path: Path, rows: list[list[str]]) -> None:
    text = ["# made by hand", "", ",".join(NAMES), *(",".join(row) for row in rows[:50]), "", "# pause",
            *(",".join(row) for row in rows[50:])]
    text[60] = "0.5x,1,1,1,1"
    (tmp_path / "log.csv").write_text("\n".join(text) + "\n")
    with refused(RecordingError, "bad-row", "log.csv", "row 61", "'t'", "'0.5x'"):
        read(tmp_path / "log.csv")


def test_time_running_backwards(tmp_path: Path, rows: list[list[str]]) -> None:
    rows[80][0] = "0.2"
    path = write(tmp_path / "log.csv", rows)
    for bad_rows in ("error", "drop"):
        with refused(RecordingError, "time-backwards", "log.csv", "row 82", "0.790000 s", "0.200000 s"):
            read(path, bad_rows=bad_rows)


def test_duplicated_stamps(tmp_path: Path, rows: list[list[str]]) -> None:
    copies = [*rows[:60], rows[59], rows[59], *rows[60:]]
    recording = read(write(tmp_path / "log.csv", copies))
    assert len(recording) == 200
    assert any("2 rows repeat the" in note and "row 62, 63" in note and "all are copies" in note
               for note in recording.notes)
    copies[60] = [rows[59][0], "0.5", "0.5", "0.5", "0.5"]
    recording = read(write(tmp_path / "log.csv", copies))
    np.testing.assert_allclose(recording.q[59:61, 0], np.sin([0.59, 0.60]))
    assert any("2 of them have other values" in note for note in recording.notes)
    coarse = [[f"{float(row[0]) // 0.02 * 0.02:.2f}", *row[1:]] for row in rows]
    assert any("clock is too coarse: give the rate" in note for note in read(write(tmp_path / "c.csv", coarse)).notes)


def test_jitter_gaps_and_a_changing_rate_are_measured(tmp_path: Path, rows: list[list[str]]) -> None:
    t = np.concatenate([np.arange(100) * 0.01, 1.5 + np.arange(100) * 0.03])
    for row, time in zip(rows, t, strict=True):
        row[0] = repr(float(time))
    text = " ".join(read(write(tmp_path / "log.csv", rows)).notes)
    assert "intervals from 10 to 510 ms" in text
    assert "50 % off by more than half" in text
    assert "1 gap longer than 5 intervals, the longest 0.51 s at t = 0.99 s" in text
    assert "rate changes along the log, from 33.33 to 100 Hz" in text
    slow = [[repr(1000.0 * i), *row[1:]] for i, row in enumerate(rows)]
    with refused(RecordingError, "time-unit", "1000 s", "--set log.time_unit=us"):
        read(write(tmp_path / "slow.csv", slow))
    assert any("log.time_unit" in note for note in read(tmp_path / "slow.csv", time_unit="s").notes)


def test_torque_all_zero_and_joints_that_stand_still(tmp_path: Path, rows: list[list[str]]) -> None:
    for row in rows:
        row[2], row[3], row[4] = "0.5", "0", "1.25"
    recording = read(write(tmp_path / "log.csv", rows))
    assert any("joint 2 never moved" in note for note in recording.notes)
    assert any("torque of joint 1 is zero in every row" in note for note in recording.notes)
    assert any("torque of joint 2 is the same in every row" in note for note in recording.notes)


def test_ten_samples_and_one(tmp_path: Path, rows: list[list[str]]) -> None:
    assert any("only 10 samples" in note for note in read(write(tmp_path / "log.csv", rows[:10])).notes)
    assert len(read(write(tmp_path / "log.csv", rows[:1]))) == 1


def robot(limit: float) -> Robot:
    return Robot("arm", tuple(Joint(name, "revolute", i - 1, lower=-limit, upper=limit)
                              for i, name in enumerate(("base", "elbow"))), (Body("a"), Body("b")))


def test_degrees_given_as_radians(tmp_path: Path, rows: list[list[str]]) -> None:
    for row in rows:
        row[1], row[2] = (repr(100 * float(cell)) for cell in row[1:3])
    path = write(tmp_path / "log.csv", rows)
    with refused(RecordingError, "bad-recording", "elbow", "100 rad", "--set log.unit=deg"):
        read(path, robot=robot(2.9))
    assert np.max(np.abs(read(path, robot=robot(2.9), unit="deg").q)) == pytest.approx(np.deg2rad(100), rel=1e-3)
    assert any("probably in degrees" in note for note in read(path, robot=robot(2.9), unit="rad").notes)
    assert any("probably in degrees" in note for note in read(path, robot=robot(np.inf)).notes)
    with refused(RecordingError, "bad-recording", "elbow", "--set log.side=motor"):
        read(path, robot=robot(0.1))


def test_positions_outside_the_limits_are_noted(tmp_path: Path, rows: list[list[str]]) -> None:
    notes = read(write(tmp_path / "log.csv", rows), robot=robot(0.7)).notes
    assert any("joint elbow goes to -1 and 1, outside its limits -0.7 and 0.7" in note for note in notes)


def test_files_of_different_length(tmp_path: Path, rows: list[list[str]]) -> None:
    write(tmp_path / "a.csv", rows)
    path = write(tmp_path / "b.csv", rows[:150])
    rules = {"time": "t", "position": "q{i}", "torque": {"file": "a.csv", "columns": "tau{i}"}}
    with refused(RecordingError, "lengths-differ", "b.csv", "150 samples", "a.csv", "--set log.bad_rows"):
        read(path, rules)
    recording = read(path, rules, bad_rows="drop")
    assert len(recording) == 150 and any("the remaining rows are ignored" in note for note in recording.notes)


def test_flat_files(tmp_path: Path, rows: list[list[str]]) -> None:
    (tmp_path / "q.txt").write_text("\n".join(f"{row[1]}\n{row[2]}" for row in rows) + "\n")
    (tmp_path / "tau.txt").write_text("\n".join(f"{row[3]}\n{row[4]}" for row in rows) + "\n")
    rules = {"rate": 100, "position": {"file": "q.txt", "width": 2}, "torque": {"file": "tau.txt", "width": 2}}
    np.testing.assert_array_equal(read(tmp_path, rules).tau, np.array(rows, dtype=float)[:, 3:])
    lines = (tmp_path / "q.txt").read_text().splitlines()
    for text, message in (("1e282", ("bad-row", "q.txt", "row 8", "'values[2]'", "1e+282")),
                          ("x", ("bad-row", "q.txt", "row 8", "'values[2]'", "'x'"))):
        (tmp_path / "q.txt").write_text("\n".join([*lines[:7], text, *lines[8:]]) + "\n")
        with refused(RecordingError, *message):
            read(tmp_path, rules)
        assert len(read(tmp_path, rules, bad_rows="drop")) == 199
    (tmp_path / "q.txt").write_text("\n".join(lines[:-1]) + "\n")
    with refused(RecordingError, "bad-row", "q.txt", "row 399", "2 numbers"):
        read(tmp_path, rules)
    assert len(read(tmp_path, rules, bad_rows="drop")) == 199


def test_a_velocity_that_is_never_a_number_counts_as_not_logged(tmp_path: Path, rows: list[list[str]]) -> None:
    table = np.array(rows, dtype=float)
    np.savez(tmp_path / "log.npz", t=table[:, 0], q=table[:, 1:3], dq=np.full((200, 2), np.nan), tau=table[:, 3:])
    recording = read(tmp_path / "log.npz")
    assert recording.dq is None
    assert any("velocity is not a number in any row" in note for note in recording.notes)


def test_bad_samples_in_arrays(tmp_path: Path, rows: list[list[str]]) -> None:
    table = np.array(rows, dtype=float)
    table[30, 4] = np.nan
    np.savez(tmp_path / "log.npz", t=table[:, 0], q=table[:, 1:3], tau=table[:, 3:])
    with refused(RecordingError, "bad-row", "log.npz", "sample 31", "'tau[2]'", "nan"):
        read(tmp_path / "log.npz")
    np.savez(tmp_path / "short.npz", t=table[:150, 0], q=table[:, 1:3], tau=table[:, 3:])
    with refused(RecordingError, "lengths-differ", "'q'", "200", "2", "150"):
        read(tmp_path / "short.npz")


def test_empty_cells_in_parquet(tmp_path: Path, rows: list[list[str]], request: pytest.FixtureRequest) -> None:
    if sys.modules.get("pyarrow", pa) is None:
        pytest.skip("Parquet needs pyarrow")
    columns = dict(zip(NAMES, np.array(rows, dtype=float).T.tolist(), strict=True))
    columns["tau1"][40] = None
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    with refused(RecordingError, "bad-row", "log.parquet", "row 41", "'tau1'"):
        read(tmp_path / "log.parquet")
    assert len(read(tmp_path / "log.parquet", bad_rows="drop")) == 199
