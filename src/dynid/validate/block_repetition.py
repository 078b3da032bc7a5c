"""Blocks of time that the rest of the data does not determine, so that cross-validation cannot test the model on them.

A walking robot may lift a foot once in a short log. Without that block, the other blocks leave some combination of
parameters nearly undetermined, and their prediction of the block is arbitrary, although all data together determine it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem
from dynid.findings import Finding
from dynid.quantities import percent_text
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.words import listed, sentence

# Expected prediction error of a block due to the uncertainty of parameters from the other blocks, in standard
# deviations of the noise: below one for blocks that repeat each other, tens for a block with a unique motion.
UNREPEATED_ERROR = 3.0
UNUSUAL_ERROR = 3.0  # a block whose error exceeds this multiple of the median error is examined


@dataclass(frozen=True, eq=False)
class UnrepeatedBlocks:
    """Blocks of a cross-validation that the others do not determine.

    Attributes:
        numbers: indices in `CrossValidation.blocks`, from 0.
        expected: (blocks,), expected error of each prediction by the uncertainty of the parameters alone, in standard
            deviations of the noise.
        error: mean error of the other blocks, percent.
    """

    numbers: tuple[int, ...]
    expected: tuple[float, ...]
    error: float


def unrepeated_blocks(problem: Problem, estimate: Estimate, cross: CrossValidation) -> UnrepeatedBlocks | None:
    """Return the blocks with unusual errors that the other blocks do not determine; None if there are none."""
    errors = np.where(np.isfinite(cross.errors), cross.errors, 0.0)
    unusual = np.flatnonzero(errors > UNUSUAL_ERROR * np.median(errors))
    regression = problem.regression
    if not len(unusual) or estimate.values.shape != (len(regression.base),):
        return None
    rows = np.maximum(np.array(regression.rows, dtype=float), 1.0)
    noise = np.sqrt(regression.misfits(estimate.values) / rows)
    weights = np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > 0.0)
    found = {}
    for number in map(int, unusual):
        block = cross.blocks[number]
        rest = regression.without(block).stack(weights).r
        own = regression.only(block).stack(weights, prior=False).r
        found[number] = _expected_error(rest, own) / np.sqrt(regression.blocks[block].rows)
    numbers = tuple(number for number, expected in found.items() if expected > UNREPEATED_ERROR)
    others = np.delete(cross.errors, numbers)
    if not numbers or len(others) < len(errors) / 2:
        return None
    return UnrepeatedBlocks(numbers, tuple(float(found[number]) for number in numbers), float(np.nanmean(others)))


def _expected_error(rest: Array, own: Array) -> float:
    """Return the expected prediction error |own rest^-1| for the triangular factors of a block (own) and of the other
    blocks (rest); infinite if rest is singular."""
    diagonal = np.abs(np.diag(rest))
    if diagonal.min() <= 1e-13 * diagonal.max():
        return float("inf")
    return float(np.linalg.norm(np.linalg.solve(rest.T, own.T)))


def unrepeated_finding(problem: Problem, cross: CrossValidation, found: UnrepeatedBlocks) -> Finding:
    """Return the finding on blocks that the others do not determine."""
    where = [cross.where[number] for number in found.numbers]
    spans = [span for number in found.numbers for span in problem.regression.blocks[cross.blocks[number]].spans]
    times = listed([f"{span.start:.3g} to {span.stop:.3g} s" for span in spans], 4)
    worst = float(np.nanmax(cross.errors[list(found.numbers)]))
    return Finding(
        "unrepeated-block", "not-excited", "warning", sentence(
            f"{listed(where, 4)} has motion or contacts that the rest of the log does not repeat: without it, the "
            f"parameters are so uncertain that its torques are predicted with an error of {worst:.0f} %. The model "
            f"from all data is not affected, and the error over the other blocks is {percent_text(found.error)}. "
            "Record a longer log in which each foot is lifted several times, or validate with another log: "
            "--validate LOG"),
        f"motion without repetition ({times})", logs=tuple(dict.fromkeys(span.source for span in spans)),
        evidence={"blocks": tuple(float(cross.blocks[number] + 1) for number in found.numbers),
                  "expected": found.expected, "error": found.error, "mean": cross.mean})
