"""From a recording to samples: known signals, what is said, what is refused, and repeating to the byte."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError, NotPossibleError, RecordingError
from dynid.recording.preparation import Preparation
from dynid.recording.preparation.smoother import smooth
from dynid.recording.recording import Recording
from dynid.recording.sample_preparation import prepare

JOINTS = ("shoulder", "elbow")
PARTS = ([(0.8, 0.4, 0.3), (0.25, 1.1, 1.0)], [(0.5, 0.7, -0.4), (0.1, 1.6, 2.0)])


def motion(t: np.ndarray, derivative: int = 0) -> np.ndarray:
    return np.column_stack([sum(a * (2 * np.pi * f) ** derivative
                                * np.sin(2 * np.pi * f * t + p + derivative * np.pi / 2) for a, f, p in parts)
                            for parts in PARTS])


def torque(t: np.ndarray) -> np.ndarray:
    return 2.0 * motion(t, 2) + 1.5 * motion(t, 1) + 0.7


def log(rate: float = 500.0, seconds: float = 20.0, noise: float = 0.0, velocity: bool = False, jitter: float = 0.0,
        **more: Any) -> Recording:
    random = np.random.default_rng(0)
    t = (np.arange(int(rate * seconds)) + random.uniform(-jitter, jitter, int(rate * seconds))) / rate
    q = motion(t) + noise * random.standard_normal((len(t), 2))
    dq = motion(t, 1) + 10 * noise * random.standard_normal((len(t), 2)) if velocity else None
    return Recording(t, q, torque(t), dq=dq, joints=JOINTS, source="log.csv", **more)


METHODS = ["butterworth", "savitzky-golay", "kalman", "none"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("velocity", [False, True])
@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_clean_sines_come_back_with_their_derivatives(method: str, velocity: bool, jitter: float) -> None:
    samples = prepare(log(velocity=velocity, jitter=jitter), method=method, cutoff=20.0)
    used = samples.keep.all(axis=1)
    assert np.mean(used) > 0.9
    for got, want in ((samples.q, motion(samples.t)), (samples.dq, motion(samples.t, 1)),
                      (samples.ddq, motion(samples.t, 2)), (samples.tau, torque(samples.t))):
        assert np.abs(got - want)[used].max() < 3e-3 * np.abs(want).max()  # what a border of two periods leaves


@pytest.mark.parametrize("method", METHODS[:3])
def test_noise_is_held_down_by_the_cutoff_it_chose(method: str) -> None:
    samples = prepare(log(noise=1e-4, rate=1000.0), method=method)
    assert 3.0 < samples.settings["cutoff"] < 30.0
    used = samples.keep.all(axis=1)
    error = (samples.ddq - motion(samples.t, 2))[used]
    assert np.std(error) < 0.06 * np.std(motion(samples.t, 2))
    assert any("cut-off" in step and "chosen from the spectra of the positions" in step for step in samples.steps)
    assert set(samples.spectrum) == set(JOINTS)
    assert len(samples.spectrum["elbow"]["f"]) <= 200


@pytest.mark.parametrize("options", [
    {}, {"method": "savitzky-golay"}, {"method": "kalman"}, {"method": "none"}, {"decimate": 5, "stages": 2},
    {"thin": 4}, {"velocity": "differentiate"}, {"method": "savitzky-golay", "window": 0.11, "order": 3},
    {"torque_cutoff": 12.0, "border": 0.3, "slow": [0.1, 0.2]},
])
@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_the_settings_repeat_it_to_the_byte(options: dict[str, Any], jitter: float) -> None:
    recording = log(noise=1e-4, velocity=True, jitter=jitter, seconds=8.0)
    first = prepare(recording, **options)
    again = prepare(recording, Preparation.from_settings(first.settings))
    for name in ("t", "q", "dq", "ddq", "tau", "keep", "segments"):
        assert getattr(first, name).tobytes() == getattr(again, name).tobytes(), name
    assert first.settings == again.settings
    text = "\n".join(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
                     for key, value in first.settings.items())
    assert Preparation.from_settings(tomllib.loads(text)) == Preparation.from_settings(first.settings)


def test_settings_of_one_log_serve_another() -> None:
    first = prepare(log(noise=1e-4, velocity=True))
    other = log(rate=800.0, noise=1e-4)  # another rate, and no velocity
    samples = prepare(other, Preparation.from_settings(first.settings).elsewhere())
    assert samples.rate == 800.0
    assert samples.settings["velocity"] == "differentiate"
    for name in ("cutoff", "slow", "border", "order", "torque_cutoff"):
        assert samples.settings[name] == first.settings[name]


def test_torques_are_filtered_with_the_positions_unless_decimation_does_it() -> None:
    recording = log(noise=1e-4)
    same = prepare(recording, cutoff=3.0, decimate=1)
    assert same.settings["torque_cutoff"] == "same" and same.tau is not recording.tau
    assert np.abs(same.tau - recording.tau)[same.keep].max() > 1e-3
    apart = prepare(recording, cutoff=3.0, decimate=5)
    assert apart.tau is recording.tau and apart.decimation is not None and apart.decimation.total == 5
    chosen = prepare(recording, cutoff=3.0).decimation
    assert chosen is not None and chosen.total > 1
    assert chosen.share * recording.rate / (2 * chosen.total) == pytest.approx(3.0)
    own = prepare(recording, cutoff=3.0, torque_cutoff=40.0)
    np.testing.assert_allclose(own.tau[own.keep], recording.tau[own.keep], atol=1e-3)


@pytest.mark.parametrize("method", ["butterworth", "savitzky-golay", "kalman", "none"])
def test_the_measured_velocity_is_taken_joint_by_joint(method: str) -> None:
    recording = log(noise=1e-4, velocity=True)
    assert recording.dq is not None
    broken = replace(recording, dq=recording.dq * np.where(np.arange(recording.dof) == 1, 57.3, 1.0))
    options = {"method": method, "cutoff": 8.0, "velocity_delay": 0.0}
    mixed = prepare(broken, **options)
    good = prepare(recording, velocity="measured", **options)
    none = prepare(recording, velocity="differentiate", **options)
    others = np.arange(recording.dof) != 1
    for signal in ("q", "dq", "ddq"):  # joint 2 as without its velocity, the others as with it
        np.testing.assert_array_equal(getattr(mixed, signal)[:, 1], getattr(none, signal)[:, 1])
        np.testing.assert_allclose(getattr(mixed, signal)[:, others], getattr(good, signal)[:, others], atol=1e-12)
    ways = ["measured"] * recording.dof
    ways[1] = "differentiate"
    assert list(mixed.settings["velocity"]) == ways
    again = prepare(broken, Preparation.from_settings(mixed.settings))
    np.testing.assert_array_equal(again.dq, mixed.dq)
    assert any(f" of {mixed.joints[1] if mixed.joints else 'joint2'} is 57.3 times" in step for step in mixed.steps)
    with refused(RecordingError, "bad-recording", "'velocity'", "9 values"):
        prepare(recording, velocity=("auto",) * 9)


def test_the_measured_velocity_is_judged_and_said() -> None:
    recording = log(noise=1e-4, velocity=True)
    used = prepare(recording)
    assert used.settings["velocity"] == "measured"
    assert any(step.startswith("the measured velocity is used: scale within") for step in used.steps)
    late = replace(recording, dq=motion(recording.t - 0.006, 1))
    samples = prepare(late)
    assert samples.settings["velocity_delay"] == pytest.approx(0.006, abs=3e-4)
    keep = samples.keep.all(axis=1)
    assert np.abs(samples.dq - motion(samples.t, 1))[keep].max() < 0.01 * np.abs(samples.dq).max()
    degrees = replace(recording, dq=np.degrees(motion(recording.t, 1)))
    assert prepare(degrees).settings["velocity"] == "differentiate"
    assert any("57.3 times the derivative" in step for step in prepare(degrees).steps)
    assert any("as requested, although" in step for step in prepare(degrees, velocity="measured").steps)


def test_gaps_and_borders() -> None:
    whole = log()
    gone = np.ones(len(whole), dtype=bool)
    gone[4000:4300] = gone[7000:7020] = False
    recording = Recording(whole.t[gone], whole.q[gone], whole.tau[gone], joints=JOINTS)
    samples = prepare(recording, cutoff=10.0)
    np.testing.assert_array_equal(samples.segments, [[0, 4000], [4000, 6700], [6700, 9680]])
    rows = int(samples.settings["border"] * 500)
    assert rows == 100
    for start, stop in samples.segments:
        assert not np.any(samples.keep[start:start + rows]) and not np.any(samples.keep[stop - rows:stop])
        assert np.any(samples.keep[start + rows])
    used = samples.keep.all(axis=1)
    assert np.abs(samples.ddq - motion(samples.t, 2))[used].max() < 0.01 * np.abs(motion(samples.t, 2)).max()


def test_a_segment_too_short_is_left_out_and_said() -> None:
    whole = log()
    gone = np.ones(len(whole), dtype=bool)
    gone[4000:4300] = gone[4350:4600] = False
    samples = prepare(Recording(whole.t[gone], whole.q[gone], whole.tau[gone]), cutoff=10.0)
    assert len(samples.segments) == 2
    assert any("1 segments shorter than 201 samples were ignored (50 samples)" in step for step in samples.steps)
    assert not np.any(samples.keep[4000:4050])


def test_slow_rows_are_dropped_for_their_joint_only() -> None:
    samples = prepare(log(), cutoff=20.0, slow=[0.2, 0.0], border=0.5)
    inside = slice(250, -250)
    np.testing.assert_array_equal(samples.keep[inside, 0], np.abs(samples.dq[inside, 0]) >= 0.2)
    assert np.all(samples.keep[inside, 1])


def test_saturated_rows_are_dropped_with_their_neighbours() -> None:
    recording = log()
    tau = recording.tau.copy()
    top = np.quantile(tau[:, 1], 0.95)
    tau[:, 1] = np.minimum(tau[:, 1], top)
    samples = prepare(replace(recording, tau=tau), cutoff=10.0, slow=0.0)
    hit = tau[:, 1] == top
    assert not np.any(samples.keep[hit, 1])
    assert np.sum(~samples.keep[:, 1]) > np.sum(~samples.keep[:, 0]) + np.sum(hit)
    assert any("of elbow: its torque is saturated at its limit" in step for step in samples.steps)
    given = prepare(recording, cutoff=10.0, slow=0.0, saturation=[float("inf"), float(top)])
    assert not np.any(given.keep[recording.tau[:, 1] > top, 1])


def test_thinning_takes_rows_after_filtering() -> None:
    full, thin = prepare(log(), cutoff=10.0), prepare(log(), cutoff=10.0, thin=20)
    np.testing.assert_array_equal(thin.q, full.q[::20])
    assert thin.rate == 25.0 and len(thin) == 500


def with_joint(j: int, **signals: Callable[[np.ndarray], Any]) -> Recording:
    """A log in which signals of joint j are replaced."""
    recording = log()
    changed = {}
    for name, make in signals.items():
        array = getattr(recording, name).copy()
        array[:, j] = make(recording.t)
        changed[name] = array
    return replace(recording, **changed)


def test_one_moving_joint_is_no_error() -> None:
    samples = prepare(with_joint(0, q=lambda t: 0.3), cutoff=10.0)
    assert any(step.startswith("shoulder does not move in this log") for step in samples.steps)
    assert samples.settings["slow"][0] == 0.0
    assert np.all(samples.keep[200:-200, 0])


def test_one_joint_without_torque_is_said() -> None:
    samples = prepare(with_joint(1, tau=lambda t: 0.0), cutoff=10.0)
    assert "the torque of elbow is always zero" in samples.steps
    assert "the torque of elbow never changes" in prepare(with_joint(1, tau=lambda t: 2.0), cutoff=10.0).steps


@pytest.mark.parametrize(("recording", "options", "error", "words"), [
    (log(seconds=0.018), {}, NotPossibleError, (NotPossibleError, "not-possible", "log.csv", "9 samples")),
    (log(seconds=0.1), {}, NotPossibleError, (NotPossibleError, "not-possible", "log.csv", "50 samples")),
    (log(seconds=0.1), {"cutoff": 5.0}, NotPossibleError,
     (NotPossibleError, "not-possible", "50 samples", "5 Hz", "401")),
    (replace(log(), q=np.zeros((10000, 2))), {}, NotPossibleError, (NotPossibleError, "log-at-rest", "log.csv")),
    (replace(log(), tau=np.zeros((10000, 2))), {}, NotPossibleError, (NotPossibleError, "torques-zero", "10000")),
    (log(), {"cutoff": 300.0}, NotPossibleError, (NotPossibleError, "cutoff-above-rate", "300 Hz", "600 Hz")),
    (log(), {"torque_cutoff": 250.0}, NotPossibleError, (NotPossibleError, "cutoff-above-rate", "250 Hz")),
    (log(), {"cutoff": 5.0, "slow": 100.0}, NotPossibleError, (NotPossibleError, "no-usable-row", "log.csv")),
    (log(), {"velocity": "measured"}, RecordingError, (RecordingError, "bad-recording", "log.csv", "'measured'")),
    (log(), {"slow": [0.1, 0.2, 0.3]}, RecordingError, (RecordingError, "bad-recording", "'slow'", "3 values")),
    (log(), {"method": "savitzky-golay", "window": 0.004}, NotPossibleError,
     (NotPossibleError, "window-too-short", "degree 4")),
    (log(), {"cutof": 3.0}, RecordingError, (RecordingError, "wrong-setting", "'cutof'", "'cutoff'")),
    (log(), {"cutoff": -3.0}, RecordingError, (RecordingError, "wrong-setting", "'cutoff'", "-3.0")),
    (log(), {"slow": [-1.0, 0.0]}, RecordingError, (RecordingError, "wrong-setting", "'slow'", "-1.0")),
    (log(), {"torque_cutoff": "low"}, RecordingError,
     (RecordingError, "wrong-setting", "'torque_cutoff'", "'low'", "'same'")),
    (log(), {"thin": 2, "decimate": 2}, RecordingError, (RecordingError, "wrong-setting", "'thin'", "'decimate'")),
])
def test_what_cannot_be_done_is_one_sentence(recording: Recording, options: dict[str, Any], error: type[DynidError],
                                             words: tuple[Any, ...]) -> None:
    with refused(*words) as caught:
        prepare(recording, **options)
    assert "\n" not in str(caught.value)


def test_a_velocity_without_noise_beside_a_noisy_position_is_smoothed() -> None:
    t = np.arange(2000) / 250.0
    noisy = motion(t) + 1e-5 * np.random.default_rng(0).normal(size=(len(t), 2))
    found = smooth(noisy, 12.0, 250.0, np.array([[0, len(t)]]), motion(t, 1), np.full(2, 1e-7))
    inside = slice(50, -50)
    assert np.abs(found[1] - motion(t, 1))[inside].max() < 0.01 * np.abs(motion(t, 1)).max()
