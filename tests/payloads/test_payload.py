"""A payload against known truth: four ways, its covariance, what is known beside, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loads import CENTRE, FRAME, LOAD, MASS, Arm, arm
from refusals import refused

import dynid
from dynid.errors import ModelError, NotPossibleError, RecordingError, RobotError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.linear import joint_weights
from dynid.model import LoadFriction, Model, Payload, make_terms
from dynid.payloads.body import nearest_body
from dynid.payloads.estimation import known_robot
from dynid.payloads.payload_methods import Nuisance, change_by_load, difference, loaded, payload_fit
from dynid.payloads.result import FRICTION_STD, changing_friction
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.robot import inertia as ten


@pytest.fixture(scope="module")
def machine() -> Arm:
    return arm()


@pytest.fixture(scope="module")
def unloaded(machine: Arm) -> tuple[Problem, Estimate]:
    problem = Problem.from_model(machine.model, machine.log(1))
    return problem, identify(problem, method="wls")


@pytest.fixture(scope="module")
def log(machine: Arm) -> Samples:
    return machine.log(2, machine.loaded(LOAD))


def codes(found: dynid.payloads.PayloadEstimate) -> list[str]:
    return [one.code for one in found.findings]


def test_it_reads_well(unloaded, log):
    problem, estimate = unloaded
    found = dynid.payload(estimate, log, "tool", unloaded=problem, gain_std=0.0)
    assert found.mass == pytest.approx(MASS, abs=3 * found.mass_std)
    assert found.mass_std < 0.05
    assert np.all(np.abs(found.centre - CENTRE) < 3 * found.centre_std)
    assert np.linalg.eigvalsh(ten.pseudo_inertia(found.numbers))[0] > 0
    assert found.relative_error < 3 < 20 < found.unloaded_error
    assert codes(found) == []


@pytest.mark.parametrize("way", ["residual", "difference", "together"])
def test_every_way_finds_the_load(unloaded, log, way):
    problem, estimate = unloaded
    found = dynid.payload(estimate, log, FRAME, method=way, unloaded=problem, gain_std=0.0)
    assert found.method == way
    assert abs(found.mass - MASS) < 3 * found.mass_std < 0.2
    assert np.linalg.norm(found.centre - CENTRE) < 0.005


def test_the_same_motion_without_load_finds_it_too(machine, unloaded):
    problem, estimate = unloaded
    both = [machine.log(seed, theta, motion=7) for seed, theta in ((3, None), (4, machine.loaded(LOAD)))]
    found = dynid.payload(estimate, both[1], FRAME, method="same-motion", unloaded=both[0], gain_std=0.0)
    assert abs(found.mass - MASS) < 3 * found.mass_std < 0.2
    assert found.facts["start_difference_s"] == [0.0]
    with refused(NotPossibleError, "no-same-motion", "log 1"):
        dynid.payload(estimate, both[1], FRAME, method="same-motion", unloaded=problem)


def test_the_difference_weighted_by_both_covariances_is_the_fit_of_both(unloaded, log):
    problem, estimate = unloaded
    term = Payload(FRAME)
    made, robot = loaded(estimate, [log], term), known_robot(estimate, problem)
    nuisance = changing_friction(made, robot)
    one = difference(made, robot, nuisance, change_by_load(estimate, term))
    other = payload_fit(made, robot, nuisance, fixed=False).theta
    np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(other).max(), rtol=0)


def test_together_is_the_fit_of_all_rows_at_once(machine, unloaded, log):
    """Against one plain least squares over the stacked rows of both logs, with no friction of its own."""
    log = replace(log, decimation=None)
    problem = Problem.from_model(machine.model, replace(unloaded[0].data[0], decimation=None))
    estimate, term = identify(problem, method="wls"), Payload(FRAME)
    made, robot = loaded(estimate, [log], term, friction=False), known_robot(estimate, problem)
    found = payload_fit(made, robot, Nuisance.none(), fixed=False).theta
    rows, right = [], []
    for samples, weights, model in ((problem.data[0], joint_weights(problem.regression), machine.model),
                                    (log, made.weights, made.model)):
        y = model.regressor(samples.q, samples.dq, samples.ddq)
        for j in range(7):
            keep = samples.keep[:, j]
            part = np.zeros((int(keep.sum()), len(estimate.base) + 10))
            names = [model.parameters.index(machine.model.parameters.names[c]) for c in estimate.base.independent]
            part[:, :-10] = y[keep, j][:, names]
            if model is made.model:
                part[:, -10:] = y[keep, j][:, [model.parameters.index(f"{name}L") for name in ten.NAMES]]
            rows.append(weights[j] * part)
            right.append(weights[j] * samples.tau[keep, j])
    whole = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0][-10:]
    np.testing.assert_allclose(found, whole, atol=1e-8)


def test_a_load_changes_base_parameters_as_the_document_says(machine):
    """Ardiani, eq. 4.13-4.16: MYR4 + d5 M, ZZR4 + d5^2 M, MYR6 - MZ, ZZ7 + ZZ."""
    base = dynid.base_parameters(machine.model)
    made = identify(machine.model, machine.log(1, seconds=6.0), "wls")
    change = change_by_load(made, Payload("link7"))
    d5, mass, lever, about = 0.4, ten.NAMES.index("M"), ten.NAMES.index("MZ"), ten.NAMES.index("ZZ")
    row = {name: change[k] for k, name in enumerate(base.names)}
    assert row["MY4R"][mass] == pytest.approx(d5)
    assert row["ZZ4R"][mass] == pytest.approx(d5 ** 2)
    assert row["MY6R"][lever] == pytest.approx(-1.0)
    assert row["ZZ7"][about] == pytest.approx(1.0)


def test_gains_off_by_ten_percent_are_inside_the_interval_and_decide(machine):
    for gains in (np.full(7, 1.1), np.full(7, 0.9), 1.0 + 0.1 * (-1.0) ** np.arange(7)):
        logs = [replace(log, tau=log.tau * gains) for log in (machine.log(1), machine.log(2, machine.loaded(LOAD)))]
        problem = Problem.from_model(machine.model, logs[0])
        found = dynid.payload(identify(problem, method="wls"), logs[1], FRAME, unloaded=problem)
        low, high = found.conf_int()[0]
        assert low < MASS < high
        assert "gains-decide" in codes(found)
        assert found.mass_std_from("gains") > 0.5 * found.mass_std


def test_what_gains_do_is_what_the_derivative_says(machine, unloaded, log):
    """The part of gains against two estimates from scaled torques."""
    problem, estimate = unloaded
    only = np.zeros(7)
    only[1] = 0.05
    found = dynid.payload(estimate, log, FRAME, unloaded=problem, gain_std=only, friction=False)
    scaled = replace(problem.data[0], tau=problem.data[0].tau * (1.0 + only))
    again = Problem.from_model(machine.model, scaled, base=problem.base)
    # The weights stay: they are of the noise, which a gain does not make.
    other = dynid.payload(replace(identify(again, method="wls"), base=problem.base),
                          replace(log, tau=log.tau * (1.0 + only)), FRAME, unloaded=again, friction=False)
    assert abs(other.free[9] - found.free[9]) == pytest.approx(found.mass_std_from("gains"), rel=0.35)


def test_a_mass_from_a_scale_is_kept_and_helps_the_centre(unloaded, log):
    problem, estimate = unloaded
    free = dynid.payload(estimate, log, FRAME, unloaded=problem)
    exact = dynid.payload(estimate, log, FRAME, unloaded=problem, mass=MASS)
    rough = dynid.payload(estimate, log, FRAME, unloaded=problem, mass=(MASS, 0.05))
    assert exact.mass == pytest.approx(MASS, abs=1e-6)
    assert exact.mass_std < 1e-6
    assert np.all(exact.centre_std <= free.centre_std * 1.001)
    assert rough.mass_std < 0.051 < free.mass_std
    assert "gains-decide" not in codes(exact)
    with refused(ModelError, "not-above-zero", "-1"):
        dynid.payload(estimate, log, FRAME, mass=-1.0)


def test_friction_from_load_is_not_taken_for_mass(machine):
    """A robot whose gears lose 8 % of what they transmit, identified with that friction."""
    model = Model(machine.model.robot, (*machine.model.terms, LoadFriction()))
    names = model.parameters.names

    def theta(values: np.ndarray) -> np.ndarray:
        own = dict(zip(machine.model.parameters.names, values, strict=True))
        return np.array([own.get(name, 0.08) for name in names])

    truth = Arm(model, theta(machine.theta))
    problem = Problem.from_model(model, truth.log(5))
    found = dynid.payload(identify(problem, method="wls"), truth.log(6, theta(machine.loaded(LOAD))), FRAME,
                          unloaded=problem, gain_std=0.0)
    assert abs(found.mass / MASS - 1.0) < 0.02
    assert abs(found.mass - MASS) < 3 * found.mass_std


def test_friction_from_load_that_the_model_lacks_is_said(machine):
    """Gears of two joints lose 8 % of what they transmit, and the robot was identified without that friction."""
    model = Model(machine.model.robot, (*machine.model.terms, LoadFriction()))
    lossy = {"Fl2": 0.08, "Fl4": 0.08}

    def theta(values: np.ndarray) -> np.ndarray:
        own = dict(zip(machine.model.parameters.names, values, strict=True))
        return np.array([own.get(name, lossy.get(name, 0.0)) for name in model.parameters.names])

    truth = Arm(model, theta(machine.theta))
    problem = Problem.from_model(machine.model, truth.log(5))
    log = truth.log(6, theta(machine.loaded(LOAD)))
    found = dynid.payload(identify(problem, method="wls"), log, FRAME, unloaded=problem, gain_std=0.0)
    (said,) = [one for one in found.findings if one.code == "payload-friction"]
    assert said.joints == ("joint2", "joint4")
    np.testing.assert_allclose(said.evidence["share"], 0.08, atol=0.01)
    assert abs(found.mass / MASS - 1.0) < 0.02
    assert abs(found.mass - MASS) < 3 * found.mass_std


def test_no_load_is_found_as_none(machine, unloaded):
    problem, estimate = unloaded
    found = dynid.payload(estimate, machine.log(8), FRAME, unloaded=problem)
    low, high = found.conf_int()[0]
    assert low < 0.0 < high < 0.3
    assert codes(found) == ["payload-not-seen"]
    assert not np.isfinite(found.centre_std).any()


@pytest.fixture(scope="module")
def wrist() -> tuple[Arm, Problem, Estimate]:
    """An arm whose last joint alone moves: it shows a moment across its axis, and no mass."""
    machine = arm()
    problem = Problem.from_model(machine.model, held_but_last(machine, 1))
    return machine, problem, identify(problem, method="wls")


def held_but_last(machine: Arm, seed: int, theta: np.ndarray | None = None) -> Samples:
    """A log in which only joint 7 moves; its axis is level, so that it carries weight."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, 20.0, 0.01)
    q, phases = np.tile([0.0, 0.9, 0.0, -0.5, 0.0, 1.4, 0.0], (len(t), 1)), rng.uniform(0, 6, 4)
    q[:, 6] = sum(0.5 * np.sin(2 * np.pi * (0.13 + 0.21 * k) * t + phase) for k, phase in enumerate(phases))
    dq = np.gradient(q, 0.01, axis=0)
    ddq = np.gradient(dq, 0.01, axis=0)
    tau = machine.model.inverse_dynamics(machine.theta if theta is None else theta, q, dq, ddq)
    tau += 0.05 * rng.normal(size=tau.shape)
    keep = np.zeros(q.shape, dtype=bool)
    keep[:, 6] = True
    samples = dynid.prepare(dynid.Recording(t, q, tau, joints=machine.model.joint_names, source=f"wrist {seed}"),
                            cutoff=8.0)
    return replace(samples, keep=samples.keep & keep[:len(samples)])


def test_a_load_whose_mass_does_not_show_is_seen_by_its_moment(wrist):
    """One joint shows two moments and an inertia of the load: the mass has bounds, and is never made up."""
    machine, problem, estimate = wrist
    offset = ten.from_central(0.5, [0.06, 0.02, 0.05], 1e-4 * np.eye(3))
    found = dynid.payload(estimate, held_but_last(machine, 2, machine.loaded(offset, "link7")), "link7",
                          unloaded=problem, gain_std=0.0)
    assert found.seen
    assert not found.has_mass
    assert found.chance < 1e-6
    known = found.identified[6:9]
    assert known[:2].all()
    assert not known[2]
    low, high = found.moment_int()[known].T
    assert np.all((low < offset[6:9][known]) & (offset[6:9][known] < high))
    assert np.all(high - low < 0.02)
    least, most = found.mass_bounds()
    assert 0.0 < least < 0.5 < most
    assert codes(found)[0] == "payload-mass-not-determined"
    assert found.mass < 10.0  # of the size of the moment, not of a regularisation
    stated = found.to_dict()
    assert stated["mass"]["value"] is None
    assert stated["mass"]["at_least"] == least
    assert "inf" not in " ".join(one.text for one in found.findings)
    assert [name for name, *_ in found.rows()] == ["mass", "first moment x", "first moment y"]


@pytest.mark.slow
def test_intervals_of_a_moment_hold_and_bounds_hold_the_mass(machine):
    """60 loads that only the last joint feels, each with an unloaded log of its own and friction that changes by a
    fifth, as it is assumed to: 95 % intervals of the two moments, and bounds of the mass."""
    held, bounded = [], []
    rubs = [machine.model.parameters.index(name) for name in ("Fc7", "Fv7")]
    for k in range(60):
        rng = np.random.default_rng(7000 + k)
        mass, centre = rng.uniform(0.2, 1.5), np.array([*rng.uniform(-0.08, 0.08, 2), rng.uniform(0.0, 0.08)])
        load = ten.from_central(mass, centre, 1e-3 * mass * np.eye(3))
        theta = machine.loaded(load, "link7")
        theta[rubs] *= 1.0 + FRICTION_STD * rng.normal(size=2)
        problem = Problem.from_model(machine.model, held_but_last(machine, 8000 + k))
        found = dynid.payload(identify(problem, method="wls"), held_but_last(machine, 7000 + k, theta), "link7",
                              unloaded=problem, gain_std=0.0)
        low, high = found.moment_int()[:2].T
        held.append((low < load[6:8]) & (load[6:8] < high))
        least, most = found.mass_bounds()
        bounded.append(least <= mass <= most)
        assert found.mass < 30.0 and not found.has_mass
    assert 0.90 <= np.mean(held) <= 0.98, np.mean(held, axis=0)
    assert np.mean(bounded) >= 0.95


def test_no_load_is_not_seen_by_moments_either(wrist):
    machine, problem, estimate = wrist
    chances = [dynid.payload(estimate, held_but_last(machine, seed), "link7", unloaded=problem, gain_std=0.0)
               for seed in range(10, 20)]
    assert not any(one.seen for one in chances)
    assert "kg with" not in chances[0].findings[0].text


def test_advice_is_not_repeated_after_it_was_followed(unloaded, log):
    problem, estimate = unloaded
    free, calibrated = (dynid.payload(estimate, log, FRAME, unloaded=problem, gain_std=gains)
                        for gains in (None, 0.05))
    texts = [next(one.text for one in found.findings if one.code == "gains-decide") for found in (free, calibrated)]
    assert "dynid gains" in texts[0]
    assert "dynid gains" not in texts[1]


def test_without_the_unloaded_data_the_covariance_stands_for_them(unloaded, log):
    _, estimate = unloaded
    found = dynid.payload(estimate, log, FRAME, gain_std=0.05)
    assert abs(found.mass - MASS) < 3 * found.mass_std
    assert found.mass_std_from("gains") == pytest.approx(0.05 * MASS, rel=0.5)


def test_a_load_that_falls_off_is_named_with_its_time(machine, unloaded):
    problem, estimate = unloaded
    with_it, without = machine.recording(2, machine.loaded(LOAD)), machine.recording(2)
    half = len(with_it) // 2
    tau = np.vstack([with_it.tau[:half], without.tau[half:]])
    found = dynid.payload(estimate, dynid.prepare(replace(with_it, tau=tau), cutoff=8.0), FRAME, unloaded=problem)
    (change,) = [one for one in found.findings if one.code == "payload-changed"]
    assert change.severity == "fatal"
    assert change.evidence["at"] == pytest.approx(with_it.t[half], abs=1.5)
    assert change.evidence["mass_before"] == pytest.approx(MASS, abs=0.3)
    assert change.evidence["mass_after"] == pytest.approx(0.0, abs=0.3)


def test_another_robot_is_said(machine, unloaded, log):
    problem, estimate = unloaded
    other = dynid.Model(dynid.Robot.builtin("kuka-lwr4"))
    tau = other.inverse_dynamics(other.parameters.nominal, log.q, log.dq, log.ddq)
    found = dynid.payload(estimate, replace(log, tau=tau), FRAME, unloaded=problem)
    (said,) = [one for one in found.findings if one.code == "payload-unexplained"]
    assert said.severity == "fatal"
    two = dynid.Samples.from_arrays(*(x[:, :6] for x in (log.q, log.dq, log.ddq, log.tau)))
    with refused(ModelError, "other-robot", "6 joints", "7"):
        dynid.payload(estimate, two)


def test_torques_of_a_load_that_cannot_exist_are_said(machine, unloaded):
    """Inertia of a wrong sign, large enough to show."""
    problem, estimate = unloaded
    wrong = LOAD.copy()
    wrong[:6] -= np.array([0.5, 0, 0, 0.5, 0, 0.5])
    log = machine.log(9, machine.loaded(wrong))
    found = dynid.payload(estimate, log, FRAME, unloaded=problem)
    assert "payload-cannot-exist" in codes(found)
    assert np.linalg.eigvalsh(ten.pseudo_inertia(found.numbers))[0] > 0
    free = dynid.payload(estimate, log, FRAME, unloaded=problem, consistent=False)
    assert "payload-cannot-exist" in codes(free)


def test_too_heavy_for_the_robots_file(machine, unloaded, log):
    problem, estimate = unloaded
    light = replace(estimate, model=replace(machine.model, robot=replace(machine.model.robot, payload=3.0)))
    found = dynid.payload(light, log, FRAME, unloaded=problem)
    (said,) = [one for one in found.findings if one.code == "payload-too-heavy"]
    assert said.evidence["allowed"] == 3.0


def test_wrong_names_are_refused(unloaded, log):
    _, estimate = unloaded
    with refused(RobotError, "unknown-frame", "hand", "link1"):
        dynid.payload(estimate, log, "hand")
    with refused(ModelError, "frame-of-the-base", "base"):
        dynid.payload(estimate, log, "base")
    with refused(ModelError, "unknown-payload-method", "'magic'"):
        dynid.payload(estimate, log, method="magic")
    with refused(RecordingError, "bad-gain-std"):
        dynid.payload(estimate, log, gain_std=-0.1)


def test_the_nearest_body_is_theta_itself_where_that_can_exist():
    spread = np.diag((0.01 * np.abs(LOAD) + 1e-4) ** 2)
    np.testing.assert_array_equal(nearest_body(LOAD, spread, np.ones(10, dtype=bool)), LOAD)
    off = LOAD.copy()
    off[5] = 4 * off[5]  # a disc whose two other moments are too small
    found = nearest_body(off, np.diag(np.array([1e-4] * 6 + [1e-8] * 4)), np.ones(10, dtype=bool))
    assert np.linalg.eigvalsh(ten.pseudo_inertia(found))[0] > 0
    np.testing.assert_allclose(found[6:], off[6:], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "most"), [(0.0, 0.98), (0.05, 1.0)])
def test_intervals_of_mass_and_centre_hold(machine, deviation, most):
    held = []
    for k in range(100):
        rng = np.random.default_rng(5000 + k)
        gains = 1.0 + deviation / np.sqrt(2.0) * (rng.normal() + rng.normal(size=7))
        logs = [replace(log, tau=log.tau * gains) for log in
                (machine.log(2 * k), machine.log(2 * k + 1, machine.loaded(LOAD)))]
        problem = Problem.from_model(machine.model, logs[0])
        found = dynid.payload(identify(problem, method="wls"), logs[1], FRAME, unloaded=problem,
                              gain_std=deviation)
        low, high = found.conf_int().T
        held.append((low < np.append(MASS, CENTRE)) & (np.append(MASS, CENTRE) < high))
    share = np.mean(held, axis=0)
    assert np.all(share >= 0.9), share
    assert np.all(share <= most), share


@pytest.mark.slow
@pytest.mark.parametrize("which", ["panda", "kuka_lwr4"])
def test_real_logs_without_a_load_show_none(data, which):
    from reproductions._data import log as read_log

    folder = data(which)
    if which == "panda":
        robot = Robot.from_urdf(folder / "panda_arm.urdf")
        recording = read_log("panda", robot)
        middle = recording.t[0] + 0.5 * recording.duration
        parts = [dynid.prepare(part, cutoff=5.0) for part in (
            recording.between(recording.t[0], middle), recording.between(middle, recording.t[-1] + 1.0))]
    else:
        robot = Robot.from_urdf(folder / "kuka_lwr4.urdf")
        parts = [dynid.prepare(read_log("kuka_lwr4", robot, f"measurements_{k}.npz"), cutoff=8.0) for k in (1, 2)]
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    for first, second in (parts, parts[::-1]):
        problem = Problem.from_model(model, first)
        for method in ("wls", "pc-wls"):
            for way in ("residual", "together"):
                found = dynid.payload(identify(problem, method=method), second, method=way, unloaded=problem)
                low, high = found.conf_int()[0]
                assert low < 0.0 < high
                assert found.mass < 0.3
                assert "payload-cannot-exist" not in codes(found)
