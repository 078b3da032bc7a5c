"""Entry point of the command line: the commands, and how errors are reported.

A command is a module of this package with a function `command`, and a name in COMMANDS. Its module is imported when the
command is called; libraries are imported inside the function, so that ``dynid --help`` loads no arrays and no compiler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from dynid.errors import DynidError
from dynid.escape import terminal_text
from dynid.quantities import is_physical
from dynid.version import __version__

# dynid uses its own threads, and a BLAS thread pool for every small product would slow them down. BLAS reads this
# variable when it is loaded, which is later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# dynid uses no plugins of pydantic, which would search the metadata of all installed packages for them.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# Options of `mallopt`: one heap for all threads; it grows by 16 MB and returns memory to the system if 256 MB are free;
# arrays of more than 32 MB are allocated outside it.
_HEAP_OPTIONS = {-8: 1, -1: 2**28, -3: 2**25, -2: 2**24}

# Names of the commands in the order of `dynid --help`. The module of the same name has the function `command`.
COMMANDS = (
    "demo", "studio", "warmup", "robots", "inspect", "excite", "motion", "simulate", "identify", "watch",
    "payload", "contact", "gains", "actuators", "extract", "validate", "check", "compare", "fleet", "generate",
    "export", "ros2", "methods", "presets", "plugins", "schema", "reproduce", "bench", "version",
)


class _LazyGroup(TyperGroup):
    """Group of the commands in COMMANDS; the module of a command is imported at its first use."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_flag_types(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # An unknown name needs the list of all commands for the suggestion "did you mean".
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                single = typer.Typer(add_completion=False)
                single.command(name)(import_module(f"dynid.cli.{name}").command)
                self.commands[name] = command = typer.main.get_command(single)
                for parameter in command.params:
                    parameter.callback = parameter.callback or _finite
                own = command.get_params
                setattr(command, "get_params", lambda ctx, own=own: _without_flag_types(own(ctx)))  # noqa: B010
        return self.commands.get(cmd_name)


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    """Return the parameters of a command; the help shows no type for flags, which take no value, and for lists."""
    for one in parameters:
        if getattr(one, "is_flag", False) or one.nargs == -1:
            one.display_type_rich = lambda ctx: None
    return parameters


def _finite(context: Any, parameter: Any, value: Any) -> Any:
    """Return the value of an option; raise an error if it is an infinite or undefined number."""
    if isinstance(value, float) and not is_physical(value):
        raise typer.BadParameter(f"{value} is not a plausible value of a physical "
                                 "quantity", ctx=context, param=parameter)
    return value


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dynid {__version__}")
        raise typer.Exit


app = typer.Typer(cls=_LazyGroup, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def dynid(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True,
                                          help="Show the version and exit.")] = False,
) -> None:
    """Identify the dynamic model of a robot from its own motion."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command line and exit with 0 (done), 1 (the data or model do not allow it) or 2 (the call was wrong)."""
    _use_one_heap()
    try:
        _refuse_empty_output(sys.argv[1:] if arguments is None else arguments)
        code = app(arguments, prog_name="dynid", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (DynidError, typer.TyperException) as error:
        sentence = error.format_message() if isinstance(error, typer.TyperException) else str(error)
        typer.echo(f"Error: {terminal_text(sentence.replace('Value error, ', ''))}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed the pipe
        _drop_output()
        sys.exit(1)
    except OSError as error:
        what = f"cannot use {error.filename}" if error.filename else "the output cannot be written"
        typer.echo(f"Error: {terminal_text(what)}: {error.strerror or error}", err=True)
        _drop_output()
        sys.exit(DynidError.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = 130  # exit code of a shell after Ctrl-C
    if code == 130:
        typer.echo("Stopped.", err=True)
    sys.exit(code if isinstance(code, int) else 0)


def _use_one_heap() -> None:
    """Make all threads use one heap of the GNU C library, which keeps freed memory.

    By default each thread has its own heap and returns freed memory to the system, which must clear it again.
    """
    import ctypes

    option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if option is not None:
        for kind, value in _HEAP_OPTIONS.items():
            option(kind, value)


def _refuse_empty_output(arguments: Sequence[str]) -> None:
    """Raise an error for `-o ""`, as from an unset shell variable: the output folder would be the current one."""
    if "--output=" in arguments or any(option in ("-o", "--output") and value == ""
                                       for option, value in pairwise(arguments)):
        raise DynidError("-o is empty", "name a file or folder, or write . for the current folder", code="empty-output")


def _drop_output() -> None:
    """Discard the buffered output after stdout was closed, so that no second error is printed at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
