"""Section on how to repeat the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.study.data import StudyData
from dynid.report.section import Section


def gather(data: StudyData) -> Mapping[str, Any]:
    return {"settings": data.settings, "command": data.command}


SECTION = Section("provenance", "Provenance", gather)
