"""Findings, notes and errors: codes and numbers that survive JSON and a change of process."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from dynid import errors
from dynid.findings import Finding, Note


def test_a_finding_as_json():
    found = Finding("drive-gain", "problem", "warning", "The gain is wrong.", "drive gain", joints=("a", "b"),
                    evidence={"gain": (1.25, math.nan), "std": math.inf, "rows": 3})
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said == {"code": "drive-gain", "kind": "problem", "severity": "warning", "text": "The gain is wrong.",
                    "title": "drive gain", "joints": ["a", "b"], "parameters": [], "logs": [],
                    "evidence": {"gain": [1.25, None], "std": None, "rows": 3.0}, "second_fit": False}


def test_notes_are_the_same_when_all_they_say_is():
    note = Note("controller-speed-late", "one tick", {"ticks": 1.0})
    assert note == Note("controller-speed-late", "one tick", {"ticks": 1.0}) != Note("law-not-met", "one tick")
    assert note.to_dict() == {"code": "controller-speed-late", "text": "one tick", "evidence": {"ticks": 1.0}}


@pytest.mark.parametrize("kind", [errors.DynidError, errors.RobotError, errors.ModelError, errors.RecordingError,
                                  errors.NotPossibleError])
def test_an_error_keeps_reason_advice_and_code_between_processes(kind):
    problem = pickle.loads(pickle.dumps(kind("it diverged", "use a smaller step", "simulation-diverged")))
    assert type(problem) is kind and str(problem) == "it diverged; use a smaller step"
    assert (problem.reason, problem.advice, problem.code) == ("it diverged", "use a smaller step",
                                                              "simulation-diverged")
    plain = kind("it diverged")
    assert (str(plain), plain.advice, plain.code) == ("it diverged", "", kind.code)
