"""Make docs/notebooks/*.ipynb of the tutorials: a cell a paragraph or block, without outputs.

Files that a page shows are written by a cell, commands are run by the shell, and links lead to the pages. Where
pyproject.toml names a repository on GitHub ([project.urls], Repository), a badge opens the notebook in Colab.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from pathlib import Path

import nbformat
from page_blocks import BLOCK, Block

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE / "notebooks"
LEARN = ("emps", "arm", "payload", "live", "servo", "quadruped")
PAGES = [*(HERE / "learn" / f"{name}.md" for name in LEARN), HERE / "tutorial.md"]
SETUP = {"tutorial": "import os\n\nos.chdir(\"../example\")\n!python make_logs.py"}


COLAB = "https://colab.research.google.com"


def repository() -> str:
    """Owner and name of the repository on GitHub that pyproject.toml states, or an empty text."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "")
    found = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?/?", address)
    return found.group(1) if found else ""


def badge(page: Path, place: str) -> list[nbformat.NotebookNode]:
    """The badge and the installation that Colab needs, for a repository OWNER/NAME; nothing without one."""
    if not place:
        return []
    link = f"{COLAB}/github/{place}/blob/main/docs/notebooks/{page.stem}.ipynb"
    return [nbformat.v4.new_markdown_cell(f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({link})"),
            nbformat.v4.new_code_cell("import importlib.util\n\nif importlib.util.find_spec(\"dynid\") is None:\n"
                                      f"    !git clone --depth 1 https://github.com/{place} dynid-source\n"
                                      "    !pip install --quiet \"./dynid-source[logs,plot]\"\n"
                                      "    %cd dynid-source/docs/notebooks")]


def cells(page: Path) -> list[nbformat.NotebookNode]:
    """Return the page as cells of text and code."""
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


def notebook(page: Path, place: str | None = None) -> str:
    """The page as the text of a notebook; cells are numbered, so that it is the same every time. place: OWNER/NAME of
    the repository, by default that of pyproject.toml."""
    made = nbformat.v4.new_notebook(cells=badge(page, repository() if place is None else place) + cells(page))
    made["metadata"]["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(made["cells"]):
        cell["id"] = f"{page.stem}-{number}"
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def main() -> None:
    """Write the notebooks that are not up to date."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in PAGES:
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook(page), encoding="utf-8")


if __name__ == "__main__":
    main()
