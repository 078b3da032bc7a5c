"""The choice of friction and rotor inertia: cross-validation against fits of fewer data, and known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from benchmarks._random_machines import random_machine
from benchmarks.defaults import SIMULATED_CUTOFF, compared
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, choose_terms, ridge_search
from dynid.estimate.friction_choice import _groups
from dynid.estimate.linear import joint_weights
from dynid.estimate.ridge_search import GROUPS, RIDGES, RidgeSearch
from dynid.model import (
    Cable,
    FrictionCurve,
    LoadFriction,
    Model,
    Offset,
    RigidBodies,
    RotorInertia,
    Scara,
    Sign,
    ViscousDifference,
    make_terms,
)
from dynid.recording import Samples
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")
CERTAIN = Model(ROBOT, (RigidBodies(),))
PLAIN = {"Fv": 0.8, "Fc": 0.6, "Fo": 0.1}
SMOOTH = {"kind": "tanh", "width": 0.05}


def _log(kinds, seed, noise=0.05, seconds=20.0, rate=200.0, stribeck=0.0, **values):
    """Samples of a known machine with white noise on its torques; values by symbol, stribeck: N m by which friction
    falls with a speed of 0.15 rad/s."""
    rng = np.random.default_rng(seed)
    tables = [kind if isinstance(kind, dict) else {"kind": kind} for kind in kinds]
    model = Model(ROBOT, make_terms(ROBOT, extra=tables))
    theta = np.array([values.get(p.symbol, 0.0 if p.nominal is None else p.nominal) for p in model.parameters])
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = np.zeros((3, len(t), ROBOT.dof))
    for j in range(ROBOT.dof):
        for k in range(1, 7):
            w, phase, size = 2 * np.pi * (k + rng.uniform(-0.3, 0.3)) / 10.0, rng.uniform(0, 2 * np.pi), \
                1.5 * rng.normal() / k
            q[:, j] += size * np.sin(w * t + phase)
            dq[:, j] += size * w * np.cos(w * t + phase)
            ddq[:, j] -= size * w * w * np.sin(w * t + phase)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += stribeck * np.tanh(dq / 0.02) * np.exp(-np.abs(dq) / 0.15)
    samples = Samples.from_arrays(q, dq, ddq, tau + noise * rng.normal(size=q.shape), rate=rate)
    return replace(samples, keep=np.abs(dq) > 0.01 * np.abs(dq).max(axis=0))  # as a preparation drops slow rows


def _kinds(found):
    return [table["kind"] for table in found.tables]


def test_losses_are_those_of_fits_without_each_block():
    """Every combination of ridges, against least squares on all rows at once, by numpy."""
    samples = _log(["viscous", "coulomb", "load"], 1, seconds=6.0, Fv=0.5, Fc=0.5, Fl=0.2)
    sign = Sign("tanh", 0.05)
    wide = Model(ROBOT, (RigidBodies(), RotorInertia(), FrictionCurve(free=True, ridge=0.0, sign=sign), Offset(),
                         LoadFriction(sign=sign), ViscousDifference()))
    problem = Problem.from_model(wide, samples, blocks=4)
    groups = _groups(problem.base, has_rotor=False)
    search = RidgeSearch.from_regression(problem.regression, groups)
    extra = np.concatenate([groups[name] for name in GROUPS])
    weights = joint_weights(problem.regression.select(np.setdiff1d(np.arange(len(problem.base)), extra)))
    rows = problem.model.regressor(samples.q, samples.dq, samples.ddq)[:, :, problem.base.independent]
    rows, tau = rows * weights[:, None], samples.tau * weights
    for curve, load, rotor in ((np.inf, np.inf, 0.0), (0.01, np.inf, 0.0), (0.1, 0.001, np.inf)):
        ridges = {"curve": curve, "load": load, "viscous-difference": 0.1, "rotor": rotor}
        found = search.losses(ridges)
        ridge = np.zeros(len(problem.base))
        for name, value in ridges.items():
            ridge[groups[name]] = value
        own = np.flatnonzero(np.isfinite(ridge))
        for k, block in enumerate(problem.regression.blocks):
            inside = ((samples.t >= block.spans[0].start) & (samples.t <= block.spans[0].stop))[:, None]
            fit = rows[~inside & samples.keep]
            pull = np.diag(np.sqrt(ridge[own]) * np.linalg.norm(fit[:, own], axis=0))
            beta = np.linalg.lstsq(np.vstack([fit[:, own], pull]),
                                   np.concatenate([tau[~inside & samples.keep], np.zeros(len(own))]), rcond=None)[0]
            left = np.where(inside & samples.keep, tau - rows[:, :, own] @ beta, 0.0)
            np.testing.assert_allclose(found[k], np.sum(left ** 2, axis=0), rtol=1e-5)


class _Given(RidgeSearch):
    """A search whose squared errors on eight blocks are given: a curve predicts ten times better, and load friction in
    addition to it by a share `found["load"]`, unevenly over the blocks."""

    def losses(self, ridges, without=()):
        has_curve, has_load = (np.isfinite(ridges[kind]) for kind in ("curve", "load"))
        uneven = 1.0 + 0.3 * np.sin(np.arange(8.0) + 3.0 * has_load)[:, None]
        return (10.0 if has_curve else 100.0) * (1.0 - self.found["load"] * has_load) * uneven


@pytest.mark.parametrize(("share", "is_taken"), [(0.03, False), (0.7, True)])
def test_of_combinations_within_a_standard_error_of_the_best_the_simplest_is_taken(share, is_taken):
    search = _Given((None,) * 8, {}, np.zeros(0, int), np.zeros(0, int), np.array([1e3]), found={"load": share})
    ridges = search.run()
    assert np.isfinite(ridges["curve"]) and ridges["viscous-difference"] == np.inf
    assert np.isfinite(ridges["load"]) == is_taken


def test_two_kinds_that_predict_well_only_together_are_found():
    """Five seconds of an arm with load friction on joint 2 and asymmetric friction on joint 1. Either alone predicts
    hardly better than plain friction, and a friction curve imitates both on this motion alone."""
    machine = random_machine(20026, 5.0)
    assert machine.friction == ("asymmetric", "load")
    found = compared(machine.robot, (machine.fitted,), (machine.tested,), SIMULATED_CUTOFF)
    assert "curve" not in found["friction"]
    assert found["ratio"] < 0.6


def test_plain_friction_stays_plain_on_short_and_long_logs():
    """Of many machines: five seconds are too few to take anything but chance."""
    kinds = ["viscous", "coulomb", "offset"]
    every = [choose_terms(CERTAIN, _log(kinds, seed, seconds=seconds, **PLAIN))
             for seed in range(6) for seconds in (5.0, 20.0)]
    assert sum(not one.ridges for one in every) >= 8
    found = next(one for one in every if not one.ridges)
    assert _kinds(found) == ["rotor", "viscous", "coulomb", "offset"]
    assert found.text.startswith("viscous and Coulomb only on")
    assert "not used: curve (" in str(found.joints[0])


def test_stribeck_friction_is_found_and_its_fall_recovered():
    found = choose_terms(CERTAIN, _log(["viscous", "coulomb"], 3, seconds=60.0, stribeck=0.5, Fv=0.8, Fc=0.6))
    assert "curve" in found.ridges and "coulomb" not in _kinds(found)
    samples = _log(["viscous", "coulomb"], 3, seconds=60.0, stribeck=0.5, Fv=0.8, Fc=0.6)
    problem = Problem.from_model(found.model, samples)
    from dynid.estimate import identify
    estimate = identify(problem, method="wls")
    curve = next(term for term in estimate.model.terms if isinstance(term, FrictionCurve))
    at = [estimate.names.index(item.name) for item in curve.parameters(ROBOT) if item.owner == 1]
    slow, fast = estimate.values[at] @ curve.columns(ROBOT, 1, np.array([0.08, 0.6]))
    assert slow == pytest.approx(0.6 + 0.8 * 0.08 + 0.5 * np.exp(-0.08 / 0.15), abs=0.1)
    assert fast == pytest.approx(0.6 + 0.8 * 0.6 + 0.5 * np.exp(-0.6 / 0.15), abs=0.1)


def test_load_and_asymmetry_are_found_with_what_they_are_worth():
    loaded = choose_terms(CERTAIN, _log(["viscous", "coulomb", {"kind": "load", "sign": SMOOTH}], 4, Fv=0.8, Fc=0.6,
                                        Fl=0.15))
    [table] = [table for table in loaded.tables if table["kind"] == "load"]
    assert min(RIDGES) <= table["ridge"] <= max(RIDGES) and len(table["sign"]["width"]) == ROBOT.dof
    assert max(worth.gain for joint in loaded.joints for worth in joint.taken if worth.term == "load") > 5.0
    uneven = choose_terms(CERTAIN, _log(["asymmetric-viscous", "coulomb"], 5, Fvp=0.9, Fvn=0.3, Fc=0.6))
    assert "viscous-difference" in _kinds(uneven) and "load" not in uneven.ridges
    facts = uneven.to_dict()
    assert facts["blocks"] == 8 and set(facts["joints"]) == set(ROBOT.joint_names)


def test_load_friction_that_would_add_energy_is_not_taken_for_its_joint():
    samples = _log(["viscous", "coulomb", {"kind": "load", "sign": SMOOTH}], 6, Fv=0.8, Fc=0.6, Fl=0.2)
    body = Model(ROBOT, make_terms(ROBOT))
    link = body.inverse_dynamics(body.parameters.nominal, samples.q, samples.dq, samples.ddq)
    tau = samples.tau.copy()
    tau[:, 2] -= 0.4 * np.abs(link[:, 2]) * np.tanh(samples.dq[:, 2] / 0.05)  # in all: -0.2 on the last joint
    found = choose_terms(CERTAIN, replace(samples, tau=tau))
    tables = [table for table in found.tables if table["kind"] == "load"]
    assert all(ROBOT.joint_names[2] not in table.get("joints", ROBOT.joint_names) for table in tables)


@pytest.mark.parametrize("inertia", [0.0, 0.3])
def test_rotor_inertia_is_kept_where_it_exists_and_given_terms_are_not_doubled(inertia):
    samples = _log(["viscous", "coulomb", "rotor"], 7, seconds=20.0, Fv=0.8, Fc=0.6, Ia=inertia)
    found = choose_terms(CERTAIN, samples)
    if inertia:
        assert "rotor" in _kinds(found)
        plain = choose_terms(Model(ROBOT, (RigidBodies(), RotorInertia())), samples)
        assert "rotor" not in _kinds(plain) and any(isinstance(term, RotorInertia) for term in plain.model.terms)
    assert len(set(_kinds(found))) == len(_kinds(found))


def test_a_model_without_rotor_must_win_clearly(monkeypatch):
    """Torques of a sensor behind the gear: without a margin the rotor is left out where it gains anything."""
    samples = _log(["viscous", "coulomb"], 8, seconds=20.0, Fv=0.8, Fc=0.6)
    monkeypatch.setattr(ridge_search, "CLEAR_ERRORS", -np.inf)
    monkeypatch.setattr(ridge_search, "SMALLEST_GAIN", -np.inf)
    assert "rotor" not in _kinds(choose_terms(CERTAIN, samples))
    monkeypatch.setattr(ridge_search, "CLEAR_ERRORS", np.inf)
    assert "rotor" in _kinds(choose_terms(CERTAIN, samples))


def test_a_function_of_position_alone_is_not_chosen():
    """Neither a cable that the machine has, nor one that the model has."""
    samples = _log(["viscous", "coulomb", {"kind": "cable", "joints": [3]}], 9, Fv=0.8, Fc=0.6, Cs2_=0.5, Cc2_=0.3)
    for certain in (CERTAIN, Model(ROBOT, (RigidBodies(), Cable()))):
        found = choose_terms(certain, samples)
        assert not {"cable", "ripple", "delay"} & set(_kinds(found))
        assert not any(isinstance(term, Cable) for term in found.model.terms)


def test_nothing_is_taken_from_rounding():
    samples = _log(["viscous", {"kind": "coulomb", "sign": SMOOTH}, "offset"], 2, noise=0.0, **PLAIN)
    assert set(choose_terms(CERTAIN, samples).ridges) <= {"curve"}  # its sign is smooth over another width


def test_too_few_stretches_and_models_without_terms_are_refused():
    with refused(ModelError, "model-without-robot"):
        choose_terms(Scara(), _log(["viscous"], 0))
    samples = _log(["viscous", "coulomb"], 10, seconds=0.015)
    with refused(NotPossibleError, "too-few-blocks", "--friction"):
        choose_terms(CERTAIN, samples)


def test_a_joint_whose_shape_would_add_energy_keeps_plain_friction():
    """Stribeck friction on two joints; on the third a torque along the slow motion, which no friction has."""
    samples = _log(["viscous", "coulomb"], 11, seconds=60.0, stribeck=1.5, Fv=0.5, Fc=0.3)
    slow = np.tanh(samples.dq[:, 2] / 0.02) * np.exp(-np.abs(samples.dq[:, 2]) / 0.15)
    pushed = np.column_stack([samples.tau[:, :2], samples.tau[:, 2] - 2.5 * slow])
    found = choose_terms(CERTAIN, samples)
    (curve,) = (table for table in found.tables if table["kind"] == "curve")
    assert "joints" not in curve and "viscous" not in _kinds(found)
    found = choose_terms(CERTAIN, replace(samples, tau=pushed))
    (curve,) = (table for table in found.tables if table["kind"] == "curve")
    (viscous,) = (table for table in found.tables if table["kind"] == "viscous")
    names = list(ROBOT.joint_names)
    assert curve["joints"] == names[:2] and viscous["joints"] == names[2:]
    assert [worth.term for worth in found.joints[2].taken] == []


def test_a_difference_between_directions_stays_on_the_joint_that_has_it() -> None:
    """The whole machine gains by the term, but joints without it, one of them with a cable, do not."""
    found = choose_terms(CERTAIN, _log(
        ("viscous", "coulomb", "offset", {"kind": "viscous-difference", "joints": ["joint1"]},
         {"kind": "cable", "joints": ["joint2"]}), seed=5, noise=0.02, Fvd=0.5, Cc2_=0.3, **PLAIN))
    own = [table for table in found.tables if table["kind"] == "viscous-difference"]
    assert [table.get("joints") for table in own] == [["joint1"]]
    assert ["viscous-difference" in {one.term for one in joint.taken} for joint in found.joints] == [True, False, False]


@pytest.mark.parametrize(("left", "is_left_out"), [(0.6, True), (-0.5, False)])
def test_viscous_friction_that_adds_energy_only_beyond_logged_speeds_is_left_out(left: float, is_left_out: bool
                                                                                ) -> None:
    """A line from Coulomb friction to a share `left` of it at the top speed. Friction that adds energy in the log is a
    contradiction, which the fit has to show."""
    samples = _log(("viscous", "coulomb", "offset"), seed=8, noise=0.02, **PLAIN)
    slope, tau = (left - 1.0) * PLAIN["Fc"] / np.abs(samples.dq[:, 2]).max(), samples.tau.copy()
    tau[:, 2] += (slope - PLAIN["Fv"]) * samples.dq[:, 2]
    found = choose_terms(CERTAIN, replace(samples, tau=tau))
    [table] = [table for table in found.tables if table["kind"] == "viscous"]
    assert (table.get("joints") == list(ROBOT.joint_names[:2])) == is_left_out
    assert (found.joints[2].usual == "Coulomb") == is_left_out
    assert ("; Coulomb only on joint3" in found.text) == is_left_out


def test_terms_that_only_excluded_joints_need_are_left_out():
    """Springs at the joints of an arm look like friction on five seconds. The joint that gains most by a friction curve
    would add energy with it, and without it the curve of the other joints predicts another motion worse."""
    machine = random_machine(30015, 5.0, "spring")
    found = compared(machine.robot, (machine.fitted,), (machine.tested,), SIMULATED_CUTOFF)
    assert found["friction"].startswith("viscous and Coulomb only")
    assert found["ratio"] < 1.3
