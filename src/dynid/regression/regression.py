"""Compressed data of a model, which can be added, divided into blocks, and combined with known values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, load_arrays, save_arrays
from dynid.errors import ModelError, RecordingError
from dynid.files import write_whole
from dynid.model import LinearModel
from dynid.order_statistics import distinct
from dynid.regression.base import BaseParameters
from dynid.regression.factor import Factor, Stacked, add_factors, sum_factors, sums_without_each, triangular
from dynid.regression.known import Known, Prior, check_known, known_parameters


@dataclass(frozen=True)
class Span:
    """An interval of one log: its source, start and stop (s), and the number of the log."""

    source: str
    start: float
    stop: float
    log: int = 0

    def __str__(self) -> str:
        return f"{self.source}, {self.start:.4g} to {self.stop:.4g} s"


@dataclass(frozen=True, eq=False)
class Block:
    """Factors of each joint for one or several joined intervals of time."""

    spans: tuple[Span, ...]
    factors: tuple[Factor, ...]

    def __add__(self, other: Block) -> Block:
        """Return the block with the data of both blocks; consecutive intervals of one log become one."""
        return Block(_joined_spans(self.spans, other.spans), sum_factors([self.factors, other.factors]))

    @property
    def rows(self) -> int:
        """Number of equations of all joints."""
        return sum(factor.rows for factor in self.factors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.spans))


@dataclass(frozen=True, eq=False)
class Regression:
    """Compressed data on a model's base parameters. Regressions of the same model can be added.

    Attributes:
        factors: one per joint.
        blocks: factors of several intervals of time, in the order of the data; their sum is `factors`.
        joints: names of the equations.
        sources: names of the logs.
        prior: prior on base parameters with its standard deviation, or None.
    """

    base: BaseParameters
    factors: tuple[Factor, ...]
    blocks: tuple[Block, ...]
    joints: tuple[str, ...]
    sources: tuple[str, ...] = ()
    prior: Prior | None = None

    @staticmethod
    def from_blocks(base: BaseParameters, blocks: Sequence[Block], joints: tuple[str, ...],
                    sources: tuple[str, ...] = ()) -> Regression:
        """Return the regression of some blocks, which are in temporal order."""
        return Regression(base, sum_factors([block.factors for block in blocks]), tuple(blocks), joints, sources)

    def __add__(self, other: Regression) -> Regression:
        """Return the regression of the data of both regressions; the blocks are concatenated."""
        if self.base.expressions != other.base.expressions or self.joints != other.joints:
            raise ModelError("regressions of different models cannot be added; compress all logs with the same model",
                             code="different-models")
        if self.base.known != other.base.known or known_parameters(self.prior) != known_parameters(other.prior):
            raise ModelError("these regressions have different known parameters; add them first, then use given()")
        first = 1 + max(span.log for block in self.blocks for span in block.spans)
        later = tuple(replace(block, spans=tuple(replace(span, log=span.log + first) for span in block.spans))
                      for block in other.blocks)
        return replace(self, factors=sum_factors([self.factors, other.factors]), blocks=self.blocks + later,
                       sources=tuple(dict.fromkeys(self.sources + other.sources)))

    def joined(self, most: int) -> Regression:
        """Return the same data in at most `most` blocks: the smallest neighbours are joined first, within one log if
        possible."""
        if most < 1:
            raise ModelError(f"a regression needs at least one block of time, got {most}")
        if most == 1:  # its sum is already computed
            spans = reduce(_joined_spans, (block.spans for block in self.blocks))
            return replace(self, blocks=(Block(spans, self.factors),))
        blocks = list(self.blocks)
        while len(blocks) > most:
            def size(k: int) -> tuple[bool, int]:
                differs = blocks[k].spans[-1].log != blocks[k + 1].spans[0].log
                return differs, blocks[k].rows + blocks[k + 1].rows
            k = min(range(len(blocks) - 1), key=size)
            blocks[k:k + 2] = [blocks[k] + blocks[k + 1]]
        return replace(self, blocks=tuple(blocks))

    def by_log(self) -> Regression:
        """Return the regression with one block per log."""
        blocks: list[Block] = []
        for block in self.blocks:
            if blocks and blocks[-1].spans[-1].log == block.spans[0].log:
                blocks[-1] = blocks[-1] + block
            else:
                blocks.append(block)
        return replace(self, blocks=tuple(blocks))

    @property
    def dof(self) -> int:
        return len(self.factors)

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of equations of each joint."""
        return tuple(factor.rows for factor in self.factors)

    def stack(self, weights: Sequence[float] | Array | None = None, *, prior: bool = True) -> Stacked:
        """Return all joints in one triangular factor, with joint j's equations multiplied by weights[j].

        `prior` adds the prior rows (see `prior_weight`) and the ridge penalty (see `ridge_penalty`).
        """
        scale = np.ones(self.dof) if weights is None else np.asarray(weights, dtype=float)
        tall = _weighted_rows(self.factors, scale, len(self.base))
        more = self._penalty_rows(weights) if prior else []
        return Stacked.from_matrix(np.concatenate([tall, *more]) if more else tall, sum(self.rows))

    def stack_without_each(self, weights: Array) -> list[Stacked]:
        """Return `stack(weights)` of all data except one block, for each block in turn.

        The joints of a block are stacked before blocks are added, which takes far fewer sums than `without_each`.
        """
        if len(self.blocks) < 2:
            raise ModelError("the regression has only one block of time, so no data remain without this block")
        each = [triangular(_weighted_rows(block.factors, weights, len(self.base))) for block in self.blocks]
        found, rows = [], sum(self.rows)
        for r, block in zip(sums_without_each(each, triangular), self.blocks, strict=True):
            more = self._penalty_rows(weights, r)
            whole = triangular(r, *more) if more else r
            found.append(Stacked(whole[:-1, :-1], whole[:-1, -1], float(whole[-1, -1] ** 2), rows - block.rows))
        return found

    def _penalty_rows(self, weights: Sequence[float] | Array | None, stacked: Array | None = None) -> list[Array]:
        """Return the rows (k, base + 1) of the ridge penalty and of the prior, if there are any.

        stacked: factor (base + 1, base + 1) of the equations, if they are not those of all data.
        """
        pulled, rows = np.flatnonzero(self.base.ridge), []
        if len(pulled):
            penalty = (self.ridge_penalty(weights) if stacked is None
                       else self.base.ridge * np.sum(stacked[:, :-1] ** 2, axis=0))
            rows.append(np.zeros((len(pulled), len(self.base) + 1)))
            rows[0][np.arange(len(pulled)), pulled] = np.sqrt(penalty[pulled])
        if self.prior is not None:
            rows.append(self.prior_weight(weights) * np.column_stack([self.prior.matrix, self.prior.values]))
        return rows

    def ridge_penalty(self, weights: Sequence[float] | Array | None) -> Array:
        """Return the ridge penalty on the square of each base parameter (base,): a share of its squared column norm."""
        squares = np.zeros(len(self.base))
        for j, factor in enumerate(self.factors):
            squares[factor.columns] += (1.0 if weights is None else weights[j] ** 2) * np.sum(
                factor.r[:, :-1] ** 2, axis=0)
        return self.base.ridge * squares

    def prior_weight(self, weights: Sequence[float] | Array | None) -> float:
        """Return the weight of prior rows, times their strength: one for weighted equations, otherwise the standard
        deviation of the noise of all joints."""
        strength = 1.0 if self.prior is None else self.prior.strength
        if weights is not None:
            return strength
        return strength * float(np.sqrt(self.stack(prior=False).rest / max(sum(self.rows) - len(self.base), 1)))

    def normal(self, weights: Sequence[float] | Array) -> Array:
        """Return the matrix X' W^2 X (base, base) of the normal equations with weights (dof,), without prior."""
        out = np.zeros((len(self.base), len(self.base)))
        for weight, factor in zip(weights, self.factors, strict=True):
            columns = factor.r[:, :-1]
            out[np.ix_(factor.columns, factor.columns)] += weight ** 2 * (columns.T @ columns)
        return out

    def misfits(self, beta: Array) -> Array:
        """Return the sum of squared residuals of each joint (dof,)."""
        return np.array([factor.misfit(beta) for factor in self.factors])

    def relative_errors(self, beta: Array) -> Array:
        """Return 100 |tau - tau_hat| / |tau| of each joint (dof,), percent; 0 for a joint without torque."""
        power = np.array([factor.power for factor in self.factors])
        return 100.0 * np.sqrt(np.where(power > 0, self.misfits(beta) / np.where(power > 0, power, 1.0), 0.0))

    def relative_error(self, beta: Array) -> float:
        """Return 100 |tau - tau_hat| / |tau| over all joints, percent."""
        power = sum(factor.power for factor in self.factors)
        return float(100.0 * np.sqrt(self.misfits(beta).sum() / power)) if power > 0 else 0.0

    def without(self, block: int) -> Regression:
        """Return the regression without one block of time."""
        kept = [one for k, one in enumerate(self.blocks) if k != block]
        if not kept:
            raise ModelError("the regression has only one block of time, so no data remain without this "
                             "block", code="no-block-left")
        return replace(self, factors=sum_factors([one.factors for one in kept]), blocks=tuple(kept))

    def without_each(self) -> tuple[Regression, ...]:
        """Return all data except one block, for each block in turn, with fewer sums than by `without`."""
        if len(self.blocks) < 2:
            raise ModelError("the regression has only one block of time, so no data remain without this block")
        return self._without_each

    @cached_property
    def _without_each(self) -> tuple[Regression, ...]:
        sums = sums_without_each([block.factors for block in self.blocks], add_factors)
        return tuple(replace(self, factors=factors, blocks=self.blocks[:k] + self.blocks[k + 1:])
                     for k, factors in enumerate(sums))

    def only(self, block: int) -> Regression:
        """Return the regression of one block of time only."""
        return replace(self, factors=self.blocks[block].factors, blocks=(self.blocks[block],))

    def select(self, kept: ArrayLike) -> Regression:
        """Return the same data on a model with only the base parameters of the indices `kept`."""
        kept = distinct(np.asarray(kept, dtype=np.int64))
        base = replace(self.base, independent=self.base.independent[kept], matrix=self.base.matrix[kept])
        prior = None if self.prior is None else replace(self.prior, matrix=self.prior.matrix[:, kept])
        return replace(self, base=base, prior=prior, factors=tuple(factor.select(kept) for factor in self.factors),
                       blocks=tuple(replace(block, factors=tuple(factor.select(kept) for factor in block.factors))
                                    for block in self.blocks))

    def given(self, known: Mapping[str, Known | float | tuple[float, float]]) -> Regression:
        """Return the same data with known standard parameters: {"M3": 1.2, "Ia1": (0.1, 0.01)}.

        A value alone is exact: the parameter is not estimated, its torque is subtracted, and base parameters are
        combinations of the others. A value with a standard deviation becomes a prior row if torques determine the
        parameter; consistent methods always use it.
        """
        facts = check_known(self.base, known)
        exact = {name: one.value for name, one in facts.items() if one.std == 0.0}
        base, matrix, shift = self.base.given(exact)
        blocks = tuple(replace(block, factors=tuple(factor.substituted(matrix, shift) for factor in block.factors))
                       for block in self.blocks)
        factors = tuple(factor.substituted(matrix, shift) for factor in self.factors)
        doubtful = {name: one for name, one in facts.items() if one.std > 0.0}
        return replace(self, base=base, factors=factors, blocks=blocks, prior=Prior.from_known(base, doubtful))

    def save(self, path: str | Path) -> None:
        """Write the regression to an .npz file atomically."""
        with write_whole(Path(path), "wb") as file:
            self.write(file)

    def write(self, file: IO[bytes], **more: Any) -> None:
        """Write the regression to an open .npz file, together with `more` arrays by name."""
        arrays: dict[str, Any] = {"independent": self.base.independent, "matrix": self.base.matrix,
                                  "known_names": np.array(list(self.base.known), dtype=str),
                                  "known_values": np.array(list(self.base.known.values())),
                                  "names": np.array(self.base.parameters.names), "joints": np.array(self.joints),
                                  "sources": np.array(self.sources)}
        if self.prior is not None:
            arrays["prior_names"] = np.array(list(self.prior.known))
            arrays["prior"] = np.array([(one.value, one.std) for one in self.prior.known.values()])
        each = [block.factors for block in self.blocks]
        arrays["rows"] = np.array([[factor.rows for factor in factors] for factors in each])
        arrays["power"] = np.array([[factor.power for factor in factors] for factors in each])
        spans = [(k, span) for k, block in enumerate(self.blocks) for span in block.spans]
        arrays["span_block"] = np.array([k for k, _ in spans])
        arrays["span_source"] = np.array([span.source for _, span in spans])
        arrays["span_times"] = np.array([(span.start, span.stop) for _, span in spans])
        arrays["span_log"] = np.array([span.log for _, span in spans])
        for j in range(self.dof):
            arrays[f"columns{j}"] = self.factors[j].columns
            arrays[f"r{j}"] = np.array([factors[j].r for factors in each])
        save_arrays(file, {**arrays, **more})

    @staticmethod
    def load(path: str | Path | bytes, model: LinearModel) -> Regression:
        """Return the regression of an .npz file, or its bytes, for the model it was compressed with."""
        try:
            arrays = load_arrays(path)
        except (OSError, KeyError, ValueError, EOFError, IndexError):
            arrays = {}  # as of an empty file
        return Regression.from_arrays(arrays, model, "the data of a worker" if isinstance(path, bytes) else path)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any], model: LinearModel, named: str | Path) -> Regression:
        """Return the regression from the arrays of a saved file. named: the file's name in messages."""
        try:
            names, joints = tuple(map(str, arrays["names"])), tuple(map(str, arrays["joints"]))
            known = dict(zip(map(str, arrays["known_names"]), map(float, arrays["known_values"]), strict=True))
            base = BaseParameters(model.parameters, np.asarray(arrays["independent"], dtype=np.int64),
                                  np.asarray(arrays["matrix"], dtype=float), known)
            blocks = [Block(_spans(arrays, k), tuple(
                Factor(arrays[f"columns{j}"], arrays[f"r{j}"][k], int(rows[j]), float(arrays["power"][k, j]))
                for j in range(len(joints)))) for k, rows in enumerate(arrays["rows"])]
            sources = tuple(map(str, arrays["sources"]))
            doubtful = {str(name): Known(float(value), float(std)) for name, (value, std)
                        in zip(arrays.get("prior_names", ()), arrays.get("prior", ()), strict=True)}
        except (OSError, KeyError, ValueError, EOFError, IndexError, TypeError, OverflowError):
            raise RecordingError(f"{named} is not a saved regression; give a file that `Regression.save` "
                                 "wrote", code="no-saved-regression") from None
        if names != model.parameters.names:
            raise ModelError(f"{named} was computed with another model: it has {len(names)} parameters, the given "
                             f"model has {len(model.parameters)}", code="other-model")
        fits = len(base) and blocks and all(
            factor.fits(len(base)) for block in blocks for factor in block.factors) and np.isfinite(base.matrix).all()
        if not fits or base.matrix.shape != (len(base), len(names)) or base.independent.max() >= len(names):
            raise RecordingError(f"{named} is not a saved regression: the shapes of its arrays do not match")
        found = Regression.from_blocks(base, blocks, joints, sources)
        return replace(found, prior=Prior.from_known(base, doubtful))


def _weighted_rows(factors: Sequence[Factor], weights: Array, base: int) -> Array:
    """Return the stacked triangular factors of all joints (rows, base + 1), multiplied by weights (dof,)."""
    tall = np.zeros((sum(len(factor.r) for factor in factors), base + 1))
    at = 0
    for weight, factor in zip(weights, factors, strict=True):
        rows = slice(at, at + len(factor.r))
        tall[rows, factor.columns] = weight * factor.r[:, :-1]
        tall[rows, base] = weight * factor.r[:, -1]
        at = rows.stop
    return tall


def _joined_spans(first: tuple[Span, ...], second: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the intervals of two blocks; adjacent intervals of the same log are merged."""
    if first[-1].log != second[0].log:
        return first + second
    return (*first[:-1], replace(first[-1], stop=second[0].stop), *second[1:])


def _spans(arrays: Mapping[str, Any], block: int) -> tuple[Span, ...]:
    return tuple(Span(str(arrays["span_source"][k]), float(arrays["span_times"][k, 0]),
                      float(arrays["span_times"][k, 1]), int(arrays["span_log"][k]))
                 for k in np.flatnonzero(arrays["span_block"] == block))
