"""Every fitted friction dissipates: its power is never below zero, and a robot let go never gains energy.

Offsets aside, which are no friction: half the difference of a forward and a backward Coulomb friction is one. Classical
viscous and Coulomb friction, and Stribeck's, are free in methods that ask for nothing physical, where a negative one is
evidence of a fault and the verdict says so; all others are bounded in every method, Stribeck's in those with
constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Dahl, LuGreFriction, Model, Term, make_terms
from dynid.model.parameters import DRY
from dynid.model.registry import FRICTION
from dynid.recording import Samples
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import free_fall, reconstruct, verdict

MAPPINGS = Path(__file__).parents[2] / "reproductions" / "mappings"
ROBOT = Robot.builtin("arm3r")
CHANGES = ("drift", "temperature", "viscous-difference")  # of friction that another term has: less of it is no push
KINDS = [kind for kind, term in FRICTION.items()
         if kind not in CHANGES and any(item.kind.group == "friction" for item in term().parameters(ROBOT))]
BOUNDED = ["curve", "polynomial", "exponential-stribeck", "asymmetric-viscous", "load", "dahl", "lugre", "hysteresis"]


def terms_of(robot: Robot, kind: str, beside: Sequence[str]) -> tuple[Term, ...]:
    """Bodies, the friction of a kind, and of those beside it what it does not have itself."""
    own = {item.symbol for item in FRICTION[kind]().parameters(robot)}
    more = [name for name in beside if not own & {item.symbol for item in FRICTION[name]().parameters(robot)}
            and not (kind == "asymmetric-coulomb" and name in ("coulomb", "offset"))
            and not (kind in ("dahl", "lugre", "polynomial") and name == "coulomb")
            and not (kind == "asymmetric-viscous" and name == "viscous")
            and not (kind == "polynomial" and name == "viscous")]
    return make_terms(robot, friction=[kind, *more])


def least_power(estimate: Estimate, samples: Samples) -> float:
    """Least power of the friction over the largest, of the joint where that is least: at speeds up to the log's, and
    the postures and accelerations of some of its rows."""
    model, rows = estimate.model, np.linspace(0, len(samples) - 1, 40).astype(int)
    assert isinstance(model, Model)
    theta = without_offsets(model, estimate.full)
    found = []
    for j in range(model.dof):
        own = model.parameters.of_group("friction") & model.structure[j]
        top = float(np.abs(samples.dq[:, j]).max())
        speeds = top * np.concatenate([-np.geomspace(1.0, 1e-3, 12), np.geomspace(1e-3, 1.0, 12)])
        q, dq, ddq = (np.repeat(x[rows], len(speeds), axis=0) for x in (samples.q, samples.dq, samples.ddq))
        dq[:, j] = np.tile(speeds, len(rows))
        power = dq[:, j] * (model.regressor(q, dq, ddq)[:, j, own] @ theta[own])
        found.append(float(power.min()) / max(float(power.max()), 1e-12))
    return min(found)


def without_offsets(model: Model, theta: Array) -> Array:
    """The values with no offset, one that stands in two Coulomb frictions among them."""
    values = np.where(model.parameters.of_group("offset"), 0.0, theta)
    names = model.parameters.names
    for k, item in enumerate(model.parameters):
        if item.symbol == "Fcp" and item.kind == DRY.unwritten():
            other = names.index(item.name.replace("Fcp", "Fcn"))
            values[[k, other]] = 0.5 * (theta[k] + theta[other])
    return values


@cache
def simulated() -> Samples:
    """Noisy rows of an arm whose third joint has hardly any friction: what is fitted there is noise, of either sign."""
    truth = Model(ROBOT, make_terms(ROBOT, friction=["viscous", "coulomb", "offset"]))
    friction = {"Fv": (0.5, 0.3, 0.002), "Fc": (0.4, 0.2, 0.002), "Fo": (0.1, -0.3, 0.05)}
    theta = [friction[p.symbol][p.owner] if p.symbol in friction else p.nominal for p in truth.parameters]
    rng, t = np.random.default_rng(3), np.arange(3000) / 200.0
    w = 2.0 * np.pi * np.array([0.13, 0.27, 0.4, 0.53])
    sizes, phases = rng.uniform(0.1, 0.5, (3, 4)), rng.uniform(0.0, 6.0, (3, 4))
    angle = w * t[:, None, None] + phases
    q, dq, ddq = ((sizes * f).sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    tau = truth.inverse_dynamics(theta, q, dq, ddq) + 0.2 * rng.normal(size=q.shape)
    return Samples.from_arrays(q, dq, ddq, tau, t=t, rate=200.0)


@cache
def fitted(kind: str, method: str) -> Estimate:
    return identify(Problem.from_model(Model(ROBOT, terms_of(ROBOT, kind, ("viscous", "coulomb", "offset"))),
                                       simulated()),
                    method=method)


@pytest.mark.parametrize("kind", KINDS)
def test_power_of_fitted_friction_is_not_below_zero(kind: str) -> None:
    assert least_power(fitted(kind, "pc-wls"), simulated()) >= -1e-9


@pytest.mark.parametrize("kind", [kind for kind in BOUNDED if kind in KINDS])
def test_bounds_hold_without_constraints_too(kind: str) -> None:
    """Plain `wls`: the parameters of these terms stay at or above zero."""
    estimate = fitted(kind, "wls")
    own = {item.name for item in FRICTION[kind]().parameters(ROBOT) if item.kind.group == "friction"}
    values = dict(zip(estimate.model.parameters.names, estimate.full, strict=True))
    assert min(values[name] for name in own) >= -1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_robot_let_go_never_gains_energy(kind: str) -> None:
    """Bristles give back at most what bends them, half their force over their reach."""
    estimate = fitted(kind, "pc-wls")
    assert isinstance(estimate.model, Model)
    theta = without_offsets(estimate.model, estimate.full)
    fall = free_fall(estimate.model, theta, seconds=1.0)
    reach = {"dahl": Dahl().reach, "lugre": LuGreFriction().reach}.get(kind, 0.0)
    stored = 0.5 * float(np.asarray(reach)) * sum(abs(value) for value, item in zip(
        theta, estimate.model.parameters, strict=True) if item.symbol in ("Fd", "Fz"))
    assert not fall.diverged and fall.growth <= 2e-3 * fall.in_play + stored


def test_friction_that_pushes_is_named() -> None:
    """Stribeck's parameters may be of either sign: where their sum pushes, the verdict says so; constraints do not let
    it."""
    samples = simulated()
    model = Model(ROBOT, make_terms(ROBOT, friction=["stribeck"]))
    pushed = Samples.from_arrays(samples.q, samples.dq, samples.ddq, samples.tau - 0.9 * np.arctan(10.0 * samples.dq),
                                 t=samples.t, rate=samples.rate)
    problem = Problem.from_model(model, pushed)
    for method in ("pc-wls", "pc-ridge"):
        assert least_power(identify(problem, method=method), pushed) >= -1e-9
    estimate = identify(problem, method="wls")
    assert least_power(estimate, pushed) < -0.05
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, pushed)).findings
    assert "negative-friction" in [finding.code for finding in found]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["emps", "kuka_lwr4"])
@pytest.mark.parametrize("kind", KINDS)
def test_friction_fitted_to_real_logs_dissipates(name: str, kind: str, data: Callable[..., Path]) -> None:
    if name == "emps":
        robot, file, cutoff = Robot.builtin("emps"), data("emps", "DATA_EMPS.mat"), 20.0
    else:
        robot = Robot.from_urdf(data("kuka_lwr4", "kuka_lwr4.urdf"))
        file, cutoff = data("kuka_lwr4", "measurements_1.npz"), 8.0
    samples = prepare(read(file, MAPPINGS / f"{name}.toml", robot), cutoff=cutoff)
    model = Model(robot, terms_of(robot, kind, ("viscous", "coulomb", "offset")))
    assert least_power(identify(Problem.from_model(model, samples), method="pc-wls"), samples) >= -1e-9
