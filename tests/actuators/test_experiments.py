"""Experiments for actuators: commands stay inside limits, and the design says what gains and masses are for."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.actuators.chains import pendulum
from dynid.actuators.experiment_plan import PART_KINDS, RESIDUAL_STD, RESIDUAL_TIME, Room, part_command, plan_text
from dynid.actuators.experiments import design_actuator_experiment
from dynid.actuators.laws import drive_law
from dynid.actuators.parameter_combinations import projected, unchanged_directions
from dynid.actuators.problem import ChainProblem
from dynid.errors import DynidError

ROOMS = [Room(-1.5, 1.5, 4.0, 0.0), Room(0.2, 2.0, 2.0, 0.2)]
SERVO = {"armature": 0.02, "coulomb": 0.05, "viscous": 0.03, "stribeck": 0.03}


@pytest.mark.parametrize("kind", PART_KINDS)
def test_commands_respect_their_limits(kind: str) -> None:
    t, command = part_command(kind, 10.0, 100.0, ROOMS, seed=1)
    assert t[-1] == pytest.approx(10.0) and command.shape == (1001, 2)
    for j, room in enumerate(ROOMS):
        assert room.low <= command[:, j].min() and command[:, j].max() <= room.high
        assert command[0, j] == command[-1, j] == room.home and np.ptp(command[:, j]) > 0.2
        speed = np.abs(np.diff(command[:, j])).max() * 100
        if "steps" not in kind:
            assert speed <= room.speed * (1 + 1e-9)
    again = part_command(kind, 10.0, 100.0, ROOMS, seed=1)[1]
    np.testing.assert_array_equal(command, again)


def design(**more):
    settings = {"gains": {"kp": [8.0, 32.0]},
                "known": {"gain": 0.166, "limit": 0.97, "vin": 7.4, "resistance": 2.7},
                "values": SERVO, "friction": "m1", "lower": [-1.5], "upper": [1.5], "velocity": [5.0],
                "duration": 20.0, "part_duration": 5.0, "rate": 50.0}
    loads = {f"{mass:g} kg": pendulum(mass, 0.15) for mass in (0.1, 0.6)}
    return design_actuator_experiment(more.pop("loads", loads), "voltage", **{**settings, **more})


def test_a_design_of_a_servo() -> None:
    plan = design()
    assert len(plan.parts) == 4 and len({part.title for part in plan.parts}) == 4
    assert all(np.abs(part.command).max() <= 1.5 for part in plan.parts)
    assert "kt of joint" in plan.parameters and "kp of joint" not in plan.parameters
    assert not plan.not_identified
    shorter = design(duration=5.0)
    assert np.all(plan.std <= shorter.std + 1e-12) and shorter.parts[0].title == plan.parts[0].title
    text = plan_text(plan, ["a.csv", "b.csv", "c.csv", "d.csv"])
    assert all(f"`{name}.csv`" in text for name in "abcd") and all(name in text for name in plan.parameters)


def test_parameters_that_no_recording_separates_are_named() -> None:
    """Torque constant and resistance act by kt / R and by kt^2 / R, and the latter only as a sum with damping."""
    plan = design(known={"gain": 0.166, "limit": 0.97, "vin": 7.4})
    assert set(plan.not_identified) == {"kt of joint", "resistance of joint", "viscous of joint"}
    assert any("kt of joint" in note and "viscous of joint" in note and "change together" in note
               for note in plan.notes)
    assert "| viscous of joint | 0.03 | not determined |" in plan_text(plan, ["x"] * 4)
    known = {"gain": 0.166, "limit": 0.97, "vin": 7.4}
    loaded = design(known=known, friction="m3", values={**SERVO, "load": 0.3})
    assert not any("change together" in note for note in loaded.notes)  # friction under load depends on kt by itself


def test_directions_that_change_nothing() -> None:
    """Closed form: along d kt = kt, d R = R, d viscous = -kt^2 / R, the products kt / R and kt^2 / R + viscous stay."""
    known = ({"kp": 16.0, "gain": 0.166, "limit": 0.97, "vin": 7.4},)
    law, names = drive_law("voltage"), ("armature", "viscous", "kt", "resistance")
    problem = ChainProblem(law, ("joint",), (), known, ()).estimating(names)
    x = np.array([0.02, 0.05, 1.2, 2.7])
    found = unchanged_directions(problem, x, x)
    expected = np.array([0.0, -1.2 ** 2 / 2.7 / 0.05, 1.0, 1.0])
    assert found.shape == (4, 1)
    np.testing.assert_allclose(np.abs(found[:, 0] @ expected) / np.linalg.norm(expected), 1.0, atol=1e-6)
    np.testing.assert_allclose(projected(np.eye(4), found) @ found, 0.0, atol=1e-12)
    fixed = ChainProblem(law, ("joint",), (), ({**known[0], "resistance": 2.7},), ()).estimating(names[:3])
    assert unchanged_directions(fixed, x[:3], x[:3]).shape == (3, 0)


def test_expected_standard_errors_are_those_of_least_squares() -> None:
    """With one parameter unknown, the information is the sum of squared sensitivities, here by another difference."""
    known = {"gain": 0.166, "limit": 0.97, "vin": 7.4, "kp": 16.0, "delay": 0.0, "coulomb": 0.0, "viscous": 0.0,
             "offset": 0.0, "kt": 1.2, "resistance": 2.7}
    arm = pendulum(0.4, 0.15)
    plan = design_actuator_experiment(arm, "voltage", known=known, values={"armature": 0.02}, friction="m1",
                                      lower=[-1.0], upper=[1.0], velocity=[5.0], duration=5.0, part_duration=5.0,
                                      rate=50.0)
    assert plan.parameters == ("armature of joint",)
    part, h = plan.parts[0], 1e-4
    slope = (_rollout(part.t, part.command[:, 0], 0.02 + h) - _rollout(part.t, part.command[:, 0], 0.02 - h)) / (2 * h)
    information = np.sum(slope ** 2) / RESIDUAL_STD ** 2 / (50.0 * RESIDUAL_TIME)
    expected = 1.0 / np.sqrt(information)
    assert plan.std[0] == pytest.approx(expected, rel=0.03)


def _rollout(t, command, armature):
    """The servo by a plain integration of its equation with small steps."""
    q = dq = 0.0
    inertia, weight, found, steps = 0.4 * 0.15 ** 2 + armature, 0.4 * 0.15 * 9.81, [], 40
    for k in range(len(t)):
        found.append(q)
        for _ in range(steps if k + 1 < len(t) else 0):
            h = (t[k + 1] - t[k]) / steps
            volts = 7.4 * np.clip(0.166 * 16 * (command[k] - q), -0.97, 0.97)
            dq += h * (1.2 * volts / 2.7 - 1.2 ** 2 * dq / 2.7 - weight * np.sin(q)) / inertia
            q += h * dq
    return np.array(found)


@pytest.mark.parametrize(("more", "code", "names"), [
    ({"friction": "m9"}, "unknown-friction", ("m9",)), ({"gains": {"kq": [1.0]}}, "unknown-gain", ("kq",)),
    ({"part_duration": 1.0}, "wrong-duration", ("1 s",)), ({"upper": [np.inf]}, "wrong-limits", ("joint",)),
    ({"lower": [0.0, 1.0]}, "wrong-limits", ("lower",)), ({"gains": {"kp": [np.nan]}}, "wrong-gain", ("kp",)),
])
def test_wrong_requests_are_refused(more: dict, code: str, names: tuple[str, ...]) -> None:
    with refused(DynidError, code, *names):
        design(**more)


def test_a_law_without_a_value_is_refused() -> None:
    with refused(DynidError, "no-value", "kp", "--gain"):
        design_actuator_experiment(pendulum(0.1, 0.1), "pd", lower=[-1], upper=[1], velocity=[1])
