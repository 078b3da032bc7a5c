"""Conversion of numbers for JSON: plain numbers, and None for those that are not finite."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dynid.output_fields import output_fields


def finite(value: float | None) -> float | None:
    """Return the number, or None if it is not finite."""
    return float(value) if value is not None and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Convert a value to dicts, lists, strings and finite numbers for JSON; a non-finite number becomes None."""
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
    """Base of dataclasses that are written to JSON field by field.

    `class Fit(PlainFields, also=("share",), without=("rows",))` writes the property `share` too, and not the field
    `rows`.
    """

    also_written: ClassVar[tuple[str, ...]] = ()
    not_written: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, also: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        super().__init_subclass__()
        cls.also_written, cls.not_written = also, without

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        names = [*(name for name in vars(self) if name not in self.not_written), *self.also_written]
        return {name: plain(getattr(self, name)) for name in names}
