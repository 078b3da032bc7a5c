"""Tests with proof, the nearest possible vector, contradictory conditions."""

from __future__ import annotations

import numpy as np
import pytest
from consistency.problems import arm_problem, bodies, random_body
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from dynid.consistency import Box, Consistency, MassLimit, nearest
from dynid.consistency import test as is_possible
from dynid.consistency.interior import interior_point
from dynid.errors import NotPossibleError
from dynid.robot import inertia as ten


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2 ** 32 - 1))
def test_the_nearest_body_is_the_projection_of_its_eigenvalues(seed: int) -> None:
    """In full space with the 4 x 4 form no closed form is known; any consistent body must be further away."""
    rng = np.random.default_rng(seed)
    given_ = random_body(rng) + rng.normal(size=10) * 0.3
    consistency = Consistency(bodies(1), margin=0.0)
    found = nearest(consistency, given_)
    assert consistency.smallest_eigenvalue(found.theta) >= 0
    assert found.distance == pytest.approx(np.linalg.norm(found.theta - given_), abs=1e-12)
    for _ in range(20):
        assert np.linalg.norm(random_body(rng) - given_) >= found.distance - 1e-9
    if not found.possible:
        # Optimality: the way to the given point makes an obtuse angle with the way to every other consistent body.
        out = given_ - found.theta
        assert max(out @ (random_body(rng) - found.theta) for _ in range(50)) < 1e-6
        assert found.certificate is not None and found.certificate.verify()
        assert found.certificate.gap <= found.distance * (1 + 1e-6)
        assert found.reasons
    else:
        assert found.certificate is None


def test_certificates_separate_and_name_the_link() -> None:
    model, theta, base, _ = arm_problem(3)
    consistency = Consistency(model.parameters)
    assert is_possible(consistency, base.reduce(theta), base).possible
    wrong = theta.copy()
    wrong[model.parameters.index("Fv2")] = -0.5
    found = is_possible(consistency, base.reduce(wrong), base)
    assert not found.possible and found.certificate is not None and found.certificate.verify()
    assert "Fv2" in found.reasons[0]
    assert found.distance == pytest.approx(0.5, abs=1e-4)
    # Every consistent robot is on the other side of the hyperplane.
    certificate, rng = found.certificate, np.random.default_rng(0)
    others = [np.concatenate([np.append(random_body(rng), [0.2, 0.2]) for _ in range(3)]) for _ in range(50)]
    least = min(float(certificate.normal @ base.reduce(other)) for other in others)
    assert least > float(certificate.normal @ base.reduce(wrong))


def test_a_tampered_certificate_does_not_verify() -> None:
    from dataclasses import replace
    model, theta, base, _ = arm_problem(2)
    wrong = base.reduce(theta).copy()
    wrong[list(base.names).index("Fc1")] = -1.0
    found = is_possible(Consistency(model.parameters), wrong, base)
    assert found.certificate is not None and found.certificate.verify()
    assert not replace(found.certificate, normal=found.certificate.normal + 0.1).verify()
    assert not replace(found.certificate, values=base.reduce(theta)).verify()


def test_virtually_possible_vectors_are_told_apart() -> None:
    """Sousa, s. 3.6: the vector is not possible, another one with the same torques is."""
    model, theta, base, _ = arm_problem(3)
    consistency = Consistency(model.parameters)
    grouped = base.expand(base.reduce(theta))
    found = is_possible(consistency, grouped, base)
    assert found.possible and found.virtual and found.violations
    np.testing.assert_allclose(base.reduce(found.theta), base.reduce(theta), atol=1e-6)
    assert not is_possible(consistency, theta, base).virtual


@pytest.mark.parametrize("limits, named", [
    ({"masses": (MassLimit(low=5.0), MassLimit(high=3.0, bodies=("link1",)), MassLimit(high=1.0, bodies=("link2",)))},
     ("the whole robot >= 5 kg", "'link1' <= 3 kg", "'link2' <= 1 kg")),
    ({"masses": (MassLimit(2.0, 2.0, ("link1",)), MassLimit(3.0, 3.0, ("link1",)))}, ("= 2 kg", "= 3 kg")),
    ({"masses": (MassLimit(high=-1.0, bodies=("link2",)),)}, ("'link2' <= -1 kg",)),
    ({"masses": (MassLimit(low=27000.0),)}, (">= 27000 kg", "<= 1000 kg")),
])
def test_contradictory_limits_are_named(limits, named) -> None:
    consistency = Consistency(bodies(2), **limits)
    with pytest.raises(NotPossibleError) as refusal:
        interior_point(consistency)
    for part in named:
        assert part in str(refusal.value)
    with pytest.raises(NotPossibleError):
        nearest(consistency, np.tile(ten.from_central(1.0, np.zeros(3), np.eye(3) * 0.01), 2))


def test_limits_without_room_are_named() -> None:
    with refused(NotPossibleError, "conditions-without-interior", "link1"):
        interior_point(Consistency(bodies(1), masses=(MassLimit(high=0.0, bodies=("link1",)),), margin=0.0))
    flat = Consistency(bodies(1), centres={"link1": Box([0, 0, 0], [0.1, 0.1, 0.0])})
    with refused(NotPossibleError, "conditions-without-interior", "link1"):
        interior_point(flat)


def test_an_interior_point_satisfies_the_dissipation_of_its_own_set() -> None:
    """Sets that differ only in these rows have different interior points, although points are cached."""
    parameters = bodies(1, ("Fv1", "Fc1"))
    fv, fc = parameters.index("Fv1"), parameters.index("Fc1")
    for slopes in (None, (1.0, -50.0), (-50.0, 1.0)):
        rows = np.zeros((1, len(parameters)))
        rows[0, [fv, fc]] = slopes or 0.0
        point = interior_point(Consistency(parameters, dissipating={} if slopes is None else {"friction": rows}))
        assert slopes is None or rows[0] @ point > 0.1
