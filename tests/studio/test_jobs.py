"""From upload to result: progress, Stop, faults, several pages, and a server that starts again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import numpy as np
import psutil
import pytest
from studio_client import Client, log_of, served, urdf

from dynid import Robot, RunSettings
from dynid.runs.identification import run
from dynid.runs.results import parameters_text
from dynid.studio.server import Opened
from dynid.studio.worker import TASKS
from dynid.studio.workspace import EMPTY

NAME = "&lt;script&gt;alert(1)&lt;/script&gt;"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "arm.urdf").write_text(urdf(NAME))
    log_of(Robot.load(str(folder / "arm.urdf")), folder / "log.csv")
    log_of(Robot.load(str(folder / "arm.urdf")), folder / "other.csv", seed=1)
    return folder


@pytest.fixture(scope="module")
def client(opened: Opened, place: Path) -> Iterator[Client]:
    with closing(Client(opened)) as found:
        for name, role in (("arm.urdf", "robot"), ("log.csv", "log"), ("other.csv", "validation")):
            found.upload(name, role, (place / name).read_bytes())
        yield found


def chosen(client: Client, **more: object) -> None:
    answer = client.settings(robot="arm.urdf", logs=["log.csv"], validate_on=["other.csv"], method="pc-wls",
                             model={"friction": ["viscous", "coulomb"]}, **more)
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def result(client: Client) -> str:
    """A run whose events were heard to its end."""
    chosen(client)
    with pytest.MonkeyPatch.context() as patch, client.heard() as events:
        patch.setattr("dynid.studio.jobs._MIN_EVENT_INTERVAL", 0.0)  # a fast machine would send few events
        job = client.job("run")
    shares = [facts["share"] for name, facts in events if name == "job" and facts["kind"] == "run"]
    assert job["state"] == "done", job
    assert len(shares) > 5 and shares == sorted(shares) and shares[-1] == 1.0 and len(set(shares)) > 5
    return job["result"]


def test_the_empty_settings_are_those_of_a_run() -> None:
    full = RunSettings(robot="x", logs=("y",)).model_dump(mode="json")
    assert all(full[key] == value for key, value in EMPTY.items() if key not in ("robot", "logs"))


def test_the_equivalent_run_file_gives_the_same_numbers(client: Client, opened: Opened, result: str) -> None:
    folder = opened.studio.workspace.results / result
    again = run(RunSettings.load(folder / "run.toml"))
    assert parameters_text(again) == client.get(f"/api/results/{result}/parameters.toml").text
    assert client.state()["command"].startswith("dynid identify ")


def test_curves_are_those_of_the_run(client: Client, result: str) -> None:
    curves = client.get(f"/api/results/{result}/curves.json").json()
    facts = client.get(f"/api/results/{result}/results.json").json()
    assert [log["role"] for log in curves["logs"]] == ["identification", "validation"]
    for log in curves["logs"]:
        measured, predicted, residual = (np.array(log[key]) for key in ("measured", "predicted", "residual"))
        assert measured.shape[0] == 2
        assert np.allclose(measured - predicted, residual, atol=2e-4 * np.abs(measured).max())
        assert len(log["t_replay"]) == len(log["q_tree"]) and len(log["q_tree"][0]) == 2
    assert curves["logs"][0]["relative_error"] == pytest.approx(facts["relative_error"], rel=1e-6)
    assert {one["name"]: one["value"] for one in curves["parameters"]} == {
        name: one["value"] for name, one in facts["parameters"].items()}
    assert len(curves["friction"]) == 2 and curves["verdict"]["grade"] in ("good", "fair", "poor")
    friction = curves["friction"][0]  # the truth has 0.3 N m and 0.3 N m s/rad
    fast = int(np.argmax(friction["dq"]))
    assert friction["torque"][fast] == pytest.approx(0.3 + 0.3 * friction["dq"][fast], rel=0.1)


def test_robot_files_come_back_with_the_identified_values(client: Client, result: str, tmp_path: Path) -> None:
    for name in ("robot.urdf", "robot.xml"):
        (tmp_path / name).write_bytes(client.get(f"/api/results/{result}/{name}").content)
        found = Robot.load(str(tmp_path / name))
        assert found.inertias[:, 9].sum() > 0.5 and found.dof == 2


def test_script_in_a_robots_name_stays_text(client: Client, result: str) -> None:
    state = client.get("/api/state")
    assert state.headers["content-type"].startswith("application/json")
    assert next(one for one in state.json()["results"] if one["id"] == result)["robot"] == "<script>alert(1)</script>"
    report = client.get(f"/api/results/{result}/report.html").text
    assert "<script>alert(1)" not in report and "alert(1)" in report


def test_the_server_loads_no_arrays() -> None:
    code = "import dynid.studio.server, dynid.cli.studio, sys; print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "False"]


def test_stop_ends_at_once_and_the_next_job_works(client: Client, opened: Opened, result: str) -> None:
    before = [one["id"] for one in client.state()["results"]]
    client.post("/api/jobs/motion", json={"duration": 5, "seconds": 60})
    while client.state()["job"]["sentence"] == "starting":
        time.sleep(0.05)
    assert client.post("/api/jobs/run", json={}).status_code == 409
    worker = opened.studio.worker.pid
    assert worker is not None
    assert client.delete("/api/jobs/current").json()["state"] == "stopped"
    assert not psutil.pid_exists(worker) or psutil.Process(worker).status() == psutil.STATUS_ZOMBIE
    assert [one["id"] for one in client.state()["results"]] == before
    assert client.state()["job"]["state"] == "stopped"
    assert client.job("code", result=result, languages=["c"])["state"] == "done"


def test_a_worker_that_is_killed_is_a_sentence(client: Client, opened: Opened, result: str) -> None:
    client.post("/api/jobs/motion", json={"duration": 5, "seconds": 60})
    while client.state()["job"]["sentence"] == "starting":
        time.sleep(0.05)
    assert opened.studio.worker.pid is not None
    os.kill(opened.studio.worker.pid, signal.SIGKILL)
    job = client.finished()
    assert job["state"] == "failed" and "ended unexpectedly" in job["error"]["sentence"]
    assert client.job("code", result=result, languages=["python"])["state"] == "done"
    assert opened.studio.tasks.pid is not None
    os.kill(opened.studio.tasks.pid, signal.SIGKILL)
    assert client.task("robot").status_code in (200, 500)
    assert client.task("robot").status_code == 200


def test_two_pages_see_each_others_changes(client: Client, opened: Opened) -> None:
    with closing(Client(opened)) as other:
        first, second = client.state(), other.state()
        assert first == second
        assert client.settings(robot="arm.urdf", method="ols").status_code == 200
        late = other.put("/api/run", json={"revision": second["revision"], "settings": {"robot": "arm3r"}})
        assert late.status_code == 409 and late.json()["settings"]["method"] == "ols"
        assert other.state() == client.state() and other.state()["settings"]["robot"] == "files/arm.urdf"


@pytest.mark.parametrize(("settings", "where"), [
    ({"methode": "ols"}, "methode"), ({"blocks": 0}, "blocks"), ({"simulation": {"horizon": -1}}, "simulation.horizon"),
    ({"log": {"sign": 3}}, "log"), ({"log": {"torque_colum": 3}}, "log.torque_colum"),
    ({"log": {"unit": "inch"}}, "log.unit"), ({"log": {"preset": "nobody"}}, "log")])
def test_a_wrong_setting_is_named(client: Client, settings: dict, where: str) -> None:
    answer = client.settings(robot="arm.urdf", logs=["log.csv"], **settings)
    assert answer.status_code == 422 and answer.json()["error"]["where"] == where, answer.text


@pytest.mark.parametrize("settings", [
    {"robot": 5}, {"robot": ["arm.urdf"]}, {"robot": {"a": 1}}, {"robot": "x" * 5000}, {"robot": "a\0b.urdf"},
    {"logs": 5}, {"logs": [5]}, {"logs": [[]]}, {"logs": [[5]]}, {"logs": [{}]}, {"logs": [{"file": 5}]},
    {"logs": [{"file": []}]},
    {"logs": "log.csv"}, {"validate_on": {"a": 1}}, {"log": 5}, {"log": []}, {"log": {"position": {"file": 5}}},
    {"log": {"position": {"file": "a\0b"}}}, {"model": 5}, {"model": {"python": 5}}, {"model": {"terms": [5]}},
    {"options": 5}, {"options": {"a": {"b": [1, {"c": None}]}}}, {"gravity": "down"}, {"gravity": [1e400, 0, 0]},
    {"known": {"M1": "x"}}, {"payloads": {"x": 5}}, {"lock": {"shoulder": "x"}}, {"method": 5}, {"method": "\ud800"},
    {"prepare": 5}, {"prepare": {"cutoff": "x"}}, {"controller": 5}, {"stream_rows": 10 ** 30}, {"\ud800": 1}])
def test_nonsense_is_refused_in_a_sentence(client: Client, settings: dict) -> None:
    answer = client.put("/api/run", content=json.dumps({
        "revision": client.state()["revision"], "settings": {"robot": "arm.urdf", "logs": ["log.csv"], **settings}}))
    assert answer.status_code in (200, 400, 422), answer.text
    if answer.status_code == 200:  # kept, and then told where it is used
        for task in (client.task("robot"), client.task("log", log=0)):
            assert task.status_code in (200, 422), task.text
    else:
        assert answer.json()["error"]["sentence"]


def test_a_wrong_column_is_named_where_it_stands(client: Client) -> None:
    client.settings(robot="arm.urdf", logs=["log.csv"], log={"position": "q_{joint}", "torque": "nothing{i}"})
    answer = client.task("log", log=0)
    assert answer.status_code == 422 and answer.json()["error"]["where"] in ("log.position", "log.torque")
    offered = client.task("columns", log=0).json()
    assert offered["columns"][0] == "t" or "t" in offered["columns"][0]
    client.settings(robot="arm.urdf", logs=["log.csv"])
    log = client.task("log", log=0).json()
    assert log["rows"] == 1600 and log["guessed"]["torque"]["from"] == "guessed"
    assert set(log["guessed"]["torque"]["value"]) <= set(offered["columns"])


@pytest.mark.parametrize(("log", "where"), [
    ({"time": "q1"}, "log.time"), ({"unit": "m"}, "log.unit"), ({"joints": ["a"]}, "log.joints"),
    ({"torque": ["q1"]}, "log.torque"), ({"time": "nothing"}, "log.time"), ({"sign": [1.0]}, "log.sign")])
def test_what_a_log_does_not_fit_is_named(client: Client, log: dict, where: str) -> None:
    names = client.task("columns", log=0).json()["columns"] if client.settings(
        robot="arm.urdf", logs=["log.csv"]).status_code == 200 else []
    position, torque = names[1:3], names[-2:]
    filled = json.loads(json.dumps(log).replace("q1", position[0]))
    given = {"time": names[0], "position": position, "torque": torque, **filled}
    assert client.settings(robot="arm.urdf", logs=["log.csv"], log=given).status_code == 200
    answer = client.task("log", log=0)
    assert answer.status_code == 422 and answer.json()["error"]["where"] == where, answer.text


def test_a_row_that_is_no_number_is_named(client: Client, place: Path) -> None:
    lines = (place / "log.csv").read_text().splitlines()
    lines[5] = ",".join([*lines[5].split(",")[:-1], "broken"])
    client.upload("broken.csv", "log", "\n".join(lines))
    client.settings(robot="arm.urdf", logs=["broken.csv"])
    error = client.task("log", log=0).json()["error"]
    assert error["where"] == "log.torque" and "6" in error["sentence"]


def test_what_is_missing_is_said(client: Client) -> None:
    client.settings(robot="")
    assert client.task("robot").json()["error"]["where"] == "robot"
    client.settings(robot="arm.urdf")
    assert client.job("run")["error"]["where"] == "logs"
    assert client.task("log", log=3).status_code == 422


def test_a_server_that_starts_again_keeps_everything(place: Path) -> None:
    own = place / "own"
    own.mkdir()
    (own / "arm.urdf").write_text(urdf("own"))
    log_of(Robot.load(str(own / "arm.urdf")), own / "log.csv")
    text = 'robot = "arm.urdf"\nlogs = ["log.csv"]\nmethod = "ols"\n\n[model]\nfriction = ["viscous", "coulomb"]\n'
    (own / "run.toml").write_text(text)
    with served(own / "run.studio", own / "run.toml") as one, closing(Client(one)) as client:
        state = client.state()
        assert state["settings"]["method"] == "ols" and state["settings"]["robot"] == "../arm.urdf"
        assert client.task("robot").json()["name"] == "own"
        assert client.put("/api/run", json={"revision": state["revision"], "settings": {
            **state["settings"], "method": "wls"}}).status_code == 200
        job = client.job("run")
        assert job["state"] == "done", job
    with served(own / "run.studio", own / "run.toml") as two, closing(Client(two)) as client:
        state = client.state()
        assert state["settings"]["method"] == "wls" and [one["id"] for one in state["results"]] == [job["result"]]
        assert client.settings(robot=str(place / "arm.urdf"), logs=[]).json()["error"]["where"] == "robot"
    assert (own / "run.toml").read_text() == text
    assert json.loads((own / "run.studio" / "studio.json").read_text())["revision"] >= 2


def test_files_that_the_users_own_run_file_leads_to_are_read(place: Path) -> None:
    """A built-in robot, a log in a file of its own for every signal: none of them is uploaded."""
    own = place / "parts"
    own.mkdir()
    log_of(Robot.load("arm3r"), own / "whole.csv")
    head, *rows = [line.split(",") for line in (own / "whole.csv").read_text().splitlines()]
    for name, columns in (("log.csv", range(4)), ("log_tau.csv", range(len(head) - 3, len(head)))):
        (own / name).write_text("\n".join(",".join(row[k] for k in columns) for row in (head, *rows)) + "\n")
    (own / "run.toml").write_text('robot = "arm3r"\nlogs = ["log.csv"]\n[log]\ntime = 1\nposition = "2-4"\n'
                                  'torque = {file = "{stem}_tau.csv"}\n')
    with served(own / "run.studio", own / "run.toml") as one, closing(Client(one)) as client:
        answer = client.task("log", log=0)
        assert answer.status_code == 200 and answer.json()["rows"] == 1600, answer.text
        other = client.settings(**{**client.state()["settings"], "log": {"torque": {"file": "whole.csv"}}})
        assert other.status_code == 422 and other.json()["error"]["where"] == "log.torque"


def test_every_task_has_its_function():
    for module, name in TASKS.values():
        assert callable(getattr(import_module(f"dynid.studio.tasks.{module}"), name))
