"""Conversion of numbers for JSON: plain numbers, and None for those that are not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.output_fields import output_fields


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Convert a value to dicts, lists, strings and finite numbers; a non-finite number becomes None."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return finite(float(value))
    return value


class PlainFields:
    """Base of dataclasses that are written to JSON field by field."""

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}
