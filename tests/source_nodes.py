"""Syntax trees of source files, for tests that read the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def source_nodes(folder: Path) -> Iterator[tuple[Path, list[ast.AST]]]:
    """Yield each Python file below a folder with the nodes of its tree, the module first.

    The nodes of all files together take much memory: keep what is needed of them.
    """
    for path in sorted(folder.rglob("*.py")):
        yield path, list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
