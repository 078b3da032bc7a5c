"""Motor positions and sensed torques: read, written, put beside the links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.recording.measured import add_motor_side
from dynid.recording.write import write_csv, write_npz


def _recording() -> Recording:
    t = np.arange(50) / 100.0
    q = np.column_stack([np.sin(3.0 * t), np.cos(2.0 * t)])
    return Recording(t, q, 5.0 * q, motor_position=1.01 * q, sensed_torque=4.0 * q, joints=("shoulder", "elbow"))


@pytest.mark.parametrize("write", [write_csv, write_npz])
def test_what_is_written_is_read_again(write, tmp_path: Path) -> None:
    log = _recording()
    again = read(write(log, tmp_path / ("log.csv" if write is write_csv else "log.npz")))
    for name in ("q", "tau", "motor_position", "sensed_torque"):
        np.testing.assert_allclose(getattr(again, name), getattr(log, name), rtol=1e-14)


def test_motor_positions_of_the_motor_side_in_degrees(tmp_path: Path) -> None:
    log, ratio = _recording(), np.array([100.0, -80.0])
    columns = {"t": log.t, **{f"q{j}": np.degrees(log.q[:, j]) for j in range(2)},
               **{f"m{j}": np.degrees(log.motor_position[:, j] * ratio[j]) for j in range(2)},
               **{f"i{j}": log.tau[:, j] for j in range(2)}, **{f"s{j}": log.sensed_torque[:, j] for j in range(2)}}
    path = tmp_path / "log.csv"
    path.write_text(",".join(columns) + "\n" + "\n".join(
        ",".join(repr(float(x)) for x in row) for row in np.column_stack(list(columns.values()))))
    found = read(path, time="t", position=["q0", "q1"], torque=["i0", "i1"], motor_position=["m0", "m1"],
                 sensed_torque=["s0", "s1"], unit="deg", motor_side="motor", ratio=[100.0, -80.0])
    np.testing.assert_allclose(found.motor_position, log.motor_position, atol=1e-12)
    np.testing.assert_allclose(found.q, log.q, atol=1e-12)
    np.testing.assert_allclose(found.sensed_torque, log.sensed_torque, atol=1e-12)
    np.testing.assert_allclose(found.tau, log.tau, atol=1e-12)
    with refused(RecordingError, "wrong-setting", "motor_position"):
        read(path, time="t", position=["q0", "q1"], torque=["i0", "i1"], motor_position=["m0", "m1"], side="motor",
             ratio=100.0)


def test_motors_stand_behind_the_links() -> None:
    both = add_motor_side(_recording(), [1])
    assert both.joints == ("shoulder", "elbow", "elbow motor")
    np.testing.assert_array_equal(both.q, np.hstack([_recording().q, _recording().motor_position[:, 1:]]))
    np.testing.assert_array_equal(both.tau[:, 2], both.tau[:, 1])
    assert both.between(0.1, 0.2).sensed_torque.shape == (10, 3)


def test_a_log_without_motor_positions_is_refused() -> None:
    log = _recording()
    with refused(RecordingError, "no-motor-positions"):
        add_motor_side(Recording(log.t, log.q, log.tau), [0])
