"""Output of commands: one JSON object for programs, tables for users, progress on stderr."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.escape import terminal_text
from dynid.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MAX_WORD = 24  # characters of the longest word that a table does not split: three such columns fit a screen
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def print_json(facts: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command on stdout; raise for a non-finite number, which would be a bug."""
    from dynid.files import json_text

    # File names may contain bytes that are not valid text.
    typer.echo(json_text(facts).encode(errors="backslashreplace").decode())


def typed_command() -> str:
    """Return the command line as it was typed, which a report shows so that the run can be repeated."""
    return shlex.join(["dynid", *sys.argv[1:]])


def saved(save: Callable[..., dict[str, str]], found: Any, output: Path | None, force: bool,
          progress: Callable[[str], None]) -> dict[str, str]:
    """Write a result with `save` and return the paths by name; return no paths if there is no output folder."""
    if output is None:
        return {}
    progress("writing")
    return save(found, output, typed_command(), force=force)


def print_outputs(written: Mapping[str, str]) -> None:
    """Print the kind and the path of each written file."""
    for name, path in written.items():
        console().print(f"{name}: {path}", markup=False)


def console() -> Console:
    """Return the console on stdout, as wide as the terminal, and plain text if stdout is not a terminal."""
    from dynid.cli.plain_console import PlainConsole

    return PlainConsole()


@contextmanager
def show_progress(task: str) -> Iterator[Progress]:
    """Yield a progress callback that shows the present step and the completed share on stderr. If stderr is not a
    terminal, the callback only reports compilation."""
    from dynid.cli.compilation import CompilationWatch
    from dynid.kernel_cache import take_note

    def say_note() -> None:
        note = take_note()
        if note:
            typer.echo(note, err=True)

    say_note()
    if not sys.stderr.isatty():
        with CompilationWatch(lambda sentence: typer.echo(sentence, err=True)):
            yield Progress(lambda sentence, share: None)
        say_note()
        return
    from dynid.cli.plain_console import PlainConsole

    with PlainConsole(stderr=True).status(task) as line, CompilationWatch(line.console.print):
        yield Progress(lambda sentence, share: line.update(
            f"{task}: {sentence}" + (f" ({share:.0%})" if share > 0.0 else "")))
    say_note()


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[str] = (),
          title: str | None = None) -> Table:
    """Return a table whose cells are literal text; the columns in `numbers` are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text(terminal_text(str(cell))) for cell in row] for row in rows]
    # No column is narrower than its longest word, so no word is split unless it is longer than MAX_WORD.
    widths = [min(max((len(word) for text in (name, *(row[k].plain for row in cells)) for word in text.split()),
                      default=1), MAX_WORD) for k, name in enumerate(head)]
    padding = 1 if sum(widths) + 3 * len(widths) <= console().width else 0
    room = console().width - len(head) - 1 - 2 * padding * (len(head) - 1)  # width without lines and spaces
    most = _shrunk([max(Text(name).cell_len, *(line.cell_len for row in cells for line in row[k].split("\n")), 1)
                    for k, name in enumerate(head)], widths, room)
    made = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False,
                 padding=(0, padding))
    for name, width, widest in zip(head, widths, most, strict=True):
        made.add_column(name, justify="right" if name in numbers else "left", overflow="fold", min_width=width,
                        max_width=widest)
    for row in cells:
        made.add_row(*row)
    return made


def _shrunk(widths: list[int], least: list[int], room: int) -> list[int]:
    """Return column widths that fit the available width: the widest shrink first, none below its minimum. Rich ignores
    these minima and then cuts the table off at the right."""
    found = list(widths)
    while sum(found) > room:
        wide = [k for k, width in enumerate(found) if width > least[k]]
        if not wide:
            break
        found[max(wide, key=found.__getitem__)] -= 1
    return found
