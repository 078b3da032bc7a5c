"""Tables of scores of the methods, and why some logs gave no estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynid.report.pages.study.data import StudyData
from dynid.report.section import Section

_MAX_FAILURE_REASONS = 5  # reasons shown for one method
_TEXT_COLUMNS = ("method", "parameters")  # columns that hold no numbers


def gather(data: StudyData) -> Mapping[str, Any]:
    reasons = []
    for score in data.scores:
        different = list(dict.fromkeys(score.failures))
        if different:
            shown = [(sentence, score.failures.count(sentence)) for sentence in different[:_MAX_FAILURE_REASONS]]
            reasons.append({"label": score.label, "factor": score.factor, "count": len(score.failures),
                            "sentences": shown, "more": len(different) - len(shown)})
    return {"tables": data.tables, "words": _TEXT_COLUMNS, "reasons": reasons, "unbiased": data.unbiased,
            "by_chance": f"{100 * data.unbiased_by_chance:.0f} %", "logs": data.repetitions}


SECTION = Section("overview", "Methods", gather)
