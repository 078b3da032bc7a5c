"""Motions of closed chains keep away from postures in which their branches meet."""

from __future__ import annotations

import numpy as np

from dynid.dynamics.following import closed_chain, closure_conditions
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits, LoopLimit
from dynid.excitation.trajectories.trajectory import quintic_between
from dynid.robot import Body, Frame, Joint, Robot
from dynid.robot.loops import Closure, closed
from dynid.robot.pose import translation


def parallelogram() -> Robot:
    tree = Robot("p", tuple(Joint(name, "revolute", parent, translation(x, 0.0, 0.0)) for name, parent, x in
                            (("crank", -1, 0.0), ("coupler", 0, 0.3), ("rocker", -1, 0.6))),
                 tuple(Body(name, np.array([0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0])) for name in "abc"),
                 gravity=np.array([0.0, -9.81, 0.0]))
    pin = Closure("pin", "axis", Frame("", 1, translation(0.6, 0.0, 0.0)), Frame("", 2, translation(0.3, 0.0, 0.0)))
    return closed(tree, [pin], ["coupler", "rocker"], {"crank": 1.2, "coupler": -1.2, "rocker": 1.2})


def test_condition_numbers_are_those_of_the_plane_equations() -> None:
    """Coupler end l (cos, sin)(0) from the crank's, rocker end from its own: rates by hand."""
    robot = parallelogram()
    q = np.linspace(0.3, 2.6, 9)[:, None]
    found = closure_conditions(robot, q)
    # In axes of the coupler, which stays parallel to the ground: it moves its end by 0.6 upwards, the rocker its own by
    # 0.3 across itself.
    wanted = [np.linalg.cond(np.array([[0.0, 0.3 * np.sin(a)], [0.6, -0.3 * np.cos(a)]])) for a in q[:, 0]]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert np.isinf(closure_conditions(robot, np.array([[-0.3]]))[0])


def test_near_postures_are_an_excess_with_the_slope_of_the_number() -> None:
    robot = parallelogram()
    limit = LoopLimit.from_robot(robot)
    assert limit is not None and LoopLimit.from_robot(Robot.builtin("arm3r")) is None
    q = np.array([[1.2], [0.5], [0.02]])
    zero, columns = np.zeros_like(q), np.zeros(3, dtype=np.int64)
    values = limit.values(q, zero, zero)[:, 0]
    np.testing.assert_allclose(values[0], -1.0, atol=1e-9)
    assert values[1] < 0.0 < values[2]
    slopes = limit.gradient(q, zero, zero, columns)[:, 0, 0]
    np.testing.assert_allclose(slopes[2], -1.0 / 0.02 / np.log(10.0), rtol=0.02)  # the number grows as 1 / sin


def test_a_motion_that_comes_too_near_is_found_out() -> None:
    robot = parallelogram()
    limits = Limits.from_robot(robot)
    assert limits.loops is not None
    begin = closed_chain(robot).begin[:1]
    still = np.zeros(1)
    good, bad = (quintic_between((begin, still, still), (np.array([end]), still, still), 2.0) for end in (0.6, 0.02))
    assert check_limits(good, limits).ok
    found = check_limits(bad, limits).violated
    assert [one.kind for one in found] == ["loops"] and "'pin'" in str(found[0])
    assert found[0].value > limits.loops.condition
