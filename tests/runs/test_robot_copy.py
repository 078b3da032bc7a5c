"""The copy of the user's URDF beside a result, and the user's own files beside that."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import one_arm
import pytest
from motions import fourier
from robots import exact_text, random_inertia

from dynid.estimate import Problem, identify
from dynid.estimate.linear import joint_weights
from dynid.estimate.nearest_robot import consistent_robot
from dynid.model import Model, Stribeck, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.robot.write_urdf import plain_urdf
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.code_files import CodeOptions, estimate_program
from dynid.runs.results import facts, load, save


@pytest.fixture
def settings(tmp_path):
    return RunSettings.from_values(one_arm.written(tmp_path, "robot.urdf"))


def test_the_copy_predicts_what_the_result_predicts(settings, tmp_path):
    found = run(settings)
    written = save(found, tmp_path / "out", report=False)
    copy = Robot.from_urdf(written["robot"])
    assert "<!-- mine -->" in Path(written["robot"]).read_text()
    assert copy.values["Fv1"] == pytest.approx(0.4, rel=0.01)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 1))
    ours = found.estimate.predict(q, dq, ddq)
    theirs = Model(copy).inverse_dynamics(copy.inertias.ravel(), q, dq, ddq) + copy.values["Fv1"] * dq
    np.testing.assert_allclose(theirs, ours, atol=1e-12)
    again, _ = load(tmp_path / "out")
    again.to_urdf(tmp_path / "again.urdf")
    assert (tmp_path / "again.urdf").read_bytes() == Path(written["robot"]).read_bytes()


def test_a_users_own_file_of_that_name_is_left_alone(settings, tmp_path):
    found = run(settings)
    assert "robot" not in save(found, tmp_path, report=False)
    assert "robot" not in save(found, tmp_path, force=True, report=False)
    assert (tmp_path / "robot.urdf").read_text() == one_arm.URDF


def test_a_method_of_base_parameters_gives_a_consistent_robot_too(settings, tmp_path):
    """The one joint is consistent as wls finds it, so its robot file has the same torques."""
    found, notes = run(settings.model_copy(update={"method": "wls"})), []
    assert found.estimate.theta is None
    copy = Robot.from_urdf(save(found, tmp_path / "out", report=False, add_note=notes.append)["robot"])
    assert "with the same torques" in notes[0]
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, 1))
    theirs = Model(copy).inverse_dynamics(copy.inertias.ravel(), q, dq, ddq) + copy.values["Fv1"] * dq
    np.testing.assert_allclose(theirs, found.estimate.predict(q, dq, ddq), rtol=1e-3)


def pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """Of XX XY XZ YY YZ ZZ MX MY MZ M about the frame (Wensing, Kim, Slotine, 2018): positive definite of a body."""
    xx, xy, xz, yy, yz, zz, *first, mass = ten
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[second, np.array(first)[:, None]], [np.array(first)[None, :], np.array([[mass]])]])


def test_an_estimate_that_no_robot_has_is_written_as_the_nearest_one(simulate_arm, tmp_path):
    """Noise as large as the torques: least squares are not consistent, the robot written is, and it costs something."""
    problem, estimate = simulate_arm
    robot = consistent_robot(problem, estimate)
    places = problem.model.parameters.bodies
    assert all(np.linalg.eigvalsh(pseudo_inertia(robot.theta[places[body]])).min() > 0 for body in places)
    assert not robot.same and robot.error > robot.estimate_error
    assert f"instead of {robot.estimate_error:.2g} %" in robot.sentence
    # No other consistent robot tried is nearer in the weighted torques of the data: pc-wls is the nearest to wls.
    best = identify(problem, method="pc-wls")
    stacked = problem.regression.stack(joint_weights(problem.regression))
    assert stacked.misfit(problem.base.reduce(robot.theta)) == pytest.approx(stacked.misfit(best.values), rel=1e-2)


@pytest.fixture
def simulate_arm():
    model, rng = Model(Robot.builtin("arm3r")), np.random.default_rng(3)
    q, dq, ddq = rng.uniform(-1.0, 1.0, size=(3, 60, 3))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.5 * np.abs(tau).mean() * rng.normal(size=tau.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=100.0))
    return problem, identify(problem, method="wls")


def test_a_robot_that_is_not_a_urdf_is_written_as_mjcf(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = Model(Robot.builtin("arm3r"))
    t = np.arange(2000) / 200
    phase = np.outer(t, [2.0, 3.1, 4.3])
    speed = np.array([2.0, 3.1, 4.3])
    motion = np.sin(phase), speed * np.cos(phase), -speed ** 2 * np.sin(phase)
    tau = model.inverse_dynamics(model.parameters.nominal, *motion)
    write_npz(Recording(t, motion[0], tau, joints=model.robot.joint_names), tmp_path / "log.npz")
    found = run(RunSettings.from_values({"robot": "arm3r", "logs": [str(tmp_path / "log.npz")], "method": "wls",
                                         "model": {"friction": ["none"]}, "simulation": {"run": False}}))
    written = save(found, tmp_path / "out", report=False)
    assert written["robot"].endswith("robot.xml")
    loaded = mujoco.MjModel.from_xml_path(written["robot"])
    data = mujoco.MjData(loaded)
    data.qpos, data.qvel, data.qacc = (signal[700] for signal in motion)
    mujoco.mj_inverse(loaded, data)
    np.testing.assert_allclose(data.qfrc_inverse, tau[700], rtol=1e-2, atol=1e-2 * np.abs(tau).max())


def test_the_report_says_what_to_know_about_the_copy(settings, tmp_path):
    rotor = settings.model_copy(update={"model": ModelSettings(friction=("viscous", "offset"))})
    save(run(rotor), tmp_path / "out")
    assert "cannot represent Fo1" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("name", ["franka-panda", "kuka-iiwa14", "staubli-tx40", "emps"])
def test_a_table_of_modified_parameters_has_a_urdf(name):
    robot = Robot.builtin(name)
    text = plain_urdf(robot)
    assert text is not None
    again = Robot.from_urdf(text)
    assert again.joint_names == robot.joint_names and again.body_names == robot.body_names
    for limit in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_allclose(again.limit(limit), robot.limit(limit))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 5, robot.dof))
    theta = Model(robot).parameters.nominal
    np.testing.assert_allclose(Model(again).inverse_dynamics(theta, q, dq, ddq),
                               Model(robot).inverse_dynamics(theta, q, dq, ddq), atol=1e-9)


@pytest.mark.parametrize("name", ["arm3r", "kuka-lwr4", "four-bar"])
def test_a_table_of_standard_parameters_and_a_closed_loop_have_none(name):
    assert plain_urdf(Robot.builtin(name)) is None


# -- the written file reproduces the torques that are stated --------------------------------------------
MEASURED = {"method": "pc-wls", "prepare": {"cutoff": 5.0}, "simulation": {"run": False},
            "model": {"friction": ["curve", "offset", "load"], "rotor": True}}


def measured_panda(folder, data):
    """Settings of a run on eight seconds of the real log of a Panda."""
    position, torque = (np.loadtxt(data("panda", f"exciting_traj_{name}.txt")).reshape(-1, 7)[:8000]
                        for name in ("positions", "torques"))
    robot = data("panda", "panda_arm.urdf")
    names = Robot.from_urdf(robot).joint_names
    write_npz(Recording(np.loadtxt(data("panda", "exciting_traj_time.txt"))[:8000], position, torque, joints=names),
              folder / "log.npz")
    return {**MEASURED, "robot": str(robot), "logs": [str(folder / "log.npz")]}


def measured_tx40(folder, data):
    """Settings of a run on the real log of a TX40, whose motors 5 and 6 are coupled (README of the data)."""
    position, torque = (np.loadtxt(data("tx40", name), delimiter=",", skiprows=1)[::5]
                        for name in ("pos_read_data.csv", "curr_data.csv"))
    robot = data("tx40", "tx40_mdh_modified.urdf")
    turns, coupled = np.diag([32.0, 32, 45, -48, 45, 32]), np.zeros((6, 6))
    coupled[4, 5] = 32.0
    q = np.linalg.solve(turns + coupled.T, position.T).T + 0.5 * np.pi * np.array([0, -1, 1, 0, 0, 0])
    write_npz(Recording(np.arange(len(q)) / 1000.0, q, torque @ (turns + coupled).T,
                        joints=Robot.from_urdf(robot).joint_names), folder / "log.npz")
    return {**MEASURED, "prepare": {"cutoff": 20.0}, "robot": str(robot), "logs": [str(folder / "log.npz")]}


def simulated_panda(folder, data):
    """Settings of a run on a noisy log of a simulated Panda with Stribeck friction, whose file has other friction."""
    robot = Robot.builtin("franka-panda")
    text = plain_urdf(robot).replace("</joint>", '<dynamics damping="0.7" friction="0.9"/></joint>')
    (folder / "arm.urdf").write_text(text)
    rng = np.random.default_rng(2)
    model = Model(robot, (*make_terms(robot), Stribeck()))
    theta = rng.uniform(0.3, 0.8, len(model.parameters))
    for places in model.parameters.bodies.values():
        theta[places] = random_inertia(rng)
    q, dq, ddq = fourier(7, rate=200.0, seconds=20.0)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.05 * tau.std(axis=0) * rng.normal(size=tau.shape)
    write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=robot.joint_names), folder / "log.npz")
    return {**MEASURED, "robot": str(folder / "arm.urdf"), "logs": [str(folder / "log.npz")],
            "model": {"friction": ["stribeck"]}}


def pinocchio_errors(path, found):
    """Relative torque errors of a URDF in Pinocchio, in the rows of the regression: all joints, then each, percent."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(exact_text(Path(path).read_text()))
    model.gravity.linear = np.array(found.robot.gravity)
    data, square = model.createData(), np.zeros((2, model.nv))
    for log in found.samples:
        rigid = np.array([pin.rnea(model, data, *state) for state in zip(log.q, log.dq, log.ddq, strict=True)])
        torque = rigid + model.damping * log.dq + model.upperDryFrictionLimit * np.sign(log.dq)
        measured, keep = log.tau, log.keep
        if log.decimation is not None:
            torque, measured = (decimate_columns(x, log.decimation, log.segments) for x in (torque, measured))
            keep = keep[decimated_rows(log.segments, log.decimation)]
        square += [np.sum(np.where(keep, x, 0.0) ** 2, axis=0) for x in (torque - measured, measured)]
    return 100.0 * np.sqrt(np.append(square[0].sum() / square[1].sum(), square[0] / square[1]))


@pytest.mark.parametrize("method", ["pc-wls", "wls"])
@pytest.mark.parametrize("machine", [measured_panda, measured_tx40, simulated_panda])
def test_the_stated_torque_error_is_that_of_pinocchio(machine, method, tmp_path, data):
    found = run(RunSettings.from_values({**machine(tmp_path, data), "method": method}))
    files = []
    written = save(found, tmp_path / "out", report=False, add_file=files.append)
    (file,) = files
    stated = [file.torque_error, *(one.torque_error for one in file.joints)]
    np.testing.assert_allclose(stated, pinocchio_errors(written["robot"], found), rtol=1e-5)
    assert file.estimate_error == pytest.approx(found.reconstruction.relative_error)
    assert file.equations == found.reconstruction.counted.equations and file.is_nearest == (method == "wls")
    assert f"torque error {file.torque_error:.2g} %" in file.sentence or file.torque_error >= 9.5
    # Without any friction, as curves were written before, the file is much worse.
    bare = tmp_path / "bare.urdf"
    bare.write_text(re.sub(r"<dynamics[^>]*/>", "", Path(written["robot"]).read_text()))
    assert file.torque_error < 0.8 * pinocchio_errors(bare, found)[0]
    shown = facts(found, file)["written_file"]
    assert shown["torque_error"] == file.torque_error and shown["joints"][0]["name"] == found.robot.joint_names[0]


def test_a_curve_is_written_as_the_nearest_viscous_and_coulomb_friction(tmp_path, data):
    """Nearest by least squares over the rows of the regression, against the formula of the curve."""
    found = run(RunSettings.from_values(simulated_panda(tmp_path, data)))
    copy = Robot.from_urdf(save(found, tmp_path / "out", report=False)["robot"])
    (log,) = found.samples
    values = dict(zip(found.model.parameters.names, found.estimate.full, strict=True))
    for j in range(7):
        v = log.dq[log.keep[:, j], j]
        sign = 2.0 / np.pi * np.arctan(1000.0 * v)
        curve = sum(values[f"{name}{j + 1}"] * part for name, part in (
            ("Fc", sign), ("Fv", v), ("Fsc", np.arctan(10.0 * v)), ("Fnl", np.abs(v) ** 0.5 * sign)))
        viscous, dry = np.linalg.lstsq(np.column_stack([v, np.sign(v)]), curve, rcond=None)[0]
        assert min(viscous, dry) > 0.0
        assert [copy.values[f"Fv{j + 1}"], copy.values[f"Fc{j + 1}"]] == pytest.approx([viscous, dry], rel=1e-8)


def test_friction_of_the_users_file_that_the_estimate_lacks_is_not_kept(settings, tmp_path):
    text = one_arm.URDF.replace("</joint>", '<dynamics damping="0.1" friction="3.0"/></joint>')
    Path(settings.robot).write_text(text)
    files = []
    copy = Robot.from_urdf(save(run(settings), tmp_path / "out", report=False, add_file=files.append)["robot"])
    assert copy.values["Fv1"] == pytest.approx(0.4, rel=0.01) and copy.values.get("Fc1", 0.0) == 0.0
    assert files[0].torque_error == pytest.approx(files[0].estimate_error) and not files[0].cannot_hold


def test_a_simulation_of_the_written_robot_is_finite_and_conserves_energy_without_friction(tmp_path, data):
    mujoco = pytest.importorskip("mujoco")
    found = run(RunSettings.from_values(simulated_panda(tmp_path, data)))
    found.estimate.export(tmp_path / "arm.xml", "mjcf", samples=found.samples)
    for has_friction in (True, False):
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
        assert model.dof_damping.min() > 0.0 and model.dof_frictionloss.min() > 0.0
        model.opt.timestep, model.opt.integrator = 1e-3, mujoco.mjtIntegrator.mjINT_RK4
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        if not has_friction:
            model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
        state = mujoco.MjData(model)
        state.qpos[:] = 0.3
        energy, fastest = [], 0.0
        for _ in range(10_000):
            mujoco.mj_step(model, state)
            energy.append(state.energy.sum())
            fastest = max(fastest, float(np.abs(state.qvel).max()))
        assert np.isfinite(state.qpos).all() and np.isfinite(energy).all()
        if has_friction:
            assert energy[-1] < energy[0]
        else:
            assert fastest > 1.0 and np.ptp(energy) < 1e-4 * np.ptp([0.0, *energy])


def test_draws_code_and_mass_matrix_are_those_of_the_estimate(tmp_path, data):
    """A draw without spread gives the written file, and generated code the torques and the mass matrix."""
    found = run(RunSettings.from_values({**simulated_panda(tmp_path, data), "model": {
        "friction": ["viscous", "coulomb"]}}))
    estimate, written = found.estimate, save(found, tmp_path / "out", report=False)
    draw = next(iter(estimate.with_covariance(np.zeros_like(estimate.covariance)).draws(1, spread=1e-9)))
    draw.to_urdf(tmp_path / "draw.urdf", samples=found.samples)
    motion = np.random.default_rng(0).normal(size=(3, 7))
    copies = [Robot.from_urdf(path) for path in (written["robot"], tmp_path / "draw.urdf")]
    for copy in copies:
        model = Model(copy, make_terms(copy, friction=("viscous", "coulomb")))
        torque = model.inverse_dynamics(model.parameters.nominal, *motion)
        assert np.abs(torque - estimate.predict(*motion)).max() < 1e-6
        assert np.abs(model.inertia_matrix(model.parameters.nominal, motion[0])
                      - found.model.inertia_matrix(estimate.full, motion[0])).max() < 1e-6
    names: dict = {}
    exec(estimate_program(estimate, CodeOptions(languages=("python-plain",), name="arm")).python(plain=True), names)
    code = {name.removeprefix("arm_"): function for name, function in names.items() if callable(function)}
    assert np.abs(np.ravel(code["inverse_dynamics"](*motion)) - estimate.predict(*motion)).max() < 1e-9
    assert np.abs(np.reshape(code["inertia"](motion[0]), (7, 7))
                  - found.model.inertia_matrix(estimate.full, motion[0])).max() < 1e-9
