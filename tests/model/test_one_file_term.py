"""A friction term written in this file alone: identified, simulated by compiled code, used in excitation with exact
gradients, named in the verdict. And a model of one's own, with a regressor and nothing else, through all of the house.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from motions import fourier
from refusals import refused
from robots import to_pinocchio
from scipy.integrate import solve_ivp

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.excitation import Criterion, Fourier, Information, Limits, Search, excite
from dynid.model import (
    Coulomb,
    Curve,
    Kind,
    Model,
    Offset,
    Parameter,
    Parameters,
    RigidBodies,
    Sign,
    Viscous,
    chosen,
    complete,
    curve,
    joint_parameter,
    make_terms,
    register_term,
    term_from_table,
)
from dynid.model.completion import can_compile
from dynid.model.elements import axis
from dynid.model.parameters import INERTIA, MOMENT, VISCOUS
from dynid.model.registry import FRICTION, KINDS
from dynid.model.term import DQ, Q
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.simulation import PD, Poles, Reference, TorqueDriven, loop, simulate
from dynid.simulation.plant import make_plant
from dynid.validate import free_fall, reconstruct, verdict

# -- all that there is of the new term ----------------------------------------------------------------
DRAG = Kind("air drag", "friction")
RIPPLE = Kind("torque ripple")


@curve
def drag_and_ripple(q: float, dq: float, values: Sequence[float]) -> float:
    return values[0] * dq * abs(dq) + values[1] * np.sin(3.0 * q)


@dataclass(frozen=True)
class Drag:
    """Cd dq |dq| + Br sin(3 q) at every joint."""

    kind = "drag"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(one for j in chosen(robot, self.joints) for one in (
            joint_parameter(robot, "Cd", j, "N m s^2/rad^2", kind=DRAG, positive=True),
            joint_parameter(robot, "Br", j, "N m", kind=RIPPLE)))

    def entries(self, robot, q, dq, ddq):
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, 2 * k, dq[:, j] * np.abs(dq[:, j])
            yield j, 2 * k + 1, np.sin(3.0 * q[:, j])

    def slopes(self, robot, q, dq, ddq):
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, 2 * k, DQ, j, 2.0 * np.abs(dq[:, j])
            yield j, 2 * k + 1, Q, j, 3.0 * np.cos(3.0 * q[:, j])

    def elements(self, robot, values):
        for j, both in zip(chosen(robot, self.joints), values.reshape(-1, 2), strict=True):
            yield Curve(axis(robot.dof, j), drag_and_ripple, both)


class Terse:
    """The same, saying no more than it must."""

    parameters, entries = Drag.parameters, Drag.entries
    joints = None


# -- the machine ---------------------------------------------------------------------------------------
ROBOT = Robot.builtin("arm3r")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Drag()))
OWN = {"Fv": (0.2, 0.2, 0.04), "Cd": (0.1, 0.08, 0.03), "Br": (0.3, -0.2, 0.1)}


def truth(model: Model, **changed: float) -> Array:
    values = {p.name: p.nominal if p.body is not None else OWN[p.symbol][p.owner] for p in model.parameters}
    return model.parameters.vector({**values, **changed})


def test_it_is_identified_within_its_deviations() -> None:
    q, dq, ddq = fourier(3, seconds=20.0, rate=200.0, seed=3, speed=3.0)
    theta, rng = truth(MODEL), np.random.default_rng(0)
    tau = MODEL.inverse_dynamics(theta, q, dq, ddq) + rng.normal(size=q.shape) * [0.05, 0.05, 0.02]
    problem = Problem.from_model(MODEL, Samples.from_arrays(q, dq, ddq, tau, rate=200.0))
    found = identify(problem, method="wls")
    errors = (found.values - problem.base.reduce(theta)) / found.std
    assert found.identified.all() and np.abs(errors).max() < 4.0 and 0.6 < np.sqrt(np.mean(errors ** 2)) < 1.4
    for name in ("Cd1", "Cd2", "Cd3", "Br1", "Br2", "Br3"):
        i = found.names.index(name)
        assert found.relative_std[i] < 15.0
        assert abs(found.values[i] - theta[MODEL.parameters.index(name)]) < 4.0 * found.std[i]


def test_compiled_simulation_is_that_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against scipy's integrator on Pinocchio's forward dynamics with the friction as it stands in Python."""
    import pinocchio as pin

    def refused(*_: object) -> None:
        raise AssertionError("the Python loop was used")

    theta, start = truth(MODEL), np.array([0.4, -0.7, 1.1])
    assert can_compile(MODEL) and len(make_plant(MODEL, theta).curves) == 3
    monkeypatch.setattr(loop, "ModelBody", refused)
    path = Reference(np.tile(start, (1001, 1)), *np.zeros((2, 1001, 3)), 1000.0)
    run = simulate(MODEL, theta, TorqueDriven(np.zeros((1001, 3))), path, step="adaptive", tolerance=1e-11)
    model = to_pinocchio(ROBOT)
    data = model.createData()
    viscous, drag, ripple = (np.array(OWN[name]) for name in ("Fv", "Cd", "Br"))

    def rate(t: float, y: Array) -> Array:
        q, dq = y[:3], y[3:]
        lost = viscous * dq + drag * dq * np.abs(dq) + ripple * np.sin(3.0 * q)
        return np.concatenate([dq, pin.aba(model, data, q, dq, -lost)])

    theirs = solve_ivp(rate, (0.0, 1.0), np.concatenate([start, np.zeros(3)]), "DOP853", t_eval=run.t, rtol=1e-12,
                       atol=1e-12)
    assert np.ptp(run.q, axis=0).max() > 1.0  # it did fall
    np.testing.assert_allclose(run.q, theirs.y[:3].T, atol=1e-8)
    np.testing.assert_allclose(run.dq, theirs.y[3:].T, atol=1e-7)


def test_it_is_simulated_as_built_in_friction_without_python_in_the_loop() -> None:
    usual = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb(sign=Sign("tanh", 0.1)), Offset()))
    built_in = np.array([p.nominal if p.body is not None else 0.05 for p in usual.parameters])

    def calls(model: Model, theta: Array, ticks: int) -> int:
        """Python functions that a simulation calls."""
        count, path = 0, Reference(*np.zeros((3, ticks + 1, 3)), 1000.0)

        def counted(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(counted)
        try:
            simulate(model, theta, Poles(10.0), path)
        finally:
            sys.setprofile(before)
        return count

    for model, theta in ((usual, built_in), (MODEL, truth(MODEL))):
        calls(model, theta, 10)  # kernels are loaded
        assert calls(model, theta, 2000) < calls(model, theta, 1000) + 500  # fewer than one for two ticks


def test_a_terse_term_moves_alike_in_the_python_loop() -> None:
    terse = Model(ROBOT, (RigidBodies(), Viscous(), Terse()))
    assert not can_compile(terse) and terse.parameters.names == MODEL.parameters.names
    t = np.arange(200) / 200.0
    path = Reference.from_arrays(0.5 * np.sin(3.0 * np.outer(t, [1.0, 1.3, 0.7])), rate=200.0)
    one, two = (simulate(model, truth(model), Poles(10.0), path) for model in (MODEL, terse))
    np.testing.assert_allclose(one.q, two.q, atol=1e-12)


@pytest.mark.parametrize("term", [Drag(), Terse()])
@pytest.mark.parametrize("name", ["condition", "d"])
def test_gradients_of_excitation(name: str, term: Drag | Terse) -> None:
    """Exact where the term gives its slopes, by differences of fourth order where it does not."""
    model = Model(ROBOT, (RigidBodies(), Viscous(), term))
    base = base_parameters(model)
    rng = np.random.default_rng(6)
    info = Information.from_model(model, base, noise=rng.uniform(0.5, 2.0, 3), scale=rng.uniform(0.5, 2.0, len(base)))
    criterion = Criterion(name)
    motion, d = np.array(fourier(3, seconds=5.0, rate=40.0, seed=6, speed=3.0)), rng.normal(size=(3, 200, 3))

    def value(motion: Array) -> float:
        return criterion(info.matrix(info.entries(*motion)), None)[0]

    entries = info.entries(*motion)
    ours = float(np.sum(d * info.slope(*motion, entries, criterion(info.matrix(entries), None)[1])))
    h = 1e-4
    theirs = (8.0 * (value(motion + h * d) - value(motion - h * d)) - value(motion + 2 * h * d)
              + value(motion - 2 * h * d)) / (12.0 * h)
    assert ours == pytest.approx(theirs, rel=1e-6)


def test_slopes_are_those_of_the_entries() -> None:
    rng = np.random.default_rng(1)
    motion = rng.normal(size=(3, 50, 3))
    terse = Model(ROBOT, (RigidBodies(), Viscous(), Terse()))
    place = np.arange(3 * len(MODEL.parameters)).reshape(3, -1)
    weights = rng.normal(size=(place.size, 50))
    exact, differences = (model.pull_back(*motion, place, weights) for model in (MODEL, terse))
    np.testing.assert_allclose(exact, differences, atol=1e-9 * np.abs(exact).max())


ONE_ROUND = Search(budget=10.0, rounds=1, threads=1)


def test_a_motion_is_found_that_tells_it() -> None:
    found = excite(MODEL, family=Fourier(5.0, 3), criterion="d", search=ONE_ROUND)
    assert found.condition < 1e4 and np.all(np.isfinite(found.std))
    assert {"Cd1", "Br3"} <= set(found.base.names)


def test_the_verdict_names_it() -> None:
    q, dq, ddq = fourier(3, seconds=20.0, rate=200.0, seed=1, speed=1.2)
    theta = truth(MODEL, Cd2=-0.08)
    noise = np.random.default_rng(0).normal(size=q.shape) * [0.05, 0.05, 0.02]
    tau = MODEL.inverse_dynamics(theta, q, dq, ddq) + noise
    problem = Problem.from_model(MODEL, Samples.from_arrays(q, dq, ddq, tau, rate=200.0))
    estimate = identify(problem, method="wls")
    found = [one for one in verdict(estimate, problem).findings
             if one.kind == "problem"]
    assert [(one.code, one.parameters, one.joints) for one in found] == [("negative-friction", ("Cd2",), ("joint2",))]
    assert found[0].evidence["value"] == (pytest.approx(-0.08, abs=5 * found[0].evidence["std"][0]),)
    assert "air drag" in found[0].text


@pytest.mark.parametrize("friction", [True, False])
def test_energy_of_a_free_fall_counts_it(friction: bool) -> None:
    """Drag loses energy as friction does; the ripple, which stores it, makes none."""
    fall = free_fall(MODEL, truth(MODEL), seconds=2.0, friction=friction)
    assert fall.stable and fall.in_play > 0.1
    energy = fall.kinetic + fall.potential
    if not friction:
        assert np.ptp(energy) < 1e-3 * fall.in_play
    else:
        assert energy[-1] < energy[0] - 0.1 * fall.in_play


def test_files_know_it_once_it_is_registered() -> None:
    try:
        register_term(Drag)
        assert term_from_table({"kind": "drag", "joints": [2]}) == Drag(joints=(2,))
        assert [term.kind for term in make_terms(ROBOT, friction=["viscous", "drag"])] == ["rigid", "viscous", "drag"]
        with refused(ModelError, "repeated-term-kind"):
            register_term(type("Other", (), {"kind": "drag"}))
        with refused(ModelError, "missing-term-kind"):
            register_term(Terse)
    finally:
        del KINDS["drag"], FRICTION["drag"]


def test_a_curve_that_cannot_be_compiled_is_refused() -> None:
    @curve
    def wrong(q: float, dq: float, values: Sequence[float]) -> float:
        return dict(values)[q]

    with refused(ModelError, "curve-not-compiled", "wrong"):
        _ = wrong.address


# -- a model of one's own ------------------------------------------------------------------------------
class PanTilt:
    """A pan and a tilt axis with M = diag(a + b cos(q2)^2, c), gravity d cos(q2) and viscous friction f1, f2."""

    dof = 2

    @cached_property
    def parameters(self) -> Parameters:
        rows = (("a", "kg m^2", 0, INERTIA), ("b", "kg m^2", 0, INERTIA), ("c", "kg m^2", 1, INERTIA),
                ("d", "N m", 1, MOMENT), ("f1", "N m s/rad", 0, VISCOUS), ("f2", "N m s/rad", 1, VISCOUS))
        return Parameters(tuple(Parameter(name, unit, joint, "", kind=kind, positive=True)
                                for name, unit, joint, kind in rows))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        c, s, zero = np.cos(q[:, 1]), np.sin(q[:, 1]), np.zeros(len(q))
        pan = [ddq[:, 0], c * c * ddq[:, 0] - 2 * c * s * dq[:, 0] * dq[:, 1], zero, zero, dq[:, 0], zero]
        tilt = [zero, c * s * dq[:, 0] ** 2, ddq[:, 1], c, zero, dq[:, 1]]
        return np.stack([np.stack(pan, axis=1), np.stack(tilt, axis=1)], axis=1)


PANTILT = PanTilt()
BETA = np.array([0.5, 0.8, 0.4, 3.0, 0.3, 0.2])


def test_a_model_of_ones_own_is_completed_from_its_regressor() -> None:
    whole = complete(PANTILT)
    q, dq, ddq = np.random.default_rng(2).normal(size=(3, 5, 2))
    a, b, c, d, f1, f2 = BETA
    inertia = np.zeros((5, 2, 2))
    inertia[:, 0, 0], inertia[:, 1, 1] = a + b * np.cos(q[:, 1]) ** 2, c
    np.testing.assert_allclose(whole.inertia_matrix(BETA, q), inertia, atol=1e-12)
    np.testing.assert_allclose(whole.inertia_matrix(BETA, q[1]), inertia[1], atol=1e-12)
    sines = b * np.sin(2 * q[:, 1]) * dq[:, 0]
    bias = np.column_stack([-sines * dq[:, 1] + f1 * dq[:, 0],
                            0.5 * sines * dq[:, 0] + d * np.cos(q[:, 1]) + f2 * dq[:, 1]])
    np.testing.assert_allclose(whole.bias(BETA, q, dq), bias, atol=1e-12)
    tau = whole.inverse_dynamics(BETA, q, dq, ddq)
    np.testing.assert_allclose(tau, bias + np.einsum("sij,sj->si", inertia, ddq), atol=1e-12)
    np.testing.assert_allclose(whole.forward_dynamics(BETA, q, dq, tau), ddq, atol=1e-10)
    np.testing.assert_allclose(whole.forward_dynamics(BETA, q[0], dq[0], tau[0]), ddq[0], atol=1e-10)
    assert whole.robot is None and whole.joint_names == ("joint1", "joint2") and whole.elements(BETA) is None
    assert complete(whole) is whole and complete(MODEL) is MODEL


def test_a_model_of_ones_own_walks_through_the_house() -> None:
    limits = Limits(*np.array([[-2.0] * 2, [2.0] * 2, [3.0] * 2, [20.0] * 2, [np.inf] * 2, [np.inf] * 2]),
                    ("pan", "tilt"))
    motion = excite(PANTILT, limits, family=Fourier(5.0, 3), search=ONE_ROUND)
    assert motion.condition < 100.0
    t = np.arange(0.0, 5.0, 0.005)
    path = Reference(*(np.ascontiguousarray(x) for x in motion.trajectory.at(t)[:3]), 200.0)
    law = PD(200.0, 30.0)
    run = simulate(PANTILT, BETA, law, path)

    def rate(now: float, y: Array, tau: Array) -> Array:
        a, b, c, d, f1, f2 = BETA
        (_, q2), (v1, v2) = y[:2], y[2:]
        return np.array([v1, v2, (tau[0] + b * np.sin(2 * q2) * v1 * v2 - f1 * v1) / (a + b * np.cos(q2) ** 2),
                         (tau[1] - 0.5 * b * np.sin(2 * q2) * v1 ** 2 - d * np.cos(q2) - f2 * v2) / c])

    y = np.concatenate([run.q[0], run.dq[0]])
    for k in range(200):  # torques are held between ticks
        np.testing.assert_allclose(run.q[k], y[:2], atol=1e-7)
        y = solve_ivp(rate, (0.0, 0.005), y, "DOP853", args=(run.tau[k],), rtol=1e-11, atol=1e-11).y[:, -1]
    samples = run.samples()
    noise = 0.02 * np.random.default_rng(4).normal(size=run.tau.shape)
    problem = Problem.from_model(PANTILT, Samples.from_arrays(run.q, run.dq, run.ddq, run.tau + noise, rate=200.0))
    estimate = identify(problem, method="wls")
    np.testing.assert_array_less(np.abs(estimate.values - BETA) / estimate.std, 4.0)
    own = reconstruct(estimate, problem.data)
    found = verdict(estimate, problem, reconstruction=own)
    assert not [one for one in found.findings if one.kind == "problem"]
    np.testing.assert_allclose(estimate.predict(samples.q, samples.dq, samples.ddq), run.tau, atol=0.05)
