"""Signals of several topics of one bag on one time base, against numpy's interpolation of what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bags import new_bag
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.log_reading import read
from dynid.recording.topics import TopicSeries
from dynid.recording.write import write_csv, write_npz
from dynid.robot import Body, Joint, Robot

JOINTS = ("a1", "a2")
ARM = Robot("arm", tuple(Joint(name, "revolute", i - 1) for i, name in enumerate(JOINTS)),
            tuple(Body(name) for name in JOINTS))
MEASURED, COMMANDED, EXTERNAL = "/jointMeasured", "/jointCommanded", "/jointExternal"
MAPPING: dict[str, Any] = {
    "position": {"topic": MEASURED}, "velocity": {"topic": MEASURED}, "torque": {"topic": MEASURED},
    "reference": {"topic": COMMANDED}, "reference_velocity": {"topic": COMMANDED},
    "target_torque": {"topic": COMMANDED}, "external_torque": {"topic": EXTERNAL, "columns": "effort/{joint}"},
    "wrench": {"topic": "/FT_sensor"}}


def signal(t: np.ndarray, seed: float) -> np.ndarray:
    """(rows, 6): position, velocity and effort of two joints, no two alike."""
    return np.column_stack([np.sin((seed + k) * t + k) for k in range(6)])


def times(rate: float, start: float, stop: float, gap: tuple[float, float] = (np.inf, np.inf)) -> np.ndarray:
    t = np.arange(start, stop, 1.0 / rate)
    return t[(t <= gap[0]) | (t >= gap[1])]


def write_bag(path: Path, kind: str, topics: dict[str, tuple[np.ndarray, np.ndarray]], wrench: np.ndarray) -> Path:
    with new_bag(path, kind, start=1_700_000_000_000_000_000) as bag:
        state, stamped, force, vector = bag.types("sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped",
                                                  "geometry_msgs/msg/Wrench", "geometry_msgs/msg/Vector3")
        for name, (t, x) in topics.items():
            topic = bag.topic(name, state)
            order = [1, 0] if name == COMMANDED else [0, 1]  # joints by name, not by place
            for moment, row in zip(t, x.reshape(-1, 3, 2), strict=True):
                bag.write(topic, state, moment, lambda head, row=row, order=order: state(
                    head, [JOINTS[i] for i in order], row[0, order], row[1, order], row[2, order]))
        sensor = bag.topic("/FT_sensor", stamped)
        for t in wrench:
            bag.write(sensor, stamped, t,
                      lambda head, t=t: stamped(head, force(vector(t, 2.0, 3.0), vector(4.0, 5.0, t))))
    return path


@pytest.mark.parametrize("kind", ["ros1", "mcap"])
def test_topics_at_other_rates_come_to_the_times_of_the_positions(tmp_path: Path, kind: str) -> None:
    own, asked, outside = times(200.0, 0.0, 3.0), times(333.0, -0.001, 3.1), times(80.0, -0.01, 3.05)
    topics = {MEASURED: (own, signal(own, 1.0)), COMMANDED: (asked, signal(asked, 2.0)),
              EXTERNAL: (outside, signal(outside, 3.0))}
    path = write_bag(tmp_path / ("log.bag" if kind == "ros1" else "log"), kind, topics, times(500.0, -0.01, 3.1))
    found, by_preset = read(path, MAPPING, ARM), read(path, {"preset": "messii"}, ARM)
    assert len(found) == len(own)
    for name in ("t", "q", "dq", "tau", "reference", "reference_velocity", "target_torque", "external_torque"):
        np.testing.assert_array_equal(getattr(by_preset, name), getattr(found, name))
    assert found.reference is not None and found.reference_velocity is not None
    assert found.target_torque is not None and found.external_torque is not None and found.wrench is not None
    np.testing.assert_allclose(found.q, signal(own, 1.0)[:, :2], atol=1e-12)
    for columns, array, t, seed in ((slice(0, 2), found.reference, asked, 2.0),
                                    (slice(2, 4), found.reference_velocity, asked, 2.0),
                                    (slice(4, 6), found.target_torque, asked, 2.0),
                                    (slice(4, 6), found.external_torque, outside, 3.0)):
        x = signal(t, seed)[:, columns]
        truth = np.column_stack([np.interp(own, t, x[:, j]) for j in range(2)])
        np.testing.assert_allclose(array, truth, atol=1e-7)  # stamps are whole nanoseconds
    np.testing.assert_allclose(found.wrench[:, 0] - found.wrench[0, 0], own, atol=1e-6)
    text = " ".join(found.notes)
    assert "/jointCommanded has 333 Hz" in text and "/jointExternal has 80 Hz" in text and "gap" not in text
    assert found.signals == ("time", "position", "velocity", "torque", "reference", "reference_velocity", "wrench",
                             "target_torque", "external_torque")
    assert "the log contains time, position, velocity, torque, reference" in text


def test_rows_in_a_gap_of_another_topic_or_outside_it_are_left_out_and_counted(tmp_path: Path) -> None:
    own, asked = times(200.0, 0.0, 3.0), times(100.0, 0.5, 2.5, gap=(1.0, 1.4))
    topics = {MEASURED: (own, signal(own, 1.0)), COMMANDED: (asked, signal(asked, 2.0)),
              EXTERNAL: (own, signal(own, 3.0))}
    path = write_bag(tmp_path / "log.bag", "ros1", topics, own)
    found = read(path, MAPPING, ARM)
    first, last = asked[0] - 0.01, asked[-1] + 0.01  # one interval beyond the ends counts
    before, after = asked[asked <= 1.0 + 1e-9].max(), asked[asked >= 1.4 - 1e-9].min()
    kept = own[(own >= first - 1e-9) & (own <= last + 1e-9) & ((own <= before + 1e-9) | (own >= after - 1e-9))]
    np.testing.assert_allclose(found.t, kept - kept[0], atol=1e-6)
    note = next(note for note in found.notes if note.startswith(COMMANDED))
    assert f"1 gap of up to {after - before:.3g} s" in note and f"{len(own) - len(kept)} of {len(own)} rows" in note
    pieces = read(path, MAPPING, ARM, at_once=37)
    assert pieces.reference is not None and found.reference is not None
    np.testing.assert_array_equal(pieces.reference, found.reference)
    np.testing.assert_array_equal(pieces.t, found.t)


def test_what_reaches_a_stamp() -> None:
    series = TopicSeries("/x", np.array([0, 10, 20, 30, 90, 100]), {("position", "a"): np.arange(6.0)})
    stamps = np.array([-11, -10, 0, 5, 29, 30, 31, 89, 90, 95, 110, 111])
    assert series.reaches(stamps).tolist() == [False, True, True, True, True, True, False, False, True, True, True,
                                               False]
    np.testing.assert_array_equal(series.at(np.array([5, 15]), "position", "a"), [0.5, 1.5])


def test_topics_that_are_not_there_are_named(tmp_path: Path) -> None:
    t = times(100.0, 0.0, 1.0)
    path = write_bag(tmp_path / "log.bag", "ros1", {MEASURED: (t, signal(t, 1.0)), COMMANDED: (t, signal(t, 2.0))}, t)
    with refused(RecordingError, "bad-recording", "'/wrong'", "reference", "/jointCommanded"):
        read(path, {"position": {"topic": MEASURED}, "reference": {"topic": "/wrong"}}, ARM)
    with refused(RecordingError, "wrong-setting", "'position'", "topic"):
        read(path, {"position": {"topic": MEASURED, "file": "x.bag"}}, ARM)
    log = tmp_path / "log.csv"
    log.write_text("time,q1,q2,tau1,tau2\n0,0,0,0,0\n1,0,0,0,0\n")
    with refused(RecordingError, "bad-recording", "'/x'"):
        read(log, {"position": "q{i}", "torque": "tau{i}", "time": "time", "reference": {"topic": "/x"}}, ARM)
    outside = write_bag(tmp_path / "outside.bag", "ros1", {MEASURED: (t, signal(t, 1.0)),
                                                           EXTERNAL: (t, signal(t, 2.0))}, t)
    with refused(RecordingError, "not-a-torque", "outside.bag"):
        read(outside, {"position": {"topic": MEASURED}, "torque": {"topic": EXTERNAL}}, ARM)


@pytest.mark.parametrize("write", [write_csv, write_npz])
def test_commanded_and_external_torques_are_written_and_read_again(tmp_path: Path, write: Any) -> None:
    t = times(100.0, 0.0, 1.0)
    path = write_bag(tmp_path / "log.bag", "ros1", {MEASURED: (t, signal(t, 1.0)), COMMANDED: (t, signal(t, 2.0)),
                                                    EXTERNAL: (t, signal(t, 3.0))}, t)
    found = read(path, MAPPING, ARM)
    again = read(write(found, tmp_path / f"log.{'csv' if write is write_csv else 'npz'}"), robot=ARM)
    for name in ("q", "tau", "reference", "reference_velocity", "target_torque", "external_torque"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


@pytest.mark.parametrize("kind", ["csv", "parquet", "mat"])
def test_external_torques_by_columns_of_tables_and_arrays(tmp_path: Path, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import scipy.io

    t = times(100.0, 0.0, 1.0)
    x, path = signal(t, 1.0), tmp_path / f"log.{kind}"
    names = ["t", "p1", "p2", "c1", "c2", "x1", "x2"]
    columns: dict[str, Any] = {"time": "t", "position": "p{i}", "torque": "c{i}", "external_torque": "x{i}",
                               "torque_sign": -1}
    rows = np.column_stack([t, x])
    if kind == "csv":
        np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    elif kind == "parquet":
        pq.write_table(pa.table(dict(zip(names, rows.T, strict=True))), path)
    else:
        scipy.io.savemat(path, {"t": t, "p": x[:, :2], "c": x[:, 2:4], "x": x[:, 4:]})
        columns |= {"position": "p", "torque": "c", "external_torque": "x"}
    found = read(path, columns, ARM)
    assert found.external_torque is not None
    np.testing.assert_array_equal(found.external_torque, -x[:, 4:])  # as the torques turn, so do these
