"""The first use after installation says that it compiles; later ones say nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from dynid.cli.compilation import SENTENCE, CompilationWatch


@dataclass
class Event:
    is_start: bool

    @property
    def is_end(self) -> bool:
        return not self.is_start


class Clock:
    """A clock that tests move, and its timers."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, []

    def timer(self, seconds: float, act: Callable[[], None]) -> SimpleNamespace:
        """What takes the place of threading.Timer."""
        timer = SimpleNamespace(end=self.now + seconds, act=act)
        timer.start = lambda: self.timers.append(timer)
        timer.cancel = lambda: timer in self.timers and self.timers.remove(timer)
        return timer

    def go_on(self, seconds: float) -> None:
        """Move the time on, and run the timers that are due."""
        self.now += seconds
        due = [timer for timer in self.timers if timer.end <= self.now]
        self.timers = [timer for timer in self.timers if timer.end > self.now]
        for timer in due:
            timer.act()


@pytest.mark.parametrize(("seconds", "times"), [
    ((), 0), ((0.02, 0.02), 0), ((0.29,), 0), ((0.6,), 1), ((0.6, 0.6), 1), ((0.15, 0.14), 0),
    ((0.15, 0.15, 0.15, 0.3), 1)])
def test_one_word_once_it_takes_long(monkeypatch, seconds, times):
    """Kernels, each with one inside it, that take so long."""
    clock, said = Clock(), []
    monkeypatch.setattr("dynid.cli.compilation.time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr("dynid.cli.compilation.threading", SimpleNamespace(Timer=clock.timer, Event=threading.Event))
    watch = CompilationWatch(said.append, 0.3)
    for one in seconds:
        watch.notify(Event(True))
        watch.notify(Event(True))
        clock.go_on(one)
        watch.notify(Event(False))
        watch.notify(Event(False))
        clock.go_on(1.0)  # between kernels nothing is compiled
    watch.stop()
    assert said == [SENTENCE] * times


def test_the_word_is_said_while_a_kernel_is_compiled():
    """By a thread of its own: the one that compiles has not returned yet."""
    is_said = threading.Event()
    watch = CompilationWatch(lambda sentence: is_said.set(), 0.05)
    watch.notify(Event(True))
    assert is_said.wait(60.0)
    watch.notify(Event(False))


def test_numba_tells_of_what_its_cache_does_not_hold(tmp_path):
    """A kernel in a file of its own: compiled in the first process, from the cache in the second."""
    (tmp_path / "kernel.py").write_text(
        "from numba import njit\n"
        "from dynid.cli.compilation import CompilationWatch\n"
        "@njit(cache=True)\ndef f(x):\n    return x + 1.0\n"
        "with CompilationWatch(print, 0.0):\n    assert f(1.0) == 2.0\n")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    out = [subprocess.run([sys.executable, "kernel.py"], cwd=tmp_path, env=environment, check=True,
                          capture_output=True, text=True).stdout for _ in range(2)]
    assert out == [f"{SENTENCE}\n", ""]


def test_nothing_is_heard_of_afterwards():
    from numba import njit

    said = []
    with CompilationWatch(said.append, 0.0):
        pass
    assert njit(lambda x: x + 2)(1) == 3 and said == []


@pytest.mark.slow
def test_a_command_says_so_on_stderr_and_nowhere_else(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    impatient = ("import sys\nfrom dynid.cli import compilation\ncompilation.PATIENCE = 0.01\n"
                 "from dynid.cli.main import main\nmain(['inspect', 'arm3r', '--json'])\n")
    first, second = (subprocess.run([sys.executable, "-c", impatient], env=environment, capture_output=True, text=True,
                                    check=False) for _ in range(2))
    assert first.stderr.count(SENTENCE) == 1 and second.stderr == "" and first.stdout == second.stdout != ""
