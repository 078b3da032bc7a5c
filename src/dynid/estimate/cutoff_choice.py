"""CutoffChoice: the cut-off whose estimate predicts blocks of time that were left out best.

A cut-off is there for the estimate: too low it takes motion away, too high it lets noise of the positions into the
regressor, and both spoil what the estimate predicts. So the data are folded at octaves, weighted least squares is
solved at each without one block of time after the other, and every solution is tried on the block it has not seen. The
yardstick must not move with the cut-off: torques and regressor low-passed at the same few frequencies for all. These
are three octaves above the motion's band, 2, 4 and 8 Hz for most arms; below the band nothing is left to predict,
and far above it the yardstick has the noise that it should judge.

Errors are relative to each joint's own torque, and compared block by block, so that blocks that are hard to predict
do not hide the difference. Cut-offs that are not told from the best (within one deviation of the mean difference, or
2 %) are as good as it, and the middle one of them is taken: it is the furthest from both evils, and moves least when
the log is halved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.datasets import Dataset
from dynid.errors import NotPossibleError
from dynid.estimate.cutoff_folds import CutoffFolds
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.problem import KnownValues
from dynid.model import LinearModel, complete
from dynid.plain import plain
from dynid.progress import Tell
from dynid.recording import Recording, Samples
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import on_grid, prepare
from dynid.regression import Regression

_ABOVE_MOTION = 2.5  # times the motion's band: the lowest cut-off and yardstick
_LOWEST = 2.0  # Hz, however slow the motion: friction and torques change faster
_YARDSTICKS = 3  # octaves
_HIGHEST = 64.0  # Hz that are tried, more only where the motion asks for it: so many times its lowest
_TIMES_LOWEST = 16.0
_SHARE_OF_RATE = 0.125  # that is tried, twice that where less would leave nothing to choose from
_ALIKE = 0.02  # relative difference of errors that is none
_CLEARLY = 0.1  # relative difference beyond which, and beyond two deviations, higher cut-offs are not tried
_FEWEST_BLOCKS = 3


@dataclass(frozen=True, eq=False)
class CutoffChoice:
    """A cut-off and what speaks for it.

    cutoff: Hz. settings: of the preparation, with it. spectrum: Hz, what the positions' spectra alone would choose;
    band: Hz, of the motion. tried (k,): Hz, ascending; errors (k,): percent, of the torques of blocks left out, each
    joint's by its own, in the mean over joints, blocks and yardsticks (Hz); alike (k,): those not told from the best.
    folds: made for it. Where nothing could be tried, why not, and the cut-off is that of the spectra.
    """

    cutoff: float
    settings: Preparation
    spectrum: float
    band: float
    tried: Array
    errors: Array
    alike: Bools
    yardsticks: tuple[float, ...]
    folds: CutoffFolds = field(repr=False)
    why_not: str = ""

    @property
    def step(self) -> str:
        """How it was chosen, as `Samples.steps` say it."""
        if not len(self.tried):
            return f"cut-off {self.cutoff:g} Hz chosen from the positions' spectra, since {self.why_not}"
        errors = ", ".join(f"{error:.3g}" for error in self.errors)
        return (f"cut-off {self.cutoff:g} Hz chosen by what it predicts: at {_hertz(self.tried)} the joints' own "
                f"torques are met to {errors} % in blocks of time left out, judged at {_hertz(self.yardsticks)}; "
                f"{_hertz(self.tried[self.alike])} {'are' if self.alike.sum() > 1 else 'is'} as good as the best, "
                f"the positions' spectra alone would say {self.spectrum:g} Hz")

    def prepare(self, recording: Recording) -> Samples:
        """The samples of a recording at this cut-off; their steps say how it was chosen."""
        samples = prepare(recording, self.settings)
        return replace(samples, steps=(*samples.steps, self.step))

    def to_dict(self) -> dict[str, Any]:
        return plain({"cutoff": self.cutoff, "spectrum": self.spectrum, "motion_band": self.band, "tried": self.tried,
                      "errors": self.errors, "alike": self.alike, "yardsticks": self.yardsticks, "step": self.step})


def choose_cutoff(model: LinearModel, recordings: Recording | Sequence[Recording], settings: Preparation | None = None,
                  *, known: KnownValues | None = None) -> CutoffChoice:
    """The cut-off for identifying a model from recordings, by the torques it predicts.

    settings: of the preparation; a cut-off in them is not looked at. known: standard parameters whose values are known.
    """
    logs = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    chosen = (settings or Preparation()).with_changes(cutoff=None)
    folds = CutoffFolds.of(model, logs, chosen, known=known)
    first = folds.logs[0] if folds.whole else on_grid(folds.moving[0], chosen)
    seen = first.spectrum
    assert seen is not None  # a log too short for one was refused, as no cut-off is given
    lowest = max(2.0 ** np.ceil(np.log2(_ABOVE_MOTION * seen.band) - 1e-9), _LOWEST)
    rate = min(log.grid.rate for log in folds.logs)
    try:
        found = _tried(folds, _octaves(float(lowest), rate))
    except NotPossibleError as problem:
        common = chosen.with_changes(cutoff=seen.common)
        return CutoffChoice(seen.common, common, seen.common, seen.band, np.zeros(0), np.zeros(0),
                            np.zeros(0, dtype=bool), (), folds, str(problem))
    tried, yardsticks, losses = found
    if not np.isfinite(losses).all():
        raise NotPossibleError("no cut-off can be chosen: the torque errors are not finite at any",
                               "check units and known values, or give the cut-off with --cutoff")
    alike = _as_good(losses)
    low, high = np.flatnonzero(alike)[[0, -1]]
    alike[low:high + 1] = True  # one between two that are as good as the best only had bad luck
    middle = [int(np.floor(0.5 * (low + high))), int(np.ceil(0.5 * (low + high)))]
    cutoff = float(tried[min(middle, key=lambda k: abs(np.log(tried[k] / seen.common)))])
    return CutoffChoice(cutoff, chosen.with_changes(cutoff=cutoff), seen.common, seen.band, tried,
                        100.0 * np.exp(losses.mean(axis=1)), alike, yardsticks, folds)


def prepare_dataset(model: LinearModel, dataset: Dataset, preparation: Preparation | None = None, *,
                    known: KnownValues | None = None, tell: Tell = lambda sentence: None
                    ) -> tuple[Dataset, CutoffChoice | None]:
    """Return a dataset with its logs prepared for a model, and the choice of the cut-off; None where it is given."""
    chosen = (preparation or Preparation()).keeping_slow(complete(model).slow_joints, model.dof)
    if not chosen.chooses_cutoff:
        return dataset.prepared(chosen, tell=tell), None
    tell("choosing the cut-off by cross-validation")
    cutoff = choose_cutoff(model, dataset.recordings, chosen, known=known)
    return dataset.prepared(cutoff.settings, steps=(cutoff.step,), tell=tell), cutoff


def _octaves(lowest: float, rate: float) -> list[float]:
    """Cut-offs (Hz) to try, ascending."""
    highest = min(max(_HIGHEST, _TIMES_LOWEST * lowest), max(_SHARE_OF_RATE * rate,
                                                             min(2.0 * lowest, 2.0 * _SHARE_OF_RATE * rate)))
    return [lowest * 2.0 ** k for k in range(1 + int(np.log2(max(highest / lowest, 1.0)) + 1e-9))]


def _tried(folds: CutoffFolds, octaves: Sequence[float]) -> tuple[Array, tuple[float, ...], Array]:
    """Cut-offs tried (k,), yardsticks, and losses (k, blocks): logarithm of the error, in the mean over yardsticks."""
    judges: list[tuple[float, Regression]] = []
    for cutoff in octaves:
        fold = folds.torques(cutoff)
        if fold is not None and (not judges or len(fold.blocks) == len(judges[0][1].blocks)):
            judges.append((cutoff, fold))
        if len(judges) == _YARDSTICKS:
            break
    if len(judges) < 2:
        raise NotPossibleError("the log is too short or its rate too low to try several")
    yardsticks, regressions = tuple(cutoff for cutoff, _ in judges), [fold for _, fold in judges]
    blocks = [b for b in range(len(regressions[0].blocks)) if all(fold.blocks[b].rows for fold in regressions)]
    if len(blocks) < _FEWEST_BLOCKS:
        raise NotPossibleError("there are too few blocks of time to leave some out")
    tried, losses = [], []
    for cutoff in octaves:
        fold = folds.at(cutoff)
        if fold is None or len(fold.blocks) != len(regressions[0].blocks):
            continue
        tried.append(cutoff)
        losses.append(_losses(fold, regressions, blocks))
        if cutoff >= yardsticks[-1] and _hopeless(np.array(losses)):
            break
    return np.array(tried), yardsticks, np.array(losses)


def _losses(fold: Regression, judges: Sequence[Regression], blocks: Sequence[int]) -> Array:
    """Logarithm of the error on each block (blocks,) by the solution without it, in the mean over the yardsticks."""
    weights, others = joint_weights(fold), fold.without_each()
    betas = [solve(others[b], others[b].stack(weights)).beta for b in blocks]
    losses = []
    for judge in judges:
        power = np.array([factor.power for factor in judge.factors]) / len(judge.blocks)
        known = power > 0
        misfit = np.array([[factor.misfit(beta) for factor in judge.blocks[b].factors]
                           for b, beta in zip(blocks, betas, strict=True)])
        share = np.mean(misfit[:, known] / power[known], axis=1)
        losses.append(0.5 * np.log(np.maximum(share, 1e-30)))
    return np.asarray(np.mean(losses, axis=0))


def _behind(losses: Array) -> tuple[int, Array, Array]:
    """The best cut-off, and by how much the others' losses are behind it (k,), with the deviation of that."""
    best = int(np.argmin(losses.mean(axis=1)))
    apart = losses - losses[best]
    return best, apart.mean(axis=1), apart.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])


def _as_good(losses: Array) -> Bools:
    _, behind, deviation = _behind(losses)
    return np.asarray(behind <= np.maximum(deviation, np.log1p(_ALIKE)))


def _hopeless(losses: Array) -> bool:
    """Whether the last cut-off is clearly worse than one below it, so that higher ones are as well."""
    best, behind, deviation = _behind(losses)
    return best < len(losses) - 1 and bool(behind[-1] > max(2.0 * deviation[-1], np.log1p(_CLEARLY)))


def _hertz(cutoffs: Sequence[float] | Array) -> str:
    words = [f"{cutoff:g}" for cutoff in cutoffs]
    return f"{', '.join(words[:-1])} and {words[-1]} Hz" if len(words) > 1 else f"{words[0]} Hz"
