"""The contract of methods: a list of checks that every built-in or user-defined method has to pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynid.errors import DynidError, ModelError
from dynid.estimate import Estimate, Method, methods
from dynid.validate.contract.checks import CHECKS, ContractError, MethodUnderTest

__all__ = ["CHECKS", "ContractError", "check_method"]


def check_method(method: str | Callable[..., Estimate], *, checks: Sequence[str] | None = None, **options: Any) -> None:
    """Check that a method fulfils the contract; return without an error if it does.

    The data are two logs of 3 s of a simulated arm with two joints, with noise in positions and torques.

    Args:
        method: a name of `dynid.methods()`, or a function registered with `@dynid.estimate.method`.
        checks: names of the checks to run, in this order; default: all.
        options: options of the method, the same in every check.

    Raises:
        ContractError: a check failed; the message states the method, the check and the reason.

    >>> dynid.check_method("wls", checks=["refuses-unknown-options", "saves-and-loads"])
    """
    found = _registered(method)
    for name in CHECKS if checks is None else checks:
        if name not in CHECKS:
            raise ModelError(f"there is no check '{name}'; there are {', '.join(CHECKS)}")
        if CHECKS[name].applies(found):
            _run(name, found, options)


def _registered(method: str | Callable[..., Estimate]) -> Method:
    """Return the registered method of a name or a function."""
    known = methods()
    if isinstance(method, str) and method in known:
        return known[method]
    for one in known.values():
        if one.function is method:
            return one
    name = method if isinstance(method, str) else getattr(method, "__name__", repr(method))
    raise ModelError(f"there is no method '{name}'",
                     "register the function by @dynid.estimate.method(\"name\", \"what it is\") first")


def _run(name: str, method: Method, options: dict[str, Any]) -> None:
    """Run one check of the contract and convert any exception into a `ContractError` that names method and check."""
    start = f"method '{method.name}' fails the check '{name}'"
    try:
        CHECKS[name].run(MethodUnderTest(method, options))
    except ContractError as error:
        raise ContractError(f"{start}: {error}") from error.__cause__
    except DynidError as error:
        raise ContractError(f"{start}: the method refuses data that determine the parameters: {error}") from error
    except Exception as error:
        raise ContractError(f"{start}: the method raises {type(error).__name__}: {error}") from error
