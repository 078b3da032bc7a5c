"""Whatever a file holds, reading it succeeds or ends in a sentence: soon, in little memory, without NaN."""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from fuzz.mutations import mutated
from fuzz.originals import originals, try_to_read

from dynid.errors import DynidError

SECONDS, GIGABYTES = 10.0, 2.0


@dataclass(frozen=True)
class Outcome:
    """Of one case: what went wrong, empty where nothing did; how long it took, s; the most memory so far, GB."""

    wrong: str
    seconds: float
    memory: float


def case(seed: int, files: dict[str, bytes], folder: Path) -> Outcome:
    """One damaged file, all of it from the seed."""
    rng = np.random.default_rng(seed)
    kind = list(files)[int(rng.integers(len(files)))]
    content = mutated(kind, files[kind], rng, folder)
    start, wrong = time.perf_counter(), ""
    try:
        try_to_read(kind, content, folder, honest=bool(rng.integers(2)))
    except DynidError as problem:
        wrong = f"{kind}: no single sentence: {problem}" if "\n" in str(problem) or len(str(problem)) > 3000 else ""
    except Exception:
        wrong = f"{kind}: {traceback.format_exc()}"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return Outcome(wrong, time.perf_counter() - start, memory)


def work(seeds: range, files: dict[str, bytes], folder: Path, to: Connection) -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (4 << 30),) * 2)  # a bomb must not take the machine with it
    for seed in seeds:
        to.send(case(seed, files, folder))


def failures(seeds: range, files: dict[str, bytes], folder: Path) -> list[str]:
    """What went wrong, by seed; in a process of its own, which is started again after a crash or a hang."""
    found: list[str] = []
    while seeds:
        ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=work, args=(seeds, files, folder, theirs))
        process.start()
        theirs.close()
        for seed in seeds:
            seeds = seeds[1:]
            try:
                one = ours.recv() if ours.poll(3 * SECONDS) else Outcome("hangs", 3 * SECONDS, 0.0)
            except EOFError:
                one = Outcome("ended the process", 0.0, 0.0)
            slow = f"took {one.seconds:.0f} s" if one.seconds > SECONDS else ""
            large = f"took {one.memory:.1f} GB" if one.memory > GIGABYTES else ""
            found += [f"seed {seed}: {what}" for what in (one.wrong, slow, large) if what]
            if one.wrong in ("hangs", "ended the process") or large:
                break
        process.kill()
        process.join()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, bytes]:
    return originals(folder)


def test_what_is_not_damaged_is_read(files, folder):
    for kind, content in files.items():
        try_to_read(kind, content, folder, honest=True)


def test_damaged_files_end_in_sentences(files, folder):
    assert failures(range(500), files, folder) == []


@pytest.mark.slow
def test_ten_thousand_damaged_files_end_in_sentences(files, folder):
    assert failures(range(1000, 11_000), files, folder) == []
