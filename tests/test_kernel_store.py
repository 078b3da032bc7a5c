"""Kernels that a second process loads without numba, and what it does where it cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dynid import kernel_store

KERNELS = """
import sys
from typing import NamedTuple
import numpy as np
from dynid.kernel_store import njit

class Pair(NamedTuple):
    a: np.ndarray
    b: float

@njit(cache=True)
def inner(x):
    out = np.empty(3)
    out[:] = x
    return out

@njit(cache=True)
def total(pair, matrix, count, is_negative):
    scratch = np.zeros(3) + inner(pair.b)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            pair.a[0] += matrix[i, j] * scratch[j]
    if count < 0:
        raise ValueError("a negative count")
    return -pair.a[0] * count if is_negative else pair.a[0] * count

@njit(cache=True)
def both(x):
    return x, x + 1.5

@njit(cache=True)
def ends(x):
    return len(x), x.shape[0] + 1

@njit(cache=True)
def between(x, scale, start, stop):
    if stop > len(x):
        raise IndexError("beyond the end")
    return scale * x[start:stop].sum()
"""
CALLS = """
a, matrix = np.array([1.0]), np.arange(12.0).reshape(4, 3)
assert ends(a) == (1, 2)
found = [total(Pair(a, 2.0), matrix, 3, True), a[0], total(Pair(a, 2.0), matrix.T.copy().T[:, ::-1], 1, False)]
print(*found, "numba" in sys.modules)
"""
BOUND = """
x = np.arange(5.0)
part = between.bound(x, 2.0)
print(part(0, 5), part(1, 3), part(4, 4))
x[:] = 1.0
print(part(0, 5), "numba" in sys.modules)
"""
CURVES = """
import ctypes
from dynid.model import curve, friction, friction_curve, shaped_friction, springs
from dynid.model.elements import CurveFunction
kind, worst, count = ctypes.CFUNCTYPE(*[ctypes.c_double] * 3, ctypes.c_void_p), 0.0, 0
for module in (friction, friction_curve, shaped_friction, springs):
    for one in (found for found in vars(module).values() if isinstance(found, CurveFunction)):
        values = np.array([0.7, 0.3, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
        for q, dq in ((0.2, 0.5), (-0.4, -1.3)):
            worst = max(worst, abs(kind(one.address)(q, dq, values.ctypes.data) - one(q, dq, values)))
            count += 1
print(worst < 1e-12, count >= 12, "numba" in sys.modules)
"""
# These load numba in the second process too.
ERRORS = """
try:
    total(Pair(np.zeros(1), 2.0), np.zeros((4, 3)), -1, False)
except ValueError as error:
    print(error)
try:
    part(0, 6)
except IndexError as error:
    print(error, part(0, 2))
"""
OWN_CURVE = """
own = curve(lambda q, dq, values: q)
print(kind(own.address)(3.0, 0.0, values.ctypes.data), "numba" in sys.modules)
"""
NOT_KEPT = "print(*both(1), *both(np.arange(2.0))[1])"
SMALL = "print(*ends(np.zeros(4)), 'numba' in sys.modules)"


def outcome(folder: Path, calls: str = CALLS, **environment: str) -> list[str]:
    """What a process of its own prints."""
    (folder / "kernels.py").write_text(KERNELS)
    os.utime(folder / "kernels.py", (1, 1))  # the same file each time
    done = subprocess.run([sys.executable, "-c", f"from kernels import *\n{calls}"], capture_output=True, text=True,
                          cwd=folder, env={**os.environ, kernel_store.VARIABLE: str(folder / "kept"),
                                           "PYTHONPATH": os.pathsep.join([
                                               str(folder), str(Path(kernel_store.__file__).parents[1])]),
                                           **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "kept").glob(f"*{kernel_store.SUFFIX}"))


class Process(NamedTuple):
    """Lines that a process printed, by the calls that it made, and the files that there were after it."""

    calls: list[str]
    bound: list[str]
    curves: list[str]
    errors: list[str]
    own_curve: list[str]
    not_kept: list[str]
    files: list[Path]

    @staticmethod
    def from_folder(folder: Path) -> Process:
        parts = [CALLS, BOUND, CURVES, ERRORS, OWN_CURVE, NOT_KEPT]
        lines = outcome(folder, "\nprint('next')\n".join(parts))
        ends = [k for k, line in enumerate(lines) if line == "next"]
        found = [lines[start + 1:end] for start, end in zip([-1, *ends], [*ends, len(lines)], strict=True)]
        return Process(*found, files=kept(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def test_a_kernel_that_cannot_be_stored_is_compiled_by_numba_alone(tmp_path: Path) -> None:
    """Its results are those of numba, for every type of argument, and no file is written."""
    code = ("from kernels import *\nfrom kernels import ends as stored\n"
            "ends = njit(cache=True, is_storable=False)(stored.py_func)\n"
            "print(*ends(np.zeros(4)), *ends(np.zeros(2)), ends._is_left_to_numba, 'numba' in sys.modules)")
    assert outcome(tmp_path, code) == ["4 5 2 3 True True"]
    assert not kept(tmp_path)


def test_a_kernel_that_is_called_often_is_left_to_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same before and after, for several types of arguments."""

    def times(x: np.ndarray, y: float) -> float:
        return x[0] * y

    monkeypatch.setattr(kernel_store, "_CALLS_UNTIL_NUMBA", 3)
    kernel_store.load_numba()
    kernel, found = kernel_store.njit()(times), []
    for _ in range(3):
        found.append((kernel(np.array([2.0]), 3.0), kernel(np.array([2]), 3.0), kernel._is_left_to_numba))
    assert found == [(6.0, 6.0, False), (6.0, 6.0, True), (6.0, 6.0, True)]


def test_a_kernel_that_is_always_inlined_is_not_compiled_by_itself() -> None:
    """Its caller contains it: compiling it as well takes as long as the caller."""

    def twice(x: float) -> float:
        return 2.0 * x

    inner = kernel_store.njit(inline="always")(twice)

    def outer(x: float) -> float:
        return inner(x) + 1.0

    assert kernel_store.njit()(outer).dispatcher(3.0) == 7.0
    assert inner.dispatcher.overloads == {}


@pytest.fixture(scope="module")
def processes(folder: Path) -> list[Process]:
    """Two processes, one after the other, with the same calls: the first compiles, the second finds what is kept."""
    return [Process.from_folder(folder) for _ in range(2)]


def test_a_second_process_does_not_load_numba(processes: list[Process]) -> None:
    # 1 + 2 (0 + ... + 11) = 133, then 133 + 132
    assert [one.calls for one in processes] == [[f"-399.0 133.0 265.0 {is_loaded}"] for is_loaded in (True, False)]
    assert processes[0].files == processes[1].files
    of_total = [file for file in processes[0].files if ".total-" in file.name]
    assert len(of_total) == 2  # two layouts of the matrix


def test_an_error_is_raised_as_numba_raises_it(processes: list[Process]) -> None:
    assert [one.errors[0] for one in processes] == ["a negative count"] * 2


def test_a_bound_call_passes_its_last_arguments_and_raises_errors(processes: list[Process]) -> None:
    """By numba in the first process, by the stored code in the second; arrays that change are seen."""
    assert [one.bound for one in processes] == [["20.0 6.0 0.0", f"10.0 {is_loaded}"] for is_loaded in (True, False)]
    assert [one.errors[1] for one in processes] == ["beyond the end 4.0"] * 2


def test_curves_of_dynid_are_kept_and_those_of_a_user_are_not(processes: list[Process]) -> None:
    """Every curve, at its address and in Python: from numba in the first process, from a file in the second."""
    assert [one.curves for one in processes] == [[f"True True {is_loaded}"] for is_loaded in (True, False)]
    assert [one.own_curve for one in processes] == [["3.0 True"]] * 2


def test_a_result_that_is_not_kept_comes_from_numba(processes: list[Process]) -> None:
    assert [one.not_kept for one in processes] == [["1 2.5 1.5 2.5"]] * 2  # the second reads that there is no code
    noted = [file for file in processes[0].files if ".both-" in file.name]
    assert len(noted) == 2 and all(file.read_bytes().endswith(b"\n") for file in noted)  # a head alone


def test_another_numba_runs_the_kernels_itself(tmp_path: Path) -> None:
    """Code is stored by parts of numba that are not public; where one is missing, results are the same."""
    without = ("from dynid import kernel_store\n"
               "def missing(*_): raise AttributeError('_final_module')\n"
               "kernel_store._compiled_alone = missing\n")
    assert outcome(tmp_path, without + SMALL) == ["4 5 True"]
    assert not kept(tmp_path)


@pytest.mark.parametrize("damage", ["code", *(pytest.param(one, marks=pytest.mark.slow) for one in ("cut", "calls"))])
def test_a_file_that_does_not_fit_is_made_anew(tmp_path: Path, damage: str) -> None:
    assert outcome(tmp_path, SMALL) == ["4 5 True"]
    for file in kept(tmp_path):
        head, _, code = file.read_bytes().partition(b"\n")
        facts = json.loads(head)
        if damage in facts:
            facts[damage] = ["no_such_function_anywhere"] if damage == "calls" else "of another version"
            head = json.dumps(facts).encode()
        file.write_bytes({"code": head + b"\n" + code[:-9] + b"corrupted", "cut": head}.get(
            damage, head + b"\n" + code))
    assert outcome(tmp_path, SMALL) == ["4 5 True"]
    assert outcome(tmp_path, SMALL) == ["4 5 False"]


def test_numba_s_settings_belong_to_the_key(folder: Path, processes: list[Process]) -> None:
    """What is kept is not found with other settings, although the second process found it."""
    assert outcome(folder, SMALL, NUMBA_OPT="1") == ["4 5 True"]


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    code = "import dynid.kernel_cache as cache; cache._without_cache()\n" + SMALL
    assert outcome(tmp_path, code) == ["4 5 True"]


def test_flattened_arguments_are_those_of_numba() -> None:
    """The words of an array: no owner, size, bytes an entry, address, shape and strides."""
    words: list[object] = []
    array = np.zeros((2, 3))[:, 1:]
    assert kernel_store._flatten(words, array) == ("<f8", 2, "A", True, True)
    assert words == [0, 0, 4, 8, array.ctypes.data, 2, 2, 24, 8]
    for value in ("text", None, 1j, np.float32(1.0), [1.0]):
        with pytest.raises(TypeError):
            kernel_store._flatten(words, value)


def test_processes_that_need_one_kernel_at_once_compile_it_once(tmp_path: Path) -> None:
    """The first is held in the middle of its compilation until the second waits for it; the second then only reads."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    code = """
import os, pathlib, sys, time
from dynid import kernel_store
own, compile = sys.argv[1], kernel_store._compile
def told(*arguments):
    pathlib.Path(own).write_text("compiles")
    while os.environ["OTHER"] and not pathlib.Path(os.environ["OTHER"]).exists():
        time.sleep(0.01)
    return compile(*arguments)
kernel_store._compile = told
from kernels import *
if not os.environ["OTHER"]:
    read = kernel_store._read
    def asked(*arguments):
        found = read(*arguments)
        pathlib.Path("asked").touch()  # it has found no file, and asks for the lock next
        return found
    kernel_store._read = asked
print(*ends(np.zeros(4)))
"""
    environment = {**os.environ, kernel_store.VARIABLE: str(tmp_path / "kept"), "PYTHONPATH": os.pathsep.join(
        [str(tmp_path), str(Path(kernel_store.__file__).parents[1])])}

    def start(name: str, other: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", code, name], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
                                env={**environment, "OTHER": other})

    with start("first", "asked") as first:
        while not (tmp_path / "first").exists():
            assert first.poll() is None
            time.sleep(0.01)
        with start("second", "") as second:
            assert [one.communicate()[0].split() for one in (first, second)] == [["4", "5"]] * 2
    assert not (tmp_path / "second").exists()
