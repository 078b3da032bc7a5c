"""The scripts of examples/ as modules."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "examples"


def example(name: str) -> types.ModuleType:
    """The module of examples/NAME.py, imported anew: what it imports may be a fake of this test."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
