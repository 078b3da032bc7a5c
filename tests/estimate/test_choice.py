"""Method auto: the choice by blocks of time left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from four_joint_arm import machine
from motions import arm, motion
from refusals import refused
from scipy import stats

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, choice, identify
from dynid.estimate.block_cross_validation import BlockCrossValidation, cross_validate_blocks
from dynid.estimate.choice import compare_left_out, preferred, student_quantile
from dynid.estimate.reference_validation import acceleration_noise
from dynid.model import Model, make_terms
from dynid.recording.log_reading import read
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import cross_validate

MAPPINGS = Path(__file__).resolve().parents[2] / "reproductions" / "mappings"


def noisy(seed: int, level: float = 0.1, seconds: float = 10.0) -> Problem:
    model, theta = arm()
    rows = round(200 * seconds)
    return Problem.from_model(model, motion(model, theta, level * np.random.default_rng(seed).normal(size=(rows, 3)),
                                            seconds=seconds))


def left_out(name: str, errors: list[float]) -> BlockCrossValidation:
    return BlockCrossValidation(name, {}, tuple(range(len(errors))), np.array(errors), np.empty((0, 0)), ())


def test_blocks_left_out_are_fits_of_the_other_rows() -> None:
    """The same fits from all rows at once, by numpy."""
    problem = noisy(1)
    found = cross_validate_blocks(problem, "ols")
    samples, model = problem.data[0], problem.model
    rows = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, problem.base.independent]
    for k, block in enumerate(problem.regression.blocks):
        inside = (samples.t >= block.spans[0].start) & (samples.t <= block.spans[0].stop)
        fit = [samples.keep & ~inside[:, None], samples.keep & inside[:, None]]
        beta = np.linalg.lstsq(rows[fit[0]], samples.tau[fit[0]], rcond=None)[0]
        wrong = samples.tau[fit[1]] - rows[fit[1]] @ beta
        expected = 100.0 * np.linalg.norm(wrong) / np.linalg.norm(samples.tau[fit[1]])
        assert found.errors[k] == pytest.approx(expected, rel=1e-6)


def test_methods_are_compared_by_a_paired_test_over_blocks() -> None:
    rng = np.random.default_rng(0)
    least = list(rng.uniform(10.0, 30.0, 10))  # percent
    for shift in (0.02, 0.2, 0.5, 1.0):
        other = [x * np.exp(shift + 0.5 * y)
                 for x, y in zip(least, stats.zscore(rng.normal(size=10), ddof=1), strict=True)]
        seen = {"wls": left_out("wls", least), "pc-wls": left_out("pc-wls", other)}
        found = compare_left_out(seen, {name: one.errors for name, one in seen.items()})["pc-wls"]
        plain = stats.ttest_rel(np.log(other), np.log(least))
        t = plain.statistic / np.sqrt(1.0 + 10.0 / 9.0)  # variance s^2 (1/n + 1/(n-1)) instead of s^2 / n
        assert found.excess_error == pytest.approx(100.0 * np.expm1(shift), rel=1e-3)
        assert shift / (found.excess_std / (100.0 + found.excess_error)) == pytest.approx(t, rel=1e-3)
        assert found.significant == (stats.t.sf(t, 9) < 0.05)
    assert found.significant


def test_a_difference_below_a_hundredth_is_none_however_sure() -> None:
    least = np.linspace(1.0, 3.0, 10)
    seen = {"wls": left_out("wls", list(least)), "pc-wls": left_out("pc-wls", list(least + 0.01))}
    assert not compare_left_out(seen, {name: one.errors for name, one in seen.items()})["pc-wls"].significant


def test_what_can_exist_goes_first_where_nothing_tells() -> None:
    assert preferred(["wls", "pc-ridge", "pc-wls", "iv"]) == "pc-wls" and preferred(["wls", "pc-ridge"]) == "pc-ridge"
    found = identify(noisy(2))
    assert found.method == "pc-wls" and found.theta is not None
    choice = found.diagnostics["choice"]
    assert choice["method"] == "pc-wls"
    assert {one["method"] for one in choice["candidates"]} >= {"wls", "pc-wls"}
    assert all(len(one["errors"]) == 10 for one in choice["candidates"])


def test_the_estimate_is_the_chosen_methods_own() -> None:
    problem = noisy(3)
    found = identify(problem)
    named = identify(problem, method=found.method)
    np.testing.assert_array_equal(found.values, named.values)
    np.testing.assert_array_equal(found.covariance, named.covariance)
    assert found.provenance["options"] == named.provenance["options"] == {}
    reused, anew = cross_validate(problem, "auto", estimate=found), cross_validate(problem, found.method)
    assert reused.method == found.method
    np.testing.assert_allclose(reused.errors, anew.errors, rtol=1e-9)


def test_least_squares_is_chosen_where_no_robot_that_can_exist_has_these_torques() -> None:
    """The torque of one joint has the wrong sign: negative masses explain it, and blocks left out say so."""
    problem = noisy(4, level=0.01)
    [samples] = problem.data
    wrong = Problem.from_model(problem.model, replace(samples, tau=samples.tau * [-1.0, 1.0, 1.0]))
    assert identify(wrong).method == "wls"


def test_no_consistent_method_is_taken_where_the_data_contradict_pc_wls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks on which pc-wls is clearly worse than wls, and pc-ridge too uneven to tell."""
    errors = {"wls": np.full(10, 1.0), "pc-wls": np.linspace(1.9, 2.1, 10), "pc-ridge": np.array([1.0] * 9 + [40.0])}
    monkeypatch.setattr(choice, "cross_validate_blocks", lambda problem, name, *_: left_out(name, list(errors[name])))
    fits = dict.fromkeys(errors, identify(noisy(12), method="wls"))
    assert choice.choose(noisy(12), fits, {}, {}, tuple(errors)).method == "wls"
    errors["pc-wls"] = np.array([1.0] * 9 + [30.0])
    assert choice.choose(noisy(12), fits, {}, {}, tuple(errors)).method == "pc-wls"


@pytest.mark.parametrize(("blocks", "expected"), [([9], "pc-wls"), ([5, 6, 7, 8, 9], "pc-ridge")])
def test_the_nominal_model_is_used_where_it_reduces_the_errors_of_blocks_by_a_tenth(
        monkeypatch: pytest.MonkeyPatch, blocks: list[int], expected: str) -> None:
    """Smaller by 0.7 on one bad block, which is 0.965 in the geometric mean, or on half of the blocks, 0.837."""
    uneven = np.array([1.0] * 9 + [20.0])  # no difference is significant
    ridge = uneven.copy()
    ridge[blocks] *= 0.7
    errors = {"wls": 1.1 * uneven, "pc-wls": uneven, "pc-ridge": ridge}
    monkeypatch.setattr(choice, "cross_validate_blocks", lambda problem, name, *_: left_out(name, list(errors[name])))
    fits = dict.fromkeys(errors, identify(noisy(12), method="wls"))
    assert choice.choose(noisy(12), fits, {}, {}, tuple(errors)).method == expected


def test_a_decomposition_that_does_not_converge_ends_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(problem: Problem, *, method: str, **options: object) -> object:
        if method == "pc-wls":
            raise np.linalg.LinAlgError("SVD did not converge")
        return identify(problem, method=method, **options)

    monkeypatch.setattr(choice, "identify", one)
    found = identify(noisy(4), method="auto", candidates=["wls", "pc-wls"])
    assert found.method == "wls"
    [failed] = [one for one in found.diagnostics["choice"]["candidates"] if one["method"] == "pc-wls"]
    assert "converge" in failed["failure"]


def test_a_candidate_that_fails_is_listed_and_does_not_end_the_choice() -> None:
    problem = noisy(5)
    found = identify(problem, method="auto", candidates=["wls", "sls"])
    assert found.method == "wls"
    [failed] = [one for one in found.diagnostics["choice"]["candidates"] if one["method"] == "sls"]
    assert failed["error"] is None and failed["failure"]


def test_wrong_candidates_are_one_sentence() -> None:
    problem = noisy(6, seconds=5.0)
    for options, words in (({"candidates": ["wsl"]}, ("unknown-method", "'wsl'")),
                           ({"candidates": ["auto"]}, ("no-candidates", "'auto'")),
                           ({"candidates": []}, ("no-candidates", "'auto'")),
                           ({"options": {"wsl": {}}}, ("unknown-method", "'wsl'"))):
        with refused(ModelError, *words):
            identify(problem, method="auto", **options)
    with refused(ModelError, "no-free-shapes"):
        identify(problem, method="auto", candidates=["sls"])


def test_options_reach_their_candidate() -> None:
    problem = noisy(7)
    found = identify(problem, method="auto", candidates=["pc-wls"], options={"pc-wls": {"fill_with": "central"}})
    assert found.method == "pc-wls" and found.diagnostics["filled_with"] == "central"
    assert found.provenance["options"] == {"fill_with": "central"}


def test_a_saved_fold_and_one_without_blocks_can_choose_too() -> None:
    problem = noisy(8)
    assert identify(Problem(problem.model, problem.regression)).method == "pc-wls"
    whole = identify(Problem(problem.model, problem.regression.joined(1)))
    assert whole.method == "pc-wls" and all(one["error"] is None for one in whole.diagnostics["choice"]["candidates"])


def test_blocks_of_several_logs_are_stretches_of_each() -> None:
    one, two = noisy(9), noisy(10)
    both = Problem.from_model(one.model, [*one.data, *two.data])
    choice = identify(both).diagnostics["choice"]
    logs = {span.log for block in both.regression.blocks for span in block.spans}
    assert logs == {0, 1} and len(choice["candidates"][0]["errors"]) == len(both.regression.blocks) == 10


@pytest.mark.slow
def test_noisy_positions_and_a_known_law_bring_instruments() -> None:
    arm4 = machine(seconds=8.0)
    log = arm4.log(position_noise=2e-4, seed=1)
    rough, smooth = arm4.problem(log, cutoff=40.0), arm4.problem(log)
    assert acceleration_noise(rough).max() > 0.01 > acceleration_noise(smooth).max()
    found = identify(rough)
    truth = rough.base.reduce(arm4.theta)
    assert found.method == "iv"
    wrong = {name: np.median(np.abs(identify(rough, method=name).values - truth)) for name in ("wls", "pc-wls", "iv")}
    assert wrong["iv"] < 0.3 * min(wrong["wls"], wrong["pc-wls"])
    assert "iv" not in [one["method"] for one in identify(smooth).diagnostics["choice"]["candidates"]]


def test_a_weak_real_log_is_left_to_a_robot_that_can_exist(data: Callable[..., Path]) -> None:
    robot = Robot.load(data("kuka_lwr4", "kuka_lwr4.urdf"))
    samples = prepare(read(data("kuka_lwr4", "measurements_1.npz"), MAPPINGS / "kuka_lwr4.toml", robot))
    for friction in (("viscous", "coulomb"), ("viscous", "coulomb", "offset")):
        assert identify(Model(robot, make_terms(robot, friction=friction)), samples).method in ("pc-wls", "pc-ridge")


def test_a_fit_that_cannot_be_filled_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynid.consistency import Consistency
    from dynid.estimate import consistent
    problem = noisy(11)
    usual = identify(problem, method="pc-wls")

    def refuse(*_: object, **__: object) -> None:
        raise NotPossibleError("the parameters nearest to the nominal model, or most central, could not be found")

    monkeypatch.setattr(consistent, "fill_by_barrier", refuse)
    found = identify(problem, method="pc-wls")
    assert found.diagnostics["filled_with"] == "none" and found.theta is not None
    assert not Consistency(problem.model.parameters, margin=0.0).violations(found.theta)
    # The least misfit of all: what is filled costs up to a hundredth of it.
    least, filled = (problem.regression.misfits(one.values) @ np.square(one.diagnostics.weights)
                     for one in (found, usual))
    assert 0.99 * filled <= least <= filled * (1 + 1e-6)
    fixed = np.flatnonzero(np.count_nonzero(problem.base.matrix, axis=0) == 1)
    open_ones = set(found.diagnostics["not_filled"])
    assert open_ones and "M1" in open_ones
    assert all(name in problem.model.parameters.names for name in open_ones) and len(fixed)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 10, 31, 100])
def test_quantiles_of_students_distribution(df: int) -> None:
    for share in (0.6, 0.95, 0.999):
        assert student_quantile(df, share) == pytest.approx(float(stats.t.ppf(share, df)), rel=1e-9)
