"""`dynid warmup`: compilation of the kernels of all commands, once after installation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from typing import IO

import typer

from dynid.cli.output import Json, print_json
from dynid.errors import NotPossibleError
from dynid.output_fields import record

# Command lines that together use every kernel, on small robots and short motions; each uses files of earlier ones.
# Serial arms of both DH conventions, prismatic joints, closed loops and flexible joints have separate kernels.
STEPS: tuple[tuple[str, ...], ...] = (
    ("excite", "arm3r", "-o", "motion.csv", "--rounds", "1", "--duration", "8"),
    ("excite", "four-bar", "-o", "loop-motion.csv", "--rounds", "1", "--duration", "8"),
    ("simulate", "arm3r", "--trajectory", "motion.csv", "-o", "log.csv", "--rate", "200", "--torque-noise", "0.05",
     "--friction", "viscous,coulomb"),
    ("simulate", "arm3r", "--trajectory", "motion.csv", "-o", "pd.csv", "--rate", "1000", "--controller", "pd"),
    ("simulate", "arm3r", "--trajectory", "motion.csv", "-o", "task.csv", "--rate", "1000", "--controller",
     "task-space"),
    ("simulate", "arm3r", "--trajectory", "motion.csv", "-o", "flexible.csv", "--rate", "1000", "--stiffness", "20000",
     "--motor-inertia", "0.1"),
    ("simulate", "four-bar", "--trajectory", "loop-motion.csv", "-o", "loop.csv", "--rate", "200"),
    ("identify", "arm3r", "log.csv", "-o", "out"),
    ("identify", "arm3r", "log.csv", "--method", "irls", "--friction", "viscous,coulomb,dahl,hysteresis"),
    ("identify", "arm3r", "log.csv", "--equations", "kernel"),
    ("identify", "four-bar", "loop.csv", "--friction", "none"),
    ("validate", "out", "log.csv"),
    ("payload", "out", "log.csv"),
    ("contact", "out", "log.csv"),
    ("watch", "arm3r", "--from", "log.csv", "--speed", "0", "--friction", "viscous,coulomb"),
    ("watch", "out", "--from", "log.csv", "--speed", "0", "--payload", "link3"),
)


OUTPUT = record("Warmup", steps=int, failed=dict[str, str])


def command(json: Json = False) -> None:
    """Compile the kernels of all commands, once after installation (a minute or two). Later commands start at once."""
    from dynid.cli.main import COMMANDS, app

    failed = {}
    for step, output in _shown(STEPS, sys.stderr):
        assert step[0] in COMMANDS
        with redirect_stdout(output), redirect_stderr(output):
            try:
                app(list(step), prog_name="dynid", standalone_mode=False)
            except NotPossibleError:  # the simulation diverged after its kernels were compiled
                continue
            except Exception as problem:  # a step that fails must not prevent the compilation of others
                failed[" ".join(step)] = str(problem)
    if json:
        print_json({"steps": len(STEPS), "failed": failed})
        return
    for line, reason in failed.items():
        typer.echo(f"Not compiled: dynid {line}: {reason}", err=True)
    typer.echo(f"Ready: {len(STEPS) - len(failed)} of {len(STEPS)} steps are compiled and stored.")


def _shown(steps: Sequence[tuple[str, ...]], to: IO[str]) -> Iterator[tuple[tuple[str, ...], StringIO]]:
    """Yield each step with a temporary folder and show a progress bar; without a terminal print lines."""
    import tempfile

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with tempfile.TemporaryDirectory() as folder, chdir(folder), Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=Console(file=to), disable=not to.isatty()) as bar:
        if not to.isatty():
            print(f"Compiling for this machine, once: {len(steps)} steps, a minute or two.", file=to, flush=True)
        task = bar.add_task("Compiling for this machine, once", total=len(steps))
        for step in steps:
            yield step, StringIO()
            bar.advance(task)
