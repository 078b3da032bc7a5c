"""Feasibility of published base vectors: Sousa, tables 4.9 and 6.1."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.consistency import Consistency
from dynid.consistency import test as is_possible
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten
from reproductions._sousa import FIRST, NEAREST, SECOND, WAM, three_links


def test_three_links_first_vector_is_possible() -> None:
    base = three_links()
    found = is_possible(Consistency(base.parameters, form="spatial", margin=0.0), FIRST, base)
    assert found.possible and found.certificate is None
    assert found.distance < 1e-9
    np.testing.assert_allclose(base.reduce(found.theta), FIRST, atol=1e-9)
    assert np.linalg.eigvalsh(ten.spatial_inertia(found.theta.reshape(3, 10))).min() >= 0


def test_three_links_second_vector_is_not_and_its_nearest_is_the_printed_one() -> None:
    base = three_links()
    # The infimum is approached as unseen masses grow: "heaviest" lets them.
    found = is_possible(Consistency(base.parameters, form="spatial", margin=0.0, heaviest=1e4), SECOND, base)
    assert not found.possible
    np.testing.assert_allclose(found.nearest, NEAREST, atol=1e-6)
    assert found.distance == pytest.approx(1.6497e-3, abs=1e-6)
    assert found.certificate is not None and found.certificate.verify()
    assert found.certificate.gap == pytest.approx(found.distance, rel=1e-4)


def test_three_links_with_the_triangle_inequality_the_first_is_off_too() -> None:
    base = three_links()
    found = is_possible(Consistency(base.parameters, form="pseudo", margin=0.0), FIRST, base)
    assert found.distance == pytest.approx(1.9e-4, abs=5e-6)
    assert found.certificate is not None and found.certificate.verify()
    assert "link3" in found.certificate.reasons[0]


def test_wam_weighted_least_squares_is_infeasible_the_others_not() -> None:
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    assert WAM.shape == (len(base), 4)
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    found = [is_possible(consistency, column, base, tolerance=1e-4) for column in WAM.T]
    assert [one.possible for one in found] == [False, True, True, True]
    assert found[0].distance ** 2 == pytest.approx(0.00773, abs=1e-5)
    np.testing.assert_allclose(found[0].nearest, WAM[:, 1], atol=1e-4)
    assert found[0].certificate is not None and found[0].certificate.verify()
    assert any("Fc2" in reason for reason in found[0].reasons)
    for one in found:
        assert consistency.smallest_eigenvalue(one.theta) >= 0
