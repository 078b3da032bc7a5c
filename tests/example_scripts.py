"""The scripts of examples/ and of other folders as modules."""

from __future__ import annotations

import importlib.util
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"


def example(name: str, folder: str = "examples") -> types.ModuleType:
    """The module FOLDER/NAME.py, imported anew: what it imports may be a fake of this test, and scripts of two folders
    may have one name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
