"""Couplings between neighbouring joints: machines that have one, machines without, and exchanged torques."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.estimate import choose_terms, coupling_choice, identify
from dynid.estimate.coupling_choice import Coupling, NeighbourCouplings
from dynid.model import CoupledWrist, Model, MotorSide, RigidBodies, Sign, make_terms, term_from_table
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot.dh import from_mdh

ROBOT = Robot.builtin("arm3r")
FRICTION = ("viscous", "coulomb", "offset")
VALUES = {"Fv": 0.8, "Fc": 0.6, "Fo": 0.1, "Ia": 0.05, "Iam": 0.03, "Fvm": 0.5, "Fcm": 0.9}


def _log(seed: int, ratio: float | None, seconds: float = 20.0, robot: Robot = ROBOT) -> Samples:
    """Samples of a machine whose last two joints share a motor with this ratio, or none, and white noise."""
    rng, rate = np.random.default_rng(seed), 100.0
    extra = [] if ratio is None else [{"kind": "coupled-wrist", "joints": [2, 3], "ratio": ratio}]
    model = Model(robot, make_terms(robot, friction=FRICTION, rotor=True, extra=extra))
    theta = np.array([VALUES.get(p.symbol, p.nominal) for p in model.parameters], dtype=float)
    t = np.arange(int(seconds * rate)) / rate
    size, phase = rng.normal(size=(robot.dof, 5)), rng.uniform(0.0, 2.0 * np.pi, (robot.dof, 5))
    w = 2.0 * np.pi * (np.arange(1, 6) + rng.uniform(-0.3, 0.3, 5)) / 8.0
    angle = t[:, None, None] * w + phase
    q, dq, ddq = (np.sum(part, axis=2) for part in (size / w * np.sin(angle), size * np.cos(angle),
                                                    -size * w * np.sin(angle)))
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
    return replace(Samples.from_arrays(q, dq, ddq, tau, rate=rate), keep=np.abs(dq) > 0.01 * np.abs(dq).max(axis=0))


@pytest.mark.parametrize("ratio", [1.0, -1.0])
def test_a_coupling_is_found_with_its_direction_and_values(ratio: float) -> None:
    samples = _log(1, ratio)
    found = choose_terms(Model(ROBOT, (RigidBodies(),)), samples)
    (table,) = [one for one in found.tables if one["kind"] == "coupled-wrist"]
    assert table["joints"] == list(ROBOT.joint_names[1:]) and table["ratio"] == ratio
    assert "coupled-wrist" in found.text
    estimate = identify(found.model, samples, method="wls")
    for name in ("Fvm3", "Fcm3"):
        k = estimate.names.index(name)
        assert abs(estimate.values[k] - VALUES[name[:3]]) < 5.0 * np.sqrt(estimate.covariance[k, k]) + 0.02


def test_machines_without_a_coupling_get_none() -> None:
    for seed in range(4):
        for seconds in (6.0, 20.0):
            found = choose_terms(Model(ROBOT, (RigidBodies(),)), _log(seed, None, seconds))
            assert not any(one["kind"] == "coupled-wrist" for one in found.tables)


def test_exchanged_torques_are_no_coupling(monkeypatch: pytest.MonkeyPatch) -> None:
    """They look like one, but motors whose friction has such values would give energy."""
    samples = _log(2, None)
    swapped = replace(samples, tau=samples.tau[:, [0, 2, 1]])
    bodies = Model(ROBOT, (RigidBodies(),))
    assert not any(one["kind"] == "coupled-wrist" for one in choose_terms(bodies, swapped).tables)
    monkeypatch.setattr(Coupling, "is_passive", lambda self, values: True)
    monkeypatch.setattr(coupling_choice, "LEAST_COUPLING_GAIN", 0.0)
    assert any(one["kind"] == "coupled-wrist" for one in choose_terms(bodies, swapped).tables)


def test_a_given_coupling_is_not_doubled() -> None:
    samples = _log(3, 1.0)
    found = choose_terms(Model(ROBOT, (RigidBodies(), CoupledWrist((2, 3)))), samples)
    assert not any(one["kind"] == "coupled-wrist" for one in found.tables)
    known = NeighbourCouplings.beside(Model(ROBOT, (RigidBodies(), MotorSide(np.eye(3)))), Sign("tanh", 0.01))
    assert known.candidates(ROBOT) == ()


def test_candidates_are_neighbours_in_the_chain_that_move_alike() -> None:
    slider = from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.2, 0.0, 0.0), (0.0, 0.0, 0.0, 0.1, "prismatic")])
    found = NeighbourCouplings(Sign("tanh", 0.01)).candidates(slider)
    assert found == (Coupling(0, 1, 1.0), Coupling(0, 1, -1.0))


@pytest.mark.parametrize(("values", "passive"), [
    ({"Fv1": 1.0, "Fv2": 0.5, "Fvm2": 0.4, "Fcm2": 0.2}, True),
    ({"Fv1": 1.0, "Fv2": 0.5, "Fvm2": -0.4, "Fcm2": 0.2}, False),  # against its ratio
    ({"Fv1": 1.0, "Fv2": 0.5, "Fvm2": 0.8, "Fcm2": 0.2}, False),  # 0.8^2 > 1.0 * 0.5
    ({"Fv1": 1.0, "Fv2": 0.5, "Fvm2": 0.4, "Fcm2": -0.2}, False),
])
def test_friction_of_motors_takes_energy(values: dict[str, float], passive: bool) -> None:
    assert Coupling(0, 1, 1.0).is_passive(values) is passive


def test_columns_are_those_of_the_term_that_is_chosen() -> None:
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, 3))
    sign = Sign("tanh", (0.1, 0.2, 0.3))
    candidates = Model(ROBOT, (NeighbourCouplings(sign),))
    columns: Array = candidates.regressor(q, dq, ddq)
    for one in NeighbourCouplings(sign).candidates(ROBOT):
        wanted = Model(ROBOT, (term_from_table(one.table(ROBOT.joint_names, sign)),)).regressor(q, dq, ddq)
        own = columns[:, :, [candidates.parameters.names.index(name) for name in one.names]]
        assert np.allclose(own * [one.ratio, one.ratio, 1.0], wanted)
