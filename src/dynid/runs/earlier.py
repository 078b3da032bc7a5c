"""A run that starts from an earlier result: that of a fleet for a new robot of its type, or of the same robot."""

from __future__ import annotations

from dataclasses import replace

from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.estimate.choice import AUTO
from dynid.estimate.cutoff_folds import CutoffFolds
from dynid.estimate.earlier import METHOD, Weight, with_prior
from dynid.runs.loading import LoadedProblem
from dynid.runs.settings import ModelSettings, RunSettings


def from_prior(settings: RunSettings) -> tuple[RunSettings, Estimate | None]:
    """Return the settings of a run with a prior, and the earlier estimate, or None. Terms are those of the earlier
    result if the run names none."""
    if settings.prior is None:
        return settings, None
    from dynid.runs.results import load  # which imports runs itself

    if settings.method not in (AUTO, METHOD) or settings.essential is not None:
        raise DynidError(f"a prior can be combined only with method {METHOD} and all parameters; remove "
                         + ("[essential]" if settings.method in (AUTO, METHOD) else f"method '{settings.method}'")
                         + " or the prior")
    earlier, made_with = load(settings.prior, trust=settings.trust is True)
    model = made_with.model if settings.model == ModelSettings() else settings.model
    return settings.model_copy(update={"model": model, "method": METHOD}), earlier


def with_earlier(loaded: LoadedProblem, earlier: Estimate) -> tuple[LoadedProblem, Weight]:
    """Return the problem of a run with an earlier estimate as prior, and its weight."""
    problem, weight = with_prior(loaded.problem, earlier)
    cutoff = loaded.cutoff
    if cutoff is not None:  # whose folds, without the prior, would be identified from again
        cutoff = replace(cutoff, folds=CutoffFolds.like(problem))
    return replace(loaded, problem=problem, cutoff=cutoff), weight
