"""The virtual robot of a study with its motion, which can be sent to another process or machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.excitation import Fourier, FourierSeries, Limits, PriorKnowledge, Search, excite
from dynid.excitation.random_motions import random_fourier
from dynid.model import Model, make_terms
from dynid.recording.preparation import Preparation
from dynid.regression import BaseParameters, base_parameters
from dynid.regression.factor import triangular
from dynid.robot import Robot
from dynid.robot.free_base import refuse_free_base
from dynid.simulation import Controller, Poles, Reference, controller_from_table
from dynid.study.study import Study

_RANDOM_MOTIONS = 20  # random motions, of which the best conditioned one is used
_DEFAULT_BANDWIDTH_HZ = 10.0  # Hz: bandwidth of the position loops if the study specifies no controller
_TORQUE_SHARE = 0.01  # share of the RMS torque: default noise


@dataclass(frozen=True, eq=False)
class BenchEntry:
    """One method of a study with one choice of initial values.

    Attributes:
        label, method, options: name in tables, method, and its options.
        start: initial values, None for the method's default.
        prepare: options of the preparation.
    """

    label: str
    method: str
    options: dict[str, Any]
    start: str | float | None
    prepare: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Bench:
    """Virtual robot, controller and motion of a study.

    Attributes:
        model, base, theta: model, base parameters, and true standard parameters (parameters,).
        controller, path: control law, and reference motion.
        encoder, position_noise, torque_noise: (dof,), resolution of the encoders, rad or m, and standard deviations of
            the position noise, rad or m, and torque noise, N m or N, at noise level 1.
        factor: (base, base), triangular factor of the base regressor along the motion: |factor x| is the norm of the
            torques of x.
        entries, seed: methods with initial values, and seed of the random numbers.
    """

    model: Model
    base: BaseParameters
    theta: Array
    controller: Controller
    path: Reference
    encoder: Array
    position_noise: Array
    torque_noise: Array
    factor: Array
    entries: tuple[BenchEntry, ...]
    seed: int

    @property
    def truth(self) -> Array:
        """The true base parameters (base,) of the simulated robot."""
        return self.base.reduce(self.theta)


def make_bench(study: Study) -> Bench:
    """Return robot, control law and motion of a study; raise an error for invalid settings before anything runs."""
    model = _model(study)
    theta = _truth(study, model)
    base = base_parameters(model)
    path = _path(study, model, base)
    few = slice(None, None, max(1, int(study.rate // 100)))
    q, dq, ddq = path.q[few], path.dq[few], path.ddq[few]
    torque = model.inverse_dynamics(theta, q, dq, ddq)
    torque_noise = study.noise.torque
    if torque_noise is None:
        torque_noise = tuple((_TORQUE_SHARE * np.sqrt(np.mean(torque ** 2, axis=0))).tolist())
    poles = Poles(np.full(model.dof, min(2.0 * np.pi * _DEFAULT_BANDWIDTH_HZ, 0.1 * study.rate)))
    controller = poles if study.controller is None else controller_from_table(study.controller)
    return Bench(model, base, theta, controller, path, _each(study.noise.encoder, model, "encoder"),
                 _each(study.noise.position, model, "position"), _each(torque_noise, model, "torque"),
                 _factor(model, base, q, dq, ddq), tuple(_entries(study)), study.seed)


def _model(study: Study) -> Model:
    robot = Robot.load(study.robot)
    refuse_free_base(robot, "a Monte Carlo study")
    wanted = study.model
    own = wanted.own_terms
    if own is None:
        own = not (wanted.friction or wanted.rotor or wanted.terms)
    return Model(robot, make_terms(robot, friction=wanted.friction, rotor=wanted.rotor, defaults=own,
                                   extra=wanted.terms))


def _truth(study: Study, model: Model) -> Array:
    names = model.parameters.names
    unknown = [name for name in study.values if name not in names]
    if unknown:
        raise ModelError(f"the model has no parameter '{unknown[0]}' for the study's [values]; it has "
                         f"{', '.join(names)}")
    given = {p.name: study.values.get(p.name, p.nominal) for p in model.parameters}
    values = {name: value for name, value in given.items() if value is not None}
    missing = [name for name in names if name not in values]
    if missing:
        raise ModelError(f"robot '{model.robot.name}' gives no value for {', '.join(missing[:5])}, and a study needs "
                         "the true values of all parameters; give them in the study's [values], or remove their term "
                         "from its [model]")
    return model.parameters.vector(values)


def _entries(study: Study) -> list[BenchEntry]:
    entries = []
    for one in study.methods:
        prepare = {**study.prepare, **one.prepare}
        Preparation.from_settings(prepare, f"study, method '{one.label or one.name}'")
        for start in one.starts or (None,):
            label = one.label or one.name
            if start is not None and len(one.starts) > 1:
                label += f" from {start}" if isinstance(start, str) else f" from {100 * start:g} % off"
            entries.append(BenchEntry(label, one.name, dict(one.options), start, prepare))
    return entries


def _each(values: float | tuple[float, ...], model: Model, what: str) -> Array:
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if len(array) not in (1, model.dof):
        raise ModelError(f"the {what} noise of the study has {len(array)} values; robot '{model.robot.name}' needs "
                         f"one, or one for each of its {model.dof} joints")
    return np.array(np.broadcast_to(array, (model.dof,)))


def _path(study: Study, model: Model, base: BaseParameters) -> Reference:
    t = np.arange(max(3, round(study.duration * study.rate))) / study.rate
    if study.motion == "designed":
        # A virtual robot tracks accurately, so no margin is needed.
        motion = excite(model, Limits.from_robot(model.robot), family=Fourier(study.duration, study.harmonics),
                        prior=PriorKnowledge(base=base),
                        search=Search(budget=None, rounds=1, seed=study.seed)).trajectory.at(t)
        return Reference(motion.q, motion.dq, motion.ddq, study.rate)
    # A separate random stream: motions do not depend on the number of repetitions.
    rng = np.random.default_rng(np.random.SeedSequence(study.seed, spawn_key=(0,)))
    candidates = [random_fourier(model.robot, study.duration, study.harmonics, rng) for _ in range(_RANDOM_MOTIONS)]
    coarse = np.linspace(0.0, study.duration, 400)

    def condition(series: FourierSeries) -> float:
        motion = series.at(coarse)
        factor = _factor(model, base, motion.q, motion.dq, motion.ddq)
        size = np.linalg.norm(factor, axis=0)
        return float(np.linalg.cond(factor / size)) if np.all(size > 0) else np.inf

    motion = min(candidates, key=condition).at(t)
    return Reference(motion.q, motion.dq, motion.ddq, study.rate)


def _factor(model: Model, base: BaseParameters, q: Array, dq: Array, ddq: Array) -> Array:
    columns = model.regressor(q, dq, ddq)[:, :, base.independent]
    return triangular(columns.reshape(-1, len(base)))
