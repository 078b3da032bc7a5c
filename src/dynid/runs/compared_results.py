"""Comparison of two earlier results, parameter by parameter and in torque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import DynidError, ModelError, RecordingError
from dynid.estimate import Estimate
from dynid.output_fields import output_fields
from dynid.progress import Tell
from dynid.recording import Samples
from dynid.recording.preparation import Preparation
from dynid.regression import Regression
from dynid.runs.arguments import WINDOW
from dynid.runs.loading import Resting, prepared
from dynid.runs.models import make_robot
from dynid.runs.results import REGRESSION, load
from dynid.runs.settings import RunSettings
from dynid.validate.comparison import EstimateComparison
from dynid.validate.comparison import compare as compare_estimates


@dataclass(frozen=True, eq=False)
class ComparedResults:
    """Comparison of result a with result b, each given by its folder."""

    result_a: str
    result_b: str
    comparison: EstimateComparison

    @output_fields(EstimateComparison, result_a=str, result_b=str)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"result_a": self.result_a, "result_b": self.result_b, **self.comparison.to_dict()}


def compare_results(folder_a: str, folder_b: str, logs: Sequence[str] = (), log: Mapping[str, Any] | None = None,
                    tell: Tell = lambda sentence: None, *, trust: bool = False) -> ComparedResults:
    """Compare two results of one robot on the motion of the first one's identification, and on further logs.

    The logs are read and prepared like those of the first result. log: a [log] table that overrides that of its run;
    trust: see `load`.
    """
    tell("reading the results")
    (a, settings), (b, _) = load(folder_a, trust=trust), load(folder_b, trust=trust)
    samples: list[Samples] = []
    if logs:
        given = {key: value for key, value in (log or {}).items() if value is not None}
        window = {key: given.pop(key) for key in WINDOW if key in given}
        rules = given or {key: value for key, value in settings.log.items() if key not in WINDOW}
        settings = RunSettings.of(settings.model_dump() | {"log": {**rules, **window}}, folder_a, trust=trust)
        resting: list[Resting] = []
        samples = [one for _, one in prepared(logs, settings, make_robot(settings),
                                              Preparation.of(settings.prepare).elsewhere(), tell, resting)]
        if not samples:
            raise resting[0].problem
    tell("comparing")
    found = compare_estimates(a, b, samples, (_fold(folder_a, a), _fold(folder_b, b)))
    if not found.names and not found.torques:
        raise DynidError(f"{folder_a} and {folder_b} have no parameter in common; give a log on which their torques "
                         "can be compared")
    return ComparedResults(folder_a, folder_b, found)


def _fold(folder: str, estimate: Estimate) -> Regression | None:
    """Return the compressed regression that a result folder holds; None if it was compressed for another model."""
    try:
        return Regression.load(Path(folder) / REGRESSION, estimate.model)
    except (ModelError, RecordingError):
        return None
