"""A log in pieces holds the same samples as the log read at once."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import RecordingError
from dynid.recording.read import read
from dynid.recording.recording import Recording
from dynid.recording.stream import stream
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Body, Joint, Robot


def motion(samples: int, seed: int = 4) -> Recording:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.001, 0.003, samples))
    return Recording(t - t[0], rng.normal(size=(samples, 2)), rng.normal(size=(samples, 2)),
                     rng.normal(size=(samples, 2)), joints=("a", "b"))


def write(folder: Path, kind: str, log: Recording) -> Path:
    path = folder / f"log.{kind}"
    if kind == "csv":
        return write_csv(log, path)
    if kind == "npz":
        return write_npz(log, path)
    arrays = {"times": log.t, "positions": log.q, "velocities": log.dq, "torques": log.tau}
    if kind == "h5":
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    elif kind == "parquet":
        pq.write_table(pa.table({name: array if array.ndim == 1 else array.tolist() for name, array in arrays.items()}),
                       path, row_group_size=61)
    else:
        np.save(path, np.column_stack(list(arrays.values())))
    return path


def check(pieces: list[Recording], whole: Recording, rows: int, overlap: int) -> None:
    assert pieces[0].rows is not None and pieces[0].rows[0] == 0
    done = 0
    for piece in pieces:
        assert piece.rows is not None
        start, stop = piece.rows
        assert start == done and 0 < stop - start <= rows
        before, after = piece.overlap
        assert before == min(overlap, start) and after == min(overlap, len(whole) - stop)
        for name in ("t", "q", "dq", "tau"):
            np.testing.assert_array_equal(getattr(piece, name), getattr(whole, name)[start - before:stop + after])
        assert piece.notes[0] == f"samples {start + 1} to {stop} of the log"
        done = stop
    assert done == len(whole)


@pytest.mark.parametrize("kind", ["csv", "csv without pyarrow", "npz", "npy", "h5", "parquet"])
@pytest.mark.parametrize(("rows", "overlap"), [(100, 0), (100, 30), (64, 100), (500, 10), (1000, 10)])
def test_pieces_cover_the_file_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: int,
                                       overlap: int) -> None:
    path = write(tmp_path, kind.split()[0], motion(500))
    if kind == "csv without pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    columns = {"time": 1, "position": "2-3", "velocity": "4-5", "torque": "6-7"} if kind == "npy" else {}
    check(list(stream(path, rows=rows, overlap=overlap, **columns)), read(path, **columns), rows, overlap)


@settings(max_examples=30, deadline=None)
@given(samples=st.integers(1, 300), rows=st.integers(1, 120), overlap=st.integers(0, 150))
def test_any_split(tmp_path_factory: pytest.TempPathFactory, samples: int, rows: int, overlap: int) -> None:
    path = write_npz(motion(samples), tmp_path_factory.mktemp("any") / "log.npz")
    check(list(stream(path, rows=rows, overlap=overlap)), read(path), rows, overlap)


def test_flat_files_and_bad_rows_and_repeats_across_borders(tmp_path: Path) -> None:
    log = motion(300)
    lines = write_csv(log, tmp_path / "log.csv").read_text().splitlines()
    cells = lines[150].split(",")
    lines[150] = ",".join([*cells[:-1], "nan"])
    lines = [*lines[:101], lines[100], *lines[101:], "9.9,1"]  # the 100th row twice, a bad one, a cut one
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    whole = read(tmp_path / "log.csv", bad_rows="drop")
    assert len(whole) == 299
    for rows in (50, 100, 101, 150):
        pieces = list(stream(tmp_path / "log.csv", rows=rows, overlap=20, bad_rows="drop"))
        check(pieces, whole, rows, 20)
        notes = " ".join(note for piece in pieces for note in piece.notes)
        assert "row 152" in notes and "row 303" in notes and "1 rows repeat the time stamp" in notes
        assert "all are copies" in notes
    with pytest.raises(RecordingError, match="log.csv row 152: column 'torque_b' holds"):
        list(stream(tmp_path / "log.csv", rows=50))


def test_panda_flat_files_in_pieces(data: Callable[..., Path]) -> None:
    folder = data("panda")
    rules = Path(__file__).parents[2] / "reproductions" / "mappings" / "panda.toml"
    whole = read(folder, rules)
    pieces = list(stream(folder, rules, rows=6000, overlap=500))
    check(pieces, whole, 6000, 500)


def test_notes_about_the_whole_log_come_last(tmp_path: Path) -> None:
    log = motion(300)
    still = Recording(log.t, log.q * [1, 0], log.tau * [0, 1], joints=("a", "b"))
    pieces = list(stream(write_csv(still, tmp_path / "log.csv"), rows=100, overlap=0))
    assert not any("never moved" in note for piece in pieces[:-1] for note in piece.notes)
    assert any("joint b never moved" in note for note in pieces[-1].notes)
    assert any("torque of joint a is zero" in note for note in pieces[-1].notes)


def test_degrees_stop_the_stream(tmp_path: Path) -> None:
    log = motion(300)
    path = write_csv(Recording(log.t, 50 * log.q, log.tau, joints=("a", "b")), tmp_path / "log.csv")
    robot = Robot("arm", tuple(Joint(name, "revolute", i - 1, lower=-3, upper=3) for i, name in enumerate("ab")),
                  (Body("a"), Body("b")))
    with pytest.raises(RecordingError, match='set unit = "deg"'):
        next(stream(path, robot=robot, rows=100))


def test_a_large_file_is_not_loaded(tmp_path: Path) -> None:
    """NPZ members stay on disk: taking one small piece touches a small part of it."""
    path = write_npz(motion(200_000), tmp_path / "log.npz")
    size = path.stat().st_size
    tracemalloc.start()
    for _ in stream(path, rows=5000, overlap=100):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 4


@pytest.mark.parametrize(("rows", "overlap"), [(0, 0), (10, -1)])
def test_impossible_pieces(tmp_path: Path, rows: int, overlap: int) -> None:
    with pytest.raises(RecordingError, match="a stream needs rows"):
        stream(tmp_path / "log.csv", rows=rows, overlap=overlap)
