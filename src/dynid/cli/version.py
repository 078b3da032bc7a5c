"""`dynid version`: the versions of dynid and of the libraries that its numbers depend on."""

from __future__ import annotations

from dynid.cli.output import Json, print_json
from dynid.output_fields import record

_LIBRARIES = ("numpy", "scipy", "numba", "clarabel")  # libraries whose versions may change the last digits of a result
OUTPUT = record("Versions", dynid=str, python=str, numpy=str, scipy=str, numba=str, clarabel=str)


def command(json: Json = False) -> None:
    """Show the versions of dynid, Python and the libraries that affect its numbers."""
    import platform
    from importlib.metadata import version

    from dynid.version import __version__

    versions = {"dynid": __version__, "python": platform.python_version()}
    versions |= {name: version(name) for name in _LIBRARIES}
    if json:
        print_json(versions)
        return
    for name, number in versions.items():
        print(f"{name:9} {number}")
