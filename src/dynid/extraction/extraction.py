"""Input and result of an extraction: known combinations of parameters, and standard parameters that satisfy them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.consistency import Violation
from dynid.errors import ModelError
from dynid.extraction.bounds import BODY, BODY_UNITS, Bounds
from dynid.extraction.conditions import Conditions
from dynid.files import read_small, toml_file
from dynid.findings import VIOLATION
from dynid.model import LinearModel
from dynid.output_fields import array_of, output_fields
from dynid.regression import BaseParameters, Stacked
from dynid.regression.base import parsed

Reason = Literal["feasible", "inertia", "centres", "both", "other"]
_INERTIA_VIOLATIONS = {"mass", "not-positive-definite", "triangle"}
_CENTRE_VIOLATIONS = {"centre-of-mass"}
INTERVAL_TOLERANCE = 1e-9  # relative tolerance of an interval
_DEPENDENT_ROW = 1e-9  # share of the norm of a row: with a smaller independent part, the row is linearly dependent
MAX_BASE_VALUE = 1e9  # largest factor and value, SI units: larger than in any robot, and far from overflow


@dataclass(frozen=True, eq=False)
class ConeAnswer:
    """Result of a cone programme: whether a physically consistent robot has given base values, and the nearest robot.

    Attributes:
        possible: whether a physically consistent robot has the base values.
        distance: Euclidean distance of the base values from the nearest physically consistent base values.
        theta: standard parameters of the nearest consistent robot (parameters,), or None.
        seconds: computing time, s.
        sentence: reason why no robot has the base values; empty if a consistent robot exists.
    """

    possible: bool
    distance: float
    theta: Array | None
    seconds: float
    sentence: str = ""

    @output_fields(possible=bool, distance=float | None, milliseconds=float, sentence=str)
    def to_dict(self) -> dict[str, Any]:
        """Return the result of the cone programme as plain data for JSON."""
        return {"possible": self.possible, "distance": self.distance if np.isfinite(self.distance) else None,
                "milliseconds": 1e3 * self.seconds, "sentence": self.sentence}


@dataclass(frozen=True, eq=False)
class Extraction:
    """Result of the extraction of standard parameters from base parameters.

    Attributes:
        theta: extracted standard parameters (parameters,).
        given: base values that theta should have.
        bounds, loss, form: bounds, loss function and form of the search.
        violations: violations of physical consistency and of contours.
        outside: violated bounds, as sentences.
        search: name of the search.
        run, runs: number of the best run, and number of runs.
        evaluations: number of candidates tried.
        seconds: computing time, s.
        cones: result of the cone programme.
        name: name in tables.
        moved: distance by which the base values were moved to the nearest physically consistent base values.
    """

    name: str
    theta: Array
    given: BaseValues
    bounds: Bounds
    loss: str
    form: str
    search: str
    violations: tuple[Violation, ...]
    outside: tuple[str, ...]
    run: int
    runs: int
    evaluations: int
    seconds: float
    cones: ConeAnswer | None = None
    moved: float = 0.0

    @property
    def distance(self) -> float:
        """Euclidean distance of the base values of the extracted parameters from the given base values."""
        return self.given.distance(self.theta)

    @property
    def relative_distance(self) -> float:
        """Distance from the given base values, relative to their norm."""
        return self.distance / max(float(np.linalg.norm(self.given.values)), 1e-300)

    @property
    def feasible(self) -> bool:
        """Whether the robot is physically consistent, with centres of mass inside their links."""
        return not self.violations

    @property
    def reason(self) -> Reason:
        """Reason why the parameters are not physically consistent: inertia, centres of mass outside their links, or
        both."""
        return violation_reason(self.violations)

    def parameters(self) -> dict[str, float]:
        """Extracted standard parameters by name."""
        return {name: float(value) for name, value in zip(self.given.model.parameters.names, self.theta, strict=True)}

    @output_fields(name=str, bounds=str, loss=str, form=str, search=str, feasible=bool, reason=str,
                   violations=array_of(VIOLATION), outside_bounds=list[str], base_distance=float | None,
                   base_moved=float | None, base_relative_distance=float | None, run=int, runs=int, evaluations=int,
                   elapsed_s=float, cones=ConeAnswer | None, parameters=dict[str, float])
    def to_dict(self) -> dict[str, Any]:
        """Return the extraction as plain data for JSON."""
        return {"name": self.name, "bounds": self.bounds.name, "loss": self.loss, "form": self.form,
                "search": self.search, "feasible": self.feasible, "reason": self.reason,
                "violations": [dict(vars(one)) for one in self.violations], "outside_bounds": list(self.outside),
                "base_distance": self.distance, "base_moved": self.moved,
                "base_relative_distance": self.relative_distance, "run": self.run, "runs": self.runs,
                "evaluations": self.evaluations, "elapsed_s": self.seconds,
                "cones": None if self.cones is None else self.cones.to_dict(), "parameters": self.parameters()}


def violation_reason(violations: tuple[Violation, ...]) -> Reason:
    """Return the reason why parameters are not physically consistent, from the kinds of their violations."""
    kinds = {one.kind for one in violations}
    if not kinds:
        return "feasible"
    if kinds & _INERTIA_VIOLATIONS:
        return "both" if kinds & _CENTRE_VIOLATIONS else "inertia"
    return "centres" if kinds & _CENTRE_VIOLATIONS else "other"


def outside_bounds(conditions: Conditions, theta: Array) -> tuple[str, ...]:
    """Return a sentence on each bound that a full parameter vector theta (parameters,) violates."""
    central, _ = conditions.central(theta)
    low, high, room = conditions.bounds.low, conditions.bounds.high, INTERVAL_TOLERANCE * conditions.scale
    found = []
    for b, k in np.argwhere((central < low - room) | (central > high + room)):
        body = list(conditions.consistency.bodies)[b]
        found.append(f"{BODY[k]} of link '{body}' is {central[b, k]:.4g} {BODY_UNITS[k]}, outside {low[b, k]:g} to "
                     f"{high[b, k]:g}")
    least, most, width = conditions.rest_box
    for k in np.flatnonzero((theta[conditions.rest] < least - INTERVAL_TOLERANCE * width)
                            | (theta[conditions.rest] > most + INTERVAL_TOLERANCE * width)):
        item = conditions.consistency.parameters.items[conditions.rest[k]]
        found.append(f"{item.name} is {theta[conditions.rest[k]]:.4g} {item.unit}, outside {least[k]:g} to {most[k]:g}")
    return tuple(found)


class Identified(Protocol):
    """Protocol of an estimate: values of base parameters, and the mask of identified base parameters."""

    @property
    def model(self) -> LinearModel: ...
    @property
    def base(self) -> BaseParameters: ...
    @property
    def values(self) -> Array: ...
    @property
    def identified(self) -> Bools: ...


@dataclass(frozen=True, eq=False)
class BaseValues:
    """Known linear combinations of standard parameters theta: matrix theta = values.

    Attributes:
        model: model that defines the standard parameters.
        matrix, values: coefficients (k, parameters) and values (k,) of the combinations, SI units.
        known: exact values of standard parameters (parameters,), nan for unknown parameters.
        names: name of each combination (k,).
        stacked: QR factor of the data on the same combinations, for the one-step loss (Simionato, eq. 2.29), or None.
    """

    model: LinearModel
    matrix: Array
    values: Array
    known: Array
    names: tuple[str, ...]
    stacked: Stacked | None = None

    def __post_init__(self) -> None:
        rows, width = len(self.values), len(self.model.parameters)
        if self.matrix.shape != (rows, width) or self.known.shape != (width,) or len(self.names) != rows:
            raise ModelError(f"{rows} base values need a matrix of {rows} x {width} coefficients and as many names, "
                             f"got shape {self.matrix.shape} and {len(self.names)} names")
        if not np.isfinite(self.values).all():
            raise ModelError(f"base value '{self.names[int(np.argmin(np.isfinite(self.values)))]}' is not finite")

    @staticmethod
    def from_estimate(estimate: Identified, stacked: Stacked | None = None) -> BaseValues:
        """Return the identified base values of an estimate. `stacked`: QR factor of the estimate's data over all
        joints."""
        shown, base = estimate.identified, estimate.base
        known = np.array([base.known.get(name, np.nan) for name in base.parameters.names])
        names = tuple(name for name, one in zip(base.names, shown, strict=True) if one)
        return BaseValues(estimate.model, base.matrix[shown], estimate.values[shown], known, names,
                          stacked if bool(shown.all()) else None)

    @staticmethod
    def from_base(model: LinearModel, base: BaseParameters, values: Array) -> BaseValues:
        """Return base values from values (base,) of a model's base parameters."""
        known = np.array([base.known.get(name, np.nan) for name in base.parameters.names])
        return BaseValues(model, base.matrix, np.asarray(values, dtype=float), known, base.names)

    @staticmethod
    def from_expressions(model: LinearModel, table: Mapping[str, float]) -> BaseValues:
        """Return base values from a table of independent combinations: {"ZZ1 + 0.25 M2": 0.31}."""
        matrix = np.array([parsed(text, model.parameters) for text in table]).reshape(-1, len(model.parameters))
        values = np.array(list(table.values()), dtype=float)
        for name, row, value in zip(table, matrix, values, strict=True):
            if not (np.all(np.abs(row) <= MAX_BASE_VALUE) and abs(value) <= MAX_BASE_VALUE):
                raise ModelError(f"the combination '{name[:60]}' has a factor or value that is above "
                                 f"{MAX_BASE_VALUE:g} or not a number, which is not plausible; use SI units")
        _refuse_dependent(matrix, tuple(table))
        return BaseValues(model, matrix, values, np.full(len(model.parameters), np.nan), tuple(table))

    @staticmethod
    def load(path: str | Path, model: LinearModel) -> BaseValues:
        """Read base values from a table: CSV with one combination and value per row, TOML with one per entry, or
        parameters.toml."""
        return BaseValues.from_expressions(model, _read_table(Path(path)))

    @property
    def free(self) -> Ints:
        """Indices of the standard parameters without exact values."""
        return np.flatnonzero(np.isnan(self.known))

    def distance(self, theta: Array) -> float:
        """Return the Euclidean distance of the combinations of a full vector (parameters,) from the values."""
        return float(np.linalg.norm(self.matrix @ theta - self.values))


def _refuse_dependent(matrix: Array, names: tuple[str, ...]) -> None:
    """Raise an error for a combination that depends linearly on the combinations before it."""
    basis = np.empty((0, matrix.shape[1]))
    for row, name in zip(matrix / np.linalg.norm(matrix, axis=1)[:, None], names, strict=True):
        rest = row - (basis @ row) @ basis
        rest -= (basis @ rest) @ basis
        size = float(np.linalg.norm(rest))
        if size < _DEPENDENT_ROW:
            raise ModelError(f"the combination '{name}' depends linearly on the combinations before it; remove "
                             "this combination", code="dependent-combination")
        basis = np.vstack([basis, rest / size])


def _read_table(path: Path) -> dict[str, float]:
    if path.suffix.lower() == ".toml":
        return _from_toml(toml_file(path, "table of base values", ModelError), path)
    try:
        text = read_small(path).decode("utf-8")
    except OSError as problem:
        raise ModelError(f"cannot read the table of base values {path}: {problem.strerror}",
                         code="no-such-file") from None
    except UnicodeDecodeError:
        raise ModelError(f"{path} is not a text file; a table of base values is CSV or TOML") from None
    found: dict[str, float] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row if cell.strip()]
        if not cells or cells[0].startswith("#") or (number == 1 and _number(cells[-1]) is None):
            continue
        value = _number(cells[1]) if len(cells) == 2 else None
        if value is None:
            raise ModelError(f"row {number} of {path} must be a combination and its value, such as ZZ1 + 0.25 M2, "
                             f"0.31; the row is '{','.join(row)}'")
        found[cells[0]] = value
    if not found:
        raise ModelError(f"{path} contains no base values; write rows such as ZZ1 + 0.25 M2, 0.31")
    return found


def _from_toml(table: Mapping[str, Any], path: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, entry in table.get("base", table).items():
        expression, value = (entry.get("expression", name), entry.get("value")) if isinstance(entry, dict) else (
            name, entry)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(f"'{name}' in {path} needs a number, or a table with expression and value")
        found[str(expression)] = float(value)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
