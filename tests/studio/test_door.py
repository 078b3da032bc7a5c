"""Who is let in: token, cookie, Host, Origin, our own header; and what every answer carries."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from refusals import refused
from studio_client import Client, served

from dynid.errors import DynidError
from dynid.studio.security import Authentication
from dynid.studio.server import Opened, open_studio


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with served(tmp_path_factory.mktemp("door")) as found:
        yield found


@pytest.fixture(scope="module")
def client(opened: Opened) -> Iterator[Client]:
    with closing(Client(opened)) as found:
        yield found


def bare(opened: Opened, cookies: dict[str, str] | None = None) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{opened.door.port}", cookies=cookies)


def test_the_address_takes_connections_before_the_first_answer(tmp_path: Path) -> None:
    """Whoever opens it as soon as it is printed is not refused."""
    early = open_studio(tmp_path, warm=False)
    with early.socket, early.lock, socket.create_connection(("127.0.0.1", early.door.port), timeout=60.0):
        pass


def test_without_the_token_nothing_is_given(opened: Opened) -> None:
    with bare(opened) as stranger:
        for path in ("/", "/?token=", "/?token=wrong", "/static/index.html", "/plotly.js", "/api/state", "/api/events",
                     "/api/files/x.csv", "/api/results/20260101-000000-run/report.html", "/api/meshes/" + 32 * "0"):
            assert stranger.get(path).status_code == 403, path
        for verb, path in (("POST", "/api/files?name=a.csv&role=log"), ("PUT", "/api/run"), ("POST", "/api/jobs/run"),
                           ("POST", "/api/tasks/robot"), ("DELETE", "/api/jobs/current")):
            assert stranger.request(verb, path, headers={"X-Dynid": "studio"}, content=b"{}").status_code == 403
    assert not list(opened.studio.workspace.files.iterdir())


def test_the_token_is_exchanged_for_a_strict_cookie(opened: Opened) -> None:
    with bare(opened) as browser:
        token = opened.door.new_token()
        answer = browser.get("/", params={"token": token})
        cookie = answer.headers["set-cookie"].lower()
        assert answer.status_code == 200 and 'content="0;url=/"' in answer.text and token not in answer.text
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert browser.get("/").status_code == 200


def test_a_wrong_cookie_is_no_cookie(opened: Opened) -> None:
    for value in ("", "x", opened.door.new_token(), opened.door.session[:-1]):
        with bare(opened, {opened.door.cookie: value}) as browser:
            assert browser.get("/api/state").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "",
                                  "localhost.evil:{port}", "127.0.0.1:{port}.evil", "[::2]:{port}", "10.0.0.1:{port}"])
def test_a_foreign_host_is_refused(client: Client, opened: Opened, host: str) -> None:
    answer = client.get("/api/state", headers={"Host": host.format(port=opened.door.port)})
    assert answer.status_code in (400, 403)


def test_loopback_names_are_ours(client: Client, opened: Opened) -> None:
    for host in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST"):
        assert client.get("/api/state", headers={"Host": f"{host}:{opened.door.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1",
                                    "http://localhost:{port}"])
def test_a_foreign_origin_is_refused(client: Client, opened: Opened, origin: str) -> None:
    given = {"Origin": origin.format(port=opened.door.port)}
    assert client.get("/api/state", headers=given).status_code == 403
    assert client.put("/api/run", headers=given, json={}).status_code == 403


def test_our_own_origin_is_let_in(client: Client, opened: Opened) -> None:
    assert client.get("/api/state", headers={"Origin": f"http://127.0.0.1:{opened.door.port}"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_made_is_refused(client: Client, site: str) -> None:
    assert client.get("/api/state", headers={"Sec-Fetch-Site": site}).status_code == 403


def test_what_changes_something_needs_our_header(client: Client) -> None:
    for verb, path in (("PUT", "/api/run"), ("POST", "/api/files?name=a.csv&role=log"), ("DELETE", "/api/files/a.csv"),
                       ("POST", "/api/tasks/catalogue"), ("POST", "/api/jobs/run"), ("DELETE", "/api/jobs/current")):
        answer = client.request(verb, path, headers={"X-Dynid": "other"}, content=b"{}")
        assert answer.status_code == 403, (verb, path)
        assert set(answer.json()["error"]) == {"sentence", "hint", "where"}


def test_every_answer_carries_its_policy(client: Client) -> None:
    for path in ("/", "/api/state", "/api/nothing", "/static/nothing.js"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
    assert client.get("/api/state").headers["cache-control"] == "no-store"


def test_a_report_is_shut_in(client: Client, opened: Opened) -> None:
    folder: Path = opened.studio.workspace.results / "20260101-000000-run"
    folder.mkdir()
    (folder / "report.html").write_text("<script>1</script>")
    (folder / "robot.urdf").write_text("<robot/>")
    (folder / "studio.json").write_text('{"kind": "run"}')
    answer = client.get("/api/results/20260101-000000-run/report.html")
    assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in answer.headers["content-security-policy"]
    file = client.get("/api/results/20260101-000000-run/robot.urdf")
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.headers["content-type"] == "application/octet-stream"


def test_the_script_of_the_figures_is_served(client: Client) -> None:
    answer = client.get("/plotly.js")
    assert answer.status_code == 200 and len(answer.content) > 1_000_000


def restarted(folder: Path, first: Opened, host: str = "127.0.0.1") -> bool:
    """Whether a studio that is opened again on a folder accepts the cookie of the first one, at the same port."""
    again = open_studio(folder, host=host, warm=False)
    again.socket.close()
    again.studio.workspace.close()
    return (again.door.port, again.door.session) == (first.door.port, first.door.session)


@pytest.fixture
def ended(tmp_path: Path) -> Opened:
    """A studio on `tmp_path` that was opened and has ended."""
    found = open_studio(tmp_path, warm=False)
    found.socket.close()
    found.studio.workspace.close()
    return found


def test_a_browser_is_let_in_again_after_a_restart(tmp_path: Path) -> None:
    """By its cookie: port and secret are stored where only the user can read them."""
    with served(tmp_path) as first, closing(Client(first)) as browser:
        cookies, origin = dict(browser.cookies), browser.base_url
        assert (tmp_path / "session.json").stat().st_mode & 0o077 == 0
    with served(tmp_path) as second, bare(second, cookies) as browser:
        assert browser.base_url == origin and browser.get("/api/state").status_code == 200
    (tmp_path / "session.json").unlink()
    with served(tmp_path) as third, bare(third, {third.door.cookie: first.door.session}) as browser:
        assert browser.get("/api/state").status_code == 403


def test_a_secret_is_used_for_a_week_whatever_the_restarts(tmp_path: Path, ended: Opened,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for day, accepted in ((3.0, True), (6.0, True), (7.1, False)):
        monkeypatch.setattr("dynid.studio.workspace.time.time", lambda day=day: now + day * 24 * 3600)
        assert restarted(tmp_path, ended) is accepted, day


def test_a_secret_from_the_future_is_not_used(tmp_path: Path, ended: Opened) -> None:
    stored = tmp_path / "session.json"
    stored.write_text(json.dumps({**json.loads(stored.read_text()), "created": time.time() + 3600}))
    assert not restarted(tmp_path, ended)


@pytest.mark.parametrize("opened_to", ["folder", "file"])
def test_a_secret_that_others_could_read_or_replace_is_not_used(tmp_path: Path, ended: Opened, opened_to: str) -> None:
    place = tmp_path if opened_to == "folder" else tmp_path / "session.json"
    place.chmod(place.stat().st_mode | 0o004)
    assert not restarted(tmp_path, ended)
    assert tmp_path.stat().st_mode & 0o077 == 0 and (tmp_path / "session.json").stat().st_mode & 0o077 == 0


def test_a_secret_of_another_user_is_not_used(tmp_path: Path, ended: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of another user is refused, and what it holds is not used."""
    monkeypatch.setattr("dynid.studio.workspace.os.geteuid", lambda: os.getuid() + 1)
    with refused(DynidError, "not-a-studio-folder"):
        restarted(tmp_path, ended)


@pytest.mark.parametrize("kind", ["link", "pipe", "words", "empty"])
def test_what_is_not_a_session_is_not_used(tmp_path: Path, ended: Opened, kind: str) -> None:
    stored = tmp_path / "session.json"
    if kind == "link":
        stored.rename(tmp_path / "files" / "planted.json")
        stored.symlink_to(tmp_path / "files" / "planted.json")
    elif kind == "pipe":
        stored.unlink()
        os.mkfifo(stored, 0o600)
    else:
        stored.write_text("words" if kind == "words" else json.dumps({**json.loads(stored.read_text()), "secret": ""}))
    assert not restarted(tmp_path, ended)
    assert stored.is_file() and not stored.is_symlink()


def test_no_secret_is_kept_of_a_studio_that_other_machines_reach(tmp_path: Path, ended: Opened) -> None:
    assert not restarted(tmp_path, ended, host="0.0.0.0")
    assert not (tmp_path / "session.json").exists()
    assert not restarted(tmp_path, ended)


def test_other_hosts_only_when_asked_for() -> None:
    assert not Authentication("127.0.0.1", 8000).answers_to("192.168.1.5:8000")
    open_door = Authentication("0.0.0.0", 8000)
    assert open_door.answers_to("192.168.1.5:8000") and open_door.answers_to("[fe80::1]:8000")
    assert not open_door.answers_to("evil.example:8000")
