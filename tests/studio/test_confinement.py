"""No file that is uploaded, and no setting, makes the studio read another file or run a program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import pytest
from studio_client import Client, log_of, urdf

from dynid import Robot
from dynid.runs.result_folder import write_manifest
from dynid.studio.confinement import Confinement
from dynid.studio.server import Opened

SECRET = "secret-of-another-folder"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files that are nobody's business, and the workspace inside it."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.urdf").write_text(urdf(SECRET))
    (folder / "secret.csv").write_text(f"t,{SECRET}\n0,1\n")
    (folder / "secret.stl").write_text(f"solid {SECRET}\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
                                       "vertex 0 1 0\nendloop\nendfacet\nendsolid\n")
    (folder / "program.py").write_text(f"open({str(folder / 'ran')!r}, 'w').close()\n")
    return folder


@pytest.fixture(scope="module")
def client(opened: Opened, place: Path) -> Iterator[Client]:
    with closing(Client(opened)) as found:
        found.upload("arm.urdf", "robot", urdf())
        found.upload("log.csv", "log", log_of(Robot.load(str(place / "secret.urdf")), place / "log.csv").read_bytes())
        yield found


@pytest.mark.parametrize(("settings", "where"), [
    ({"robot": "{place}/secret.urdf"}, "robot"), ({"robot": "../secret.urdf"}, "robot"),
    ({"robot": "files/../../secret.urdf"}, "robot"), ({"robot": "files/../run.toml"}, "robot"),
    ({"robot": "<robot name='x'/>"}, "robot"), ({"robot": "file:///etc/passwd.urdf"}, "robot"),
    ({"robot": "nobody"}, "robot"),
    ({"logs": ["{place}/secret.csv"]}, "logs"), ({"logs": ["../secret.csv"]}, "logs"),
    ({"logs": [["log.csv", "../secret.csv"]]}, "logs"), ({"logs": [{"file": "/etc/passwd"}]}, "logs"),
    ({"validate_on": ["/etc/passwd"]}, "validate_on"), ({"logs": ["http://127.0.0.1:1/x.csv"]}, "logs"),
    ({"log": {"position": {"file": "../../secret.csv"}}}, "log.position"),
    ({"log": {"torque": {"file": "/etc/passwd"}}}, "log.torque"),
    ({"logs": [{"file": "log.csv", "torque": {"file": "../../{stem}.csv"}}]}, "log.torque"),
    ({"model": {"python": "{place}/program.py"}}, "model.python"), ({"model": {"python": "log.csv"}}, "model.python"),
    ({"prior": "{place}"}, "prior"), ({"prior": "results/../../.."}, "prior"),
])
def test_settings_that_name_other_files_are_refused(client: Client, place: Path, settings: dict, where: str) -> None:
    filled = json.loads(json.dumps(settings).replace("{place}", str(place)))
    answer = client.settings(**{"robot": "arm.urdf", "logs": ["log.csv"], **filled})
    assert answer.status_code == 422 and answer.json()["error"]["where"] == where, answer.text
    assert SECRET not in answer.text and not (place / "ran").exists()
    assert SECRET not in str(client.state())


def test_a_run_file_of_the_folder_that_was_changed_by_others_is_checked_again(client: Client, opened: Opened,
                                                                              place: Path) -> None:
    client.settings(robot="arm.urdf", logs=["log.csv"])
    path = opened.studio.workspace.folder / "run.toml"
    before = path.read_text()
    path.write_text('robot = "../secret.urdf"\nlogs = ["files/log.csv"]\n[model]\npython = "../program.py"\n')
    for answer in (client.task("robot"), client.task("log", log=0)):
        assert answer.status_code == 422 and SECRET not in answer.text
    job = client.job("run")
    assert job["state"] == "failed" and job["error"]["where"] in ("robot", "model.python")
    assert not (place / "ran").exists()
    path.write_text(before)


def test_a_prior_that_names_a_python_file_is_refused(client: Client, opened: Opened, place: Path) -> None:
    folder = opened.studio.workspace.folder / "files" / "pr"
    folder.mkdir()
    (folder / "evil.py").write_text(f"open({str(place / 'ran')!r}, 'w').close()\n")
    (folder / "run.toml").write_text('robot = "arm3r"\nlogs = ["x.csv"]\n[model]\npython = "evil.py"\n')
    (folder / "parameters.toml").write_text("")
    (folder / "estimate.npz").write_bytes(b"")
    write_manifest(folder)
    answer = client.settings(robot="arm.urdf", logs=["log.csv"], prior="files/pr")
    assert answer.status_code == 422 and answer.json()["error"]["where"] == "prior"
    assert "evil.py" in answer.text
    client.settings(robot="arm.urdf", logs=["log.csv"])
    path = opened.studio.workspace.folder / "run.toml"
    path.write_text('prior = "files/pr"\n' + path.read_text())  # as if it had come there another way
    job = client.job("run")
    assert job["state"] == "failed" and not (place / "ran").exists()
    client.settings(robot="arm.urdf", logs=["log.csv"])


@pytest.mark.parametrize("name", ["../../secret.urdf", "{place}/secret.urdf", "../session.json", "../files/arm.urdf",
                                  "/dev/stdin", "/dev/zero", "/dev/fd/0", "/proc/self/environ", "/proc/self/fd/0",
                                  "/proc/self/maps", "/sys/kernel/uevent_helper", "C:\\\\secret.urdf"])
def test_a_robot_table_names_a_file_beside_it(client: Client, place: Path, name: str) -> None:
    client.upload("table.toml", "robot", f'convention = "urdf"\nurdf = "{name}"\n'.replace("{place}", str(place)))
    for answer in (client.settings(robot="table.toml"), client.task("robot", candidate="table.toml")):
        assert answer.status_code == 422 and SECRET not in answer.text
        assert "not in the same folder" in answer.json()["error"]["sentence"], answer.text
    assert client.task("robot", candidate="arm.urdf").status_code == 200  # the worker still answers


def test_a_robot_table_beside_its_urdf_is_read(client: Client) -> None:
    client.upload("table.toml", "robot", 'convention = "urdf"\nurdf = "arm.urdf"\n')
    assert client.task("robot", candidate="table.toml").status_code == 200


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/mem", "/proc/self/environ", "/proc/1/maps", "/sys/kernel/mm",
                                  "/dev/tty"])
def test_devices_and_processes_are_outside_the_limits_of_a_worker(tmp_path: Path, path: str) -> None:
    with pytest.raises(PermissionError, match="uploaded"):
        Confinement(tmp_path)._audit("open", (path, "r", 0))
    Confinement(tmp_path)._audit("open", (os.devnull, "w", 0))


def test_the_secret_of_the_cookie_is_not_read(client: Client, tmp_path: Path) -> None:
    """Though it is in the studio's folder."""
    (tmp_path / "session.json").touch()
    with pytest.raises(PermissionError, match="uploaded"):
        Confinement(tmp_path)._audit("open", (str(tmp_path / "session.json"), "r", 0))


@pytest.mark.parametrize("mesh", ["{place}/secret.stl", "file://{place}/secret.stl", "../../secret.stl",
                                  "package://x/../../secret.stl"])
def test_a_mesh_outside_is_not_found(client: Client, place: Path, opened: Opened, mesh: str) -> None:
    visual = f'<visual><geometry><mesh filename="{mesh}"/></geometry></visual>'.replace("{place}", str(place))
    client.upload("drawn.urdf", "robot", urdf("drawn", visual))
    client.settings(robot="drawn.urdf")
    visuals = client.task("robot").json()["visuals"]
    assert [one["mesh"] for one in visuals] == [None] and "not uploaded" in visuals[0]["problem"]
    assert not (opened.studio.workspace.folder / "meshes").exists()


def test_a_mesh_that_was_uploaded_is_found_by_its_tail(client: Client, place: Path) -> None:
    client.upload("meshes/secret.stl", "mesh", (place / "secret.stl").read_bytes())
    visual = '<visual><geometry><mesh filename="package://arm_description/meshes/secret.stl"/></geometry></visual>'
    client.upload("drawn.urdf", "robot", urdf("drawn", visual))
    client.settings(robot="drawn.urdf")
    (one,) = client.task("robot").json()["visuals"]
    body = client.get(f"/api/meshes/{one['mesh']}").content
    points, triangles = np.frombuffer(body[:8], "<u4")
    assert (points, triangles) == (3, 1) and len(body) == 8 + 12 * 3 + 12
    assert sorted(map(tuple, np.frombuffer(body[8:44], "<f4").reshape(3, 3))) == [(0, 0, 0), (0, 1, 0), (1, 0, 0)]
    client.delete("/api/files/meshes/secret.stl")


@pytest.mark.parametrize(("name", "text"), [
    ("include.xml", '<mujoco><include file="{place}/secret.urdf"/><worldbody/></mujoco>'),
    ("entity.urdf", '<!DOCTYPE r [<!ENTITY x SYSTEM "file://{place}/secret.csv">]><robot name="&x;"/>'),
    ("entity.xml", '<!DOCTYPE r [<!ENTITY x SYSTEM "file://{place}/secret.csv">]><mujoco model="&x;"/>')])
def test_robot_files_that_include_others(client: Client, place: Path, name: str, text: str) -> None:
    client.upload(name, "robot", text.replace("{place}", str(place)))
    client.settings(robot=name)
    answer = client.task("robot")
    assert answer.status_code == 422 and SECRET not in answer.text


@pytest.mark.parametrize("kind", ["external link", "external storage", "virtual"])
@pytest.mark.parametrize("name", ["made.h5", "l.csv", "l.nc", "l.npz", "l"])
def test_an_array_file_that_takes_numbers_from_elsewhere(client: Client, place: Path, kind: str, name: str) -> None:
    path = place / "made.h5"
    with h5py.File(place / "other.h5", "w") as other:
        other["q"] = np.ones((50, 2))
    with h5py.File(path, "w") as file:
        file["t"], file["tau"] = np.arange(50) / 100.0, np.ones((50, 2))
        if kind == "external link":
            file["q"] = h5py.ExternalLink(str(place / "other.h5"), "/q")
        elif kind == "external storage":
            file.create_dataset("q", (2, 2), "u1", external=[(str(place / "secret.csv"), 0, 4)])
        else:
            layout = h5py.VirtualLayout((50, 2), dtype=float)
            layout[:] = h5py.VirtualSource(str(place / "other.h5"), "q", (50, 2))
            file.create_virtual_dataset("q", layout)
    client.upload(name, "log", path.read_bytes())
    answer = client.settings(robot="arm.urdf", logs=[name])
    assert answer.status_code == 422 and "other files" in answer.json()["error"]["sentence"]
    assert str(place) not in answer.text


def test_a_growing_file_lies_in_the_folder(client: Client, place: Path) -> None:
    client.settings(robot="arm.urdf", logs=["log.csv"])
    for source in ("tail:../../secret.csv", f"tail:{place}/secret.csv", "tail:/etc/passwd", "udp:80", "udp:x", "log:7",
                   "nothing"):
        job = client.job("live", source=source)
        assert job["state"] == "failed" and job["error"]["where"] in ("source", "logs") and SECRET not in str(job)


@pytest.mark.parametrize("result", ["../../secret", "20260101-000000-run", "", 7, "20260101-000000-run/../.."])
def test_results_are_named_by_their_ids(client: Client, result: object) -> None:
    job = client.job("code", result=result, languages=["c"])
    assert job["state"] == "failed" and job["error"]["where"] == "result"


def test_packages_outside_the_environment_may_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment that uses the user's own packages: numpy is in none of the folders of this Python."""
    monkeypatch.setattr("sys.prefix", str(tmp_path / "environment"))
    monkeypatch.setattr("sys.base_prefix", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / name))
    (tmp_path / "workspace").mkdir()
    confinement = Confinement(tmp_path / "workspace")
    for package in (np, h5py):
        confinement._audit("open", (package.__file__, "r", 0))
    with pytest.raises(PermissionError):
        confinement._audit("open", (str(tmp_path / "secret.csv"), "r", 0))
