"""Faults that flexible friction hides, torques of another log, loads in mid-log, and the certainty of a cause."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

from dynid.estimate import Problem, identify
from dynid.model import Cable, Delay, FrictionCurve, LoadFriction, Model, Offset
from dynid.recording import Samples
from dynid.validate import conclusion, reconstruct, verdict
from dynid.validate.candidates import CandidateFit
from dynid.validate.hypotheses.motions import RATES, refined, time_scale
from dynid.validate.hypotheses.other_log import excess_between, largest_excess, load_taken_up, what_changed
from dynid.validate.hypotheses.trial import Trial, fold_logs, posterior_weights, try_out
from dynid.validate.residual_statistics import JointTests
from dynid.validate.verdict_checks.residuals import common_value, torques_late


def flexible(model: Model) -> Model:
    """The robot with all friction terms that a run may choose, delay and cable among them."""
    return Model(model.robot, (*(term for term in model.terms if term.kind not in ("viscous", "coulomb", "offset")),
                               FrictionCurve(asymmetric=True), Offset(), LoadFriction(), Cable(), Delay()))


def codes(model, samples, others=()) -> list[str]:
    problem = Problem.from_model(model, samples)
    estimate = identify(problem, method="wls")
    return [one.code for one in verdict(estimate, problem,
                                        reconstruction=reconstruct(estimate, samples, for_tests=True),
                                        validation=[reconstruct(estimate, one)
                                                    for one in others]).of_kind("problem")]


def test_a_wrong_sign_is_named_where_flexible_friction_could_absorb_it(simulate):
    log = simulate("arm3r")
    wrong = replace(log.samples, tau=log.samples.tau * [1.0, -1.0, 1.0])
    assert codes(flexible(log.model), wrong)[:1] == ["torque-sign"]
    assert "torque-sign" not in codes(flexible(log.model), log.samples)


def test_a_delay_is_reported_where_the_model_has_a_term_for_it(simulate):
    log = simulate("arm3r", noise=0.005)
    s = log.samples
    late = np.column_stack([np.interp(s.t - 0.02, s.t, s.tau[:, j]) for j in range(3)])
    assert "residual-follows-delay" in codes(flexible(log.model), replace(s, tau=late))
    assert "residual-follows-delay" not in codes(flexible(log.model), s)


def test_a_delay_of_one_joint_alone_is_a_remark(simulate):
    """Nothing is blamed, since a bus delays all joints; its size is stated all the same."""
    log = simulate("arm3r", noise=0.005)
    s = log.samples
    late = s.tau.copy()
    late[:, 0] = np.interp(s.t - 0.01, s.t, s.tau[:, 0])
    problem = Problem.from_model(log.model, replace(s, tau=late))
    estimate = identify(problem, method="wls")
    found = [one for one in verdict(estimate, problem).findings if one.code == "residual-follows-delay"]
    assert [(one.kind, one.joints) for one in found] == [("validation", ("joint1",))]
    (coefficient,) = np.atleast_1d(found[0].evidence["coefficient"])
    assert -0.01 < coefficient < -1.0 / s.rate  # the fit takes up a part of it
    assert "95 % interval" in found[0].text


@pytest.mark.parametrize(("late", "std", "is_common"), [
    ((0.012, 0.011, 0.009), 1e-4, True),  # agree: a fault of the log, however little of the torques it makes
    ((0.012, 0.011), 1e-4, True), ((0.012,), 1e-4, False),  # one joint alone may have a filter in its drive
    ((0.012, -0.011, 0.009), 1e-4, False), ((0.03, 0.011, 0.009), 1e-4, False),  # other signs, other sizes
    ((0.004, 0.004, 0.004), 1e-4, False), ((0.012, 0.011, 0.009), 4e-3, False),  # within a sample, or unsure
    ((-0.007, -0.006, -0.007), 1e-4, False), ((-0.012, -0.013, -0.012), 1e-4, True)])  # commands are early
def test_a_delay_that_joints_share_is_a_fault_of_the_log(late, std, is_common):
    """At 200 Hz, a sample of 5 ms; of the other joints nothing is known."""
    fits = [CandidateFit("delay", 0.1, 0.01, 500.0, -x, left_out=0.1, blocks=1.0, std=std) for x in late]
    fits += [CandidateFit("velocity", 0.1, 0.01, 500.0, 0.1, left_out=0.1, blocks=1.0)] * (3 - len(fits))
    tests = SimpleNamespace(joints=[JointTests(f"joint{j}", "N m", None, None, (fit,), None)
                                    for j, fit in enumerate(fits)])
    case = SimpleNamespace(tests=tests, at_rest=lambda j: False, estimate=SimpleNamespace(
        base=SimpleNamespace(independent=())), problem=SimpleNamespace(
        recordings=(), data=(SimpleNamespace(rate=200.0),), regression=SimpleNamespace(joints=())))
    found = list(torques_late(case))
    assert [(one.code, one.kind) for one in found] == [("residual-follows-delay", "problem")] * is_common
    if found:
        np.testing.assert_allclose(found[0].evidence["coefficient"], np.negative(late))
        assert found[0].evidence["common"] == pytest.approx(np.mean(late))


@pytest.mark.parametrize("std", [1e-4, 1.0, 3.0])
def test_a_common_value_has_the_spread_between_joints_in_its_standard_error(std):
    """With equal standard errors the mean is the plain one, and its variance the larger of both over the number."""
    x = np.array([1.0, 2.0, 4.0, 3.0])
    mean, error = common_value(np.column_stack([x, np.full(4, std)]))
    assert mean == pytest.approx(2.5)
    assert error == pytest.approx(max(std, np.std(x, ddof=1)) / 2.0)


@pytest.mark.parametrize(("own", "ratio", "kind"), [
    (0.5, 1.1, None), (0.5, 1.7, "validation"), (0.5, 2.5, "problem"), (0.1, 0.9, "problem")])
def test_a_contradiction_is_a_warning_where_it_causes_most_of_the_misfit(simulate, monkeypatch, own, ratio, kind):
    """Healthy simulated robots with little noise had squared errors up to 1.7 times those of separate fits, healthy
    real ones up to 4 times in the fit. A Panda with the file of another arm has 11 times in the fit, and separate fits
    that predict other blocks no better."""
    log = simulate("kuka-lwr4", noise=0.005)
    problem = Problem.from_model(log.model, log.samples, blocks=8)
    monkeypatch.setattr(Trial, "own_score", property(lambda trial: own * trial.fit_score))
    monkeypatch.setattr(conclusion, "contradiction", lambda trial: (ratio, 1e-9))
    found = [one.kind for one in verdict(identify(problem, method="wls"), problem).findings
             if one.code == "unexplained-misfit"]
    assert found == ([] if kind is None else [kind])


def test_joints_contradict_each_other_where_the_robot_file_is_of_another_robot(simulate):
    """An elbow beside the upper arm explains each joint alone, not all; nothing is said of the right file."""
    log = simulate("kuka-lwr4", noise=0.005)
    robot = log.model.robot
    other = replace(robot, joints=tuple(_beside(joint, 0.25) if joint.name == "joint3" else joint
                                        for joint in robot.joints))

    def found(model) -> list[str]:
        problem = Problem.from_model(model, log.samples, blocks=8)
        return [one.code for one in verdict(identify(problem, method="wls"), problem).of_kind("problem")]

    assert "unexplained-misfit" not in found(log.model)
    assert "unexplained-misfit" in found(type(log.model)(other, log.model.terms))


@pytest.mark.parametrize("j", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_another_zero_position_is_named_with_its_size(simulate, j):
    log = simulate("kuka-lwr4", noise=0.005)
    names, off = log.model.robot.joint_names, 0.1 * (np.arange(log.model.dof) == j)
    samples = replace(log.samples, q=log.samples.q - off)
    found = [one for one in verdict(identify(log.model, samples, method="wls"), samples).of_kind("problem")]
    assert [(one.code, one.joints) for one in found] == [("position-offset", (names[j],))]
    assert found[0].evidence["offset"] == pytest.approx(0.1, abs=0.01)


def _beside(joint, offset: float):
    pose = np.array(joint.after)
    pose[0, 3] += offset
    return replace(joint, after=pose)


def test_torques_of_another_log(simulate):
    log, other = simulate("kuka-lwr4"), simulate("kuka-lwr4", seed=5, source="other.csv")
    mixed, rest = replace(log.samples, tau=other.samples.tau), replace(other.samples, tau=log.samples.tau)
    assert codes(log.model, mixed) == ["torques-unrelated"]
    assert codes(log.model, mixed, [rest])[0] == "torques-exchanged"


def test_missing_friction_is_not_taken_for_torques_of_another_log(simulate):
    """Friction that the model lacks and that dominates the torque is named as friction."""
    log, other = simulate("arm3r"), simulate("arm3r", seed=5, source="other.csv")
    size = 4.0 * np.std(log.samples.tau, axis=0)
    rough = replace(log.samples, tau=log.samples.tau + size * np.sign(log.samples.dq))
    without = Model(log.model.robot)
    found = codes(without, rough)
    assert "torques-unrelated" not in found and "residual-follows-velocity-sign" in found
    assert codes(without, replace(log.samples, tau=other.samples.tau)) == ["torques-unrelated"]


def test_exchanged_torques_of_a_small_arm(simulate):
    """And nothing of the kind is said of two healthy logs."""
    log, other = simulate("arm3r"), simulate("arm3r", seed=5, source="other.csv")
    exchanged = replace(log.samples, tau=other.samples.tau), replace(other.samples, tau=log.samples.tau)
    assert codes(log.model, exchanged[0], [exchanged[1]])[0] == "torques-exchanged"
    assert "torques-exchanged" not in codes(log.model, log.samples, [other.samples])


def test_a_load_taken_up_in_mid_log_is_dated(simulate):
    log = simulate("kuka-lwr4", noise=0.01, rows=4000)
    loaded = simulate("kuka-lwr4", noise=0.01, rows=4000, changes={"M7": 3.0, "MZ7": 0.45, "XX7": 0.09, "YY7": 0.09})
    at = 2300  # of 4000 rows at 200 Hz: 11.5 s
    tau = np.vstack([log.samples.tau[:at], loaded.samples.tau[at:]])
    problem = Problem.from_model(log.model, replace(log.samples, tau=tau), blocks=8)
    found = load_taken_up(problem, try_out(problem.regression).noise)
    assert found is not None and found.start <= 11.5 <= found.stop and found.explained > 0.95
    healthy = log.problem(blocks=8)
    assert load_taken_up(healthy, try_out(healthy.regression).noise) is None
    assert "load-changed" in codes(log.model, problem.data[0])


def test_the_excess_between_parts_is_that_of_their_own_fits(simulate):
    """Against least squares on the rows themselves."""
    log = simulate("arm3r")
    problem = log.problem(blocks=4)
    fold, s, base = problem.regression, problem.data[0], problem.base
    noise = try_out(fold).noise
    y = problem.model.regressor(s.q, s.dq, s.ddq)[:, :, base.independent] / noise[None, :, None]
    tau = s.tau / noise

    def left(rows):
        x, target = y[rows].reshape(-1, len(base)), tau[rows].ravel()
        return float(np.sum((target - x @ np.linalg.lstsq(x, target, rcond=None)[0]) ** 2))

    halves = np.array_split(np.arange(len(s)), 2)
    parts = [type(fold).from_blocks(base, blocks, fold.joints) for blocks in (fold.blocks[:2], fold.blocks[2:])]
    expected = left(np.arange(len(s))) / sum(map(left, halves)) - 1.0
    assert excess_between(parts, noise) == pytest.approx(expected, rel=1e-5, abs=1e-9)
    assert largest_excess([fold], noise) >= expected - 1e-9


def test_halves_of_one_log_are_one_machine_whatever_the_model_lacks(simulate):
    """A log with friction that the model has no term for: its halves differ, yet no other machine is stated."""
    log = simulate("arm3r", noise=0.01, rows=4000)
    plain, s = log.model, log.samples
    whole = replace(s, tau=s.tau + 0.15 * s.tau.std(axis=0) * np.sin(5.0 * s.q) * np.sign(s.dq))
    first, second = (whole.select([rows]) for rows in ((0, 2000), (2000, 4000)))
    problem = Problem.from_model(plain, first, blocks=8)
    found = what_changed(problem, try_out(problem.regression).beta, (second,))
    assert found.what not in ("machine", "load", "gain")


def test_posterior_weights_are_the_chances_of_a_further_block():
    rng = np.random.default_rng(0)
    best = np.exp(rng.normal(size=8))
    close, far = best * np.exp(0.05 + 0.1 * rng.normal(size=8)), best * np.exp(3.0 + 0.1 * rng.normal(size=8))
    weights = posterior_weights([best, close, far])
    assert sum(weights) == pytest.approx(1.0) and weights[2] < 1e-5
    behind = np.log(close / best)
    chance = student.sf(behind.mean() / (behind.std(ddof=1) / np.sqrt(8)), 7)
    assert weights[1] / weights[0] == pytest.approx(chance / (1.0 - chance), rel=0.15)
    assert posterior_weights([best, best.copy()]) == pytest.approx([0.5, 0.5])


def test_a_number_is_refined_to_the_vertex_of_a_parabola():
    def misfit(one):  # one for the uncorrected data
        return (np.log(one.values[0]) / np.log(1.4) - 1.0) ** 2

    found = refined([(misfit(one), one) for one in map(time_scale, RATES)], misfit)
    assert found.values[0] == pytest.approx(1.4, rel=1e-6)


def test_stretched_time_stretches_the_filter_too(simulate):
    samples = replace(simulate("arm3r").samples, settings={"cutoff": 50.0, "torque_cutoff": "same"})
    _, (slow,) = time_scale(16.0).change(simulate("arm3r").model, (samples,))
    assert slow.settings["cutoff"] < 0.5 * slow.rate and slow.settings["torque_cutoff"] == "same"


def test_a_fold_of_the_same_rows_has_the_excess_of_none(simulate):
    log = simulate("arm3r")
    fold = fold_logs(log.model, (log.samples,), log.problem().base, 1)
    assert excess_between([fold, fold], try_out(fold).noise) == pytest.approx(0.0, abs=1e-9)


def test_a_cutoff_that_lets_noise_through_is_refused(simulate):
    log = simulate("arm3r")
    rng = np.random.default_rng(0)
    rate, cutoff, size = 200.0, 50.0, 1e-3
    spectrum = {name: {"f": [], "psd": [], "noise_floor": 2.0 * size ** 2 / rate, "cutoff": 4.0}
                for name in log.model.robot.joint_names}
    noise = size * np.sqrt((2 * np.pi) ** 4 * cutoff ** 5 / 5 * 2.0 / rate) * rng.normal(size=log.samples.ddq.shape)
    noisy: Samples = replace(log.samples, ddq=log.samples.ddq + noise, spectrum=spectrum,
                             settings={"cutoff": cutoff, "velocity": "differentiate"})
    assert codes(log.model, noisy) == ["cutoff-too-high"]
    assert "cutoff-too-high" not in codes(log.model, replace(noisy, settings={"cutoff": 4.0}))
