"""Where a chain of several loops does not close, the one at fault is named, with the joints that cannot follow."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid import dynamics
from dynid.dynamics.following import closed_chain, closes
from dynid.errors import NotPossibleError, RobotError
from dynid.robot import Body, Frame, Joint, Robot
from dynid.robot.loops import Closure, closed
from dynid.robot.pose import translation

INERTIA = np.array([0.01, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0])


def side_by_side(lengths: tuple[float, float], extra: tuple[Closure, ...] = ()) -> Robot:
    """Two four-bars that share nothing but the base, on a ground of 0.5 m with cranks of these lengths; a crank of
    0.2 m turns fully, one of 0.45 m cannot turn over."""
    joints, closures, posture = [], [], {}
    for k, (crank, name) in enumerate(zip(lengths, "ab", strict=True)):
        for part, parent, x in (("crank", -1, 0.0), ("coupler", 3 * k, crank), ("rocker", -1, 0.5)):
            joints.append(Joint(f"{part}-{name}", "revolute", parent, translation(x, 2.0 * k * (parent < 0), 0.0)))
        closures.append(Closure(f"pin-{name}", "axis", Frame("", 3 * k + 1, translation(0.5, 0.0, 0.0)),
                                Frame("", 3 * k + 2, translation(0.4, 0.0, 0.0))))
        posture |= {f"crank-{name}": 1.0, f"coupler-{name}": -1.0, f"rocker-{name}": 1.4}
    tree = Robot("two", tuple(joints), tuple(Body(joint.name.replace("-", " "), INERTIA) for joint in joints),
                 gravity=np.array([0.0, -9.81, 0.0]))
    return closed(tree, [*closures, *extra], ["coupler-a", "rocker-a", "coupler-b", "rocker-b"], posture)


@pytest.mark.parametrize(("lengths", "at_fault"), [((0.2, 0.45), "b"), ((0.45, 0.2), "a")])
def test_the_loop_that_cannot_close_is_named_alone(lengths: tuple[float, float], at_fault: str) -> None:
    robot = side_by_side(lengths)
    q = np.linspace([1.0, 1.0], [3.1, 3.1], 200)
    open_ = int(np.argmin(closes(robot, q)))
    assert 0 < open_ < 199
    with pytest.raises(NotPossibleError) as found:
        dynamics.inertia_matrix(robot, None, q)
    said = str(found.value)
    other = "ab"["ba".index(at_fault)]
    assert f"loop 'pin-{at_fault}'" in said and f"pin-{other}" not in said
    assert f"coupler-{at_fault}" in said and f"rocker-{at_fault}" in said and f"rocker-{other}" not in said
    assert f"in sample {open_}," in said and f"crank-a {q[open_, 0]:.4g}" in said


def test_a_repeated_closure_that_does_not_fit_is_the_one_named() -> None:
    """A third pin between coupler and rocker of the first chain, one that fits and one that would have to stretch."""
    fits = Closure("again", "axis", Frame("", 1, translation(0.5, 0.0, 0.1)), Frame("", 2, translation(0.4, 0.0, 0.1)))
    robot = side_by_side((0.2, 0.2), (fits,))
    assert sum(closed_chain(robot).repeated.values()) == 3 + 3 + 5
    np.testing.assert_allclose(dynamics.inertia_matrix(robot, None, np.ones((1, 2))),
                               dynamics.inertia_matrix(side_by_side((0.2, 0.2)), None, np.ones((1, 2))), atol=1e-12)
    stretched = Closure("stretched", "axis", Frame("", 1, translation(0.6, 0.0, 0.0)),
                        Frame("", 2, translation(0.4, 0.0, 0.0)))
    with refused(RobotError, "loop-not-closed", "two"):
        closed_chain(side_by_side((0.2, 0.2), (stretched,)))


def test_the_loop_that_leaves_no_freedom_or_too_much() -> None:
    clamp = Closure("clamp", "rigid", Frame("", 3, np.eye(4)), Frame("", -1, translation(0.0, 2.0, 0.0) @ turned(1.0)))
    with refused(RobotError, "loop-without-freedom", "clamp", "two"):
        closed_chain(side_by_side((0.2, 0.2), (clamp,)))
    robot = side_by_side((0.2, 0.2))
    assert robot.followers is not None and robot.followers.loops is not None
    rod = Closure("rod-b", "rod", *(getattr(robot.followers.loops.closures[1], end) for end in ("first", "second")),
                  length=0.01)
    loose = closed(robot.followers.tree, [robot.followers.loops.closures[0], rod], robot.followers.following,
                   dict(zip(robot.followers.tree.joint_names, robot.followers.loops.posture, strict=True)))
    with refused(RobotError, "loop-undetermined", "rod-b", "1", "coupler-b"):
        closed_chain(loose)


def test_a_posture_in_which_branches_meet_names_its_loop() -> None:
    """Two parallelograms, the second of which goes flat."""
    joints, closures, posture = [], [], {}
    for k, name in enumerate("ab"):
        for part, parent, x in (("crank", -1, 0.0), ("coupler", 3 * k, 0.3), ("rocker", -1, 0.6)):
            joints.append(Joint(f"{part}-{name}", "revolute", parent, translation(x, 2.0 * k * (parent < 0), 0.0)))
        closures.append(Closure(f"pin-{name}", "axis", Frame("", 3 * k + 1, translation(0.6, 0.0, 0.0)),
                                Frame("", 3 * k + 2, translation(0.3, 0.0, 0.0))))
        posture |= {f"crank-{name}": 1.2, f"coupler-{name}": -1.2, f"rocker-{name}": 1.2}
    tree = Robot("flat", tuple(joints), tuple(Body(joint.name.replace("-", " "), INERTIA) for joint in joints))
    robot = closed(tree, closures, ["coupler-a", "rocker-a", "coupler-b", "rocker-b"], posture)
    q = np.column_stack([np.linspace(1.2, 0.8, 300), np.linspace(1.2, -0.2, 300)])
    with refused(NotPossibleError, "loop-not-solvable", "pin-b", "flat", "coupler-b"):
        dynamics.inertia_matrix(robot, None, q)


def turned(angle: float) -> np.ndarray:
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return pose
