"""Choice of the cut-off frequency by cross-validation over blocks of time.

A cut-off that is too low removes motion; one that is too high passes noise of the positions into the regressor. The
data are compressed at cut-offs an octave apart. At each cut-off, weighted least squares is solved without each block of
time and predicts the torques of this block.

All candidates are compared on the same torques, measured and predicted, low-passed at one reference frequency that
contains the whole motion (`yardstick`). A higher reference would favour high cut-offs: with noise of covariance N in
the regressor X, the expected squared error of values b is |tau - X b|^2 + b' N b, which rewards values shrunk by noise,
and N grows with the fifth power of the frequency. A lower reference would favour low cut-offs. Joints are weighted by
their residuals, since relative errors would be dominated by joints with little torque.

The search starts at the reference frequency and goes up by octaves until a cut-off is clearly worse. A cut-off below
the reference is tried only if the first octave above is clearly worse: noise of the positions then reaches into the
band of the motion. Otherwise a lower cut-off removes motion and reversals of friction, and on real machines it
predicted other logs worse, even if it was the best in cross-validation.

Candidates within a standard error or 2 % of the best, or with errors far below one percent of the torques, are
considered equal. The middle one of these is chosen, since it changes least if the log is halved. Of two middle ones,
the higher is chosen, which keeps more independent rows, or the lower if noise made the search go down.
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
from dynid.estimate.linear import joint_weights, solve_values
from dynid.model import LinearModel, complete
from dynid.order_statistics import median
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.progress import ProgressCallback, silent
from dynid.recording import Recording, Samples
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import prepare
from dynid.regression import Regression
from dynid.regression.known import KnownValues
from dynid.threads import one_blas_thread

TIMES_MOTION_BAND = 2.5  # yardstick over the band with 99 % of the velocity's power: accelerations reach higher
LOWEST_YARDSTICK_HZ = 4.0  # lower bound for slow motion, because friction torques change faster than the motion
CANDIDATES_BY_YARDSTICK = (1.0, 2.0, 4.0)  # beyond four times the reference frequency a cut-off only adds noise
BELOW_YARDSTICK = 0.5  # lower candidate, relative to the reference frequency, if noise reaches down to it
LEAST_TIMES_MOTION_BAND = 1.77  # any candidate over the band: a filter of fourth order then keeps 99 % of motion
NEGLIGIBLE_ERROR = 0.005  # of the torques: smaller errors do not matter
SHARE_OF_RATE = 0.125  # highest candidate: beyond it differences of samples are no derivatives
LARGEST_SHARE_OF_RATE = 0.25  # for logs of low rate, in which a smaller share would leave nothing to compare
EQUIVALENT_EXCESS = 0.02  # relative excess error that does not matter, whatever its significance
CLEAR_EXCESS = 0.1  # relative difference, besides two standard errors, beyond which higher cut-offs are not tried
PERIODS_OF_A_BLOCK = 2.0  # periods of the reference frequency per block, longer than the memory of a filter
MIN_BLOCKS_FOR_CHOICE = 3  # needed for a standard error of differences


@dataclass(frozen=True, eq=False)
class CutoffChoice:
    """A cut-off frequency and the evidence for it.

    Attributes:
        cutoff: chosen cut-off, Hz.
        settings: options of the preparation with this cut-off.
        spectrum: cut-off that the spectra of the positions alone suggest, Hz.
        band: bandwidth of the motion, the median over joints and logs, Hz.
        tried: candidates (k,), Hz, ascending; empty if nothing could be compared.
        errors: torque errors in cross-validation (k,), percent, weighted over joints; geometric mean over blocks.
        alike: mask of candidates that are as good as the best (k,).
        yardstick: reference frequency of the comparison, Hz; zero if nothing was compared.
        folds: compressed data at each cut-off.
        why_not: reason why nothing could be compared. The cut-off is then the lower of `spectrum` and the reference.
    """

    cutoff: float
    settings: Preparation
    spectrum: float
    band: float
    tried: Array
    errors: Array
    alike: Bools
    yardstick: float
    folds: CutoffFolds = field(repr=False)
    why_not: str = ""

    @property
    def step(self) -> str:
        """Sentence on the choice of the cut-off, for `Samples.steps`."""
        if not len(self.tried):
            return f"cut-off {self.cutoff:g} Hz chosen from the spectra of the positions, since {self.why_not}"
        errors = ", ".join(f"{error:.3g}" for error in self.errors)
        return (f"cut-off {self.cutoff:g} Hz chosen by cross-validation over blocks of time: at {_hertz(self.tried)} "
                f"the torque error is {errors} % on torques low-passed at {self.yardstick:g} Hz; "
                f"{_hertz(self.tried[self.alike])} {'are' if self.alike.sum() > 1 else 'is'} as good as the best; "
                f"the spectra of the positions alone suggest {self.spectrum:g} Hz")

    def prepare(self, recording: Recording) -> Samples:
        """Return the samples of a recording at the chosen cut-off; their steps state how it was chosen."""
        samples = prepare(recording, self.settings)
        return replace(samples, steps=(*samples.steps, self.step))

    @output_fields(cutoff=float | None, spectrum=float | None, motion_band=float | None, tried=list[float | None],
                   errors=list[float | None], alike=list[bool], yardstick=float | None, step=str)
    def to_dict(self) -> dict[str, Any]:
        return plain({"cutoff": self.cutoff, "spectrum": self.spectrum, "motion_band": self.band, "tried": self.tried,
                      "errors": self.errors, "alike": self.alike, "yardstick": self.yardstick, "step": self.step})


@one_blas_thread()
def choose_cutoff(model: LinearModel, recordings: Recording | Sequence[Recording], settings: Preparation | None = None,
                  *, known: KnownValues | None = None) -> CutoffChoice:
    """Return the cut-off for identifying a model from recordings, by cross-validation.

    Args:
        model: model to be identified.
        recordings: the logs.
        settings: options of the preparation; a cut-off in them is ignored.
        known: known standard parameters.
    """
    logs = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    chosen = (settings or Preparation()).with_changes(cutoff=None)
    folds = CutoffFolds.from_recordings(model, logs, chosen, known=known)
    band = float(median([log.band for log in folds.spectra]))
    spectrum = float(median([log.common for log in folds.spectra]))
    rate = min(log.grid.rate for log in folds.logs)
    yardstick = _yardstick(band, rate)
    try:
        tried, losses = _compared(folds, yardstick, LEAST_TIMES_MOTION_BAND * band, rate)
    except NotPossibleError as problem:
        cutoff = min(yardstick, spectrum) if folds.torques(min(yardstick, spectrum)) is not None else spectrum
        return CutoffChoice(cutoff, chosen.with_changes(cutoff=cutoff), spectrum, band, np.zeros(0), np.zeros(0),
                            np.zeros(0, dtype=bool), 0.0, folds, str(problem))
    if not np.isfinite(losses).all():
        raise NotPossibleError("no cut-off can be chosen: the torque errors are not finite at any candidate",
                               "check units and known values, or give the cut-off with --cutoff")
    alike = _alike(losses)
    ends = int(np.flatnonzero(alike)[[0, -1]].sum())
    cutoff = float(tried[ends // 2 if tried[0] < yardstick else (ends + 1) // 2])
    errors = 100.0 * np.sqrt(np.maximum(np.exp(2.0 * losses.mean(axis=1)) - NEGLIGIBLE_ERROR ** 2, 0.0))
    return CutoffChoice(cutoff, chosen.with_changes(cutoff=cutoff), spectrum, band, tried, errors, alike, yardstick,
                        folds)


def prepare_dataset(model: LinearModel, dataset: Dataset, preparation: Preparation | None = None, *,
                    known: KnownValues | None = None, progress: ProgressCallback = silent
                    ) -> tuple[Dataset, CutoffChoice | None]:
    """Return a dataset with logs prepared for a model, and the choice of the cut-off; None for a given cut-off."""
    chosen = (preparation or Preparation()).keeping_slow(complete(model).slow_joints, model.dof)
    if not chosen.chooses_cutoff:
        return dataset.prepared(chosen, progress=progress), None
    progress("choosing the cut-off by cross-validation")
    cutoff = choose_cutoff(model, dataset.recordings, chosen, known=known)
    return dataset.prepared(cutoff.settings, steps=(cutoff.step,), grids=cutoff.folds.logs, progress=progress), cutoff


def _yardstick(band: float, rate: float) -> float:
    """Return the frequency (Hz) at which cut-offs are compared, for the motion's band (Hz) and the logs' rate (Hz).

    It is a power of the square root of two in two digits, so that logs of the same machine share it.
    """
    wanted = min(max(TIMES_MOTION_BAND * band, LOWEST_YARDSTICK_HZ), LARGEST_SHARE_OF_RATE * rate)
    return float(f"{2.0 ** (0.5 * np.round(2.0 * np.log2(wanted))):.2g}")


def _compared(folds: CutoffFolds, yardstick: float, lowest: float, rate: float) -> tuple[Array, Array]:
    """Compare cut-offs from the reference frequency (Hz) to far below the rate (Hz), or down to the lowest (Hz).

    Returns:
        Cut-offs tried (k,), Hz; and losses (k, blocks), logarithms of the weighted error on each block relative to the
        mean torque of all blocks.
    """
    highest = max(SHARE_OF_RATE * rate, min(2.0 * yardstick, LARGEST_SHARE_OF_RATE * rate))
    candidates = [share * yardstick for share in CANDIDATES_BY_YARDSTICK
                  if share == 1.0 or share * yardstick <= highest]
    reference = folds.torques(yardstick)
    seconds = sum(len(log.grid.q) / log.grid.rate for log in folds.logs)
    if reference is None or seconds * yardstick < PERIODS_OF_A_BLOCK * len(reference.blocks):
        raise NotPossibleError("the log is too short or its rate too low to try several cut-off frequencies")
    blocks = [b for b, block in enumerate(reference.blocks) if block.rows]
    if len(blocks) < MIN_BLOCKS_FOR_CHOICE:
        raise NotPossibleError("there are too few blocks of time for cross-validation")
    squares = joint_weights(reference) ** 2
    power = float(squares @ [factor.power for factor in reference.factors]) / len(reference.blocks) or 1.0
    found: dict[float, Array] = {}

    def tried(cutoff: float) -> None:
        fold = folds.at(cutoff)
        if fold is not None and len(fold.blocks) == len(reference.blocks):
            found[cutoff] = 0.5 * np.log(_left_out(fold, reference, blocks) @ squares / power + NEGLIGIBLE_ERROR ** 2)

    for cutoff in candidates:
        tried(cutoff)
        if _hopeless(np.array(list(found.values()))):
            break
    if len(found) == 2 and _hopeless(np.array(list(found.values()))) and BELOW_YARDSTICK * yardstick >= lowest:
        tried(BELOW_YARDSTICK * yardstick)
    if len(found) < 2:
        raise NotPossibleError("the log is too short or its rate too low to try several cut-off frequencies")
    return np.array(sorted(found)), np.array([found[cutoff] for cutoff in sorted(found)])


def _left_out(fold: Regression, reference: Regression, blocks: Sequence[int]) -> Array:
    """Return squared errors (blocks, dof) on the blocks of `reference`, by fits to `fold` without each block."""
    others = fold.stack_without_each(joint_weights(fold))
    return np.array([reference.only(b).misfits(solve_values(fold, others[b])) for b in blocks])


def _excess(losses: Array) -> tuple[int, Array, Array]:
    """Return the index of the best cut-off, and the mean excess loss (k,) of each with its standard error (k,)."""
    best = int(np.argmin(losses.mean(axis=1)))
    differences = losses - losses[best]
    return best, differences.mean(axis=1), differences.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])


def _alike(losses: Array) -> Bools:
    """Return the mask (k,) of cut-offs considered equal, including all between the lowest and highest of them."""
    _, excess, error = _excess(losses)
    near = np.flatnonzero(excess <= np.maximum(error, np.log1p(EQUIVALENT_EXCESS)))
    found = np.zeros(len(losses), dtype=bool)
    found[near[0]:near[-1] + 1] = True  # a candidate between two equally good ones is equally good
    return found


def _hopeless(losses: Array) -> bool:
    """Return whether the last cut-off is clearly worse than a lower one, so that higher ones need not be tried."""
    if not len(losses):
        return False
    best, excess, error = _excess(losses)
    return best < len(losses) - 1 and bool(excess[-1] > max(2.0 * error[-1], np.log1p(CLEAR_EXCESS)))


def _hertz(cutoffs: Sequence[float] | Array) -> str:
    words = [f"{cutoff:g}" for cutoff in cutoffs]
    return f"{', '.join(words[:-1])} and {words[-1]} Hz" if len(words) > 1 else f"{words[0]} Hz"
