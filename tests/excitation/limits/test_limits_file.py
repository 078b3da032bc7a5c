"""The TOML file of limits: numbers over the robot's own, geometry, and errors that name the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import read_limits
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")


def test_numbers_lie_over_the_robots_own(tmp_path: Path) -> None:
    path = tmp_path / "limits.toml"
    path.write_text("""
        margin = 0.1
        bandwidth = 2.0
        first = [0.0, 0.5, 0.0]
        [all]
        velocity = 1.5
        jerk = 40.0
        [joint.2]
        position = [-0.7, 0.8]
        velocity = 0.9
        [space]
        radius = 0.04
        table = -0.2
        [[space.obstacle]]
        name = "post"
        a = [0.5, 0.4, 0.0]
        b = [0.5, 0.4, 1.0]
        radius = 0.05
    """)
    limits = read_limits(path, ROBOT)
    lower, upper = ROBOT.limit("lower"), ROBOT.limit("upper")
    np.testing.assert_allclose(limits.lower, [0.9 * lower[0] + 0.1 * upper[0], -0.7, 0.9 * lower[2] + 0.1 * upper[2]])
    np.testing.assert_allclose(limits.velocity, [1.5, 0.9, 1.5])
    np.testing.assert_array_equal(limits.jerk, 40.0)
    np.testing.assert_array_equal(limits.acceleration, ROBOT.limit("acceleration"))
    np.testing.assert_array_equal(limits.start, [0.0, 0.5, 0.0])
    assert limits.bandwidth == 2.0 and limits.end is None
    assert limits.space is not None and {c.name for c in limits.space.capsules} >= {"post"}
    assert limits.space.planes[0].offset == -0.2 and {c.radius for c in limits.space.capsules} == {0.04, 0.05}


@pytest.mark.parametrize(("text", "message"), [
    ("speed = 1.0", ("unknown-setting", "'speed'")),
    ("[joint.elbow]\nvelocity = 1.0", ("unknown-joint", "'elbow'")),
    ("[[space.obstacle]]\nradius = 1.0", ("wrong-setting", "'obstacle'")),
    ("margin = ", ("not-toml", "limits.toml")),
    ("margin = 0.7", ("wrong-setting", "'margin'")),
])
def test_what_is_wrong_is_named_with_the_file(tmp_path: Path, text: str, message: tuple[str, ...]) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(text)
    with refused(DynidError, *message) as error:
        read_limits(path, ROBOT)
    assert str(path) in str(error.value)
