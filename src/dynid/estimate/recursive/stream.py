"""Recursive methods by name, each of which estimates base parameters from a stream of samples.

riv (Ardiani, eq. 3.1) and civ (eq. 4.7-4.9) use the same sums Z'Y and Z'tau of rows [Z Y tau]. P of their equations
is not the covariance of the estimate; that is G Z' C Z G' with G = (Z'Y)^-1 and the covariance C of the noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import FEWEST_BLOCKS
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.instruments.equations import doubled_base, instrumented_entries, instrumented_layout
from dynid.estimate.linear import joint_weights
from dynid.estimate.recursive import kernels, result
from dynid.estimate.recursive.forgetting import DEFAULT, Forgetting, NoForgetting, parse_forgetting
from dynid.estimate.recursive.recursion import RING, ROWS_PER_PARAMETER, Recursion
from dynid.estimate.recursive.start import PriorLike, initial_noise, joined_priors, prior_rows
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.regression import BaseParameters, Factor, Regression
from dynid.regression.equations import Layout
from dynid.regression.known import Prior

LEAST_SQUARES, INSTRUMENTAL, SEQUENTIAL = ("rls", "cls", "s-rls"), ("riv", "civ"), ("s-rls-b", "line-by-line")
IN_TURN = ("s-rls", *SEQUENTIAL)  # methods that process one joint after another
METHODS = (*LEAST_SQUARES, *SEQUENTIAL, *INSTRUMENTAL, "mrls")
_FIRST_STD = 10.0  # default initial standard deviation (Ardiani, s. 3.3.6.2: 100 on the diagonal of P)


@dataclass(frozen=True, eq=False)
class StreamOptions:
    """Options of a recursive method on a stream of samples.

    Attributes:
        prior: prior information, see `PriorLike`.
        forgetting: form of forgetting, its name or a factor.
        noise: standard deviation of the torque noise, one number or one per joint, or "learn".
        robust: standard deviations beyond which a row is down-weighted, 0 for never.
        adds: smallest information gain of a valid row.
        wanted: for mrls, required standard error of a parameter, in its unit.
        limits: for mrls, limits of standard parameters by name.
        known: prior of uncertain known values.
    """

    prior: PriorLike | None = None
    forgetting: Forgetting | str | float | None = DEFAULT
    noise: ArrayLike | str = "learn"
    robust: float = 0.0
    adds: float = 0.0
    wanted: float | None = None
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    known: Prior | None = None


class Stream:
    """A recursive method on a stream of samples: `add` samples, and query `values` or an `estimate` at any time."""

    def __init__(self, base: BaseParameters, layout_of: Any, joints: tuple[str, ...], method: str,
                 options: StreamOptions) -> None:
        if method not in METHODS:
            raise ModelError(f"there is no recursive method '{method}'; there are {', '.join(METHODS)}",
                             code="unknown-method")
        self.method, self.options = method, options
        self.base, self.prior = base, joined_priors(prior_rows(base, options.prior), options.known)
        self.layout: Layout = layout_of(self.base)
        plain = method in IN_TURN + INSTRUMENTAL and options.forgetting is DEFAULT
        forgetting = NoForgetting() if plain else parse_forgetting(options.forgetting)
        if method in IN_TURN and (forgetting.name != "none" or options.robust or options.adds):
            raise ModelError(f"method '{method}' processes one joint after another and has no forgetting, robust "
                             "weights or row selection; give forgetting=None", code="forgetting-not-supported")
        if method in INSTRUMENTAL and (forgetting.name not in ("none", "exponential", "start-up", "vector")
                                       or options.robust or options.adds):
            raise ModelError(f"method '{method}' supports only exponential, start-up, vector or no forgetting, without "
                             f"robust weights and row selection; got forgetting '{forgetting.name}'")
        self.initial = self._initial()
        rows = None if method in ("mrls", "line-by-line") else self.prior
        # Factors of single parameters transfer information between directions, so every direction needs a prior.
        if rows is None and (method == "s-rls-b" or forgetting.name == "vector"):
            rows = Prior(np.eye(len(self.base)) / _FIRST_STD, np.zeros(len(self.base)), {})
        layout = instrumented_layout(self.layout) if method in INSTRUMENTAL else self.layout
        self.recursion = Recursion(layout, joints, forgetting, prior=rows, robust=options.robust, adds=options.adds,
                                   outside=options.known if isinstance(options.prior, Estimate) else rows,
                                   noise=initial_noise(options.noise, options.prior, len(joints)),
                                   learn=isinstance(options.noise, str) and method not in INSTRUMENTAL)
        self._box = result.base_limits(self.base, options.limits) if options.limits else None
        self._own = self.initial.copy()  # values of s-rls-b
        self.joint_estimates = np.zeros((0, len(self.base)))  # of s-rls, (dof, base): after each joint's last samples

    def _initial(self) -> Array:
        """Return the initial values of the base parameters (base,): those of the prior, or zero."""
        if self.prior is None:
            return np.zeros(len(self.base))
        return np.asarray(np.linalg.lstsq(self.prior.matrix, self.prior.values, rcond=1e-12)[0], dtype=float)

    def add(self, entries: Array, keep: Bools, instruments: Array | None = None, history: Array | None = None) -> None:
        """Add equations (layout.rows, m), their mask (m, dof), and for instruments the regressor of another motion.

        history (m, base): receives the estimate after each sample; for s-rls, that after the whole block.
        """
        if self.method in INSTRUMENTAL:
            if instruments is None:
                raise ModelError(f"method '{self.method}' needs the reference motion of every sample in addition to "
                                 "the measured one", code="no-reference")
            entries = instrumented_entries(self.layout, instruments, entries)
        if self.method == "s-rls-b":
            add_own(self.recursion, np.ascontiguousarray(entries), keep, self._own)
        elif self.method == "s-rls":
            self.joint_estimates = add_in_turn(self.recursion, np.ascontiguousarray(entries), keep)
            if history is not None:
                history[:] = self.recursion.beta
        else:
            self.recursion.add(entries, keep, history)

    def assessment(self) -> result.Assessment:
        """Return which parameters method `mrls` identifies, and which keep their initial values."""
        stacked = self.recursion.live()
        return result.judge(stacked, self.initial, result.default_threshold(stacked, self.options.wanted), self._box)

    @property
    def values(self) -> Array:
        """Current estimate of the base parameters (base,)."""
        if self.method == "mrls":
            return self.assessment().values
        if self.method == "s-rls-b":
            return self._own.copy()
        if self.method == "line-by-line":
            return line_by_line(self.recursion.regression())
        if self.method in INSTRUMENTAL:
            self.recursion.solve()
        return self.recursion.beta.copy()

    def estimate(self) -> Estimate:
        """Return the current estimate with its covariance and diagnostics."""
        if self.method in INSTRUMENTAL:
            self._need_samples()
            return instrumental_estimate(self.recursion, self.method)
        self.recursion.settle_noise()
        if self.method == "mrls":
            return self._of_kept()
        found = result.recursive_estimate(self.recursion, self.method)
        if self.method not in SEQUENTIAL:
            return found
        # Standard errors are those of least squares, without errors of values that are treated as known.
        return self._with_values(found, self.values)

    def _with_values(self, found: Estimate, values: Array) -> Estimate:
        """Return the estimate with other values and the diagnostics of their fit."""
        return replace(found, values=values,
                       diagnostics=found.diagnostics.refitted(self.recursion.regression(), values))

    def _of_kept(self) -> Estimate:
        """Return the estimate of method `mrls`; parameters at their initial values have infinite standard errors."""
        self._need_samples()
        assessed = self.assessment()
        found = result.recursive_estimate(self.recursion, "mrls")
        kept = assessed.status == result.IDENTIFIED
        facts = {"status": assessed.status.tolist(), "rank": int(kept.sum())}
        found = self._with_values(found, assessed.values)
        return replace(found, identified=kept, diagnostics=found.diagnostics.with_facts(facts))

    def _need_samples(self) -> None:
        if self.recursion.done == 0:
            raise NotPossibleError("the data contain no samples; give at least one log with samples")

    # -- files -----------------------------------------------------------------------------------
    def arrays(self) -> dict[str, Any]:
        """Return the state as plain arrays for a file; `restore` reads them into a stream with the same options."""
        b = len(self.base)
        prior = Prior(np.zeros((0, b)), np.zeros(0), {}) if self.prior is None else self.prior
        return {**self.recursion.arrays(), "own": self._own, "initial": self.initial, "prior_matrix": prior.matrix,
                "prior_values": prior.values, "prior_names": np.array(list(prior.known), dtype=str),
                "prior_known": np.array([(one.value, one.std) for one in prior.known.values()]).reshape(-1, 2)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore the state of the stream from the arrays that `arrays` returned."""
        self._own, self.initial = np.array(arrays["own"]), np.array(arrays["initial"])
        self.recursion.restore(arrays)


def owners(base: BaseParameters) -> Ints:
    """Return the joint (from 0) of each base parameter (base,)."""
    return np.array([base.parameters.items[c].owner for c in base.independent], dtype=np.int64)


def add_in_turn(recursion: Recursion, entries: Array, keep: Bools) -> Array:
    """Add a block of samples by S-IDIM-RLS: all samples of the last joint, then those of the joint before it.

    Args:
        recursion: Without forgetting. Its joint weights, if they are to be estimated, are those of the first block, if
            this is long enough: a joint's rows need their weight before the rows of the next joint.
        entries: Rows (layout.rows, m).
        keep: Mask of valid rows (m, dof).

    Returns:
        Estimates (dof, base), one after the samples of each joint.
    """
    memory, first, place = recursion.memory, recursion.done == 0, recursion.done % RING
    memory.add(entries, keep)
    if first and recursion.learn:
        found = recursion.regression()
        if sum(found.rows) > ROWS_PER_PARAMETER * len(recursion.beta):
            recursion.scale, recursion.learn = joint_weights(found), False
    stages = np.empty((keep.shape[1], len(recursion.beta)))
    kernels.update_in_turn(recursion.padded, recursion.norms, recursion.beta, recursion.rows, recursion.space,
                           recursion.which, entries, keep, memory.columns, memory.starts, recursion.scale,
                           recursion.ring, place, stages)
    return stages


def add_own(recursion: Recursion, entries: Array, keep: Bools, beta: Array) -> None:
    """Add samples (layout.rows, m) by S-IDIM-RLS-B: beta (base,) is updated joint by joint, the triangular factor as in
    least squares. The prior must include every parameter."""
    b = len(beta)
    if np.any(np.diag(recursion.r)[:b] <= 0.0):
        raise ModelError("method 's-rls-b' needs a prior with a standard deviation for every base parameter")
    memory = recursion.memory
    kernels.update_own(recursion.padded, beta, recursion.rows, np.zeros(b), np.zeros(b), recursion.space,
                       recursion.which, entries, keep, memory.columns, memory.starts, recursion.scale,
                       owners(recursion.layout.base))
    memory.add(entries, keep)


def line_by_line(regression: Regression) -> Array:
    """Return base values (base,) by least squares of each joint's own parameters on its own rows (de Wit and Aubin
    1990). The order is from the last joint to the first, with later parameters taken as known."""
    beta, owner = np.zeros(len(regression.base)), owners(regression.base)
    for j in range(regression.dof - 1, -1, -1):
        factor = regression.factors[j]
        mine = owner[factor.columns] == j
        if not mine.any():
            continue
        matrix = factor.r[:, :-1]
        rest = factor.r[:, -1] - matrix[:, ~mine] @ beta[factor.columns[~mine]]
        size = np.linalg.norm(matrix[:, mine], axis=0)
        size = np.where(size > 0.0, size, 1.0)
        beta[factor.columns[mine]] = np.linalg.lstsq(matrix[:, mine] / size, rest, rcond=1e-9)[0] / size
    return beta


_LEAST_CORRELATION = 0.1  # smallest canonical correlation of instruments and regressor


def instrumental_estimate(recursion: Recursion, method: str) -> Estimate:
    """Return the current instrumental-variable estimate with its covariance; raise an error if the instruments are
    nearly uncorrelated with the regressor."""
    recursion.solve()
    b, base, beta = len(recursion.beta), recursion.layout.base, recursion.beta.copy()
    excited = np.diag(recursion.r)[:b] > 1e-8 * np.linalg.norm(recursion.r[:b, :b], axis=0)
    correlation = least_correlation(recursion.r, b, excited)
    if correlation < _LEAST_CORRELATION:
        raise NotPossibleError(f"a combination of regressor columns has a correlation of only {correlation:.2g} "
                               "between references and measured motion, so the references cannot be instruments",
                               "improve the tracking, filter the references by references = 'transfer', or use 'rls'",
                               "instruments-too-weak")
    doubled = recursion.memory.regression(doubled_base(base), recursion.joints)
    cross = recursion.r[:b, :b].T @ recursion.r[:b, b:2 * b]
    gain = np.asarray(np.linalg.pinv(cross, rcond=1e-12), dtype=float)
    score_covariance, cov_type, degrees_of_freedom = _score_covariance(doubled, recursion, beta, gain)
    plain = replace(doubled, base=base, factors=tuple(_without_instruments(f, b) for f in doubled.factors), blocks=())
    facts: dict[str, Any] = {"weights": recursion.scale.tolist(), "least_correlation": correlation,
                             **result.stream_facts(recursion)}
    known = OnDemand.known(Uncertainty(gain @ score_covariance @ gain.T, cov_type, degrees_of_freedom))
    return Estimate(method, recursion.layout.model, base, beta, excited, known,
                    diagnostics=Diagnostics.from_fit(plain, beta, rank=int(excited.sum()), **facts))


def least_correlation(r: Array, b: int, excited: Any) -> float:
    """Return the smallest canonical correlation between instruments and regressor in the excited columns."""
    y = r[:2 * b, b:2 * b][:, excited]
    size = np.linalg.norm(y, axis=0)
    if not np.all(size > 0.0):
        return 0.0
    q, _ = np.linalg.qr(y / size)
    z, _ = np.linalg.qr(np.vstack([r[:b, :b], np.zeros((b, b))])[:, excited])
    return float(np.linalg.svd(z.T @ q, compute_uv=False)[-1])


def _without_instruments(factor: Factor, b: int) -> Factor:
    """Return the triangular factor of the measured equations, without the columns of the instruments."""
    kept = np.flatnonzero(factor.columns >= b)
    return Factor(factor.columns[kept] - b, factor.r[:, np.append(kept, len(factor.columns))], factor.rows,
                  factor.power)


def _score_covariance(doubled: Regression, recursion: Recursion, beta: Array, gain: Array) -> tuple[Array, Any, float]:
    """Return the covariance Z' C Z (base, base) of the score by a jackknife over blocks, or for independent rows; also
    its type and its degrees of freedom."""
    b, blocks = len(beta), [block for block in doubled.blocks if block.rows]
    enough = len(blocks) >= FEWEST_BLOCKS
    score_covariance = np.zeros((b, b))
    for block in blocks:
        score, share = np.zeros(b), np.zeros((b, b))
        for weight, factor in zip(recursion.scale, block.factors, strict=True):
            half = len(factor.columns) // 2
            z, y, tau = weight * factor.r[:, :half], weight * factor.r[:, half:-1], weight * factor.r[:, -1]
            own, residual = factor.columns[:half], tau - y @ beta[factor.columns[:half]]
            score[own] += z.T @ residual
            share[np.ix_(own, own)] += z.T @ y if enough else z.T @ z * (residual @ residual) / max(factor.rows, 1)
        if enough:  # estimate without the block, to second order
            moved = score + share @ (gain @ score)
            score_covariance += np.outer(moved, moved) * (len(blocks) - 1) / len(blocks)
        else:
            score_covariance += share
    prior = recursion.prior
    if prior is not None:
        score_covariance += prior.matrix.T @ prior.matrix
    return score_covariance, "blocks" if enough else "independent", float(len(blocks) - 1) if enough else np.inf
