"""The directive `{commands}`: the help of every command, as it prints, under a heading of its own."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PLAIN = {"TERM": "dumb", "COLUMNS": "84", "NO_COLOR": "1"}


def help_of(name: str) -> str:
    """What `dynid NAME --help` prints, 84 columns wide: as many as a code block of the page shows."""
    from typer.testing import CliRunner

    from dynid.cli.main import app

    return CliRunner().invoke(app, [name, "--help"], prog_name="dynid", env=PLAIN).stdout.strip()


class Commands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from dynid.cli.main import COMMANDS

        lines = [line for name in COMMANDS
                 for line in (f"## dynid {name}", "", "```text", *help_of(name).splitlines(), "```", "")]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
