"""The check of a motion: what happens between the samples counts too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from dynid.arrays import Array
from dynid.excitation import (
    FourierSeries,
    HalfSpace,
    Limits,
    Measurement,
    PriorKnowledge,
    Workspace,
    check_limits,
)
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.search.experiment_design import design_experiment
from dynid.excitation.trajectories.families import Fourier
from dynid.excitation.trajectories.trajectory import Piecewise, quintic_between
from dynid.model import Model, make_terms
from dynid.robot import Robot


def test_check_sees_what_happens_between_samples() -> None:
    none = np.full(1, np.inf)
    bounds = Limits(lower=-none, upper=none, velocity=none, acceleration=none, jerk=none, torque=none, names=("a",))
    swing = FourierSeries([[0.0] * 7 + [2 * np.pi * 8 / 5]], [[0.0] * 8], [0.0], 5.0)  # sin(2 pi 8 t / 5), peak 1
    for points in (41, 57, 200):  # 41 points meet zeros only
        report = check_limits(swing, replace(bounds, upper=[0.98]), points=points)
        assert not report.ok
        assert report.violated[0].kind == "position" and report.violated[0].bound == pytest.approx(0.98)
    assert check_limits(swing, replace(bounds, lower=[-1.001], upper=[1.001]), points=5000).ok


def test_check_adds_the_way_between_samples_to_distances() -> None:
    robot = Robot.builtin("arm3r")
    wall = Workspace.from_robot(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.3, "wall")])
    bounds = Limits.from_robot(robot, space=wall, torque=np.inf)
    swing = FourierSeries(np.array([[1.0], [0.5], [0.3]]), np.zeros((3, 1)), np.zeros(3), 4.0)
    coarse = {u.where: u.value for u in check_limits(swing, bounds, points=150).usages if u.kind == "space"}
    fine = {u.where: u.value for u in check_limits(swing, bounds, points=40000).usages if u.kind == "space"}
    assert coarse.keys() == fine.keys() and any("wall" in name for name in fine)
    for name in fine:
        assert coarse[name] <= fine[name] + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_many_pieces_are_checked_as_each_by_itself(seed: int) -> None:
    """Neighbouring pieces have nothing in common here, so anything carried over from one to the next would show."""
    rng = np.random.default_rng(seed)
    robot = Robot.builtin("arm3r")
    wall = Workspace.from_robot(robot, radius=0.02, planes=[HalfSpace((-1.0, 0, 0), -0.3, "wall")])
    bounds = Limits.from_robot(robot, space=wall, lower=-3.0, upper=3.0, velocity=2.0, acceleration=5.0, jerk=20.0,
                               torque=50.0)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    torque = design_experiment(model, bounds, Fourier(), "condition", Measurement(), PriorKnowledge()).torque
    assert torque is not None
    torque = replace(torque, beta=rng.normal(size=len(torque.beta)))
    sizes = rng.uniform(0.05, 1.0, 90)  # more pieces than are evaluated at once
    pieces = [quintic_between(*rng.normal(size=(2, 3, 3)), duration=size) for size in sizes]
    motion = Piecewise(np.concatenate([[0.0], np.cumsum(sizes)]), np.concatenate([one.coefficients for one in pieces]))

    def excesses(checked: Piecewise) -> dict[tuple[str, str, float], float]:
        usages = check_limits(checked, bounds, torque, points=50).usages  # the fewest of every piece
        return {(u.kind, u.where, u.bound): u.excess for u in usages if u.kind != "jerk"}  # accelerations jump

    whole = excesses(motion)
    single = [excesses(one) for one in pieces]
    assert {kind for kind, _, _ in whole} == {"position", "velocity", "acceleration", "torque", "space"}
    for key, excess in whole.items():  # grids end 1e-12 of the whole duration before each piece does
        assert excess == pytest.approx(max(one[key] for one in single), rel=1e-7, abs=1e-8), key

    local = sizes[:, None] * np.linspace(0.0, 1.0 - 1e-9, 4001)
    dense = motion.at((motion.breaks[:-1, None] + local).ravel())
    for kind, signal in (("velocity", dense.dq), ("acceleration", dense.ddq)):
        for j, name in enumerate(bounds.names):
            bound = float(getattr(bounds, kind)[j])
            assert whole[kind, name, bound] + 1.0 == pytest.approx(np.abs(signal[:, j]).max() / bound, rel=1e-3)
    for j, name in enumerate(bounds.names):
        assert 3.0 * (1.0 + whole["position", name, 3.0]) == pytest.approx(dense.q[:, j].max(), rel=1e-3)
        assert 3.0 * (1.0 + whole["position", name, -3.0]) == pytest.approx(-dense.q[:, j].min(), rel=1e-3)


def test_a_sign_change_between_pieces_leaves_torques_inside_them_as_they_are() -> None:
    """A viscous torque peaks at the second sample of a piece: the addition between samples holds there too."""
    bounds = Limits(lower=-np.inf, upper=np.inf, velocity=np.inf, acceleration=np.inf, jerk=np.inf, torque=2.0,
                    names=("a",))

    class Viscous(TorqueLimit):
        def torques(self, q: Array, dq: Array, ddq: Array) -> Array:
            return dq

    torque = object.__new__(Viscous)
    speed = Polynomial([1.0, 0.0, -0.8])(Polynomial([-0.01, 1.0]))  # 1 - 0.8 (t - 0.01)^2
    piece = np.concatenate([speed.integ().coef, [0.0, 0.0]])[None, None]
    one = check_limits(Piecewise(np.array([0.0, 1.0]), piece), bounds, torque, points=50)
    both = Piecewise(np.arange(3.0), np.concatenate([-0.5 * piece, piece]))
    found = [usage.value for report in (one, check_limits(both, bounds, torque, points=50))
             for usage in report.usages if usage.kind == "torque"]
    assert found[0] == pytest.approx(1.0 + 0.8 * 0.01 ** 2 / 4.0, abs=1e-9)
    assert found[1] == pytest.approx(found[0], abs=1e-9)
