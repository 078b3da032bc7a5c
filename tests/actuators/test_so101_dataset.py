"""A LeRobot v3 dataset of an SO-101 arm, simulated by MuJoCo: six joints, 30 Hz, degrees, one joint that is at rest."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynid
from dynid.actuators import pendulum
from dynid.actuators.input_checks import MAX_SIMULATED_TIME, log_entries, usable_logs
from dynid.actuators.laws import drive_law
from dynid.runs.actuators import actuator_settings, find_actuators

NAMES = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
STILL = 4  # number of the joint that is at rest
AXES = ("0 0 1", "0 1 0", "0 1 0", "0 1 0", "1 0 0", "0 0 1")
PLACES = ("0 0 0.05", "0.03 0 0.05", "0.03 0 0.11", "0.13 0 0", "0.06 0 0", "0.03 0.02 0")
MASSES = (0.12, 0.10, 0.10, 0.09, 0.09, 0.02)
CENTRES = ("0.02 0 0.03", "0.01 0 0.06", "0.06 0 0.01", "0.03 0 0", "0.02 0 0", "0.03 0 0")
COUNT = 2 * np.pi / 4096  # rad, of the encoders
KP, DELAY, FPS, STEP = 17.8, 0.02, 30, 5e-4  # N m/rad; s; Hz; s


def arm(truth):
    """MJCF of the arm with armature, damping and frictionloss of each joint."""
    bodies = ""
    for name, axis, place, mass, centre, (armature, damping, friction) in zip(NAMES, AXES, PLACES, MASSES, CENTRES,
                                                                              truth, strict=True):
        bodies += (f'<body name="{name}_link" pos="{place}"><joint name="{name}" axis="{axis}" range="-3 3" '
                   f'armature="{armature}" damping="{damping}" frictionloss="{friction}" solreffriction="0.001 1" '
                   f'solimpfriction="0.9999 0.9999 0.001 0.5 2"/><inertial pos="{centre}" mass="{mass}" '
                   'diaginertia="8e-5 8e-5 6e-5"/>')
    return (f'<mujoco model="so101"><compiler angle="radian"/><option timestep="{STEP}" integrator="implicitfast"/>'
            f'<worldbody>{bodies}{"</body>" * len(NAMES)}</worldbody><actuator>'
            + "".join(f'<motor joint="{name}"/>' for name in NAMES) + "</actuator></mujoco>")


def episode(model, rng, seconds):
    """Positions and commands (rows, 6), rad, of an episode: smooth moves between random positions, and pauses."""
    import mujoco
    rows, every = int(seconds * FPS), round(1 / FPS / STEP)
    t, knots = np.arange(rows) / FPS, np.linspace(0, seconds, int(seconds / 1.2) + 2)
    share = np.clip((t[:, None] - knots[:-1]) / np.diff(knots), 0, 1)
    goals = rng.uniform(-0.8, 0.8, (len(knots), len(NAMES)))
    goals[3::3] = goals[2:-1:3]
    goals[:, STILL] = 0.1
    command = goals[0] + (share**2 * (3 - 2 * share)) @ np.diff(goals, axis=0)
    data, q, held = mujoco.MjData(model), np.zeros_like(command), np.repeat(command, every, axis=0)
    data.qpos[:] = command[0]
    for k in range(rows * every):
        seen = np.round(data.qpos / COUNT) * COUNT
        if k % every == 0:
            q[k // every] = seen
        data.ctrl[:] = KP * (held[max(k - round(DELAY / STEP), 0)] - seen)
        mujoco.mj_step(model, data)
    return q, command


def write_dataset(folder, parts):
    """A LeRobot v3 dataset of episodes in degrees, with 32-bit numbers as LeRobot writes them."""
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    feature = {"dtype": "float32", "shape": [6], "names": [f"{name}.pos" for name in NAMES]}
    (folder / "meta" / "info.json").write_text(json.dumps({
        "codebase_version": "v3.0", "total_episodes": len(parts), "fps": FPS,
        "features": {"action": feature, "observation.state": feature}}))

    def column(arrays):
        degrees = np.rad2deg(np.concatenate(arrays)).astype(np.float32)
        return pa.FixedSizeListArray.from_arrays(pa.array(degrees.ravel()), len(NAMES))

    pq.write_table(pa.table({
        "observation.state": column([q for q, _ in parts]), "action": column([command for _, command in parts]),
        "timestamp": np.concatenate([np.arange(len(q)) / FPS for q, _ in parts]).astype(np.float32),
        "episode_index": np.repeat(np.arange(len(parts)), [len(q) for q, _ in parts])}),
        folder / "data" / "chunk-000" / "file-000.parquet")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    mujoco = pytest.importorskip("mujoco")
    folder, rng = tmp_path_factory.mktemp("so101"), np.random.default_rng(7)
    truth = [(0.02 + 0.015 * a, 0.4 + 0.4 * b, 0.04 + 0.05 * c) for a, b, c in rng.random((6, 3))]
    model = mujoco.MjModel.from_xml_string(arm(truth))
    write_dataset(folder / "dataset", [episode(model, rng, 5.0) for _ in range(2)])
    (folder / "so101.xml").write_text(arm([(0.0, 0.0, 0.0)] * 6))
    told = []
    settings = actuator_settings(str(folder / "so101.xml"), [str(folder / "dataset")],
                                 {"gains": {"kp": KP, "kd": 0.0}, "friction": "m1"}, ["log.unit=deg"])
    return find_actuators(settings, told.append).estimate, truth, told


def test_joints_that_move_are_recovered(found):
    estimate, truth, _ = found
    for j, (name, values) in enumerate(zip(NAMES, truth, strict=True)):
        if j == STILL:
            continue
        for parameter, value in zip(("armature", "viscous", "coulomb", "delay"), (*values, DELAY), strict=True):
            one = estimate[name, parameter]
            assert one.identified and abs(one.value - value) < 4 * one.std, one
            assert one.value == pytest.approx(value, rel=0.15), one
    assert estimate.mean_error < 1.1 * COUNT / 4 < estimate.linear_error  # rounding alone gives a quarter of a count
    assert estimate.findings == ()


def test_a_joint_at_rest_is_fixed_and_named(found):
    estimate, _, told = found
    still = NAMES[STILL]
    assert [note.text for note in estimate.notes if still in note.text and "fixed at their positions" in note.text]
    assert all(one.is_given for one in estimate.parameters if one.joint == still)
    joints, _ = estimate.posterior.simulated()
    others = [estimate[name, "armature"].value for name in NAMES if name != still]
    assert joints[STILL].armature == pytest.approx(np.mean(others))
    assert any(still in note for note in estimate.posterior.notes)
    assert any("iteration 2" in sentence for sentence in told)


def test_a_long_log_is_thinned_to_parts_with_a_note():
    t = np.arange(0.0, 3.0 * MAX_SIMULATED_TIME, 0.05)
    log = dynid.Recording.from_commands(t, 0.5 * np.sin(t)[:, None], 0.5 * np.sin(t + 0.1)[:, None], joints=("j",))
    parts, remarks = usable_logs(log_entries(log), pendulum(0.5, 0.15, joint="j"), drive_law("pd"))
    seconds = [part.recording.t[-1] - part.recording.t[0] for part in parts]
    assert 0.8 * MAX_SIMULATED_TIME < sum(seconds) <= MAX_SIMULATED_TIME
    assert parts[0].recording.t[0] < 0.3 * t[-1] and parts[-1].recording.t[-1] > 0.7 * t[-1]
    assert len(remarks) == 1 and "of 1440 s" in remarks[0]
