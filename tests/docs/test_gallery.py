"""The gallery shows the stored results, and the simulated machines give them again."""

from __future__ import annotations

import json

import make_gallery
import pytest
from documentation import DOCS

STORED = json.loads(make_gallery.NUMBERS.read_text(encoding="utf-8"))


def test_the_page_shows_the_stored_results_of_twenty_machines():
    assert list(STORED) == [*make_gallery.SIMULATED, *make_gallery.REAL] and len(STORED) == 20
    assert make_gallery.PAGE.read_text(encoding="utf-8") == make_gallery.page(STORED), "python docs/make_gallery.py"


def test_every_machine_has_a_small_picture():
    sizes = {path.stem: path.stat().st_size for path in make_gallery.PICTURES.glob("*.svg")}
    assert set(sizes) == set(STORED) and sum(sizes.values()) < 1_000_000
    assert all(str(DOCS) not in path.read_text(encoding="utf-8") for path in make_gallery.PICTURES.glob("*.svg"))


def test_a_simulated_machine_gives_its_result_again(capsys):
    assert make_gallery.main(["scara2", "four-bar", "--check"]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_all_machines_give_their_results_again(capsys):
    assert make_gallery.main(["--check"]) == 0, capsys.readouterr().out


def test_other_results_are_named():
    other = {"scara2": {**STORED["scara2"], "error": 2.0 * STORED["scara2"]["error"], "parameters": 3}, "new": {}}
    found = make_gallery.differences(STORED, other)
    assert len(found) == 3 and found[0].startswith("scara2: error is") and "3 base parameters" in found[1]
    assert found[2] == "new is not in gallery.json"
