"""Writer of TOML, which the standard library can only read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from dynid.escape import toml_string

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dumps(values: Mapping[str, Any]) -> str:
    """Return nested mappings of plain values as TOML; numbers keep all their digits, keys their order."""
    return "".join(_table(values, ())).lstrip("\n")


def _table(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    lines = []
    if path and (plain or not values):
        lines.append(f"\n[{'.'.join(map(_key, path))}]\n")
    lines += [f"{_key(key)} = {_value(value)}\n" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(_value(item) for item in value) + "]"
