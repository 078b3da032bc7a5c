"""Regression: logs compressed to triangular factors, which can be added, split by time, and given known values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, save_arrays
from dynid.errors import ModelError, RecordingError
from dynid.files import load_arrays, write_whole
from dynid.model import LinearModel
from dynid.order_statistics import distinct
from dynid.regression.base import BaseParameters
from dynid.regression.factor import Factor, Stacked, sum_factors, sums_without_each, triangular, weighted_rows
from dynid.regression.known import Known, Prior, exact_and_uncertain, known_parameters


@dataclass(frozen=True)
class Span:
    """An interval of time of one log: name of the log, start and stop (s), and index of the log, from 0."""

    source: str
    start: float
    stop: float
    log: int = 0

    def __str__(self) -> str:
        return f"{self.source}, {self.start:.4g} to {self.stop:.4g} s"


@dataclass(frozen=True, eq=False)
class Block:
    """A block of time: one or several intervals of the logs, and the triangular factor of each joint's rows in them."""

    spans: tuple[Span, ...]
    factors: tuple[Factor, ...]

    def __add__(self, other: Block) -> Block:
        """Return one block with the data of two blocks; adjacent intervals of one log are merged."""
        return Block(_joined_spans(self.spans, other.spans), sum_factors([self.factors, other.factors]))

    @property
    def rows(self) -> int:
        """Number of equations of all joints in this block of time."""
        return sum(factor.rows for factor in self.factors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.spans))


@dataclass(frozen=True, eq=False)
class Regression:
    """Least-squares equations of logs, compressed to triangular factors. Regressions of one model can be added.

    Attributes:
        base: base parameters of the model, the unknowns of the equations.
        factors: triangular factor of all data of each joint.
        blocks: the same data divided into blocks of time, in the order of the logs.
        joints: names of the joints, one per factor.
        sources: names of the logs.
        prior: prior information on the base parameters, or None.
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
        """Return the regression whose data are some blocks of time, in temporal order."""
        return Regression(base, sum_factors([block.factors for block in blocks]), tuple(blocks), joints, sources)

    def __add__(self, other: Regression) -> Regression:
        """Return one regression with the data of two regressions of the same model; their blocks are concatenated."""
        if self.base.expressions != other.base.expressions or self.joints != other.joints:
            raise ModelError("regressions of different models cannot be added; compress all logs with the same model",
                             code="different-models")
        if self.base.known != other.base.known or known_parameters(self.prior) != known_parameters(other.prior):
            raise ModelError("regressions with different known values cannot be added; add first, then call `given`")
        first = 1 + max(span.log for block in self.blocks for span in block.spans)
        later = tuple(replace(block, spans=tuple(replace(span, log=span.log + first) for span in block.spans))
                      for block in other.blocks)
        return replace(self, factors=sum_factors([self.factors, other.factors]), blocks=self.blocks + later,
                       sources=tuple(dict.fromkeys(self.sources + other.sources)))

    def joined(self, most: int) -> Regression:
        """Return the regression in at most `most` blocks; small neighbours are merged first, if possible within
        logs."""
        if most < 1:
            raise ModelError(f"a regression needs at least one block of time, got {most}")
        if most == 1:  # the sum of all blocks is already computed
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
        """Number of equations of each joint (dof,)."""
        return tuple(factor.rows for factor in self.factors)

    def stack(self, weights: Sequence[float] | Array | None = None, *, prior: bool = True) -> Stacked:
        """Return the equations of all joints as one least-squares problem, those of joint j multiplied by weights[j].

        prior: whether to add the prior rows (see `prior_weight`) and the ridge penalty (see `ridge_penalty`).
        """
        scale = np.ones(self.dof) if weights is None else np.asarray(weights, dtype=float)
        tall = weighted_rows(self.factors, scale, len(self.base))
        more = self._penalty_rows(weights) if prior else []
        return Stacked.from_matrix(np.concatenate([tall, *more]) if more else tall, sum(self.rows))

    def stack_without_each(self, weights: Array) -> list[Stacked]:
        """Return `stack(weights)` of all data except one block, for each block in turn.

        The joints of a block are stacked before blocks are added, which takes far fewer sums than `without_each`.
        """
        self._need_two_blocks()
        each = [triangular(weighted_rows(block.factors, weights, len(self.base))) for block in self.blocks]
        found, rows = [], sum(self.rows)
        for r, block in zip(sums_without_each(each, triangular), self.blocks, strict=True):
            more = self._penalty_rows(weights, r)
            found.append(Stacked.from_triangular(triangular(r, *more) if more else r, rows - block.rows))
        return found

    def _penalty_rows(self, weights: Sequence[float] | Array | None, stacked: Array | None = None) -> list[Array]:
        """Return additional equations (k, base + 1) of the ridge penalty and of the prior, if there are any.

        stacked: triangular factor (base + 1, base + 1) of the weighted equations. Default: that of all data.
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
        """Return the factor on prior rows: their strength, times the noise standard deviation of all joints if the
        equations are not weighted (weights=None)."""
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
        """Return the sum of squared residuals of each joint (dof,) for base values beta (base,)."""
        return np.array([factor.misfit(beta) for factor in self.factors])

    def residual_std(self, beta: Array) -> Array:
        """Return the RMS residual of each joint (dof,) for base values beta (base,), N m or N; 0 without equations."""
        return np.asarray(np.sqrt(self.misfits(beta) / np.maximum(np.array(self.rows, dtype=float), 1.0)))

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
        self._need_two_blocks()
        kept = self.blocks[:block] + self.blocks[block + 1:]
        return replace(self, factors=sum_factors([other.factors for other in kept]), blocks=kept)

    def _need_two_blocks(self) -> None:
        if len(self.blocks) < 2:
            raise ModelError("the regression has only one block of time, so no data remain without this block",
                             code="no-block-left")

    def without_each(self) -> tuple[Regression, ...]:
        """Return the regression without one block of time, for each block in turn, with fewer sums than `without`."""
        self._need_two_blocks()
        return self._without_each

    @cached_property
    def _without_each(self) -> tuple[Regression, ...]:
        sums = sums_without_each([block.factors for block in self.blocks], lambda *pair: sum_factors(pair))
        return tuple(replace(self, factors=factors, blocks=self.blocks[:k] + self.blocks[k + 1:])
                     for k, factors in enumerate(sums))

    def only(self, block: int) -> Regression:
        """Return the regression of one block of time only."""
        return replace(self, factors=self.blocks[block].factors, blocks=(self.blocks[block],))

    def select(self, kept: ArrayLike) -> Regression:
        """Return the regression with only the base parameters of the indices `kept`."""
        kept = distinct(np.asarray(kept, dtype=np.int64))
        base = replace(self.base, independent=self.base.independent[kept], matrix=self.base.matrix[kept])
        prior = None if self.prior is None else replace(self.prior, matrix=self.prior.matrix[:, kept])
        return self._on_other_base(base, lambda factor: factor.select(kept), prior)

    def given(self, known: Mapping[str, Known | float | tuple[float, float]]) -> Regression:
        """Return the regression with known standard parameters: {"M3": 1.2, "Ia1": (0.1, 0.01)}.

        A value alone is exact: the parameter is not estimated, its torque is subtracted, and base parameters are
        combinations of the others. A value with a standard deviation becomes a prior row if torques determine the
        parameter; consistent methods always use it.
        """
        exact, uncertain = exact_and_uncertain(self.base, known)
        for name in known:
            if name in known_parameters(self.prior):
                raise ModelError(f"parameter '{name}' is given as known twice; give it once", code="known-twice")
        base, matrix, shift = self.base.given(exact)
        prior = Prior.from_known(base, uncertain)
        if self.prior is not None:
            before = self.prior.given(exact, self.base, matrix, shift)
            prior = before if prior is None else before.and_also(prior)
        return self._on_other_base(base, lambda factor: factor.substituted(matrix, shift), prior)

    def _on_other_base(self, base: BaseParameters, change: Callable[[Factor], Factor],
                       prior: Prior | None) -> Regression:
        """Return the regression on other base parameters; change: function that converts each triangular factor."""
        blocks = tuple(replace(block, factors=tuple(map(change, block.factors))) for block in self.blocks)
        return replace(self, base=base, factors=tuple(map(change, self.factors)), blocks=blocks, prior=prior)

    def save(self, path: str | Path) -> None:
        """Write the regression to an .npz file atomically."""
        with write_whole(Path(path), "wb") as file:
            self.write(file)

    def write(self, file: IO[bytes], **more: Any) -> None:
        """Write the regression to an open .npz file, together with `more` arrays by name."""
        save_arrays(file, {**self.arrays(), **more})

    def arrays(self) -> dict[str, Any]:
        """Return the regression as plain arrays for a file; `from_arrays` reads them."""
        arrays: dict[str, Any] = {"independent": self.base.independent, "matrix": self.base.matrix,
                                  "known_names": np.array(list(self.base.known), dtype=str),
                                  "known_values": np.array(list(self.base.known.values())),
                                  "names": np.array(self.base.parameters.names), "joints": np.array(self.joints),
                                  "sources": np.array(self.sources)}
        if self.prior is not None:
            arrays["prior_names"] = np.array(list(self.prior.known))
            arrays["prior"] = np.array([(known.value, known.std) for known in self.prior.known.values()]).reshape(-1, 2)
            arrays |= {"prior_matrix": self.prior.matrix, "prior_values": self.prior.values,
                       "prior_strength": np.array(self.prior.strength)}
            if self.prior.facts is not None:
                arrays["fact_matrix"], arrays["fact_values"] = self.prior.facts
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
        return arrays

    @staticmethod
    def load(path: str | Path | bytes, model: LinearModel) -> Regression:
        """Read a regression from an .npz file, or from its bytes; model: model with which the data were compressed."""
        try:
            arrays = load_arrays(path)
        except (OSError, KeyError, ValueError, EOFError, IndexError):
            arrays = {}  # as of an empty file
        return Regression.from_arrays(arrays, model, "the data of a worker" if isinstance(path, bytes) else path)

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any], model: LinearModel, named: str | Path) -> Regression:
        """Return the regression from the arrays of a saved file. named: name of the file in error messages."""
        try:
            names, joints = tuple(map(str, arrays["names"])), tuple(map(str, arrays["joints"]))
            known = dict(zip(map(str, arrays["known_names"]), map(float, arrays["known_values"]), strict=True))
            base = BaseParameters(model.parameters, np.asarray(arrays["independent"], dtype=np.int64),
                                  np.asarray(arrays["matrix"], dtype=float), known)
            blocks = [Block(_spans(arrays, k), tuple(
                Factor(arrays[f"columns{j}"], arrays[f"r{j}"][k], int(rows[j]), float(arrays["power"][k, j]))
                for j in range(len(joints)))) for k, rows in enumerate(arrays["rows"])]
            sources = tuple(map(str, arrays["sources"]))
            uncertain = {str(name): Known(float(value), float(std)) for name, (value, std)
                         in zip(arrays.get("prior_names", ()), arrays.get("prior", ()), strict=True)}
            prior = None if "prior_names" not in arrays else Prior(
                np.asarray(arrays["prior_matrix"], dtype=float), np.asarray(arrays["prior_values"], dtype=float),
                uncertain, float(arrays["prior_strength"]),
                (arrays["fact_matrix"], arrays["fact_values"]) if "fact_matrix" in arrays else None)
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
        return replace(Regression.from_blocks(base, blocks, joints, sources), prior=prior)


def _joined_spans(first: tuple[Span, ...], second: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the intervals of two blocks; adjacent intervals of the same log are merged."""
    if first[-1].log != second[0].log:
        return first + second
    return (*first[:-1], replace(first[-1], stop=second[0].stop), *second[1:])


def _spans(arrays: Mapping[str, Any], block: int) -> tuple[Span, ...]:
    return tuple(Span(str(arrays["span_source"][k]), float(arrays["span_times"][k, 0]),
                      float(arrays["span_times"][k, 1]), int(arrays["span_log"][k]))
                 for k in np.flatnonzero(arrays["span_block"] == block))
