"""Generated C on a Cortex-M4 in QEMU: right to the precision of float, and as large as the docs say."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest
from refusals import refused

from dynid.errors import NotPossibleError

ROOT = Path(__file__).parents[2]
BENCHMARK = str(ROOT / "benchmarks" / "embedded.py")


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
                    reason="arm-none-eabi-gcc and qemu-system-arm are not both installed")
def test_torques_online_estimation_and_observer_on_a_cortex_m():
    """Other versions of gcc differ a little; a change of the generator that costs memory or time is seen."""
    found = runpy.run_path(BENCHMARK)["run"](lambda words: None)
    assert max(found["errors"].values()) < 1e-6
    page = (ROOT / "docs" / "code.md").read_text()
    rows = {name: [int(x) for x in numbers.split("|")] for name, numbers in
            re.findall(r"^\| `arm_(\w+)` \| (\d+ \| \d+ \| \d+) \|$", page, flags=re.MULTILINE)}
    assert set(rows) == set(found["functions"])
    for name, (code, stack, instructions) in rows.items():
        ours = found["functions"][name]
        assert ours["code"] == pytest.approx(code, rel=0.15)
        assert ours["stack"] == pytest.approx(stack, rel=0.2, abs=64)
        assert ours["instructions"] == pytest.approx(instructions, rel=0.15)


def test_a_missing_toolchain_is_a_sentence(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with refused(NotPossibleError, "missing-toolchain", "arm-none-eabi-gcc is not installed", "apt-get install"):
        runpy.run_path(BENCHMARK)["run"](lambda words: None)
