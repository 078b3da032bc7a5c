"""Whatever a file holds and an option says, reading and every command succeed or end in a sentence: soon, in little
memory, without NaN. DYNID_FUZZ_CASES: how many cases the slow test has; DYNID_FUZZ_SEED: the first seed."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import numpy as np
import pytest
from fuzz import inputs, judge
from fuzz.commands import FAMILIES, command_case, family_of, undamaged
from fuzz.judge import Case, judged
from fuzz.mutations import mutated
from fuzz.originals import originals, try_to_read
from fuzz.studio_calls import StudioCalls
from fuzz.traps import Traps

from dynid.errors import DynidError

CASES = int(os.environ.get("DYNID_FUZZ_CASES", "4250"))
PARTS = 4  # of the slow test, for workers that run side by side
FIRST_SEED = int(os.environ.get("DYNID_FUZZ_SEED", "1000"))
_READING, _STUDIO = 0.45, 0.05  # shares of the cases that read a damaged file without a command, and ask a studio


def reading_case(rng: np.random.Generator, files: dict[str, bytes], folder: Path) -> str:
    """Read one damaged file; what is wrong with what happens."""
    kind = list(files)[int(rng.integers(len(files)))]
    content = mutated(kind, files[kind], rng, folder)
    try:
        try_to_read(kind, content, folder, honest=bool(rng.integers(2)))
    except DynidError as problem:
        return f"{kind}: no single sentence: {problem}" if "\n" in str(problem) or len(str(problem)) > 3000 else ""
    except Exception:
        return f"{kind}: {traceback.format_exc()}"
    return ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, bytes]:
    return originals(folder)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs of commands; each call was made once, so that what compiles and imports is not counted."""
    place = tmp_path_factory.mktemp("inputs")
    inputs.written(place)
    return place


@pytest.fixture(scope="module")
def case(files: dict[str, bytes], folder: Path, prepared: Path) -> Case:
    """A case of all kinds, from a seed."""
    studio = StudioCalls(prepared, folder / "studio")

    def one(seed: int) -> str:
        rng = np.random.default_rng(seed)
        which = rng.random()
        if which < _READING:
            return reading_case(rng, files, folder)
        if which < _READING + _STUDIO:
            return studio.case(rng)
        return command_case(family_of(rng), rng, prepared, folder / "place")

    return one


@pytest.fixture(scope="module")
def trap(folder: Path, prepared: Path) -> Case:
    """A case with a hostile file, from a seed."""
    traps = Traps(prepared, folder)
    return lambda seed: traps.case(np.random.default_rng(seed))


def test_what_is_not_damaged_is_read(files, folder):
    for kind, content in files.items():
        try_to_read(kind, content, folder, honest=True)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_command_works_with_inputs_that_are_not_damaged(prepared, folder, name):
    wrong = undamaged(name, prepared, folder / "place")
    assert not wrong or (name == "inspect-xacro" and "xacro" in wrong)  # the package may be missing


def test_only_the_memory_of_the_cases_is_judged(monkeypatch):
    monkeypatch.setattr(judge, "GIGABYTES", 0.2)
    before = np.ones(40_000_000)  # 0.32 GB
    assert not judged(lambda seed: "", range(2)).failures
    assert judged(lambda seed: "" if np.ones(40_000_000).all() else "zeros", range(1)).failures
    assert before.all()


def test_damaged_inputs_end_in_sentences(case):
    found = judged(case, range(250))
    assert not found.failures, "\n\n".join(found.failures)


def test_hostile_files_end_in_sentences_and_change_nothing(trap):
    found = judged(trap, range(40))
    assert not found.failures, "\n\n".join(found.failures)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_hostile_files_end_in_sentences_and_change_nothing(trap, part):
    seeds = range(FIRST_SEED + part, FIRST_SEED + CASES // 5, PARTS)
    found = judged(trap, seeds)
    print(f"{len(seeds)} cases, {found.seconds / len(seeds):.3f} s of the processor each")
    assert not found.failures, "\n\n".join(found.failures)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_damaged_inputs_end_in_sentences(case, part):
    seeds = range(FIRST_SEED + part, FIRST_SEED + CASES - CASES // 5, PARTS)
    found = judged(case, seeds)
    print(f"{len(seeds)} cases, {found.seconds / len(seeds):.3f} s of the processor each")
    assert not found.failures, "\n\n".join(found.failures)
