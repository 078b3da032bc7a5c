"""The scripts of examples/ and of other folders as modules."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"


def example(name: str, folder: str = "examples") -> types.ModuleType:
    """The module FOLDER/NAME.py, imported anew: what it imports may be a fake of this test, and scripts of two folders
    may have one name."""
    spec = importlib.util.spec_from_file_location(f"{folder}.{name}", ROOT / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for the names of their annotations
    spec.loader.exec_module(module)
    return module
