"""`dynid fleet`: robots of one type: which of them differ, in which parameters, and since when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.options import Scheduler, Tls, Trust, tls_files
from dynid.cli.output import Json, print_json, progress, typed_command
from dynid.errors import DynidError


def command(
    source: Annotated[Path, typer.Argument(metavar="FLEET.toml", show_default=False,
                                           help="Fleet file (TOML) with the robots and their logs.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for pages, numbers and compressed logs. "
                                                     "Default: write nothing.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Add new logs to the result in that folder: only "
                                                          "new logs are read, and logs whose files were "
                                                          "deleted still count.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, show_default="one per core", help="Processes that read "
                                                                                       "and compress logs.")] = None,
    scheduler: Scheduler = None,
    tls: Tls = "",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Compare many robots of one type from all their logs: which differ, in what, and since when."""
    from dynid.cli.fleet_tables import print_fleet
    from dynid.fleet.run import FleetOptions, run_fleet
    from dynid.fleet.save import FOLDS, check_fleet_output, save_fleet
    from dynid.fleet.settings import FleetSettings
    from dynid.workers import Workers

    if update and output is None:
        raise DynidError("--update adds to a result, so give its folder: -o FOLDER")
    settings = FleetSettings.load(source, trust=trust)
    if output is not None:
        check_fleet_output(output, update)
    options = FleetOptions(None if output is None else output / FOLDS, Workers(workers, scheduler, tls_files(tls)),
                           update)
    with progress("fleet") as tell:
        result = run_fleet(settings, options, tell)
        written = {}
        if output is not None:
            tell("writing the results")
            written = save_fleet(result, output, typed_command())
    if json:
        print_json({**result.to_dict(), "outputs": written})
    else:
        print_fleet(result, written)
