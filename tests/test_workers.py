"""The same results wherever work is done."""

from __future__ import annotations

import pytest

from dynid.errors import NotPossibleError
from dynid.workers import Workers

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


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("dynid.workers._PATIENCE", 1)
    with pytest.raises(NotPossibleError, match="no Dask scheduler answers"):
        list(Workers(scheduler="tcp://127.0.0.1:1").each(pow, 2, ITEMS))
