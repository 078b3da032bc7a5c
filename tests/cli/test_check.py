"""`dynid check` on robots and results: the reasons by link, how far, the proof, and the exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.estimate.simulators.exports import export
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.results import load, save


def link(name, mass, com, moments, box="0.4 0.4 0.4"):
    ixx, iyy, izz = moments
    return (f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass}"/>'
            f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/></inertial>'
            f'<collision><geometry><box size="{box}"/></geometry></collision></link>')


def urdf(*links, dynamics=""):
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><origin xyz="0.1 0 0.3" rpy="1.2 0 0.3"/><parent link="l{i - 1}"/>'
        f'<child link="l{i}"/><axis xyz="0 0 1"/>{dynamics}</joint>' for i in range(1, len(links) + 1))
    return f'<robot name="two"><link name="l0"/>{"".join(links)}{joints}</robot>'


GOOD = urdf(link("l1", 3.0, (0.05, 0.02, 0.1), (0.05, 0.06, 0.04)), link("l2", 2.0, (0, 0.1, 0), (0.03, 0.04, 0.05)))


def check(dynid, *arguments):
    shown = dynid("check", *arguments, "--json")
    found = json.loads(shown.out)
    assert (shown.code == 0) is found["consistent"] and shown.err == ""
    return found


# -- robots ------------------------------------------------------------------------------------------
@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "two.urdf").write_text(text)
        return tmp_path / "two.urdf"
    return write


def test_a_good_urdf(dynid, file):
    found = check(dynid, file(GOOD))
    assert found["consistent"] and found["problems"] == [] and found["certificate"] is None
    shown = dynid("check", file(GOOD))
    assert (shown.code, shown.out) == (0, "two: every body is physically consistent.\n")


@pytest.mark.parametrize(("mass", "com", "moments", "kind", "violation"), [
    (-2.0, (0, 0, 0), (0.03, 0.04, 0.05), "mass", 2.0),
    (2.0, (0, 0, 0), (-0.01, 0.04, 0.025), "not-positive-definite", 0.01),
    (2.0, (0, 0, 0), (0.01, 0.02, 0.05), "triangle", 0.02),
    (2.0, (0, 0, 0.5), (0.03, 0.04, 0.05), "centre-of-mass", 0.3)])
def test_each_kind_is_named_with_its_link_and_how_far(dynid, file, mass, com, moments, kind, violation):
    path = file(urdf(link("l1", 3.0, (0.05, 0.02, 0.1), (0.05, 0.06, 0.04)), link("l2", mass, com, moments)))
    found = check(dynid, path)
    first = found["problems"][0]
    assert not found["consistent"] and (first["link"], first["kind"]) == ("l2", kind)
    assert first["violation"] == pytest.approx(violation) and "'l2'" in first["message"]
    shown = dynid("check", path)
    assert shown.code == 1 and "l2" in shown.out and "Error" not in shown.err


def test_collision_shapes_can_be_left_out_of_it(dynid, file):
    path = file(urdf(link("l1", 2.0, (0, 0, 0.5), (0.03, 0.04, 0.05))))
    assert "not at the given positions" in dynid("check", path).out
    found = check(dynid, path, "--no-shapes")
    assert found["consistent"] and "0.3 m outside" in found["remarks"][0]


def test_missing_inertia_and_negative_friction(dynid, file):
    found = check(dynid, file(urdf('<link name="l1"/>', dynamics='<dynamics damping="0.5" friction="-0.25"/>')))
    assert [(p["link"], p["kind"], p["violation"]) for p in found["problems"]] == [("l1", "missing", 0.0),
                                                                                  ("Fc1", "positive", 0.25)]


def test_built_in_robots(dynid):
    assert check(dynid, "arm3r")["consistent"]
    assert {p["link"] for p in check(dynid, "puma560")["problems"]} >= {"link1"}


def test_what_is_not_there_is_a_wrong_call(dynid, tmp_path):
    for what in (tmp_path, tmp_path / "no.urdf", "arm3"):
        shown = dynid("check", what)
        assert (shown.code, shown.out) == (2, "") and shown.err.startswith("Error: ") and shown.err.count("\n") == 1


# -- results -----------------------------------------------------------------------------------------
def result(folder, text, method, values=None, seconds=10.0, still=(), add_note=lambda note: None, **options):
    """A run on a simulated log of the robot in `text`; values: other truths than the file's."""
    robot = Robot.from_urdf(text)
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    truth = {one.name: one.nominal if one.nominal is not None else 0.5 for one in model.parameters} | (values or {})
    rng = np.random.default_rng(0)
    t = np.arange(int(seconds * 200)) / 200
    w = 2 * np.pi * np.array([0.2, 0.5, 0.8])
    angle = w * t[:, None, None] + rng.uniform(0, 6, (2, 3))
    q, dq, ddq = (f.sum(axis=2) for f in (np.sin(angle), w * np.cos(angle), -w ** 2 * np.sin(angle)))
    for j in still:
        q[:, j], dq[:, j], ddq[:, j] = 0.0, 0.0, 0.0
    tau = model.inverse_dynamics(truth, q, dq, ddq) + 0.01 * rng.normal(size=q.shape)
    folder.mkdir()
    (folder / "two.urdf").write_text(text)
    write_npz(Recording(t, q, tau, joints=robot.joint_names), folder / "log.npz")
    settings = RunSettings(robot=str(folder / "two.urdf"), logs=(str(folder / "log.npz"),), method=method,
                           options=options, model=ModelSettings(friction=("viscous",)), prepare={"cutoff": 15.0})
    return save(run(settings), folder / "out", report=False, add_note=add_note)


TRUE_SECOND = (2.0, (0, 0.1, 0), (0.03, 0.04, 0.05))
OTHER_UNITS = {  # how the second link is written: its mass, centre of mass, moments
    "g mm^2": (2.0, (0, 0.1, 0), (3e7, 4e7, 5e7)), "kg mm^2": (2.0, (0, 0.1, 0), (3e4, 4e4, 5e4)),
    "kg cm^2": (2.0, (0, 0.1, 0), (300.0, 400.0, 500.0)), "g cm^2": (2.0, (0, 0.1, 0), (3e5, 4e5, 5e5)),
    "mm": (2.0, (0, 100.0, 0), (0.03, 0.04, 0.05)), "g": (4000.0, (0, 0.1, 0), (0.03, 0.04, 0.05))}
FIRST = link("l1", 3.0, (0.05, 0.02, 0.1), (0.05, 0.06, 0.04))


@pytest.mark.parametrize("unit", OTHER_UNITS)
def test_numbers_in_another_unit_are_named_with_the_unit(dynid, file, unit):
    """In a robot file as such; their sizes do not fit its reach of 0.63 m."""
    path = file(urdf(FIRST, link("l2", *OTHER_UNITS[unit])))
    sizes = [one for one in check(dynid, path, "--no-shapes")["problems"] if one["kind"] == "size"]
    assert [one["link"] for one in sizes] == ["l2"]
    units = sizes[0]["message"].partition(": it is probably in ")[2].split(" or ")
    assert unit in units[:2] and (unit == units[0] or "c" in unit)  # a hollow link in kg cm^2 is a dense one in kg mm^2
    assert "probably in" in dynid("inspect", path).out.replace("\n", " ")


@pytest.mark.parametrize("second", [OTHER_UNITS["g mm^2"], OTHER_UNITS["mm"], (-2.0, *TRUE_SECOND[1:])])
def test_absurd_numbers_of_a_robot_file_are_not_written(dynid, tmp_path, second):
    """The run names them and fills the links from the data alone. A result that has them is not exported."""
    folder = tmp_path / "run"
    result(folder, urdf(FIRST, link("l2", *TRUE_SECOND)), "pc-wls")
    wrong = folder / "wrong.urdf"
    wrong.write_text(urdf(FIRST, link("l2", *second)))
    out = json.loads(dynid("identify", wrong, folder / "log.npz", "--method", "pc-wls", "--friction", "viscous", "-o",
                           folder / "again", "--json").out)
    [said] = [one for one in out["verdict"]["findings"] if one["code"] == "file-inertia"]
    assert said["severity"] == "warning" and "'l2'" in said["text"] and "None of its inertias is used" in said["text"]
    written = Robot.load(folder / "again" / "robot.urdf")
    mass, com, central = ten.to_central(written.inertias)
    assert np.all((mass > 0) & (mass < 20.0)) and np.abs(com).max() < 1.0 and np.abs(central).max() < 5.0
    assert check(dynid, folder / "again", "--no-shapes")["consistent"]


def test_result_with_absurd_links_is_not_exported(dynid, tmp_path):
    result(tmp_path / "run", GOOD, "pc-wls")
    estimate, _ = load(tmp_path / "run" / "out")
    theta = estimate.theta.copy()
    theta[estimate.model.parameters.bodies["l2"][:6]] *= 1e6
    with refused(NotPossibleError, "absurd-inertias"):
        export(replace(estimate, theta=theta), tmp_path / "robot.xml", "mjcf")
    assert not (tmp_path / "robot.xml").exists()
    assert export(estimate, tmp_path / "robot.xml", "mjcf").paths


def test_link_that_cannot_exist_is_a_remark_of_a_run(dynid, tmp_path):
    result(tmp_path / "run", GOOD, "wls")
    wrong = tmp_path / "run" / "wrong.urdf"
    wrong.write_text(urdf(FIRST, link("l2", 2.0, (0, 0.1, 0), (0.01, 0.02, 0.05))))
    out = json.loads(dynid("identify", wrong, tmp_path / "run" / "log.npz", "--method", "wls", "--friction", "viscous",
                           "--json").out)
    [said] = [one for one in out["verdict"]["findings"] if one["code"] == "file-inertia"]
    assert said["severity"] == "info" and "triangle inequality" in said["text"]


IMPOSSIBLE = {"ZZ2": -0.05, "Fv1": -0.3}  # no link turns about its own axis with less than no inertia


def test_base_parameters_that_a_robot_has(dynid, tmp_path):
    assert "robot" in result(tmp_path / "run", GOOD, "wls")  # completed by the nearest consistent robot
    found = check(dynid, tmp_path / "run" / "out")
    assert found["consistent"] and found["base_possible"] and found["base_distance"] < 1e-6
    assert dynid("check", tmp_path / "run" / "out" / "parameters.toml").code == 0


def test_base_parameters_that_no_robot_has_come_with_a_proof(dynid, tmp_path):
    result(tmp_path / "run", GOOD, "wls", IMPOSSIBLE)
    found = check(dynid, tmp_path / "run" / "out")
    assert not found["consistent"] and not found["base_possible"]
    proof = found["certificate"]
    assert proof["verified"] and proof["gap"] > proof["error"]
    assert proof["gap"] == pytest.approx(found["base_distance"], rel=1e-3)
    # ZZ2 and Fv1 are base parameters by themselves: the nearest possible ones are at zero, and no others have to move.
    assert found["base_distance"] == pytest.approx(np.hypot(0.05, 0.3), rel=0.1)
    assert "pseudo-inertia of link 'l2'" in proof["conditions"]
    assert {"l2", "Fv1"} <= {problem["link"] for problem in found["problems"]}
    negative = next(problem for problem in found["problems"] if problem["link"] == "Fv1")
    assert negative["kind"] == "positive" and negative["violation"] == pytest.approx(0.3, rel=0.05)
    shown = dynid("check", tmp_path / "run" / "out")
    assert shown.code == 1 and "no robot has these base parameters" in shown.out and "proof is verified" in shown.out


def test_consistent_methods_are_consistent_and_leave_a_robot_behind(dynid, tmp_path):
    notes = []
    written = result(tmp_path / "run", GOOD, "pc-wls", IMPOSSIBLE, add_note=notes.append)
    assert check(dynid, tmp_path / "run" / "out")["consistent"]
    masses = dict(zip(("l1", "l2"), Robot.load(written["robot"]).inertias[:, 9], strict=True))
    [heavy] = [name for name, mass in masses.items() if mass > 100.0]  # the data hardly determine the masses
    assert sum(f"link '{heavy}' weighs {masses[heavy]:.4g} kg" in note for note in notes) == 1
    robot = Path(written["robot"])
    assert robot.name == "robot.urdf" and check(dynid, robot, "--no-shapes")["consistent"]


def test_full_parameters_that_cannot_exist(dynid, tmp_path):
    text = GOOD.replace("</joint>", '<dynamics damping="0.5"/></joint>')  # ridge starts from the file's own friction
    written = result(tmp_path / "run", text, "ridge", IMPOSSIBLE, strength=1e-6)
    assert "robot" not in written and not (tmp_path / "run" / "out" / "robot.urdf").exists()
    found = check(dynid, tmp_path / "run" / "out")
    assert not found["consistent"] and found["base_possible"] is False
    assert {"l2", "Fv1"} <= {problem["link"] for problem in found["problems"]}
    assert found["remarks"] == ["no links with these torques satisfy these conditions"]


def test_what_the_data_do_not_show_is_left_out(dynid, tmp_path):
    result(tmp_path / "run", GOOD, "wls", still=(0,))
    found = check(dynid, tmp_path / "run" / "out")
    assert "Fv1" in found["remarks"][0]


def test_limits_that_a_run_asked_for_count(dynid, tmp_path):
    """The centre of mass is in truth outside the collision box: a run that is told of the box stays inside."""
    outside = dict(zip([f"{name}2" for name in ten.NAMES],
                       ten.from_central(2.0, [0.1, 0.6, 0], np.diag([0.03, 0.04, 0.05])), strict=True))
    result(tmp_path / "run", GOOD, "pc-wls", outside)
    found = check(dynid, tmp_path / "run" / "out")
    assert found["consistent"] and "centre of mass of link 'l2'" in found["remarks"][0]
    counted = check(dynid, tmp_path / "run" / "out", "--shapes")
    assert [(p["link"], p["kind"]) for p in counted["problems"]] == [("l2", "centre-of-mass")]
    result(tmp_path / "boxed", GOOD, "pc-wls", outside, shapes=True)
    assert check(dynid, tmp_path / "boxed" / "out")["consistent"]
    written = Robot.from_urdf(tmp_path / "boxed" / "out" / "robot.urdf")
    assert np.abs(ten.to_central(written.inertias)[1]).max() < 0.2 + 1e-9
