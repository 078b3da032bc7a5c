"""Folding many logs: the same sum wherever it is made, only what is new, and failures that cost only themselves."""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import arm, fourier
from refusals import refused
from worker_jobs import pair_of, plus, slow_part, slow_sum

import dynid
from dynid.datasets import Dataset
from dynid.datasets.log_fold import FoldStore, LogFold, ManifestEntry
from dynid.datasets.log_folds import FoldedLogs
from dynid.errors import DynidError, NotPossibleError, RecordingError
from dynid.files import write_whole
from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.log_files import find_logs
from dynid.recording.write import write_npz
from dynid.regression import Regression, base_parameters, fold
from dynid.workers import TreeSum, tree_sum

PREPARE = {"cutoff": 20.0}


def written(folder: Path, count: int = 5, seconds: float = 3.0) -> tuple[Model, Path]:
    """Logs of the 3R arm in a folder, two robots."""
    model, theta = arm()
    for k in range(count):
        place = folder / f"robot=R{k % 2}"
        place.mkdir(parents=True, exist_ok=True)
        one_log(place / f"2026-01-{k + 1:02d}.npz", model, theta, k, seconds)
    return model, folder


def one_log(path: Path, model: Model, theta: np.ndarray, seed: int, seconds: float = 3.0) -> None:
    rng = np.random.default_rng(seed)
    q, dq, ddq = fourier(model.dof, seconds=seconds, seed=seed)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
    write_npz(Recording(np.arange(len(q)) / 200.0, q, tau, joints=model.robot.joint_names), path)


def fold_logs(model: Model, sources: Any, **options: Any) -> tuple[Regression, FoldedLogs]:
    """The sum over some logs, of which only the first is held in memory."""
    dataset = Dataset.from_files(sources, model.robot, prepare=PREPARE, pilot_rows=1, **options)
    return dataset.fold(model, base_parameters(model))


def kill_marked(mark: Path) -> None:
    """Kills the process whose number a file holds, once it is there."""
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.01)
    os.kill(int(mark.read_text()), signal.SIGKILL)


def same(one: Regression, other: Regression) -> bool:
    return all(np.array_equal(a.r, b.r) and a.rows == b.rows for a, b in zip(one.factors, other.factors, strict=True))


def test_a_tree_sums_in_pairs() -> None:
    """As halves that are split where the largest power of two below the count ends; no more wait than it is deep."""
    def halves(parts: list[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        cut = 1 << (len(parts) - 1).bit_length() - 1
        return f"({halves(parts[:cut])}{halves(parts[cut:])})"

    for count in range(1, 40):
        parts = [f"{k}." for k in range(count)]
        assert tree_sum(parts, lambda one, other: f"({one}{other})") == halves(parts)
    tree = TreeSum[int](int.__add__)
    assert tree.total() is None
    for k in range(1000):
        tree.append(k)
        assert len(tree._waiting) <= 10
    assert tree.total() == sum(range(1000))


def test_logs_are_found_with_robot_and_date(tmp_path: Path) -> None:
    written(tmp_path, 3)
    found = find_logs(tmp_path)
    assert [log.robot for log in found] == ["R0", "R0", "R1"]
    assert [log.date for log in found] == ["2026-01-01", "2026-01-03", "2026-01-02"]
    assert find_logs(f"{tmp_path}/robot=R0/*.npz") == found[:2]
    assert find_logs([tmp_path, str(tmp_path)]) == found
    with refused(RecordingError, "bad-recording", "*.bag"):
        find_logs(f"{tmp_path}/*.bag")


def test_the_sum_of_files_is_the_fold_of_their_samples(tmp_path: Path) -> None:
    model, folder = written(tmp_path)
    found, said = fold_logs(model, folder)
    settings = said.preparation
    samples = [dynid.prepare(dynid.read(log.source, robot=model.robot), settings) for log in find_logs(folder)]
    whole = fold(dynid.regression.prepared_equations(model, samples, found.base))
    assert found.rows == whole.rows
    for one, other in zip(found.factors, whole.factors, strict=True):
        squares = other.r.T @ other.r
        assert np.abs(one.r.T @ one.r - squares).max() < 1e-9 * squares.max()


def test_workers_and_a_store_change_no_bit(tmp_path: Path) -> None:
    model, folder = written(tmp_path / "logs")
    alone, _ = fold_logs(model, folder)
    many, said = fold_logs(model, folder, workers=2, store=tmp_path / "store")
    assert same(alone, many) and said.read == 5
    again, said = fold_logs(model, folder, store=tmp_path / "store")
    assert same(alone, again) and said.read == 1  # the one that is held
    assert {(entry.robot, entry.rows) for entry in said.entries} == {("R0", 600), ("R1", 600)}


@pytest.mark.slow
def test_a_cluster_changes_no_bit(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    model, folder = written(tmp_path / "logs")
    alone, _ = fold_logs(model, folder)
    (folder / "robot=R0" / "broken.npz").write_bytes(b"PK\x03\x04")
    shutil.copy(folder / "robot=R0" / "2026-01-01.npz", folder / "robot=R1" / "2026-09-09.npz")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        for _ in range(2):  # the second from what the first kept
            there, said = fold_logs(model, folder, scheduler=cluster.scheduler_address, store=tmp_path / "store")
            assert same(alone, there) and len(said.failures) == 1 and len(said.copies) == 1
        assert said.read == 2  # the one that is held, and the broken one is tried again


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stand_in"), [("part_task", slow_part), ("add_parts", slow_sum)])
def test_a_worker_of_a_cluster_killed_in_the_middle_changes_nothing(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stand_in: Any) -> None:
    """While it folds a log, and while it adds two, with the parts of the sum that it held."""
    distributed = pytest.importorskip("distributed")
    model, folder = written(tmp_path / "logs")
    alone, _ = fold_logs(model, folder)
    mark = tmp_path / "pid"
    monkeypatch.setenv("DYNID_TEST_MARK", str(mark))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(f"dynid.datasets.log_folds.{name}", stand_in)
    killer = threading.Thread(target=kill_marked, args=(mark,))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as cluster:
        killer.start()
        found, said = fold_logs(model, folder, scheduler=cluster.scheduler_address)
        killer.join()
    assert same(alone, found) and not said.failures and len(said.entries) == 5


def test_only_what_is_new_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, folder = written(tmp_path / "logs")
    fold_logs(model, folder, store=tmp_path / "store")
    one_log(folder / "robot=R0" / "2026-02-01.npz", model, arm()[1], 77)
    opened: list[str] = []
    monkeypatch.setattr("dynid.datasets.log_fold.content_hash",
                        lambda path: (opened.append(path.name), path.name)[1])
    _, said = fold_logs(model, folder, store=tmp_path / "store")
    assert opened == ["2026-01-01.npz", "2026-02-01.npz"] and said.read == 2 and len(said.entries) == 6


def test_copies_and_moved_logs_count_once(tmp_path: Path) -> None:
    model, folder = written(tmp_path / "logs", 3)
    alone, _ = fold_logs(model, folder)
    shutil.copy(folder / "robot=R0" / "2026-01-01.npz", folder / "robot=R1" / "2026-09-09.npz")
    for workers in (1, 2):
        twice, said = fold_logs(model, folder, workers=workers, store=tmp_path / f"store{workers}")
        assert twice.rows == alone.rows and len(said.copies) == 1


def test_single_failures_are_listed(tmp_path: Path) -> None:
    model, folder = written(tmp_path, 3)
    alone, _ = fold_logs(model, folder)
    (folder / "robot=R0" / "broken.npz").write_bytes(b"PK\x03\x04 and then nothing")
    rng = np.random.default_rng(0)
    write_npz(Recording(np.arange(500) / 200.0, np.cumsum(rng.normal(size=(500, 2)), axis=0) * 0.01,
                        rng.normal(size=(500, 2)), joints=("a", "b")), folder / "robot=R0" / "other.npz")
    (folder / "robot=R1" / "text.csv").write_text("t,q1\n0,hello\n")
    for workers in (1, 2):
        found, said = fold_logs(model, folder, workers=workers)
        assert same(alone, found)
        assert [Path(one.source).name for one in said.failures] == ["broken.npz", "other.npz", "text.csv"]
        assert all(one.reason for one in said.failures)
    with refused(NotPossibleError, "no-usable-log", "1"):
        fold_logs(model, folder / "robot=R1" / "text.csv")


def test_a_disk_that_fills_ends_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, folder = written(tmp_path / "logs", 4)
    real, written_files = os.replace, [0]

    def full(one: Any, other: Any) -> None:
        written_files[0] += 1
        if written_files[0] > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(one, other)

    monkeypatch.setattr("os.replace", full)
    with refused(DynidError, "cannot-write", "No space left"):
        fold_logs(model, folder, store=tmp_path / "store")
    monkeypatch.setattr("os.replace", real)
    found, _ = fold_logs(model, folder, store=tmp_path / "store")
    assert same(found, fold_logs(model, folder)[0])


def test_damaged_folds_are_made_again(tmp_path: Path) -> None:
    model, folder = written(tmp_path / "logs", 3)
    alone, _ = fold_logs(model, folder, store=tmp_path / "store")
    next((tmp_path / "store").rglob("*.npz")).write_bytes(b"half")
    again, said = fold_logs(model, folder, store=tmp_path / "store")
    assert same(alone, again) and said.read <= 2


def test_another_model_uses_no_fold_of_this_one(tmp_path: Path) -> None:
    model, folder = written(tmp_path / "logs", 3)
    fold_logs(model, folder, store=tmp_path / "store")
    other = Model(model.robot, dynid.make_terms(model.robot, friction=("viscous",)))
    _, said = fold_logs(other, folder, store=tmp_path / "store")
    assert said.read == 3


def test_addresses_of_stores(tmp_path: Path) -> None:
    """Folders, patterns and single files of fsspec's own file systems; workers fetch what they fold."""
    fsspec = pytest.importorskip("fsspec")
    model, folder = written(tmp_path / "logs", 3)
    alone, _ = fold_logs(model, folder)
    memory = fsspec.filesystem("memory")
    for log in find_logs(folder):
        memory.put_file(log.source, "/fleet/" + os.path.relpath(log.source, folder))
    found, said = fold_logs(model, "memory://fleet", store=tmp_path / "store")
    assert same(found, alone) and [entry.robot for entry in said.entries] == ["R0", "R0", "R1"]
    again, said = fold_logs(model, "memory://fleet/*/*.npz", store=tmp_path / "store")
    assert same(again, alone) and said.read == 1
    for source, workers in ((f"file://{folder}", 2), (f"file://{folder}/**/*.npz", 1)):
        found, said = fold_logs(model, source, workers=workers)
        assert same(found, alone) and len(said.entries) == 3
    one = find_logs(folder)[0].source
    assert fold_logs(model, f"file://{one}")[0].rows == fold_logs(model, one)[0].rows
    with refused(RecordingError, "bad-recording", "memory://nowhere"):
        fold_logs(model, "memory://nowhere/*.npz")
    with refused(NotPossibleError, "not-possible", "nosuchstore://bucket/logs"):
        fold_logs(model, "nosuchstore://bucket/logs")
    with refused(NotPossibleError, "no-usable-log", "1"):
        fold_logs(model, "memory://fleet/gone.npz")


def test_a_parquet_dataset_in_folders(tmp_path: Path) -> None:
    """Columns by name, robot and motion by folder, as datasets are written."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    model, theta = arm()
    for k in range(3):
        rng = np.random.default_rng(k)
        q, dq, ddq = fourier(model.dof, seconds=3.0, seed=k)
        tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.05 * rng.normal(size=q.shape)
        columns = {"t": np.arange(len(q)) / 200.0, **{f"q{j + 1}": q[:, j] for j in range(3)},
                   **{f"tau{j + 1}": tau[:, j] for j in range(3)}}
        place = tmp_path / f"robot=R{k}" / "motion=wave"
        place.mkdir(parents=True)
        parquet.write_table(arrow.table(columns), place / f"2026-01-0{k + 1}.parquet")
        one_log(tmp_path / f"plain{k}.npz", model, theta, k)
    found, said = fold_logs(model, [tmp_path / f"robot=R{k}" for k in range(3)])
    plain, _ = fold_logs(model, f"{tmp_path}/plain*.npz")
    assert [(entry.robot, entry.motion, entry.date) for entry in said.entries] == [
        (f"R{k}", "wave", f"2026-01-0{k + 1}") for k in range(3)]
    settings = said.preparation
    samples = [dynid.prepare(dynid.read(tmp_path / f"plain{k}.npz", robot=model.robot), settings) for k in range(3)]
    whole = fold(dynid.regression.prepared_equations(model, samples, found.base))
    assert found.rows == whole.rows and sum(plain.rows) > 0
    for one, other in zip(found.factors, whole.factors, strict=True):
        squares = other.r.T @ other.r
        assert np.abs(one.r.T @ one.r - squares).max() < 1e-9 * squares.max()


def test_the_client_holds_few_parts_however_many_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a sum of 3,000 items that wait here for an earlier one, or to be added."""
    from dynid.workers import Job, Workers, processes
    held = []
    real = processes.Processes._take

    def take(self: processes.Processes, *given: Any) -> None:
        real(self, *given)
        held.append(len(self._done) + len(self._sums))

    monkeypatch.setattr(processes.Processes, "_take", take)
    assert Workers(2).total(Job(pair_of, 10, add=plus), range(3000), lambda k, report: True) == sum(range(3000)) * 10
    assert max(held) <= 2 * 8 + 12


@pytest.mark.parametrize(("name", "stand_in"), [("part_task", slow_part), ("add_parts", slow_sum)])
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
                                                       stand_in: Any) -> None:
    """While it folds a log, and while it adds two."""
    model, folder = written(tmp_path / "logs")
    alone, _ = fold_logs(model, folder)
    mark = tmp_path / "pid"
    monkeypatch.setenv("DYNID_TEST_MARK", str(mark))
    monkeypatch.setattr(f"dynid.datasets.log_folds.{name}", stand_in)
    killer = threading.Thread(target=kill_marked, args=(mark,))
    killer.start()
    found, said = fold_logs(model, folder, workers=2, store=tmp_path / "store")
    killer.join()
    assert same(alone, found) and not said.failures and len(said.entries) == 5


def _folded(folder: Path, store: Path) -> tuple[Regression, FoldedLogs]:
    model, _ = arm()
    return fold_logs(model, folder, store=store)


def stored(folder: Path) -> tuple[Model, FoldStore, ManifestEntry, Path]:
    """A model, a store with two compressed logs, the entry of one of them, and its file."""
    model, logs = written(folder / "logs", 2)
    _, folded = fold_logs(model, logs, store=folder / "store")
    store = FoldStore(folder / "store", next((folder / "store").iterdir()).name)
    return model, store, folded.entries[1], store.path(folded.entries[1].sha256)


def test_a_damaged_file_that_another_run_has_replaced_is_read_again(tmp_path: Path,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    model, store, entry, path = stored(tmp_path)
    good, load = path.read_bytes(), LogFold.load
    path.write_bytes(good[:100])

    def replaced_before(packed: bytes, model: Model) -> LogFold:
        if packed != good:  # the other run writes between this run's reading and its judgement
            with write_whole(path, "wb") as file:
                file.write(good)
        return load(packed, model)

    monkeypatch.setattr(LogFold, "load", staticmethod(replaced_before))
    assert store.load(entry, model).regression.rows == load(good, model).regression.rows
    assert path.read_bytes() == good


def test_only_the_file_that_was_read_as_damaged_is_removed(tmp_path: Path) -> None:
    model, store, entry, path = stored(tmp_path)
    good = path.read_bytes()
    path.write_bytes(good[:100])
    with refused(DynidError, "bad-call", f"{path} is damaged and was removed"):
        store.load(entry, model)
    assert not path.exists()
    with refused(DynidError, "bad-call", f"cannot be read from {path}: No such file"):
        store.load(entry, model)
    path.mkdir()  # a file that cannot be opened is not damaged
    with refused(DynidError, "bad-call", str(path)):
        store.load(entry, model)
    assert path.exists()


@pytest.mark.parametrize("failures", [1, 4])
def test_a_random_error_of_the_interpreter_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                        failures: int) -> None:
    """Python 3.11.7 raises SystemError if two threads parse headers of arrays at once (python/cpython 106905)."""
    model, store, entry, path = stored(tmp_path)
    parse, left = ast.literal_eval, [failures]

    def failing(text: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=96, after=33)")
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", failing)
    assert store.load(entry, model).entry == entry and left == [0]
    assert path.exists()


def test_two_updates_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor
    model, folder = written(tmp_path / "logs", 4)
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: _folded(folder, tmp_path / "store"), range(2)))
    assert same(runs[0][0], runs[1][0]) and same(runs[0][0], fold_logs(model, folder)[0])
    manifest = json.loads(next((tmp_path / "store").rglob("manifest.json")).read_text())
    assert len(manifest["logs"]) == 4
