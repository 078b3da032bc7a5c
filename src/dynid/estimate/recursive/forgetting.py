"""Forgetting of old data in recursive least squares.

The method `plan` of each form returns the operation of the kernel at each sample; periodic operations are in
`watchers`. By name: "none", "exponential", "start-up", "vector", "directional", "variable", "bounded", "prior" and
"evidence"; a number alone is an exponential factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate.recursive.kernels import DIRECTIONAL, NONE, VARIABLE, VECTOR
from dynid.regression import BaseParameters


@dataclass(frozen=True)
class Forgetting:
    """Base class of the forms of forgetting in recursive least squares. name: its name in options. scalar: whether all
    information decreases by one known factor per sample. steady: whether the plan is equal for all samples."""

    name: ClassVar[str]
    scalar: ClassVar[bool] = True
    steady: ClassVar[bool] = True

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        """Return mode and factors of the kernel for samples `done` to done + samples; default: no forgetting."""
        return NONE, np.ones(samples)


_LEAST_FACTOR = 0.5  # smallest factor: each sample has half the weight of the next one


def _check(factor: float) -> None:
    if not (isinstance(factor, int | float) and _LEAST_FACTOR <= factor <= 1.0):
        raise ModelError(f"a forgetting factor must be between {_LEAST_FACTOR:g} and 1, got {factor!r}",
                         code="bad-forgetting-factor")


def _check_positive(value: float, what: str) -> None:
    if not (isinstance(value, int | float) and value > 0.0):
        raise ModelError(f"{what} must be above zero, got {value!r}")


@dataclass(frozen=True)
class NoForgetting(Forgetting):
    """No forgetting: every sample has the same weight."""

    name: ClassVar[str] = "none"


@dataclass(frozen=True)
class Exponential(Forgetting):
    """Exponential forgetting: the covariance P is divided by `factor` at each sample (Ardiani, eq. 4.10).

    Without excitation P grows without bound.
    """

    factor: float = 0.999
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        _check(self.factor)

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        return NONE, np.full(samples, self.factor)


@dataclass(frozen=True)
class StartUp(Forgetting):
    """Exponential forgetting by the factor lambda(k) = rate lambda(k - 1) + (1 - rate) factor, lambda(0) = start.

    See Ardiani, eq. 4.11. The first samples, which contain the transient of the filter, are forgotten sooner.
    """

    factor: float = 0.999
    start: float = 0.95
    rate: float = 0.99
    name: ClassVar[str] = "start-up"
    steady: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for value in (self.factor, self.start, self.rate):
            _check(value)

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        k = np.arange(done + 1, done + samples + 1)
        return NONE, np.asarray(self.factor + (self.start - self.factor) * self.rate ** k, dtype=float)


@dataclass(frozen=True)
class VectorForgetting(Forgetting):
    """Forgetting with one factor per base parameter: the covariance P becomes L^-1 P L^-1 after each sample, with the
    diagonal matrix L of the factors (Ardiani, eq. 4.12).

    `factors` are given by the name of a base parameter or number of a joint, `others` applies to all other parameters.
    The factors act on both sides of P: equal factors have the effect of Exponential(factor ** 2). A stream without a
    prior starts at zero with a standard deviation of 10 for each base parameter, as in Ardiani. As text:
    "vector:0.9995,1=0.999,Fc2=0.99".
    """

    factors: Mapping[str, float] | None = None
    others: float = 0.9995
    name: ClassVar[str] = "vector"
    scalar: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for value in (self.others, *(self.factors or {}).values()):
            _check(value)

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        found = np.full(len(base), self.others)
        owners = [str(base.parameters.items[c].owner + 1) for c in base.independent]
        for name, value in (self.factors or {}).items():
            places = [k for k, (own, joint) in enumerate(zip(base.names, owners, strict=True)) if name in (own, joint)]
            if not places:
                raise ModelError(f"vector forgetting contains '{name}', which is neither a base parameter nor the "
                                 "number of a joint", code="unknown-forgetting-name")
            found[places] = value
        return VECTOR, found


@dataclass(frozen=True)
class Directional(Exponential):
    """Directional forgetting: H := H - (1 - factor) H x x'H / x'H x (Cao and Schwartz).

    Information is forgotten only along a new row x. Directions that a motion does not excite keep their information.
    """

    name: ClassVar[str] = "directional"
    scalar: ClassVar[bool] = False

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        return DIRECTIONAL, np.full(samples, self.factor)


@dataclass(frozen=True)
class Variable(Forgetting):
    """Variable forgetting: the factor is 1 - e^2 / ((1 + x P x') memory noise^2), at least `least`.

    e is the prediction error of a row x, P the covariance before it (Fortescue and others 1981). A well predicted
    sample causes no forgetting. memory: length, samples.
    """

    memory: float = 1000.0
    least: float = 0.98
    name: ClassVar[str] = "variable"
    scalar: ClassVar[bool] = False  # the factors depend on the data

    def __post_init__(self) -> None:
        _check(self.least)
        _check_positive(self.memory, "the memory of variable forgetting")

    def plan(self, base: BaseParameters, done: int, samples: int) -> tuple[int, Array]:
        return VARIABLE, np.array([self.least, self.memory, 0.0])


@dataclass(frozen=True)
class Bounded(Exponential):
    """Exponential forgetting that is suspended while a standard error is above `limit` times its initial scale.

    The scale is the standard deviation of the prior, or the value that alone would explain the torques.
    """

    limit: float = 1.0
    name: ClassVar[str] = "bounded"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive(self.limit, "the limit of bounded forgetting")


@dataclass(frozen=True)
class TowardsPrior(Forgetting):
    """No forgetting while the innovations are stationary, and a restart after they change.

    The restart uses a prior around the current estimate. Its covariance is increased by a change of the size of the
    innovations, but it is never weaker than a given prior. A change is detected if the mean squared normalised
    innovation over `window` samples, relative to its long-term mean, is above `threshold` and above its own variation.
    """

    window: int = 25
    threshold: float = 4.0
    name: ClassVar[str] = "prior"

    def __post_init__(self) -> None:
        _check_positive(self.window, "the window of the test")
        _check_positive(self.threshold, "the threshold of the test")


@dataclass(frozen=True)
class Evidence(Forgetting):
    """Choice of the memory length, among `memories` (samples), with the largest predictive likelihood of recent data.

    One triangular factor is updated for each memory length. After every block of samples, its log likelihood is added
    to the score of each length, and earlier blocks are forgotten over `recent` blocks. The longest memory that is not
    clearly worse than the best is used.
    """

    memories: tuple[float, ...] = (128.0, 512.0, 2048.0, 8192.0, math.inf)
    recent: float = 8.0
    name: ClassVar[str] = "evidence"

    def __post_init__(self) -> None:
        for value in (*self.memories, self.recent):
            _check_positive(value, "a memory")


_FORGETTING_BY_NAME: dict[str, Any] = {rule.name: rule for rule in (NoForgetting, Exponential, StartUp,
                                                                    VectorForgetting, Directional,
                                                   Variable, Bounded, TowardsPrior, Evidence)}
DEFAULT = TowardsPrior()


def parse_forgetting(given: Forgetting | str | float | None) -> Forgetting:
    """Return the form of forgetting from user input: one of the classes, None, a factor, or a name with numbers after
    a colon in the order of its fields: "exponential:0.9995", "start-up:0.999,0.95". Factors of single joints or base
    parameters are NAME=FACTOR: "vector:0.9995,1=0.999,Fc2=0.99"."""
    if given is None:
        return NoForgetting()
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Exponential(float(given)) if given != 1.0 else NoForgetting()
    if isinstance(given, bool) or not (isinstance(given, str) or hasattr(given, "plan")):
        raise ModelError(f"forgetting must be a factor, a name or a forgetting object, got {given!r}")
    if not isinstance(given, str):
        return given
    name, _, numbers = (f"exponential:{given}" if given[:1].isdigit() else given).partition(":")
    if name not in _FORGETTING_BY_NAME:
        raise ModelError(f"there is no kind of forgetting '{name}'; there are {', '.join(_FORGETTING_BY_NAME)}",
                         code="unknown-forgetting")
    rule = _FORGETTING_BY_NAME[name]
    parts = [text.partition("=") for text in numbers.split(",") if text.strip()]
    try:
        values = [float(text) for text, equals, _ in parts if not equals]
        named = {text.strip(): float(value) for text, equals, value in parts if equals}
    except ValueError:
        raise ModelError(f"forgetting '{given}' has a value after its colon that is not a number",
                         code="bad-forgetting-factor") from None
    places = [one.name for one in fields(rule) if one.name not in ("factors", "memories")]
    if len(values) > len(places):
        raise ModelError(f"forgetting '{name}' takes the numbers {', '.join(places) or '(none)'}, got '{numbers}'")
    if named and rule is not VectorForgetting:
        raise ModelError(f"forgetting '{name}' has one factor for all parameters, got '{numbers}'; factors of single "
                         "joints or parameters: 'vector:FACTOR,NAME=FACTOR,...'", code="single-forgetting-factor")
    chosen: Forgetting = rule(**dict(zip(places, values, strict=False)), **({"factors": named} if named else {}))
    return chosen


def to_table(rule: Forgetting) -> dict[str, Any]:
    """Return a form of forgetting as plain data, from which `from_table` restores it."""
    options = {one.name: getattr(rule, one.name) for one in fields(_FORGETTING_BY_NAME[rule.name])}
    return {"name": rule.name, **options}


def from_table(table: Mapping[str, Any]) -> Forgetting:
    """Return the form of forgetting from its `to_table` description."""
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items() if k != "name"}
    chosen: Forgetting = _FORGETTING_BY_NAME[table["name"]](**options)
    return chosen
