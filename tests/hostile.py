"""Names that try to escape from the comment, string or element that contains them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dynid.robot import Frame, Robot

PARTS = ('"', '"""', "'", "'''", "*/", "/*", "*\\\n/", "*??/\n/", "//", "\\", "\\\n", "\n", "\r", "\r\n", "\x85",
         "\u2028", "\u2029", "\x00", "\x0b", "\x0c", "\x1b[31m", "\x7f", "\u202e", "\u2066", "{", "}", "{0}", "{name}",
         "%", "%s", "%{x}", "$", "$(run)", "#", "#=", "=#", "<script>", "</script>", "<!--", "-->", "]]>", "&amp;",
         "&#10;", "${x}", "\\end{align*}", "\\input{x}", "\\u000a", "\\x22", "joint", " ", ",", ";", "int evil;",
         "import os", "\u00e9", "\U0001f600", '"""+str(open("PWNED","w"))+"""')
EXAMPLES = ('"""+str(open("PWNED","w"))+"""', "*\\\n/ int evil; /*", "x\nrun(`touch PWNED`)", '"\\', "\\", "*/",
            "\u2028evil", "</script><script>evil()</script>", "a??/")


def names(count: int) -> st.SearchStrategy[tuple[str, ...]]:
    """Different hostile names; a letter at the end makes them usable as identifiers."""
    one = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join)
    return st.tuples(*(one.map(lambda text, k=k: f"{text}n{k}") for k in range(count)))


def renamed(robot: Robot, given: tuple[str, ...]) -> Robot:
    """The robot with other names of itself, its base, its first joint and body, and a frame on its last body."""
    robot_name, base, joint, body, frame = given
    joints = (replace(robot.joints[0], name=joint), *robot.joints[1:])
    bodies = (replace(robot.bodies[0], name=body), *robot.bodies[1:])
    last = robot.dof - 1
    return replace(robot, name=robot_name, base=base, joints=joints, bodies=bodies,
                   frames=(Frame(frame, last, robot.joints[last].after),))


HARMLESS = ("robot", "ground", "joint0", "body0", "frame0")
