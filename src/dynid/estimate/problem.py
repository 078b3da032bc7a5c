"""Problem: what every method is given. Methods are functions found by the name users know from the literature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.model import LinearModel
from dynid.recording import Recording, Samples
from dynid.recording.resample import at_times
from dynid.regression import BaseParameters, Regression, base_parameters, fold
from dynid.regression.fold import Progress
from dynid.simulation import Controller


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, the fold of the data on its base parameters, and the samples themselves for methods that look twice.

    samples: empty when only a saved fold is at hand. nominal (parameters,): values the user starts from, if any.
    recordings: the logs behind the samples, one each, for the references that closed-loop methods simulate with.
    controller: the machine's control law, if known.
    """

    model: LinearModel
    regression: Regression
    samples: tuple[Samples, ...] = ()
    nominal: Array | None = None
    threads: int | None = None
    progress: Progress | None = None
    recordings: tuple[Recording, ...] = ()
    controller: Controller | None = None

    @property
    def base(self) -> BaseParameters:
        return self.regression.base

    @staticmethod
    def of(model: LinearModel, samples: Samples | Sequence[Samples], *, base: BaseParameters | None = None,
           nominal: Array | None = None, blocks: int = 10, threads: int | None = None,
           progress: Progress | None = None, recordings: Recording | Sequence[Recording] = (),
           controller: Controller | None = None) -> Problem:
        """Fold samples for a model. nominal: default the values the robot's source gives, where it gives all."""
        parts = (samples,) if isinstance(samples, Samples) else tuple(samples)
        base = base_parameters(model) if base is None else base
        regression = fold(model, parts, base=base, blocks=blocks, threads=threads, progress=progress)
        nominal = model.parameters.nominal if nominal is None else model.parameters.vector(nominal)
        logs = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
        if logs and len(logs) != len(parts):
            raise ModelError(f"{len(logs)} recordings were given for {len(parts)} sets of samples")
        return Problem(model, regression, parts, nominal, threads, progress, logs, controller)

    def need_samples(self, method: str) -> tuple[Samples, ...]:
        """The samples, or a refusal that names the method."""
        if not self.samples:
            raise ModelError(f"method '{method}' looks at the samples again and cannot work from a saved fold alone")
        return self.samples

    def as_logged(self, method: str) -> tuple[Samples, ...]:
        """The samples with positions and torques as they were logged, where the logs are at hand: filtered ones hide
        noise they still have, and lag behind a motion that was simulated without the filter."""
        parts = list(self.need_samples(method))
        for k, log in enumerate(self.recordings):
            q, tau = (at_times(parts[k].t, log.t, x) for x in (log.q, log.tau))
            parts[k] = replace(parts[k], q=q, tau=tau)
        return tuple(parts)

    def alone(self) -> Array:
        """The value (base,) with which each base parameter alone would make torques as large as the measured ones; zero
        where it makes none."""
        stacked = self.regression.stack()
        norms = np.linalg.norm(stacked.r, axis=0)
        return np.sqrt(float(np.sum(stacked.rho ** 2) + stacked.rest)) / np.where(norms > 0, norms, np.inf)

    def need_nominal(self, method: str) -> Array:
        """The nominal parameters, or a refusal that names the method."""
        if self.nominal is None:
            missing = [p.name for p in self.model.parameters if p.nominal is None]
            raise ModelError(f"method '{method}' needs nominal values of all parameters; the robot's file gives none "
                             f"for {', '.join(missing[:5]) or 'them'}")
        return self.nominal


class Method(Protocol):
    """method(problem, **options) -> Estimate."""

    def __call__(self, problem: Problem, **options: Any) -> Estimate: ...


_METHODS: dict[str, tuple[Callable[..., Estimate], str]] = {}


def method(name: str, title: str) -> Callable[[Callable[..., Estimate]], Callable[..., Estimate]]:
    """Register a method under the name users know; title says it in words."""
    def register(function: Callable[..., Estimate]) -> Callable[..., Estimate]:
        if name in _METHODS:
            raise ModelError(f"there is already a method called '{name}'")
        _METHODS[name] = (function, title)
        return function
    return register


def methods() -> dict[str, str]:
    """All methods: name and title."""
    return {name: title for name, (_, title) in _METHODS.items()}


def identify(problem: Problem, name: str = "wls", options: Mapping[str, Any] | None = None) -> Estimate:
    """Run a method by name; unknown names and options are refused with what there is."""
    if name not in _METHODS:
        raise ModelError(f"there is no method '{name}'; there are {', '.join(_METHODS)}")
    function, _ = _METHODS[name]
    given = dict(options or {})
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in given:
        if option not in known:
            raise ModelError(f"method '{name}' has no option '{option}'; it has {', '.join(known) or 'none'}")
    estimate = function(problem, **given)
    return estimate.with_provenance(options=given, sources=list(problem.regression.sources))
