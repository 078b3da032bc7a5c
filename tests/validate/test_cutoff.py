"""The cut-off chosen by cross-validation, and how much results depend on it: simulated machines with known truth.

The light machine is the one of a failure: its first moment acts by acceleration alone, and the noise of its positions
falls with frequency as that of a filtered sensor does, so that no floor is in sight.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from motions import arm, fourier
from refusals import refused
from scipy.signal import lfilter

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.estimate.cutoff_choice import CutoffChoice, choose_cutoff
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_npz
from dynid.report import write_report
from dynid.robot import Robot
from dynid.robot.dh import from_mdh
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import facts, report_data, save
from dynid.simulation import Reference, TorqueDriven, simulate
from dynid.validate import CutoffDependence, cutoff_dependence, reconstruct, verdict

FRICTION = ("viscous", "coulomb", "offset")
Trajectory = tuple[Array, Array, Array]  # positions, velocities, accelerations
MOMENT = 0.11  # kg m, of the light machine's second link
ROBOT_FILE = """name = "light"
convention = "mdh"
[[joint]]
alpha = 0
d = 0
r = 0
inertia = {XX = 0.002, XY = 0, XZ = 0, YY = 0.004, YZ = 0, ZZ = 0.005, MX = 0.02, MY = 0, MZ = 0, M = 0.5}
[[joint]]
alpha = 0
d = 0.2
r = 0
inertia = {XX = 0.002, XY = 0, XZ = 0, YY = 0.03, YZ = 0, ZZ = 0.03, MX = 0.11, MY = 0, MZ = 0, M = 0.6}
"""


def light(tmp_path: Path) -> tuple[Model, Array]:
    (tmp_path / "light.toml").write_text(ROBOT_FILE, encoding="utf-8")
    robot = Robot.load(str(tmp_path / "light.toml"))
    model = Model(robot, make_terms(robot, friction=FRICTION))
    values = {"Fv": 0.005, "Fc": 0.02, "Fo": 0.003}
    return model, np.array([values.get(p.name[:2], p.nominal) for p in model.parameters])


def made(model: Model, theta: Array, seed: int, *, rate: float = 500.0, seconds: float = 20.0, speed: float = 2.0,
         noise: float = 0.0, corner: float = 3.0, step: float = 0.0, torque: float = 0.03) -> Recording:
    """A log along a Fourier series. noise: deviation of the positions', through a first-order filter at `corner` Hz;
    step: of the encoder; torque: white noise, share of each joint's RMS."""
    rng = np.random.default_rng([seed, 1])
    q, dq, ddq = fourier(model.dof, seconds=seconds, rate=rate, seed=seed, speed=speed)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += torque * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    hold = np.exp(-2.0 * np.pi * corner / rate)
    q = q + noise * np.sqrt(1.0 - hold ** 2) * lfilter([1.0], [1.0, -hold], rng.normal(size=q.shape), axis=0)
    if step:
        q = step * np.round(q / step)
    return Recording(np.arange(len(q)) / rate, q, tau, joints=model.robot.joint_names, source=f"log{seed}")


def halves(recording: Recording) -> list[Recording]:
    middle = 0.5 * (recording.t[0] + recording.t[-1])
    return [recording.between(recording.t[0], middle), recording.between(middle, recording.t[-1] + 1.0)]


def error_elsewhere(model: Model, recording: Recording, other: Recording, cutoff: float) -> float:
    """Relative error of weighted least squares at a cut-off on another log at 4 Hz, percent."""
    return reconstruct(identify(model, prepare(recording, cutoff=cutoff), method="wls"),
                       prepare(other, cutoff=4.0)).relative_error


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_a_light_machine_is_identified_within_what_it_states(tmp_path: Path, seed: int) -> None:
    model, theta = light(tmp_path)
    write_npz(made(model, theta, seed, noise=2e-3), tmp_path / "log.npz")
    found = run(RunSettings(robot=str(tmp_path / "light.toml"), logs=(str(tmp_path / "log.npz"),), method="wls",
                            model=ModelSettings(friction=FRICTION), simulation={"run": False}))
    place = found.estimate.names.index("MX2")
    low, high = found.estimate.conf_int(0.99)[place]
    assert low < MOMENT < high and high - low < 0.2 * MOMENT
    assert any("chosen by cross-validation" in step for step in found.samples[0].steps)


def test_without_noise_in_sight_the_spectrum_stays_near_the_motion(tmp_path: Path) -> None:
    model, theta = light(tmp_path)
    log = made(model, theta, 1, noise=2e-3)
    samples = prepare(log)
    assert any("no noise is visible" in step for step in samples.steps)
    assert samples.settings["cutoff"] < 20.0  # the motion ends at 0.5 Hz, a tenth of the rate is 50


@pytest.mark.parametrize("how", [{"noise": 2e-3}, {"step": 2 * np.pi / 1000}, {"rate": 1250.0, "noise": 5e-4,
                                                                              "corner": 20.0}], ids=str)
def test_the_choice_predicts_another_log_about_as_well_as_any_and_halves_agree(tmp_path: Path, how: dict[str, float]
                                                                               ) -> None:
    model, theta = light(tmp_path)
    log, other = made(model, theta, 4, **how), made(model, theta, 54, **{**how, "speed": 2.6})
    choice = choose_cutoff(model, log)
    errors = [error_elsewhere(model, log, other, cutoff) for cutoff in (2.0, 4.0, 8.0, 16.0, 32.0)]
    assert error_elsewhere(model, log, other, choice.cutoff) < 1.15 * min(errors)
    for half in halves(log):
        assert 0.5 <= choose_cutoff(model, half).cutoff / choice.cutoff <= 2.0


def test_a_fast_motion_is_not_judged_below_its_band() -> None:
    model, theta = arm()
    rng = np.random.default_rng(0)
    q, dq, ddq = fourier(model.dof, seconds=20.0, rate=1000.0, seed=9, speed=6.0, period=1.5)  # up to 3.3 Hz
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    step = 2 * np.pi / 4096
    choice = choose_cutoff(model, Recording(np.arange(len(q)) / 1000.0, step * np.round(q / step), tau))
    assert choice.band == pytest.approx(10 / 3, rel=0.1)
    assert choice.yardstick > 2 * 10 / 3 and choice.cutoff > 2 * 10 / 3


def chosen(tmp_path: Path, rate: float = 500.0) -> tuple[Model, Array, Recording, CutoffChoice]:
    model, theta = light(tmp_path)
    log = made(model, theta, 5, step=2 * np.pi / 2000, rate=rate)
    return model, theta, log, choose_cutoff(model, log)


def test_the_choice_prepares_as_the_run_does_and_says_how(tmp_path: Path) -> None:
    _, _, log, choice = chosen(tmp_path)
    samples = choice.prepare(log)
    assert samples.settings["cutoff"] == choice.cutoff == prepare(log, choice.settings).settings["cutoff"]
    assert choice.step in samples.steps
    assert choice.alike[choice.tried == choice.cutoff].all() and len(choice.errors) == len(choice.tried)
    write_npz(log, tmp_path / "log.npz")
    settings = RunSettings(robot=str(tmp_path / "light.toml"), logs=(str(tmp_path / "log.npz"),), method="wls",
                           model=ModelSettings(friction=FRICTION), simulation={"run": False})
    whole = run(settings)
    pieces = run(settings.model_copy(update={"stream_rows": 1000}))
    assert whole.choice is not None and pieces.choice is not None
    assert whole.choice.cutoff == pieces.choice.cutoff == choice.cutoff
    assert np.array_equal(whole.estimate.values, pieces.estimate.values)


@pytest.mark.parametrize(("rate", "exact"), [(60.0, True), (500.0, False)])
def test_dependence_in_json_and_report(tmp_path: Path, rate: float, exact: bool) -> None:
    """At 60 Hz every row counts; at 500 Hz means of neighbouring rows tell the same change to a small part of its
    standard error."""
    model, _, log, choice = chosen(tmp_path, rate)
    write_npz(log, tmp_path / "log.npz")
    found = run(RunSettings(robot=str(tmp_path / "light.toml"), logs=(str(tmp_path / "log.npz"),), method="wls",
                            model=ModelSettings(friction=FRICTION), simulation={"run": False}))
    said = facts(found)["cutoff"]
    assert said["chosen"]["cutoff"] == choice.cutoff
    assert said["dependence"]["others"] == [0.5 * choice.cutoff, 2.0 * choice.cutoff]
    # The same by hand: identified at half the cut-off, against the run's own values and deviations.
    half = identify(Problem.from_model(model, prepare(log, cutoff=0.5 * choice.cutoff)), method="wls")
    place = found.estimate.names.index("MX2")
    moved = half.values[place] - found.estimate.values[place]
    one = said["dependence"]["parameters"]["MX2"]
    value, std = found.estimate.values[place], found.estimate.std[place]
    near = {"rel": 1e-6} if exact else {"abs": 0.2}
    assert one["standard_errors"][0] == pytest.approx(moved / std, **near)
    assert one["values"][0] == pytest.approx(value + one["standard_errors"][0] * std, rel=1e-9)
    assert one["percent"][0] == pytest.approx(100 * one["standard_errors"][0] * std / abs(value), rel=1e-6)
    page = write_report(report_data(found, "", ""), tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="cutoff"' in page and "Cross-validation error over the cut-off frequency" in page
    again = run(RunSettings.load(save(found, tmp_path / "out", report=False)["settings"]))
    assert again.choice is None and again.dependence is not None and found.dependence is not None
    assert again.dependence.at == pytest.approx(found.dependence.at, rel=1e-6)  # what followed the cut-off follows it


@pytest.mark.parametrize("friction", [("viscous", "coulomb"), ("coulomb", "offset", "asymmetric-viscous"),
                                      ("viscous", "coulomb", "offset", "asymmetric-coulomb")], ids=str)
def test_the_model_of_the_run_is_compared_at_other_cutoffs(tmp_path: Path, friction: tuple[str, ...]) -> None:
    """The cut-off is chosen with the usual friction, the run may choose another. Columns of the first model read by the
    numbers of the second gave changes of 149 % where 0.3 % was true."""
    _, _, log, choice = chosen(tmp_path, rate=60.0)
    robot = Robot.load(str(tmp_path / "light.toml"))
    model = Model(robot, make_terms(robot, friction=friction, rotor=True))
    problem = Problem.from_model(model, choice.prepare(log), recordings=log)
    estimate = identify(problem, method="wls")
    moves = cutoff_dependence(problem, estimate, choice=choice)
    assert moves is not None and len(moves.others) == 2
    for cutoff, at in zip(moves.others, moves.at, strict=True):
        there = identify(Problem.from_model(model, prepare(log, cutoff=float(cutoff)), base=problem.base), method="wls")
        assert at == pytest.approx(there.values, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("cutoff", "named"), [(4.0, None), (16.0, "cutoff-dependent"), (32.0, "cutoff-too-high")])
def test_a_finding_where_results_depend_on_the_cutoff(tmp_path: Path, cutoff: float, named: str | None) -> None:
    """Where nearly all of the accelerations are noise, that is the cause, and the dependence its consequence."""
    model, theta = light(tmp_path)
    log = made(model, theta, 6, step=2 * np.pi / 4000, noise=2e-4, corner=100.0)
    samples = prepare(log, cutoff=cutoff)
    problem = Problem.from_model(model, samples, recordings=log)
    estimate = identify(problem, method="wls")
    moves = cutoff_dependence(problem, estimate)
    assert moves is not None
    depends = max(moves.torques) > 0.5 * moves.error and max(moves.torques) > 1.0
    assert depends == (named is not None)
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples), cutoff=moves)
    about = [finding for finding in found.findings if finding.code.startswith("cutoff")]
    assert [finding.code for finding in about] == ([] if named is None else [named])
    if named == "cutoff-dependent":
        evidence = about[0].evidence
        assert evidence["cutoff"] == cutoff
        assert max(evidence["torque_change"]) > 0.5 * evidence["relative_error"] or min(evidence["percent"]) > 20


@pytest.mark.parametrize(("times", "depends"), [(0.0, True), (1.0, True), (3.0, False), (np.inf, False)])
def test_a_move_that_the_estimate_there_doubts_itself_is_no_dependence(tmp_path: Path, times: float, depends: bool
                                                                       ) -> None:
    """A parameter moves by ten deviations of the estimate here; at the other cut-off it is known that many times worse.
    Of both together that is 10, 7, 3.2 and no deviations, and four count."""
    model, theta = light(tmp_path)
    log = made(model, theta, 6, step=2 * np.pi / 4000)
    samples = prepare(log, cutoff=4.0)
    problem = Problem.from_model(model, samples, recordings=log)
    estimate = identify(problem, method="wls")
    place = estimate.names.index("MX2")
    at = estimate.values.copy()
    std = np.where(np.arange(len(at)) == place, 0.03 * abs(at), estimate.std)
    at[place] += 10.0 * std[place]
    moves = CutoffDependence("wls", 4.0, np.array([8.0]), estimate.names, estimate.values, std, at[None], np.zeros(1),
                             1.0, np.array([False]), lambda cutoff: times * std)
    found = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples), cutoff=moves)
    named = [finding for finding in found.findings if finding.code == "cutoff-dependent"]
    assert [one.parameters for one in named] == [("MX2",)] * depends
    if named:
        assert named[0].evidence["standard_errors"] == pytest.approx([10.0 / np.hypot(1.0, times)])
        assert (named[0].kind, named[0].severity) == ("validation", "info")  # predictions are the same
        # The same move with torques that change by twice the error of the fit is something wrong.
        worse = verdict(estimate, problem, reconstruction=reconstruct(estimate, samples),
                        cutoff=replace(moves, torques=np.array([2.0])))
        assert "cutoff-dependent" in {finding.code for finding in worse.of_kind("problem")}


def test_deviations_at_the_other_cutoffs_are_those_of_an_identification_there(tmp_path: Path) -> None:
    model, theta = light(tmp_path)
    log = made(model, theta, 6, step=2 * np.pi / 4000, noise=2e-4, corner=100.0)
    problem = Problem.from_model(model, prepare(log, cutoff=4.0), recordings=log)
    moves = cutoff_dependence(problem, identify(problem, method="wls"))
    assert moves is not None
    for cutoff in moves.others:
        there = Problem.from_model(model, prepare(log, cutoff=float(cutoff)), recordings=log)
        assert moves.std_at(float(cutoff)) == pytest.approx(identify(there, method="wls").std, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_no_finding_on_healthy_logs(seed: int) -> None:
    model, theta = arm()
    log = made(model, theta, seed, rate=400.0, step=2 * np.pi / 2 ** 17, torque=0.02)
    choice = choose_cutoff(model, log)
    problem = Problem.from_model(model, choice.prepare(log), recordings=log)
    estimate = identify(problem, method="wls")
    moves = cutoff_dependence(problem, estimate, choice=choice)
    assert moves is not None
    found = verdict(estimate, problem, cutoff=moves)
    assert "cutoff-dependent" not in {finding.code for finding in found.findings}


def test_long_and_fast_logs_are_looked_at_in_part(tmp_path: Path) -> None:
    model, theta = light(tmp_path)
    log = made(model, theta, 7, rate=2000.0, seconds=60.0, noise=1e-3)
    choice = choose_cutoff(model, log)
    assert not choice.folds.whole
    assert sum(len(one.recording) for one in choice.folds.logs) <= 60_000
    assert 1.0 <= choice.cutoff <= 8.0
    problem = Problem.from_model(model, choice.prepare(log), recordings=log)
    estimate = identify(problem, method="wls")
    moves = cutoff_dependence(problem, estimate, choice=choice)
    assert moves is not None and len(moves.others) == 2


def test_a_log_that_is_too_short_falls_back_on_the_spectrum(tmp_path: Path) -> None:
    model, theta = light(tmp_path)
    short = made(model, theta, 8, seconds=0.2)
    choice = choose_cutoff(model, short)
    assert len(choice.tried) == 0 and 2.0 * choice.band < choice.cutoff <= choice.spectrum
    assert choice.why_not and choice.why_not in choice.prepare(short).steps[-1]


def test_logs_at_rest_and_unmeasured_joints_do_not_stop_the_choice(tmp_path: Path) -> None:
    model, theta = light(tmp_path)
    log = made(model, theta, 9, noise=1e-3)
    rest = replace(log, q=np.zeros_like(log.q) + 0.3)
    silent = replace(log, tau=log.tau * [1.0, 0.0], unmeasured=(model.robot.joint_names[1],))
    assert choose_cutoff(model, [rest, log]).cutoff == choose_cutoff(model, log).cutoff
    assert len(choose_cutoff(model, silent).tried) > 1


def swinging(seed: int) -> tuple[Model, Array, Recording, Trajectory]:
    """A double pendulum whose second joint has no motor, with coarse encoders and jittered stamps: model, parameters,
    log, and the true motion."""
    robot = from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.25, 0.0, 0.0)], gravity=(9.81, 0.0, 0.0))
    model = Model(robot, make_terms(robot, friction=FRICTION))
    values = {"ZZ1": 0.04, "MX1": 0.12, "ZZ2": 0.02, "MX2": 0.08, "M2": 0.5, "Fv1": 0.02, "Fv2": 0.005, "Fc1": 0.05,
              "Fc2": 0.01}
    theta = np.array([values.get(p.name, 0.0) for p in model.parameters])
    rng, rate, rows = np.random.default_rng([seed, 3]), 500.0, 5000
    t, push = np.arange(rows) / rate, np.zeros((rows, 2))
    w = rng.uniform(0.3, 1.5, 4)
    push[:, 0] = 0.3 * np.sin(np.outer(t, 2 * np.pi * w) + rng.uniform(0, 6, 4)).sum(axis=1)
    start = Reference(np.tile(rng.uniform(-1, 1, 2), (rows, 1)), np.zeros((rows, 2)), np.zeros((rows, 2)), rate)
    moved = simulate(model, theta, TorqueDriven(push), start)
    step, late = 2 * np.pi / 16384, rng.uniform(-3e-4, 3e-4, (rows, 1))
    log = Recording(t, step * np.round((moved.q + late * moved.dq) / step), push + 0.02 * rng.normal(size=push.shape),
                    joints=robot.joint_names, source=f"swing{seed}")
    return model, theta, log, (moved.q, moved.dq, np.gradient(moved.dq, 1.0 / rate, axis=0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_quantised_positions_do_not_widen_the_band(seed: int) -> None:
    """Compared at up to four times the lowest cut-off, with each joint in shares of its own torque, 16 to 32 Hz won:
    noise had shrunk the values there, and the joint without a motor decided alone."""
    model, theta, log, _ = swinging(seed)
    truth = swinging(seed + 10)[3]
    torques = model.inverse_dynamics(theta, *truth)

    def error(cutoff: float) -> float:
        estimate = identify(model, prepare(log, cutoff=cutoff), method="wls")
        return float(np.linalg.norm(estimate.predict(*truth) - torques))

    choice = choose_cutoff(model, log)
    errors = [error(cutoff) for cutoff in (4.0, 8.0, 16.0, 32.0)]
    assert errors[2] > 5.0 * min(errors) and errors[3] > 5.0 * min(errors)
    assert error(choice.cutoff) < 1.5 * min(errors)
    for half in halves(log):
        assert 0.5 <= choose_cutoff(model, half).cutoff / choice.cutoff <= 2.0


def test_pieces_at_rest_do_not_stop_the_choice(tmp_path: Path) -> None:
    """Of a log above 60,000 rows pieces are compared; two thirds of this one are rest, in which encoders flicker."""
    model, theta = light(tmp_path)
    moving = made(model, theta, 11, rate=1000.0, step=2 * np.pi / 4000)
    rest = 25_000
    flicker = np.random.default_rng(0).integers(0, 2, size=(rest, 2)) * 2 * np.pi / 4000
    q = np.concatenate([moving.q[0] + flicker, moving.q, moving.q[-1] + flicker])
    tau = np.concatenate([np.tile(moving.tau[0], (rest, 1)), moving.tau, np.tile(moving.tau[-1], (rest, 1))])
    log = Recording(np.arange(len(q)) / 1000.0, q, tau, joints=moving.joints, source="rests")
    choice = choose_cutoff(model, log)
    assert len(choice.tried) > 1
    assert 0.5 <= choice.cutoff / choose_cutoff(model, moving).cutoff <= 2.0


def test_blocks_are_the_same_stretches_of_time_at_every_cutoff() -> None:
    """A lower cut-off loses more rows at the borders of a log; a block left out must not become known through that."""
    model, _, log, _ = swinging(3)
    choice = choose_cutoff(model, log)
    folds = [choice.folds.at(cutoff) for cutoff in choice.tried]
    starts = np.array([[block.spans[0].start for block in fold.blocks] for fold in folds if fold is not None])
    assert len(starts) >= 2 and starts.shape[1] >= 3
    interval = max(np.median(np.diff(log.t)) * choice.folds.averaged_by(cutoff) for cutoff in choice.tried)
    assert np.ptp(starts[:, 1:], axis=0).max() <= 1.01 * interval


@pytest.mark.parametrize("share", [0.25, np.nextafter(0.25, 0.0), 0.25 * (1.0 - 1e-12), 0.2499])
def test_twice_a_cutoff_that_is_the_nyquist_frequency_is_left_out(tmp_path: Path, share: float) -> None:
    """Rates are found from time stamps, so that twice the cut-off may lie one rounding below half the rate."""
    model, theta = light(tmp_path)
    log = made(model, theta, 6, rate=100.0, seconds=10.0)
    rate = prepare(log, cutoff=5.0).rate
    samples = prepare(log, cutoff=share * rate)
    problem = Problem.from_model(model, samples, recordings=log)
    moves = cutoff_dependence(problem, identify(problem, method="wls"))
    assert moves is not None
    sides = [0.5 * share * rate] + ([2.0 * share * rate] if share == 0.2499 else [])
    np.testing.assert_allclose(moves.others, sides, rtol=1e-9)
    with refused(NotPossibleError, "cutoff-above-rate"):
        prepare(log, cutoff=np.nextafter(0.5 * rate, 0.0))
