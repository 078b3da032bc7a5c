"""Studies with a known truth: what they count, that they repeat, and what instruments promise."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import DynidError, ModelError
from dynid.model import Coulomb, Model, RigidBodies, RotorInertia, Sign, Viscous
from dynid.robot import Robot
from dynid.simulate import Poles, Reference, VirtualRobot
from dynid.validate.monte_carlo import Contestant, Score, Study, monte_carlo

RAW = {"method": "none", "torque_cutoff": "none", "slow": 0.0}
BOTH = (Contestant("iv", "iv", {}, RAW), Contestant("wls", "wls", {}, RAW))


def scara(repetitions: int, seed: int = 0) -> Study:
    robot = Robot.builtin("scara2")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb(sign=Sign("tanh", 0.1))))
    t = np.arange(3000) / 200.0
    path = Reference.of(np.column_stack([1.5 * np.sin(1.1 * t) ** 2, 0.8 * np.sin(1.7 * t) - 0.3 * np.sin(3.1 * t)]),
                        rate=200.0)
    machine = VirtualRobot(model, np.array([p.nominal for p in model.parameters], dtype=float), Poles([8.0, 12.0]),
                           encoder=2e-4, position_noise=1e-4, torque_noise=[0.1, 0.02])
    return Study(machine, path, BOTH, repetitions, seed=seed)


def test_counts_are_plain_arithmetic() -> None:
    values = np.array([[1.0], [3.0], [2.0], [10.0]])
    score = Score("x", 1.0, np.array([2.0]), values, np.full((4, 1), 0.6), np.ones(4), ("no",))
    assert score.converged == 0.8
    assert score.bias[0] == 2.0
    assert score.coverage[0] == 0.75  # 1.96 x 0.6 reaches 1 but not 8
    assert score.spread[0] == pytest.approx(np.std([1, 3, 2, 10], ddof=1))


def test_a_seed_repeats_the_study_in_any_number_of_processes() -> None:
    one, two = monte_carlo(scara(4), workers=1), monte_carlo(scara(4), workers=2)
    for a, b in zip(one.scores, two.scores, strict=True):
        assert np.array_equal(a.values, b.values) and np.array_equal(a.std, b.std)
    other = monte_carlo(scara(2, seed=50), workers=1)
    assert not np.array_equal(other.scores[0].values[0], one.scores[0].values[0])
    iv, wls = one.summary()
    assert iv["converged"] == 1.0 and iv["inertial"]["biased_share"] < 0.5 < wls["inertial"]["biased_share"]
    assert len(one.table()) == 3


def test_the_same_study_on_a_dask_cluster() -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'scale'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = monte_carlo(scara(2), scheduler=cluster.scheduler_address)
    here = monte_carlo(scara(2), workers=1)
    assert np.array_equal(there.scores[0].values, here.scores[0].values)


def test_wrong_studies_are_refused() -> None:
    study = scara(4)
    with pytest.raises(ModelError, match="at least two repetitions"):
        Study(study.machine, study.path, BOTH, 1)
    with pytest.raises(ModelError, match="label of its own"):
        Study(study.machine, study.path, (BOTH[0], BOTH[0]), 4)
    pytest.importorskip("distributed", reason="needs the extra 'scale'")
    with pytest.raises(DynidError, match="no Dask scheduler answers at tcp://127.0.0.1:1"):
        monte_carlo(study, scheduler="tcp://127.0.0.1:1")


@pytest.mark.slow
def test_instruments_on_a_six_joint_arm_have_no_bias_and_honest_intervals() -> None:
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, (RigidBodies(), RotorInertia(), Viscous(), Coulomb(sign=Sign("tanh", 0.1))))
    rng = np.random.default_rng(0)
    t = np.arange(8000) / 1000.0
    waves = 1.0 - np.cos(2.0 * np.pi * 0.25 * np.arange(1, 6) * t[:, None])
    q = np.column_stack([waves @ (rng.uniform(-0.5, 0.5, 5) / np.sqrt(np.arange(1, 6))) for _ in range(6)])
    machine = VirtualRobot(model, np.array([p.nominal for p in model.parameters], dtype=float),
                           Poles(np.full(6, 2.0 * np.pi * 10.0)), encoder=5e-5, position_noise=2.5e-5,
                           torque_noise=[0.5, 0.5, 0.3, 0.1, 0.1, 0.05])
    found = monte_carlo(Study(machine, Reference.of(q, rate=1000.0), BOTH, 100))
    iv, wls = found.summary()
    assert iv["converged"] == 1.0
    assert iv["inertial"]["unbiased_share"] >= 0.95
    assert 0.90 <= iv["inertial"]["coverage"] <= 0.98
    assert wls["inertial"]["biased_share"] > 0.5
