"""Errors of regularised estimates: of a nominal model, estimated from the data, and of ridge penalties toward zero.

The errors of a nominal body affect the whole body: it is scaled, sheared, shifted, or too heavy. Its pseudo-inertia P
is that of the true body under an affine map, with a first-order error A P + P A', A (4, 4) in units of the body's size.
Entries near zero, such as a product of inertia, thus have errors relative to the body and not to themselves. The shape
of each body, the masses of all bodies, and each kind of the other parameters have separate error magnitudes.

With s = X' W^2 (tau - X K nominal) the score of the nominal values, H = X' W^2 X and M its noise covariance,

    s ~ N(0, M + sum_g v_g (H K) D_g (H K)'),

D_g the covariance of group g for an error of one. The v_g are their posterior means given s, independent of the
estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate.linear import Solution
from dynid.findings import Note
from dynid.lapack import solve_triangular
from dynid.model import Parameters
from dynid.regression import BaseParameters, Regression
from dynid.robot import inertia as ten

_LENGTH_ERROR_OF_MASS_ERROR = 0.5  # relative error of lengths divided by that of masses
_ERROR_GRID = np.logspace(-3.0, 2.0, 101)  # candidate relative errors of nominal values
# weight of the mean of its class for a group, in parameters: large groups may differ, small ones hardly
_CLASS_MEAN_WEIGHT = 4.0
_ERROR_ITERATIONS = 3  # alternating estimates of the errors of all groups
_START_ERROR = 0.1  # initial relative error
_MAIN_SHARE = 0.5  # share of a parameter's variance
NOMINAL_ERROR_TOLERANCE = 1e-10
_MIN_DATA_SHARE = 1e-9  # smallest share of the information on a direction that comes from the data


@dataclass(frozen=True, eq=False)
class ErrorGroup:
    """Group of parameters with a common relative error.

    half (parameters, k): half half' is their covariance for a relative error of one. kind: groups of one kind have
    similar errors.
    """

    half: Array
    kind: str


@dataclass(frozen=True, eq=False)
class NominalErrors:
    """Estimated errors of nominal values by group of parameters: posterior mean squares (groups,) of relative errors,
    and likely relative errors (groups,) of each kind of group."""

    groups: tuple[ErrorGroup, ...]
    variances: Array
    shares: Array

    @staticmethod
    def from_score(groups: Sequence[ErrorGroup], effect: Array, score: Array, noise: Array) -> NominalErrors:
        """Return the errors from the score (b,) of the nominal values, the `effect` (b, parameters) of nominal errors
        on the score, and the covariance `noise` (b, b) of the score."""
        size = np.sqrt(np.maximum(np.diag(noise), 1e-300))
        noise = noise / np.outer(size, size) + NOMINAL_ERROR_TOLERANCE * len(size) * np.eye(len(size))
        halves = [(effect @ group.half) / size[:, None] for group in groups]
        kinds = [group.kind for group in groups]
        return NominalErrors(tuple(groups), *_variances(kinds, halves, score / size, noise))

    def covariance(self, penalty: Array) -> Array:
        """Return the covariance (b, b) of an estimate due to errors of the nominal values.

        penalty (b, parameters): sensitivity of the estimate to these errors.
        """
        found = np.zeros((len(penalty), len(penalty)))
        for v, group in zip(self.variances, self.groups, strict=True):
            through = penalty @ group.half
            found += v * (through @ through.T)
        return found

    def wrong_by(self, scale: Array) -> float:
        """Return the RMS of the likely errors of nominal values, relative to their scale (parameters,), or zero."""
        square, has_scale = np.zeros(len(scale)), scale > 0.0
        for share, group in zip(self.shares, self.groups, strict=True):
            square += share ** 2 * np.sum(group.half ** 2, axis=1)
        return float(np.sqrt(np.mean(square[has_scale] / scale[has_scale] ** 2))) if has_scale.any() else 0.0


def nominal_groups(parameters: Parameters, matrices: Mapping[str, Array], scale: Array) -> list[ErrorGroup]:
    """Return the groups of parameters with a common error.

    There is one group for the shape of each body, one for the masses of all bodies, and one for each symbol of the
    other parameters. matrices: nominal pseudo-inertia (4, 4) of each body. scale (parameters,): scales of the
    parameters. A body that is not physically consistent, or has no size, has errors of the scale of its parameters.
    """
    width, masses, found = len(parameters), [], []
    body = np.zeros(width, dtype=bool)
    for name, places in parameters.bodies.items():
        pseudo = matrices[name]
        if np.linalg.eigvalsh(pseudo)[0] < 0.0 or pseudo[3, 3] <= 0.0 or np.trace(pseudo[:3, :3]) <= 0.0:
            found.append(_by_scale(places, scale, "shape"))
        else:
            shape, mass = np.zeros((width, 12)), np.zeros(width)
            shape[places], mass[places] = _affine_moves(pseudo), ten.from_pseudo_inertia(pseudo)
            found.append(ErrorGroup(shape, "shape"))
            masses.append(mass)
        body[places] = True
    if masses:
        found.append(ErrorGroup(np.array(masses).T, "mass"))
    symbols = np.array([item.symbol for item in parameters])
    for symbol in dict.fromkeys(symbols[~body]):
        found.append(_by_scale(np.flatnonzero(~body & (symbols == symbol)), scale, "other"))
    return [group for group in found if np.any(group.half)]


def leaning(base: BaseParameters, by_nominal: Array, variance: Array, identified: Bools) -> tuple[Note, ...]:
    """Return a note on parameters whose variance (base,) is mostly the part `by_nominal` (base,) by nominal errors."""
    names = [name for name, part, whole, known in zip(base.names, by_nominal, variance, identified, strict=True)
             if known and part > _MAIN_SHARE * whole]
    return () if not names else (Note(
        "leans-on-nominal", f"the values of {', '.join(names)} come more from the nominal model than from the data; "
                            "their standard errors are valid only if the nominal model is as accurate for these "
                            "parameters as for the others"),)


def _by_scale(places: Ints, scale: Array, kind: str) -> ErrorGroup:
    half = np.zeros((len(scale), len(places)))
    half[places, np.arange(len(places))] = scale[places]
    return ErrorGroup(half, kind)


def _affine_moves(pseudo: Array) -> Array:
    """Return derivatives (10, 12) of a body's ten inertial parameters by the entries of an affine map of its mass."""
    size = np.sqrt(np.trace(pseudo[:3, :3]) / pseudo[3, 3])
    units = np.array([size, size, size, 1.0])
    moves = []
    for i in range(3):
        for k in range(4):
            turn = np.zeros((4, 4))
            turn[i, k] = _LENGTH_ERROR_OF_MASS_ERROR * units[i] / units[k]
            moves.append(ten.from_pseudo_inertia(turn @ pseudo + pseudo @ turn.T))
    return np.array(moves).T


def _variances(kinds: Sequence[str], halves: Sequence[Array], score: Array, noise: Array) -> tuple[Array, Array]:
    """Return the mean squared relative errors v_g (groups,) of nominal values, and the likely relative errors (groups,)
    of their kinds. Errors are estimated first for all groups of a kind together, then for each group."""
    # In units of unit noise, so that added variances keep the matrix positive definite.
    size, direction = np.linalg.eigh(noise)
    whiten = (direction / np.sqrt(np.maximum(size, 1e-14 * size[-1]))).T
    halves, score = [whiten @ half for half in halves], whiten @ score
    squares = np.array([half @ half.T for half in halves]).reshape(len(halves), len(score), len(score))
    variances, shares = np.full(len(halves), _START_ERROR ** 2), np.full(len(halves), _START_ERROR)

    def update(members: Bools, prior: Array) -> None:
        rest = np.eye(len(score)) + np.tensordot(np.where(members, 0.0, variances), squares, 1)
        own = np.hstack([half for half, inside in zip(halves, members, strict=True) if inside])
        weight = _weights(own, score, rest, prior)
        variances[members] = np.sum(weight * _ERROR_GRID ** 2)
        shares[members] = np.exp(np.sum(weight * np.log(_ERROR_GRID)))

    for _ in range(_ERROR_ITERATIONS):
        for kind in dict.fromkeys(kinds):
            # Uninformative prior over the candidates, up to a useless nominal model.
            update(np.array([one == kind for one in kinds]), 1.0 / (1.0 + _ERROR_GRID ** 2) ** 2)
    common, likely = variances.copy(), shares.copy()
    for _ in range(_ERROR_ITERATIONS):
        for g, center in enumerate(common):
            # Scaled inverse chi-square prior about the kind's error: a group may be much worse, but hardly much better.
            share = _ERROR_GRID ** 2 / center
            update(np.arange(len(halves)) == g,
                   share ** (-0.5 * _CLASS_MEAN_WEIGHT) * np.exp(-0.5 * _CLASS_MEAN_WEIGHT / share))
    return variances, likely


def _weights(half: Array, score: Array, rest: Array, prior: Array) -> Array:
    """Return posterior probabilities (grid,) of relative errors w, for a score (b,) ~ N(0, rest + w^2 half half')."""
    whitened = _whitened(rest, np.column_stack([half, score]))
    left, singular = _left_singular(whitened[:, :-1])
    seen = (left.T @ whitened[:, -1]) ** 2
    spread = 1.0 + np.outer(_ERROR_GRID ** 2, singular ** 2)
    evidence = np.log(np.maximum(prior, 1e-300)) - 0.5 * np.sum(np.log(spread) + seen / spread, axis=1)
    weight = np.exp(evidence - evidence.max())
    return weight / weight.sum()


def _left_singular(matrix: Array) -> tuple[Array, Array]:
    """Return left singular vectors (b, n) and singular values (n,) of a matrix (b, k)."""
    try:
        left, singular, _ = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:  # the default algorithm does not converge for some matrices; QR iteration does
        from scipy.linalg import svd

        left, singular, _ = svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return left, singular


def _whitened(covariance: Array, columns: Array) -> Array:
    """Return columns (b, k) whitened by a covariance (b, b)."""
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:  # rounding hides variances that are much smaller than others
        size, direction = np.linalg.eigh(covariance)
        return np.asarray((direction / np.sqrt(np.maximum(size, 1e-14 * size[-1]))).T @ columns)
    return solve_triangular(factor, columns, lower=True)


def at_most_the_difference(by_penalty: Array, by_noise: Array, without: Array, difference: Array) -> Array:
    """Return the covariance (b, b) of an estimate due to its regularisation, with an upper bound from the data.

    The error of a regularised estimate is that of the unregularised one plus their difference, which is known.
    Regularisation is a contraction, so the two parts are not positively correlated. The mean square error is therefore
    at most the variance without regularisation plus the squared difference.

    Args:
        by_penalty: covariance by estimated errors of the target values of the regularisation (b, b).
        by_noise: covariance of the regularised estimate by noise (b, b).
        without: covariance without regularisation (b, b).
        difference: regularised minus unregularised estimate (b,).
    """
    most = np.maximum(np.diag(without) + difference ** 2 - np.diag(by_noise), 0.0)
    own = np.diag(by_penalty)
    share = np.sqrt(np.where(own > most, most, 1.0) / np.where(own > most, own, 1.0))
    return by_penalty * np.outer(share, share)


def penalty_noise_matrix(regression: Regression, solution: Solution, weights: Array | None,
                         score_covariance: Array) -> Array:
    """Return the squared error of the estimate by ridge penalties, expressed as noise of the equations (base, base).

    The error of each penalised value is estimated from all penalised values of its joint and unit. For an offset, the
    error is as large as Coulomb friction, because a joint that does not reverse determines only their sum. An
    undetermined value is small only because of its penalty, so its error is at least that of the joint in which the
    same symbol has the largest torque. The errors of bodies and rotors are at most those that the estimate without
    penalties allows (`at_most_the_difference`). Those of friction are not limited, because its terms are approximate.

    Args:
        regression: the equations.
        solution: solution of the equations, with penalties.
        weights: weights of the joints (dof,), or None.
        score_covariance: noise covariance of the equations of the data (base, base).
    """
    base, items, known = regression.base, regression.base.parameters.items, solution.excited
    leads = [items[c] for c in base.independent]
    penalised, size = np.flatnonzero(base.ridge > 0), np.zeros(0)
    for c in penalised:
        divided = [leads[c].owner == item.owner and base.units[c] == unit
                   and (ridge > 0 or (leads[c].kind.group == "offset" and item.kind.group == "friction"))
                   for item, unit, ridge in zip(leads, base.units, base.ridge, strict=True)]
        size = np.append(size, np.sum(np.abs(solution.beta[divided])))
    penalty = regression.ridge_penalty(weights)
    norm = np.sqrt(penalty[penalised] / base.ridge[penalised])
    symbols = np.array([leads[c].symbol for c in penalised])
    for symbol in dict.fromkeys(symbols):
        same = (symbols == symbol) & (norm > 0.0)
        torque = np.max(np.abs(solution.beta[penalised[same]]) * norm[same], initial=0.0)
        size[same] = np.maximum(size[same], torque / norm[same])
    error = np.zeros(len(base))
    error[penalised] = penalty[penalised] * size
    # With penalised normal equations scaled to the identity, the penalties are a part g, and the data are 1 - g.
    share, turn = np.linalg.eigh(solution.half.T @ (penalty[known, None] * solution.half))
    open_half = (solution.half @ turn) / np.sqrt(np.maximum(1.0 - share, _MIN_DATA_SHARE))
    without = open_half @ open_half.T
    inverse, own = solution.inverse[np.ix_(known, known)], score_covariance[np.ix_(known, known)]
    is_rigid = np.array([item.kind.group in ("body", "rotor") for item in leads])[known]
    by_penalty = at_most_the_difference(
        (inverse * error[known] ** 2) @ inverse, inverse @ own @ inverse, without @ own @ without,
        np.where(is_rigid, without @ (penalty[known] * solution.beta[known]), np.inf))
    normal, found = np.linalg.pinv(inverse, hermitian=True, rcond=1e-15), np.zeros_like(score_covariance)
    found[np.ix_(known, known)] = normal @ by_penalty @ normal
    return found
