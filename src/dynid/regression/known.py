"""Known parameters, from weighing, a data sheet or an earlier run, with or without a standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.lapack import null_space
from dynid.model import LinearModel, robot_model
from dynid.regression.base import BaseParameters
from dynid.robot.followers import links_with_fixed_inertia

# Relative to a value, or to one unit: a smaller standard deviation is below rounding, so the value is exact.
_EXACT_TOLERANCE = 1e-12
_DEPENDENT_FACTS = 1e-9  # singular values below this share of the largest are zero
KnownValues = Mapping[str, "Known | float | tuple[float, float]"]
MAX_KNOWN_VALUE = 1e12  # SI units: more than a parameter of any robot, and far from overflow


@dataclass(frozen=True)
class Known:
    """Value of a standard parameter in its own unit, and its standard deviation, 0 for an exact value."""

    value: float
    std: float = 0.0


def fixed_inertia_values(model: LinearModel) -> dict[str, float]:
    """Return the ten inertial parameters of every body whose inertia the robot file states as known, by name."""
    own = robot_model(model)
    fixed = () if own is None else links_with_fixed_inertia(own.robot)
    return {item.name: item.nominal for item in model.parameters if item.body in fixed and item.nominal is not None}


def check_known(base: BaseParameters, known: KnownValues) -> dict[str, Known]:
    """Return known values by name of a standard parameter; raise an error for unknown names and invalid numbers."""
    found = {}
    for name, given in known.items():
        fact = given if isinstance(given, Known) else Known(*given) if isinstance(given, tuple | list) else Known(given)
        if name not in base.parameters.names:
            raise ModelError(f"a known value is given for '{name}', which is no parameter; the parameters are "
                             f"{', '.join(base.parameters.names[:12])}, ...")
        if name in base.known:
            raise ModelError(f"parameter '{name}' is given as known twice: {base.known[name]:g}", code="known-twice")
        if not (abs(fact.value) <= MAX_KNOWN_VALUE and 0.0 <= fact.std <= MAX_KNOWN_VALUE):
            raise ModelError(f"known parameter '{name}' needs a value and a standard deviation that is not negative, "
                             f"both at most {MAX_KNOWN_VALUE:g}, got {fact.value} and {fact.std}")
        exact = fact.std <= _EXACT_TOLERANCE * max(abs(fact.value), 1.0)
        found[name] = Known(float(fact.value), 0.0 if exact else float(fact.std))
    return found


def exact_and_uncertain(base: BaseParameters, known: KnownValues) -> tuple[dict[str, float], dict[str, Known]]:
    """Return the exactly known parameter values, and those with a standard deviation, both by name."""
    facts = check_known(base, known)
    return ({name: fact.value for name, fact in facts.items() if fact.std == 0.0},
            {name: fact for name, fact in facts.items() if fact.std > 0.0})


@dataclass(frozen=True, eq=False)
class Prior:
    """Prior equations matrix (k, base) beta = values (k,) of base parameters, with unit standard deviations.

    Attributes:
        matrix, values: the equations.
        known: values of standard parameters from which the equations follow, for methods that estimate all of these.
        strength: factor on the equations when they are added to weighted equations of the data.
        facts: further equations of standard parameters, matrix (n, parameters) theta = values (n,), each with a
            standard deviation of one.
    """

    matrix: Array
    values: Array
    known: Mapping[str, Known]
    strength: float = 1.0
    facts: tuple[Array, Array] | None = None

    @staticmethod
    def from_known(base: BaseParameters, known: Mapping[str, Known]) -> Prior | None:
        """Return the prior on base parameters from values with standard deviations, or None if there is none.

        A combination a.beta is known if it consists of known parameters alone: a' matrix is zero in all others.
        """
        if not known:
            return None
        places = np.array([base.parameters.index(name) for name in known])
        values, stds = (np.array([getattr(one, which) for one in known.values()]) for which in ("value", "std"))
        others = np.delete(base.matrix, places, axis=1)
        combinations = null_space(others.T).T if others.shape[1] else np.eye(len(base))
        on_known = combinations @ base.matrix[:, places]
        # Rows are divided by the standard deviations of their combinations.
        whiten = _whitening(on_known * stds, _EXACT_TOLERANCE)
        return Prior(whiten @ combinations, whiten @ (on_known @ values), dict(known))

    @staticmethod
    def from_facts(base: BaseParameters, matrix: Array, values: Array) -> Prior:
        """Return the prior on base parameters that follows from linear equations of standard parameters.

        The prior consists of the combinations a of base parameters K theta that are also combinations b of the
        equations: a' K = b' matrix.

        Args:
            base: base parameters.
            matrix: (n, parameters), in units of the standard deviation of each equation.
            values: (n,), right-hand sides in the same units.
        """
        scale = np.linalg.norm(matrix, axis=1, keepdims=True)
        both = null_space(np.hstack([base.matrix.T, -(matrix / scale).T]))
        on_base, on_facts = both[:len(base)].T, (both[len(base):] / scale).T
        whiten = _whitening(on_facts, _DEPENDENT_FACTS)
        return Prior(whiten @ on_base, whiten @ (on_facts @ values), {}, facts=(matrix, values))

    def and_also(self, other: Prior) -> Prior:
        """Return the prior with the equations of two priors, which must come from independent information. Equations
        of the other prior are divided by the strength of this prior, so that their weight stays the same."""
        ratio = self.strength / other.strength
        pairs = [(prior.facts[0] / share, prior.facts[1] / share)
                 for prior, share in ((self, 1.0), (other, ratio)) if prior.facts is not None]
        facts = (np.vstack([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])) if pairs else None
        values = np.concatenate([self.values, other.values / ratio])
        return Prior(np.vstack([self.matrix, other.matrix / ratio]), values, {**self.known, **other.known},
                     self.strength, facts)

    def given(self, exact: Mapping[str, float], base: BaseParameters, matrix: Array, shift: Array) -> Prior:
        """Return the prior on the base parameters gamma that remain if further standard parameters are known exactly.

        beta = matrix gamma + shift, see `BaseParameters.given`. base: the earlier base parameters beta.
        """
        facts = self.facts
        if facts is not None:
            places = [base.parameters.index(name) for name in exact]
            left = facts[0].copy()
            left[:, places] = 0.0
            facts = left, facts[1] - facts[0][:, places] @ np.array(list(exact.values()), dtype=float)
        return replace(self, matrix=self.matrix @ matrix, values=self.values - self.matrix @ shift, facts=facts)

    def standard_rows(self, base: BaseParameters) -> tuple[Array, Array]:
        """Return the prior as equations matrix (n, parameters) theta = values (n,) with unit standard deviations, which
        are multiplied by `strength`; known values keep their standard deviations."""
        matrix, targets = np.zeros((len(self.known), len(base.parameters))), np.zeros(len(self.known))
        for k, (name, one) in enumerate(self.known.items()):
            matrix[k, base.parameters.index(name)] = 1.0 / (one.std * self.strength)
            targets[k] = one.value / (one.std * self.strength)
        if self.facts is None:
            return matrix, targets
        return np.vstack([matrix, self.facts[0]]), np.concatenate([targets, self.facts[1]])


def _whitening(spread: Array, share: float) -> Array:
    """Return W (k, n) with W S S' W' = I for S (n, m); singular values below a share of the largest are omitted."""
    left, size, _ = np.linalg.svd(spread, full_matrices=False)
    kept = size > share * max(size.max(initial=0.0), 1e-300)
    return (left[:, kept] / size[kept]).T


def with_known(model: LinearModel, base: BaseParameters, known: KnownValues | None
               ) -> tuple[BaseParameters, Prior | None]:
    """Return base parameters and prior of `given_known`, with inertias that the robot file states as known."""
    fixed = {name: value for name, value in fixed_inertia_values(model).items() if name not in base.known}
    return given_known(base, {**fixed, **(known or {})})


def given_known(base: BaseParameters, known: KnownValues) -> tuple[BaseParameters, Prior | None]:
    """Return the base parameters that remain with exactly known values, and the prior of uncertain values or None."""
    exact, uncertain = exact_and_uncertain(base, known)
    base, *_ = base.given(exact)
    return base, Prior.from_known(base, uncertain)


def known_parameters(prior: Prior | None) -> dict[str, Known]:
    """Return the known standard parameters of a prior by name; empty without a prior."""
    return {} if prior is None else dict(prior.known)
