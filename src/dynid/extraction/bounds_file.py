"""A bounds file: intervals of masses, centres of mass and inertias in TOML, over those of the robot's own file.

    width = "normal"               # default bounds: loose, normal (default) or tight
    mass = [4.5, 6.5]              # the whole robot, kg
    [links.link1]
    mass = [0, 5]                  # kg
    centre = {low = [-0.04, -0.3, -0.04], high = [0.04, 0, 0.04]}    # m, in the link's frame
    inertia = {diagonal = [0, 0.5], product = [-0.5, 0.5]}           # about the centre of mass, kg m^2
    contour = {centre = [0, 0, 0.05], radius = 0.08}                 # a sphere; or low and high, points, axes
    [parameters]
    Fv = [0, 50]                   # all of a kind, or one by its name
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Ellipsoid, limits_from_tables
from dynid.consistency.limits import CentreLimit
from dynid.errors import ModelError
from dynid.extraction.bounds import BODY, Bounds, Interval
from dynid.extraction.nominal_bounds import WIDTHS, robot_bounds
from dynid.files import read_small, toml_table
from dynid.model import Model

_FILE_KEYS = {"width", "mass", "links", "parameters"}
_LINK_KEYS = {"mass", "centre", "inertia", "contour", *BODY[4:]}
MAX_BOUND = 1e6  # kg, m, kg m^2 and units of other parameters
_DIAGONAL, _PRODUCT = (4, 7, 9), (5, 6, 8)


def load_bounds(path: str | Path, model: Model, values: Array | None = None) -> Bounds:
    """Return the bounds of a model from a bounds file; values (parameters,): identified ones, see `robot_bounds`."""
    path = Path(path)
    try:
        table = toml_table(read_small(path).decode("utf-8"))
    except OSError as problem:
        raise ModelError(f"there are no bounds '{path}': {problem.strerror}; give {', '.join(WIDTHS)}, or a bounds "
                         "file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ModelError(f"the bounds file {path} is not a TOML file: {problem}", code="not-toml") from None
    return bounds_from_table(table, model, str(path), values)


def bounds_from_table(table: Mapping[str, Any], model: Model, source: str = "bounds",
                      values: Array | None = None) -> Bounds:
    """Return bounds from a plain table; missing entries are those of its `width`."""
    _refuse(table, _FILE_KEYS, source)
    _check_numbers(table, source)
    width = next((one for one in WIDTHS if one == table.get("width", "normal")), None)
    if width is None:
        raise ModelError(f"{source}: width is one of {', '.join(WIDTHS)}, not '{table['width']}'")
    found = robot_bounds(model, width, values)
    low, high, contours = found.low.copy(), found.high.copy(), dict(found.contours)
    names = list(model.parameters.bodies)
    for name, link in _table(table, "links", source).items():
        if name not in names:
            raise ModelError(f"{source} contains link '{name}', which is not in the model; its links are "
                             f"{', '.join(names)}")
        where = f"{source}, link '{name}'"
        _refuse(link, _LINK_KEYS, where)
        k = names.index(name)
        _set_link(low[k], high[k], link, where)
        if "contour" in link:
            contours[name] = _contour(name, link["contour"], where)
        elif "centre" in link:
            contours[name] = _contour(name, link["centre"], where)
    others = dict(found.others)
    for name, pair in _table(table, "parameters", source).items():
        same = [item.name for item in model.parameters if item.body is None and name in (item.name, item.symbol)]
        if not same:
            raise ModelError(f"{source} contains parameter '{name}', which is not among the model's parameters "
                             "besides its bodies")
        others |= {one: _interval(pair, f"{source}, parameter '{name}'") for one in same}
    mass = _interval(table["mass"], f"{source}, mass") if "mass" in table else found.mass
    return replace(found, low=low, high=high, others=others, contours=contours, mass=mass, name=Path(source).stem)


def _set_link(low: Array, high: Array, link: Mapping[str, Any], where: str) -> None:
    """Set the intervals of one link (10,), (10,)."""
    if "mass" in link:
        low[0], high[0] = _interval(link["mass"], f"{where}, mass")
    if "centre" in link:
        sides = [_table(link, "centre", where).get(side) for side in ("low", "high")]
        if not all(isinstance(side, list) and len(side) == 3 and all(map(_is_number, side)) for side in sides):
            raise ModelError(f"{where}: centre needs low and high, three numbers each, in m")
        low[1:4], high[1:4] = sides
    inertia = _table(link, "inertia", where)
    _refuse(inertia, {"diagonal", "product"}, f"{where}, inertia")
    for kind, places in (("diagonal", _DIAGONAL), ("product", _PRODUCT)):
        if kind in inertia:
            low[list(places)], high[list(places)] = _interval(inertia[kind], f"{where}, {kind}")
    for k, name in enumerate(BODY[4:], 4):
        if name in link:
            low[k], high[k] = _interval(link[name], f"{where}, {name}")


def _contour(name: str, table: Mapping[str, Any], where: str) -> CentreLimit:
    """Return a contour from its table; a sphere is an ellipsoid with three equal axes."""
    if isinstance(table, Mapping) and set(table) == {"centre", "radius"}:
        radius = table["radius"]
        if not _is_number(radius):
            raise ModelError(f"{where}: the radius of a contour must be a number, in m, got {radius!r}")
        return Ellipsoid(table["centre"], np.full(3, float(radius)))
    if not isinstance(table, Mapping):
        raise ModelError(f"{where}: a contour is a table: centre and radius, low and high, points, or centre and axes")
    return limits_from_tables({name: table}, ())[0][name]


def _interval(pair: Any, where: str) -> Interval:
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(_is_number, pair)) or not pair[0] <= pair[1]:
        raise ModelError(f"{where}: an interval is two numbers, the smaller one first, got {pair!r}")
    return float(pair[0]), float(pair[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_numbers(value: Any, where: str) -> None:
    """Raise an error for numbers in a table that are not finite or not plausible."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_numbers(item, f"{where}, {key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _check_numbers(item, where)
    elif isinstance(value, int | float) and not abs(value) <= MAX_BOUND:
        raise ModelError(f"{where}: {value:g} is not plausible for a robot; use SI units, at most {MAX_BOUND:g}")


def _table(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ModelError(f"{where}: '{key}' is a table, got {found!r}")
    return found


def _refuse(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ModelError(f"{where} has no setting '{unknown[0]}'; it has {', '.join(sorted(known))}")
