"""Make docs/notebooks/*.ipynb of the tutorials: a cell a paragraph or block, without outputs.

Files that a page shows are written by a cell, commands are run by the shell, and links lead to the pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import nbformat
from examples import BLOCK, Block

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE / "notebooks"
LEARN = ("emps", "arm", "payload", "live", "servo", "quadruped")
PAGES = [*(HERE / "learn" / f"{name}.md" for name in LEARN), HERE / "tutorial.md"]
SETUP = {"tutorial": "import os\n\nos.chdir(\"../example\")\n!python make_logs.py"}


def cells(page: Path) -> list[nbformat.NotebookNode]:
    """The page as cells: text, and what of it runs."""
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for block in BLOCK.finditer(text):
        found += [_words(text[end:block.start()], page), _code(Block(*block.groups()))]
        end = block.end()
    found.append(_words(text[end:], page))
    start = [nbformat.v4.new_code_cell(SETUP[page.stem])] if page.stem in SETUP else []
    return [*found[:1], *start, *(one for one in found[1:] if one["source"])]


def _words(text: str, page: Path) -> nbformat.NotebookNode:
    folder = page.parent.relative_to(HERE).as_posix()

    def link(found: re.Match[str]) -> str:
        return f"]({posixpath.normpath(posixpath.join('..', folder, found.group(1)))})"

    return nbformat.v4.new_markdown_cell(re.sub(r"\]\((?!https?:|#)([^)]+)\)", link, text.strip()))


def _code(block: Block) -> nbformat.NotebookNode:
    if block.file:
        return nbformat.v4.new_code_cell(f"%%writefile {block.file}\n{block.text.rstrip()}")
    if block.commands:
        start = "%%bash --no-raise-error" if "# exit code" in block.text else "%%bash"
        return nbformat.v4.new_code_cell(f"{start}\n{block.text.rstrip()}")
    if block.language == "python":
        return nbformat.v4.new_code_cell(block.text.rstrip())
    return nbformat.v4.new_markdown_cell(f"```{block.language}\n{block.text}```")


def notebook(page: Path) -> str:
    """The page as the text of a notebook; cells are numbered, so that it is the same every time."""
    made = nbformat.v4.new_notebook(cells=cells(page))
    made["metadata"]["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(made["cells"]):
        cell["id"] = f"{page.stem}-{number}"
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def main() -> None:
    """Write those that are not current."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in PAGES:
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook(page), encoding="utf-8")


if __name__ == "__main__":
    main()
