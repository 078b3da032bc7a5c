"""The report page of a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.report import write_page
from dynid.report.pages.study import STUDY, MethodScore, StudyData
from dynid.study.result import BIASED, GROUPS, UNBIASED, Score, StudyResult


def write_study(result: StudyResult, path: str | Path, command: str = "") -> Path:
    """Write the page to a file atomically; command: command line that repeats the study."""
    return write_page(STUDY, study_data(result, command), path)


def study_data(result: StudyResult, command: str = "") -> StudyData:
    """Return the data for the report page of a study."""
    scores = tuple(_method_score(result, score) for score in result.scores)
    labels = dict.fromkeys(score.label for score in scores)
    return StudyData(title=f"{result.robot}: {', '.join(labels)}", names=result.names, units=result.units,
                     truth=result.truth, inertial=result.inertial, repetitions=result.study.repetitions,
                     seed=result.study.seed, factors=tuple(result.study.noise.factors), scores=scores,
                     tables=(result.runs_table(), result.parameters_table()), unbiased=UNBIASED, biased=BIASED,
                     unbiased_by_chance=result.unbiased_by_chance, settings=result.study.as_toml(), command=command)


def _method_score(result: StudyResult, score: Score) -> MethodScore:
    groups = {name: score.group(result.members(name)) for name in GROUPS}
    return MethodScore(label=score.label, factor=score.factor, logs=len(score.values),
                       torque_error=float(np.median(score.torque_error)) if len(score.torque_error) else None,
                       bias=score.bias, spread=score.spread, stated=score.stated, coverage=score.coverage,
                       known=score.known,
                       group_coverage={name: None if group is None else group["coverage"]
                                       for name, group in groups.items()},
                       failures=tuple(sentence for _, sentence in score.failures))
