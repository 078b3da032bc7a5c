"""A payload while the robot moves, against known truth and against plain least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loads import CENTRE, FRAME, LOAD, MASS, Arm, arm
from refusals import refused

import dynid
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Payload
from dynid.online import FeedOptions
from dynid.payloads import LivePayload
from dynid.payloads.load_recursion import Unknowns
from dynid.payloads.payload_methods import LoadedModel
from dynid.recording import Recording
from dynid.robot import inertia as ten

FEEDING = FeedOptions(cutoff=8.0, rate=100.0)


@pytest.fixture(scope="module")
def machine() -> Arm:
    return arm()


@pytest.fixture(scope="module")
def estimate(machine: Arm) -> Estimate:
    return identify(Problem.from_model(machine.model, machine.log(1)), method="wls")


@pytest.fixture(scope="module")
def recording(machine: Arm) -> Recording:
    return machine.recording(2, machine.loaded(LOAD))


def fed(live: LivePayload, log: Recording, block: int = 25) -> LivePayload:
    for start in range(0, len(log), block):
        part = slice(start, start + block)
        live.feed(log.t[part], log.q[part], log.tau[part])
    return live


def test_it_reads_well(estimate, recording):
    live = dynid.LivePayload(estimate, "tool", feeding=FEEDING, gain_std=0.0)
    found = fed(live, recording).estimate()
    assert found.method == "live"
    assert abs(found.mass - MASS) < 3 * found.mass_std < 0.3
    assert np.all(np.abs(found.centre - CENTRE) < 3 * found.centre_std)
    assert found.relative_error < 3 < 20 < found.unloaded_error
    assert live.restarts == ()
    assert live.delay == pytest.approx((2 * 1.25 * 100 / 8 + 2) / 100, abs=0.02)
    body = live.estimate(consistent=True)
    assert np.linalg.eigvalsh(ten.pseudo_inertia(body.numbers))[0] > 0
    # All that is uncertain is counted, each source by itself.
    assert sum(body.mass_std_from(part) ** 2 for part in body.parts) == pytest.approx(body.mass_std ** 2)
    assert body.mass_std_from("robot") > 0
    assert body.mass_std_from("gains") == 0


def test_what_is_known_of_the_robot_widens_the_interval(estimate, recording):
    live = [fed(LivePayload(one, FRAME, feeding=FEEDING, gain_std=gain), recording).estimate()
            for one, gain in ((estimate, 0.0), (estimate.with_covariance(100 * estimate.covariance), 0.0),
                              (estimate, 0.05))]
    assert live[1].mass_std_from("robot") > 2 * live[0].mass_std_from("robot")
    assert live[2].mass_std_from("gains") == pytest.approx(0.05 * MASS, rel=0.5)


def test_it_is_the_fit_of_all_rows_with_what_was_known_before(machine, estimate):
    """With no forgetting and noise as stated: one least squares over the rows, with rows for the priors."""
    log = machine.log(2, machine.loaded(LOAD))
    live = LivePayload(estimate, FRAME, memory=1e12, threshold=1e9, slow=0.0, largest=(10.0, 0.3))
    live.update(log.q, log.dq, log.ddq, log.tau)
    recursion = live._load.settled()
    made = LoadedModel.from_estimate(estimate, Payload(FRAME))
    of = Unknowns.from_estimate(estimate, made, (10.0, 0.3))
    y = made.model.regressor(log.q, log.dq, log.ddq)[:, :, made.base.independent]
    scale = np.linalg.inv(of.prior.matrix)  # in units of the prior's standard deviations all is well conditioned
    whitened = (y @ scale * recursion.scale[:, None]).reshape(-1, len(scale))
    right = ((log.tau - y @ of.known) * recursion.scale).ravel()
    tall = np.vstack([whitened, np.eye(whitened.shape[1])])
    z = np.linalg.lstsq(tall, np.concatenate([right, np.zeros(whitened.shape[1])]), rcond=None)[0]
    np.testing.assert_allclose(live.numbers, of.sizes * z[of.load], atol=1e-7)
    half = of.prior.matrix @ np.linalg.inv(recursion.r[:-1, :-1])
    np.testing.assert_allclose(half @ half.T, np.linalg.inv(tall.T @ tall), atol=1e-9)


def test_however_the_samples_come_in_blocks(estimate, recording):
    one, many, odd = (fed(LivePayload(estimate, FRAME, feeding=FEEDING), recording, block) for block in (1, 5000, 37))
    assert one.samples == many.samples == odd.samples
    np.testing.assert_allclose(one.numbers, many.numbers, atol=1e-9)
    np.testing.assert_allclose(odd.numbers, many.numbers, atol=1e-9)


def test_a_load_that_is_taken_off_is_followed(machine, estimate):
    """Within 5 % of the load in at most 5 s, the change told with its time."""
    with_it, without = machine.recording(2, machine.loaded(LOAD), noise=0.3), machine.recording(2, noise=0.3)
    half = len(with_it) // 2
    tau = np.vstack([with_it.tau[:half], without.tau[half:]])
    live, masses = LivePayload(estimate, FRAME, feeding=FEEDING, gain_std=0.0), []
    for k in range(len(with_it)):
        live.feed(with_it.t[k], with_it.q[k], tau[k])
        masses.append(live.mass)
    off = np.abs(masses - np.where(np.arange(len(masses)) < half, MASS, 0.0)) > 0.05 * MASS
    assert not off[500:half].any()
    assert not off[half + 500:].any()
    changed = [one for one in live.events if one.code == "payload-changed"]
    assert len(live.restarts) == len(changed) >= 1
    assert with_it.t[half] < changed[0].t < with_it.t[half] + 2.0
    assert not live.estimate().seen
    assert [one.code for one in live.estimate().findings] == ["payload-not-seen"]


def test_after_a_push_the_load_is_what_it_was(machine, estimate, recording):
    """Half a second of torques that no load makes, large: two seconds later the estimate is what it was before."""
    tau = recording.tau.copy()
    tau[1000:1050] += 25.0 * np.array([1, 0, 0, 1, 0, 1, 0])
    plain, pushed = (fed(LivePayload(estimate, FRAME, feeding=FEEDING, gain_std=0.0), log.between(0.0, 12.5))
                     for log in (recording, replace(recording, tau=tau)))
    assert len(pushed.restarts) <= 2
    assert abs(pushed.mass - plain.mass) < plain.estimate().mass_std


def test_a_robot_that_stands_keeps_what_was_found(estimate, recording):
    live = fed(LivePayload(estimate, FRAME, feeding=FEEDING), recording)
    before, n = live.estimate(), live.samples
    t = recording.t[-1] + 0.01 * np.arange(1, 30_000)
    still = np.repeat(recording.q[-1:], len(t), axis=0)
    live.feed(t, still, np.repeat(recording.tau[-1:], len(t), axis=0))
    assert live.samples - n < 20
    assert abs(live.mass - before.mass) < before.mass_std


def test_forgetting_falls_back_to_no_load(estimate, recording):
    """Rows that say nothing of the load let it fade towards the prior, not away from it."""
    live = fed(LivePayload(estimate, FRAME, feeding=FEEDING, memory=50.0), recording)
    deviation = live.estimate().mass_std
    live._load.add(np.zeros((live._layout.rows, 2000)), np.ones((2000, 7), dtype=bool))
    assert abs(live.mass) < 0.1
    found = live.estimate()
    assert not found.identified.any()
    largest = live._load.unknowns.sizes[9]
    assert deviation ** 2 < found.covariance[9, 9] - found.parts["gains"][9, 9] < 1.001 * largest ** 2


def test_bad_calls_are_refused(machine, estimate):
    with refused(RobotError, "unknown-frame", "hand"):
        LivePayload(estimate, "hand")
    with refused(ModelError, "frame-of-the-base", "base"):
        LivePayload(estimate, "base")
    with refused(ModelError, "bad-largest-load"):
        LivePayload(estimate, FRAME, largest=(-1.0, 0.2))
    with refused(ModelError, "not-above-zero"):
        LivePayload(estimate, FRAME, memory=0.0)
    live = LivePayload(estimate, FRAME)
    with refused(NotPossibleError, "no-motion-yet"):
        live.estimate()
    with refused(ModelError, "bad-model", "7 joints"):
        live.update(*np.zeros((4, 6)))
    with refused(ModelError, "bad-shape", "(1, 7)"):
        live.feed(0.0, np.zeros(6), np.zeros(6))


def test_equations_without_accelerations_find_it_too(estimate, recording):
    live = LivePayload(estimate, FRAME, feeding=replace(FEEDING, equations="kernel"), gain_std=0.0)
    found = fed(live, recording).estimate()
    assert abs(found.mass - MASS) < 3 * found.mass_std < 0.4


def changes_with_gains_off(machine: Arm, seed: int, off: float, noise: float, seconds: float, rate: float = 100.0,
                           change: tuple[float, np.ndarray] | None = None) -> list[float]:
    """Times, s, at which a load is called changed, on a machine whose drive gains are off by a share, one-sigma."""
    gains = 1.0 + off * np.random.default_rng(777 + seed).normal(size=7)
    log = machine.log(20_000 + seed, noise=noise)
    estimate = identify(Problem.from_model(machine.model, replace(log, tau=log.tau * gains)), method="wls")
    stream = machine.stream(30_000 + seed, machine.loaded(LOAD), seconds=seconds, noise=noise, rate=rate, change=change)
    live = LivePayload(estimate, FRAME, feeding=FeedOptions(cutoff=0.08 * rate, rate=rate))
    fed(live, replace(stream, tau=stream.tau * gains), 20)
    return [one.t for one in live.events if one.code == "payload-changed"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_gains_off_by_ten_percent_are_no_change_of_the_load(machine, noise):
    """Such gains make the load of one window differ from that of another; a change by 40 % is still seen in time."""
    assert changes_with_gains_off(machine, 300, 0.1, noise, 120.0) == []
    called = changes_with_gains_off(machine, 301, 0.1, noise, 120.0, change=(60.0, machine.loaded(0.6 * LOAD)))
    assert called  # a second time where the first window held both loads
    assert 60.0 < min(called) <= max(called) < 66.0


@pytest.mark.slow
def test_no_constant_load_is_called_changed_in_ten_hours(machine):
    """60 streams of ten minutes, at 50 Hz and with a cut-off of 4 Hz to be short; half with gains 10 % off."""
    called = [changes_with_gains_off(machine, 400 + k, 0.1 * (k % 2), (1.0, 0.3, 0.1)[k % 3], 600.0, 50.0)
              for k in range(60)]
    assert called == [[]] * 60


@pytest.mark.slow
def test_intervals_hold(machine, estimate):
    """Mass and centre of mass after ten seconds, robot, noise and motion anew each time; 95 % hold in 88 to 95 %."""
    held = []
    for k in range(60):
        problem = Problem.from_model(machine.model, machine.log(2000 + k))
        live = LivePayload(identify(problem, method="wls"), FRAME, feeding=FEEDING, gain_std=0.0)
        log = machine.recording(3000 + k, machine.loaded(LOAD))
        low, high = fed(live, log.between(0.0, 10.0), 200).estimate().conf_int().T
        held.append((low < np.append(MASS, CENTRE)) & (np.append(MASS, CENTRE) < high))
    share = np.mean(held, axis=0)
    assert np.all(share >= 0.85), share


@pytest.mark.slow
@pytest.mark.parametrize("which", ["panda", "kuka_lwr4"])
def test_real_logs_with_and_without_a_load_that_was_added(data, which):
    """Torques of 2 kg added to half of a real log, or to another one: found, and nothing where none was."""
    from dynid.model import Model, make_terms
    from dynid.robot import Robot
    from reproductions._data import log as read_log

    folder, load = data(which), ten.from_central(2.0, np.array([0.02, 0.0, 0.08]), 0.004 * np.eye(3))
    if which == "panda":
        robot, cutoff = Robot.from_urdf(folder / "panda_arm.urdf"), 5.0
        whole = read_log("panda", robot)
        middle = whole.t[0] + 0.5 * whole.duration
        logs = [whole.between(whole.t[0], middle), whole.between(middle, whole.t[-1] + 1.0)]
    else:
        robot, cutoff = Robot.from_urdf(folder / "kuka_lwr4.urdf"), 8.0
        logs = [read_log("kuka_lwr4", robot, f"measurements_{k}.npz") for k in (1, 2)]
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    for first, second in (logs, logs[::-1]):
        known = identify(Problem.from_model(model, dynid.prepare(first, cutoff=cutoff)), method="wls")
        motion = dynid.prepare(second, cutoff=40.0, slow=0.0)
        for share in (0.0, 1.0):
            feeding = FeedOptions(cutoff=cutoff, rate=float(f"{second.rate:.6g}"))
            live = LivePayload(known, feeding=feeding, gain_std=0.0)
            added = Model(robot, (Payload(live.frame),)).inverse_dynamics(share * load, motion.q, motion.dq, motion.ddq)
            more = np.column_stack([np.interp(second.t, motion.t, column) for column in added.T])
            fed(live, replace(second, tau=second.tau + more))
            assert abs(live.mass - 2.0 * share) < 0.1
            assert share == 0.0 or live.estimate().seen
