"""The checks of the contract for methods, one function each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.estimate import Estimate, Method, Problem, identify
from dynid.regression import Regression
from dynid.validate.contract.simulated_arm import Arm, arm, noise_free_arm

ROUNDING = 1e-3  # standard errors: tolerance of a value for another order of summation
SOLVER = 3e-2  # standard errors: tolerance of a value for iterative solvers with absolute tolerances
ERROR_OF_ERROR = 5e-2  # relative tolerance of standard errors, which are estimates themselves
LONGEST_MESSAGE = 500  # characters of a refusal
LENGTH, FORCE = 2.0, 8.0  # scale factors of the other units; powers of two cause no rounding


class ContractError(DynidError):
    """A method violates the contract; the message names the method and the check."""

    code = "contract"


@dataclass(frozen=True)
class MethodUnderTest:
    """A method and its options, to which the checks of the contract are applied."""

    method: Method
    options: Mapping[str, Any]

    @property
    def shape(self) -> bool:
        """Whether the method needs a model with unknown shape parameters, such as the Stribeck velocity."""
        return "shape" in self.method.needs

    def arm(self, **options: Any) -> Arm:
        """Return the simulated arm; options: see `simulated_arm.arm`."""
        return arm(shape=self.shape, **options)

    def fit(self, problem: Problem) -> Estimate:
        """Return the estimate of a problem, after general checks of its values and standard errors."""
        found = identify(problem, method=self.method.name, **self.options)
        _sound(found)
        return found

    def base_fit(self) -> Estimate:
        """Return the reference estimate of the other checks, computed once for each method and options."""
        key = (self.method.name, repr(sorted(self.options.items())), id(self.method.function))
        if key not in _KNOWN_FITS:
            _KNOWN_FITS.clear()  # fits of the previous method
            _KNOWN_FITS[key] = self.fit(self.arm().problem(threads=2))
        return _KNOWN_FITS[key]

    def may_refuse(self, problem: Callable[[], Problem]) -> Estimate | None:
        """Return the estimate, or None if the method refuses the problem with an error of one sentence."""
        try:
            return self.fit(problem())
        except ContractError:
            raise
        except DynidError as error:
            text = str(error)
            if not text or "\n" in text or len(text) > LONGEST_MESSAGE:
                raise ContractError(f"the error message is not one sentence of at most {LONGEST_MESSAGE} characters: "
                                    f"{text[:200]!r}") from error
            return None


_KNOWN_FITS: dict[tuple[str, str, int], Estimate] = {}


def _sound(estimate: Estimate) -> None:
    """Check that values are finite, and standard errors finite exactly where a parameter is marked as identified."""
    for name, value, std, identified in zip(estimate.names, estimate.values, estimate.std, estimate.identified,
                                            strict=True):
        if not np.isfinite(value):
            raise ContractError(f"the value of {name} is {value}")
        if identified and not np.isfinite(std):
            raise ContractError(f"{name} is marked as identified, but its standard error is {std}")
    if estimate.theta is not None:
        if not np.all(np.isfinite(estimate.theta)):
            raise ContractError("the standard parameters of the estimate are not finite")
        reduced, scale = estimate.base.reduce(estimate.theta), np.abs(estimate.values).max()
        if not np.allclose(reduced, estimate.values, rtol=1e-6, atol=1e-6 * scale):
            raise ContractError("the base parameters of the standard parameters are not the estimated values")


def _same(first: Estimate, second: Estimate, what: str, tolerance: float, factor: Array | float = 1.0) -> None:
    """Check that two estimates agree in values, in standard errors, and in which parameters are identified.

    Args:
        first: reference estimate.
        second: other estimate, whose values are divided by `factor`.
        what: difference between the two runs, for the message.
        tolerance: largest difference of a value, in standard errors.
        factor: (base,), ratio of the parameter units of the second estimate to those of the first.
    """
    if first.names != second.names or not np.array_equal(first.identified, second.identified):
        raise ContractError(f"the method identifies other parameters {what}")
    std = np.where(first.identified, first.std, 1.0)
    values = np.where(first.identified, np.abs(second.values / factor - first.values) / std, 0.0)
    errors = np.where(first.identified, np.abs(second.std / factor / std - 1.0), 0.0)
    for name, value, error in zip(first.names, values, errors, strict=True):
        if value > tolerance:
            raise ContractError(f"the value of {name} changes by {value:.3g} standard errors {what}; at most "
                                f"{tolerance:g} are allowed")
        if error > ERROR_OF_ERROR:
            raise ContractError(f"the standard error of {name} changes by {100 * error:.3g} % {what}; at most "
                                f"{100 * ERROR_OF_ERROR:g} % are allowed")


def refuses_unknown_options(trial: MethodUnderTest) -> None:
    """An option that the method does not have is refused by name."""
    try:
        identify(trial.arm().problem(), method=trial.method.name, **{**trial.options, "no_such_option": 1})
    except DynidError as error:
        if "no_such_option" not in str(error):
            raise ContractError(f"the error message does not name the option: {error}") from error
        return
    raise ContractError("the option 'no_such_option' is accepted without a message")


def repeats(trial: MethodUnderTest) -> None:
    """The same problem gives the same result twice, to the last digit, and the method does not change the problem."""
    problem = trial.arm().problem(threads=2)
    before = [[np.array(x) for x in (log.q, log.dq, log.ddq, log.tau)] for log in problem.data]
    found, first = trial.fit(problem), trial.base_fit()
    for log, arrays in zip(problem.data, before, strict=True):
        if not all(np.array_equal(x, y) for x, y in zip((log.q, log.dq, log.ddq, log.tau), arrays, strict=True)):
            raise ContractError(f"the method changes the samples of {log.source}")
    if not np.array_equal(found.values, first.values) or not np.array_equal(found.covariance, first.covariance):
        raise ContractError("the method gives another result when it is called again with the same problem")


def fits_the_data(trial: MethodUnderTest) -> None:
    """The estimate explains more than half of the torque variance of the data it was computed from."""
    share = trial.base_fit().score(trial.arm().samples)
    if not share > 0.5:
        raise ContractError(f"{100 * share:.3g} % of the torque variance is explained on the fitted data; more than "
                            "50 % is required")


def any_order_of_logs(trial: MethodUnderTest) -> None:
    """The result does not depend on the order of logs. Exempt: methods with "order" in depends_on."""
    other = trial.fit(trial.arm().reordered((1, 0)).problem())
    _same(trial.base_fit(), other, "when the order of the logs changes", ROUNDING)


def any_unit_of_torque(trial: MethodUnderTest) -> None:
    """The result does not depend on the unit of torque or mass. Exempt: methods with "units" in depends_on."""
    _in_other_units(trial, f"in a unit of torque of 1/{FORCE:g} N m", force=FORCE)


def any_unit_of_length(trial: MethodUnderTest) -> None:
    """The result does not depend on the unit of length. Exempt: methods with "units" in depends_on."""
    _in_other_units(trial, f"in a unit of length of 1/{LENGTH:g} m", length=LENGTH)


def _in_other_units(trial: MethodUnderTest, what: str, **units: float) -> None:
    found = trial.fit(trial.arm(**units).problem(threads=2))
    _same(trial.base_fit(), found, what, SOLVER, np.array([_factor(unit, **units) for unit in found.base.units]))


def _factor(unit: str, length: float = 1.0, force: float = 1.0) -> float:
    """Return the factor that converts a number from `unit` to the scaled units of the test."""
    metres = 0 if unit == "kg" else 1 if unit == "kg m" else 2  # 2: exponent of kg m^2, and of all torques
    return force * length ** metres


def any_number_of_threads(trial: MethodUnderTest) -> None:
    """The result is the same with one and with two threads."""
    _same(trial.base_fit(), trial.fit(trial.arm().problem(threads=1)), "with one thread instead of two", ROUNDING)


def any_blocks(trial: MethodUnderTest) -> None:
    """Values do not depend on the boundaries of the blocks of time. Exempt: methods with "blocks" in needs."""
    first, other = trial.base_fit(), trial.fit(trial.arm().problem(blocks=7))
    std = np.where(first.identified, first.std, 1.0)
    worst = np.max(np.where(first.identified, np.abs(other.values - first.values) / std, 0.0))
    if worst > ROUNDING:
        raise ContractError(f"values change by {worst:.3g} standard errors with 7 blocks of time instead of 10; at "
                            f"most {ROUNDING:g} are allowed")


def from_a_saved_factor(trial: MethodUnderTest) -> None:
    """A saved regression without data gives the same values, or is refused by methods that need data or an excerpt."""
    problem = trial.arm().problem()
    with tempfile.TemporaryDirectory() as folder:
        problem.regression.save(Path(folder, "factor.npz"))
        regression = Regression.load(Path(folder, "factor.npz"), problem.model)
    alone = Problem(problem.model, regression, nominal=problem.nominal)
    if trial.method.needs & {"data", "excerpt"}:
        try:
            identify(alone, method=trial.method.name, **trial.options)
        except DynidError:
            return
        raise ContractError("the method needs the samples, but accepts a saved regression without samples")
    first, found = trial.base_fit(), trial.fit(alone)
    worst = np.max(np.abs(found.values - first.values) / np.where(first.identified, first.std, np.inf))
    if worst > ROUNDING:
        raise ContractError(f"values from a saved factor differ by {worst:.3g} standard errors; at most {ROUNDING:g} "
                            "are allowed")


def saves_and_loads(trial: MethodUnderTest) -> None:
    """An estimate that is saved and loaded again is unchanged."""
    first = trial.base_fit()
    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder, "estimate.npz"))
        back = Estimate.load(Path(folder, "estimate.npz"), trial.arm().model)
    same = all(np.array_equal(getattr(first, name), getattr(back, name), equal_nan=name == "covariance")
               for name in ("names", "values", "covariance", "identified", "std"))
    # Estimates without standard parameters are compared by their base values.
    if not same or back.method != first.method or not np.array_equal(first.full, back.full):
        raise ContractError("a saved estimate changes when it is loaded")


def still_joint(trial: MethodUnderTest) -> None:
    """For a joint at rest, the method raises an error of one sentence or returns its friction as not identified."""
    found = trial.may_refuse(lambda: trial.arm(still=True).problem())
    if found is not None and "prior" not in trial.method.depends_on:
        known = [name for name in ("Fv2", "Fc2") if name in found.names and found.identified[found.names.index(name)]]
        if known:
            raise ContractError(f"{' and '.join(known)} of a joint that does not move are marked as identified")


@dataclass(frozen=True)
class ContractCheck:
    """One check of the contract.

    Attributes:
        run: raises `ContractError` if the method violates it.
        unless: tags of a method, in `needs` or `depends_on`, for which the check is skipped.
    """

    run: Callable[[MethodUnderTest], None]
    unless: frozenset[str] = frozenset()

    @property
    def about(self) -> str:
        """The requirement that the check tests, in one sentence."""
        return (self.run.__doc__ or "").strip()

    def applies(self, method: Method) -> bool:
        """Whether the check applies to a method, which depends on the method's tags."""
        return not self.unless & (method.needs | method.depends_on)


def _refusable(about: str, problem: Callable[[MethodUnderTest], Problem]) -> ContractCheck:
    """Return a check of difficult data: the method returns a result or raises an error of one sentence."""
    def run(trial: MethodUnderTest) -> None:
        trial.may_refuse(lambda: problem(trial))

    run.__doc__ = f"For {about}, the method returns a result or raises an error of one sentence."
    return ContractCheck(run)


CHECKS: dict[str, ContractCheck] = {
    "refuses-unknown-options": ContractCheck(refuses_unknown_options),
    "repeats": ContractCheck(repeats),
    "fits-the-data": ContractCheck(fits_the_data),
    "any-order-of-logs": ContractCheck(any_order_of_logs, frozenset({"order"})),
    "any-unit-of-torque": ContractCheck(any_unit_of_torque, frozenset({"units"})),
    "any-unit-of-length": ContractCheck(any_unit_of_length, frozenset({"units"})),
    "any-number-of-threads": ContractCheck(any_number_of_threads),
    "any-blocks": ContractCheck(any_blocks, frozenset({"blocks"})),
    "from-a-saved-factor": ContractCheck(from_a_saved_factor),
    "saves-and-loads": ContractCheck(saves_and_loads),
    "still-joint": ContractCheck(still_joint),
    "one-joint": _refusable("a robot with one joint", lambda trial: trial.arm(joints=1).problem()),
    "one-block": _refusable("data in one block of time", lambda trial: trial.arm().problem(blocks=1)),
    "one-log": _refusable("one log", lambda trial: trial.arm().reordered((0,)).problem()),
    "constant-torque": _refusable("constant torques, as of a disconnected sensor",
                                  lambda trial: trial.arm().with_torques(0.0, 1.0).problem()),
    "no-noise": _refusable("torques without noise", lambda trial: noise_free_arm(trial.shape).problem()),
}
