"""The identification problem (a model with its data), and the registry of identification methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dynid import html_tables
from dynid.arrays import Array
from dynid.datasets import Dataset
from dynid.datasets.identifiable import DataFacts, bind_to_data
from dynid.datasets.log_folds import FoldedLogs
from dynid.errors import ModelError, did_you_mean
from dynid.estimate.bounded import nearest_within
from dynid.estimate.estimate import Estimate
from dynid.estimate.fitted import fitted_model
from dynid.estimate.option_types import check_options
from dynid.estimate.uncertainty import CovType
from dynid.model import LinearModel, flexible_joint_model
from dynid.plugins import load_plugin, plugin_names, usable_plugins
from dynid.recording import Recording, Samples
from dynid.regression import BaseParameters, Equations, Regression, fold, prepared_equations
from dynid.regression.derived import CachedEquations
from dynid.regression.filtered import kept
from dynid.regression.known import KnownValues
from dynid.signals import at_times
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    from dynid.simulation import Controller

BOUND_TOLERANCE = 1e-9  # by which solutions of solvers may exceed a bound
Data = Samples | Recording | Sequence[Samples] | Sequence[Recording] | Dataset


@dataclass(frozen=True, eq=False)
class Problem:
    """An identification problem: a model, its compressed regression, and the available samples.

    Attributes:
        model: model to be identified.
        regression: QR factors of all data on the model's base parameters.
        data: available samples, one per log: all if they are small, otherwise an excerpt; empty for a saved regression.
        nominal: nominal values (parameters,) given by the user, or None.
        threads: number of threads.
        recordings: the logs of the data, one each, for the references of closed-loop methods.
        controller: the robot's control law, if known.
        dataset: the logs of the regression; None if only the data above are available.
        places: index of each of the data among the logs of the regression.
        folded: logs in the regression, and excluded ones.
        is_excerpt: whether the data are only a part of those in the regression.
    """

    model: LinearModel
    regression: Regression
    data: tuple[Samples, ...] = ()
    nominal: Array | None = None
    threads: int | None = None
    recordings: tuple[Recording, ...] = ()
    controller: Controller | None = None
    dataset: Dataset | None = None
    places: tuple[int, ...] = ()
    folded: FoldedLogs | None = None
    is_excerpt: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.regression, Regression):
            raise ModelError(f"a Problem takes the compressed regression of its data, not {_name(self.regression)}",
                             "write Problem.from_model(model, samples)", "not-a-regression")
        if len(self.places) != len(self.data):
            object.__setattr__(self, "places", tuple(range(len(self.data))))
        if self.data and not self.is_excerpt and equation_counts(self.data) != self.regression.rows:
            raise ModelError(f"the compressed regression has {sum(self.regression.rows)} equations, but the data have "
                             f"{sum(equation_counts(self.data))}: a problem needs exactly the data of its regression",
                             code="data-of-another-regression")

    def whole(self) -> Problem:
        """Return the problem with all samples in memory, for methods that need a second pass over them."""
        if not self.is_excerpt or self.dataset is None:
            return self
        excluded = () if self.folded is None else tuple(failure.source for failure in self.folded.left_out)
        data = tuple(self.dataset.every_sample(excluded))
        recordings = self.recordings if len(self.recordings) == len(data) else ()
        return replace(self, data=data, recordings=recordings, places=(), is_excerpt=False)

    def __repr__(self) -> str:
        return (f"<Problem: {len(self.base)} base parameters, {len(self.data)} logs, {sum(self.regression.rows):,} "
                "equations>")

    def _repr_html_(self) -> str:
        rows = [(joint, f"{count:,}") for joint, count in
                zip(self.regression.joints, self.regression.rows, strict=True)]
        return html_tables.card(repr(self)[1:-1], html_tables.table(("joint", "equations"), rows))

    @property
    def base(self) -> BaseParameters:
        return self.regression.base

    @cached_property
    def equations(self) -> Equations:
        """Equations of the samples, for methods that compress them again with other weights."""
        return CachedEquations.from_equations(prepared_equations(self.model, self.data, self.base))

    @property
    def filtered(self) -> str | None:
        """Kind of the filtered equations of the regression, such as "kernel" or "power"; None for torque equations."""
        signals = self.data[0].filtered if self.data else None
        return None if signals is None else signals.filter.kind

    @cached_property
    def torques(self) -> Problem:
        """Return the problem with torque equations instead of filtered ones, in the same number of blocks."""
        if self.filtered is None:
            return self
        data = tuple(replace(log, filtered=None) for log in self.data)
        regression = fold(prepared_equations(self.model, data, self.base), blocks=len(self.regression.blocks),
                          threads=self.threads)
        return replace(self, regression=replace(regression, prior=self.regression.prior), data=data, dataset=None,
                       is_excerpt=False)

    @staticmethod
    def from_model(model: LinearModel, data: Data, *, base: BaseParameters | None = None,
                   known: KnownValues | None = None, nominal: Array | None = None, blocks: int = 10,
                   threads: int | None = None, recordings: Recording | Sequence[Recording] = (),
                   controller: Controller | None = None) -> Problem:
        """Return the problem of a model and its data, with the data compressed.

        Args:
            known: standard parameters whose values are known, see `Regression.given`.
            nominal: nominal values (parameters,). Default: those of the robot file, if it gives all.
            blocks: number of blocks of time for cross-validation and standard errors.

        Returns:
            The problem. Its model is the given one, bound to the data (see `FrictionCurve` and `LoadFriction`).
        """
        dataset = _prepared_dataset(model, data, recordings, known)
        logs = dataset.samples
        whole = bind_to_data(model, DataFacts.from_samples(logs, dataset.recordings), known, base=base)
        base, model = whole.base, fitted_model(whole.model, logs, whole.base, threads)
        equations = (CachedEquations.from_equations(prepared_equations(model, logs, base)) if dataset.is_in_memory
                     else None)
        regression, folded = dataset.fold(model, base, blocks=blocks, threads=threads, equations=equations)
        regression = replace(regression, prior=whole.prior)
        nominal = model.parameters.nominal if nominal is None else model.parameters.vector(nominal)
        places, few, originals = dataset.excerpt()
        is_excerpt = not dataset.is_in_memory or any(a is not b for a, b in zip(few, logs, strict=False))
        problem = Problem(model, regression, few, nominal, threads, originals, controller, dataset, places, folded,
                          is_excerpt=is_excerpt)
        if equations is not None and not is_excerpt:
            vars(problem)["equations"] = equations  # the rows are already in memory
        return problem

    def as_logged(self) -> tuple[Samples, ...]:
        """Return the data with unfiltered positions and torques, if the logs are available."""
        parts = list(self.data)
        for k, log in enumerate(self.recordings):
            q, tau = (at_times(parts[k].t, log.t, x) for x in (log.q, log.tau))
            parts[k] = replace(parts[k], q=q, tau=tau)
        return tuple(parts)

    def lone_values(self) -> Array:
        """Return the value (base,) with which each base parameter alone explains the torques; zero without effect."""
        stacked = self.regression.stack(prior=False)
        norms = np.linalg.norm(stacked.r, axis=0)
        return np.sqrt(float(np.sum(stacked.rho ** 2) + stacked.rest)) / np.where(norms > 0, norms, np.inf)

    def need_nominal(self, method: str) -> Array:
        """Return the nominal parameters; raise an error that names the method if there are none."""
        if self.nominal is None:
            missing = [p.name for p in self.model.parameters if p.nominal is None]
            raise ModelError(f"method '{method}' needs nominal values of all parameters; the robot file gives none "
                             f"for {', '.join(missing[:5]) or 'them'}", code="no-nominal-values")
        return self.nominal


def _prepared_dataset(model: LinearModel, data: Data, recordings: Recording | Sequence[Recording],
                      known: KnownValues | None) -> Dataset:
    """Return the data as a dataset with prepared logs; a cut-off that is not given is chosen for the model."""
    first = next(iter(data), None) if isinstance(data, list | tuple) else data
    if first is not None and not isinstance(first, Samples | Recording | Dataset):
        raise ModelError(f"a model is identified from samples or recordings, not from {_name(first)}",
                         "read a log with dynid.read(path, robot=robot)", "not-samples")
    if first is None or isinstance(first, Samples):
        return Dataset.from_samples(cast(Samples | Sequence[Samples], data), recordings)
    dataset = data if isinstance(data, Dataset) else Dataset.from_recordings(
        cast(Recording | Sequence[Recording], data))
    if dataset.samples:
        return dataset
    from dynid.estimate.cutoff_choice import prepare_dataset  # imported here because it uses this module
    return prepare_dataset(model, dataset, known=known)[0]


def _name(value: object) -> str:
    return type(value).__name__


def equation_counts(data: Sequence[Samples]) -> tuple[int, ...]:
    """Return the number of equations in these samples: of each joint, or of the whole robot for power and energy."""
    if data[0].filtered is not None:
        return tuple(int(n) for n in sum(kept(part, range(int(start), int(stop), part.filtered.filter.step)).sum(axis=0)
                                         for part in data if part.filtered is not None
                                         for start, stop in part.segments))
    total = np.zeros(data[0].dof, dtype=np.int64)
    for part in data:
        for start, stop in part.segments:
            total += part.keep[start:stop:part.decimated_by].sum(axis=0)
    return tuple(int(n) for n in total)


# -- methods by name ---------------------------------------------------------------------------------
# Beyond the compressed regression:
Need = Literal["data", "excerpt", "blocks", "nominal", "shape", "exact", "torques", "joints", "rigid"]
Gift = Literal["theta", "shape"]  # results in addition to base parameters
Dependence = Literal["order", "units", "prior"]  # dependence of the result on more than the data


@dataclass(frozen=True)
class Method:
    """An identification method with its requirements and results.

    Attributes:
        name, title, function: name, description and function of the method.
        needs: requirements: "data" a second pass over all samples, "excerpt" a part of the samples, "blocks" blocks of
            time, "nominal" nominal values of all parameters, "shape" free shape parameters, "exact" known parameters
            without standard deviation, "torques" torque equations, "joints" one row per joint, "rigid" rigid joints.
        gives: results besides base parameters: "theta" all standard parameters, "shape" another model.
        depends_on: further influences on the result: "order" of logs in time, as for a filter; "units" of length or
            mass, as for absolute tolerances; "prior", an initial standard deviation of every parameter.
        options_of: other functions whose keyword arguments are options too, which the method passes on to them.
    """

    name: str
    title: str
    function: Callable[..., Estimate]
    needs: frozenset[Need]
    gives: frozenset[Gift]
    depends_on: frozenset[Dependence] = frozenset()
    options_of: tuple[Callable[..., Any], ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the method's options."""
        return tuple(p.name for function in (self.function, *self.options_of)
                     for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY)


_METHODS: dict[str, Method] = {}
# Modules whose methods are registered on demand, because they would double the import time.
MORE_METHODS = ("ridge_regression", "consistent", "consistent_ridge", "consistent_literature", "consistent_repeated",
                "direct", "instrumental", "kalman", "likelihood", "output_error_methods", "recursive.methods",
                "robust", "separable", "total")


def _load_methods() -> None:
    for module in MORE_METHODS:
        import_module(f"dynid.estimate.{module}")


def method(name: str, title: str, *, needs: Collection[Need] = (), gives: Collection[Gift] = (),
           depends_on: Collection[Dependence] = (), options_of: Collection[Callable[..., Any]] = ()
           ) -> Callable[[Callable[..., Estimate]], Callable[..., Estimate]]:
    """Register an identification method under its name in the literature; title: description. Others: see `Method`."""
    def register(function: Callable[..., Estimate]) -> Callable[..., Estimate]:
        if not function.__module__.startswith("dynid."):
            _load_methods()  # names of built-in methods must be known here
        if name in _METHODS:
            raise ModelError(f"a method '{name}' exists already")
        _METHODS[name] = Method(name, title, function, frozenset(needs), frozenset(gives), frozenset(depends_on),
                                tuple(options_of))
        return function
    return register


def methods() -> dict[str, Method]:
    """Return all methods by name, including those of plugins; methods with physical consistency are last."""
    _load_methods()
    usable_plugins("dynid.methods")  # loading one registers it
    return dict(sorted(_METHODS.items(), key=lambda item: item[0].startswith("pc-")))


def find_method(name: str) -> Method:
    """Return a method by name; raise an error with a list of all methods for an unknown name."""
    for module in MORE_METHODS:
        if name in _METHODS:
            break
        import_module(f"dynid.estimate.{module}")
    if name not in _METHODS and name in plugin_names("dynid.methods"):
        load_plugin("dynid.methods", name)
    if name not in _METHODS:
        raise ModelError(f"there is no method '{name}'; {did_you_mean(name, methods())}", code="unknown-method")
    return _METHODS[name]


def method_title(name: str) -> str:
    """Return the description of a method by name; for an unknown one, "a custom method"."""
    try:
        return find_method(name).title
    except ModelError:
        return "a custom method"


def _within_bounds(problem: Problem, estimate: Estimate) -> Estimate:
    """Return the estimate with its parameters projected onto their bounds, for methods that do not use bounds."""
    low, high = estimate.base.bounds
    if np.all((estimate.values >= low - BOUND_TOLERANCE) & (estimate.values <= high + BOUND_TOLERANCE)):
        return estimate
    values = nearest_within(estimate.values, estimate.covariance, low, high)
    theta = None
    if estimate.theta is not None:
        theta = estimate.theta.copy()
        theta[estimate.base.independent] += values - estimate.values
    facts = estimate.diagnostics.with_facts({"fixed_at_bounds": [
        name for name, fixed in zip(estimate.names, (values == low) | (values == high), strict=True) if fixed]})
    if estimate.base is problem.base:
        facts = facts.refitted(problem.regression, values)
    return replace(estimate, values=values, theta=theta, diagnostics=facts)


@one_blas_thread()
def identify(problem: Problem | LinearModel, data: Data | None = None, method: str = "auto", *,
             known: KnownValues | None = None, cov_type: CovType | None = None, **options: Any) -> Estimate:
    """Identify the parameters of a model from data: identify(model, samples, method="irls", loss="huber").

    The covariance is computed when it is first used.

    Args:
        problem: a model, or a `Problem` with model and data.
        data: one log or several, if the problem is a model: prepared samples, or recordings or a dataset, whose cut-off
            is then chosen as in `dynid identify`.
        method: by default chosen by cross-validation over blocks of time, see `dynid.estimate.choice`.
        known: known standard parameters, see `Regression.given`.
        cov_type: type of the covariance: "correlated", "blocks" or "independent", see `dynid.estimate.covariance`; by
            default the best that the data allow.
        options: options of the method.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> estimate = dynid.identify(model, samples, method="ols")
    >>> true = dynid.base_parameters(model).reduce(model.parameters.nominal)
    >>> bool(np.abs(estimate.values - true).max() < 0.01)
    True
    """
    chosen = find_method(method)
    for option in options:
        if option not in chosen.options:
            raise ModelError(f"method '{method}' has no option '{option}'; it has "
                             f"{', '.join(chosen.options) or 'none'}", code="unknown-option")
    check_options(method, (chosen.function, *chosen.options_of), options)
    if not isinstance(problem, Problem):
        if data is None:
            raise ModelError("identify needs data as well as a model: identify(model, samples)")
        problem = Problem.from_model(problem, data, known=known)
    elif data is not None or known is not None:
        raise ModelError("a Problem already contains its data and known parameters; pass both to Problem.from_model",
                         code="data-given-twice")
    if "data" in chosen.needs:
        problem = problem.whole()
    if chosen.needs & {"data", "excerpt"} and not problem.data:
        raise ModelError(f"method '{method}' reads the samples again, so a saved regression is not sufficient",
                         "give the samples", code="needs-data")
    if "torques" in chosen.needs and problem.filtered is not None:
        raise ModelError(f"method '{method}' needs torque equations and cannot use equations = '{problem.filtered}'; "
                         "use equations = 'torque', or another method, such as 'wls'", code="needs-torque-equations")
    if "joints" in chosen.needs and problem.regression.dof != problem.model.dof:
        raise ModelError(f"method '{method}' processes one joint at a time and cannot use equations = "
                         f"'{problem.filtered}', which has rows of the whole robot; use 'kernel' or 'torque', or "
                         "another method, such as 'rls'", code="needs-joint-equations")
    if "exact" in chosen.needs and problem.regression.prior is not None:
        raise ModelError(f"method '{method}' supports only exactly known parameters; give "
                         f"{', '.join(problem.regression.prior.known)} without a standard deviation, or remove them",
                         code="needs-exact-values")
    if "rigid" in chosen.needs and flexible_joint_model(problem.model) is not None:
        raise ModelError(f"method '{method}' needs one equation per joint, but flexible joints have two equations each",
                         "use 'wls', 'iv' or 'pc-wls'", code="flexible-not-supported")
    if "nominal" in chosen.needs:
        problem.need_nominal(method)
    estimate = _within_bounds(problem, chosen.function(problem, **options))
    if cov_type is not None:
        estimate = estimate.with_cov_type(cov_type)
    # If a method calls another one, the recorded options are those of the inner method.
    return estimate.with_provenance(options=estimate.provenance.get("options", options),
                                    sources=list(problem.regression.sources))
