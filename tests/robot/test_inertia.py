"""The ten numbers and their other forms, both ways, against Pinocchio and closed forms."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robots import random_inertia, random_pose

from dynid.errors import ModelError
from dynid.robot import inertia as ten

seeds = st.integers(0, 2**31)


def test_a_box() -> None:
    """Mass 12 kg, edges 1, 2, 3 m, centre at (1, 0, 0): Ixx = m (b^2 + c^2) / 12 and so on, Steiner on y and z."""
    numbers = ten.from_central(12.0, [1, 0, 0], np.diag([13, 10, 5]))
    np.testing.assert_allclose(numbers, [13, 0, 0, 22, 0, 17, 12, 0, 0, 12])
    # Second moments of the mass about the origin: int x^2 dm = m a^2 / 12 + m, ...
    np.testing.assert_allclose(ten.pseudo_inertia(numbers),
                               [[13, 0, 0, 12], [0, 4, 0, 0], [0, 0, 9, 0], [12, 0, 0, 12]])


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_both_ways(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = np.array([random_inertia(rng) for _ in range(3)])
    np.testing.assert_allclose(ten.from_central(*ten.to_central(numbers)), numbers, atol=1e-12)
    np.testing.assert_allclose(ten.from_pseudo_inertia(ten.pseudo_inertia(numbers)), numbers, atol=1e-12)
    np.testing.assert_array_equal(ten.from_pinocchio(ten.to_pinocchio(numbers)), numbers)
    mass, com, full = ten.to_mujoco(numbers)
    inertia = ten.symmetric(full[:, [0, 3, 4, 1, 5, 2]])
    np.testing.assert_allclose(ten.from_central(mass, com, inertia), numbers, atol=1e-12)
    np.testing.assert_allclose(ten.from_log_cholesky(ten.to_log_cholesky(numbers)), numbers, rtol=1e-9, atol=1e-12)
    free = rng.normal(size=10)
    assert np.linalg.eigvalsh(ten.pseudo_inertia(ten.from_log_cholesky(free))).min() > 0


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_against_pinocchio(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers, pose = random_inertia(rng), random_pose(rng)
    body = pin.Inertia.FromDynamicParameters(ten.to_pinocchio(numbers))
    mass, com, central = ten.to_central(numbers)
    np.testing.assert_allclose(body.mass, mass)
    np.testing.assert_allclose(body.lever, com, atol=1e-12)
    np.testing.assert_allclose(body.inertia, central, atol=1e-12)
    # Pinocchio writes the linear part first.
    swap = np.r_[3:6, 0:3]
    np.testing.assert_allclose(ten.spatial_inertia(numbers), body.matrix()[np.ix_(swap, swap)], atol=1e-12)
    moved = pin.SE3(pose).act(body).toDynamicParameters()
    np.testing.assert_allclose(ten.change_frame(pose) @ numbers, ten.from_pinocchio(moved), atol=1e-11)
    pseudo = pin.PseudoInertia.FromInertia(body).toMatrix()
    np.testing.assert_allclose(ten.pseudo_inertia(numbers), pseudo, atol=1e-12)
    # Pinocchio's log-Cholesky has the same ten coordinates in the same order.
    theirs = pin.LogCholeskyParameters(ten.to_log_cholesky(numbers)).toDynamicParameters()
    np.testing.assert_allclose(ten.from_pinocchio(theirs), numbers, rtol=1e-9, atol=1e-12)


def test_skew_and_symmetric() -> None:
    v, w = np.array([1.0, 2, 3]), np.array([-2.0, 5, 0.5])
    np.testing.assert_allclose(ten.skew(v) @ w, np.cross(v, w))
    matrix = ten.symmetric([1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(matrix, [[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    np.testing.assert_array_equal(ten.entries(matrix), [1, 2, 3, 4, 5, 6])


def test_what_cannot_be_written_otherwise() -> None:
    with refused(ModelError, "bad-inertias"):
        ten.pseudo_inertia(np.zeros(9))
    with refused(ModelError, "no-mass"):
        ten.to_central([0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
    with refused(ModelError, "not-consistent"):
        ten.to_log_cholesky(ten.from_central(1.0, [0, 0, 0], np.diag([0.1, 0.1, 0.3])))
    mass, com, central = ten.to_central(np.zeros(10))
    assert mass == 0 and not com.any() and not central.any()
