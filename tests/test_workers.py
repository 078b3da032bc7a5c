"""The same results wherever work is done."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from refusals import refused
from worker_jobs import dies, killed_once, raises, slow

from dynid.errors import DynidError, NotPossibleError
from dynid.workers import Workers
from dynid.workers.processes import _work

ITEMS = [3, 1, 4, 1, 5]


@pytest.mark.parametrize("processes", [1, 2])
def test_every_item_is_done_once_and_keeps_its_place(processes: int) -> None:
    done = dict(Workers(processes).each(pow, 2, ITEMS))
    assert [done[k] for k in range(len(ITEMS))] == [8, 2, 16, 2, 32]


def test_nothing_to_do() -> None:
    assert list(Workers(2).each(pow, 2, [])) == []


def test_a_cluster_does_the_same() -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        done = dict(Workers(scheduler=cluster.scheduler_address).each(pow, 2, ITEMS))
    assert done == {0: 8, 1: 2, 2: 16, 3: 2, 4: 32}


def certificates(folder: Path) -> tuple[str, str, str]:
    """PEM files of an authority, and of a certificate of 127.0.0.1 that it signed with its key."""
    ca, ca_key, cert, key, ask = [str(folder / one) for one in ("ca.pem", "ca.key", "cert.pem", "key.pem", "ask")]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for arguments in (
            ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", ca_key, "-out", ca, "-subj", "/CN=authority",
             "-days", "2"],
            ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", ask, "-subj", "/CN=127.0.0.1"],
            ["x509", "-req", "-in", ask, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out", cert, "-days", "2",
             "-extfile", str(folder / "names")]):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
    return ca, cert, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")
def test_a_cluster_behind_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("dynid.workers.cluster._ANSWER_TIMEOUT", 3)
    ca, cert, key = certificates(tmp_path)
    (tmp_path / "stranger").mkdir()
    stranger = certificates(tmp_path / "stranger")
    inside = distributed.Security(tls_ca_file=ca, tls_scheduler_cert=cert, tls_scheduler_key=key, tls_worker_cert=cert,
                                  tls_worker_key=key, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None,
                                  security=inside, protocol="tls://") as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        assert dict(Workers(scheduler=address, tls=(ca, cert, key)).each(pow, 2, ITEMS)) == {
            0: 8, 1: 2, 2: 16, 3: 2, 4: 32}
        for tls in (None, stranger):  # nobody without a certificate of this authority comes in
            with refused(NotPossibleError, "no-scheduler"):
                list(Workers(scheduler=address, tls=tls).each(pow, 2, ITEMS))


def test_tls_files_that_do_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with refused(DynidError, "unreadable-file", "TLS"):
        list(Workers(scheduler="tls://127.0.0.1:1", tls=("no", "such", "file")).each(pow, 2, ITEMS))
    with refused(DynidError, "tls-without-tls-address"):
        list(Workers(scheduler="tcp://127.0.0.1:1", tls=("no", "such", "file")).each(pow, 2, ITEMS))


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("dynid.workers.cluster._ANSWER_TIMEOUT", 1)
    with refused(NotPossibleError, "no-scheduler"):
        list(Workers(scheduler="tcp://127.0.0.1:1").each(pow, 2, ITEMS))


def test_a_worker_that_is_killed_costs_its_own_item(tmp_path: Path) -> None:
    def kill() -> None:
        mark = tmp_path / "pid-1"
        while not (mark.exists() and mark.read_text()):
            time.sleep(0.01)
        os.kill(int(mark.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    done = sorted(Workers(2).each(killed_once, str(tmp_path), [0, 1, 2, 3, 4, 5]))
    killer.join()
    assert done == [(k, 10 * k) for k in range(6)]


def test_an_item_that_kills_every_worker_is_given_up() -> None:
    with refused(NotPossibleError, "worker-lost", "3 times"):
        list(Workers(2).each(dies, 1, [0, 1, 2]))
    done = dict(Workers(2).each(dies, 1, [0, 1, 2], lambda item, why: -item))
    assert done == {0: 0, 1: -1, 2: 2}


def test_what_a_worker_raises_arrives() -> None:
    with refused(NotPossibleError, "not-possible", "item"):
        list(Workers(2).each(raises, 0, [1, 2]))


@pytest.mark.slow
def test_a_scheduler_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    port = 18786
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port), "--no-dashboard"]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    scheduler = subprocess.Popen(start, stderr=subprocess.DEVNULL, env=paths)
    worker = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}",
                               "--nthreads", "1", "--no-dashboard"], stderr=subprocess.DEVNULL, env=paths)
    try:
        with refused(NotPossibleError, "scheduler-lost", "tcp://"):
            for k, _ in Workers(scheduler=f"tcp://127.0.0.1:{port}").each(slow, 0.2, list(range(200))):
                if k == 3:
                    monkeypatch.setattr("dynid.workers.cluster._ANSWER_TIMEOUT", 5)
                    scheduler.kill()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def test_a_worker_whose_parent_was_killed_ends_without_a_word() -> None:
    """The parent's end of the connection is reset if the parent had not read everything."""
    class Reset:
        def recv(self) -> object:
            raise ConnectionResetError

    _work(Reset(), None)
