"""Events: changes with their explanations, and faults of the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.stream.data import StreamData
from dynid.report.section import Section

_MAX_EVENTS_SHOWN, _MAX_EXPLANATIONS = 50, 3


def gather(data: StreamData) -> Mapping[str, Any] | None:
    if not data.changes and not data.events:
        return None
    return {"changes": data.changes, "most": _MAX_EXPLANATIONS, "events": data.events[-_MAX_EVENTS_SHOWN:],
            "more": max(0, len(data.events) - _MAX_EVENTS_SHOWN)}


SECTION = Section("happened", "Changes and events", gather)
