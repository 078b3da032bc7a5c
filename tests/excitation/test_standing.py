"""Motions with standing feet, checked with Pinocchio, linear programmes and MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from walkers import free_pinocchio, quadruped, small_humanoid

from dynid.errors import DynidError, NotPossibleError, RobotError
from dynid.excitation import ExcitingMotion, Fourier, Limits, Measurement, PriorKnowledge, Search, Standing, excite
from dynid.excitation.search.multistart import MultiStart
from dynid.excitation.standing.stance_design import standing_design
from dynid.excitation.standing.support import convex_hull
from dynid.model import Model
from dynid.robot import Robot

FEET = ("FL_toe", "FR_toe", "RL_toe", "RR_toe")
QUADRUPED = Standing(FEET, friction=0.5, margin=0.03, home=(0.0, 0.8, -1.6) * 4)
HUMANOID = Standing(("left_sole", "right_sole"), sole=(0.2, 0.08), friction=0.5, margin=0.02)
ARM_GAINS = (20.0, 0.3)  # of joints that carry little
FAMILY = Fourier(4.0, 3)


@dataclass(frozen=True)
class Machine:
    text: str
    standing: Standing
    offset: float  # height of a foot's frame above the ground, m
    gains: tuple[float, float]  # of a PD controller of the legs

    @property
    def robot(self) -> Robot:
        return Robot.load(self.text)

    @property
    def limits(self) -> Limits:
        """Limits that a motion of this length can reach."""
        robot = self.robot
        return Limits.from_robot(robot, lower=np.full(robot.dof, -2.4), upper=np.full(robot.dof, 2.4),
                                 velocity=np.full(robot.dof, 4.0), torque=np.full(robot.dof, 60.0))


MACHINES = {"quadruped": Machine(quadruped(), QUADRUPED, 0.022, (200.0, 4.0)),
            "humanoid": Machine(small_humanoid(), HUMANOID, 0.0, (500.0, 10.0))}


def designed(machine: Machine, steps: int, equations: str = "projected") -> ExcitingMotion:
    """The best motion after a number of steps from the first start, whatever the load of this computer."""
    left = iter(range(steps))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MultiStart, "stop", lambda self: next(left, None) is None)
        return excite(Model(machine.robot), machine.limits, family=FAMILY, criterion="a",
                      search=Search(None, 1, threads=1), standing=replace(machine.standing, equations=equations))


@pytest.fixture(scope="module")
def motions() -> dict[str, ExcitingMotion]:
    return {"quadruped": designed(MACHINES["quadruped"], 2), "humanoid": designed(MACHINES["humanoid"], 1)}


def pinocchio_states(found: ExcitingMotion, model, t):
    """Configurations, and velocities and accelerations by differences of configurations alone."""
    h = 1e-4
    before, q, after = (found.trajectory.states(t + k * h).q for k in (-1, 0, 1))
    v = np.array([pin.difference(model, a, b) / (2 * h) for a, b in zip(before, after, strict=True)])
    a = np.array([(pin.difference(model, q[s], after[s]) + pin.difference(model, q[s], before[s])) / h ** 2
                  for s in range(len(t))])
    return q, v, a


def ground_points(machine: Machine, model, q) -> np.ndarray:
    """Contact points in the world at one configuration, by Pinocchio."""
    scratch = model.createData()
    pin.framesForwardKinematics(model, scratch, q)
    points = []
    for foot in machine.standing.feet:
        pose = scratch.oMf[model.getFrameId(f"frame {foot}")]
        half = (0.0, 0.0) if machine.standing.sole is None else 0.5 * np.array(machine.standing.sole)
        corners = {(a * half[0], b * half[1]) for a in (-1, 1) for b in (-1, 1)}
        points += [pose.act(np.array([x, y, 0.0])) for x, y in corners]
    return np.array(points)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_feet_stand_and_hold_the_robot(name, motions):
    check_standing(MACHINES[name], motions[name])


def check_standing(machine: Machine, found: ExcitingMotion) -> None:
    """Feet stand still, the centre of pressure keeps its margin and forces inside the friction cones exist."""
    model = free_pinocchio(machine.robot)
    t = np.linspace(0.05, found.trajectory.duration - 0.05, 25)
    q, v, a = pinocchio_states(found, model, t)
    states = found.trajectory.states(t)
    np.testing.assert_allclose(states.v, v, atol=1e-5)
    np.testing.assert_allclose(states.a, a, atol=1e-3)
    points = np.array([ground_points(machine, model, one) for one in q])
    assert np.abs(points - points[0]).max() < 1e-8
    assert np.abs(points[:, :, 2]).max() < 1e-8
    hull = ConvexHull(points[0, :, :2]).equations
    scratch, mu = model.createData(), machine.standing.friction
    for s in range(len(t)):
        wrench = pin.Force(pin.rnea(model, scratch, q[s], v[s], a[s])[:6])
        world = pin.XYZQUATToSE3(q[s, :7]).act(wrench)
        assert world.linear[2] > 0.0
        pressure = np.array([-world.angular[1], world.angular[0]]) / world.linear[2]
        assert (hull[:, :2] @ pressure + hull[:, 2]).max() < -machine.standing.margin + 1e-4
        assert cone_exists(points[0], world, mu * (1.0 + 1e-4))


def cone_exists(points, wrench, mu) -> bool:
    """Whether forces of the contact points inside their friction cones (as 16-sided pyramids within) give a wrench."""
    angle = 2 * np.pi * np.arange(16) / 16
    edges = np.column_stack([mu * np.cos(angle), mu * np.sin(angle), np.ones(16)])
    columns = np.array([np.concatenate([edge, np.cross(point, edge)]) for point in points for edge in edges]).T
    found = linprog(np.zeros(columns.shape[1]), A_eq=columns, b_eq=np.concatenate([wrench.linear, wrench.angular]))
    return bool(found.success)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_torques_and_contact_forces_move_the_robot(name, motions):
    found, machine = motions[name], MACHINES[name]
    model, t = free_pinocchio(machine.robot), np.linspace(0.0, found.trajectory.duration, 7)
    states = found.trajectory.states(t)
    forces = found.trajectory.limit.contact_forces(states).forces
    points = np.column_stack([found.trajectory.limit.support.points, np.zeros(forces.shape[1])])
    assert (np.linalg.norm(forces[:, :, :2], axis=2) <= machine.standing.friction * forces[:, :, 2] + 1e-9).all()
    scratch, owners = model.createData(), found.trajectory.limit.support.owners
    for s in range(len(t)):
        total = np.concatenate([np.zeros(6), found.trajectory.torques(t)[s]])
        pin.framesForwardKinematics(model, scratch, states.q[s])
        for point, force, owner in zip(points, forces[s], owners, strict=True):
            number = model.getFrameId(f"frame {machine.standing.feet[owner]}")
            rates = pin.computeFrameJacobian(model, scratch, states.q[s], number, pin.LOCAL_WORLD_ALIGNED)
            arm = point - scratch.oMf[number].translation
            total += rates[:3].T @ force + rates[3:].T @ np.cross(arm, force)
        expected = pin.rnea(model, scratch, states.q[s], states.v[s], states.a[s])
        np.testing.assert_allclose(total, expected, atol=1e-6 * np.abs(expected).max())


def test_motion_starts_and_ends_at_rest_at_home(motions):
    found = motions["quadruped"]
    ends = found.trajectory.at([0.0, FAMILY.duration])
    assert found.report.ok
    assert np.abs(ends.q - np.concatenate([np.zeros(6), QUADRUPED.home])).max() < 1e-8
    assert np.abs(ends.dq).max() < 1e-8 and np.abs(ends.ddq).max() < 1e-7


def test_steps_reduce_standard_errors(motions):
    """The search's own start is its first motion: no step is taken from it."""
    start, found = designed(MACHINES["quadruped"], 0), motions["quadruped"]
    assert found.value < start.value and found.condition < start.condition
    assert np.median(found.std / start.std) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_search_improves_the_first_motion(name):
    machine = MACHINES[name]
    start, found = designed(machine, 0), designed(machine, 20)
    assert found.report.ok and found.condition < 0.8 * start.condition
    assert np.median(found.std / start.std) < 0.8
    check_standing(machine, found)
    assert_follows(machine, found)


def test_limits_bind_in_a_search(motions):
    kinds = {usage.kind for usage in motions["quadruped"].report.usages}
    assert {"support", "load", "friction", "legs", "torque", "velocity", "position"} <= kinds


@pytest.mark.parametrize("equations", ["wrenches", "base"])
def test_other_equations(equations):
    machine = MACHINES["quadruped"]
    design, _ = standing_design(Model(machine.robot), replace(machine.standing, equations=equations), machine.limits,
                                FAMILY, "a", Measurement(noise=0.1), PriorKnowledge(), 0)
    z = 0.2 * np.random.default_rng(1).normal(size=design.problem.unit.shape) * design.problem.unit
    value, gradient = design.problem.value_and_gradient(z)
    step = 1e-5 * np.random.default_rng(2).normal(size=z.shape) * design.problem.unit
    change = design.problem.value(z + step) - design.problem.value(z - step)
    assert np.isfinite(value)
    assert change == pytest.approx(2 * np.sum(gradient * step), rel=1e-3)


def followed(machine: Machine, found: ExcitingMotion):
    """Largest errors of base position (m), base orientation (rad) and place of the feet (m) in MuJoCo under PD control
    with the torques of the motion. Damping is part of the model, which integrates it implicitly: computed from the
    velocity of the step before, it would be unstable for links as light as these."""
    model = mujoco.MjModel.from_xml_string(machine.text)
    data = mujoco.MjData(model)
    step, duration = model.opt.timestep, found.trajectory.duration
    t = np.arange(round(duration / step)) * step
    states, torques = found.trajectory.states(t), found.trajectory.torques(t)
    data.qpos[:] = np.concatenate([states.q[0, :3], states.q[0, [6, 3, 4, 5]], states.q[0, 7:]])
    data.qpos[2] += machine.offset
    mujoco.mj_forward(model, data)
    feet = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, foot) for foot in machine.standing.feet]
    places, worst = data.site_xpos[feet].copy(), np.zeros(3)
    legs = np.isin(np.arange(6, model.nv), found.trajectory.limit.support.stance.legs)
    kp, kd = np.where(legs[:, None], machine.gains, ARM_GAINS).T
    model.dof_damping[6:] = kd
    for k in range(len(t)):
        data.ctrl[:] = torques[k] + kp * (states.q[k, 7:] - data.qpos[7:]) + kd * states.v[k, 6:]
        mujoco.mj_step(model, data)
        turned = pin.Quaternion(states.q[k, 3:7]).matrix().T @ data.xmat[1].reshape(3, 3)
        worst = np.maximum(worst, [np.linalg.norm(data.qpos[:3] - states.q[k, :3] - [0, 0, machine.offset]),
                                   np.linalg.norm(pin.log3(turned)),
                                   np.linalg.norm(data.site_xpos[feet] - places, axis=1).max()])
    return worst


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_robot_stays_standing_in_mujoco(name, motions):
    moved = np.abs(motions[name].trajectory.at(np.linspace(0, FAMILY.duration, 50)).q[:, :3]).max()
    assert moved > 0.02  # there is a motion to follow
    assert_follows(MACHINES[name], motions[name])


def assert_follows(machine: Machine, found: ExcitingMotion) -> None:
    """The robot follows the motion; a round foot rolls by its radius times its rotation, which is below one radian."""
    position, angle, slip = followed(machine, found)
    assert position < 0.02 and angle < 0.05
    assert slip < 0.01 + machine.offset


def test_file_has_base_and_torques(motions, tmp_path):
    found = motions["quadruped"]
    found.save(tmp_path / "motion.csv")
    rows = np.genfromtxt(tmp_path / "motion.csv", delimiter=",", names=True)
    states = found.trajectory.states(rows["t"])
    np.testing.assert_allclose(rows["base_pos_z"], states.q[:, 2], atol=1e-10)
    np.testing.assert_allclose(rows["base_quat_w"], states.q[:, 6], atol=1e-10)
    np.testing.assert_allclose(rows["q_RR_calf"], states.q[:, -1], atol=1e-10)
    np.testing.assert_allclose(rows["tau_FL_hip"], found.trajectory.torques(rows["t"])[:, 0], atol=1e-8)
    found.save(tmp_path / "motion.yaml", rate=2.0)
    assert (tmp_path / "motion.yaml").read_text().count("effort: [") == round(2 * FAMILY.duration) + 1
    assert "effort: []" not in (tmp_path / "motion.yaml").read_text()


def test_hull_against_scipy():
    points = np.random.default_rng(0).normal(size=(30, 2))
    expected = points[ConvexHull(points).vertices]
    found = convex_hull(points)
    assert {tuple(np.round(p, 6)) for p in found} == {tuple(np.round(p, 6)) for p in expected}


def refuse(**options) -> None:
    """Design a motion of the quadruped with other options of its standing feet."""
    excite(MACHINES["quadruped"].robot, standing=replace(QUADRUPED, **options))


UNEQUAL_LEGS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5, -2.9, 0.0, 1.5, -2.9)
REFUSALS = [
    (DynidError, "no-standing-feet", lambda: excite(MACHINES["quadruped"].robot)),
    (DynidError, "fixed-base", lambda: excite(Robot.load("arm3r"), standing=QUADRUPED)),
    (RobotError, "unknown-frame", lambda: refuse(feet=("toe",))),
    (NotPossibleError, "no-support-polygon", lambda: refuse(feet=FEET[:2])),
    (NotPossibleError, "no-support-polygon", lambda: refuse(margin=0.3)),
    (NotPossibleError, "feet-out-of-reach", lambda: refuse(home=UNEQUAL_LEGS)),
    (NotPossibleError, "legs-cannot-hold", lambda: refuse(sole=(0.1, 0.1))),
    (DynidError, "wrong-home", lambda: refuse(home=(0.0,) * 18)),
    (DynidError, "wrong-standing-option", lambda: refuse(friction=-1.0)),
    (DynidError, "wrong-standing-option", lambda: refuse(margin=float("nan"))),
    (DynidError, "unknown-equations", lambda: refuse(equations="flight")),
    (DynidError, "foot-named-twice", lambda: refuse(feet=("FL_toe", "FL_toe"))),
]


@pytest.mark.parametrize(("kind", "code", "call"), REFUSALS,
                         ids=[f"{k}-{code}" for k, (_, code, _) in enumerate(REFUSALS)])
def test_one_sentence_for_bad_input(kind, code, call):
    with refused(kind, code):
        call()
