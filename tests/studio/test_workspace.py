"""The studio works in folders of its own alone, takes its lock before it changes anything, and keeps things private."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from refusals import refused
from studio_client import Client, log_of, served, urdf

from dynid import Robot
from dynid.errors import DynidError
from dynid.studio.errors import Refusal
from dynid.studio.server import open_studio
from dynid.studio.workspace import MARKER, StudioFolder, claim


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Everything below a folder: bytes, mode and time of change."""
    return {path.relative_to(folder).as_posix(): (b"" if path.is_dir() else path.read_bytes(), path.stat().st_mode,
                                                  path.stat().st_mtime_ns) for path in folder.rglob("*")}


def project(folder: Path) -> Path:
    """A folder of somebody's work that looks like one of the studio's."""
    for name in ("results/monday/parameters.toml", "results/20260101-000000-run/report.html", "tmp/notes.txt",
                 "files/log.csv", "run.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    return folder


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    before = contents(project(tmp_path))
    with refused(DynidError, "not-a-studio-folder"):
        open_studio(tmp_path)
    assert contents(tmp_path) == before


def test_the_command_line_refuses_it_in_one_sentence(tmp_path: Path) -> None:
    before = contents(project(tmp_path))
    ended = subprocess.run([sys.executable, "-m", "dynid", "studio", "--no-browser", "--folder", "."], cwd=tmp_path,
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and "not empty" in ended.stderr and "Traceback" not in ended.stderr
    assert contents(tmp_path) == before


def test_a_marker_that_is_a_link_is_none(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "target").write_text("mine")
    (tmp_path / "mine" / MARKER).symlink_to(tmp_path / "target")
    with refused(DynidError, "not-a-studio-folder"):
        open_studio(tmp_path / "mine")
    assert (tmp_path / "target").read_text() == "mine"


@pytest.mark.parametrize("marker", ["", "mine", "This folder belongs to `dynid studio`", "x" * 10_000])
def test_a_marker_that_the_studio_did_not_write_is_none(tmp_path: Path, marker: str) -> None:
    """Anybody can write a file of its name."""
    before = project(tmp_path)
    (tmp_path / MARKER).write_text(marker)
    found = contents(before)
    with refused(DynidError, "not-a-studio-folder"):
        open_studio(tmp_path)
    assert contents(tmp_path) == found


@pytest.mark.parametrize("change", [lambda path: path.chmod(0o666), lambda path: os.link(path, path.with_name("x"))])
def test_a_marker_that_others_could_write_is_none(tmp_path: Path, change) -> None:
    claim(tmp_path / "a").close()
    project(tmp_path / "a")
    change(tmp_path / "a" / MARKER)
    with refused(DynidError, "not-a-studio-folder"):
        claim(tmp_path / "a")


def test_a_marker_has_a_random_id_and_that_of_an_earlier_version_gets_one(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b"):
        claim(tmp_path / name).close()
        ids.append((tmp_path / name / MARKER).read_text().split("id: ")[1])
    assert len(set(ids)) == 2 and all(len(one) == 33 for one in ids)
    (tmp_path / "a" / MARKER).write_text((tmp_path / "a" / MARKER).read_text().split("id: ")[0])
    project(tmp_path / "a")
    claim(tmp_path / "a").close()
    assert "id: " in (tmp_path / "a" / MARKER).read_text()


@pytest.mark.parametrize("name", ["files", "results", "tmp", "meshes"])
def test_a_folder_with_links_changes_nothing_outside(tmp_path: Path, name: str) -> None:
    """As an archive of a stranger can hold it, with a marker copied from a folder of the studio."""
    outside = project(tmp_path / "outside")
    for path in ("tmp/session-0123456789abcdef", "session-0123456789abcdef", "20260102-000000-run", "results/x"):
        (outside / path).mkdir(parents=True, exist_ok=True)
    (outside / ".writing-20260102-000000-run").touch()
    outside.chmod(0o755)
    claim(tmp_path / "a").close()
    (tmp_path / "a" / name).symlink_to(outside)
    before, mode = contents(tmp_path), outside.stat().st_mode
    with refused(DynidError, "not-a-studio-folder", name):
        open_studio(tmp_path / "a", warm=False)
    assert contents(tmp_path) == before and outside.stat().st_mode == mode


def test_links_inside_the_folders_are_not_followed(tmp_path: Path) -> None:
    outside = project(tmp_path / "outside")
    (outside / "studio.json").write_text("{}")
    space = StudioFolder(tmp_path / "a")
    for place in ("results/20260101-000000-run", "files/link", "tmp/session-0123456789abcdef"):
        (tmp_path / "a" / place).symlink_to(outside)
    (tmp_path / "a" / "files" / "log.csv").symlink_to(outside / "files" / "log.csv")
    space.begin_result("20260101-000000-run")
    space.close()
    before = contents(outside)
    space = StudioFolder(tmp_path / "a")
    assert space.listed() == [] and space.result_facts() == []
    with pytest.raises(Refusal):
        space.result("20260101-000000-run")
    with pytest.raises(Refusal):
        space.file_path("link/x.stl", "mesh")
    space.settle_result("20260101-000000-run")
    space.close()
    assert contents(outside) == before


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_new_or_empty_folder_is_marked(tmp_path: Path, make) -> None:
    make(tmp_path / "a")
    for _ in range(2):
        opened = open_studio(tmp_path / "a", warm=False)
        assert (tmp_path / "a" / MARKER).is_file()
        opened.socket.close()
        opened.studio.workspace.close()


def test_what_the_studio_did_not_write_stays(tmp_path: Path) -> None:
    claim(tmp_path / "a").close()
    project(tmp_path / "a")
    (tmp_path / "a" / "tmp" / "session-mine").mkdir()
    (tmp_path / "a" / "tmp" / "session-0123456789abcdef").mkdir()
    (tmp_path / "a" / "results" / "20260102-000000-run").mkdir()
    (tmp_path / "a" / "results" / ".writing-20260102-000000-run").touch()
    opened = open_studio(tmp_path / "a", warm=False)
    opened.socket.close()
    for name in ("results/monday/parameters.toml", "results/20260101-000000-run/report.html", "tmp/notes.txt"):
        assert (tmp_path / "a" / name).read_text() == "mine"
    assert (tmp_path / "a" / "tmp" / "session-mine").is_dir()
    assert not (tmp_path / "a" / "tmp" / "session-0123456789abcdef").exists()
    assert not (tmp_path / "a" / "results" / "20260102-000000-run").exists()
    assert not list((tmp_path / "a" / "results").glob(".writing-*"))
    opened.studio.workspace.close()


def test_a_second_studio_changes_nothing(tmp_path: Path) -> None:
    first = open_studio(tmp_path / "a", warm=False)
    space = first.studio.workspace
    space.begin_result("20260101-000000-run")
    (space.results / "20260101-000000-run").mkdir()
    (space.results / "20260101-000000-run" / "half").write_text("half")
    (space.temporary / "upload").write_text("half")
    before = contents(tmp_path)
    with refused(DynidError, "studio-in-use"):
        open_studio(tmp_path / "a")
    assert contents(tmp_path) == before
    first.socket.close()
    space.close()


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        (tmp_path / "arm.urdf").write_text(urdf())
        log_of(Robot.load(str(tmp_path / "arm.urdf")), tmp_path / "log.csv", seconds=4.0)
        (tmp_path / "a").mkdir(mode=0o755)
        with served(tmp_path / "a") as opened, closing(Client(opened)) as client:
            client.upload("arm.urdf", "robot", (tmp_path / "arm.urdf").read_bytes())
            client.upload("meshes/a/b.stl", "mesh", b"solid x")
            client.upload("log.csv", "log", (tmp_path / "log.csv").read_bytes())
            client.settings(robot="arm.urdf", logs=["log.csv"], method="ols", model={"friction": ["viscous"]},
                            simulation={"run": False})
            assert client.job("run")["state"] == "done"
            for path in (tmp_path / "a", *(tmp_path / "a").rglob("*")):
                mode = stat.S_IMODE(path.stat().st_mode)
                assert mode & 0o077 == 0, (path, oct(mode))
        assert json.loads((tmp_path / "a" / "studio.json").read_text())["revision"] >= 1
        assert not list((tmp_path / "a" / "tmp").iterdir())
    finally:
        os.umask(before)
