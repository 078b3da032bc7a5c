"""The payload in the fields, order and units of each manufacturer's controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.payload.data import PayloadData
from dynid.report.section import Section


def gather(data: PayloadData) -> Mapping[str, Any] | None:
    return {"entries": data.entries, "frame": data.payload.frame} if data.entries else None


SECTION = Section("controllers", "Values for controllers", gather)
