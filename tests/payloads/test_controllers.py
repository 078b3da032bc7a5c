"""What to type into controllers, with the numbers of makers' own documents."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.spatial.transform import Rotation

from dynid.errors import ModelError
from dynid.payloads.controllers import FORMATS, controller_entry, principal
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion, to_rpy

TURN = Rotation.from_euler("ZYX", [30.0, -20.0, 10.0], degrees=True).as_matrix()
MOMENTS = np.array([0.012, 0.02, 0.03])
BODY = ten.from_central(4.2, np.array([0.05, -0.01, 0.08]), TURN @ np.diag(MOMENTS) @ TURN.T)


def test_universal_robots_as_the_script_manual_has_it():
    """set_target_payload(m, cog, inertia): kg; m from the tool mount; [Ixx, Iyy, Izz, Ixy, Ixz, Iyz] about the centre
    of gravity, axes of the tool flange."""
    about = np.diag([0.001, 0.001, 0.0005])
    found = controller_entry(ten.from_central(1.5, np.array([0.0, 0.0, 0.05]), about), "ur")
    assert found.text == "set_target_payload(1.5, [0, 0, 0.05], [0.001, 0.001, 0.0005, 0, 0, 0])"
    values = controller_entry(BODY, "ur").values
    whole = TURN @ np.diag(MOMENTS) @ TURN.T
    np.testing.assert_allclose(values["inertia"], whole[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-12)
    np.testing.assert_allclose(values["cog"], [0.05, -0.01, 0.08])
    assert "sign" in found.unverified


def test_franka_as_set_load_has_it():
    """setLoad(load_mass, F_x_Cload, load_inertia): kg, m in the flange, nine numbers column by column."""
    values = controller_entry(BODY, "franka").values
    np.testing.assert_allclose(np.reshape(values["load_inertia"], (3, 3), order="F"),
                               TURN @ np.diag(MOMENTS) @ TURN.T, atol=1e-12)
    assert values["load_mass"] == pytest.approx(4.2)
    np.testing.assert_allclose(values["F_x_Cload"], [0.05, -0.01, 0.08])


def test_franka_with_the_mechanical_data_of_its_own_hand():
    """The handbook's numbers of the Hand at the flange: 0.73 kg, (-0.01, 0, 0.03) m, diag(0.001, 0.0025, 0.0017)
    kg m^2; from the frame between its fingertips, turned by -45 degrees and 0.1034 m away."""
    pose = np.eye(4)
    pose[:3, :3], pose[2, 3] = Rotation.from_euler("z", -45.0, degrees=True).as_matrix(), 0.1034
    flange = ten.from_central(0.73, np.array([-0.01, 0.0, 0.03]), np.diag([0.001, 0.0025, 0.0017]))
    found = controller_entry(ten.change_frame(np.linalg.inv(pose)) @ flange, "franka", pose)
    assert found.values["load_mass"] == pytest.approx(0.73)
    np.testing.assert_allclose(found.values["F_x_Cload"], [-0.01, 0.0, 0.03], atol=1e-12)
    np.testing.assert_allclose(found.values["load_inertia"], [0.001, 0, 0, 0, 0.0025, 0, 0, 0, 0.0017], atol=1e-12)
    assert found.text == ("robot.setLoad(0.73, {-0.01, 0, 0.03}, {0.001, 0, 0, 0, 0.0025, 0, 0, 0, 0.0017});")


def test_kuka_as_krl_has_it():
    """LOAD {M, CM {X, Y, Z, A, B, C}, J {X, Y, Z}}: mm, degrees, A about Z, B about the new Y, C about the new X."""
    found = controller_entry(BODY, "kuka")
    place, moments = found.values["CM"], found.values["J"]
    np.testing.assert_allclose([place[k] for k in "XYZ"], [50.0, -10.0, 80.0], atol=1e-9)
    axes = Rotation.from_euler("ZYX", [place["A"], place["B"], place["C"]], degrees=True).as_matrix()
    np.testing.assert_allclose(axes @ np.diag([moments[k] for k in "XYZ"]) @ axes.T,
                               TURN @ np.diag(MOMENTS) @ TURN.T, atol=1e-12)
    np.testing.assert_allclose([place[k] for k in "ABC"], [30.0, -20.0, 10.0], atol=1e-9)
    assert found.text.startswith("{M 4.2,CM {X 50,Y -10,Z 80,A 30,B -20,C 10},J {X 0.012,Y 0.02,Z 0.03}}")


def test_abb_as_the_rapid_manual_has_it():
    """The gripper of the manual's tooldata: 5 kg, centre of gravity (23, 0, 75) mm, axes as the wrist's."""
    about = np.diag([0.002, 0.003, 0.004])
    found = controller_entry(ten.from_central(5.0, np.array([0.023, 0.0, 0.075]), about), "abb")
    assert found.text == "[5,[23, 0, 75],[1, 0, 0, 0],0.002,0.003,0.004]"
    values = controller_entry(BODY, "abb").values
    axes = Rotation.from_quat(np.roll(values["aom"], -1)).as_matrix()
    np.testing.assert_allclose(axes @ np.diag([values["ix"], values["iy"], values["iz"]]) @ axes.T,
                               TURN @ np.diag(MOMENTS) @ TURN.T, atol=1e-12)


def test_a_load_in_another_frame_is_carried_to_the_flange():
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = TURN, [0.1, 0.2, 0.3]
    values = controller_entry(BODY, "ur", pose).values
    np.testing.assert_allclose(values["cog"], TURN @ [0.05, -0.01, 0.08] + [0.1, 0.2, 0.3], atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_rotations_agree_with_scipy(seed):
    turn = Rotation.random(random_state=seed).as_matrix()
    np.testing.assert_allclose(to_rpy(turn)[::-1], Rotation.from_matrix(turn).as_euler("ZYX"), atol=1e-9)
    own = quaternion(turn)
    other = np.roll(Rotation.from_matrix(turn).as_quat(), 1)
    np.testing.assert_allclose(own, other * np.sign(other[0]), atol=1e-9)
    moments, axes = principal(turn @ np.diag(MOMENTS) @ turn.T)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    np.testing.assert_allclose(axes @ np.diag(moments) @ axes.T, turn @ np.diag(MOMENTS) @ turn.T, atol=1e-12)


def test_every_format_names_its_frame_and_units():
    for maker in FORMATS:
        entry = controller_entry(BODY, maker)
        assert entry.frame
        assert set(entry.units) == set(entry.values)
    with refused(ModelError, "unknown-controller", "'fanuc'"):
        controller_entry(BODY, "fanuc")
    with refused(ModelError, "no-mass"):
        controller_entry(np.zeros(10), "ur")
