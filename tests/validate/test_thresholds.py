"""The table of thresholds: each has a reason and a use, and values of findings are where thresholds say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynid.validate import thresholds

TABLE = Path(thresholds.__file__)
NAMES = [name for name in vars(thresholds) if name.isupper()]


@pytest.fixture(scope="module")
def used() -> set[str]:
    """Every word of the modules beside the table."""
    return {word for path in TABLE.parent.rglob("*.py") if path != TABLE
            for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("name", NAMES)
def test_a_threshold_has_a_reason_and_a_use(name: str, used: set[str]) -> None:
    line = next(line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name} = "))
    assert len(line.partition("#")[2].split()) >= 2, "what it decides, and its unit"
    assert name in used, f"{name} is used nowhere"


def test_a_threshold_is_defined_once() -> None:
    """A module that needs a value of the table imports it."""
    for path in TABLE.parent.rglob("*.py"):
        if path != TABLE:
            own = re.findall(r"^([A-Z][A-Z_0-9]+) = ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            assert not set(own) & set(NAMES), path.name
