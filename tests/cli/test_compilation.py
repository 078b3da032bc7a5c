"""The first use after installation says that it compiles; later ones say nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from dynid.cli.compilation import SENTENCE, CompilationWatch, said_when_compiling


@dataclass
class Event:
    is_start: bool

    @property
    def is_end(self) -> bool:
        return not self.is_start


def compiled(watch: CompilationWatch, *seconds: float) -> None:
    """Kernels, each with one inside it, that take so long."""
    for one in seconds:
        watch.notify(Event(True))
        watch.notify(Event(True))
        time.sleep(one)
        watch.notify(Event(False))
        watch.notify(Event(False))


@pytest.mark.parametrize(("seconds", "times"), [((), 0), ((0.02, 0.02), 0), ((0.6,), 1), ((0.15, 0.15, 0.15, 0.3), 1)])
def test_one_word_once_it_takes_long(seconds, times):
    said = []
    watch = CompilationWatch(said.append, 0.3)
    compiled(watch, *seconds)
    watch.stop()
    time.sleep(0.05)
    assert said == [SENTENCE] * times


def test_numba_tells_of_what_its_cache_does_not_hold(tmp_path):
    """A kernel in a file of its own: compiled in the first process, from the cache in the second."""
    (tmp_path / "kernel.py").write_text(
        "from numba import njit\n"
        "from dynid.cli.compilation import said_when_compiling\n"
        "@njit(cache=True)\ndef f(x):\n    return x + 1.0\n"
        "with said_when_compiling(print, 0.0):\n    assert f(1.0) == 2.0\n")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    out = [subprocess.run([sys.executable, "kernel.py"], cwd=tmp_path, env=environment, check=True,
                          capture_output=True, text=True).stdout for _ in range(2)]
    assert out == [f"{SENTENCE}\n", ""]


def test_nothing_is_heard_of_afterwards():
    from numba import njit

    said = []
    with said_when_compiling(said.append, 0.0):
        pass
    assert njit(lambda x: x + 2)(1) == 3 and said == []


@pytest.mark.slow
def test_a_command_says_so_on_stderr_and_nowhere_else(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (subprocess.run([sys.executable, "-m", "dynid", "inspect", "arm3r", "--json"], env=environment,
                                    capture_output=True, text=True, check=False) for _ in range(2))
    assert first.stderr.count(SENTENCE) == 1 and second.stderr == "" and first.stdout == second.stdout
