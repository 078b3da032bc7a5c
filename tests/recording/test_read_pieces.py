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
from refusals import refused

from dynid.arrays import lies_on_disk
from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.recording import Recording
from dynid.recording.sample_preparation import prepare
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


def check(pieces: Recording, whole: Recording) -> None:
    """The same recording, in files instead of in memory."""
    assert pieces.joints == whole.joints and pieces.source == whole.source
    for name in ("t", "q", "dq", "tau"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
        assert lies_on_disk(getattr(pieces, name)) and not lies_on_disk(getattr(whole, name))


@pytest.mark.parametrize("kind", ["csv", "csv without pyarrow", "npz", "npy", "h5", "parquet"])
@pytest.mark.parametrize("at_once", [1, 64, 100, 500, 1000])
def test_pieces_are_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, at_once: int) -> None:
    path = write(tmp_path, kind.split()[0], motion(500))
    if kind == "csv without pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    columns = {"time": 1, "position": "2-3", "velocity": "4-5", "torque": "6-7"} if kind == "npy" else {}
    check(read(path, at_once=at_once, **columns), read(path, **columns))


@settings(max_examples=30, deadline=None)
@given(samples=st.integers(1, 300), at_once=st.integers(1, 120))
def test_any_split(tmp_path_factory: pytest.TempPathFactory, samples: int, at_once: int) -> None:
    path = write_npz(motion(samples), tmp_path_factory.mktemp("any") / "log.npz")
    check(read(path, at_once=at_once), read(path))


def test_flat_files_and_bad_rows_and_repeats_across_borders(tmp_path: Path) -> None:
    log = motion(300)
    lines = write_csv(log, tmp_path / "log.csv").read_text().splitlines()
    cells = lines[150].split(",")
    lines[150] = ",".join([*cells[:-1], "nan"])
    lines = [*lines[:101], lines[100], *lines[101:], "9.9,1"]  # the 100th row twice, a bad one, a cut one
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    whole = read(tmp_path / "log.csv", bad_rows="drop")
    assert len(whole) == 299
    for at_once in (50, 100, 101, 150):
        pieces = read(tmp_path / "log.csv", at_once=at_once, bad_rows="drop")
        check(pieces, whole)
        notes = " ".join(pieces.notes)
        assert "row 152" in notes and "row 303" in notes and "1 rows repeat the previous time stamp" in notes
        assert "all are copies" in notes
    with refused(RecordingError, "bad-row", "log.csv", "row 152", "'torque_b'"):
        read(tmp_path / "log.csv", at_once=50)


def test_panda_flat_files_in_pieces(data: Callable[..., Path]) -> None:
    rules = Path(__file__).parents[2] / "reproductions" / "mappings" / "panda.toml"
    check(read(data("panda"), rules, at_once=6000), read(data("panda"), rules))


def test_notes_are_about_the_whole_log(tmp_path: Path) -> None:
    log = motion(300)
    still = Recording(log.t, log.q * [1, 0], log.tau * [0, 1], joints=("a", "b"))
    path = write_csv(still, tmp_path / "log.csv")
    assert read(path, at_once=100).notes == read(path).notes
    assert any("joint b never moved" in note for note in read(path, at_once=100).notes)


def test_degrees_stop_at_the_first_piece(tmp_path: Path) -> None:
    log = motion(300)
    path = write_csv(Recording(log.t, 50 * log.q, log.tau, joints=("a", "b")), tmp_path / "log.csv")
    path.write_text(path.read_text() + "not,a,row\n")
    robot = Robot("arm", tuple(Joint(name, "revolute", i - 1, lower=-3, upper=3) for i, name in enumerate("ab")),
                  (Body("a"), Body("b")))
    with refused(RecordingError, "bad-recording", '"deg"'):
        read(path, robot=robot, at_once=100)


def test_a_large_file_is_not_loaded(tmp_path: Path) -> None:
    """Neither the file nor what is read of it is held in memory."""
    path = write_npz(motion(200_000), tmp_path / "log.npz")
    size = path.stat().st_size
    tracemalloc.start()
    recording = read(path, at_once=5000)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(recording) == 200_000 and held < size / 50 and peak < size / 2  # the clock alone is looked at whole


def test_an_impossible_piece_is_refused(tmp_path: Path) -> None:
    with refused(RecordingError, "bad-block-size"):
        read(tmp_path / "log.csv", at_once=0)


@pytest.mark.parametrize("options", [
    {}, {"method": "savitzky-golay", "cutoff": 12.0}, {"method": "kalman", "cutoff": 12.0},
    {"method": "none", "torque_cutoff": "none"}, {"velocity": "measured", "cutoff": 10.0}, {"thin": 3, "cutoff": 12.0}])
def test_preparing_in_files_is_preparing_in_memory(tmp_path: Path, options: dict[str, object]) -> None:
    rng = np.random.default_rng(5)
    t = (np.arange(6000) + rng.uniform(-0.2, 0.2, 6000)) / 250.0
    w = 2 * np.pi * np.array([0.2, 0.5])
    q, dq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w)
    log = Recording(t - t[0], q + 1e-5 * rng.normal(size=q.shape), -w ** 2 * q + 0.3 * dq, dq, joints=("a", "b"))
    path = write_npz(log, tmp_path / "log.npz")
    whole, pieces = (prepare(read(path, at_once=at_once), **options) for at_once in (None, 700))
    assert pieces.settings == whole.settings and pieces.steps == whole.steps
    for name in ("t", "q", "dq", "ddq", "tau", "keep", "segments"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))
    assert options.get("thin") or all(lies_on_disk(getattr(pieces, name))
                                      for name in ("q", "dq", "ddq", "tau", "keep"))
