"""A result folder is exchanged whole: under kills, beside the user's files, on a full disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.robot import Robot
from dynid.runs import ModelSettings, Run, RunSettings, run
from dynid.runs.result_folder import COMMIT, MANIFEST, finish, read_result
from dynid.runs.results import check_output, load, load_regression, save

URDF = """<robot name="one"><link name="base"/>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Run, Run]:
    """Two results of one log: the first has a robot.urdf, the second a robot.xml."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "one.urdf").write_text(URDF)
    robot = Robot.from_urdf(URDF)
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    t = np.arange(2000) / 200
    q, dq, ddq = np.sin(3 * t)[:, None], 3 * np.cos(3 * t)[:, None], -9 * np.sin(3 * t)[:, None]
    truth = model.parameters.vector([*robot.inertias[0], 0.4])
    write_npz(Recording(t, q, model.inverse_dynamics(truth, q, dq, ddq), joints=("j",)), folder / "log.npz")
    settings = RunSettings(robot=str(folder / "one.urdf"), logs=(str(folder / "log.npz"),), method="pc-wls",
                           model=ModelSettings(friction=("viscous",)), prepare={"cutoff": 20.0})
    first, second = run(settings), run(settings.model_copy(update={"method": "ols"}))
    shifted = replace(second.robot.joints[0], after=np.diag([1.0, -1.0, -1.0, 1.0]))  # which no plain URDF has
    return first, replace(second, robot=replace(second.robot, text=None, joints=(shifted,)),
                          estimate=replace(second.estimate, theta=first.estimate.theta))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def save_for_ever(runs: tuple[Run, Run], folder: Path, is_warm: Event) -> None:
    """Save in turn; the first save of a process takes longer than the others, so that it is said when it has ended."""
    for k in range(10**6):
        save(runs[k % 2], folder, force=True, report=False)
        is_warm.set()


def kill_saves(runs: tuple[Run, Run], folder: Path, times: int, own: dict[str, bytes]) -> int:
    """Kill a process that saves the two results in turn, so many times; how often it was one or the other."""
    begin = time.perf_counter()
    wholes = []
    for k, one in enumerate(runs):
        save(one, folder.parent / f"whole{k}", report=False)
        wholes.append(files(folder.parent / f"whole{k}"))
    took = time.perf_counter() - begin
    save(runs[0], folder, force=True, report=False)
    context, rng, second = multiprocessing.get_context("fork"), np.random.default_rng(len(own)), 0
    for _ in range(times):
        is_warm = context.Event()
        process = context.Process(target=save_for_ever, args=(runs, folder, is_warm))
        process.start()
        assert is_warm.wait(60.0)
        time.sleep(rng.uniform(0, took))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        if not own:  # exchanged in one step: whole even for those who only look
            found = files(folder)
            assert set(found) in (set(wholes[0]), set(wholes[1]))
        estimate, _ = load(folder)
        found = {name: data for name, data in read_result(folder, files).items() if name not in own}
        which = int(estimate.method == "ols")
        assert found["parameters.toml"] == wholes[which]["parameters.toml"]
        assert set(found) == set(wholes[which])
        assert all((folder / name).read_bytes() == data for name, data in own.items())
        second += which
    return second


@pytest.mark.parametrize("own", [{}, {"notes.txt": b"mine"}], ids=["alone", "beside the user's files"])
def test_a_killed_save_leaves_one_whole_result(runs, tmp_path, own):
    (tmp_path / "out").mkdir()
    for name, data in own.items():
        (tmp_path / "out" / name).write_bytes(data)
    kill_saves(runs, tmp_path / "out", 6, own)


@pytest.mark.slow
@pytest.mark.parametrize("own", [{}, {"notes.txt": b"mine"}], ids=["alone", "beside the user's files"])
def test_two_hundred_killed_saves_leave_whole_results(runs, tmp_path, own):
    (tmp_path / "out").mkdir()
    for name, data in own.items():
        (tmp_path / "out" / name).write_bytes(data)
    second = kill_saves(runs, tmp_path / "out", 200, own)
    assert 20 < second < 180  # the kills came at all moments


@pytest.mark.parametrize("moved", range(5))
def test_a_save_killed_among_its_last_moves_is_read_whole_and_finished_by_the_next_save(runs, tmp_path, moved):
    save(runs[0], tmp_path / "out", report=False)
    save(runs[1], tmp_path / "new", report=False)
    wanted = files(tmp_path / "new")
    (tmp_path / "new").rename(tmp_path / "out" / COMMIT)
    for name in sorted(wanted.keys() - {MANIFEST})[:moved]:
        (tmp_path / "out" / COMMIT / name).replace(tmp_path / "out" / name)
    before = entries(tmp_path / "out")
    estimate, settings = load(tmp_path / "out")
    assert estimate.method == "ols" and Path(settings.robot).is_file()
    assert load_regression(tmp_path / "out", estimate) is not None
    assert read_result(tmp_path / "out", files) == wanted
    assert entries(tmp_path / "out") == before
    finish(tmp_path / "out")
    assert files(tmp_path / "out") == wanted and not (tmp_path / "out" / COMMIT).exists()


def entries(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every entry below a folder: its inode, mode, and time of change."""
    return {path.relative_to(folder).as_posix(): (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_mtime_ns)
            for path in (folder, *folder.rglob("*"))}


def test_a_link_named_like_an_interrupted_save_is_not_followed(runs, tmp_path):
    for name in ("victim", "out"):
        save(runs[0], tmp_path / name, report=False)
    (tmp_path / "out" / COMMIT).symlink_to(tmp_path / "victim")
    before = entries(tmp_path)
    assert load(tmp_path / "out")[0].method == runs[0].estimate.method
    assert entries(tmp_path) == before
    with refused(DynidError, "cannot-write", f"rm {tmp_path / 'out' / COMMIT}"):
        save(runs[1], tmp_path / "out", force=True, report=False)
    assert entries(tmp_path) == before
    (tmp_path / "out" / COMMIT).unlink()
    save(runs[1], tmp_path / "out", force=True, report=False)


def test_an_unfinished_save_of_a_stranger_does_not_lead_outside(runs, tmp_path):
    save(runs[0], tmp_path / "out", report=False)
    save(runs[1], tmp_path / "new", report=False)
    (tmp_path / "mine").write_bytes((tmp_path / "new" / "run.toml").read_bytes())
    (tmp_path / "new" / "run.toml").unlink()
    (tmp_path / "new" / "run.toml").symlink_to(tmp_path / "mine")
    (tmp_path / "new").rename(tmp_path / "out" / COMMIT)
    before = entries(tmp_path)
    with refused(DynidError, "no-result", "run.toml: it is a link"):
        load(tmp_path / "out")
    assert entries(tmp_path) == before


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"),
                                  lambda path: path.symlink_to("copy"),
                                  lambda path: (path.touch(), os.truncate(path, 1 << 40))],
                         ids=["pipe", "device", "link", "huge"])
@pytest.mark.parametrize("name", [MANIFEST, "estimate.npz"])
def test_a_file_of_a_result_that_is_none_is_refused_at_once(runs, tmp_path, make, name):
    save(runs[0], tmp_path / "out", report=False)
    path = tmp_path / "out" / name
    path.rename(tmp_path / "out" / "copy")
    make(path)
    with pytest.raises(DynidError, match=name):
        load(tmp_path / "out")


def test_a_folder_that_is_a_link_to_itself_is_refused_before_the_computation(runs, tmp_path):
    (tmp_path / "L").symlink_to(tmp_path / "L")
    with refused(DynidError, "cannot-write", "link"):
        check_output(tmp_path / "L")


@pytest.mark.parametrize("name", ["parameters.toml", "estimate.npz", "regression.npz", "run.toml", "robot.urdf"])
def test_a_mixed_folder_is_refused(runs, tmp_path, name):
    save(runs[0], tmp_path / "out", report=False)
    (tmp_path / "out" / name).write_bytes((tmp_path / "out" / name).read_bytes()[:-1] + b" ")
    with refused(DynidError, "bad-call", name):
        load(tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    with refused(DynidError, "no-result", name):
        load(tmp_path / "out")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"../x": {"bytes": 1, "sha256": ""}}}',
                                  '{"files": {"run.toml": {"bytes": "many"}}}', "\x00", "[" * 100_000,
                                  '{"files": {"run.toml": {"bytes": 1e999, "sha256": ""}}}'])
def test_a_damaged_manifest_is_a_sentence_and_can_be_replaced(runs, tmp_path, text):
    save(runs[0], tmp_path / "out", report=False)
    (tmp_path / "out" / MANIFEST).write_text(text)
    with refused(DynidError, "bad-call", MANIFEST):
        load(tmp_path / "out")
    save(runs[1], tmp_path / "out", force=True, report=False)
    assert load(tmp_path / "out")[0].method == "ols"


def test_files_of_the_user_survive_and_are_not_replaced_unasked(runs, tmp_path):
    out = tmp_path / "out"
    (out / "mine").mkdir(parents=True)
    (out / "mine" / "log.csv").write_text("1")
    (out / "run.toml").write_text("# mine")
    with refused(DynidError, "folder-in-use", "run.toml"):
        save(runs[0], out, report=False)
    assert (out / "run.toml").read_text() == "# mine"
    save(runs[0], out, force=True, report=False)
    save(runs[1], out, force=True, report=False)
    assert (out / "mine" / "log.csv").read_text() == "1" and not (out / "robot.urdf").exists()
    assert set(json.loads((out / MANIFEST).read_text())["files"]) == {"parameters.toml", "estimate.npz",
                                                                      "regression.npz", "robot.xml", "run.toml"}


def test_a_run_with_the_robot_of_an_earlier_result_keeps_it(runs, tmp_path):
    save(runs[0], tmp_path / "out", report=False)
    before = (tmp_path / "out" / "robot.urdf").read_bytes()
    again = run(runs[0].settings.model_copy(update={"robot": str(tmp_path / "out" / "robot.urdf")}))
    assert "robot" not in save(again, tmp_path / "out", force=True, report=False)
    assert (tmp_path / "out" / "robot.urdf").read_bytes() == before
    assert load(tmp_path / "out")[0].method == "pc-wls"


def test_the_folder_one_works_in_is_kept(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(runs[0], ".", report=False)
    save(runs[1], ".", force=True, report=False)
    assert "parameters.toml" in os.listdir(".") and load(".")[0].method == "ols"


def test_a_full_disk_is_a_sentence_and_leaves_the_earlier_result(runs, tmp_path):
    save(runs[0], tmp_path / "out", report=False)
    before = files(tmp_path / "out")

    def fail(page: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynid.runs.result_folder._sync", fail)
        with refused(DynidError, "cannot-write", "No space left", "disk space"):
            save(runs[1], tmp_path / "out", force=True, report=False)
    assert files(tmp_path / "out") == before and os.listdir(tmp_path) == ["out"]
