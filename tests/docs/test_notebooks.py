"""Notebooks of the tutorials are current, hold no outputs, and run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from documentation import DOCS, ROOT
from make_notebooks import NOTEBOOKS, PAGES, notebook
from page_blocks import data_of

DATA = Path(os.environ.get("DYNID_DATA", ROOT.parent / "shared" / "data"))


def test_every_tutorial_has_one():
    tutorials = {page.stem for page in (DOCS / "learn").glob("*.md")} - {"index"} | {"tutorial"}
    assert tutorials == {page.stem for page in PAGES}
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_is_what_the_page_makes_of_it(page):
    text = (NOTEBOOKS / f"{page.stem}.ipynb").read_text(encoding="utf-8")
    assert text == notebook(page), "python docs/make_notebooks.py makes it anew"
    assert all(not cell.get("outputs") for cell in nbformat.reads(text, 4)["cells"])


def test_a_repository_gives_a_badge_that_opens_the_notebook():
    cells = nbformat.reads(notebook(PAGES[0], "someone/dynid"), 4)["cells"]
    assert f"/github/someone/dynid/blob/main/docs/notebooks/{PAGES[0].stem}.ipynb" in cells[0]["source"]
    assert "git clone" in cells[1]["source"] and cells[2]["source"].startswith("# ")
    assert nbformat.reads(notebook(PAGES[0], ""), 4)["cells"][0]["source"].startswith("# ")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_runs(page, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    missing = [name for name in data_of(page) if not (DATA / name).exists()]
    if missing:
        pytest.skip(f"needs the data folder: {', '.join(missing)} not below DYNID_DATA")
    monkeypatch.setenv("DYNID_DATA", str(DATA))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(DOCS / "example", tmp_path / "example")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    book = nbformat.reads((NOTEBOOKS / f"{page.stem}.ipynb").read_text(encoding="utf-8"), 4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    printed = "".join(output.get("text", "") for cell in book["cells"] for output in cell.get("outputs", []))
    assert "Traceback" not in printed and "Error" not in printed
