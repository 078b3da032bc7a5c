"""When and where the robot was touched, how hard, and whether by a push or a payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.pages.contact.data import ContactData
from dynid.report.section import Section

MAX_CONTACTS_SHOWN = 40


def gather(data: ContactData) -> Mapping[str, Any]:
    rows = [{"start": one.start, "stop": one.stop, "link": one.link, "sure": 100.0 * float(one.probabilities.max()),
             "force": float(np.linalg.norm(one.link_wrench[:3])),
             "std": float(np.linalg.norm(one.link_std[:3])), "title": one.finding.title, "text": one.finding.text}
            for one in data.log.contacts]
    return {"rows": rows[:MAX_CONTACTS_SHOWN], "more": max(0, len(rows) - MAX_CONTACTS_SHOWN), "log": data.log.source,
            "findings": [one.text for one in data.log.findings], "frame": data.frame}


SECTION = Section("touched", "Detected contacts", gather)
