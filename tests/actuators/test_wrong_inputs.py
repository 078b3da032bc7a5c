"""Wrong gains, masses, delays and saturating logs with every drive law: named, or the truth is inside the intervals."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import ActuatorEstimate, identify_actuators, pendulum
from reproductions._servos import Servo, motions, simulate

RATE, ROWS, DELAY = 100.0, 600, 0.01
FRICTION = {"coulomb": 0.08, "viscous": 0.05}
ROBOT, HEAVIER = pendulum(0.5, 0.15, joint="j"), pendulum(0.6, 0.15, joint="j")
# Gains of each law, and those that are given to the identification.
LAWS = {"pd": ({"kp": 8.0, "kd": 0.15}, ("kp", "kd")),
        "pid": ({"kp": 8.0, "ki": 12.0, "kd": 0.15}, ("kp", "ki", "kd")),
        "cascade": ({"kp": 30.0, "kv": 0.3, "ki": 1.5, "kt": 0.9}, ("kp", "kv", "ki")),
        "voltage": ({"kp": 32.0, "gain": 0.0395, "limit": 0.9625, "vin": 12.0, "kt": 1.0, "resistance": 2.0},
                    ("kp", "gain", "limit", "vin", "kt")),
        "current": ({"kt": 0.6}, ())}
WRONG_GAINS = [("pd", "kp"), ("pd", "kd"), ("pid", "kp"), ("pid", "ki"), ("pid", "kd"), ("cascade", "kp"),
               ("cascade", "kv"), ("cascade", "ki"), ("voltage", "kp"), ("voltage", "gain"), ("voltage", "kt"),
               ("current", "kt")]


def servo_log(law: str, gains: dict[str, float] | None = None, **more: float) -> dynid.Recording:
    commands = motions(1, ROWS, RATE, 3)
    delay = 0.0 if law == "current" else DELAY
    servo = Servo(0.5, 0.15, 0.01, law, gains or LAWS[law][0], FRICTION, delay=delay, **more)
    q, t = simulate([servo], commands, RATE)[0][:, None], np.arange(ROWS) / RATE
    if law == "current":
        return dynid.Recording.from_commands(t, q, q, joints=("j",), current=commands[0][:, None])
    return dynid.Recording.from_commands(t, q, commands[0][:, None], joints=("j",))


def given(law: str) -> dict[str, float]:
    gains, names = LAWS[law]
    return {name: gains[name] for name in names}


def missed(found: ActuatorEstimate, law: str) -> list[str]:
    """Names of the parameters whose intervals do not hold the truth."""
    truth = {"armature": 0.01, "offset": 0.0, "delay": DELAY, **FRICTION, **LAWS[law][0]}
    return [one.name for one in found.parameters
            if one.interval is not None and not one.interval[0] <= truth[one.name] <= one.interval[1]]


def note_texts(found: ActuatorEstimate, code: str) -> str:
    return " ".join(note.text for note in found.notes if note.code == code)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "gain"), WRONG_GAINS)
def test_a_wrong_gain_is_named_or_stated_as_untested(law: str, gain: str) -> None:
    wrong = {**given(law), gain: 1.2 * LAWS[law][0][gain]}
    found = identify_actuators(ROBOT, servo_log(law), law=law, gains=wrong, friction="m1")
    if found.findings:
        assert {one.code for one in found.findings} <= {"scale-contradicted", "gain-contradicted"}
        return
    stated = note_texts(found, "given-untested")
    assert f"the given {gain} = " in stated
    shared = {"coulomb", "viscous", "resistance", "kt", "armature"} & set(missed(found, law))
    assert all(name in stated or name == "coulomb" for name in shared)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "gain", "rivals"), [("cascade", "ki", {"kv", "ki"}),
                                                     ("voltage", "kp", {"kp", "gain", "kt"})])
def test_gains_that_explain_the_motion_equally_well_are_all_named(law: str, gain: str, rivals: set[str]) -> None:
    """The gains act as a product or a quotient: one of them is wrong, and the log does not show which."""
    wrong = {**given(law), gain: 0.8 * LAWS[law][0][gain]}
    (finding,) = identify_actuators(ROBOT, servo_log(law), law=law, gains=wrong, friction="m1").findings
    assert finding.code == "gain-contradicted" and set(finding.parameters) == rivals
    estimates = dict(zip(finding.parameters, finding.evidence["estimate"], strict=True))
    assert estimates[gain] > 1.1 * wrong[gain] and all(f"{name} = " in finding.text for name in rivals)


def test_a_poor_fit_is_not_blamed_on_a_cause_that_explains_little() -> None:
    """Degrees of a small motion are within the reach of radians, so only the fit shows that something is wrong."""
    log = servo_log("pd")
    small = dynid.Recording.from_commands(log.t, 5.0 * log.q, 5.0 * log.reference, joints=("j",))
    found = identify_actuators(ROBOT, small, gains=given("pd"), friction="m1")
    (finding,) = found.findings
    assert finding.code == "motion-not-explained" and "unit of the positions" in finding.text


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_wrong_mass_is_named_or_sets_the_scale(law: str) -> None:
    found = identify_actuators(HEAVIER, servo_log(law), law=law, gains=given(law), friction="m1")
    if law in ("pd", "pid"):
        finding = next(one for one in found.findings if one.code == "scale-contradicted")
        assert finding.evidence["estimate"] == pytest.approx(1.2, rel=0.1)
    else:  # the masses alone set the scale: every value is in proportion, which is stated
        assert "wrong by the same factor" in note_texts(found, "scale")
        values = {one.name: one.value for one in found.parameters}
        for name in ("kt", "coulomb") if law == "cascade" else ("coulomb",) if law == "voltage" else ():
            assert values[name] == pytest.approx(1.2 * {**FRICTION, **LAWS[law][0]}[name], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_wrong_delay_is_named_or_does_not_matter(law: str) -> None:
    found = identify_actuators(ROBOT, servo_log(law), law=law, gains=given(law), friction="m1", delay=0.03)
    if law == "current":  # measured currents are not delayed
        assert missed(found, law) == []
    else:  # the loop of the cascade is unstable with such a delay, so no fit with it is near the truth
        finding = next(one for one in found.findings if one.code == "delay-contradicted")
        assert finding.evidence["estimate"] == pytest.approx(DELAY, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["pd", "pid", "cascade", "voltage"])
def test_a_saturating_log_is_named(law: str) -> None:
    known = {name: value for name, value in given(law).items() if name != "limit"}
    log = servo_log("voltage", {**LAWS["voltage"][0], "limit": 0.35}) if law == "voltage" else \
        servo_log(law, torque_limit=0.7)
    found = identify_actuators(ROBOT, log, law=law, gains=known, friction="m1")
    (finding,) = found.findings
    assert finding.code == "saturation"
    if law == "voltage":
        assert finding.evidence["limit"] == pytest.approx(0.35, rel=0.05)
    else:  # the torque constant of the cascade is estimated: limit and constant vary together, their product does not
        assert finding.evidence["torque"] == pytest.approx(0.7, rel=0.05)
    has_integral = law in ("pid", "cascade")  # that of these servos grows on while their torque is cut
    assert finding.evidence["windup"] == float(has_integral) and ("--gain windup=1" in finding.text) == has_integral


def test_an_integral_that_grows_on_while_the_drive_saturates_is_simulated() -> None:
    """The servo has no anti-windup. With `windup` the error is that of rounding; a law that waits cannot follow."""
    log, gains = servo_log("pid", torque_limit=0.7), {**given("pid"), "torque_limit": 0.7}
    grows, waits = (identify_actuators(ROBOT, log, law="pid", gains={**gains, "windup": windup}, friction="m1",
                                       diagnose=False) for windup in (1.0, 0.0))
    assert grows.mean_error < 1.2 * 2 * np.pi / 4096 / 4 and waits.mean_error > 5.0 * grows.mean_error
    assert missed(grows, "pid") == []


def test_commands_that_are_logged_late_are_named() -> None:
    """Each command is logged five rows after it was sent, so the motion precedes it."""
    log, rows = servo_log("pd"), 5
    late = dynid.Recording.from_commands(log.t[rows:], log.q[rows:], log.reference[:-rows], joints=("j",))
    (finding,) = identify_actuators(ROBOT, late, gains=given("pd"), friction="m1").findings
    assert finding.code == "commands-late" and finding.evidence["rows"] == pytest.approx(rows - RATE * DELAY, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_healthy_log_has_no_finding(law: str) -> None:
    found = identify_actuators(ROBOT, servo_log(law), law=law, gains=given(law), friction="m1")
    assert found.findings == ()


@pytest.mark.parametrize(("law", "names"), [("pd", ("kd", "viscous")), ("pid", ("kd", "viscous")),
                                            ("cascade", ("kv", "kt")), ("voltage", ("kt", "viscous")),
                                            ("current", ("delay",))])
def test_parameters_that_one_log_cannot_distinguish_are_named(law: str, names: tuple[str, ...]) -> None:
    """One log at one gain, with gains left open; the cascade has no integral, whose gain would separate kv and kt."""
    known = {name: value for name, value in given(law).items() if name not in ("kd", "kv", "kt")}
    gains = {**LAWS[law][0], "ki": 0.0} if law == "cascade" else LAWS[law][0]
    known = {**known, "ki": 0.0} if law == "cascade" else known
    found = identify_actuators(ROBOT, servo_log(law, gains), law=law, gains=known, friction="m1", diagnose=False)
    stated = note_texts(found, "not-distinguished") + note_texts(found, "at-bound")
    for name in names:
        assert not found["j", name].identified and found["j", name].interval is None
        assert f"{name} of j" in stated or (name == "delay" and "delay" in stated)
    for one in found.parameters:  # all without an interval are named
        assert one.identified or one.is_given or one.name in stated


def test_an_encoder_bias_is_named() -> None:
    commands = motions(1, ROWS, RATE, 11, reach=1.5)
    q = simulate([Servo(0.5, 0.15, 0.01, "pd", LAWS["pd"][0], FRICTION, delay=DELAY, bias=0.06)], commands, RATE)[0]
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, q[:, None], commands[0][:, None], joints=("j",))
    found = identify_actuators(ROBOT, log, gains=LAWS["pd"][0], friction="m1")
    finding = next(one for one in found.findings if one.code == "bias-suspected")
    assert finding.evidence["estimate"] == pytest.approx(0.06, abs=0.01)
    assert "--also bias" in finding.text
