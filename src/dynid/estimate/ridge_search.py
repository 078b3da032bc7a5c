"""Search for the ridge penalties of friction terms by cross-validation, with fast solutions in a few columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate.columns_left_out import EXACT_SHARE, Worth, worth_of_gains
from dynid.estimate.coupling_choice import Coupling
from dynid.estimate.linear import joint_weights
from dynid.lapack import solve_positive, solve_triangular
from dynid.regression import Block, Regression
from dynid.regression.factor import triangular

RIDGES = (0.1, 0.01, 0.001)  # relative to a column's squared norm: three strengths, each ten times the previous one
# Standard errors by which a model must win over the usual one: without rotor inertia, since a motor has a rotor, and
# with richer friction, which is the best of many and may lose terms on single joints.
CLEAR_ERRORS = 2.0
STANDARD_ERRORS = 1.0  # by which a model with more kinds of terms must be better: the usual rule
SMALLEST_GAIN = 1e-3  # of the squared error in cross-validation: smaller changes do not matter
# Share of the squared torques that a richer model must gain: 0.2 % of the torque, half of what repeated motions of good
# machines differ by. Filters alone leave errors of this size at reversals, which a richer friction would fit.
IMMATERIAL_GAIN = 0.002 ** 2
CURVE, LOAD, DIFFERENCE, ROTOR = "curve", "load", "viscous-difference", "rotor"
GROUPS = (CURVE, LOAD, DIFFERENCE)
EXCLUDED_RIDGE = np.inf  # ridge of an excluded kind
SMALLEST_RIDGE = 1e-14  # relative to a column's squared norm, for columns that the data may not determine


@dataclass(frozen=True, eq=False)
class Part:
    """Normal equations of the data without one block of time, and squared errors on this block, by candidate columns.

    All other columns are eliminated.

    Attributes:
        normal, right: (k, k) and (k,), normal equations of the data without the block.
        squares: (k,), squared norm of each column before the elimination, the scale of its ridge.
        grams, sides, powers: G (dof, k, k), s (dof, k), p (dof,): squared errors x'Gx - 2 s'x + p on the block.
    """

    normal: Array
    right: Array
    squares: Array
    grams: Array
    sides: Array
    powers: Array

    @staticmethod
    def from_block(others: Regression, block: Block, weights: Array, columns: Ints) -> Part:
        """Return the `Part` of a block and of the data of all `others`; columns: indices of the candidate columns."""
        certain = np.setdiff1d(np.arange(len(others.base)), columns)
        stacked = others.stack(weights)
        squares = np.sum(stacked.r ** 2, axis=0)
        trace = np.diag(np.sqrt(SMALLEST_RIDGE * np.maximum(squares, np.finfo(float).tiny)))
        order, n = np.concatenate([certain, columns]), len(certain)
        r = triangular(np.column_stack([np.vstack([stacked.r, trace])[:, order],
                                        np.concatenate([stacked.rho, np.zeros(len(squares))])]))
        eliminated = solve_triangular(r[:n, :n], r[:n, n:])  # of the columns and of the torque
        grams, sides, powers = [], [], []
        for weight, factor in zip(weights, block.factors, strict=True):
            matrix = np.zeros((len(factor.r), len(others.base)))
            matrix[:, factor.columns] = weight * factor.r[:, :-1]
            error = matrix[:, columns] - matrix[:, certain] @ eliminated[:, :-1]
            left = weight * factor.r[:, -1] - matrix[:, certain] @ eliminated[:, -1]
            grams.append(error.T @ error)
            sides.append(error.T @ left)
            powers.append(left @ left)
        inner = r[n:-1, n:]
        return Part(inner[:, :-1].T @ inner[:, :-1], inner[:, :-1].T @ inner[:, -1], squares[columns],
                    np.array(grams), np.array(sides), np.array(powers))

    def values(self, ridge: Array) -> Array:
        """Return least-squares values (k,) of the candidate columns with ridges (k,); zero for an infinite ridge."""
        found = np.zeros(len(ridge))
        own = np.flatnonzero(np.isfinite(ridge) & (self.squares > 0))
        if len(own):
            penalty = np.maximum(ridge[own], SMALLEST_RIDGE) * self.squares[own]
            scale = 1.0 / np.sqrt(self.squares[own])
            normal = scale[:, None] * (self.normal[np.ix_(own, own)] + np.diag(penalty)) * scale
            found[own] = scale * solve_positive(normal, scale * self.right[own])
        return found

    def losses(self, ridge: Array) -> Array:
        """Return the weighted squared errors (dof,) on the excluded block of the fit with ridges (k,)."""
        x = self.values(ridge)
        return np.asarray(self.powers - 2.0 * self.sides @ x + (self.grams @ x) @ x)


def _exceeds(gains: Array, errors: float) -> bool:
    """Return whether the mean of logarithmic error ratios (blocks,) exceeds a number of its standard errors."""
    error = errors * float(gains.std(ddof=1)) / np.sqrt(len(gains))
    return bool(gains.mean() > max(error, SMALLEST_GAIN))


def kinds_of(ridges: Mapping[str, float]) -> tuple[str, ...]:
    """Return the kinds of friction terms that are used, those with a finite ridge."""
    return tuple(kind for kind in GROUPS if ridges[kind] < EXCLUDED_RIDGE)


def plain_friction(couplings: Sequence[Coupling]) -> dict[str, float]:
    """Return the ridge of each kind of term for a robot with plain friction, rotor inertia and given couplings."""
    return {ROTOR: 0.0, **{name: 0.0 for coupling in couplings for name in coupling.names}}


@dataclass(frozen=True, eq=False)
class RidgeSearch:
    """Cross-validation of ridge penalties, one for each kind of friction term.

    Attributes:
        parts: normal equations of each block with rows.
        columns: indices of the candidate columns in the parts, by kind of term.
        places: indices of the candidate columns among the base parameters (k,).
        owners: joint of each candidate column, counted from 0 (k,).
        powers: weighted squared torques of all blocks (dof,).
        is_mixed: whether rows are combinations of joints; each joint then has an equal share of losses and powers.
        found: losses (blocks, dof) by ridges.
    """

    parts: tuple[Part, ...]
    columns: Mapping[str, Ints]
    places: Ints
    owners: Ints
    powers: Array
    is_mixed: bool = False
    found: dict[bytes, Array] = field(default_factory=dict)

    @staticmethod
    def from_regression(regression: Regression, groups: Mapping[str, Ints], is_mixed: bool = False) -> RidgeSearch:
        """Return the search on a compressed regression; groups: indices of its columns by kind of term."""
        columns = np.concatenate(list(groups.values()))
        extra = np.concatenate([own for name, own in groups.items() if name != ROTOR])
        weights = joint_weights(regression.select(np.setdiff1d(np.arange(len(regression.base)), extra)))
        parts = [Part.from_block(others, block, weights, columns)
                 for others, block in zip(regression.without_each(), regression.blocks, strict=True) if block.rows]
        ends = np.cumsum([0, *map(len, groups.values())])
        powers = np.array([weight ** 2 * factor.power
                           for weight, factor in zip(weights, regression.factors, strict=True)])
        if is_mixed:
            powers = np.full(len(powers), powers.mean())
        own = {name: np.arange(a, b) for name, a, b in zip(groups, ends, ends[1:], strict=False)}
        items, base = regression.base.parameters.items, regression.base.independent
        owners = np.array([items[base[c]].owner for c in columns], dtype=np.int64)
        return RidgeSearch(tuple(parts), own, columns, owners, powers, is_mixed)

    def ridge(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the ridge penalty (k,) of each candidate column; without: kinds and joints of excluded terms."""
        ridge = np.full(len(self.owners), EXCLUDED_RIDGE)
        for name, value in ridges.items():
            own = self.columns[name]
            ridge[own] = [EXCLUDED_RIDGE if (name, j) in without else value for j in self.owners[own]]
        return ridge

    def losses(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return weighted squared torque errors (blocks, dof) on each block of time, of fits to all other blocks.

        Args:
            ridges: ridge by kind of term.
            without: kinds and joints, counted from 0, that are excluded.
        """
        ridge = self.ridge(ridges, without)
        key = ridge.tobytes()
        if key not in self.found:
            found = np.array([part.losses(ridge) for part in self.parts])
            self.found[key] = np.repeat(found.mean(axis=1, keepdims=True), found.shape[1], axis=1
                                        ) if self.is_mixed else found
        return self.found[key]

    def dropped(self, ridges: Mapping[str, float], dof: int) -> set[tuple[str, int]]:
        """Return the (kind, joint) of friction differences between directions that do not clearly predict better.

        A difference between directions may improve the whole robot but not a joint whose residual has another cause.
        """
        exact = EXACT_SHARE * self.powers / len(self.parts) + np.finfo(float).tiny  # smaller errors count as zero
        removed = set[tuple[str, int]]()
        for j in range(dof if ridges[DIFFERENCE] < EXCLUDED_RIDGE else 0):
            losses = (self.losses(ridges, without)[:, j] for without in ({*removed, (DIFFERENCE, j)}, removed))
            without, now = (np.log(np.maximum(loss, 0.0) + exact[j]) for loss in losses)
            gains = without - now
            if gains.sum() <= STANDARD_ERRORS * gains.std(ddof=1) * np.sqrt(len(gains)):
                removed.add((DIFFERENCE, j))
        return removed

    def fitted(self, regression: Regression, ridges: Mapping[str, float],
               without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the base parameters (base,) fitted to all data with ridge penalties; zero for excluded columns."""
        ridge = np.zeros(len(regression.base))
        ridge[self.places] = self.ridge(ridges, without)
        own = np.flatnonzero(np.isfinite(ridge))
        stacked = regression.stack(joint_weights(regression))
        size = np.linalg.norm(stacked.r, axis=0)[own]
        size[size == 0.0] = 1.0
        tall = np.vstack([stacked.r[:, own] / size, np.diag(np.sqrt(np.maximum(ridge[own], SMALLEST_RIDGE)))])
        values = np.zeros(len(ridge))
        values[own] = np.linalg.lstsq(tall, np.concatenate([stacked.rho, np.zeros(len(own))]), rcond=None)[0] / size
        return values

    def run(self, couplings: Sequence[Coupling] = ()) -> dict[str, float]:
        """Return the ridge of each kind of term, infinite for excluded ones, for a robot with given couplings.

        Every combination of ridges is compared with the best one. Of those that are not significantly or materially
        worse, one with the fewest kinds of terms is taken; if there are several, the best.
        """
        usual = plain_friction(couplings)
        tried = [{**usual, **dict(zip(GROUPS, some, strict=True))}
                 for some in product((EXCLUDED_RIDGE, *RIDGES), repeat=len(GROUPS))]
        logarithms = np.array([self._logarithms(ridges) for ridges in tried])  # (combinations, blocks)
        means, sums = logarithms.mean(axis=1), np.exp(logarithms).sum(axis=1)
        best = int(means.argmin())
        close = [k for k in range(len(tried)) if not (_exceeds(logarithms[k] - logarithms[best], STANDARD_ERRORS)
                                                      and sums[k] - sums[best] > IMMATERIAL_GAIN * self.powers.sum())]
        return self.with_rotor(tried[min(close, key=lambda k: (len(kinds_of(tried[k])), means[k]))])

    def with_rotor(self, ridges: Mapping[str, float]) -> dict[str, float]:
        """Return the ridges with rotor inertia, or without it if the model then clearly predicts better."""
        without = {**ridges, ROTOR: EXCLUDED_RIDGE}
        is_better = _exceeds(self._logarithms(ridges) - self._logarithms(without), CLEAR_ERRORS)
        return without if is_better else {**ridges, ROTOR: 0.0}

    def wins(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]]) -> bool:
        """Return whether friction with these ridges predicts clearly better than plain friction. without: kinds and
        joints, counted from 0, of excluded terms."""
        plain = {**ridges, **dict.fromkeys(GROUPS, EXCLUDED_RIDGE)}
        return _exceeds(self._logarithms(plain) - self._logarithms(ridges, without), CLEAR_ERRORS)

    def _logarithms(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the logarithm (blocks,) of the squared torque errors of all joints on each block of time."""
        exact = EXACT_SHARE * float(self.powers.sum()) / len(self.parts) + np.finfo(float).tiny
        return np.asarray(np.log(np.maximum(self.losses(ridges, without).sum(axis=1), 0.0) + exact))

    def values(self, ridges: Mapping[str, float], name: str, without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the values of the columns of one kind of term, averaged over fits without each block of time."""
        ridge = self.ridge(ridges, without)
        return np.asarray(np.mean([part.values(ridge) for part in self.parts], axis=0)[self.columns[name]])

    def worth(self, term: str, j: int, without: Mapping[str, float], with_: Mapping[str, float]) -> Worth:
        """Return the reduction of joint j's cross-validation error by a term, from ridges without and with it."""
        before, after = self.losses(without), self.losses(with_)
        return worth_of_gains(term, (before - after)[:, j], float(before[:, j].sum()), float(self.powers[j]))
