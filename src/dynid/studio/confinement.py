"""Files that a worker may open: those of its workspace, those that the user's own run file names, and libraries.

File names in run files are checked before anything is read. Files that are reached indirectly (joints of another robot
table, a mesh, an external array) are refused when they are opened.
"""

from __future__ import annotations

import errno
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dynid
from dynid.errors import DynidError
from dynid.files import toml_file
from dynid.studio.workspace import SESSION

_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "clarabel", "pydantic", "jinja2")
# Files about the machine that libraries read, such as threadpoolctl
_SYSTEM_FILES = (os.devnull, "/dev/urandom", "/proc/self/maps", "/proc/self/status", "/proc/self/cgroup",
                 "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/fs/cgroup")
_BY_COMMAND = "identify at the command line: dynid identify RUN.toml --trust"
_REFUSAL_REASON = "the studio reads only files that were uploaded to it"


class Confinement:
    """Limits on the files that a worker may open. folder: its workspace. run: the run file given on the command line.
    """

    def __init__(self, folder: Path, run: Path | None = None) -> None:
        self.folder, self.run = folder.resolve(), None if run is None else run.resolve()
        self.files = self.folder / "files"
        self._secret = os.path.realpath(self.folder / SESSION)  # no file may refer to it
        self.trusted: frozenset[Path] = frozenset()
        libraries = {sys.prefix, sys.base_prefix, str(Path(dynid.__file__).parents[1]), *_package_folders(),
                     *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
        cache = os.environ.get("NUMBA_CACHE_DIR")
        places = [*libraries, str(self.folder), *_SYSTEM_FILES, *([] if cache is None else [cache])]
        self.roots = tuple(os.path.realpath(one) for one in places)
        self._open = False

    def install(self) -> None:
        """Refuse to open files outside these limits for the rest of the process."""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or self._open or not isinstance(arguments[0], str | bytes):
            return
        path = os.path.realpath(os.fsdecode(arguments[0]))
        if path == self._secret or not self._inside(path):
            raise PermissionError(errno.EACCES, _REFUSAL_REASON, path)

    def _inside(self, path: str) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in (*self.roots, *map(str, self.trusted)))

    @contextmanager
    def lifted(self, is_lifted: bool = True) -> Iterator[None]:
        """Suspend the limits within this context, for the run file of the command line and files that it names."""
        before, self._open = self._open, self._open or is_lifted
        try:
            yield
        finally:
            self._open = before

    def trusting(self, *names: str) -> AbstractContextManager[None]:
        """Suspend the limits within this context if all given files were named on the command line."""
        own = all(Path(os.path.realpath(self.folder / name)) in self.trusted for name in names)
        return self.lifted(own and bool(names))

    def uploaded(self, name: str, kind: str, where: str) -> Path:
        """Return the path of an uploaded file, relative to the workspace. kind: word for the file in the error message;
        where: the setting that names it."""
        path = (self.files / name.removeprefix("files/")).resolve()
        if not path.is_relative_to(self.files) or not path.is_file():
            raise DynidError(f"there is no {kind} '{name[:80]}' in the studio's folder", "upload it", where=where)
        return path.relative_to(self.folder)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise if the settings of a run name a file that is neither uploaded nor named in the user's own run file."""
        for where, name in named_files(settings):
            if "\0" in name:
                raise DynidError("a file's name contains a null character", where=where)
            path = Path(os.path.realpath(self.folder / name))
            if where == "model.python":
                raise DynidError(f"the studio runs no Python file, such as '{name[:200]}'", _BY_COMMAND, where=where)
            if where == "prior":
                self._check_prior(path)
            if path in self.trusted or (where == "prior" and path.is_relative_to(self.folder / "results")):
                continue
            if not path.is_relative_to(self.files):
                raise DynidError(f"{_REFUSAL_REASON}, and '{name[:200]}' was not uploaded",
                                 "upload it and select it here", where=where)
            self.check_files([name])

    def _check_prior(self, path: Path) -> None:
        """Raise if an earlier result in the studio's folder names a Python file as its model."""
        settings = path / "run.toml"
        if (path in self.trusted or path.is_relative_to(self.folder)) and settings.is_file():
            model = toml_file(settings).get("model")
            if isinstance(model, Mapping) and model.get("python"):
                raise DynidError(f"the model of the prior is in the Python file '{str(model['python'])[:200]}', which "
                                 "the studio does not run", _BY_COMMAND, where="prior")

    def check_files(self, names: Iterable[str]) -> None:
        """Raise an error if a named file refers to another file, which libraries would open without a check."""
        from dynid.recording.rosbag import check_contained  # imported here, because both load arrays
        from dynid.robot.tree_file import check_beside
        for name in names:
            path = self.folder / name
            try:
                check_contained(path)
                if path.suffix.lower() == ".toml" and path.is_file():
                    check_beside(toml_file(path), path)
            except DynidError as problem:
                raise DynidError(problem.reason.replace(str(path), name), problem.advice,
                                 where=f"file {path.name}") from None


def _package_folders() -> Iterator[str]:
    """Return the folders of the packages that dynid loads, which may be outside the environment of this Python, such as
    a user's own site-packages."""
    for name in _PACKAGES:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield str(Path(found.origin).parents[1])


def named_files(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return setting and path of every file in the settings of a run, relative to the run file."""
    if settings.get("robot") and looks_like_file(settings["robot"]):
        yield "robot", settings["robot"]
    if (settings.get("model") or {}).get("python"):
        yield "model.python", settings["model"]["python"]
    if settings.get("prior"):
        yield "prior", str(settings["prior"])
    for which in ("logs", "validate_on"):
        for log in settings.get(which) or ():
            files = log.get("file", ()) if isinstance(log, Mapping) else log
            for file in [files] if isinstance(files, str) else files:
                yield which, str(file)
                stem = Path(str(file).removesuffix(".gz")).stem
                table = {**(settings.get("log") or {}), **(log if isinstance(log, Mapping) else {})}
                yield from ((f"log.{signal}", str(Path(str(file)).parent / str(place["file"]).replace("{stem}", stem)))
                            for signal, place in table.items() if isinstance(place, Mapping) and place.get("file"))


def looks_like_file(robot: str) -> bool:
    """Whether a run's robot is a file and not the name of a built-in one."""
    return any(sign in robot for sign in ("/", "\\", ".", "<", "\n"))
