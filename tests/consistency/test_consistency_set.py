"""The set: random consistent bodies pass, every kind of violation is named as that kind, cones say the same."""

from __future__ import annotations

import numpy as np
import pytest
from consistency.problems import bodies, random_body
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.consistency import Box, Consistency, Ellipsoid, Hull, MassLimit, limits_from_shapes
from dynid.consistency.blocks import smat, svec
from dynid.errors import ModelError
from dynid.robot import Robot
from dynid.robot import inertia as ten

SEEDS = st.integers(0, 2 ** 32 - 1)
KINDS = ("mass", "not-positive-definite", "triangle", "centre-of-mass", "positive", "mass-limit")


def test_svec_keeps_the_scalar_product() -> None:
    rng = np.random.default_rng(0)
    a, b = (m + m.T for m in rng.normal(size=(2, 4, 4)))
    assert svec(a) @ svec(b) == pytest.approx(np.trace(a @ b))
    np.testing.assert_allclose(smat(svec(a)), a)


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_random_consistent_bodies_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    theta = np.concatenate([random_body(rng), random_body(rng), rng.uniform(0, 1, 1)])
    for form in ("pseudo", "spatial"):
        consistency = Consistency(bodies(2, ("Fv1",)), form=form, margin=0.0)
        assert consistency.violations(theta) == ()
        assert consistency.slack(theta) > 0


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(KINDS))
def test_random_violations_are_named_as_their_kind(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    numbers = random_body(rng)
    mass, com, central = ten.to_central(numbers)
    friction, centres, masses = 0.1, {}, ()
    if kind == "mass":
        numbers = np.append(numbers[:9], -mass)
    elif kind in ("not-positive-definite", "triangle"):
        values, turn = np.linalg.eigh(central)
        new = values * [-1.0, 1.0, 1.0] if kind == "not-positive-definite" else [
            values[0], values[1], (values[0] + values[1]) * rng.uniform(1.01, 3.0)]
        numbers = ten.from_central(mass, com, (turn * new) @ turn.T)
    elif kind == "centre-of-mass":
        centres = {"link2": Box(com + 0.01, com + 0.02)}
    elif kind == "positive":
        friction = -rng.uniform(0.01, 1.0)
    else:
        masses = (MassLimit(high=float(mass) * 0.5, bodies=("link2",)),)
    theta = np.concatenate([random_body(rng), numbers, [friction]])
    consistency = Consistency(bodies(2, ("Fv1",)), margin=0.0, centres=centres, masses=masses)
    found = consistency.violations(theta)
    assert {violation.kind for violation in found} >= {kind}
    if kind not in ("mass",):  # without a mass nothing else of the body makes sense
        assert [violation.kind for violation in found] == [kind]
    assert all(violation.amount > 0 for violation in found)
    assert all(violation.link in ("link2", "Fv1") or kind == "mass-limit" for violation in found)
    assert consistency.slack(theta) < 0


@pytest.mark.parametrize("limit", [
    Box([-0.1, -0.2, 0.0], [0.1, 0.2, 0.5]),
    Ellipsoid([0.0, 0.0, 0.25], [0.1, 0.2, 0.25]),
    Hull(np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.5], [-0.1, -0.1, 0.1]])),
])
def test_limits_on_centres_of_mass_agree_with_geometry(limit: Box | Ellipsoid | Hull) -> None:
    rng = np.random.default_rng(1)
    consistency = Consistency(bodies(1), margin=0.0, centres={"link1": limit})
    inside = 0
    for com in rng.uniform(-0.3, 0.6, (300, 3)):
        theta = ten.from_central(2.0, com, 0.01 * np.eye(3))
        block = next(b for b in consistency.blocks if b.kind == "centre-of-mass")
        assert (block.slack(theta) >= 0) == (limit.outside(com) == 0.0)
        assert bool(consistency.violations(theta)) == (limit.outside(com) > 0.0)
        inside += limit.outside(com) == 0.0
    assert inside > 0


def test_limits_from_shapes_hold_the_shapes() -> None:
    text = """<robot name="r"><link name="base"/><link name="a"><collision><origin xyz="0 0 0.2" rpy="0 1.5708 0"/>
      <geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
      <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
      <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    limits = limits_from_shapes(Robot.from_urdf(text))
    assert set(limits) == {"a"}
    for point, far in (((0.19, 0, 0.2), False), ((0, 0.049, 0.2), False), ((0.21, 0, 0.2), True), ((0, 0, 0.26), True)):
        assert (limits["a"].outside(np.array(point)) > 0) == far


@pytest.mark.parametrize("wrong", [
    lambda: Box([0, 0, 1], [1, 1, 0]), lambda: MassLimit(3.0, 2.0), lambda: MassLimit(),
    lambda: Hull(np.zeros((5, 3))), lambda: Ellipsoid([0, 0, 0], [1, 1, 0]),
    lambda: Consistency(bodies(1), masses=(MassLimit(high=1.0, bodies=("arm",)),)),
    lambda: Consistency(bodies(1), form="cubic"), lambda: Consistency(bodies(1), margin=-1.0),
])
def test_limits_that_make_no_sense_are_refused(wrong) -> None:
    with pytest.raises(ModelError):
        wrong()
