"""Findings on data and results, each with a stable code for programs and a text for users."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dynid.output_fields import output_fields, record
from dynid.plain import finite

Kind = Literal["identified", "not-excited", "problem", "validation"]
Severity = Literal["fatal", "warning", "info"]
Evidence = Mapping[str, float | tuple[float, ...]]


# A violated condition of physical consistency, in the form of outputs.
VIOLATION = record("Violation", link=str, kind=str, message=str, amount=float | None)


@dataclass(frozen=True)
class Note:
    """A remark: a stable code in kebab-case, its text, and its numbers."""

    code: str
    text: str
    evidence: Evidence = field(default_factory=dict)

    @output_fields(code=str, text=str, evidence=dict[str, Any])
    def to_dict(self) -> dict[str, Any]:
        """Return the note as plain data for JSON; None for a number that is not finite."""
        return {"code": self.code, "text": self.text, "evidence": _plain(self.evidence)}

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Note:
        """Return a note from plain data, such as that of a file."""
        numbers = {name: tuple(math.nan if x is None else x for x in value) if isinstance(value, list) else
                   math.nan if value is None else value for name, value in plain["evidence"].items()}
        return Note(plain["code"], plain["text"], numbers)


@dataclass(frozen=True)
class Finding:
    """One finding of a verdict.

    Attributes:
        code: stable code in kebab-case.
        kind: part of the verdict that it belongs to.
        severity: "fatal" if the fit is meaningless until it is corrected, "warning" if an action is needed, else
            "info".
        text: one sentence.
        title: two or three words for a headline.
        joints, parameters, logs: names that it concerns.
        evidence: numbers by name. A tuple has one number per joint, parameter or log, in their order.
        second_fit: whether the numbers are those of a second fit, made for diagnosis, and not those of the result.
    """

    code: str
    kind: Kind
    severity: Severity
    text: str
    title: str
    joints: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=dict)
    second_fit: bool = False

    @output_fields(code=str, kind=str, severity=str, text=str, title=str, joints=list[str], parameters=list[str],
                   logs=list[str], evidence=dict[str, Any], second_fit=bool)
    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data for JSON; None for a number that is not finite."""
        return {"code": self.code, "kind": self.kind, "severity": self.severity, "text": self.text,
                "title": self.title, "joints": list(self.joints), "parameters": list(self.parameters),
                "logs": list(self.logs), "evidence": _plain(self.evidence), "second_fit": self.second_fit}


def _plain(evidence: Evidence) -> dict[str, Any]:
    return {name: [finite(x) for x in value] if isinstance(value, tuple) else finite(value)
            for name, value in evidence.items()}
