"""dynid reproduce: pages with figures, sizes of studies, and what everything took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SMALL = '''"""A line (a document, figure 1).

Chosen here:

- the slope
- the start
"""
IN_ALL = {"logs": 2}
def run(progress, logs=5):
    progress("drawing")
    printed = {"document": "009", "table": "1", "page": 7, "printed": 5, "compared": 3, "within": 2, "failures": [],
               "not_comparable": {"it is given": 2}, "entries": []}
    return {"logs": logs, "x": [0.0, 1.0], "y": [0.0, 2.0], "checks": {"the slope is 2": True}, "printed": [printed],
            "demonstrations": {"a line is straight": True}}
def table(result):
    return [("what", "theirs", "ours"), ("slope", "2.1", "2.0")]
'''
PLAIN = '''"""No figure."""
def run(progress):
    printed = {"document": "009", "table": "2", "page": None, "printed": 4, "compared": 4, "within": 3,
               "not_comparable": {}, "failures": ["009, table 2, a row: 1.0 for 2.0"], "entries": []}
    return {"checks": {"this holds": True, "this does not": False}, "printed": [printed]}
def table(result):
    return [("what", "ours"), ("a", "1 +- 2")]
'''
FIGURES = '''"""Figures of small."""
from dynid.report.drawing import PlotCurve, Drawing, Panel
def figures(result):
    return [Drawing("The line", "figure 1: a line.", (Panel("line", "time, s", "way, m", (
        PlotCurve("ours", result["x"], result["y"]), PlotCurve("printed", [0.5], [1.05], "points", "printed"))),))]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    place = tmp_path / "reproductions"
    (place / "figures").mkdir(parents=True)
    (place / "small_line.py").write_text(SMALL)
    (place / "without.py").write_text(PLAIN)
    (place / "figures" / "small_line.py").write_text(FIGURES)
    monkeypatch.setattr("dynid.cli.reproduce.FOLDER", place)
    return place


def test_a_page_has_figures_what_holds_and_both_numbers(dynid, folder, tmp_path) -> None:
    shown = dynid("reproduce", "small-line", "-o", str(tmp_path / "pages"))
    assert shown.code == 0 and "small-line.html" in shown.out
    page = (tmp_path / "pages" / "small-line.html").read_text()
    for part in ("The line", "figure 1: a line.", "the slope is 2", "<td class=\"n\">2.1</td>", "<li>the slope</li>",
                 "way, m", "src=\"http"):
        assert (part in page) == (part != "src=\"http"), part


def test_a_seed_is_given_to_a_study_that_takes_one(dynid, folder) -> None:
    (folder / "seeded.py").write_text(PLAIN.replace("def run(progress):", "def run(progress, seed=3):").replace(
        '"this does not": False', '"seed 17 was given": seed == 17').replace('"printed": [printed]', '"printed": []'))
    assert dynid("reproduce", "seeded", "--seed", "17").code == 0
    assert dynid("reproduce", "seeded").code == 1
    refused = dynid("reproduce", "small-line", "--seed", "17")
    assert refused.code != 0 and refused.error == "unknown-option"


def test_open_writes_to_a_new_folder_and_opens_the_page(dynid, folder, monkeypatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert dynid("reproduce", "small-line", "--open").code == 0
    assert len(opened) == 1 and opened[0].startswith("file://") and opened[0].endswith("small-line.html")
    assert Path(opened[0].removeprefix("file://")).exists()


def test_one_without_figures_has_its_page_and_a_failed_check_its_code(dynid, folder, tmp_path) -> None:
    shown = dynid("reproduce", "without", "-o", str(tmp_path / "pages"))
    assert shown.code == 1 and "DOES NOT HOLD: this does not" in shown.out
    page = (tmp_path / "pages" / "without.html").read_text()
    assert 'id="figures"' not in page and "1 \u00b1 2" in page and "this does not" in page


def test_pages_are_not_replaced_unasked(dynid, folder, tmp_path) -> None:
    place = str(tmp_path / "pages")
    assert dynid("reproduce", "small-line", "-o", place).code == 0
    assert dynid("reproduce", "small-line", "-o", place).code == 2
    assert dynid("reproduce", "small-line", "-o", place, "--force").code == 0


def test_all_runs_the_smaller_studies_and_sums_up(dynid, folder) -> None:
    found = json.loads(dynid("reproduce", "--all", "--json").out)
    assert found["small-line"]["logs"] == 2 and set(found) == {"small-line", "without"}
    assert json.loads(dynid("reproduce", "small-line", "--json").out)["logs"] == 5
    shown = dynid("reproduce", "--all")
    assert shown.code == 1 and "CPU s" in shown.out and "2 of 3" in shown.out
    last = " ".join(shown.out.split()).rpartition("5 of 7")[1:]
    assert "".join(last) == ("5 of 7 printed numbers reproduced, 2 not reproduced, 2 cannot be compared")


def test_checks_of_a_study_that_no_document_prints_are_demonstrations(dynid, folder, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (folder / "without.py").write_text("OWN_STUDY = True\n" + PLAIN)
    shown = dynid("reproduce", "without")
    assert shown.code == 1 and "demonstration holds: this holds" in shown.out
    assert "demonstration DOES NOT HOLD: this does not" in shown.out
    row = next(line.split() for line in dynid("reproduce", "--all").out.splitlines()
               if line.strip().startswith("all ") and " of " in line)
    assert row[1:10] == ["5", "of", "7", "1", "of", "1", "2", "of", "3"], row


def test_the_whole_studies_of_make_are_those_with_a_smaller_size() -> None:
    """Of the reproductions as they are."""
    from dynid.cli.reproduce import FOLDER as real
    from dynid.cli.scripts import Scripts

    smaller = {name for name, path in Scripts("reproduction", real, "needs").names().items()
               if "\nIN_ALL" in path.read_text()}
    makefile = (real.parent / "Makefile").read_text().replace("\\\n", " ")
    assert smaller == set(makefile.partition("WHOLE := ")[2].partition("\n")[0].split())


def test_printed_numbers_are_counted_and_a_claimed_one_that_fails_ends_with_1(dynid, folder, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = dynid("reproduce", "small-line")
    assert shown.code == 0 and "2 of 3 printed numbers reproduced" in shown.out
    assert "009, table 1, p. 7: 5 printed, 3 compared, 2 within tolerance; 2 not comparable: it is given" in shown.out
    assert "demonstration holds: a line is straight" in shown.out
    (folder / "without.py").write_text(PLAIN.replace('"this does not": False', '"this too": True'))
    shown = dynid("reproduce", "without")
    assert shown.code == 1 and "NOT REPRODUCED: 009, table 2, a row: 1.0 for 2.0" in shown.out
