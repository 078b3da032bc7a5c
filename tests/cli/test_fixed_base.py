"""Robots with a free base at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from walkers import quadruped


@pytest.mark.parametrize("arguments", [["compare", "{}", "log.csv"], ["excite", "{}", "-o", "out.csv"],
                                       ["generate", "{}", "-o", "out"]])
def test_commands_without_support_say_so(dynid, tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "walker.xml"
    file.write_text(quadruped())
    (tmp_path / "log.csv").write_text("t,q\n0,0\n")
    shown = dynid(*(one.format(file).replace("log.csv", str(tmp_path / "log.csv")) for one in arguments))
    assert shown.error in ("free-base-unsupported", "no-standing-feet") and "--fixed-base" in shown.err


def test_inspect_shows_both_bases(dynid, tmp_path: Path) -> None:
    file = tmp_path / "walker.xml"
    file.write_text(quadruped())
    for options, dof in (([], 18), (["--fixed-base"], 12)):
        shown = dynid("inspect", file, *options, "--json")
        assert shown.code == 0 and len(json.loads(shown.out)["joints"]) == dof
