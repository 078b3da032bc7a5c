"""Limits without sense are refused in a sentence."""

from __future__ import annotations

import pytest

from dynid.errors import DynidError
from dynid.excitation import Limits
from dynid.robot import Robot


@pytest.mark.parametrize(("given", "match"), [
    ({"velocity": [1.0, 0.0, 1.0]}, "velocity limit of joint 'joint2' must be above zero"),
    ({"lower": [0.0, 1.0, 0.0], "upper": [1.0, 0.5, 1.0]}, "joint 'joint2' cannot move between 1 and 0.5"),
    ({"start": [9.0, 0.0, 0.0]}, "start posture puts joint 'joint1' at 9"),
    ({"bandwidth": 0.0}, "bandwidth must be above zero"),
    ({"speed": 1.0}, "no limit 'speed'"),
])
def test_limits_without_sense(given: dict, match: str) -> None:
    with pytest.raises(DynidError, match=match):
        Limits.of(Robot.builtin("arm3r"), **given)
