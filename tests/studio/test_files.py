"""What may be uploaded: names, sizes, sums; and requests that are too large or no JSON."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from refusals import refused
from studio_client import Client, served

from dynid.errors import DynidError
from dynid.studio.server import Opened, open_studio
from dynid.studio.workspace import Caps

BAD = ["../x.csv", "..", ".", "", ".hidden", "a/b.csv", "/etc/passwd", "a\\b.csv", "C:\\x.csv", "a\0.csv", "x\n.csv",
       "a/../x.csv", "<script>.csv", "x" * 200 + ".csv", "trailing.", "trailing ", "%2e%2e/x.csv", "..%2fx.csv",
       "con:stream.csv", "~root"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with served(tmp_path_factory.mktemp("files"), caps=Caps(file=1000, total=2500)) as found:
        yield found


@pytest.fixture
def client(opened: Opened) -> Iterator[Client]:
    with closing(Client(opened)) as found:
        for file in found.state()["files"]:
            found.delete(f"/api/files/{file['name']}")
        yield found


def held(opened: Opened) -> list[str]:
    files = opened.studio.workspace.files
    return sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", BAD)
def test_bad_names_are_refused(client: Client, opened: Opened, name: str) -> None:
    before = sorted(opened.studio.workspace.folder.rglob("*"))
    answer = client.upload(name, "log", b"t,q,tau\n")
    assert answer.status_code == 400 and answer.json()["error"]["where"].startswith("file ")
    assert sorted(opened.studio.workspace.folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["../x.stl", "meshes/../../x.stl", "meshes//x.stl", "a/b/c/d/e/f/g/h/i.stl",
                                  "meshes/.x.stl"])
def test_folders_of_meshes_stay_inside(client: Client, opened: Opened, name: str) -> None:
    assert client.upload(name, "mesh", b"solid x").status_code == 400
    assert held(opened) == []


@pytest.mark.parametrize("path", [
    "/api/files/..%2fstudio.json", "/api/files/%2e%2e/studio.json", "/api/files/%2e%2e%2fstudio.json",
    "/api/files/..%5cstudio.json", "/api/files/%252e%252e%252fstudio.json", "/api/files//etc/passwd",
    "/api/files/%2fetc%2fpasswd", "/static/..%2fapp.py", "/static/%2e%2e%2fapp.py", "/static/../app.py",
    "/api/results/..%2f..%2f/studio.json", "/api/results/%2e%2e/studio.json", "/api/meshes/..%2f..%2fstudio.json",
    "/api/results/20260101-000000-run/..%2f..%2fstudio.json"])
def test_no_path_of_a_request_leads_outside(opened: Opened, client: Client, path: str) -> None:
    """Sent as they stand: a client would tidy them up first."""
    cookie = f"{opened.door.cookie}={opened.door.session}"
    for verb in ("GET", "DELETE"):
        with socket.create_connection(("127.0.0.1", opened.door.port), timeout=60) as line:
            line.sendall(f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1:{opened.door.port}\r\nCookie: {cookie}\r\n"
                         "X-Dynid: studio\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: line.recv(65536), b""))
        assert int(answer.split()[1]) in (400, 404, 405), answer[:200]
        assert b"root:" not in answer and b"Starlette" not in answer and b'"revision"' not in answer
    assert client.state()["revision"] >= 0


def test_a_link_that_leads_outside_is_not_followed(client: Client, opened: Opened) -> None:
    (opened.studio.workspace.files / "link.csv").symlink_to(opened.studio.workspace.folder / "studio.json")
    try:
        assert client.get("/api/files/link.csv").status_code == 400
    finally:
        (opened.studio.workspace.files / "link.csv").unlink()


def test_files_come_back_as_they_were(client: Client) -> None:
    content = bytes(range(256))
    answer = client.upload("log (1).csv", "log", content)
    assert answer.json()["file"] == {"name": "log (1).csv", "path": "files/log (1).csv", "bytes": 256, "role": "log",
                                     "same_as": None}
    assert client.upload("copy.csv", "log", content).json()["file"]["same_as"] == "log (1).csv"
    assert client.delete("/api/files/copy.csv").status_code == 200
    back = client.get("/api/files/log%20(1).csv")
    assert back.content == content and back.headers["content-disposition"].startswith("attachment")
    assert client.upload("meshes/a/link1.stl", "mesh", b"x").status_code == 200
    assert client.get("/api/files/meshes/a/link1.stl").content == b"x"
    assert client.delete("/api/files/meshes/a/link1.stl").status_code == 200
    assert client.get("/api/files/meshes/a/link1.stl").status_code == 404


def test_a_file_over_the_cap_is_refused_and_not_kept(client: Client, opened: Opened) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(11):
            yield bytes(100)

    for content in (bytes(1001), pieces()):  # with its length before it, and without
        answer = client.post("/api/files", params={"name": "big.csv", "role": "log"}, content=content)
        assert answer.status_code == 413 and "larger than" in answer.json()["error"]["sentence"]
    assert held(opened) == [] and not list(opened.studio.workspace.temporary.iterdir())


def test_a_failed_upload_leaves_the_earlier_file(client: Client) -> None:
    client.upload("a.csv", "log", b"old")
    assert client.upload("a.csv", "log", bytes(1001)).status_code == 413
    assert client.get("/api/files/a.csv").content == b"old"


def test_the_sum_of_all_files_has_a_limit(client: Client, opened: Opened) -> None:
    for name in ("a.csv", "b.csv"):
        assert client.upload(name, "log", bytes(1000)).status_code == 200
    assert client.upload("c.csv", "log", bytes(501)).status_code == 413
    assert client.upload("c.csv", "log", bytes(500)).status_code == 200
    assert client.upload("a.csv", "log", bytes(900)).status_code == 200  # in the place of the old one
    assert held(opened) == ["a.csv", "b.csv", "c.csv"]


def test_roles_and_programs_are_refused(client: Client) -> None:
    assert client.upload("a.csv", "other", b"").status_code == 400
    answer = client.upload("arm.xacro", "robot", b"<robot/>")
    assert answer.status_code == 400 and "xacro" in answer.json()["error"]["sentence"]


def test_requests_have_a_size_and_are_json(client: Client) -> None:
    assert client.put("/api/run", content=b"{" + b" " * (1 << 20) + b"}").status_code == 413
    for content in (b"{", b"[]", b"[" * 100_000, b"\xff", b"1"):
        assert client.put("/api/run", content=content).status_code == 400
    assert client.put("/api/run", json={"settings": {}}).status_code == 400
    assert client.post("/api/tasks/nothing", json={}).status_code == 404
    assert client.post("/api/jobs/nothing", json={}).status_code == 404
    assert client.delete("/api/jobs/current").status_code == 404


def test_two_studios_do_not_share_a_folder(opened: Opened) -> None:
    with refused(DynidError, "studio-in-use"):
        open_studio(opened.studio.workspace.folder)
