"""The grade of a model, its three lines, and the order of findings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.findings import Finding
from dynid.validate import reconstruct, verdict
from dynid.validate.cross_validation import cross_validate
from dynid.validate.grade import GOOD_ERROR, USABLE_ERROR, Summary, grouped, ranked


def suspect(code: str, severity: str = "warning", **more) -> Finding:
    return Finding(code, "problem", severity, f"{code}.", code, **more)


def graded(log, others=()):
    problem, estimate = log.fitted()
    cross = cross_validate(problem, "wls", estimate=estimate)
    return verdict(estimate, problem, reconstruction=reconstruct(estimate, log.samples),
                   validation=[reconstruct(estimate, other) for other in others], cross=cross)


def test_a_healthy_robot_is_good_and_its_error_is_that_of_unseen_data(simulate):
    log = simulate("arm3r", noise=0.02)
    found = graded(log)
    assert found.grade == "good" and not found.summary.reasons and found.summary.unseen == "cross-validation"
    problem, estimate = log.fitted()
    assert found.summary.error == pytest.approx(cross_validate(problem, "wls", estimate=estimate).mean)


def test_a_log_for_validation_is_the_unseen_data(simulate):
    log, other = simulate("arm3r", noise=0.02), simulate("arm3r", seed=5, noise=0.02).samples
    found = graded(log, [other])
    theirs = reconstruct(log.fitted()[1], other).relative_error
    assert found.summary.unseen == "validation" and found.summary.error == pytest.approx(theirs)


def test_well_determined_is_a_standard_error_of_at_most_half_the_value(simulate):
    _, estimate = simulate("arm3r", noise=2.0).fitted()
    well = estimate.std <= 0.5 * np.abs(estimate.values)
    assert 0 < well.sum() < len(well)  # the noise leaves some of either
    np.testing.assert_array_equal(estimate.well_determined, well)
    np.testing.assert_array_equal(estimate.poorly_determined, ~well)
    frame = estimate.to_frame()
    assert not frame["identified"][frame["relative_std"] > 50.0].any()
    assert frame["identified"][frame["relative_std"] <= 50.0].all()


def test_noise_as_large_as_the_torque_is_not_usable(simulate):
    found = graded(simulate("arm3r", noise=30.0))
    assert found.summary.error > USABLE_ERROR > GOOD_ERROR
    assert found.grade == "not usable" and "All" not in found.headline


@pytest.mark.parametrize(("rows", "grade"), [(0, "good"), (6, "good"), (30, "usable"), (-20, "usable")])
def test_torques_late_or_early_by_many_rows_are_the_cause_of_the_error(simulate, rows, grade):
    log = simulate("arm3r", noise=0.02, rows=4000)
    found = graded(replace(log, samples=replace(log.samples, tau=np.roll(log.samples.tau, rows, axis=0))))
    late = [one for one in found.of_kind("problem") if one.code == "residual-follows-delay"]
    assert (found.grade, len(late)) == (grade, rows != 0), found.summary.error
    for one in late:
        assert found.summary.reasons == (() if grade == "good" else (one.title,))
        np.testing.assert_allclose(one.evidence["coefficient"], -rows / log.samples.rate, rtol=0.08)


def test_a_cause_comes_first_and_takes_its_consequences_under_it():
    found = [suspect("negative-friction"), suspect("low-r2"), suspect("residual-follows-delay"),
             suspect("torque-sign"), suspect("positions-rounded")]
    (first, consequences), *others = grouped(found)
    assert first.code == "torque-sign" and {one.code for one in consequences} == {"negative-friction", "low-r2"}
    assert [one.code for one, _ in others] == ["residual-follows-delay", "positions-rounded"]


def test_negative_rotor_inertias_of_the_fit_without_a_delay_are_listed_under_the_delay():
    delay, own = suspect("residual-follows-delay"), suspect("negative-friction")
    rotor = suspect("negative-rotor-inertia", second_fit=True)
    assert grouped([rotor, delay, own]) == [(own, ()), (delay, (rotor,))]
    remark = replace(delay, severity="info", kind="validation")
    assert grouped([rotor, remark]) == [(remark, ()), (rotor, ())]


def test_bad_blocks_of_the_fitted_logs_follow_from_a_cause_and_another_log_does_not():
    blocks, other = suspect("worse-than-zero"), replace(suspect("worse-than-zero"), logs=("other.csv",))
    (first, consequences), (second, _) = grouped([blocks, suspect("torques-swapped", "fatal"), other])
    assert first.code == "torques-swapped" and consequences == (blocks,) and second is other


def test_torques_that_nothing_explains_come_after_a_cause_that_was_measured():
    unrelated, jumps = suspect("torques-unrelated", "fatal"), suspect("positions-jump")
    (first, consequences), = grouped([unrelated, suspect("low-r2"), jumps])
    assert first is jumps and consequences[0] is unrelated
    assert grouped([unrelated])[0] == (unrelated, ())


def test_without_a_cause_nothing_is_folded_and_larger_torques_come_first():
    small = suspect("residual-follows-velocity", evidence={"torque": (0.1,)})
    large = suspect("residual-follows-load", evidence={"torque": (0.2, 3.0)})
    order = [suspect("positions-rounded"), small, large, suspect("negative-friction"), suspect("torque-zero", "fatal")]
    assert [one.code for one in ranked(order)] == ["torque-zero", "negative-friction", "residual-follows-load",
                                                   "residual-follows-velocity", "positions-rounded"]
    assert [(one, ()) for one in ranked(order[:-1])] == grouped(order[:-1])


@pytest.mark.parametrize(("total", "missing", "ending"), [
    (30, 0, "(standard error at most 50 %)."), (31, 1, "; of the others 1 needs more excitation."),
    (40, 4, "; of the others 4 need more excitation and 6 are small or have little effect."),
    (31, 0, "; of the others 1 is small or has little effect.")])
def test_every_parameter_is_in_one_of_three_groups(total, missing, ending):
    found = Summary("good", (), 1.0, "cross-validation", 30, total, missing)
    assert found.lines[1].endswith(ending)


def test_parameters_of_wrong_data_are_not_counted_as_determined():
    found = Summary("not usable", ("torques swapped (joints 2 and 4)",), 123.0, "cross-validation", 44, 69, 17)
    assert "44" not in found.lines[1] and "not meaningful" in found.lines[1]
    assert Summary("not usable", (), 45.0, "cross-validation", 44, 69, 17).lines[1].startswith("44 of 69 ")
