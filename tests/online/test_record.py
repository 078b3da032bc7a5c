"""The record of a stream after a kill at any byte."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynid.errors import RecordingError
from dynid.online.store import HISTORY, Record, read_history


def write(record: Record, samples: int) -> None:
    online: Any = SimpleNamespace(last_stamp=0.5 * samples, samples=samples, restarts=(), save=lambda path: None)
    estimate: Any = SimpleNamespace(names=("a", "b"), values=np.array([1.25, -0.75]), std=np.array([0.125, 0.0625]))
    record.write(online, estimate)


def test_a_history_cut_at_any_byte_goes_on_whole(tmp_path: Path) -> None:
    record = Record(tmp_path)
    write(record, 1)
    write(record, 2)
    full = (tmp_path / HISTORY).read_bytes()
    lines = [k + 1 for k, byte in enumerate(full) if byte == ord("\n")]
    for cut in range(len(full) + 1):
        (tmp_path / HISTORY).write_bytes(full[:cut])
        whole = sum(end <= cut for end in lines)
        if whole:
            assert len(read_history(tmp_path)[1]) == whole - 1  # nothing of a half line
        else:
            with pytest.raises(RecordingError):
                read_history(tmp_path)
        write(record, 3)
        names, rows = read_history(tmp_path)
        assert names[:3] == ["t", "samples", "restarts"] and rows[-1, 1] == 3 and len(rows) == max(whole - 1, 0) + 1
