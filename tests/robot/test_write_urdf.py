"""Inertias written into URDFs: the rest of the file to the byte, and the torques Pinocchio and MuJoCo make of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from robots import exact_text, random_inertia

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError, RobotError
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten
from dynid.robot.urdf import read_urdf
from dynid.robot.write_urdf import urdf_with_inertias

LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="4"/>'
FILES = ["kuka_lwr4/kuka_lwr4.urdf", "kuka_lwr4/kuka_lwr4_centroepiaggio.urdf", "kuka_lwr4/kuka_lwr4_cogimon.urdf",
         "kuka_lwr4/kuka_lwr4_gaz.urdf", "kuka_lwr4/kuka_lwr4_identified.urdf", "models/kinova_jaco.urdf",
         "models/ur10_robot.urdf", "models/ur5_robot.urdf", "models/xarm7.urdf", "panda/panda_arm.urdf",
         "tx40/tx40_mdh_modified.urdf"]


# -- what the simulators make of a text ------------------------------------------------------------
def pinocchio_torques(text: str, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    model = pin.buildModelFromXML(re.sub(r"<dynamics[^>]*>", "", text))  # it refuses negative friction
    model.gravity.linear = robot.gravity
    data, places = model.createData(), [model.joints[model.getJointId(name)] for name in robot.joint_names]
    speeds = [joint.idx_v for joint in places]
    found = []
    for angles, v, a in zip(q, dq, ddq, strict=True):
        configuration, velocity, acceleration = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        for joint, angle in zip(places, angles, strict=True):
            configuration[joint.idx_q:joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle),
                                                                                               np.sin(angle)]
        velocity[speeds], acceleration[speeds] = v, a
        found.append(pin.rnea(model, data, configuration, velocity, acceleration)[speeds])
    return np.array(found)


def mujoco_model(text: str) -> Any:
    """MuJoCo's reading with its inertia checks on. Meshes are not at hand; it also refuses a joint with two origins,
    which one of the files has."""
    text = re.sub(r"<(visual|collision)\b[^>]*>.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r"(<origin[^>]*>)\s*<origin[^>]*>", r"\1", text)
    return mujoco.MjModel.from_xml_string(re.sub(r"<\?xml[^>]*>", "", text))


def mujoco_torques(model: Any, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    """Without limits and dry friction, which MuJoCo treats as soft constraints."""
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    model.opt.gravity[:] = robot.gravity
    data = mujoco.MjData(model)
    positions = [model.joint(name).qposadr[0] for name in robot.joint_names]
    speeds = [model.joint(name).dofadr[0] for name in robot.joint_names]
    found = []
    for angles, v, a in zip(q, dq, ddq, strict=True):
        data.qpos[positions], data.qvel[speeds], data.qacc[speeds] = angles, v, a
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse[speeds].copy())
    return np.array(found)


def assert_written(text: str, robot: Robot, inertias: Array, damping: Array | float = 0.0) -> None:
    """The file has these numbers, link by link, and both simulators the torques of them."""
    again = read_urdf(text)
    size = np.abs(inertias[:, [0, 3, 5]]).max(axis=1)[:, None] + inertias[:, 9:]
    assert np.all(np.abs(again.inertias - inertias) <= 1e-12 * size)
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 10, robot.dof))
    torques = dynamics.inverse_dynamics(robot, inertias, q, dq, ddq)
    text = exact_text(text)  # the file keeps its printed angles, which both take as they stand
    assert np.abs(pinocchio_torques(text, robot, q, dq, ddq) - torques).max() < 1e-9
    assert np.abs(mujoco_torques(mujoco_model(text), robot, q, dq, ddq) - torques - damping * dq).max() < 1e-9


# -- files -----------------------------------------------------------------------------------------
def masked(text: str) -> str:
    """A text with the numbers of inertias and friction blacked out."""
    text = re.sub(r'\b(ixx|ixy|ixz|iyy|iyz|izz|value|damping|friction)\s*=\s*"[^"]*"', r"\1=", text)
    return re.sub(r"<inertial>.*?</inertial>", lambda m: re.sub(r'(xyz|rpy)\s*=\s*"[^"]*"', r"\1=", m[0]), text,
                  flags=re.DOTALL)


@pytest.mark.parametrize("file", FILES)
def test_files(data: Callable[..., Path], file: str) -> None:
    path = data(*file.split("/"))
    robot, notes = Robot.from_urdf(path), []
    rng = np.random.default_rng(3)
    inertias = np.array([random_inertia(rng) for _ in robot.joints])
    damping = rng.uniform(0.1, 1.0, robot.dof)
    assert robot.text == path.read_bytes()
    made = urdf_with_inertias(path.read_bytes(), robot, inertias,
                              {f"Fv{j + 1}": x for j, x in enumerate(damping)}, add_note=notes.append)
    text, before = made.decode(), path.read_bytes().decode()
    assert_written(text, robot, inertias, damping)
    # Links fixed to a moving one lose their inertia, and that is said.
    lost = [part.link for body in robot.bodies for part in body.parts[1:] if part.inertia is not None]
    assert len(re.findall("<inertial", text)) == len(re.findall("<inertial", before)) - len(lost)
    assert all(any(link in note for note in notes) for link in lost) and bool(lost) == bool(notes)
    for link in lost:
        before = re.sub(rf'(<link name="{link}">(?:(?!</link>).)*?)<inertial>.*?</inertial>', r"\1", before,
                        flags=re.DOTALL)
    assert masked(text) == masked(before)
    assert urdf_with_inertias(made, robot, inertias) == made


def test_a_files_own_inertias_go_out_as_they_came_in(data: Callable[..., Path]) -> None:
    robot = Robot.from_urdf(data("models", "ur10_robot.urdf"))
    assert_written(urdf_with_inertias(data("models", "ur10_robot.urdf").read_text(), robot, robot.inertias), robot,
                   robot.inertias)


# -- random trees ----------------------------------------------------------------------------------
def random_urdf(rng: np.random.Generator) -> tuple[str, list[str]]:
    """A tree with every kind of joint and everything a writer can stumble over between the tags; and link i alone."""
    def choice(*texts: str) -> str:
        return str(rng.choice(texts))

    def vector(scale: float = 1.0) -> str:
        return " ".join(f"{x:.6g}" for x in scale * rng.uniform(-1, 1, 3))

    quote, newline, indent = choice('"', "'"), choice("\n", "\r\n", ""), choice("  ", "\t", "")
    count = int(rng.integers(3, 9))

    def link(i: int) -> str:
        if rng.random() < 0.3:
            return choice(f'<link name="l{i}"/>', f'<link name="l{i}" />', f"<link  name = 'l{i}'></link>",
                          f'<link name="l{i}"><!-- <inertial> to come --></link>')
        origin = choice("", f"<origin xyz='{vector()}'/>", f'<origin rpy="{vector(3)}" xyz="{vector()}" />',
                        f'<origin rpy="{vector(3)}"></origin>', "<origin/>")
        parts = [origin, f'<mass note="a &gt; b" value="{rng.uniform(0.1, 5):.6g}"/>',
                 '<inertia ixx="0.3" ixy="0.01" ixz="0" iyy="0.3" iyz="0" izz="0.3" />', "<!-- by <inertia> -->"]
        order = rng.permutation(4)
        inside = (newline + 3 * indent).join(parts[k] for k in order)
        extra = choice("", "<visual><geometry><box size='1 1 1'/></geometry></visual>", "<gravity>true</gravity>")
        return (f"<link name={quote}l{i}{quote} a='>/>'>{newline}{2 * indent}{extra}<inertial>{inside}"
                f"{newline}</inertial >{newline}{indent}</link>")

    lines = [link(i) for i in range(count)]
    for i in range(1, count):
        kind = "revolute" if i == 1 else choice("revolute", "continuous", "prismatic", "fixed")
        inside = (newline + 2 * indent).join([
            f'<origin xyz="{vector()}" rpy="{vector(3)}"/>', f'<parent link="l{rng.integers(0, i)}"/>',
            f'<child link="l{i}"/>', f'<axis xyz="{vector()}"/>', LIMIT,
            choice("", "<dynamics/>", '<dynamics friction="0.5"/>', "<dynamics damping='2' friction='1' spring='0'/>")])
        lines.append(f'<joint name="j{i}" type="{kind}">{newline}{2 * indent}{inside}</joint>')
    lines.append('<transmission name="t"><joint name="j1"/><link name="l1"/></transmission>')
    lines.append("<!-- end & done: <link name='l1'/> -->")
    body = "".join(newline + indent + line for line in lines)
    head = choice("", f"<?xml version={quote}1.0{quote}?>{newline}")
    return f'{head}<robot name="tree">{body}</robot>', lines[:count]


@pytest.mark.parametrize("seed", range(25))
def test_random_trees(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, links = random_urdf(rng)
    robot = read_urdf(text)
    inertias = np.array([random_inertia(rng) for _ in robot.joints])
    damping = rng.uniform(0.1, 1.0, robot.dof)
    made = urdf_with_inertias(text, robot, inertias, {f"Fv{j + 1}": x for j, x in enumerate(damping)})
    assert_written(made, robot, inertias, damping)
    assert read_urdf(made).values.keys() >= {f"Fv{j + 1}" for j in range(robot.dof)}

    # All that is neither inertia nor friction: every element and attribute in order.
    def outline(source: str) -> list[tuple[str, dict[str, str]]]:
        root = ElementTree.fromstring(source)
        for parent in root.iter():
            for child in [c for c in parent if c.tag in ("inertial", "dynamics")]:
                parent.remove(child)
        return [(one.tag, one.attrib) for one in root.iter()]

    assert outline(made) == outline(text)
    for pattern in (r"<visual.*?</visual>", r"<gravity.*?</gravity>", r"<parent[^>]*>", r"<limit[^>]*>",
                    r"<transmission.*", r"a='>/>'"):
        assert re.findall(pattern, made) == re.findall(pattern, text)
    # What is fixed to the base is not touched at all.
    assert all(link in made for i, link in enumerate(links) if robot.frame(f"l{i}").body == BASE)


# -- where the numbers go --------------------------------------------------------------------------
HEAD = '<robot name="r"><link name="base"/>'
JOINT = ('<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>'
         '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>')
BODY = ten.from_central(2.0, [0.1, 0.0, -0.25], np.diag([0.125, 0.25, 0.25]))[None]


def write(text: str, inertias: Array = BODY, values: dict[str, float] | None = None, **options: Any) -> str:
    return urdf_with_inertias(text, read_urdf(text), inertias, values, **options)


def test_a_new_inertial_takes_the_indentation_of_its_link() -> None:
    text = f'{HEAD}\n\t<link name="arm"/>\n{JOINT}</robot>'
    assert write(text) == text.replace('<link name="arm"/>', "\n".join([
        '<link name="arm">', "\t\t<inertial>", '\t\t\t<origin xyz="0.1 0.0 -0.25"/>', '\t\t\t<mass value="2.0"/>',
        '\t\t\t<inertia ixx="0.125" ixy="0.0" ixz="0.0" iyy="0.25" iyz="0.0" izz="0.25"/>', "\t\t</inertial>",
        "\t</link>"]))


def test_only_numbers_change_inside_an_inertial() -> None:
    text = (f"{HEAD}<link name='arm'><inertial>\r\n <!-- scale: 2 kg --><mass  value = '7' unit='kg'/>\r\n"
            "<inertia izz='1' ixx='1' ixy='0' ixz='0' iyy='1' iyz='0'/><origin rpy='0 0 1' frame='x'/></inertial>"
            f"</link>{JOINT}</robot>")
    made = write(text)
    assert made == (f"{HEAD}<link name='arm'><inertial>\r\n <!-- scale: 2 kg --><mass  value = '2.0' unit='kg'/>\r\n"
                    "<inertia izz='0.25' ixx='0.125' ixy='0.0' ixz='0.0' iyy='0.25' iyz='0.0'/>"
                    "<origin rpy='0 0 0' frame='x' xyz=\"0.1 0.0 -0.25\"/></inertial>"
                    f"</link>{JOINT}</robot>")
    assert write(made) == made


@pytest.mark.parametrize(("encoding", "declared"), [("utf-8", "utf-8"), ("utf-8-sig", "utf-8"), ("utf-8", None),
                                                    ("latin-1", "iso-8859-1"), ("utf-16", "utf-16"),
                                                    ("cp1252", "windows-1252")])
def test_encodings_are_kept(tmp_path: Path, encoding: str, declared: str | None) -> None:
    head = "" if declared is None else f'<?xml version="1.0" encoding="{declared}"?>\n'
    text = f'{head}<!-- Gelenk für den Arm, 5 µm -->{HEAD}<link name="arm"/>{JOINT}</robot>\n'
    (tmp_path / "robot.urdf").write_bytes(text.encode(encoding))
    robot = Robot.from_urdf(tmp_path / "robot.urdf")
    made = urdf_with_inertias(robot.text, robot, BODY)
    assert isinstance(made, bytes) and made.decode(encoding) == write(text)
    (tmp_path / "made.urdf").write_bytes(made)
    np.testing.assert_allclose(Robot.from_urdf(tmp_path / "made.urdf").inertias, BODY, rtol=1e-15)


def test_white_space_before_text_is_kept() -> None:
    assert write(f'\n  {HEAD}<link name="arm"/>{JOINT}</robot>').startswith("\n  <robot")


def test_friction_goes_to_the_joint() -> None:
    text = f'{HEAD}<link name="arm"/>{JOINT}</robot>'
    values = {"Fv1": 0.5, "Fc1": 0.25, "Fo1": 1.0}
    assert '<dynamics damping="0.5" friction="0.25"/></joint>' in write(text, values=values)
    assert "<dynamics" not in write(text, values={"Fv1": 0.0})
    with_one = text.replace("</joint>", "<dynamics friction='3' damping='2'/></joint>")
    assert "<dynamics friction='3' damping='0.0'/>" in write(with_one, values={"Fv1": 0.0})
    notes: list[str] = []
    assert "<dynamics friction='3' damping='0.5'/>" in write(with_one, values={"Fv1": 0.5, "Fc1": -0.1},
                                                             add_note=notes.append)
    assert notes == ["Fc1 of joint 'j' is -0.1: negative friction is not written"]


# -- what is refused -------------------------------------------------------------------------------
@pytest.mark.parametrize(("mass", "moments", "reason"), [
    (-2.0, (0.1, 0.2, 0.25), "negative mass"), (0.0, (0.0, 0.0, 0.0), "no mass"),
    (2.0, (-0.1, 0.2, 0.25), "positive definite"), (2.0, (0.1, 0.2, 0.35), "triangle")])
def test_bodies_that_cannot_exist_are_refused(mass: float, moments: tuple[float, ...], reason: str) -> None:
    text = f'{HEAD}<link name="arm"/>{JOINT}</robot>'
    numbers = ten.from_central(mass, [0.1, 0.2, 0.0], np.diag(moments))[None]
    with refused(NotPossibleError, "not-consistent", "'arm'") as problem:
        write(text, numbers)
    assert reason in str(problem.value)
    np.testing.assert_allclose(read_urdf(write(text, numbers, unchecked=True)).inertias, numbers, atol=1e-15)


def test_other_robots_and_wrong_shapes_are_refused() -> None:
    text = f'{HEAD}<link name="arm"/>{JOINT}</robot>'
    for other, reason in ((text.replace('"j"', '"k"'), ("other-robot", "joints j", "k")),
                          (text.replace('"arm"', '"leg"'), ("other-robot", "links arm", "leg")),
                          (text.replace("<axis", '<origin xyz="0 0 1"/><axis'), ("other-robot", "'j'")),
                          (text.replace("revolute", "prismatic"), ("other-robot", "'j'"))):
        with refused(RobotError, *reason):
            urdf_with_inertias(text, read_urdf(other), BODY)
    with refused(ModelError, "bad-inertias", "1", "10"):
        write(text, BODY[:, :9])
    with refused(ModelError, "bad-inertias", "'r'"):
        write(text, BODY * np.nan)
    with refused(RobotError, "no-mass", "'arm'"):
        write(text, np.eye(10)[6:7], unchecked=True)


def test_hostile_text_is_refused() -> None:
    text = f'{HEAD}<link name="arm"/>{JOINT}</robot>'
    with refused(RobotError, "xml-with-entities"):
        urdf_with_inertias(f'<!DOCTYPE r [<!ENTITY a "b">]>{text}', read_urdf(text), BODY)
    with refused(RobotError, "bad-xml"):
        urdf_with_inertias(text[:-3], read_urdf(text), BODY)
    with refused(RobotError, "bad-encoding"):
        urdf_with_inertias(text.encode() + b"\xff", read_urdf(text), BODY)
