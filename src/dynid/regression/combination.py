"""Combinations of parameters as text: 'ZZ1 + Ia1 - 0.25 M2', and their coefficients."""

from __future__ import annotations

import re

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model import Parameters

_TERM = re.compile(r"\s*([+-]?)\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)\s*\*?\s*)?([A-Za-z_][A-Za-z_0-9.]*)")


def parsed(text: str, parameters: Parameters) -> Array:
    """Return the coefficients (parameters,) of a combination such as 'ZZ1 + Ia1 - 0.25 M2' or '0.25*M2'."""
    row, at = np.zeros(len(parameters)), 0
    text = text.strip()
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or (at > 0 and not match[1]):
            raise ModelError(f"'{text}' is not a sum of parameters: cannot parse '{text[at:]}'; write it like 'ZZ1 + "
                             "0.25 M2'", code="wrong-combination")
        sign, size, name = match.groups()
        row[parameters.index(name)] += (-1.0 if sign == "-" else 1.0) * float(size or 1.0)
        at = match.end() + len(text[match.end():]) - len(text[match.end():].lstrip())
    if not row.any():
        raise ModelError(f"the combination '{text}' contains no parameter")
    return row
