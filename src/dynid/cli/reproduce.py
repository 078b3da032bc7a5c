"""`dynid reproduce`: published tables, ours beside theirs. They stand in reproductions/ of the source.

A reproduction's result has `checks`: what must come out, in words, and whether it did. figures/ beside them has, under
the same name, how its figures are drawn; IN_ALL of a reproduction is the smaller study that `--all` runs of it.
"""

from __future__ import annotations

import os
import tempfile
import time
import webbrowser
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.output import Json, console, print_json, table, typed_command
from dynid.cli.scripts import SOURCE, Scripts

if TYPE_CHECKING:
    from dynid.report.drawing import Drawing

FOLDER = SOURCE / "reproductions"


@dataclass(frozen=True)
class Ran:
    """One that was run. cpu, wall: s. result: plain values."""

    name: str
    module: ModuleType
    result: dict[str, Any]
    cpu: float
    wall: float

    @property
    def failed(self) -> list[str]:
        return [sentence for sentence, holds in self.result["checks"].items() if not holds]


def command(
    name: Annotated[str | None, typer.Argument(help="Name of the published result. Default: list all.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Reproduce all results, one after the other; large "
                                                      "studies in the reduced size that they state.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Write a page with figures and open it in the "
                                                           "browser.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FOLDER", show_default=False,
                                                help="Folder for the pages NAME.html. Default with --open: a "
                                                     "new folder.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier pages in that folder.")] = False,
    json: Json = False,
) -> None:
    """Compute published results again and set ours beside theirs."""
    from dynid.files import free_paths

    scripts = Scripts("reproduction", FOLDER, "needs")
    names = scripts.chosen(name, every, json)
    if output is None and open_page and names:
        output = Path(tempfile.mkdtemp(prefix="dynid-"))
    if output is not None:
        free_paths(output, {one: f"{one}.html" for one in names}, force)
    ran, pages = [], []
    for one in names:
        ran.append(_run(scripts, one, every))
        if not json:
            _show(scripts, ran[-1])
        if output is not None:
            pages.append(_write_page(ran[-1], output))
            if not json:
                console().print(f"page: {pages[-1]}", markup=False)
    if json and ran:
        print_json({one.name: one.result for one in ran} if every else ran[0].result)
    if every and not json:
        _summary(ran)
    if open_page:
        for page in pages:
            webbrowser.open(page.resolve().as_uri())
    if any(one.failed for one in ran):
        raise typer.Exit(1)


def _run(scripts: Scripts, name: str, every: bool) -> Ran:
    module = scripts.load(name)
    wall, cpu = time.perf_counter(), _cpu()
    result = scripts.run(module, name, **(getattr(module, "IN_ALL", {}) if every else {}))
    return Ran(name, module, result, _cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    """CPU time of this process and of the workers that it has waited for, s."""
    workers = os.times()
    return time.process_time() + workers.children_user + workers.children_system


def _show(scripts: Scripts, ran: Ran) -> None:
    scripts.show(ran.module, ran.name, ran.result)
    for sentence, holds in ran.result["checks"].items():
        console().print(f"{'holds' if holds else 'DOES NOT HOLD'}: {sentence}", markup=False)


def _summary(ran: list[Ran]) -> None:
    """What each took and how many of its checks hold, and the sum."""
    head = ["reproduction", "checks that hold", "CPU s", "s"]
    rows = [(one.name, f"{len(one.result['checks']) - len(one.failed)} of {len(one.result['checks'])}",
             f"{one.cpu:.1f}", f"{one.wall:.1f}") for one in ran]
    rows.append(("all", f"{sum(len(one.result['checks']) - len(one.failed) for one in ran)} of "
                        f"{sum(len(one.result['checks']) for one in ran)}",
                 f"{sum(one.cpu for one in ran):.1f}", f"{sum(one.wall for one in ran):.1f}"))
    console().print(table(head, rows, numbers=head[1:], title="all reproductions"))


def drawings(ran: Ran) -> tuple[Drawing, ...]:
    """The figures of a result, from the file of its name in figures/; none where there is no such file."""
    name = ran.module.__name__.rpartition(".")[2]
    if not (FOLDER / "figures" / f"{name}.py").exists():
        return ()
    return tuple(import_module(f"figures.{name}").figures(ran.result))


def _write_page(ran: Ran, folder: Path) -> Path:
    from dynid.report.pages.reproduction import REPRODUCTION, ReproductionData
    from dynid.report.render import write_page

    about, _, further = (ran.module.__doc__ or "").partition("\n")
    data = ReproductionData(ran.name, about, further, ran.result["checks"], ran.module.table(ran.result),
                            drawings(ran), ran.cpu, typed_command())
    folder.mkdir(parents=True, exist_ok=True)
    return write_page(REPRODUCTION, data, folder / f"{ran.name}.html")
