"""Every registered method passes every check of the contract, and each check finds the fault it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import dynid
from dynid.errors import DynidError, ModelError
from dynid.estimate import Estimate, Problem, identify, method
from dynid.estimate import problem as registry
from dynid.validate.contract import CHECKS, ContractError, check_method
from dynid.validate.contract.simulated_arm import arm

ROOT = Path(__file__).resolve().parents[2]
METHODS = [name for name in dynid.methods() if name != "equal-power"]  # the example of a page, which has its own test

OPTIONS: dict[str, dict[str, Any]] = {"extract": {"runs": 2}}  # of twenty; a search of values that no body has is long
# Methods that simulate or filter the log at every step of an iteration: most of the time of all checks.
ITERATE = {"cloe", "clie", "ekf", "ukf", "sls", "pc-sls", "didim", "pc-didim", "iv", "pc-iv"}
AMONG_SLOW = {"any-order-of-logs", "any-unit-of-torque", "any-blocks", "one-block", "one-log", "no-noise",
              "constant-torque"}
# Of these methods, two have the other checks of units, threads, joints and repetition among the quick tests.
QUICK_EXAMPLES = {"didim", "iv"}
AMONG_SLOW_OF_OTHERS = {"any-unit-of-length", "any-number-of-threads", "still-joint", "one-joint", "repeats"}


def is_slow(name: str, check: str) -> bool:
    """Whether a check is among the slow tests: checks of methods that iterate, and searches that find nothing."""
    if name in ITERATE:
        return check in AMONG_SLOW or (check in AMONG_SLOW_OF_OTHERS and name not in QUICK_EXAMPLES)
    return (name, check) in {("extract", "constant-torque"), ("auto", "no-noise")}


def cases() -> Iterator[Any]:
    """Every method with every check that applies to it; most checks of those that iterate are among the slow tests."""
    for name in METHODS:
        for check in CHECKS:
            if CHECKS[check].applies(dynid.methods()[name]):
                yield pytest.param(name, check, marks=[pytest.mark.slow] * is_slow(name, check))


@pytest.mark.parametrize(("name", "check"), [*cases()])
def test_contract(name: str, check: str) -> None:
    check_method(name, checks=[check], **OPTIONS.get(name, {}))


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Registers methods by the name 'tried' and forgets the last one."""
    def one(function: Callable[..., Estimate], **tags: Any) -> None:
        registry._METHODS.pop("tried", None)
        method("tried", "on trial", **tags)(function)
    yield one
    registry._METHODS.pop("tried", None)


def wls(problem: Problem) -> Estimate:
    return identify(problem, method="wls")


def with_values(found: Estimate, values: np.ndarray) -> Estimate:
    return replace(found, values=values)


def forgets_the_first_log(problem: Problem) -> Estimate:
    return wls(Problem.from_model(problem.model, problem.data[-1]) if problem.data else problem)


def absolute_size(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, found.values + 1e-2)


def counts_threads(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, found.values * (problem.threads or 1))


def counts_blocks(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, found.values * (1 + 1e-3 * len(problem.regression.blocks)))


def wants_data(problem: Problem) -> Estimate:
    return wls(problem) if problem.data else with_values(wls(problem), 0.0 * wls(problem).values)


def random(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, found.values + 1e-9 * np.random.default_rng().normal(size=len(found.values)))


def all_identified(problem: Problem) -> Estimate:
    found = wls(problem)
    return replace(found, identified=np.ones_like(found.identified), covariance=np.where(
        np.isfinite(found.covariance), found.covariance, 1.0))


def not_a_number(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, np.full_like(found.values, np.nan)) if problem.model.dof == 1 else found


def divides_by_the_residual(problem: Problem) -> Estimate:
    found = wls(problem)
    if found.diagnostics.relative_error < 1e-6:
        raise ZeroDivisionError("no residual")
    return found


def two_lines(problem: Problem) -> Estimate:
    if len(problem.regression.blocks) == 1:
        raise DynidError("one block\nis not enough")
    return wls(problem)


def nothing(problem: Problem) -> Estimate:
    found = wls(problem)
    return with_values(found, 0.0 * found.values)


def needs_two_logs(problem: Problem) -> Estimate:
    return [wls(problem)][2 - len(problem.data) if problem.data else 0]


def untrue_theta(problem: Problem) -> Estimate:
    found = wls(problem)
    return replace(found, theta=np.zeros(len(problem.model.parameters)))


FAULTS: list[tuple[Callable[..., Estimate], str]] = [
    (forgets_the_first_log, "any-order-of-logs"), (absolute_size, "any-unit-of-torque"),
    (absolute_size, "any-unit-of-length"), (counts_threads, "any-number-of-threads"), (counts_blocks, "any-blocks"),
    (wants_data, "from-a-saved-factor"), (random, "repeats"), (all_identified, "still-joint"),
    (not_a_number, "one-joint"), (divides_by_the_residual, "no-noise"), (two_lines, "one-block"),
    (nothing, "fits-the-data"), (needs_two_logs, "one-log"), (untrue_theta, "saves-and-loads")]


@pytest.mark.parametrize(("function", "check"), FAULTS)
def test_each_check_finds_its_fault(function: Callable[..., Estimate], check: str,
                                    register: Callable[..., None]) -> None:
    register(function)
    with refused(ContractError, "contract", "'tried'", f"'{check}'") as raised:
        check_method(function, checks=[check])
    assert "\n" not in str(raised.value).replace("one block\\nis", "")


def test_a_method_that_changes_its_samples_is_found(register: Callable[..., None]) -> None:
    def changes(problem: Problem) -> Estimate:
        problem.data[0].tau[0] *= 1.0 + 1e-15
        return wls(problem)

    arm.cache_clear()  # its samples are changed below
    register(changes)
    try:
        with refused(ContractError, "contract", "'repeats'", "samples"):
            check_method(changes, checks=["repeats"])
    finally:
        arm.cache_clear()


def test_a_declared_dependence_is_not_asked(register: Callable[..., None]) -> None:
    register(forgets_the_first_log, needs={"data"}, depends_on={"order"})
    check_method("tried", checks=["any-order-of-logs"])


def test_options_go_to_the_method() -> None:
    check_method("irls", checks=["fits-the-data"], loss="huber")
    with refused(ContractError, "contract", "'irls'", "'fits-the-data'", "loss"):
        check_method("irls", checks=["fits-the-data"], loss="hubert")


def test_what_is_no_method_or_no_check() -> None:
    with refused(ModelError, "bad-model", "'wls_'"):
        check_method("wls_")
    with refused(ModelError, "bad-model", "'nothing'"):
        check_method(nothing)
    with refused(ModelError, "bad-model", "'order'", "refuses-unknown-options"):
        check_method("wls", checks=["order"])


def test_every_check_is_documented() -> None:
    page = (ROOT / "docs" / "methods.md").read_text()
    assert all(f"`{name}`" in page and check.about for name, check in CHECKS.items())
