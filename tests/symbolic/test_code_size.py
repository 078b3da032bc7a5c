"""The table of code sizes in the docs, against the compiler here."""

from __future__ import annotations

import platform
import re
import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("size") is None or platform.machine() != "x86_64",
                    reason="the table is of gcc on x86-64")
def test_the_page_on_code_says_what_the_compiler_says():
    """Other versions of gcc differ a little, a change of the generator that costs memory is seen."""
    found = runpy.run_path(str(ROOT / "benchmarks" / "code_size.py"))["run"](lambda words: None)
    page = (ROOT / "docs" / "code.md").read_text()
    rows = {name: [int(x) for x in numbers.split("|")] for name, numbers in
            re.findall(r"^\| `(\w+)` \| (\d+ \| \d+ \| \d+ \| \d+) \|$", page, flags=re.MULTILINE)}
    assert set(rows) == set(found["functions"])
    for name, (code, stack, code_float, stack_float) in rows.items():
        ours = found["functions"][name]
        assert ours["double"]["code"] == pytest.approx(code, rel=0.15)
        assert ours["float"]["code"] == pytest.approx(code_float, rel=0.15)
        assert ours["double"]["stack"] == pytest.approx(stack, rel=0.2, abs=64)
        assert ours["float"]["stack"] == pytest.approx(stack_float, rel=0.2, abs=64)
    state = found["online_state"]
    assert f"struct of {state['double']} bytes (`float`: {state['float']})" in page.replace("\n", " ")
