"""Cases run one after the other in a process of their own, and what is wrong with one: a traceback, a hang, too much
memory, or numbers that are not finite called a success."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

CPU_SECONDS, GIGABYTES = 30.0, 2.0  # that one case may take
_WALL_SECONDS = 600.0  # after which a case that uses no processor, such as one that waits for a lock, hangs too
_LOOK = 1.0  # s between two looks at a process

Case = Callable[[int], str]  # from a seed to what went wrong, empty where nothing did


@dataclass(frozen=True)
class Outcome:
    """Of one case: what went wrong, empty where nothing did; how long the processor took, s; the most memory of the
    process so far, beyond what it had before the first case, GB."""

    wrong: str
    seconds: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True)
class Judgement:
    """Of many cases: what went wrong, each with its seed, and the processor's time of all, s."""

    failures: list[str]
    seconds: float


def judged(case: Case, seeds: Sequence[int]) -> Judgement:
    """What went wrong, by seed; in a process of its own, which is started again after a crash or a hang."""
    found: list[str] = []
    seconds, left = 0.0, list(seeds)
    while left:
        ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_work, args=(case, left, theirs))
        process.start()
        theirs.close()
        assert process.pid is not None
        while left:
            one, seed = _outcome(ours, process.pid), left.pop(0)
            seconds += one.seconds
            slow = f"took {one.seconds:.0f} s" if one.seconds > CPU_SECONDS else ""
            large = f"took {one.memory:.1f} GB" if one.memory > GIGABYTES else ""
            found += [f"seed {seed}: {what}" for what in (one.wrong, slow, large) if what]
            if one.wrong in ("hangs", "ended the process") or large:
                break
        process.kill()
        process.join()
    return Judgement(found, seconds)


def _work(case: Case, seeds: Sequence[int], to: Connection) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 30),) * 2)  # a bomb must not take the machine with it
    inherited = _most_memory()  # of the process that was forked, which other tests may have made large
    for seed in seeds:
        start = time.process_time()
        wrong = case(seed)
        to.send(Outcome(wrong, time.process_time() - start, _most_memory() - inherited))
    os._exit(0)  # threads of a studio would be waited for


def _most_memory() -> float:
    """The most memory that this process ever had, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _outcome(ours: Connection, process: int) -> Outcome:
    """The next outcome of a process; that it hangs, where its processor's time says so."""
    began, start = _cpu(process), time.monotonic()
    while True:
        try:
            if ours.poll(_LOOK):
                return ours.recv()
        except EOFError:
            return Outcome("ended the process")
        if _cpu(process) - began > CPU_SECONDS or time.monotonic() - start > _WALL_SECONDS:
            return Outcome("hangs", CPU_SECONDS)


def _cpu(process: int) -> float:
    """Processor's time of a process and of its threads so far, s."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
