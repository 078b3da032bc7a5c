"""Code compiled from text is stored, used by the next process, and compiled again where the file is of no use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Counts what is compiled while a dataclass and an annotation are made, and prints what they are.
SCRIPT = """
import builtins, dataclasses, typing
from dynid.cli.kept_code import keep_compiled_text
keep_compiled_text(); keep_compiled_text()
plain, count = builtins.compile, []
builtins.compile = lambda *a, **k: (count.append(a[0]), plain(*a, **k))[1]
@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: "typing.ClassVar[int]" = 3
    z: tuple = (1, 2)
builtins.compile = plain
print(Point(1.5), Point(1.5) == Point(1.5, (1, 2)), typing.ForwardRef("int | None").__forward_code__.co_consts)
import sys; print(len(count), file=sys.stderr)
"""


def ran(folder: Path) -> tuple[str, int]:
    """Return what the script prints and how much it compiled, with byte code in a folder of its own."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return done.stdout, int(done.stderr)


def test_code_is_compiled_once(tmp_path: Path) -> None:
    first, compiled = ran(tmp_path)
    assert compiled > 0 and "Point(x=1.5, z=(1, 2)) True" in first
    assert ran(tmp_path) == (first, 0)
    [file] = tmp_path.rglob("compiled-text.*")
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), b"\0" * 8 + whole[8:]):
        file.write_bytes(damaged)
        assert ran(tmp_path) == (first, compiled)
        assert ran(tmp_path) == (first, 0)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert ran(tmp_path)[1] == ran(tmp_path)[1] > 0
