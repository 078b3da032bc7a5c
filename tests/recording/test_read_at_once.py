"""A log read some rows at a time, into files, holds the same samples as the log read whole."""

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

from dynid.arrays import lies_on_disk
from dynid.errors import RecordingError
from dynid.recording.read import read
from dynid.recording.recording import Recording
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Body, Joint, Robot


def motion(samples: int, joints: str = "ab", seed: int = 4) -> Recording:
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.001, 0.003, samples))
    q, tau, dq = rng.normal(size=(3, samples, len(joints)))
    return Recording(t - t[0], q, tau, dq, joints=tuple(joints))


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


def check(spooled: Recording, whole: Recording) -> None:
    for name in ("t", "q", "dq", "tau"):
        array = getattr(spooled, name)
        assert lies_on_disk(array) and not lies_on_disk(getattr(whole, name))
        np.testing.assert_array_equal(array, getattr(whole, name))
    assert spooled.joints == whole.joints and spooled.source == whole.source


@pytest.mark.parametrize("kind", ["csv", "csv without pyarrow", "npz", "npy", "h5", "parquet"])
@pytest.mark.parametrize("rows", [1, 64, 100, 500, 1000])
def test_the_same_samples_from_every_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str,
                                            rows: int) -> None:
    path = write(tmp_path, kind.split()[0], motion(500))
    if kind == "csv without pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    columns = {"time": 1, "position": "2-3", "velocity": "4-5", "torque": "6-7"} if kind == "npy" else {}
    whole, spooled = read(path, **columns), read(path, at_once=rows, **columns)
    check(spooled, whole)
    assert spooled.notes == whole.notes


@settings(max_examples=30, deadline=None)
@given(samples=st.integers(1, 300), rows=st.integers(1, 120))
def test_any_split(tmp_path_factory: pytest.TempPathFactory, samples: int, rows: int) -> None:
    path = write_npz(motion(samples), tmp_path_factory.mktemp("any") / "log.npz")
    check(read(path, at_once=rows), read(path))


def test_bad_rows_and_repeats_across_borders(tmp_path: Path) -> None:
    log = motion(300)
    lines = write_csv(log, tmp_path / "log.csv").read_text().splitlines()
    cells = lines[150].split(",")
    lines[150] = ",".join([*cells[:-1], "nan"])
    lines = [*lines[:101], lines[100], *lines[101:], "9.9,1"]  # the 100th row twice, a bad one, a cut one
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    whole = read(tmp_path / "log.csv", bad_rows="drop")
    assert len(whole) == 299
    for rows in (50, 100, 101, 150):
        spooled = read(tmp_path / "log.csv", at_once=rows, bad_rows="drop")
        check(spooled, whole)
        notes = " ".join(spooled.notes)
        assert "row 152" in notes and "row 303" in notes and "1 rows repeat the time stamp" in notes
        assert "all are copies" in notes
    with pytest.raises(RecordingError, match="log.csv row 152: column 'torque_b' holds"):
        read(tmp_path / "log.csv", at_once=50)


def test_panda_flat_files(data: Callable[..., Path]) -> None:
    folder = data("panda")
    rules = Path(__file__).parents[2] / "reproductions" / "mappings" / "panda.toml"
    check(read(folder, rules, at_once=6000), read(folder, rules))


def test_notes_are_about_the_whole_log(tmp_path: Path) -> None:
    log = motion(300)
    still = Recording(log.t, log.q * [1, 0], log.tau * [0, 1], joints=("a", "b"))
    notes = read(write_csv(still, tmp_path / "log.csv"), at_once=100).notes
    assert sum("joint b never moved" in note for note in notes) == 1
    assert sum("torque of joint a is zero" in note for note in notes) == 1


def test_degrees_are_refused_at_the_first_rows(tmp_path: Path) -> None:
    log = motion(300)
    path = write_csv(Recording(log.t, 50 * log.q, log.tau, joints=("a", "b")), tmp_path / "log.csv")
    with path.open("a") as file:
        file.write("this, row, cannot, be, read\n")
    robot = Robot("arm", tuple(Joint(name, "revolute", i - 1, lower=-3, upper=3) for i, name in enumerate("ab")),
                  (Body("a"), Body("b")))
    with pytest.raises(RecordingError, match='set unit = "deg"'):
        read(path, robot=robot, at_once=100)


def test_a_large_file_is_not_loaded(tmp_path: Path) -> None:
    """NPZ members stay on disk, and what is read of them goes to other files: memory holds some rows of the signals,
    and the stamps, which are judged whole."""
    path = write_npz(motion(100_000, "abcdefg"), tmp_path / "log.npz")
    size = path.stat().st_size
    tracemalloc.start()
    read(path, at_once=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 4


@pytest.mark.parametrize("rows", [0, -1])
def test_less_than_one_row_at_a_time_is_refused(tmp_path: Path, rows: int) -> None:
    with pytest.raises(RecordingError, match=f"at_once = {rows}"):
        read(tmp_path / "log.csv", at_once=rows)
