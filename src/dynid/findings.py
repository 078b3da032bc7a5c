"""What is said of data and results, each with a stable code: programs ask for the code, people read the text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dynid.plain import finite

Kind = Literal["identified", "not-excited", "suspicious", "validation"]
Severity = Literal["fatal", "warning", "info"]
Evidence = Mapping[str, float | tuple[float, ...]]


@dataclass(frozen=True)
class Note:
    """A remark: its code in kebab-case, which stays the same when the words change, its text, and its numbers."""

    code: str
    text: str
    evidence: Evidence = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; None for a number that is not finite."""
        return {"code": self.code, "text": self.text, "evidence": _plain(self.evidence)}

    @staticmethod
    def of(plain: Mapping[str, Any]) -> Note:
        """From plain data, such as a file's."""
        numbers = {name: tuple(math.nan if x is None else x for x in value) if isinstance(value, list) else
                   math.nan if value is None else value for name, value in plain["evidence"].items()}
        return Note(plain["code"], plain["text"], numbers)


@dataclass(frozen=True)
class Finding:
    """One finding of a verdict.

    code: kebab-case, stable. kind: the part of the verdict it belongs to. severity: fatal where the fit means nothing
    until this is put right, warning where something should be done, info otherwise. text: one sentence. title: two or
    three words for a headline. joints, parameters, logs: names of what it is about. evidence: the numbers it stands
    on, by name; a tuple has one number for each of the joints, parameters or logs, in their order. second_fit: whether
    these are of a second fit, made to see what else is wrong, and not of the result.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; None for a number that is not finite."""
        return {"code": self.code, "kind": self.kind, "severity": self.severity, "text": self.text,
                "title": self.title, "joints": list(self.joints), "parameters": list(self.parameters),
                "logs": list(self.logs), "evidence": _plain(self.evidence), "second_fit": self.second_fit}


def _plain(evidence: Evidence) -> dict[str, Any]:
    return {name: [finite(x) for x in value] if isinstance(value, tuple) else finite(value)
            for name, value in evidence.items()}
