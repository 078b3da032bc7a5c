"""`dynid studio`: a page in the browser, from a robot file and a log to a model and a report."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from dynid.errors import DynidError


def command(
    run: Annotated[Path | None, typer.Argument(
        metavar="[RUN.toml]", show_default=False, help="Run file to open; the studio works on a copy.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for the port last used with this "
                                                             "folder, or any free port.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on. Default: only this machine can connect.")
                    ] = "127.0.0.1",
    folder: Annotated[Path | None, typer.Option(show_default=False, help="Folder of files and results. Default: "
                                                                         "dynid-studio in the current folder, or "
                                                                         "RUN.studio next to the run file.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address without opening a "
                                                                  "browser.")] = False,
) -> None:
    """Open a page in the browser for a whole identification: robot, motion, log, run, comparison, use, live.

    An open page reconnects after a restart: session.json in the folder keeps its port and cookie secret for 7 days.

    Remove that file before a start to require a new address. With a --host that others can reach, it is not written.
    """
    try:
        from dynid.studio.server import open_studio, serve
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise DynidError("the studio needs packages that are not installed: pip install 'dynid[studio]'") from None
    if run is not None and not run.is_file():
        raise DynidError(f"there is no run file {run}")
    place = folder or (Path("dynid-studio") if run is None else run.with_suffix(".studio"))
    opened = open_studio(place, run, host, port)
    typer.echo(f"dynid studio at {opened.door.new_address()}")
    typer.echo(f"Files and results are stored in {opened.studio.workspace.folder}; press Ctrl-C to stop.")
    sys.stdout.flush()
    asyncio.run(serve(opened, browser=not no_browser))
