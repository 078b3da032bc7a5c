"""Offsets whose size is estimated from all joints: joints that do not turn back, and joints that do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.estimate import choose_terms, identify
from dynid.estimate.friction_choice import SHARES_OF_TORQUE, _likely_share
from dynid.model import Model, RigidBodies, make_terms
from dynid.recording import Samples
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")
VALUES = {"Fv": 0.8, "Fc": 0.6, "Ia": 0.05}
OFFSETS = (0.15, 0.1, -0.2)  # N m
RATE = 100.0


def _motion(seed: int, seconds: float, one_way: int | None) -> tuple[Array, Array, Array]:
    """A motion (3, samples, joints) of all joints; the joint `one_way` never turns back."""
    rng, t = np.random.default_rng(seed), np.arange(int(seconds * RATE)) / RATE
    size, phase = rng.normal(size=(ROBOT.dof, 5)), rng.uniform(0.0, 2.0 * np.pi, (ROBOT.dof, 5))
    w = 2.0 * np.pi * (np.arange(1, 6) + rng.uniform(-0.3, 0.3, 5)) / 8.0
    angle = t[:, None, None] * w + phase
    q, dq, ddq = (np.sum(part, axis=2) for part in (size / w * np.sin(angle), size * np.cos(angle),
                                                    -size * w * np.sin(angle)))
    if one_way is not None:
        drift = 1.1 * np.abs(dq[:, one_way]).max()
        q[:, one_way] += drift * t
        dq[:, one_way] += drift
    return q, dq, ddq


def _log(seed: int, one_way: int | None = None, seconds: float = 12.0) -> Samples:
    model = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb", "offset"), rotor=True))
    theta = [OFFSETS[p.owner] if p.symbol == "Fo" else VALUES.get(p.symbol, p.nominal) for p in model.parameters]
    q, dq, ddq = _motion(seed, seconds, one_way)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * np.random.default_rng(seed + 99).normal(size=q.shape)
    return replace(Samples.from_arrays(q, dq, ddq, tau, rate=RATE), keep=np.abs(dq) > 0.01 * np.abs(dq).max(axis=0))


@pytest.mark.parametrize("truth", [0.01, 0.1])
def test_the_share_is_that_of_the_draws(truth: float) -> None:
    rng, size = np.random.default_rng(5), 400
    matrix = 300.0 * np.linalg.qr(rng.normal(size=(size, size)))[0]
    found = _likely_share(matrix, matrix @ (truth * rng.normal(size=size)) + rng.normal(size=size))
    assert found == pytest.approx(truth, rel=0.15)


def test_data_without_information_leave_the_share_in_the_middle() -> None:
    assert _likely_share(np.zeros((2, 2)), np.zeros(2)) == pytest.approx(np.sqrt(SHARES_OF_TORQUE[[0, -1]].prod()))


def test_offsets_that_the_data_determine_are_kept() -> None:
    samples = _log(1)
    estimate = identify(choose_terms(Model(ROBOT, (RigidBodies(),)), samples).model, samples, method="wls")
    for j, offset in enumerate(OFFSETS):
        k = estimate.names.index(f"Fo{j + 1}")
        assert abs(estimate.values[k] - offset) < 4.0 * estimate.std[k] < 0.2


def test_a_joint_that_does_not_turn_back_has_a_small_offset_and_an_honest_standard_error() -> None:
    """Without a size of offsets any split of the sum into Coulomb friction and offset fits as well."""
    samples = _log(2, one_way=2)
    found = choose_terms(Model(ROBOT, (RigidBodies(),)), samples)
    turning, table = [one for one in found.tables if one["kind"] == "offset"]
    assert turning["joints"] == list(ROBOT.joint_names[:2]) and table["joints"] == [ROBOT.joint_names[2]]
    assert 0.0 < table["ridge"] < 1.0
    estimate = identify(found.model, samples, method="wls")
    values, std = (dict(zip(estimate.names, some, strict=True)) for some in (estimate.values, estimate.std))
    assert abs(values["Fo3"]) < 0.2
    assert abs(values["Fc3"] - VALUES["Fc"]) < 3.0 * std["Fc3"] and std["Fc3"] > 0.05
    (turning,) = estimate.residuals(_log(3))
    assert np.sqrt(np.mean((turning.measured - turning.predicted)[:, 2] ** 2)) < 0.5  # N m, of 0.8 of friction


def test_the_intervals_of_a_joint_that_does_not_turn_back_do_not_rest_on_the_offsets_of_other_joints() -> None:
    """Its log shows the sum of Coulomb friction and offset alone. Other joints without offset say nothing of it."""
    model = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb", "offset"), rotor=True))
    theta = [0.3 * (p.owner == 2) if p.symbol == "Fo" else VALUES.get(p.symbol, p.nominal) for p in model.parameters]
    q, dq, ddq = _motion(7, 12.0, one_way=2)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * np.random.default_rng(70).normal(size=q.shape)
    samples = replace(Samples.from_arrays(q, dq, ddq, tau, rate=RATE), keep=np.abs(dq) > 0.01 * np.abs(dq).max(axis=0))
    estimate = identify(choose_terms(Model(ROBOT, (RigidBodies(),)), samples).model, samples, method="wls")
    pair = [estimate.names.index(name) for name in ("Fc3", "Fo3")]
    np.testing.assert_array_less(np.abs(estimate.values[pair] - [0.6, 0.3]), 1.96 * estimate.std[pair])
    both = np.sqrt(estimate.covariance[np.ix_(pair, pair)].sum())
    assert abs(estimate.values[pair].sum() - 0.9) < 3.0 * both < 0.1  # N m: their sum is determined


@pytest.mark.parametrize("seed", [1, 2])
def test_the_ridge_of_offsets_follows_the_noise(seed: int) -> None:
    """Joints with a tenth of their range hardly distinguish offsets from gravity, but little noise suffices to do it.
    A constant ridge of 1e-4 would leave less than half of both offsets and double the error on the whole range."""
    model = Model(ROBOT, make_terms(ROBOT, friction=("viscous", "coulomb", "offset"), rotor=True))
    theta = [OFFSETS[p.owner] if p.symbol == "Fo" else VALUES.get(p.symbol, p.nominal) for p in model.parameters]
    q, dq, ddq = (part * [1.0, 0.1, 0.1] for part in _motion(seed, 12.0, None))
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.002 * np.random.default_rng(seed + 9).normal(size=q.shape)
    samples = replace(Samples.from_arrays(q, dq, ddq, tau, rate=RATE), keep=np.abs(dq) > 0.01 * np.abs(dq).max(axis=0))
    estimate = identify(choose_terms(Model(ROBOT, (RigidBodies(),)), samples).model, samples, method="wls")
    found = estimate.values[[estimate.names.index(f"Fo{j + 1}") for j in range(ROBOT.dof)]]
    np.testing.assert_allclose(found, OFFSETS, rtol=0.3)
    (whole,) = estimate.residuals(_log(30))  # with noise of 0.05 N m
    assert np.sqrt(np.mean((whole.measured - whole.predicted) ** 2)) < 0.08
