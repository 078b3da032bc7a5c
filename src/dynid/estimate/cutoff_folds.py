"""CutoffFolds: the same recordings folded at one cut-off after another, as little of them as tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.problem import KnownValues, Problem
from dynid.model import LinearModel, Model
from dynid.model.held import held_values
from dynid.recording import Recording, Samples
from dynid.recording.excerpt import moving_excerpt
from dynid.recording.preparation import Preparation
from dynid.recording.preparation.cutoff import Spectrum
from dynid.recording.preparation.row_filter import EquationsKind
from dynid.recording.preparation.selection import moving_joints
from dynid.recording.prepare import Gridded, on_grid, prepare, prepare_gridded
from dynid.recording.recording import SIGNAL_ATTRIBUTES
from dynid.regression import BaseParameters, Regression, base_parameters, equations_of, fold
from dynid.regression.equations import Kept
from dynid.regression.known import Prior, check_known

_BLOCKS = 8  # stretches of time in all logs together
_RATE = 1000.0  # Hz that is enough: torques and motion at the cut-offs tried lie far below
_ROWS = 60_000  # of all logs together, a minute at that rate; of more an excerpt is taken
_UNIFORM = 0.01  # of an interval, by which stamps of a log whose rows are averaged may vary


@dataclass(frozen=True, eq=False)
class CutoffFolds:
    """Folds of some recordings, by cut-off (Hz); each is made when it is first asked for.

    moving: the recordings in which something moves; logs: what is folded of them; whole: whether that is all there is.
    settings: of the preparation, but for the cut-off. Filtered equations have their window from the cut-off; `torques`
    are those of the same logs as torques.
    """

    model: LinearModel
    base: BaseParameters
    prior: Prior | None
    moving: tuple[Recording, ...]
    logs: tuple[Gridded, ...]
    settings: Preparation
    whole: bool
    made: dict[tuple[float, EquationsKind], Regression | None] = field(default_factory=dict)

    @staticmethod
    def of(model: LinearModel, recordings: Sequence[Recording], settings: Preparation, *,
           known: KnownValues | None = None) -> CutoffFolds:
        """Folds of these recordings on the base parameters of a model, of which some may be known."""
        silent = [j for j in range(model.dof) if all(log.joints and log.joints[j] in log.unmeasured
                                                     for log in recordings)]
        base = base_parameters(model, unmeasured=silent)
        held = held_values(model) if isinstance(model, Model) else {}
        facts = check_known(base, {**held, **(known or {})})
        base, *_ = base.given({name: one.value for name, one in facts.items() if one.std == 0.0})
        prior = Prior.of(base, {name: one for name, one in facts.items() if one.std > 0.0})
        return _folds(model, base, prior, recordings, settings)

    @staticmethod
    def like(problem: Problem) -> CutoffFolds:
        """Folds of a problem's recordings, prepared as its data were but for the cut-off and what follows from it."""
        settings = _following(Preparation.of(dict(problem.data[0].settings)), problem.data[0].rate)
        return _folds(problem.model, problem.base, problem.regression.prior, problem.recordings, settings)

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """Spectra of the positions, one a log that is long enough for one."""
        return tuple(log.spectrum for log in self.logs if log.spectrum is not None)

    def at(self, cutoff: float) -> Regression | None:
        """The fold at a cut-off (Hz); None where the recordings are too short or too slow for it."""
        return self._at(cutoff, self.settings.equations)

    def torques(self, cutoff: float) -> Regression | None:
        """The fold of torques at a cut-off (Hz), whatever the equations are; None where there is none."""
        return self._at(cutoff, "torque")

    def _at(self, cutoff: float, equations: EquationsKind) -> Regression | None:
        if (cutoff, equations) not in self.made:
            try:
                self.made[cutoff, equations] = self._fold(cutoff, equations)
            except NotPossibleError:
                self.made[cutoff, equations] = None
        return self.made[cutoff, equations]

    def samples(self, cutoff: float, equations: EquationsKind | None = None) -> tuple[Samples, ...]:
        """What is folded of each log at a cut-off (Hz); equations: of what, by default of what the settings say."""
        chosen = self.settings.with_changes(cutoff=cutoff, equations=equations or self.settings.equations)
        found: list[Samples] = []
        for log in self.logs:
            found.append(prepare_gridded(log, chosen))
            chosen = found[-1].preparation
        return tuple(found)

    def _fold(self, cutoff: float, equations: EquationsKind) -> Regression:
        # Each log by itself: blocks of the same number are the same stretch of time at every cut-off.
        parts = [fold(Kept(equations_of(self.model, samples, self.base)), blocks=-(-_BLOCKS // len(self.logs)))
                 for samples in self.samples(cutoff, equations)]
        return replace(reduce(add, parts), prior=self.prior)


def _folds(model: LinearModel, base: BaseParameters, prior: Prior | None, recordings: Sequence[Recording],
           settings: Preparation) -> CutoffFolds:
    moving = tuple(log for log in recordings if np.any(moving_joints(log.q)))
    if not moving:
        prepare(recordings[0])  # says why nothing can be learnt from it
    less = moving_excerpt([_averaged(log) for log in moving], _ROWS)
    whole = sum(map(len, less)) == sum(map(len, moving))
    return CutoffFolds(model, base, prior, moving, tuple(on_grid(log, settings) for log in less), settings, whole)


def _following(settings: Preparation, rate: float) -> Preparation:
    """Resolved settings of a log at `rate` Hz without those that were chosen from its cut-off."""
    free: dict[str, Any] = {"window": None}
    cutoff, factor = settings.cutoff or 0.0, settings.decimate or 1
    if factor > 1 and abs(settings.decimate_share - 2.0 * cutoff * factor / rate) < 1e-9:
        free |= {"decimate": None, "torque_cutoff": None, "decimate_share": Preparation().decimate_share}
    elif factor == 1 and settings.torque_cutoff == "same" and settings.thin == 1:
        free |= {"decimate": None, "torque_cutoff": None}
    if settings.filtered is not None and settings.kernel_window is not None and cutoff and abs(
            settings.kernel_window * cutoff / settings.kernel_options.cutoff(settings.filtered, 1.0) - 1.0) < 1e-4:
        free["kernel_window"] = None
    if settings.border is not None and settings.border >= 1.0 / max(cutoff, 1e-9):
        free["border"] = None
    return settings.with_changes(**free)


def _averaged(recording: Recording) -> Recording:
    """A fast log with means of neighbouring rows in their place; a mean does the same to motion and torques."""
    times = int(recording.rate / _RATE + _UNIFORM)  # stamps of a log at twice the rate may give a little less
    intervals = np.diff(recording.t)
    if times < 2 or np.ptp(intervals) > _UNIFORM * float(intervals.mean()):
        return recording
    count = len(recording) // times

    def mean(signal: Array) -> Array:
        return np.asarray(signal[:count * times]).reshape(count, times, *signal.shape[1:]).mean(axis=1)

    names = ("t", *SIGNAL_ATTRIBUTES.values(), "measured_position")
    means: dict[str, Any] = {name: mean(signal) for name in names if (signal := getattr(recording, name)) is not None}
    return replace(recording, **means)
