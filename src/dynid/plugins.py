"""Plugins: robots, terms, methods, presets, drive laws and report sections that other installed packages provide.

A package declares them as entry points in its pyproject.toml, one group per kind::

    [project.entry-points."dynid.methods"]
    huber-ls = "my_package.methods:huber_ls"

Users select a plugin by the name of its entry point. A plugin is loaded when it is used, or when a command lists all
plugins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dynid.errors import DynidError

# Group of entry points -> object that an entry point refers to.
GROUPS = {
    "dynid.robots": "the path of a robot file, or a function that returns the path or a Robot",
    "dynid.terms": "a dataclass of a term", "dynid.methods": "a function registered by @dynid.estimate.method",
    "dynid.presets": "a dynid.recording.presets.Preset", "dynid.laws": "a drive law",
    "dynid.report_sections": "a dynid.report.Section of the identification report"}


@dataclass(frozen=True)
class Plugin:
    """One entry point of another package.

    Attributes:
        group: one of `GROUPS`.
        name: name that users type.
        package: distribution that declares it, with its version.
        reference: module and attribute, such as "my_package.methods:huber_ls".
        problem: why the plugin cannot be loaded; None if it can be loaded.
    """

    group: str
    name: str
    package: str
    reference: str
    problem: str | None = None


@lru_cache(maxsize=1)
def _all_declared() -> Any:
    """Return the entry points of all installed packages, whose files are read once for all groups."""
    return entry_points()


@lru_cache(maxsize=len(GROUPS))
def _declared(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in _all_declared().select(group=group)}


def plugin_names(group: str) -> tuple[str, ...]:
    """Names of the plugins that installed packages declare in a group, sorted; nothing is imported."""
    return tuple(sorted(_declared(group)))


def load_plugin(group: str, name: str) -> Any:
    """Return the object that an entry point refers to.

    Raises:
        DynidError: no installed package declares the name (code "unknown-plugin"), or its module cannot be imported
            (code "plugin-not-loaded").
    """
    point = _declared(group).get(name)
    if point is None:
        raise DynidError(f"no installed package declares '{name}' in the group '{group}'", code="unknown-plugin")
    try:
        return point.load()
    except Exception as problem:  # the module of another package may raise any exception
        raise DynidError(f"the package {_package(point)} declares '{name}' in the group '{group}' as {point.value}, "
                         f"which cannot be loaded: {type(problem).__name__}: {problem}",
                         "repair or uninstall that package", code="plugin-not-loaded") from problem


def usable_plugins(group: str) -> dict[str, Any]:
    """Return the objects of a group by name, without those that cannot be loaded.

    A faulty package must not stop a run that does not need it. `dynid plugins` states why a plugin was omitted.
    """
    found = {}
    for name in plugin_names(group):
        try:
            found[name] = load_plugin(group, name)
        except DynidError:
            continue
    return found


def list_plugins() -> list[Plugin]:
    """Return all plugins of installed packages, each loaded once as a check."""
    found = []
    for group in GROUPS:
        for name in plugin_names(group):
            point = _declared(group)[name]
            try:
                load_plugin(group, name)
                problem = None
            except DynidError as error:
                problem = str(error)
            found.append(Plugin(group, name, _package(point), point.value, problem))
    return found


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "unknown"
