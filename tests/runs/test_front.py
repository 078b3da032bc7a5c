"""The first calls of a newcomer: files in, a run out; results opened again; names, plots and pages of notebooks."""

from __future__ import annotations

import pickle

import numpy as np
import one_arm
import pytest
from refusals import refused

import dynid
from dynid.errors import DynidError, ModelError, RecordingError
from dynid.runs import Run
from dynid.runs.results import save


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("front")
    settings = one_arm.written(folder)
    run = dynid.identify(settings["robot"], settings["logs"][0], friction="viscous", prepare={"cutoff": 20.0})
    save(run, folder / "out", report=False)
    return folder, run


def test_paths_give_what_a_run_gives(found):
    folder, run = found
    again = dynid.run(dynid.RunSettings.from_values({**one_arm.written(folder), "method": "auto"}))
    assert isinstance(run, Run) and run.estimate.method == again.estimate.method
    np.testing.assert_array_equal(run.estimate.values, again.estimate.values)
    assert run.verdict.grade == again.verdict.grade


def test_a_result_is_opened_again(found):
    folder, run = found
    np.testing.assert_array_equal(dynid.load(folder / "out").values, run.estimate.values)
    with refused(DynidError, "no-result", "there is no folder"):
        dynid.load(folder / "nothing")


def test_a_parameter_is_found_by_its_name(found):
    estimate = found[1].estimate
    assert found[1]["Fv1"] == estimate["Fv1"] == pytest.approx(0.4, rel=0.01)
    assert estimate["Fv1"] == estimate.values[estimate.names.index("Fv1")]
    with refused(ModelError, "unknown-base-parameter", "'fv1'; did you mean 'Fv1'?"):
        estimate["fv1"]
    with refused(ModelError, "unknown-base-parameter", "there are ", *estimate.names):
        estimate["elbow"]


def test_wrong_types_are_a_sentence(found):
    _, run = found
    samples = run.samples[0]
    with refused(ModelError, "robot-for-model"):
        dynid.identify(run.robot, samples)
    with refused(ModelError, "not-samples"):
        dynid.identify(run.model, "log.csv")
    with refused(ModelError, "file-with-samples"):
        dynid.identify("arm3r", samples)
    with refused(ModelError, "bad-model", "identify", "call "):
        dynid.identify()
    with refused(ModelError, "bad-model", "identify", "int"):
        dynid.identify(3, samples)
    assert dynid.identify(run.model, samples, method="wls").method == "wls"


def test_data_in_memory_are_answered_with_the_call_that_takes_them(found, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    _, run = found
    recording = run.problem.recordings[0]
    frame = recording.to_frame()
    arrays = {"time": recording.t, "q": recording.q, "tau": recording.tau}
    for data, call in ((frame, "frame.to_csv('log.csv')"), (arrays, "numpy.savez('log.npz', **arrays)"),
                       (recording.q, "numpy.savez('log.npz', time=t")):
        for given in ({"data": data}, {"data": "log.csv", "validate": data}):
            with refused(ModelError, "file-with-samples", call):
                dynid.identify(run.settings.robot, **given)
    with refused(ModelError, "not-samples", "dynid.Recording.from_frame(frame, robot=robot)"):
        dynid.identify(run.model, frame)
    with refused(ModelError, "not-samples", "dynid.Recording(time, positions, torques)"):
        dynid.identify(run.model, arrays)
    monkeypatch.chdir(tmp_path)  # the advice as it is written
    frame.to_csv("log.csv")
    np.savez("log.npz", **arrays)
    assert isinstance(frame, pandas.DataFrame)
    for name in ("log.csv", "log.npz"):
        np.testing.assert_allclose(dynid.read(name, robot=run.robot).tau, recording.tau)


@pytest.mark.parametrize(("given", "code", "said"), [
    ({"cutoff": 8.0}, "unknown-setting", 'prepare={"cutoff": VALUE}'),
    ({"cutof": 8.0}, "unknown-setting", "--set prepare.cutoff=VALUE"),
    ({"frictions": "viscous"}, "unknown-setting", "'friction' is a setting of the table [model]"),
    ({"methd": "wls"}, "unknown-setting", "did you mean 'method'?"),
    ({"prepare": 8.0}, "wrong-setting", 'prepare={"SETTING": VALUE}'),
    ({"output": "out"}, "folder-as-output", "dynid.runs.results.save(run, 'out')"),
    ({"friction": "viscous,coloumb"}, "bad-model", "did you mean 'coulomb'?")])
def test_a_setting_in_the_wrong_place_is_answered_with_the_right_one(found, given, code, said):
    _, run = found
    with refused(DynidError if code.endswith("setting") else ModelError, code, said):
        dynid.identify(run.settings.robot, run.settings.logs[0], **given)


def test_a_run_goes_to_another_process(found):
    _, run = found
    again = pickle.loads(pickle.dumps(run))
    np.testing.assert_array_equal(again.estimate.values, run.estimate.values)
    assert again.verdict.text() == run.verdict.text()


def test_plots_show_every_parameter(found):
    _, run = found
    drawn = {name for trace in run.estimate.plot().data for name in trace.x}
    assert drawn == set(np.array(run.estimate.names)[run.estimate.identified])
    assert {name for trace in run.verdict.plot().data for name in trace.x} == set(run.estimate.names)


def test_notebooks_show_tables_and_no_raw_arrays(found):
    _, run = found
    for shown in (run.model, run.samples[0], run.problem, run.reconstruction):
        page = shown._repr_html_()
        assert "<table" in page and "array(" not in page and len(page) < 20_000
    assert "viscous" in run.model._repr_html_() and ">j<" in run.reconstruction._repr_html_()


def test_columns_of_a_table_are_found_as_those_of_a_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    t = np.arange(300) / 100.0
    q, tau = np.sin(np.outer(t, [1.0, 2.0, 3.0])), np.cos(np.outer(t, [1.0, 2.0, 3.0]))
    frame = pandas.DataFrame({"timestamp_ms": 1e3 * t} | {f"q{j + 1}": q[:, j] for j in range(3)}
                             | {f"tau{j + 1}": tau[:, j] for j in range(3)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    robot = dynid.Robot.load("arm3r")
    here, there = dynid.Recording.from_frame(frame, robot=robot), dynid.read(tmp_path / "log.csv", robot=robot)
    for name in ("t", "q", "tau"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), atol=1e-12)
    assert here.joints == there.joints
    with refused(RecordingError, "no-column", "a table", "torque"):
        dynid.Recording.from_frame(frame.drop(columns=["tau1", "tau2", "tau3"]), robot=robot)


def test_lists_and_tables_are_signals_of_a_recording():
    pandas = pytest.importorskip("pandas")
    q = np.arange(12.0).reshape(6, 2)
    plain = dynid.Recording(np.arange(6.0), q, -q, joints=("a", "b"))
    table = pandas.DataFrame({"t": plain.t, "a": q[:, 0], "b": q[:, 1]})
    for t, positions, torques in ((plain.t.tolist(), q.tolist(), (-q).tolist()),
                                  (table["t"], table[["a", "b"]], -table[["a", "b"]])):
        found = dynid.Recording(t, positions, torques, joints=("a", "b"))
        np.testing.assert_array_equal(found.tau, plain.tau)
        assert found[2:].rate == plain[2:].rate
    with refused(RecordingError, "joints-do-not-fit", "1 joints", "2 columns"):
        dynid.Recording(plain.t, q, q, joints=("a",))


@pytest.mark.parametrize("call", [
    lambda robot, samples, estimate: dynid.Robot.load(None), lambda robot, samples, estimate: dynid.read(robot),
    lambda robot, samples, estimate: dynid.read("log.csv", robot="robot.urdf"),
    lambda robot, samples, estimate: dynid.prepare("log.csv"), lambda robot, samples, estimate: dynid.Model("x.urdf"),
    lambda robot, samples, estimate: dynid.make_terms("x.urdf"),
    lambda robot, samples, estimate: dynid.verdict(estimate, "log.csv"),
    lambda robot, samples, estimate: dynid.verdict(robot, samples),
    lambda robot, samples, estimate: estimate.predict(samples.q),
    lambda robot, samples, estimate: estimate.score("log.csv"), lambda robot, samples, estimate: dynid.load(3),
    lambda robot, samples, estimate: dynid.run("robot.urdf"),
    lambda robot, samples, estimate: dynid.base_parameters(robot),
    lambda robot, samples, estimate: dynid.excite("robot.urdf"),
    lambda robot, samples, estimate: dynid.payload(robot, samples),
    lambda robot, samples, estimate: dynid.payload(estimate, "log.csv"),
    lambda robot, samples, estimate: dynid.payload(estimate, [samples, "log.csv"]),
    lambda robot, samples, estimate: dynid.write_report(estimate),
    lambda robot, samples, estimate: dynid.write_report(estimate, "report.html"),
    lambda robot, samples, estimate: dynid.Recording.from_frame({"time": [0.0, 1.0], "q1": [0.0, 1.0]}),
    lambda robot, samples, estimate: dynid.compare("a", estimate),
    lambda robot, samples, estimate: dynid.read("log.csv", robot),
    lambda robot, samples, estimate: dynid.read("log.csv", "arm.urdf"),
    lambda robot, samples, estimate: dynid.Recording.from_frame(estimate.to_frame(), robot="arm.urdf"),
    lambda robot, samples, estimate: dynid.Recording.from_frame(estimate.to_frame(), robot),
    lambda robot, samples, estimate: dynid.Model(robot, "viscous"),
    lambda robot, samples, estimate: dynid.Robot("arm.urdf"),
    lambda robot, samples, estimate: dynid.Robot()])
def test_an_argument_of_another_type_is_one_sentence_with_a_call_that_works(call):
    robot = dynid.Robot.load("arm3r")
    model = dynid.Model(robot, dynid.make_terms(robot, friction="viscous,coulomb"))
    assert {"Fv1", "Fc1"} <= {item.name for item in model.parameters}
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    samples = dynid.Samples.from_arrays(q, dq, ddq, q, rate=100.0)
    with refused(dynid.ModelError, "wrong-type", "call "):
        call(robot, samples, dynid.identify(model, samples, method="ols"))


def test_an_estimate_predicts_the_torques_of_samples():
    robot = dynid.Robot.load("arm3r")
    samples = dynid.Samples.from_arrays(*np.random.default_rng(0).normal(size=(4, 200, 3)), rate=100.0)
    estimate = dynid.identify(dynid.Model(robot), samples, method="ols")
    np.testing.assert_array_equal(estimate.predict(samples), estimate.predict(samples.q, samples.dq, samples.ddq))


def test_the_kinds_of_an_argument_are_listed_once():
    with refused(dynid.ModelError, "wrong-type", "takes Mapping or str or Path or None, not Robot"):
        dynid.read("log.csv", dynid.Robot.load("arm3r"))
    with refused(dynid.ModelError, "wrong-type", "call Recording.from_frame(frame, robot=robot)"):
        dynid.Recording.from_frame(None, dynid.Robot.load("arm3r"))


def test_a_misspelt_name_is_answered_with_the_similar_one_and_a_strange_one_with_the_list(tmp_path, monkeypatch):
    robot = dynid.Robot.load("arm3r")
    samples = dynid.Samples.from_arrays(*np.random.default_rng(0).normal(size=(4, 200, 3)), rate=100.0)
    with refused(dynid.ModelError, "unknown-method", "'wsl'; did you mean 'wls'?"):
        dynid.identify(dynid.Model(robot), samples, method="wsl")
    with refused(dynid.ModelError, "unknown-method", "there are auto, ols, wls"):
        dynid.identify(dynid.Model(robot), samples, method="magic")
    with refused(dynid.RobotError, "unknown-robot", "'ur1O'; did you mean 'ur10'?"):
        dynid.Robot.load("ur1O")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "arm3r").mkdir()  # does not hide the built-in robot
    with refused(dynid.RobotError, "unknown-robot", "it is a folder: give the .urdf"):
        dynid.Robot.load("mine")
    assert dynid.Robot.load("arm3r").dof == 3


def test_a_file_is_not_the_folder_of_a_result(tmp_path):
    (tmp_path / "log.csv").write_text("t,q\n")
    with refused(dynid.DynidError, "no-result", "log.csv"):
        dynid.load(tmp_path / "log.csv")
