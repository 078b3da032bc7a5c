"""The other jobs: methods compared, a motion searched for, a payload found, a stream watched, actuators found."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio_client import Client, log_of, served, urdf

from dynid import Model, Robot, make_terms
from dynid.excitation import FourierSeries
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import inertia as ten
from dynid.studio.server import Opened

LOAD = 1.5  # kg, at the lower link's frame


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with served(tmp_path_factory.mktemp("work") / "workspace") as found:
        yield found


@pytest.fixture(scope="module")
def client(opened: Opened, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("data")
    (folder / "arm.urdf").write_text(urdf())
    robot = Robot.load(str(folder / "arm.urdf"))
    log_of(robot, folder / "log.csv", seconds=12.0)
    loaded = robot.with_inertias(robot.inertias + np.array(
        [np.zeros(10), ten.from_central(LOAD, [0.2, 0.0, 0.0], 1e-3 * np.eye(3))]))
    log_of(loaded, folder / "loaded.csv", seconds=12.0, seed=3)
    with closing(Client(opened)) as found:
        for name in ("arm.urdf", "log.csv", "loaded.csv"):
            found.upload(name, "robot" if name.endswith("urdf") else "log", (folder / name).read_bytes())
        assert found.settings(robot="arm.urdf", logs=["log.csv", {"file": "loaded.csv", "payload": "box"}],
                              payloads={"box": {}}, model={"friction": ["viscous", "coulomb"]}).status_code == 200
        yield found


@pytest.fixture(scope="module")
def compared(client: Client) -> str:
    job = client.job("compare", methods=["wls", "pc-wls"])
    assert job["state"] == "done", job
    return job["result"]


def test_methods_stand_side_by_side(client: Client, compared: str) -> None:
    methods = client.get(f"/api/results/{compared}/curves.json").json()["methods"]
    assert [one["name"] for one in methods] == ["wls", "pc-wls"]
    for one in methods:
        assert 0.0 < one["relative_error"] < 3.0 and 0.0 < one["cross_error"] < 5.0 and one["seconds"] > 0.0
    assert methods[1]["consistent"] is True
    assert client.job("compare", methods=["nobody"])["error"]["sentence"].startswith("there is no method")
    assert client.job("compare", methods=[])["error"]["where"] == "methods"


def test_a_motion_is_searched_before_the_eyes(client: Client) -> None:
    with client.heard() as events:
        job = client.job("motion", duration=4, harmonics=3, seconds=3, friction=["viscous"], seed=1)
    assert job["state"] == "done", job
    seen = [facts for name, facts in events if name == "job" and facts["kind"] == "motion"]
    shares = [one["share"] for one in seen]
    assert shares == sorted(shares) and any(one["data"] for one in seen[:-1])
    history = job["data"]["history"]
    assert [value for _, value in history] == sorted((value for _, value in history), reverse=True)
    motion = client.get(f"/api/results/{job['result']}/motion.json").json()
    q, dq, t = (np.array(motion[key]) for key in ("q", "dq", "t"))
    assert motion["condition"] == pytest.approx(history[-1][1], rel=1e-9)
    assert np.abs(q).max() <= 2.0 and np.abs(dq[0]).max() <= 4.0
    assert np.abs(np.gradient(q[0], t) - dq[0])[2:-2].max() < 0.02 * np.abs(dq).max()
    assert len(motion["q_tree"]) == len(motion["t_replay"])


SAFE = {"floor": -0.8, "box": "-1, -1, -0.75, 1, 1, 1", "radius": 0.02, "speed": 0.1, "margin": 0.1, "full_range": True,
        "home": "0.1, -0.2"}  # for the planar arm, whose links reach 0.3 m and more from the base


@pytest.fixture(scope="module")
def unsafe(client: Client) -> dict[str, Any]:
    """The job of a motion without floor, box and radius."""
    job = client.job("motion", duration=4, harmonics=2, seconds=0.5)
    assert job["state"] == "done", job
    return job


def test_safety_inputs_reach_the_design_and_are_those_of_the_shown_command(client: Client, opened: Opened) -> None:
    """The limits of the motion, and headline and notes against those of the shown command, run as it is shown."""
    job = client.job("motion", duration=4, harmonics=2, seconds=0.5, **SAFE)
    assert job["state"] == "done", job
    motion, facts = (client.get(f"/api/results/{job['result']}/{name}").json() for name in ("motion.json",
                                                                                          "results.json"))
    q, dq = np.array(motion["q"]), np.array(motion["dq"])
    assert np.all(np.abs(dq).max(axis=1) <= [0.4 + 1e-6, 0.5 + 1e-6]) and facts["margin"] == 0.1
    assert q[:, 0] == pytest.approx([0.1, -0.2], abs=1e-5) and q[:, -1] == pytest.approx([0.1, -0.2], abs=1e-5)
    around = motion["surroundings"]
    assert around["lower"] == [-1.0, -1.0, -0.75] and around["upper"] == [1.0, 1.0, 1.0]
    assert facts["warnings"] == [] and job["grade"] == "good"
    assert_printed(motion, opened)
    assert not any("--full-range" in note for note in motion["notes"])


def test_headline_of_an_unchecked_motion_is_that_of_the_command_line(client: Client, unsafe: dict[str, Any],
                                                                     opened: Opened) -> None:
    motion = client.get(f"/api/results/{unsafe['result']}/motion.json").json()
    assert_printed(motion, opened)
    headline = next(text for text in motion["sentences"] if "NOT checked" in text)
    assert "the floor" in headline and headline.endswith("one hand on the emergency stop.")
    assert unsafe["grade"] == "fair" and unsafe["sentence"].startswith(headline)


def assert_printed(motion: dict[str, Any], opened: Opened) -> None:
    """Assert that the shown command, typed in the studio's folder, prints the headlines and notes of a motion. Heights
    are omitted, because they differ between two searches of the same time."""
    words = [*shlex.split(motion["command"])[1:], "--force"]
    done = subprocess.run([sys.executable, "-m", "dynid", *words], capture_output=True, text=True, check=True,
                          cwd=opened.studio.workspace.folder, env={**os.environ, "COLUMNS": "2000"})
    lines = [line.strip() for line in done.stdout.splitlines()]
    heads = lines[:next(i for i, line in enumerate(lines) if "condition number" in line)]
    notes = [line.removeprefix("Note: ").removesuffix(".") for line in lines if line.startswith("Note: ")]
    for printed, shown in ((heads, motion["sentences"]), (notes, motion["notes"])):
        assert [text for text in printed if "lowest" not in text] == [text for text in shown if "lowest" not in text]


def test_unchecked_motion_is_downloaded_only_with_confirmation(client: Client, unsafe: dict[str, Any],
                                                               opened: Opened) -> None:
    """Both motion files are refused with the warnings; so are those of a result that was stored without warnings."""
    meta = opened.studio.workspace.folder / "results" / unsafe["result"] / "studio.json"
    warnings = json.loads(meta.read_text())["warnings"]
    for name in ("motion.csv", "motion.yaml"):
        address = f"/api/results/{unsafe['result']}/{name}"
        refused = client.get(address)
        assert refused.status_code == 409 and warnings[0] in refused.json()["error"]["sentence"]
        assert client.get(address, params={"confirmed": "no"}).status_code == 409
        assert client.get(address, params={"confirmed": "yes"}).status_code == 200
    kept = meta.read_text()
    meta.write_text(json.dumps({key: value for key, value in json.loads(kept).items() if key != "warnings"}))
    refused = client.get(address)
    assert refused.status_code == 409 and "not known what this motion was checked against" in refused.text
    listed = next(one for one in client.state()["results"] if one["id"] == unsafe["result"])
    assert len(listed["warnings"]) == 1
    meta.write_text(kept)


@pytest.mark.parametrize(("wrong", "where"), [
    ({"duration": -1}, "motion.duration"), ({"seconds": "x"}, "motion.seconds"),
    ({"limits": "../x.toml"}, "motion.limits"), ({"friction": ["nobody"]}, "motion.friction"),
    ({"harmonics": 1e9}, "motion.harmonics"), ({"floor": "low"}, "motion.floor"), ({"floor": 1e6}, "motion.floor"),
    ({"radius": -0.1}, "motion.radius"), ({"speed": 1.5}, "motion.speed"), ({"margin": 0.5}, "motion.margin"),
    ({"box": "0, 0, 0, 1, 1"}, "motion.box"), ({"box": "0, 0, 0, 1, 1, nan"}, "motion.box"),
    ({"home": "left"}, "motion.home"), ({"gravity": "0, 9.81"}, "motion.gravity")])
def test_a_wrong_wish_for_a_motion_is_named(client: Client, wrong: dict[str, Any], where: str) -> None:
    job = client.job("motion", **wrong)
    assert job["state"] == "failed" and job["error"]["where"] == where


def test_a_payload_is_found_with_a_result(client: Client, compared: str) -> None:
    job = client.job("payload", result=compared, log=1, frame="lower")
    assert job["state"] == "done", job
    found = client.get(f"/api/results/{job['result']}/payload.json").json()
    assert found["mass"]["value"] == pytest.approx(LOAD, rel=0.05)


def test_code_is_written(client: Client, compared: str) -> None:
    job = client.job("code", result=compared, languages=["c", "python"])
    files = next(one for one in client.state()["results"] if one["id"] == job["result"])["files"]
    assert {Path(name).suffix for name in files} == {".h", ".py"}
    assert client.job("code", result=compared, languages=["cobol"])["state"] == "failed"


def looks(client: Client, **params: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The looks at a stream, and its job at the end."""
    with client.heard() as events:
        job = client.job("live", **params)
    return [facts for name, facts in events if name == "look"], job


def test_parameters_are_watched_along_a_log(client: Client, compared: str) -> None:
    seen, job = looks(client, source="log:0", speed=6.0, watch="parameters")
    assert job["state"] == "done" and len(seen) >= 2, job
    last = seen[-1]
    reference = {name: one["value"] for name, one in
                 client.get(f"/api/results/{compared}/results.json").json()["parameters"].items()}
    for one in last["parameters"]:
        assert one["value"] == pytest.approx(reference[one["name"]], abs=max(6 * one["std"], 0.03))
    assert len(last["q"]) == 2 and len(last["q_tree"]) == 2 and last["t"] == pytest.approx(12.0, abs=0.1)


def test_a_payload_is_watched_along_a_log(client: Client, compared: str) -> None:
    seen, job = looks(client, source="log:1", speed=6.0, watch="payload", result=compared, frame="lower")
    assert job["state"] == "done", job
    assert seen[-1]["payload"]["mass"] == pytest.approx(LOAD, rel=0.1)


def test_a_push_is_watched_with_its_arrow(client: Client, compared: str, tmp_path: Path) -> None:
    """A force of 25 N down on the tip of the lower link, from 3 s on."""
    (tmp_path / "arm.urdf").write_text(urdf())
    robot = Robot.load(str(tmp_path / "arm.urdf"))
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.3 if p.nominal is None else p.nominal for p in model.parameters])
    rng = np.random.default_rng(9)
    a, b = 0.1 * rng.normal(size=(2, 2, 3))
    t = np.arange(1200) / 200.0
    motion = FourierSeries(a, b, np.zeros(2), 6.0).at(t)
    tau = model.inverse_dynamics(theta, motion.q, motion.dq, motion.ddq)
    # What the motors do against a force on the lower link's frame, 0.3 m along the upper one: -J' f.
    jacobian = np.stack([-0.3 * np.sin(motion.q[:, 0]), -0.3 * np.cos(motion.q[:, 0])], axis=1)
    tau[:, 0] -= np.where(t > 3.0, jacobian @ np.array([0.0, -25.0]), 0.0)
    write_csv(Recording(t, motion.q, tau, joints=robot.joint_names), tmp_path / "pushed.csv")
    client.upload("pushed.csv", "log", (tmp_path / "pushed.csv").read_bytes())
    settings = client.state()["settings"]
    assert client.settings(**{**settings, "logs": [*settings["logs"], "pushed.csv"]}).status_code == 200
    seen, job = looks(client, source="log:2", speed=2.0, watch="contact", result=compared)
    assert job["state"] == "done", job
    active = [one["contact"]["active"] for one in seen if one["contact"] and one["t"] < 2.9]
    assert not any(active)
    pushed = seen[-1]["contact"]
    assert pushed["active"] and pushed["link"] in robot.body_names and len(pushed["force"]) == 3
    assert len(pushed["point"]) == 3 and min(pushed["force_std"]) > 0.0


def test_a_stream_of_datagrams_is_watched(client: Client) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    over = threading.Event()

    def send() -> None:
        rng, began = np.random.default_rng(0), time.monotonic()
        a = rng.normal(size=2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            while not over.wait(0.01):
                t = time.monotonic() - began
                line = json.dumps({"t": t, "q": (a * np.sin(3 * t)).tolist(), "tau": (a * np.cos(3 * t)).tolist()})
                with suppress(OSError):
                    door.sendto(line.encode() + b"\nnonsense{\n", ("127.0.0.1", port))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        assert client.post("/api/jobs/live", json={"source": f"udp:{port}", "watch": "parameters"}).status_code == 200
        with suppress(StopIteration):
            stream = client.events()
            look = next(facts for name, facts in stream if name == "look" and facts["t"] > 0.2)
            stream.close()
        assert len(look["q"]) == 2
        assert client.state()["job"]["share"] is None
        assert client.delete("/api/jobs/current").json()["state"] == "stopped"
    finally:
        over.set()
        sender.join(5.0)


def test_actuators_of_the_robot_are_found_without_torques(client: Client, tmp_path: Path) -> None:
    """Both joints of the arm with PD drives, simulated by MuJoCo; and requests that are refused in one sentence."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "arm.urdf").write_text(urdf())
    spec = mujoco.MjSpec.from_file(str(tmp_path / "arm.urdf"))
    spec.option.timestep, spec.option.integrator = 1e-3, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for joint in spec.joints:
        joint.armature, joint.frictionloss, joint.damping[0] = 0.05, 0.2, 0.1
        drive = spec.add_actuator(target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        drive.set_to_position(kp=60.0, kv=2.0)
    model = spec.compile()
    data, rows = mujoco.MjData(model), []
    for row in range(600):
        t = row * 0.01
        data.ctrl[:] = 0.5 * np.sin(2 * np.pi * np.array([0.5, 0.8]) * t + 0.3)
        rows.append([t, *data.qpos, *data.ctrl])
        mujoco.mj_step(model, data, 10)
    np.savetxt(tmp_path / "drives.csv", rows, delimiter=",", comments="", fmt="%.9g",
               header="time,shoulder_pos,elbow_pos,shoulder_goal,elbow_goal")
    client.upload("drives.csv", "actuators", (tmp_path / "drives.csv").read_bytes())
    request = {"robot": "robot", "logs": ["drives.csv"], "law": "pd", "friction": "m1",
               "gains": {"kp": [60.0, 60.0], "kd": 2.0}, "position": ["shoulder_pos", "elbow_pos"],
               "command": ["shoulder_goal", "elbow_goal"]}
    job = client.job("actuators", **request)
    assert job["state"] == "done", job
    found = client.get(f"/api/results/{job['result']}/actuators.json").json()
    for one in found["parameters"]:
        if one["name"] in ("armature", "coulomb"):
            assert one["value"] == pytest.approx({"armature": 0.05, "coulomb": 0.2}[one["name"]], rel=0.05)
    for wrong, words in (({"logs": []}, "no log is selected"), ({"logs": ["../run.toml"]}, "there is no log"),
                         ({"gains": {"kq": 1.0}}, "has no parameter 'kq'"), ({"gains": [1]}, "numbers by name"),
                         ({"law": "hydraulic"}, "there is no drive law 'hydraulic'"), ({"delay": "x"}, "a number"),
                         ({"position": ["nowhere", "elbow_pos"]}, "nowhere")):
        job = client.job("actuators", **{**request, **wrong})
        assert job["state"] == "failed" and words in job["error"]["sentence"], job
        assert not job["error"].get("internal")
