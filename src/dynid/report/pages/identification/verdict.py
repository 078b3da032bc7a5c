"""The verdict in words, and its main numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.estimate.estimate import WELL_DETERMINED
from dynid.findings import Finding
from dynid.report.pages.identification.data import ReportData
from dynid.report.section import Card, Section
from dynid.report.words import percent
from dynid.validate.conclusion import LACKS
from dynid.validate.excited_parameters import LONGER_LOG, Status
from dynid.validate.grade import Grade, grouped, ranked
from dynid.validate.words import capitalised

COLOURS: dict[Grade, str] = {"good": "good", "usable": "fair", "not usable": "poor"}


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one kind: their heading, colour, and symbol in the template."""

    kind: str
    title: str
    grade: str
    icon: str


GROUPS = (
    FindingGroup("problem", "Warnings", "poor", "warning"),
    FindingGroup("not-excited", "Not excited by the data", "fair", "gap"),
    FindingGroup("identified", "Identified parameters", "good", "check"),
    FindingGroup("validation", "Prediction", "plain", "chart"))


def gather(data: ReportData) -> Mapping[str, Any]:
    known = {group.kind for group in GROUPS}
    kinds = dict.fromkeys(finding.kind for finding in data.verdict.findings if finding.kind not in known)
    groups = [*GROUPS, *(FindingGroup(kind, kind.replace("-", " ").capitalize(), "plain", "chart") for kind in kinds)]
    shown = [(group, tuple(ranked(data.verdict.of_kind(group.kind)))) for group in groups
             if group.kind != "identified" or data.verdict.grade != "not usable"]
    consequences = {one.text: others for one, others in grouped(data.verdict.of_kind("problem"))}
    folded = {other.text for others in consequences.values() for other in others}
    return {"lines": data.verdict.summary.lines, "grade": COLOURS[data.verdict.grade],
            "groups": [(group, [one for one in distinct(found) if one.text not in folded]) for group, found in shown
                       if found], "consequences": consequences, "corrections": data.corrections,
            "cards": cards(data), "remedies": remedies(data), "improve": data.improve}


@dataclass(frozen=True)
class MissingParameters:
    """Parameters that one motion would help to determine: advice, and names by status, the worst first."""

    advice: str
    names: tuple[tuple[str, str, str], ...]


def remedies(data: ReportData) -> list[MissingParameters]:
    """Return poorly excited parameters grouped by the motion that would help, the most effective motion first."""
    groups: dict[str, dict[Status, list[str]]] = {}
    for one in data.verdict.excitation.missing:
        advice = one.remedy.advice.text if one.remedy else "a larger motion of a single joint does not help" if (
            one.status == "not-excited") else LONGER_LOG
        groups.setdefault(advice, {}).setdefault(one.status, []).append(one.name)
    order = sorted(groups, key=lambda advice: -sum(map(len, groups[advice].values())))
    return [MissingParameters(capitalised(advice), tuple(
        (code, words, ", ".join(groups[advice][status])) for status, (code, words) in LACKS.items()
        if status in groups[advice])) for advice in order]


def distinct(findings: tuple[Finding, ...]) -> list[Finding]:
    """Return the findings without those whose text occurs in another finding too."""
    return list({finding.text: finding for finding in findings}.values())


def cards(data: ReportData) -> list[Card]:
    """Return the key numbers of a result, as cards of the report."""
    total, estimate = data.reconstruction.total, data.estimate
    found = [Card("relative error", percent(total.relative_error),
                  f"on the fitted data: {data.reconstruction.counted_text}")]
    others = [one for one in data.validations if one.total.relative_error is not None]
    if others:
        worst = max(others, key=lambda one: one.relative_error)
        words = "unseen" if len(others) == 1 else f"the worst of {len(others)} unseen logs"
        found.append(Card("validation error", percent(worst.relative_error),
                          f"on {', '.join(map(data.log_name, worst.sources))}, {words}: {worst.moving.text}"))
    elif data.cross_validation is not None:
        found.append(Card("validation error", percent(data.cross_validation.mean), "in cross-validation, on average"))
    if data.verdict.grade == "not usable":  # the parameters are not meaningful
        return found
    count = len(estimate.values)
    sharp = int(np.sum(estimate.well_determined & (estimate.relative_std < 10.0)))
    found.append(Card("base parameters", f"{int(estimate.well_determined.sum())} of {count}",
                      f"well determined: standard error at most {WELL_DETERMINED:g} %; {sharp} to better than 10 %"))
    inflation = estimate.uncertainty.facts.get("std_inflation")
    if inflation is not None:
        words = ("times those for independent rows, because residuals are autocorrelated" if float(inflation) > 1.05
                 else "rows are almost independent")
        found.append(Card("standard errors", f"\u00d7 {float(inflation):.2g}", words))
    return found


SECTION = Section("verdict", "Verdict", gather)
