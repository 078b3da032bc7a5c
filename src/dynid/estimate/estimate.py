"""Result of every identification method: base parameters with their uncertainty, and diagnostics of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools
from dynid.errors import ModelError, did_you_mean, require_type
from dynid.estimate.iterations import Iteration
from dynid.estimate.uncertainty import CovType, OnDemand, Uncertainty
from dynid.findings import Note
from dynid.model import LinearModel, complete
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, TorqueEquations
from dynid.regression.equations import torques_along
from dynid.regression.residual_series import Residuals, residuals, torque_sums

if TYPE_CHECKING:
    from dynid.estimate.block_cross_validation import BlockCrossValidation
    from dynid.estimate.draws.posterior import Draws
    from dynid.estimate.simulators.exports import Exported


# Percent: a parameter with a larger standard error is not identified, only estimated. At 50 % a value is twice its
# standard error, so that its sign is certain at a level of 95 %.
WELL_DETERMINED = 50.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values of the base parameters, the method that gave them, and their uncertainty on demand.

    `covariance`, `std`, `conf_int`, `summary` and everything else about uncertainty is computed at first use and kept.
    A copy with other values (`dataclasses.replace`) keeps the uncertainty of the original values; use `with_covariance`
    to change it.

    Attributes:
        method: name of the method.
        model, base: the model and its base parameters.
        values: values of the base parameters (base,).
        identified: mask of identified parameters (base,). Other parameters have the method's default value and an
            infinite standard error.
        uncertainty_of: function that computes and caches the uncertainty.
        theta: standard parameters (parameters,), if the method estimates them; `values` are combinations of these.
        diagnostics: numbers of the fit.
        provenance: facts that are needed to repeat the fit.
        refit: function that returns theta (parameters,) of the same method on other equations, for cross-validation,
            with the choices made from all data (weights, strength of a prior); None without such a function. Not saved.
        left_out: fits of the method without each block of time, if cross-validation chose it. Not saved in files.
        iterations: the steps of an iterative method, in order.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> dynid.identify(model, samples, method="wls")
    <Estimate by wls: 15 base parameters, relative error ... %>
    """

    method: str
    model: LinearModel
    base: BaseParameters
    values: Array
    identified: Bools
    uncertainty_of: OnDemand
    theta: Array | None = None
    diagnostics: Diagnostics = field(kw_only=True)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    refit: Callable[[Regression], Array] | None = None
    left_out: BlockCrossValidation | None = None
    iterations: tuple[Iteration, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.base.names

    @property
    def known(self) -> dict[str, float]:
        """Exactly known standard parameters, by name."""
        return dict(self.base.known)

    @property
    def uncertainty(self) -> Uncertainty:
        """Uncertainty of the base parameters: covariance, its type, notes and facts; computed at first use."""
        return self.uncertainty_of()

    @property
    def covariance(self) -> Array:
        """Covariance (base, base) of the base parameters."""
        return self.uncertainty.covariance

    @property
    def cov_type(self) -> CovType:
        """Type of the covariance, see `dynid.estimate.covariance`."""
        return self.uncertainty.cov_type

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the fit and on the standard errors."""
        return (*self.uncertainty.notes, *self.diagnostics.notes)

    @property
    def std(self) -> Array:
        """Standard error of each base parameter (base,); infinite if not identified."""
        return np.where(self.identified, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), np.inf)

    @property
    def relative_std(self) -> Array:
        """Standard errors (base,) in percent of the base values (Janot et al., eq. 19); infinite for zero values."""
        size = np.abs(self.values)
        return np.where(size > 0, 100.0 * self.std / np.where(size > 0, size, 1.0), np.inf)

    @property
    def well_determined(self) -> Bools:
        """Which base parameters (base,) have a standard error of at most `WELL_DETERMINED` percent of their value.

        Tables, reports and files call these identified.
        """
        return np.asarray(self.identified & (self.relative_std <= WELL_DETERMINED), dtype=np.bool_)

    @property
    def poorly_determined(self) -> Bools:
        """Which base parameters (base,) are identified, but not well determined."""
        return np.asarray(self.identified & ~self.well_determined, dtype=np.bool_)

    def conf_int(self, level: float = 0.95) -> Array:
        """Return confidence intervals (base, 2) of the base parameters; infinite if not identified."""
        from scipy.special import ndtri, stdtrit
        if not 0.0 < level < 1.0:
            raise ModelError(f"the level of an interval must be between 0 and 1, got {level}", code="bad-level")
        share = 0.5 * (1.0 + level)
        degrees_of_freedom = self.uncertainty.degrees_of_freedom
        reach = float(ndtri(share) if np.isinf(degrees_of_freedom) else stdtrit(degrees_of_freedom, share)) * self.std
        return np.column_stack([self.values - reach, self.values + reach])

    @property
    def full(self) -> Array:
        """Standard parameters (parameters,) that give the estimated torques: `theta`, or base values and zeros."""
        return self.base.expand(self.values) if self.theta is None else self.theta

    def predict(self, q: ArrayLike | Samples, dq: ArrayLike | None = None, ddq: ArrayLike | None = None) -> Array:
        """Return the predicted torques (samples, dof) along a motion: its positions, velocities and accelerations, each
        (samples, dof), or samples, which have all three. Terms with memory need samples, which are ordered in time."""
        if isinstance(q, Samples):
            return torques_along(self.model, self.full, q)
        if dq is None or ddq is None:
            raise ModelError("an estimate predicts torques from positions, velocities and accelerations",
                             "call estimate.predict(q, dq, ddq), or estimate.predict(dynid.prepare(recording))",
                             "wrong-type")
        return complete(self.model).inverse_dynamics(self.full, q, dq, ddq)

    def residuals(self, samples: Samples | Sequence[Samples]) -> tuple[Residuals, ...]:
        """Return measured and predicted torques of each log, at the samples that the regression uses."""
        require_type(samples, Samples, "an estimate", "estimate.score(dynid.prepare(recording))")
        return residuals(TorqueEquations.from_model(self.model, samples, self.base), self.values)

    def score(self, samples: Samples | Sequence[Samples]) -> float:
        """Return R^2, the explained share of the torque variance about each joint's mean; at most 1."""
        total = np.sum([torque_sums(one) for one in self.residuals(samples)], axis=0)
        variation = float(np.sum(total[:, 0] - total[:, 1] ** 2 / np.maximum(total[:, 5], 1.0)))
        return 1.0 - float(total[:, 2].sum()) / variation if variation > 0 else float("nan")

    def with_provenance(self, **facts: Any) -> Estimate:
        """Return the estimate with additional facts on how it was computed."""
        return replace(self, provenance={**self.provenance, **facts})

    def with_cov_type(self, cov_type: CovType) -> Estimate:
        """Return the same values with a covariance of a named type, computed immediately: "correlated" from
        autocorrelated residuals, "blocks" from the variation between blocks of time, "independent" for independent
        rows. An error is raised for a type that the method or the data do not allow."""
        found = replace(self, uncertainty_of=self.uncertainty_of.by(cov_type))
        assert found.uncertainty
        return found

    def with_covariance(self, covariance: Array, **changes: Any) -> Estimate:
        """Return the estimate with another covariance (base, base). changes: other fields of `Uncertainty`."""
        return replace(self, uncertainty_of=self.uncertainty_of.then(
            lambda found: replace(found, covariance=covariance, **changes)))

    # -- display ------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> float:
        """Return the value of a base parameter by name, or of a standard parameter if the method estimates these."""
        if name in self.names:
            return float(self.values[self.names.index(name)])
        parameters = self.model.parameters
        if self.theta is not None and name in parameters.names:
            return float(self.theta[parameters.index(name)])
        raise ModelError(f"there is no base parameter '{name}'; {did_you_mean(str(name), self.names)}",
                         code="unknown-base-parameter")

    def plot(self) -> Any:
        """Return a plotly figure of the base parameters with their 95 % intervals; poorly determined ones are grey."""
        from dynid.estimate.summary_text import plot
        return plot(self)

    def __repr__(self) -> str:
        error = self.diagnostics.relative_error
        return f"<Estimate by {self.method}: {len(self.values)} base parameters, relative error {error:.3g} %>"

    def summary(self) -> str:
        """Return a text table of the estimate that can be pasted into a paper."""
        from dynid.estimate.summary_text import summary
        return summary(self)

    def _repr_html_(self) -> str:
        from dynid.estimate.summary_text import summary_html
        return summary_html(self)

    def to_frame(self) -> Any:
        """Return a pandas table with one row per base parameter: value, std, 95 % interval, unit, expression."""
        from dynid.estimate.summary_text import to_frame
        return to_frame(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without functions that need the data, which copies in other processes do not have."""
        return {**vars(self), "refit": None}

    # -- files -----------------------------------------------------------------------------------
    def save(self, path: str | Path) -> None:
        """Write values, covariance and diagnostics to an .npz file atomically."""
        from dynid.estimate.store import save
        save(self, path)

    @staticmethod
    def load(path: str | Path, model: LinearModel) -> Estimate:
        """Read an estimate from an .npz file; model: the model that was identified."""
        from dynid.estimate.store import load
        return load(path, model)

    def to_urdf(self, path: str | Path, source: str | Path | None = None, *, samples: Sequence[Samples] = (),
                with_payload: bool = False, unchecked: bool = False) -> tuple[str, ...]:
        """Write the robot's own URDF (or `source`) with the estimated values; see `dynid.estimate.export`."""
        from dynid.estimate.export import write_urdf
        return write_urdf(self, path, source, samples=samples, with_payload=with_payload, unchecked=unchecked)

    def to_mjcf(self, path: str | Path, *, samples: Sequence[Samples] = (), with_payload: bool = False,
                unchecked: bool = False) -> tuple[str, ...]:
        """Write the robot with the estimated values as MJCF for MuJoCo; see `dynid.estimate.export`."""
        from dynid.estimate.export import write_mjcf
        return write_mjcf(self, path, samples=samples, with_payload=with_payload, unchecked=unchecked)

    def export(self, path: str | Path, target: str, **options: Any) -> Exported:
        """Write the robot with the estimated values for a simulator; see `dynid.estimate.simulators.exports.export`."""
        from dynid.estimate.simulators.exports import export
        return export(self, path, target, **options)

    def draws(self, count: int, seed: int = 0, *, spread: float | None = None,
              regression: Regression | None = None) -> Draws:
        """Return physically consistent models drawn from the posterior, for domain randomisation.

        Args:
            count: number of draws.
            seed: seed of the random numbers.
            spread: relative standard deviation of undetermined parameters. Default: 0.2.
            regression: compressed regression of the estimate, along whose data the spread of torques is preserved.
        """
        from dynid.estimate.draws.posterior import PRIOR_SPREAD, posterior_draws
        return posterior_draws(self, count, seed, spread=PRIOR_SPREAD if spread is None else spread,
                               regression=regression)


@dataclass(frozen=True, eq=False)
class Diagnostics(Mapping[str, Any]):
    """Numbers of a fit that all methods give, and `more` facts of one method; also readable as a mapping.

    Attributes:
        relative_error: 100 |tau - tau_hat| / |tau| over all joints, percent.
        relative_error_per_joint: the same for each joint (dof,), percent.
        residual_std_per_joint: (dof,), standard deviation of the residuals, N m or N.
        rank: number of excited parameters.
        rows_per_joint: (dof,), number of equations.
        joints: names of the joints.
        condition: condition number of the weighted and scaled regressor.
        weights: weights of the joints (dof,), or None.
        confounded: parameters from which each parameter without excitation cannot be distinguished.
        notes: notes on the fit; those on standard errors are in `Uncertainty`.
    """

    relative_error: float
    relative_error_per_joint: list[float]
    residual_std_per_joint: list[float]
    rank: int
    rows_per_joint: list[int]
    joints: list[str]
    condition: float | None = None
    weights: list[float] | None = None
    confounded: dict[str, list[str]] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_fit(regression: Regression, beta: Array, *, rank: int, **facts: Any) -> Diagnostics:
        """Return the diagnostics of base values beta (base,) on compressed data, with further facts by name."""
        return Diagnostics.from_facts({
            "relative_error": regression.relative_error(beta),
            "relative_error_per_joint": regression.relative_errors(beta).tolist(),
            "residual_std_per_joint": regression.residual_std(beta).tolist(), "rank": rank,
            "rows_per_joint": list(regression.rows), "joints": list(regression.joints), **facts})

    @staticmethod
    def from_facts(facts: Mapping[str, Any]) -> Diagnostics:
        """Return diagnostics from a mapping, such as one that was read from a file."""
        core = {name: value for name, value in facts.items() if name in _CORE_DIAGNOSTICS}
        core["notes"] = tuple(note if isinstance(note, Note) else Note.from_plain(note)
                              for note in facts.get("notes", ()))
        return Diagnostics(**core, more={name: value for name, value in facts.items() if name not in _CORE_DIAGNOSTICS})

    def with_facts(self, facts: Mapping[str, Any]) -> Diagnostics:
        """Return the diagnostics of a fit with added or changed facts."""
        return Diagnostics.from_facts({**self, **facts})

    def refitted(self, regression: Regression, beta: Array) -> Diagnostics:
        """Return the diagnostics with the torque errors of other base values beta (base,) on compressed data."""
        fit = Diagnostics.from_fit(regression, beta, rank=self.rank)
        return replace(self, **{name: getattr(fit, name) for name in _OF_TORQUES})

    # -- as a mapping of known values by name ------------------------------------------------------
    def __getitem__(self, name: str) -> Any:
        if name in self.more:
            return self.more[name]
        if name in _CORE_DIAGNOSTICS and getattr(self, name) is not None:
            return getattr(self, name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in _CORE_DIAGNOSTICS if getattr(self, name) is not None and name not in self.more)
        yield from self.more

    def __len__(self) -> int:
        return sum(1 for _ in self)


_CORE_DIAGNOSTICS = tuple(one.name for one in fields(Diagnostics) if one.name != "more")
_OF_TORQUES = ("relative_error", "relative_error_per_joint", "residual_std_per_joint", "rows_per_joint", "joints")
