"""What a stranger's request or file can take: time, memory, tokens; and what ends with the server."""

from __future__ import annotations

import gzip
import io
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
from browser import new_context, wait_for_reader, write_endless_log
from browser import served as process
from studio_client import Client, log_of, served, urdf

from dynid import Robot
from dynid.studio.server import Opened, TimedProtocol, opener_file

PATIENCE = 60.0  # s until a test gives up


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "arm.urdf").write_text(urdf())
    log_of(Robot.load(str(folder / "arm.urdf")), folder / "log.csv", seconds=4.0)
    return folder


@pytest.fixture(scope="module")
def opened(place: Path) -> Iterator[Opened]:
    """A studio whose logs may unpack to 64 MB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYNID_MAX_UNPACKED_MB", "64")
        with served(place / "workspace") as found:
            yield found


@pytest.fixture(scope="module")
def client(opened: Opened, place: Path) -> Iterator[Client]:
    with closing(Client(opened)) as found:
        found.upload("arm.urdf", "robot", (place / "arm.urdf").read_bytes())
        found.upload("log.csv", "log", (place / "log.csv").read_bytes())
        yield found


@pytest.fixture(scope="module")
def impatient(place: Path) -> Iterator[Opened]:
    """A studio that closes a connection without requests after a second."""
    with served(place / "impatient", idle=1) as found:
        yield found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have half a second."""
    monkeypatch.setattr(TimedProtocol, "seconds", 0.5)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def head(opened: Opened, verb: str, path: str, *more: str) -> bytes:
    lines = [f"{verb} {path} HTTP/1.1", f"Host: 127.0.0.1:{opened.door.port}", "X-Dynid: studio",
             f"Cookie: {opened.door.cookie}={opened.door.session}", *more]
    return ("\r\n".join(lines) + "\r\n").encode()


# -- requests ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sent", ["", "GET /api/st", "head", "no body", "half a body", "drip", "second"])
def test_a_request_that_does_not_arrive_ends(impatient: Opened, quick: None, sent: str) -> None:
    opened = impatient
    upload = head(opened, "POST", "/api/files?name=half.csv&role=log", "Content-Length: 100000", "")
    start = {"head": head(opened, "GET", "/api/state"), "no body": upload, "half a body": upload + bytes(1000),
             "drip": upload, "second": head(opened, "GET", "/api/nothing", "") + b"GET /api"}.get(sent, sent.encode())
    with socket.create_connection(("127.0.0.1", opened.door.port), timeout=PATIENCE) as line:
        line.sendall(start)
        line.settimeout(0.1)
        end, over = time.monotonic() + PATIENCE, False
        while not over and time.monotonic() < end:
            try:
                if sent == "drip":
                    line.sendall(b"x")
                over = line.recv(65536) == b""
            except TimeoutError:
                continue
            except OSError:
                over = True
        assert over
    until(lambda: not list(opened.studio.workspace.temporary.iterdir()))
    with closing(Client(opened)) as client:
        assert not any(one["name"] == "half.csv" for one in client.state()["files"])


def test_slow_answers_and_slow_bodies_are_no_half_requests(opened: Opened, quick: None,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of events stays open, and a body that keeps coming has the time that its bytes need."""
    monkeypatch.setattr(TimedProtocol, "slowest", 1 << 10)  # each piece gives 20 s: a busy machine sends late
    with closing(Client(opened)) as own, own.stream("GET", "/api/events") as events:
        lines = events.iter_lines()
        next(lines)

        def slowly() -> Iterator[bytes]:
            for _ in range(8):
                yield bytes(20_000)
                time.sleep(0.15)

        answer = own.post("/api/files", params={"name": "slow.bin", "role": "log"}, content=slowly())
        assert answer.status_code == 200 and answer.json()["file"]["bytes"] == 160_000
        assert next(line for line in lines if "revision" in line)


def test_many_half_requests_keep_nobody_out(opened: Opened, client: Client, quick: None) -> None:
    lines = [socket.create_connection(("127.0.0.1", opened.door.port)) for _ in range(100)]
    for line in lines:
        line.sendall(b"GET / HTTP/1.1\r\nHost: ")
    assert client.state()["revision"] >= 0
    for line in lines:
        line.settimeout(PATIENCE)
        with line:
            try:
                assert line.recv(10) == b""
            except ConnectionResetError:
                pass


def test_an_upload_that_breaks_off_leaves_nothing(opened: Opened, client: Client) -> None:
    space = opened.studio.workspace
    with socket.create_connection(("127.0.0.1", opened.door.port)) as line:
        line.sendall(head(opened, "POST", "/api/files?name=cut.csv&role=log", "Content-Length: 50000000", "")
                     + bytes(300_000))
        until(lambda: bool(list(space.temporary.iterdir())))
    until(lambda: not list(space.temporary.iterdir()))
    assert not (space.files / "cut.csv").exists()


# -- tokens --------------------------------------------------------------------------------------------
def test_a_token_lets_in_once(opened: Opened) -> None:
    token = opened.door.new_token()
    with closing(Client(opened)) as browser:
        for expected in (200, 403):
            browser.cookies.clear()
            answer = browser.get("/", params={"token": token})
            assert answer.status_code == expected and ("set-cookie" in answer.headers) == (expected == 200)


def test_the_browser_gets_a_private_file_and_no_address(place: Path, tmp_path: Path) -> None:
    """What stands in for the browser notes its arguments; the token is in the file that they name."""
    program = tmp_path / "browser"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/said.new; mv {tmp_path}/said.new {tmp_path}/said\n")
    program.chmod(0o755)
    studio = subprocess.Popen([sys.executable, "-m", "dynid", "studio", "--folder", str(tmp_path / "space")],
                              env={**os.environ, "BROWSER": str(program)}, stdout=subprocess.PIPE, text=True)
    try:
        until(lambda: (tmp_path / "said").exists())
        said = (tmp_path / "said").read_text().strip()
        assert said.startswith("file://") and "token" not in said
        page = Path(said.removeprefix("file://"))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600 and "?token=" in page.read_text()
        for one in (psutil.Process(studio.pid), *psutil.Process(studio.pid).children(recursive=True)):
            assert "token=" not in " ".join(one.cmdline())
    finally:
        studio.terminate()
        studio.wait(PATIENCE)
    assert not page.exists()


def test_a_browser_enters_by_that_file(chrome: object, opened: Opened) -> None:
    page = new_context(chrome).new_page()
    page.goto(opener_file(opened).as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.url.startswith(f"http://127.0.0.1:{opened.door.port}/") and "token" not in page.url
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.context.close()


# -- logs that are bombs, and reading that takes long ----------------------------------------------------
@cache
def gzip_bomb() -> bytes:
    """A table of five times 64 MB of text, which is 1.3 GB as numbers, whose last bytes say that it is small."""
    held = io.BytesIO()
    with gzip.GzipFile(fileobj=held, mode="wb", compresslevel=1) as file:
        file.write(b"time,q1,q2,tau1,tau2\n")
        block = b"0,0,0,0,0\n" * (1 << 20)
        for _ in range(32):
            file.write(block)
    return held.getvalue()[:-4] + (1000).to_bytes(4, "little")


def npz_bomb() -> bytes:
    """Three arrays of 32 MB, of which two fit into 64 MB."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("time", "q", "tau"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False,
                                                            "shape": (1 << 22,)})
                for _ in range(32):
                    file.write(bytes(1 << 20))
    return held.getvalue()


@pytest.mark.parametrize(("name", "bomb"), [("log.csv.gz", gzip_bomb), ("plain.csv", gzip_bomb), ("b.npz", npz_bomb)])
def test_bombs_are_refused_in_a_sentence(client: Client, opened: Opened, name: str,
                                         bomb: Callable[[], bytes]) -> None:
    assert client.upload(name, "log", bomb()).status_code == 200
    assert client.settings(robot="arm.urdf", logs=[name]).status_code == 200
    answer = client.task("log", log=0)
    assert answer.status_code == 422 and "unpacks to more than" in answer.json()["error"]["sentence"]
    assert opened.studio.reader.pid is not None
    assert psutil.Process(opened.studio.reader.pid).memory_info().rss < 1.2e9
    client.delete(f"/api/files/{name}")


@pytest.fixture
def endless(opened: Opened, client: Client) -> Iterator[None]:
    """A log that takes minutes to read."""
    write_endless_log(opened.studio.workspace.files / "endless.csv", ("shoulder", "elbow"))
    client.settings(robot="arm.urdf", logs=["log.csv"])
    run = opened.studio.workspace.folder / "run.toml"
    before = run.read_text()
    run.write_text(before.replace("log.csv", "endless.csv"))
    yield
    run.write_text(before)
    (opened.studio.workspace.files / "endless.csv").unlink()


@pytest.mark.parametrize("path", ["/api/jobs/current", "/api/tasks/current"])
def test_reading_a_log_can_be_stopped_and_keeps_nobody_waiting(opened: Opened, client: Client, endless: None,
                                                               path: str) -> None:
    found: list[object] = []

    def ask() -> None:
        with closing(Client(opened)) as other:
            found.append(other.task("log", log=0))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: bool(opened.studio._readings))
    assert client.task("robot").status_code == 200 and client.task("catalogue").status_code == 200
    assert client.settings(robot="arm.urdf", method="ols").status_code == 200
    assert not found
    assert client.delete(path).status_code == 200
    asking.join(PATIENCE)
    (answer,) = found
    assert answer.status_code == 422 and "stopped" in answer.json()["error"]["sentence"]  # type: ignore[attr-defined]
    client.settings(robot="arm.urdf", logs=["log.csv"])
    assert client.task("log", log=0).status_code == 200


def test_a_run_that_reads_a_log_can_be_stopped(opened: Opened, client: Client, endless: None) -> None:
    client.post("/api/jobs/run", json={})
    wait_for_reader(opened.studio.workspace.files / "endless.csv")
    assert client.delete("/api/jobs/current").json()["state"] == "stopped"
    assert not list(opened.studio.workspace.results.glob(".writing-*"))


# -- the end of the server -------------------------------------------------------------------------------
def test_workers_end_with_a_server_that_is_killed(place: Path, tmp_path: Path) -> None:
    """In the middle of a search for a motion, which would take a minute."""
    with process(tmp_path / "space", warm=False) as studio:
        with closing(_by_address(studio.address)) as browser:
            browser.upload("arm.urdf", "robot", (place / "arm.urdf").read_bytes())
            browser.settings(robot="arm.urdf")
            browser.post("/api/jobs/motion", json={"duration": 5, "seconds": 60})
            until(lambda: browser.state()["job"]["sentence"] != "starting")
        workers = psutil.Process(studio.process.pid).children(recursive=True)
        assert workers
        os.kill(studio.process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
        assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("waiting", ["log", "events", "upload"])
def test_a_server_that_ends_prints_no_traceback(place: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str],
                                                waiting: str) -> None:
    """While a log is being read, while a page listens to events, or while a file arrives."""
    folder = tmp_path / "space"
    with process(folder) as studio, closing(_by_address(studio.address)) as browser:
        if waiting == "log":
            browser.upload("arm.urdf", "robot", (place / "arm.urdf").read_bytes())
            browser.upload("log.csv", "log", (place / "log.csv").read_bytes())
            assert browser.settings(robot="arm.urdf", logs=["log.csv"]).status_code == 200
            (folder / "files" / "log.csv").unlink()
            os.mkfifo(folder / "files" / "log.csv")  # a log that never ends
        server = psutil.Process(studio.process.pid)
        temporary = next((folder / "tmp").iterdir())
        stored = len(list(temporary.iterdir()))
        began, ended = threading.Event(), threading.Event()

        def ask() -> None:
            with suppress(httpx.TransportError):
                if waiting == "log":
                    browser.task("log", log=0)
                elif waiting == "events":
                    with browser.stream("GET", "/api/events") as answer:
                        for _ in answer.iter_lines():
                            began.set()
                else:
                    browser.post("/api/files", params={"name": "slow.csv", "role": "log"}, content=slowly(ended))

        asking = threading.Thread(target=ask)
        asking.start()
        until({"log": lambda: len(server.children()) == 3, "events": began.is_set,
               "upload": lambda: len(list(temporary.iterdir())) > stored}[waiting])
        assert asking.is_alive()
        studio.process.terminate()
        studio.process.wait(PATIENCE)
        ended.set()
        asking.join(PATIENCE)
    assert "Traceback" not in capfd.readouterr().err


def slowly(ended: threading.Event) -> Iterator[bytes]:
    """A body that does not end before the server does."""
    yield b"time,q1\n"
    ended.wait(PATIENCE)


def _by_address(address: str) -> Client:
    """A browser that opens a printed address."""
    found = Client.__new__(Client)
    origin = "/".join(address.split("/", 3)[:3])
    super(Client, found).__init__(base_url=origin, headers={"X-Dynid": "studio"}, timeout=120.0)
    assert found.get(address).status_code == 200
    return found


def test_the_studio_of_this_module_is_still_there(opened: Opened, place: Path, tmp_path: Path) -> None:
    with served(tmp_path / "other") as other, closing(Client(other)) as client:
        assert client.state()["files"] == []
    assert not other.studio.workspace.temporary.exists()
