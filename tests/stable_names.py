"""The names that other programs rely on, from the code itself; run as a script, it writes the stored list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

import dynid
from dynid.cli.main import COMMANDS, app
from dynid.cli.schema import FORMS, command_schema
from dynid.runs.schema import run_file_schema

STORED = Path(__file__).with_name("stable_names.txt")
RESULTS_PAGE = Path(__file__).parents[1] / "docs" / "results.md"
API_PAGES = Path(__file__).parents[1] / "docs" / "api"


def stable_names() -> list[str]:
    """One line per name, sorted: commands and their options, keys of the run file and of outputs, codes of findings,
    public names."""
    return sorted({*_options(), *_run_file_keys(), *_output_keys(), *_finding_codes(), *_public_names()})


def _options() -> Iterator[str]:
    group = typer.main.get_command(app)
    for name in COMMANDS:
        yield f"command {name}"
        for parameter in group.get_command(None, name).params:  # type: ignore[attr-defined]
            if parameter.name != "help":
                options = [one for one in parameter.opts if one.startswith("--")]
                yield from (f"command {name} {one}" for one in options or [parameter.name.upper()])


def _run_file_keys() -> Iterator[str]:
    schema = run_file_schema()

    def keys(part: Mapping[str, Any], start: str) -> Iterator[str]:
        for name, inner in part.get("properties", {}).items():
            yield f"run-file {start}{name}"
            items = inner.get("items", {})
            for choice in (inner, *inner.get("anyOf", ()), items, *items.get("anyOf", ())):
                reference = choice.get("$ref", "").rpartition("/")[2]
                if reference:
                    yield from keys(schema["$defs"][reference], f"{start}{name}.")
    return keys(schema, "")


def _output_keys() -> Iterator[str]:
    """`json COMMAND KEY` of the objects that commands print, `json Definition.KEY` of those inside them."""
    for name in FORMS:
        schema = command_schema(name)
        for form in schema.get("anyOf", [schema]):
            yield from (f"json {name} {key}" for key in form["properties"])
        for part, inner in schema["$defs"].items():
            yield from (f"json {part}.{key}" for key in inner["properties"])


def _finding_codes() -> Iterator[str]:
    """Every code in the first column of the tables of codes and of residual patterns."""
    page = RESULTS_PAGE.read_text(encoding="utf-8")
    for heading, start in (("code", ""), ("pattern", "residual-follows-")):
        rows = page.partition(f"| {heading} | meaning |\n")[2].partition("\n\n")[0]
        for cell in re.findall(r"^\|([^|]*)\|", rows, flags=re.MULTILINE):
            yield from (f"finding {start}{code}" for code in re.findall(r"`([a-z0-9-]+)`", cell))


def _public_names() -> Iterator[str]:
    """Names at the top, and everything that a page of the Python reference describes."""
    yield from (f"python dynid.{name}" for name in dynid.__all__)
    for page in API_PAGES.glob("*.md"):
        for block in re.findall(r"```{api}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            yield from (f"python dynid.{name}" for name in block.split())


if __name__ == "__main__":
    STORED.write_text("\n".join(stable_names()) + "\n", encoding="utf-8")
