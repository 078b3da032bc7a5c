"""Predicted and measured torques of each joint, on the log of the identification or on another log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dynid import html_tables
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.model import complete
from dynid.output_fields import output_fields
from dynid.plain import PlainFields, finite, plain
from dynid.recording import Samples
from dynid.regression.equations import Equations, Piece, Rows
from dynid.regression.residual_series import Residuals, residuals, torque_sums
from dynid.threads import one_blas_thread
from dynid.validate.equation_counts import Counted, MovingErrors, counted, moving_errors
from dynid.validate.sampled_rows import RowChoice

_CONSTANT_TORQUE_SHARE = 1e-24  # share of a torque's power below which its variation is a rounding error


@dataclass(frozen=True)
class TorqueFit(PlainFields, also=("fitness",)):
    """Fit of the torques of one joint, or of all. Values are None if the data do not define them.

    Attributes:
        name: name of the joint.
        rows: number of equations.
        relative_error: 100 |tau - tau_hat| / |tau|, percent.
        rms: RMS of the residual, N m or N (Ardiani, eq. 1.46).
        r2: explained share of the torque's variance.
        slope: measured over predicted torque, by least squares.
        torque_rms: RMS of the measured torque, N m or N.
        fitness: 100 (1 - |tau - tau_hat| / |tau - mean|), percent, one minus the normalised root-mean-square error
            (Ardiani, table E.4).
    """

    name: str
    rows: int
    relative_error: float | None
    rms: float | None
    r2: float | None
    slope: float | None
    torque_rms: float | None

    @property
    def fitness(self) -> float | None:
        return None if self.r2 is None else 100.0 * (1.0 - math.sqrt(max(1.0 - self.r2, 0.0)))


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Predictions of an estimate on some samples.

    Attributes:
        estimate, samples: the estimate and the logs.
        joints, total: fits of each joint and of all together, in the rows that the regression uses; `moving` includes
            all rows in which a joint moves.
        series: residuals of each log.
        entries: regressor and torques in the rows that `residual_tests` uses, if requested.
    """

    estimate: Estimate
    samples: tuple[Samples, ...]
    joints: tuple[TorqueFit, ...]
    total: TorqueFit
    series: tuple[Residuals, ...]
    entries: Mapping[Piece, Array] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<Reconstruction of the torques of {self.source} by {self.estimate.method}>"

    def _repr_html_(self) -> str:
        def cell(value: float | None, digits: str = ".3g") -> str:
            return "-" if value is None else format(value, digits)
        rows = [(one.name, cell(one.relative_error), cell(one.rms), cell(one.r2, ".4f"), f"{one.rows:,}")
                for one in (self.total, *self.joints)]
        return html_tables.card(repr(self)[1:-1], html_tables.table(
            ("joint", "relative error, %", "RMS, N m or N", "R2", "equations"), rows))

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(part.source for part in self.samples)

    @property
    def source(self) -> str:
        """Names of the logs in one line."""
        return ", ".join(self.sources)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(fit.name for fit in self.joints)

    @property
    def relative_error(self) -> float:
        """Relative error over all joints, percent; nan without measured torques."""
        return np.nan if self.total.relative_error is None else self.total.relative_error

    @property
    def relative_error_per_joint(self) -> tuple[float, ...]:
        """Relative error of each joint, percent; nan for a joint without torque or rows."""
        return tuple(np.nan if fit.relative_error is None else fit.relative_error for fit in self.joints)

    @property
    def counted(self) -> Counted:
        """Number and kind of the equations over which errors are computed."""
        return counted(self.samples, self.total.rows)

    @cached_property
    def moving(self) -> MovingErrors:
        """Errors over all rows in which a joint moves, with low-passed and measured torques; computed on demand."""
        return moving_errors(self.estimate, self.samples, self.names)

    @property
    def counted_text(self) -> str:
        """Number of equations of the errors, and the error over all moving rows, as text."""
        return "; ".join(words for words in (self.counted.text, self.moving.text) if words)

    @output_fields(TorqueFit, without=("name",), source=str, method=str, relative_error_per_joint=list[float | None],
                   counted=Counted, moving=MovingErrors, joints=list[TorqueFit])
    def to_dict(self) -> dict[str, Any]:
        total = {key: value for key, value in self.total.to_dict().items() if key != "name"}
        return plain({"source": self.source, "method": self.estimate.method, **total,
                      "relative_error_per_joint": self.relative_error_per_joint, "counted": self.counted,
                      "moving": self.moving, "joints": self.joints})


def reconstruct(estimate: Estimate, samples: Samples | Sequence[Samples], *, for_tests: bool = False,
                equations: Equations | None = None) -> Reconstruction:
    """Predict the torques of one or several logs with an estimate, in the rows that a regression would use.

    With `for_tests`, the result keeps the part of the regressor that `residual_tests` needs. `equations` are the torque
    equations of these samples, if they were computed before.
    """
    parts = (samples,) if isinstance(samples, Samples) else tuple(samples)
    for part in parts:
        if part.dof != estimate.model.dof:
            raise ModelError(f"{part.source} has {part.dof} joints, but the estimate belongs to a model with "
                             f"{estimate.model.dof}", code="joints-do-not-fit")
    parts = tuple(part for part in parts if any(start < stop for start, stop in part.segments))
    if not parts:
        raise NotPossibleError("there are no samples to compare the estimate with", code="no-samples")
    equations = equations if equations is not None and equations.logs == parts else None
    choice, entries = RowChoice.from_logs(estimate, parts, equations), dict[Piece, Array]()

    def keep(piece: Piece, rows: Rows) -> None:
        entries[piece] = rows.entries[:, choice.taken[piece]]

    kept = for_tests and choice.whole
    with one_blas_thread():
        series = residuals(choice.equations, estimate.values, seen=keep if kept else None)
    sums = np.sum([torque_sums(part) for part in series], axis=0)  # (dof, 6)
    names = joint_names(estimate, parts)
    fits = tuple(_fit(name, own, own[0] - _square(own[1], own[5])) for name, own in zip(names, sums, strict=True))
    # The variance of all joints is the sum of the variances about each joint's own mean.
    variation = sum(own[0] - _square(own[1], own[5]) for own in sums)
    return Reconstruction(estimate, parts, fits, _fit("all joints", sums.sum(axis=0), variation), series,
                          entries if kept else None)


def joint_names(estimate: Estimate, samples: Sequence[Samples]) -> tuple[str, ...]:
    """Return the names of the joints: those of the log, of the estimate, or numbers."""
    for part in samples:
        if part.joints:
            return part.joints
    return tuple(estimate.diagnostics.get("joints", ())) or complete(estimate.model).joint_names


def _square(total: float, rows: float) -> float:
    return total ** 2 / rows if rows > 0 else 0.0


def _fit(name: str, sums: Array, variation: float) -> TorqueFit:
    power, _, misfit, product, own, rows = (float(x) for x in sums)
    if rows < 1:
        return TorqueFit(name, 0, None, None, None, None, None)
    varies = power > 0 and variation > _CONSTANT_TORQUE_SHARE * power
    return TorqueFit(name, int(rows), finite(100.0 * np.sqrt(misfit / power)) if power > 0 else None,
                     finite(np.sqrt(misfit / rows)), finite(1.0 - misfit / variation) if varies else None,
                     finite(product / own) if own > 0 else None, finite(np.sqrt(power / rows)))
