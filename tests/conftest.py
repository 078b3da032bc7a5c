"""Shared fixtures: the location of the real logs and models, and the tests that need them."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dynid import kernel_store

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DYNID_DATA", ROOT.parent / "shared" / "data"))


# Modules that need limits, locks or processes that only POSIX systems have.
POSIX_ONLY = ["robot/test_bounds.py", "fuzz", "recording/test_read_damaged.py", "recording/test_bombs.py",
              "recording/test_servo_logs.py",
              "cli/test_outputs.py", "runs/test_two_writers.py", "studio/test_limits.py",
              "studio/test_door.py", "studio/test_browser_page.py"]
collect_ignore = [] if os.name == "posix" else POSIX_ONLY


@pytest.fixture(scope="session")
def data() -> Callable[..., Path]:
    """data("panda", "panda_arm.urdf"): the path below DYNID_DATA, or skip with the reason."""

    def find(*parts: str) -> Path:
        path = DATA.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"needs the data folder: {path.name} is not below DYNID_DATA")
        return path

    return find


@pytest.fixture
def one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for motions from one start instead of four: where any motion inside the limits will do."""
    monkeypatch.setattr("dynid.excitation.search.multistart._AT_ONCE", 1)


def pytest_configure() -> None:
    """Take interrupts as usual: a job in the background begins with them ignored, and so would its children.

    Look for garbage rarely, as commands do: it is looked for after each file. Leave kernels to numba only after many
    calls: the tests call most kernels some thousand times, and numba would compile each of them once more.
    """
    kernel_store._CALLS_UNTIL_NUMBA = 20_000
    gc.set_threshold(50_000)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Look no more through what collection made: it lives to the end."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Give the memory of a finished file back to the system.

    Garbage is looked for rarely, and the allocator keeps what is freed: a worker would grow to gigabytes. Objects that
    outlive a file belong to imported modules, and are not looked through again.
    """
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None  # glibc has it
        if trim is not None:
            trim(0)
