"""dynid bench: finds benchmarks beside the source, runs one, and says what is missing."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from dynid.cli.scripts import Scripts

ROOT = Path(__file__).resolve().parents[2]

SMALL = '''"""Adds two numbers."""
def run(progress):
    progress("adding")
    print("a peer that talks")
    return {"sum": 1 + 1}
def table(result):
    return [("work", "result"), ("1 + 1", str(result["sum"]))]
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("dynid.cli.bench.FOLDER", tmp_path)
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "peer.py").write_text('"""Needs a peer."""\ndef run(progress):\n    import no_such_peer\n')
    (tmp_path / "_shared.py").write_text("raise SystemExit('a helper is not a benchmark')")
    return tmp_path


def test_lists_benchmarks_by_their_first_line(dynid, folder):
    assert json.loads(dynid("bench", "--json").out) == {"benchmarks": {"peer": "Needs a peer.",
                                                                        "small": "Adds two numbers."}}
    assert "Adds two numbers." in dynid("bench").out


def test_json_is_all_of_stdout(dynid, folder):
    shown = dynid("bench", "small", "--json")
    assert shown.code == 0 and json.loads(shown.out) == {"sum": 2}


def test_table_for_people(dynid, folder):
    shown = dynid("bench", "small")
    assert shown.code == 0 and "1 + 1" in shown.out and "a peer that talks" not in shown.out


def test_all_of_them_without_those_that_cannot_run_here(dynid, folder):
    found = json.loads(dynid("bench", "--all", "--json").out)
    assert found.pop("small") == {"sum": 2}
    assert list(found) == ["peer"] and "no_such_peer" in found["peer"]["not_run"]
    shown = dynid("bench", "--all")
    assert shown.code == 0 and "1 + 1" in shown.out and "no_such_peer" in shown.out


def test_a_missing_peer_names_the_extra(dynid, folder):
    shown = dynid("bench", "peer", "--json")
    assert (shown.code, shown.out) == (1, "")
    assert shown.error == "missing-package" and "no_such_peer" in shown.err and "dynid[dev]" in shown.err


def test_an_unknown_benchmark(dynid, folder):
    shown = dynid("bench", "smal")
    assert shown.error == "unknown-name" and "small" in shown.err
    assert dynid("bench", "small", "--all").code == 2


def test_an_installation_without_the_scripts_says_how_to_get_them(dynid, folder, monkeypatch):
    monkeypatch.setattr("dynid.cli.bench.FOLDER", folder / "nowhere")
    shown = dynid("bench")
    assert shown.code == 1 and shown.error == "missing-scripts"


def test_the_benchmarks_of_this_source_tree_are_well_formed(dynid):
    listed = json.loads(dynid("bench", "--json").out)["benchmarks"]
    assert all(listed.values())


def test_options_reach_the_benchmark_that_has_them(dynid, folder):
    (folder / "parts.py").write_text('"""Has parts."""\ndef run(progress, only=(), machines=200):\n'
                                     '    return {"only": list(only), "machines": machines}\n')
    shown = dynid("bench", "parts", "--only", "a,b", "--machines", "3", "--json")
    assert json.loads(shown.out) == {"only": ["a", "b"], "machines": 3}
    refused = dynid("bench", "small", "--machines", "3")
    assert refused.code == 2 and refused.error == "unknown-option"


@pytest.mark.parametrize("name", ["benchmarks", "reproductions"])
def test_scripts_import_each_other_by_their_package_so_that_none_hides_a_module(name):
    """A folder of scripts on the path of modules would hide every package of the same name: coverage, online, fleet."""
    files = list((ROOT / name).rglob("*.py"))
    siblings = {path.stem for path in files if path.stem != "__init__"} | {"figures"}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else [
                one.name for one in node.names] if isinstance(node, ast.Import) else []
            assert not siblings & {one.partition(".")[0] for one in imported}, (path.name, imported)
    Scripts("script", ROOT / name, "needs").load("defaults" if name == "benchmarks" else "base-parameters")
    assert str(ROOT / name) not in sys.path
