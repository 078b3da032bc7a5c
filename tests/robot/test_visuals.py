"""What a robot looks like, against Pinocchio's and MuJoCo's own readers."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

from dynid import Robot
from dynid.dynamics import forward_kinematics
from dynid.robot.robot import BASE
from dynid.robot.visual_shapes import Visual, visuals

URDF = """<robot name="drawn">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="base"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
  <link name="upper"><visual><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/>
    <geometry><box size="0.1 0.2 0.3"/></geometry><material name="red"/></visual></link>
  <link name="plate"><visual><origin xyz="0 0 0.05"/><geometry><cylinder radius="0.02" length="0.1"/></geometry>
    <material name="own"><color rgba="0 2 0 1"/></material></visual>
    <visual><geometry/></visual><visual><geometry><box size="1 2"/></geometry></visual></link>
  <link name="tool"><visual><geometry><mesh filename="package://a/meshes/tool.stl" scale="0.001 0.001 0.001"/>
  </geometry></visual></link>
  <joint name="one" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.4" rpy="0.1 0 0.2"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="held" type="fixed"><parent link="upper"/><child link="plate"/>
    <origin xyz="0.3 0 0" rpy="0 0.7 0"/></joint>
  <joint name="two" type="prismatic"><parent link="plate"/><child link="tool"/><origin xyz="0 0.1 0"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
</robot>"""

BARE = """<robot name="bare"><link name="base"/>
  <link name="arm"><collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
    <collision><geometry><cylinder radius="0.1" length="0.3"/></geometry></collision></link>
  <joint name="one" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""

MJCF = """<mujoco model="drawn"><compiler angle="radian" meshdir="shapes"/>
  <default><geom rgba="0.1 0.2 0.3 1"/><default class="arm"><geom type="capsule" size="0.03 0.2"/></default></default>
  <asset><material name="blue" rgba="0 0 1 1"/></asset>
  <worldbody><geom type="plane" size="1 1 0.1"/>
    <body name="first" pos="0 0 0.5" euler="0.1 0.2 0.3" childclass="arm">
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <joint name="a" axis="0 1 0"/>
      <geom pos="0.1 0 0" quat="0.9 0.1 0.3 0.2"/>
      <frame pos="0.2 0 0" euler="0.5 0 0"><geom type="box" size="0.1 0.2 0.3" pos="0 0 0.1"/></frame>
      <geom type="cylinder" fromto="0 0 0 0.3 0.1 0.2" size="0.04"/>
      <geom type="sphere" size="0.2" group="3"/>
      <body pos="0.4 0 0"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <joint name="b" type="slide" axis="1 0 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" material="blue" axisangle="0 0 1 0.4"/>
        <body name="held" pos="0 0.1 0" zaxis="1 1 0">
          <geom type="box" fromto="0 0 0 0 0 0.4" size="0.05" mass="0"/></body>
      </body></body></worldbody></mujoco>"""


def placed(robot: Robot, found: Visual, q: np.ndarray) -> np.ndarray:
    """The pose of a visual in the base."""
    return found.pose if found.body == BASE else forward_kinematics(robot, q)[found.body] @ found.pose


def test_visuals_of_a_urdf_stand_where_pinocchio_puts_them(tmp_path: Path) -> None:
    robot = Robot.from_urdf(URDF)
    file = tmp_path / "drawn.urdf"
    drawable = URDF.replace('<mesh filename="package://a/meshes/tool.stl" scale="0.001 0.001 0.001"/>',
                            '<sphere radius="0.3"/>').replace("<visual><geometry/></visual>", "").replace(
        '<visual><geometry><box size="1 2"/></geometry></visual>', "")
    file.write_text(drawable)
    model = pin.buildModelFromUrdf(str(file))
    shapes = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.VISUAL)
    q = np.array([0.4, -0.3])
    data, drawn = model.createData(), shapes.createData()
    pin.updateGeometryPlacements(model, data, shapes, drawn, q)
    found = visuals(robot)
    assert [one.link for one in found] == ["base", "upper", "plate", "tool"]
    for one in found:
        (index,) = [i for i, shape in enumerate(shapes.geometryObjects) if shape.name.startswith(one.link)]
        np.testing.assert_allclose(placed(robot, one, q), drawn.oMg[index].homogeneous, atol=1e-12)
    assert found[1].kind == "box" and found[1].size == (0.1, 0.2, 0.3) and found[1].color == (1.0, 0.0, 0.0, 0.5)
    assert found[2].kind == "cylinder" and found[2].size == (0.02, 0.1) and found[2].color == (0.0, 1.0, 0.0, 1.0)
    assert found[3].mesh == "package://a/meshes/tool.stl" and found[3].size == (0.001, 0.001, 0.001)


def test_visuals_of_an_mjcf_stand_where_mujoco_puts_them(tmp_path: Path) -> None:
    file = tmp_path / "drawn.xml"
    file.write_text(MJCF)
    robot = Robot.load(file)
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    data.qpos[:] = q = np.array([0.7, -0.2])
    mujoco.mj_kinematics(model, data)
    shown = [i for i in range(model.ngeom) if model.geom_group[i] < 3
             and model.geom_type[i] != mujoco.mjtGeom.mjGEOM_PLANE]
    found = visuals(robot, file)
    assert [one.kind for one in found] == ["capsule", "box", "cylinder", "ellipsoid", "box"]
    for one, i in zip(found, shown, strict=True):
        pose = placed(robot, one, q)
        np.testing.assert_allclose(pose[:3, 3], data.geom_xpos[i], atol=1e-12)
        np.testing.assert_allclose(pose[:3, :3], data.geom_xmat[i].reshape(3, 3), atol=1e-7)
        half = {"capsule": lambda s: [s[0], s[1] / 2], "cylinder": lambda s: [s[0], s[1] / 2],
                "box": lambda s: [x / 2 for x in s], "ellipsoid": list}[one.kind](one.size)
        np.testing.assert_allclose(half, model.geom_size[i][:len(half)], atol=1e-12)
    np.testing.assert_allclose(found[3].color, model.geom_rgba[shown[3]], atol=1e-7)


def test_a_mesh_of_an_mjcf_has_its_folder_scale_and_frame(tmp_path: Path) -> None:
    file = tmp_path / "meshed.xml"
    file.write_text(MJCF.replace('<asset>', '<asset><mesh file="links/arm.stl" scale="2 2 2" refpos="0.1 0 0"/>')
                    .replace('<geom pos="0.1 0 0" quat="0.9 0.1 0.3 0.2"/>',
                             '<geom type="mesh" mesh="arm" pos="0 0 1"/>'))
    found = visuals(Robot.load(file), file)[0]
    assert found.kind == "mesh" and found.mesh == "shapes/links/arm.stl" and found.size == (2.0, 2.0, 2.0)
    np.testing.assert_allclose(found.pose[:3, 3], [-0.1, 0.0, 1.0])


def test_a_robot_without_visuals_is_drawn_by_its_collision_shapes() -> None:
    robot = Robot.from_urdf(BARE)
    assert [(one.body, one.kind) for one in visuals(robot)] == [(0, "box"), (0, "cylinder")]
    assert visuals(Robot.builtin("arm3r")) == ()


def test_links_of_closed_chains_and_of_locked_joints_are_drawn_on_the_bodies_of_the_tree() -> None:
    robot = Robot.from_urdf(URDF).lock({"two": 0.25})
    tool = visuals(robot)[-1]
    np.testing.assert_allclose(placed(robot, tool, np.array([0.3])),
                               forward_kinematics(Robot.from_urdf(URDF), np.array([0.3, 0.25]))[1], atol=1e-12)
    mimic = Robot.from_urdf(URDF.replace('<axis xyz="1 0 0"/>', '<axis xyz="1 0 0"/><mimic joint="one"/>'))
    assert mimic.dof == 1 and visuals(mimic)[-1].body == 1
