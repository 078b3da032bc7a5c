"""Trajectory files: what was written is read again, in the robot's order of joints, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import FourierSeries, read_trajectory, write_trajectory

SERIES = FourierSeries(np.array([[0.3, 0.1], [0.2, -0.4]]), np.zeros((2, 2)), np.array([0.5, -0.1]), 4.0)


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"motion.{ending}"
    write_trajectory(SERIES, path, rate=50.0, joints=("a", "b"))
    reference = read_trajectory(path, ("b", "a"))
    t, w = np.linspace(0.0, 4.0, 201), 2 * np.pi / 4.0
    q = 0.5 + 0.3 / w * np.sin(w * t) + 0.1 / (2 * w) * np.sin(2 * w * t)  # joint a, Ardiani, eq. 1.39
    dq = 0.3 * np.cos(w * t) + 0.1 * np.cos(2 * w * t)
    assert reference.rate == pytest.approx(50.0)
    np.testing.assert_allclose(reference.q[:, 1], q, atol=1e-11)
    np.testing.assert_allclose(reference.dq[:, 1], dq, atol=1e-11)


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "motion.csv"
    write_trajectory(SERIES, path, joints=("a", "b"))
    with refused(DynidError, "no-column", "'q_c'"):
        read_trajectory(path, ("a", "c"))
    with refused(DynidError, "wrong-number-of-names", "2", "1"):
        write_trajectory(SERIES, path, joints=("a",))
    with refused(DynidError, "unknown-extension", ".csv", ".npz"):
        read_trajectory(tmp_path / "motion.yaml", ("a", "b"))
    path.write_text("t,q_a\n0,1\n0.1,2\n0.5,3\n")
    with refused(DynidError, "uneven-time"):
        read_trajectory(path, ("a",))
