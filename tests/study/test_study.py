"""Studies: what they count, that they repeat anywhere, and how a wrong one is refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, ModelError, NotPossibleError, RecordingError
from dynid.report import render
from dynid.study import Score, Study, run_study
from dynid.study.bench import make_bench
from dynid.study.page import STUDY, StudyPage
from dynid.study.result import UNBIASED
from dynid.study.task import TaskEstimate, perform

RAW = {"method": "none", "torque_cutoff": "none", "slow": 0.0}
SCARA = {"robot": "scara2", "repetitions": 3, "duration": 4.0, "rate": 200.0, "prepare": RAW,
         "controller": {"kind": "poles", "omega": [8.0, 12.0]},
         "model": {"friction": ["viscous"], "terms": [{"kind": "coulomb", "sign": {"kind": "tanh", "width": 0.1}}]},
         "noise": {"encoder": 2e-4, "position": 1e-4, "torque": [0.1, 0.02]}}


def scara(**changes) -> Study:
    return Study.from_values({**SCARA, **changes})


def plain(result) -> list:
    """All numbers but the times, which no seed repeats."""
    return [{**one, "seconds": None} for one in result.to_dict()["scores"]]


def test_counts_are_plain_arithmetic():
    values = np.array([[1.0, 5.0], [3.0, 0.0], [2.0, 7.0], [10.0, 0.0]])
    seen = np.array([[True, True], [True, False], [True, True], [True, False]])
    std = np.where(seen, 0.6, np.inf)
    score = Score("x", "x", None, 1.0, np.array([2.0, 6.0]), values, std, seen, np.ones(4), np.ones(4), ((4, "no"),))
    assert score.converged == 0.8
    assert score.bias == pytest.approx([2.0, 0.0])
    assert score.spread == pytest.approx([np.std([1, 3, 2, 10], ddof=1), np.std([5, 7], ddof=1)])
    assert score.coverage == pytest.approx([0.75, 1.0])  # 1.96 x 0.6 reaches 1 but not 8
    assert score.stated == pytest.approx([0.6, 0.6])
    group = score.group(np.array([True, True]))
    assert group["unbiased_share"] == 0.5 and group["coverage"] == pytest.approx(0.875)


def test_a_parameter_seen_once_is_not_judged():
    seen = np.array([[True], [False], [False]])
    score = Score("x", "x", None, 1.0, np.ones(1), np.zeros((3, 1)), np.full((3, 1), np.inf), seen, np.ones(3),
                  np.ones(3), ())
    assert not score.known[0] and score.group(np.array([True])) is None


def test_a_log_depends_on_seed_and_repetition_alone():
    bench = make_bench(scara(methods=["ols"]))
    once, again, other = perform(bench, (1.0, 2))[0], perform(bench, (1.0, 2))[0], perform(bench, (1.0, 1))[0]
    assert isinstance(once, TaskEstimate) and isinstance(again, TaskEstimate) and isinstance(other, TaskEstimate)
    assert np.array_equal(once.values, again.values)
    assert not np.array_equal(once.values, other.values)
    changed = perform(make_bench(scara(methods=["ols"], seed=1)), (1.0, 2))[0]
    assert isinstance(changed, TaskEstimate) and not np.array_equal(changed.values, once.values)


def test_without_noise_the_error_vanishes_against_that_with_noise():
    """The torque of a row is the mean before and after its tick, so a small error of the tick's length remains."""
    result = run_study(scara(methods=["wls"], repetitions=2, noise={**SCARA["noise"], "factors": [0.0, 1.0]}), 1)
    quiet, loud = result.scores
    assert np.max(quiet.torque_error) < 1.0 < 10.0 < np.min(loud.torque_error)
    assert np.array_equal(quiet.values[0], quiet.values[1])


def test_instruments_beat_least_squares_and_friction_stands_apart():
    result = run_study(scara(methods=["iv", "wls"], repetitions=4), 1)
    iv, wls = result.score("iv"), result.score("wls")
    assert iv.converged == 1.0
    assert np.median(iv.torque_error) < 0.1 * np.median(wls.torque_error)
    assert [name for name, inertial in zip(result.names, result.inertial, strict=True) if not inertial] == \
        ["Fv1", "Fc1", "Fv2", "Fc2"]
    assert [row[0] for row in result.runs_table()] == ["method", "iv", "wls"]
    assert [row[:2] for row in result.parameters_table()[1:]] == \
        [("inertial", "iv"), ("inertial", "wls"), ("friction", "iv"), ("friction", "wls")]
    errors = np.random.default_rng(0).normal(size=(20000, 4))
    shown = np.mean(np.abs(errors.mean(axis=1)) < UNBIASED * errors.std(axis=1, ddof=1))
    assert result.unbiased_by_chance == pytest.approx(shown, abs=0.01)


def test_starts_are_contestants_and_failures_keep_their_sentence():
    hopeless = {"name": "iv", "label": "hopeless", "options": {"max_iterations": 1, "start": "regular"}}
    result = run_study(scara(methods=[{"name": "iv", "starts": ["regular", 0.2]}, hopeless], repetitions=2), 1)
    assert [one.label for one in result.scores] == ["iv from regular", "iv from 20 % off", "hopeless"]
    regular, off, failed = result.scores
    # Where the iterations end does not depend on where they began, to their tolerance.
    assert np.allclose(regular.values, off.values, rtol=0.05, atol=0.05 * np.abs(result.truth).max())
    assert failed.converged == 0.0 and [r for r, _ in failed.failures] == [0, 1]
    assert "did not converge in 1 iterations" in failed.failures[0][1]
    facts = result.to_dict()["scores"][2]
    assert facts["inertial"] is None and sum(facts["failures"].values()) == 2
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_same_numbers_from_one_process_and_from_two():
    study = scara(methods=["wls"])  # of two methods among the slow tests, below
    assert plain(run_study(study, workers=1)) == plain(run_study(study, workers=2))


@pytest.mark.slow
def test_the_same_numbers_from_a_dask_cluster():
    distributed = pytest.importorskip("distributed", reason="needs the extra 'scale'")
    study, told = scara(methods=["iv", "wls"]), []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = run_study(study, scheduler=cluster.scheduler_address, progress=lambda *done: told.append(done))
    assert plain(there) == plain(run_study(study, workers=1))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_scheduler_that_does_not_answer(monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra 'scale'")
    monkeypatch.setattr("dynid.workers.cluster._ANSWER_TIMEOUT", 1)
    with refused(NotPossibleError, "no-scheduler", "127.0.0.1", "1"):
        run_study(scara(methods=["ols"]), scheduler="tcp://127.0.0.1:1")


def test_a_file_says_the_same_as_the_arguments(tmp_path, monkeypatch):
    study = scara(methods=["wls", {"name": "iv", "starts": ["regular", 0.1], "options": {"tolerance": 1e-3}}])
    (tmp_path / "study.toml").write_text(study.as_toml())
    assert Study.load(tmp_path / "study.toml") == study
    (tmp_path / "arm.toml").write_text("")
    (tmp_path / "near.toml").write_text('robot = "arm.toml"\n')
    monkeypatch.chdir(tmp_path.parent)
    assert Study.load(tmp_path / "near.toml").robot == os.path.join(tmp_path.name, "arm.toml")


@pytest.mark.parametrize(("changes", "words"), [
    ({"repetitions": 1}, ("wrong-setting", "'repetitions'")),
    ({"repeat": 5}, ("unknown-setting", "'repeat'")),
    ({"methods": ["iv", "iv"]}, ("wrong-setting", "'iv'")),
    ({"methods": "iv"}, ("wrong-setting", "'methods'")),
    ({"noise": {"encoder": -1.0}}, ("wrong-setting", "'noise.encoder")),
])
def test_wrong_settings_are_refused_in_words(changes, words):
    with refused(DynidError, *words):
        scara(**changes)


@pytest.mark.parametrize(("changes", "words"), [
    ({"values": {"Fv9": 1.0}}, (ModelError, "bad-model", "'Fv9'")),
    ({"model": {"friction": ["offset"]}}, (ModelError, "bad-model", "'scara2'", "Fo1, Fo2")),
    ({"noise": {"torque": [0.1, 0.1, 0.1]}}, (ModelError, "bad-model", "3 values", "'scara2'")),
    ({"controller": {"kind": "magic"}}, (ModelError, "unknown-controller", "'magic'")),
    ({"methods": ["guess"]}, (ModelError, "unknown-method", "'guess'")),
    ({"methods": [{"name": "wls", "options": {"luck": 1}}]}, (ModelError, "unknown-option", "'wls'", "'luck'")),
    ({"methods": ["wls"], "prepare": {"cutof": 5}}, (RecordingError, "wrong-setting", "'wls'", "'cutof'")),
])
def test_what_cannot_run_is_refused_and_not_counted_as_a_failure(changes, words):
    with refused(*words):
        run_study(scara(**changes), workers=1)


def test_a_missing_value_can_be_given():
    study = scara(model={"friction": ["offset"]}, values={"Fo1": 0.1, "Fo2": -0.1})
    bench = make_bench(study)
    assert bench.theta[bench.model.parameters.index("Fo2")] == -0.1
    with pytest.raises(ModelError):
        make_bench(scara(model={"friction": ["offset"]}))


def test_random_motions_stay_inside_the_limits():
    bench = make_bench(Study(robot="kuka-lwr4", duration=5.0, rate=100.0, model={"friction": ["viscous"]}))
    robot, path = bench.model.robot, bench.path
    assert np.all(path.q > robot.limit("lower")) and np.all(path.q < robot.limit("upper"))
    assert np.all(np.abs(path.dq) < robot.limit("velocity"))
    # A hundredth of each joint's effective torque, where the study names no noise.
    torque = bench.model.inverse_dynamics(bench.theta, path.q, path.dq, path.ddq)
    assert bench.torque_noise == pytest.approx(0.01 * np.sqrt(np.mean(torque ** 2, axis=0)))


def test_the_page_is_whole_and_shows_every_method():
    result = run_study(scara(methods=["iv", "wls"], noise={**SCARA["noise"], "factors": [0.5, 1.0]}), 1)
    page = render(STUDY, StudyPage(result, "dynid compare --monte-carlo study.toml"))
    assert "<script>" in page and "src=" not in page.split("<script>")[0]
    for words in ("scara2: iv, wls", "noise x 0.5", "noise x 1", "Fc2", "dynid compare --monte-carlo study.toml",
                  "robot = &#34;scara2&#34;"):
        assert words in page
