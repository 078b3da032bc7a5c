"""`dynid reproduce`: comparison of published tables with results of dynid. The scripts are in reproductions/.

The result of a reproduction has up to three kinds of evidence, and the command ends with exit code 1 if one fails:

- `printed`: printed tables, with the numbers of compared entries and of entries within tolerance
- `checks`: conclusions of a document in words, and whether they hold
- `demonstrations`: statements on simulated machines that no document prints, or that hold by construction

The module in figures/ with the name of a reproduction draws its figures. The constant IN_ALL of a reproduction has the
options of the smaller study that `--all` runs.
"""

from __future__ import annotations

import os
import tempfile
import time
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.output import Json, console, print_json, table, typed_command
from dynid.cli.scripts import SOURCE, Scripts, module_of_script

if TYPE_CHECKING:
    from dynid.report.drawing import Drawing

FOLDER = SOURCE / "reproductions"


@dataclass(frozen=True)
class Ran:
    """One reproduction that was run.

    Attributes:
        name, module: name of the reproduction, and its script.
        result: plain values.
        cpu, wall: computing time and elapsed time, s.
    """

    name: str
    module: ModuleType
    result: dict[str, Any]
    cpu: float
    wall: float

    @property
    def own_study(self) -> bool:
        """Whether the study is not printed in any document, so that its checks are demonstrations."""
        return bool(getattr(self.module, "OWN_STUDY", False))

    @property
    def checks(self) -> dict[str, bool]:
        """Conclusions of a document in words, and whether they hold."""
        return {} if self.own_study else dict(self.result.get("checks", {}))

    @property
    def demonstrations(self) -> dict[str, bool]:
        """Statements that no document prints or that hold by construction, and whether they hold."""
        return {**(self.result.get("checks", {}) if self.own_study else {}), **self.result.get("demonstrations", {})}

    @property
    def tables(self) -> list[dict[str, Any]]:
        """Summaries of the comparisons with printed tables."""
        return list(self.result.get("printed", ()))

    def count(self, what: str) -> int:
        """Return the number of entries of all tables that are `what`: "printed", "compared" or "within" tolerance."""
        return sum(int(one[what]) for one in self.tables)

    @property
    def failed(self) -> list[str]:
        """Statements that do not hold, and printed numbers that are not within tolerance."""
        words = {**self.checks, **self.demonstrations}
        return [sentence for sentence, holds in words.items() if not holds] + [
            failure for one in self.tables for failure in one["failures"]]


def command(
    name: Annotated[str | None, typer.Argument(help="Name of the published result. Default: list all results.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Reproduce all results, one after the other. Large studies run "
                                                      "with fewer simulated logs, and state how many.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Write a page with figures and open it in the "
                                                           "browser.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FOLDER", show_default=False,
                                                help="Folder for the pages NAME.html. Default with --open: a "
                                                     "new folder.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier pages in the output folder.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", show_default=False, help="First seed of the simulated logs, if "
                                                                                "the study has this option. Default: "
                                                                                "the seed that the study "
                                                                                "specifies.")] = None,
    logs: Annotated[int | None, typer.Option("--logs", min=1, show_default=False, help="Number of simulated logs of "
                                                                                       "each kind, if the study has "
                                                                                       "this option.")] = None,
    only: Annotated[str, typer.Option("--only", metavar="NAMES", show_default=False, help="Parts to run, "
                                      "comma-separated, if the study has several: drive laws for `actuators`.")] = "",
    json: Json = False,
) -> None:
    """Recompute published results and compare them with the published values."""
    from dynid.files import free_paths

    scripts = Scripts("reproduction", FOLDER, "needs")
    names = scripts.chosen(name, every, json)
    if output is None and open_page and names:
        output = Path(tempfile.mkdtemp(prefix="dynid-"))
    if output is not None:
        free_paths(output, {one: f"{one}.html" for one in names}, force)
    options = {"seed": seed, "logs": logs, "only": tuple(only.split(",")) if only else None}
    given = {key: value for key, value in options.items() if value is not None}
    ran, pages = [], []
    for one in names:
        ran.append(_run(scripts, one, every, given))
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


def _run(scripts: Scripts, name: str, every: bool, options: Mapping[str, Any]) -> Ran:
    module = scripts.load(name)
    scripts.check_options(module, name, every, options)
    wall, cpu = time.perf_counter(), _cpu()
    result = scripts.run(module, name, **(getattr(module, "IN_ALL", {}) if every else {}), **options)
    return Ran(name, module, result, _cpu() - cpu, time.perf_counter() - wall)


def _cpu() -> float:
    """CPU time of this process and of its finished workers, s."""
    workers = os.times()
    return time.process_time() + workers.children_user + workers.children_system


def _show(scripts: Scripts, ran: Ran) -> None:
    scripts.show(ran.module, ran.name, ran.result)
    lines = [f"{'holds' if holds else 'DOES NOT HOLD'}: {sentence}" for sentence, holds in ran.checks.items()]
    lines += [f"demonstration {'holds' if holds else 'DOES NOT HOLD'}: {sentence}"
              for sentence, holds in ran.demonstrations.items()]
    for one in ran.tables:
        lines.append(_table_line(one))
        lines += [f"NOT REPRODUCED: {failure}" for failure in one["failures"]]
    if ran.tables:
        lines.append(f"{ran.count('within')} of {ran.count('compared')} printed numbers reproduced")
    for line in lines:
        console().print(line, markup=False)


def _table_line(one: dict[str, Any]) -> str:
    """Return a line with the counts of one table, and the reasons why some of its entries cannot be compared."""
    page = "" if one["page"] is None else f", p. {one['page']}"
    left = "; ".join(f"{count} not comparable: {why}" for why, count in one["not_comparable"].items())
    return (f"{one['document']}, table {one['table']}{page}: {one['printed']} printed, {one['compared']} compared, "
            f"{one['within']} within tolerance{'; ' if left else ''}{left}")


def _summary(ran: list[Ran]) -> None:
    """Print the time of each reproduction, which statements hold, and the totals in the last line."""
    head = ["reproduction", "printed numbers", "checks that hold", "demonstrations", "CPU s", "s"]
    rows = [(one.name, _share(one.count("within"), one.count("compared")), _held([one.checks]),
             _held([one.demonstrations]), f"{one.cpu:.1f}", f"{one.wall:.1f}") for one in ran]
    total = {what: sum(one.count(what) for one in ran) for what in ("printed", "compared", "within")}
    rows.append(("all", _share(total["within"], total["compared"]), _held([one.checks for one in ran]),
                 _held([one.demonstrations for one in ran]), f"{sum(one.cpu for one in ran):.1f}",
                 f"{sum(one.wall for one in ran):.1f}"))
    console().print(table(head, rows, numbers=head[1:], title="all reproductions"))
    off, left = total["compared"] - total["within"], total["printed"] - total["compared"]
    console().print(f"{total['within']} of {total['compared']} printed numbers reproduced, {off} not reproduced, "
                    f"{left} cannot be compared", markup=False)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else ""


def _held(words: Sequence[Mapping[str, bool]]) -> str:
    return _share(sum(sum(one.values()) for one in words), sum(map(len, words)))


def drawings(ran: Ran) -> tuple[Drawing, ...]:
    """Return the figures of a result from the module of its name in figures/; empty if there is no such module."""
    name = ran.module.__name__.rpartition(".")[2]
    if not (FOLDER / "figures" / f"{name}.py").exists():
        return ()
    return tuple(module_of_script(FOLDER / "figures" / f"{name}.py", FOLDER).figures(ran.result))


def _write_page(ran: Ran, folder: Path) -> Path:
    from dynid.report.pages.reproduction import REPRODUCTION, ReproductionData
    from dynid.report.rendering import write_page

    about, _, further = (ran.module.__doc__ or "").partition("\n")
    words = {**ran.checks, **{f"demonstration: {sentence}": holds for sentence, holds in ran.demonstrations.items()},
             **{_table_line(one): not one["failures"] for one in ran.tables}}
    data = ReproductionData(ran.name, about, further, words, ran.module.table(ran.result),
                            drawings(ran), ran.cpu, typed_command())
    folder.mkdir(parents=True, exist_ok=True)
    return write_page(REPRODUCTION, data, folder / f"{ran.name}.html")
