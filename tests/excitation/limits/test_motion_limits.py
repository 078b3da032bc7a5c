"""Limits without sense are refused in a sentence."""

from __future__ import annotations

import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import Limits
from dynid.robot import Robot


@pytest.mark.parametrize(("given", "match"), [
    ({"velocity": [1.0, 0.0, 1.0]}, ("wrong-limit", "velocity", "'joint2'")),
    ({"lower": [0.0, 1.0, 0.0], "upper": [1.0, 0.5, 1.0]}, ("wrong-limit", "'joint2'", "0.5")),
    ({"start": [9.0, 0.0, 0.0]}, ("wrong-home", "start", "'joint1'", "9")),
    ({"bandwidth": 0.0}, ("bad-call", "bandwidth", "0 Hz")),
    ({"speed": 1.0}, ("bad-call", "'speed'")),
])
def test_limits_without_sense(given: dict, match: tuple[str, ...]) -> None:
    with refused(DynidError, *match):
        Limits.from_robot(Robot.builtin("arm3r"), **given)
