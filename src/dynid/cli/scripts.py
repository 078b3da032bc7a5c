"""Scripts next to the source, one result per file, which `dynid bench` and `dynid reproduce` run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from dynid.cli.output import console, print_json, show_progress, table
from dynid.errors import DynidError, NotPossibleError
from dynid.output_fields import record

_SOURCE_CHECKOUT, _INSTALLED_PACKAGE = (Path(__file__).resolve().parents[k] for k in (3, 1))
# Next to the source in a clone; a wheel contains them in the package.
SOURCE = _SOURCE_CHECKOUT if (_SOURCE_CHECKOUT / "benchmarks").is_dir() else _INSTALLED_PACKAGE / "scripts"


BENCHMARKS = record("Benchmarks", benchmarks=dict[str, str])
REPRODUCTIONS = record("Reproductions", reproductions=dict[str, str])
RESULT = record("ScriptResult")  # each script has its own keys


def module_of_script(path: Path, folder: Path) -> ModuleType:
    """Import a file below a folder of scripts as a module of the package that has the folder's name.

    Scripts import each other as members of that package, so a script may have the name of another module.
    """
    import sys
    from importlib.util import module_from_spec, spec_from_file_location

    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))
    spec = spec_from_file_location(".".join([folder.name, *path.relative_to(folder).with_suffix("").parts]), path)
    if spec is None or spec.loader is None:
        raise DynidError(f"{path} cannot be read as a Python module", code="unreadable-file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # worker processes find its functions by name
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Scripts:
    """The files of a folder that define `run(progress) -> dict` and `table(result) -> rows`.

    Attributes:
        noun: name of one script in messages.
        folder: the folder.
        missing: start of the message about a package that cannot be imported.
    """

    noun: str
    folder: Path
    missing: str

    def names(self) -> dict[str, Path]:
        """Return the file of each script by its name, in which dashes replace underscores."""
        if not self.folder.is_dir():
            raise NotPossibleError(f"the scripts of the {self.noun}s are missing from this installation",
                                   "install dynid again from its wheel or from a clone", code="missing-scripts")
        return {path.stem.replace("_", "-"): path for path in sorted(self.folder.glob("*.py"))
                if not path.stem.startswith("_")}

    def command(self, name: str | None, every: bool, json: bool, options: Mapping[str, Any]) -> None:
        """List the scripts, or run one or all of them, and print the results. One of all that cannot run on this
        machine is left out with the reason.

        Args:
            name, every: name of one script, or whether to run all.
            json: whether to print JSON.
            options: options of the named script.
        """
        results: dict[str, Any] = {}
        for one in self.chosen(name, every, json):
            try:
                module = self.load(one)
                self.check_options(module, one, every, options)
                results[one] = self.run(module, one, **options)
            except NotPossibleError as problem:
                if not every:
                    raise
                results[one] = {"not_run": str(problem)}
                if not json:
                    console().print(f"Note: {self.noun} '{one}' was not run: {problem}.", markup=False)
                continue
            if not json:
                self.show(module, one, results[one])
        if json and results:
            print_json(results[name] if name else results)

    def check_options(self, module: ModuleType, name: str, every: bool, options: Mapping[str, Any]) -> None:
        """Raise an error if a script has no option of a given name, or if options are given for all scripts."""
        taken = signature(module.run).parameters
        refused = next((key for key in options if every or key not in taken), None)
        if refused is not None:
            raise DynidError(f"{self.noun} '{name}' has no option '{refused}'", "remove that "
                                                                                "option", code="unknown-option")

    def chosen(self, name: str | None, every: bool, json: bool) -> list[str]:
        """Return the names of the scripts to run. If none is requested, print the list of all and return none."""
        if name and every:
            raise DynidError(f"give either the {self.noun} '{name}' or --all, not both", code="conflicting-options")
        known = self.names()
        if not name and not every:
            self._list(known, json)
            return []
        if name and name not in known:
            raise DynidError(f"there is no {self.noun} '{name}'; there are {', '.join(known)}", code="unknown-name")
        return [name] if name else list(known)

    def show(self, module: ModuleType, name: str, result: dict[str, Any]) -> None:
        """Print the result of a benchmark or reproduction as a table."""
        head, *rows = module.table(result)
        console().print(table(head, rows, numbers=head[1:], title=name))

    def _list(self, known: dict[str, Path], json: bool) -> None:
        about = {one: (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
                 for one, path in known.items()}
        if json:
            print_json({f"{self.noun}s": about})
        else:
            console().print(table([self.noun, "is about"], list(about.items())))

    def load(self, name: str) -> ModuleType:
        """Import the script of a benchmark or reproduction as a module."""
        try:
            return module_of_script(self.names()[name], self.folder)
        except ModuleNotFoundError as error:
            raise self._not_there(name, error) from error

    def run(self, module: ModuleType, name: str, **options: Any) -> dict[str, Any]:
        """Return the result of a script, with progress on stderr.

        Args:
            module: the imported script.
            name: name of the script.
            options: keyword arguments of the script's function `run`.
        """
        import sys

        try:
            with show_progress(name) as progress, redirect_stdout(sys.stderr):  # keeps stdout for JSON
                result: dict[str, Any] = module.run(progress, **options)
        except ModuleNotFoundError as error:
            raise self._not_there(name, error) from error
        return result

    def _not_there(self, name: str, error: ModuleNotFoundError) -> NotPossibleError:
        return NotPossibleError(f"{self.noun} '{name}' {self.missing} '{error.name}', which is not installed: run pip "
                                "install 'dynid[dev]'", code="missing-package")
