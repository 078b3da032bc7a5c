"""Base parameters: the combinations of standard parameters that the torques determine, and their text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.following import random_postures
from dynid.errors import ModelError, NotPossibleError, require_type
from dynid.model import LinearModel, Model, Parameters, robot_model
from dynid.robot import Robot
from dynid.threads import one_blas_thread

# Regressor columns depend on geometry alone, so rounding and real effects differ clearly: the remainder of a dependent
# column is below 1e-12, while an offset of 0.1 mm on a metre leaves 1e-8.
_REGRESSOR_ACCURACY = 1e-16  # relative accuracy of a regressor
_LOOP_ACCURACY = 1e-13  # the same with dependent joints, solved by Newton's method
_RANK_TOLERANCE = 1e-9
_ZERO_COLUMN = 1e-12
_PRINTED_COEFFICIENT_ERROR = 1e-12  # relative error of a coefficient as text
_MOST_PARAMETERS = 2500  # half a minute and a gigabyte
_MOST_JOINTS = 128  # time grows with the third power, memory with the second: here seconds and half a gigabyte
_COMBINATION_TERM = re.compile(r"\s*([+-]?)\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)\s*\*?\s*)?([A-Za-z_][A-Za-z_0-9.]*)")


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters beta = matrix @ theta of standard parameters theta: the regressor Y satisfies Y theta = Y[:,
    independent] beta for every motion.

    Attributes:
        independent: indices of the independent columns (base,).
        matrix: (base, parameters), 1 at the independent column, and the coefficients of the columns grouped onto it.
        known: standard parameters with given values. They are in no combination, and their torque is added: Y theta =
            Y[:, independent] beta + Y theta_known.
    """

    parameters: Parameters
    independent: Ints
    matrix: Array
    known: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.independent)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each base parameter: its leading standard parameter, with an R if others are grouped onto it."""
        grouped = np.count_nonzero(self.matrix, axis=1) > 1
        return tuple(self.parameters.names[c] + ("R" if more else "")
                     for c, more in zip(self.independent, grouped, strict=True))

    @cached_property
    def units(self) -> tuple[str, ...]:
        return tuple(self.parameters.units[c] for c in self.independent)

    @cached_property
    def meanings(self) -> tuple[str, ...]:
        """Meaning of each base parameter: that of its leading standard parameter, and whether others are grouped."""
        grouped = np.count_nonzero(self.matrix, axis=1) > 1
        return tuple(self.parameters.items[c].meaning + (" (combined with others)" if more else "")
                     for c, more in zip(self.independent, grouped, strict=True))

    @property
    def ridge(self) -> Array:
        """Ridge penalty (base,) of each base parameter, relative to the squared norm of its regressor column."""
        return self.parameters.ridge[self.independent]

    @cached_property
    def never_negative(self) -> Bools:
        """Mask (base,) of the base parameters whose negative value is unphysical: sums of such parameters."""
        allowed = np.array([item.never_negative for item in self.parameters.items])
        return np.asarray(np.all((self.matrix > 0) & allowed | (self.matrix == 0), axis=1), dtype=np.bool_)

    @property
    def bounds(self) -> Array:
        """Lower and upper bounds (2, base); infinite for a combination of several standard parameters."""
        alone = np.count_nonzero(self.matrix, axis=1) == 1
        return np.where(alone, self.parameters.bounds[:, self.independent], [[-np.inf], [np.inf]])

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as text, the leading standard parameter first: 'ZZ1 + Ia1 + 0.25 M2'."""
        return tuple(self._expression(row, c) for row, c in zip(self.matrix, self.independent, strict=True))

    def _expression(self, row: Array, leading: int) -> str:
        text = self.parameters.names[leading]
        for c in np.flatnonzero(row):
            if c != leading:
                size = printed(abs(row[c]))
                text += f" {'-' if row[c] < 0 else '+'} {'' if size == '1' else size + ' '}{self.parameters.names[c]}"
        return text

    def coefficients(self) -> dict[str, dict[str, float]]:
        """Coefficients of standard parameters in each base parameter: {'ZZ1R': {'ZZ1': 1.0, 'M2': 0.25}}."""
        return {name: {self.parameters.names[c]: float(row[c]) for c in np.flatnonzero(row)}
                for name, row in zip(self.names, self.matrix, strict=True)}

    def reduce(self, theta: ArrayLike) -> Array:
        """Return the base values (base,) of a vector of standard parameters (parameters,)."""
        return self.matrix @ self.parameters.vector(theta)

    def expand(self, beta: ArrayLike) -> Array:
        """Return a vector of standard parameters (parameters,) with given base values (base,): those of the independent
        columns, known values, and zeros elsewhere."""
        beta = np.asarray(beta, dtype=float)
        if beta.shape != (len(self),):
            raise ModelError(f"there are {len(self)} base parameters, got values of shape {beta.shape}")
        theta = self.known_vector
        theta[self.independent] = beta
        return theta

    @property
    def known_vector(self) -> Array:
        """Vector of standard parameters (parameters,) with the known values, and zeros elsewhere."""
        theta = np.zeros(len(self.parameters))
        for name, value in self.known.items():
            theta[self.parameters.index(name)] = value
        return theta

    def given(self, known: Mapping[str, float]) -> tuple[BaseParameters, Array, Array]:
        """Return the base parameters gamma that remain if some standard parameters are known by name. Also return the
        matrix (base, remaining) and the shift (base,) of beta = matrix gamma + shift."""
        if not known:
            return self, np.eye(len(self)), np.zeros(len(self))
        places = [self.parameters.index(name) for name in known]
        shift = self.matrix[:, places] @ np.array(list(known.values()))
        free = self.matrix.copy()
        free[:, places] = 0.0
        # A leading parameter stays the leading one, unless it is known.
        order = [*self.independent, *np.setdiff1d(np.arange(len(self.parameters)), self.independent)]
        found = reduce_columns(free, self.parameters, [c for c in order if c not in places])
        base = replace(found, known={**self.known, **known})
        return base, self.matrix[:, base.independent], shift


def printed(coefficient: float) -> str:
    """Return a coefficient as text, with the fewest digits that keep a relative accuracy of 1e-12."""
    texts = (f"{coefficient:.{digits}g}" for digits in range(1, 18))
    return next(text for text in texts if abs(float(text) - coefficient) <= _PRINTED_COEFFICIENT_ERROR * coefficient)


def _shortest(numbers: Array, errors: Array) -> Array:
    """Return numbers rounded to the fewest digits that change each by at most its entry of `errors` (same shape)."""
    found = numbers.copy()
    for digits in range(15, 0, -1):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(np.where(numbers != 0, numbers, 1.0)))))
        rounded = np.round(numbers * scale) / scale
        found = np.where(np.abs(rounded - numbers) <= errors, rounded, found)
    return found


@one_blas_thread()
def base_parameters(model: LinearModel, priority: Sequence[str] | Sequence[int] | None = None, *,
                    seed: int = 0, unmeasured: Sequence[int] = (), by: Literal["qr", "svd"] = "qr",
                    ordered: bool = True) -> BaseParameters:
    """Return the base parameters of a model, found numerically (Ardiani, eq. 1.30-1.33; Sousa, s. 2.5.1).

    Columns of the regressor over random motions are taken in order. A column that depends on earlier ones is grouped
    onto them. In the order of the model, this groups later links onto earlier ones.

    Args:
        model: model whose parameters are grouped.
        priority: another order, as groups of kinds (see `Parameters.order`) or as a list of all columns.
        seed: seed of the random motions.
        unmeasured: joints, counted from 0, whose torques are not measured. Their equations are not used.
        by: "qr", column by column, or "svd", from the singular vectors of the null space (Gautier 1991). The second
            costs more and gives the same result.
        ordered: whether the samples have an order in time, in which terms with memory have columns of their own.

    >>> base = dynid.base_parameters(dynid.Model(dynid.Robot.load("arm3r")))
    >>> len(base), base.expressions[0]
    (15, 'YY1 + YY2 - 0.0484 M2 + YY3 - 0.0709 M3')
    """
    if isinstance(model, Robot | str):
        require_type(model, Model, "base_parameters", "base_parameters(dynid.Model(robot))")
    parameters = model.parameters
    if by not in ("qr", "svd"):
        raise ModelError(f"base parameters are computed by 'qr' or 'svd', not by '{by}'", code="unknown-algorithm")
    if model.dof > _MOST_JOINTS:
        raise NotPossibleError(f"the robot has {model.dof} moving joints, but base parameters are computed for at most "
                               f"{_MOST_JOINTS}", "lock the joints that are not to be identified")
    if len(parameters) > _MOST_PARAMETERS:  # a robot of few joints can have many bodies that depend on them
        raise NotPossibleError(f"the model has {len(parameters)} parameters, but base parameters are computed for at "
                               f"most {_MOST_PARAMETERS}", "leave out joints that depend on others (mimic joints)")
    if priority is None:
        order = list(range(len(parameters)))
    elif all(isinstance(item, str) for item in priority):
        order = parameters.order([str(item) for item in priority])
    else:
        order = [int(item) for item in priority]
        if sorted(order) != list(range(len(parameters))):
            raise ModelError(f"a priority order must name each of the {len(parameters)} columns once",
                             code="wrong-priority")
    accuracy = _LOOP_ACCURACY if _closed(model) else _REGRESSOR_ACCURACY
    factor = random_factor(model, seed, unmeasured, ordered)
    return (reduce_columns if by == "qr" else singular_columns)(factor, parameters, order, accuracy=accuracy)


def random_factor(model: LinearModel, seed: int = 0, unmeasured: Sequence[int] = (), ordered: bool = True) -> Array:
    """Return the triangular factor (parameters, parameters) of the model's regressor over random fast and slow motions.
    Rows of joints without measured torque are excluded. ordered: see `base_parameters`."""
    rng = np.random.default_rng(seed)
    samples = max(64, 6 * len(model.parameters) // model.dof)
    q = closed_postures(model, samples, rng)
    dq, ddq = rng.normal(size=(2, samples, model.dof)) * 3.0
    dq *= rng.choice([0.05, 1.0], size=(samples, 1))  # slow rows distinguish the shapes of friction
    if np.any(model.parameters.ridge > 0):  # friction curves have steps of every width, so all speeds are needed
        crawling = np.exp(rng.uniform(np.log(1e-5), 0.0, (samples, model.dof))) * rng.choice([-1.0, 1.0], dq.shape)
        q, dq, ddq = np.vstack([q, q]), np.vstack([dq, crawling]), np.vstack([ddq, ddq])
        samples = len(q)
    own = robot_model(model)
    remembers = ordered and own is not None and own.channels > 0
    # Memory states are random, which distinguishes their columns from all others.
    more = {"memory": rng.normal(size=(samples, own.channels))} if remembers and own is not None else {}
    y = np.asarray(model.regressor(q, dq, ddq, **more), dtype=float)
    if y.shape != (samples, model.dof, len(model.parameters)):
        raise ModelError(f"the model's regressor gave shape {y.shape}, expected "
                         f"{(samples, model.dof, len(model.parameters))}")
    if not np.isfinite(y).all():
        name = model.parameters.names[int(np.argwhere(~np.isfinite(y))[0, 2])]
        raise ModelError(f"the model's regressor is not finite in the column of parameter '{name}'", code="not-finite")
    y[:, list(unmeasured)] = 0.0
    y = y.reshape(-1, y.shape[2])
    # Rows are scaled per joint, so that rounding errors of large torques do not hide joints with small ones.
    size = np.sqrt(np.einsum("sc,sc->s", y, y).reshape(samples, model.dof).mean(axis=0))
    return np.asarray(np.linalg.qr(y / np.tile(np.where(size > 0, size, 1.0), samples)[:, None], mode="r"))


def _closed(model: LinearModel) -> bool:
    """Return whether the model's robot has closed kinematic loops."""
    robot = getattr(model, "robot", None)
    return isinstance(robot, Robot) and robot.followers is not None and robot.followers.loops is not None


def closed_postures(model: LinearModel, samples: int, rng: np.random.Generator) -> Array:
    """Return random joint positions (samples, dof) of a model's robot, with closed kinematic loops satisfied."""
    robot = getattr(model, "robot", None)
    if isinstance(robot, Robot) and _closed(model):
        return random_postures(robot, samples, rng)
    return rng.uniform(-np.pi, np.pi, (samples, model.dof))


def reduce_columns(factor: Array, parameters: Parameters, order: Sequence[int],
                   tolerance: float = _RANK_TOLERANCE, accuracy: float = _REGRESSOR_ACCURACY) -> BaseParameters:
    """Return base parameters from a triangular factor of the regressor. Columns are taken in the given order; one that
    depends linearly on earlier columns is grouped onto these. accuracy: relative accuracy of the regressor."""
    norms = np.linalg.norm(factor, axis=0)
    shown = norms > _ZERO_COLUMN * max(norms.max(), 1e-300)
    unit = factor / np.where(shown, norms, 1.0)
    found = np.zeros(unit.shape[::-1])  # orthonormal rows, one per independent column
    independent: list[int] = []
    for c in order:
        if not shown[c]:
            continue
        basis, rest = found[:len(independent)], unit[:, c].copy()
        for _ in range(2):  # twice is enough for orthogonality to rounding errors (Kahan)
            rest -= (basis @ rest) @ basis
        size = math.sqrt(rest @ rest)
        if size > tolerance:
            found[len(independent)] = rest / size
            independent.append(c)
    dependent = [c for c in order if shown[c] and c not in set(independent)]
    matrix = np.zeros((len(independent), len(parameters)))
    matrix[np.arange(len(independent)), independent] = 1.0
    if dependent:
        scaled, _, _, singular = np.linalg.lstsq(unit[:, independent], unit[:, dependent], rcond=None)
        # Coefficients of negligible size, and digits below the rounding error of this solution, are removed.
        scaled[np.abs(scaled) < tolerance] = 0.0
        size = norms[dependent] / norms[independent][:, None]
        rounding = accuracy * max(1e2, singular[0] / singular[-1]) * np.maximum(size, 1.0)
        matrix[:, dependent] = _shortest(scaled * size, rounding)
    return BaseParameters(parameters, np.array(independent, dtype=np.int64), matrix)


def singular_columns(factor: Array, parameters: Parameters, order: Sequence[int], accuracy: float) -> BaseParameters:
    """Return the base parameters of `reduce_columns`, computed from the singular vectors of the null space.

    With V2 (parameters, n - rank) the null space, columns whose rows V22 of V2 are regular are removed, from the end
    of the order on, and beta = theta_1 - V21 V22^-1 theta_2.
    """
    norms = np.linalg.norm(factor, axis=0)
    shown = [c for c in order if norms[c] > _ZERO_COLUMN * max(norms.max(), 1e-300)]
    _, singular, right = np.linalg.svd(factor[:, shown] / norms[shown])
    rank = int(np.sum(singular > _RANK_TOLERANCE * singular[0]))
    silent = right[rank:].T
    silent = np.where(np.linalg.norm(silent, axis=1, keepdims=True) < _RANK_TOLERANCE, 0.0, silent)  # rounding
    rows = reduce_columns(silent.T[:, ::-1], Parameters(tuple(parameters.items[c] for c in shown[::-1])),
                          range(len(shown)))
    left = np.sort(len(shown) - 1 - rows.independent)
    kept = np.setdiff1d(np.arange(len(shown)), left)
    matrix, independent = np.zeros((rank, len(parameters))), np.array(shown, dtype=np.int64)[kept]
    matrix[np.arange(rank), independent] = 1.0
    if len(left):
        scaled = -np.linalg.solve(silent[left].T, silent[kept].T).T
        scaled[np.abs(scaled) < _RANK_TOLERANCE] = 0.0
        size = norms[np.array(shown)[left]] / norms[independent][:, None]
        rounding = accuracy * max(1e2, singular[0] / singular[rank - 1]) * np.maximum(size, 1.0)
        matrix[:, np.array(shown)[left]] = _shortest(scaled * size, rounding)
    return BaseParameters(parameters, independent, matrix)


def parsed(text: str, parameters: Parameters) -> Array:
    """Return the coefficients (parameters,) of a sum in text form, such as 'ZZ1 + Ia1 - 0.25 M2' or '0.25*M2'."""
    row, at = np.zeros(len(parameters)), 0
    text = text.strip()
    while at < len(text):
        match = _COMBINATION_TERM.match(text, at)
        if match is None or (at > 0 and not match[1]):
            raise ModelError(f"'{text}' is not a sum of parameters: cannot parse '{text[at:]}'; write it like 'ZZ1 + "
                             "0.25 M2'", code="wrong-combination")
        sign, size, name = match.groups()
        row[parameters.index(name)] += (-1.0 if sign == "-" else 1.0) * float(size or 1.0)
        at = match.end() + len(text[match.end():]) - len(text[match.end():].lstrip())
    if not row.any():
        raise ModelError(f"the combination '{text}' contains no parameter; write it like 'ZZ1 + 0.25 M2'")
    return row


def dry_columns(model: LinearModel, base: BaseParameters) -> Bools:
    """Return the mask (base,) of base parameters with dry friction: those whose regressor column is not a polynomial of
    the velocity up to degree 2."""
    rng = np.random.default_rng(0)
    _, dq, ddq = rng.normal(size=(3, 20, model.dof))
    q = closed_postures(model, 20, rng)
    # The third difference over equal steps of any quadratic is zero; that of a sign or a Stribeck curve is not.
    y = [model.regressor(q, s * dq, ddq)[:, :, base.independent] for s in (-3.0, -1.0, 1.0, 3.0)]
    third = np.abs(y[3] - 3.0 * y[2] + 3.0 * y[1] - y[0]).max(axis=(0, 1))
    size = np.max([np.abs(x).max(axis=(0, 1)) for x in y], axis=0)
    return third > 1e-9 * np.maximum(size, 1e-300)
