"""Methods on filtered equations: which take them, what they find, and how far their deviations can be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from filtered_logs import simulated
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Problem, identify, methods
from dynid.estimate.cutoff_choice import choose_cutoff
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import prepare
from dynid.validate import cross_validate, reconstruct

KINDS = ["kernel", "power", "energy"]
TAKE_THEM = ["ols", "wls", "ml", "tls", "irls", "rls", "cls", "s-rls", "mrls", "ridge", "pc-ols", "pc-wls", "pc-ridge",
             "auto"]
MAKE_THEIR_OWN = ["iv", "pc-iv", "didim", "pc-didim", "cloe", "clie", "ekf", "ukf", "sls", "pc-sls", "riv", "civ"]


@pytest.fixture(scope="module")
def problems():
    model, theta, log = simulated("arm3r", positions=2e-5, torques=0.02)
    found = {kind: Problem.from_model(model, prepare(log, equations=kind, cutoff=8.0), recordings=log)
             for kind in ["torque", *KINDS]}
    return found, found["torque"].base.reduce(theta)


@pytest.mark.parametrize("kind", ["kernel", "power"])
@pytest.mark.parametrize("method", TAKE_THEM)
def test_methods_after_the_fold_take_them(problems, kind, method):
    problem, truth = problems[0][kind], problems[1]
    found = identify(problem, method=method)
    off = np.abs(found.values - truth)[found.identified] / found.std[found.identified]
    assert np.mean(off < 2.0) > 0.85 and off.max() < 6.0
    assert problem.torques.regression.relative_error(found.values) < 0.6  # percent; with the truth 0.2


@pytest.mark.parametrize("method", MAKE_THEIR_OWN)
def test_methods_that_make_rows_of_their_own_say_so(problems, method):
    with refused(ModelError, "needs-torque-equations", f"'{method}'", "'kernel'"):
        identify(problems[0]["kernel"], method=method)


def test_every_method_takes_them_or_says_why_not():
    needs = {name: one.needs for name, one in methods().items()}
    assert {name for name, own in needs.items() if "torques" in own} == set(MAKE_THEIR_OWN)
    assert {name for name, own in needs.items() if "joints" in own} == {"s-rls-b", "line-by-line"}


@pytest.mark.parametrize("method", ["s-rls-b", "line-by-line"])
def test_methods_from_joint_to_joint_refuse_rows_of_a_robot(problems, method):
    assert identify(problems[0]["kernel"], method=method).values.shape == problems[1].shape
    with refused(ModelError, "needs-joint-equations"):
        identify(problems[0]["power"], method=method)


def agreement(name: str, kinds: list[str], seeds: range, **options: float) -> dict[str, np.ndarray]:
    """For each kind the differences from the torque model's values in stated deviations (its own), and of the truth,
    (2, logs, base)."""
    found: dict[str, list] = {kind: [] for kind in kinds}
    for seed in seeds:
        model, theta, log = simulated(name, seed=seed, positions=2e-5, torques=0.02, **options)
        estimates = {kind: identify(Problem.from_model(model, prepare(log, equations=kind, cutoff=8.0), recordings=log),
                                    method="wls") for kind in ["torque", *kinds]}
        truth = estimates["torque"].base.reduce(theta)
        for kind in kinds:
            one = estimates[kind]
            found[kind].append([(one.values - estimates["torque"].values) / one.std, (one.values - truth) / one.std])
    return {kind: np.abs(np.array(one)).transpose(1, 0, 2) for kind, one in found.items()}


def test_power_and_energy_agree_with_torques_on_the_arm():
    for kind, (from_torques, from_truth) in agreement("arm3r", KINDS, range(4), seconds=40.0).items():
        share = 1.0 if kind == "kernel" else 0.93
        assert np.mean(from_torques < 2.0) >= share and from_torques.max() < 4.0, kind
        assert np.mean(from_truth < 2.0) > 0.9, kind


@pytest.mark.slow
def test_power_and_energy_agree_with_torques_on_the_lwr():
    for kind, (from_torques, from_truth) in agreement("kuka-lwr4", KINDS, range(4), seconds=60.0).items():
        share = 1.0 if kind == "kernel" else 0.93
        assert np.mean(from_torques < 2.0) >= share and from_torques.max() < 4.0, kind
        assert np.mean(from_truth < 2.0) > 0.9, kind


def test_noise_of_positions_is_told_of(problems):
    model, theta, log = simulated("arm3r", positions=3e-4, torques=0.005)
    found = identify(Problem.from_model(model, prepare(log, equations="kernel", kernel_window=0.03), recordings=log),
                     method="wls")
    truth = found.base.reduce(theta)
    assert "noise-in-motion" in {note.code for note in found.notes}
    assert np.mean(np.abs(found.values - truth) < 2 * found.std) > 0.85


def test_the_window_is_chosen_by_blocks_left_out():
    model, _, log = simulated("arm3r", positions=1e-4, torques=0.05)
    choice = choose_cutoff(model, log, Preparation(equations="kernel"))
    assert len(choice.tried) > 2 and choice.settings.equations == "kernel"
    samples = choice.prepare(log)
    problem = Problem.from_model(model, samples, recordings=log)
    errors = [problem.torques.regression.relative_error(identify(
        Problem.from_model(model, prepare(log, equations="kernel", cutoff=cutoff)), method="wls").values)
        for cutoff in (choice.cutoff, 100.0)]
    assert errors[0] < errors[1]
    assert samples.filtered.filter.window == pytest.approx(1.605 / choice.cutoff, rel=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_cross_validation_and_reconstruction_are_of_torques(problems, kind):
    problem = problems[0][kind]
    found = identify(problem, method="wls")
    cross = cross_validate(problem, "wls", estimate=found)
    plain = cross_validate(problems[0]["torque"], "wls")
    assert cross.joints == plain.joints and cross.errors_per_joint.shape == plain.errors_per_joint.shape
    assert cross.mean == pytest.approx(plain.mean, rel=0.25)
    shown = reconstruct(found, problem.data)
    assert shown.relative_error == pytest.approx(problem.torques.regression.relative_error(found.values), rel=1e-6)
