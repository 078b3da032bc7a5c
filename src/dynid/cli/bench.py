"""`dynid bench`: ours and peers side by side in one process. The benchmarks stand in benchmarks/ of the source."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from dynid.cli.output import Json, console, print_json, progress, table
from dynid.errors import DynidError, NotPossibleError

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


def command(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; without it, the list of them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all of them, one after the other.")] = False,
    json: Json = False,
) -> None:
    """Compare dynid's speed with its peers', in one process."""
    if name and every:
        raise DynidError(f"give either the benchmark '{name}' or --all, not both")
    known = benchmarks(FOLDER)
    if not name and not every:
        about = {one: (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
                 for one, path in known.items()}
        if json:
            print_json({"benchmarks": about})
        else:
            console().print(table(["benchmark", "compares"], list(about.items())))
        return
    if name and name not in known:
        raise DynidError(f"there is no benchmark '{name}'; there are {', '.join(known)}")
    results: dict[str, Any] = {}
    for one in [name] if name else list(known):
        module = _load(one, known[one])
        with progress(one) as tell:
            results[one] = _run(module, one, tell)
        if not json:
            head, *rows = module.table(results[one])
            console().print(table(head, rows, numbers=head[1:], title=one))
    if json:
        print_json(results[name] if name else results)


def benchmarks(folder: Path) -> dict[str, Path]:
    """Name -> file of every benchmark: the files with a `run` in the folder."""
    if not folder.is_dir():
        raise NotPossibleError("the benchmarks come with dynid's source, not with the installed package: "
                               "run 'dynid bench' from an editable install of a clone ('make bench' makes one)")
    return {path.stem: path for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")}


def _load(name: str, path: Path) -> ModuleType:
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # a benchmark's own helpers stand beside it
    spec = spec_from_file_location(f"benchmarks.{name}", path)
    if spec is None or spec.loader is None:
        raise DynidError(f"benchmark '{name}' cannot be read from {path}")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    return module


def _run(module: ModuleType, name: str, tell: Callable[[str], None]) -> dict[str, Any]:
    import sys

    try:
        with redirect_stdout(sys.stderr):  # what a peer prints must not spoil the one JSON object
            result: dict[str, Any] = module.run(tell)
    except ModuleNotFoundError as error:
        raise _missing(name, error) from error
    return result


def _missing(name: str, error: ModuleNotFoundError) -> NotPossibleError:
    return NotPossibleError(f"benchmark '{name}' compares with '{error.name}', which is not installed; "
                            "pip install 'dynid[dev]' brings it")
