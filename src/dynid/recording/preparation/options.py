"""Options of the preparation of a log, as given in Python or in a run file, and as resolved for one log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dynid.errors import NotPossibleError, RecordingError, did_you_mean
from dynid.quantities import RATE
from dynid.recording.preparation.cutoff import Spectrum
from dynid.recording.preparation.filters import savitzky_golay_cutoff, savitzky_golay_window
from dynid.recording.preparation.polynomial import MOST_DERIVATIVES, MOST_ORDER
from dynid.recording.preparation.row_filter import EquationsKind, FilteredKind, KernelOptions
from dynid.recording.preparation.smoother import EQUIVALENT_ORDER

Method = Literal["butterworth", "savitzky-golay", "kalman", "none"]
Velocity = Literal["auto", "measured", "differentiate"]
MOST_DECIMATION = 1000  # largest ratio; the filter of a larger one would settle over a whole log
Frequency = Annotated[float, Field(ge=1e-4, le=RATE.high)]  # Hz: the lowest is one period in three hours
Seconds = Annotated[float, Field(ge=1e-7, le=1e6)]
Limit = Annotated[float, Field(gt=0.0)]  # infinite if there is no limit
NotNegative = Annotated[float, Field(ge=0.0, le=1e6)]  # s, rad/s or m/s
_BORDER_PERIODS = 2.0  # periods of the cut-off at a border, after which the error of accelerations is below 0.3 %
RATE_ROUNDING = 1e-9  # relative tolerance of a rate from time stamps, and distance from the Nyquist frequency
_ROWS_LEFT = 400  # rows that automatic decimation keeps at least
# share of the rate: cut-off for testing a velocity without filter and spectrum
_COMPARISON_CUTOFF_OF_RATE = 0.05


class Preparation(BaseModel):
    """Options of `prepare`. None means that the value is chosen from the data and stated in `Samples.steps`.

    Attributes:
        method: "butterworth" (zero-phase low-pass, central differences), "savitzky-golay", "kalman" (smoother with
            white jerk) or "none".
        cutoff: cut-off frequency of positions and velocities, Hz.
        order: order of the Butterworth filter in one direction, or degree of the Savitzky-Golay polynomial. Default: 4.
        window: window of the Savitzky-Golay filter, s, instead of the cut-off.
        torque_cutoff: cut-off frequency of the torques, Hz; "same" for the filter of the positions; "none" for
            unfiltered torques. Default: "same", but "none" with decimation, which filters torques and regressor
            together.
        rate: rate of the uniform grid, Hz.
        gap: longest gap that is interpolated, s. A longer gap splits the log.
        velocity: "auto" uses a measured velocity if it is accurate, "measured" always, "differentiate" never. One
            value, or one per joint.
        velocity_delay: delay of the measured velocity relative to the position, s. The velocity is advanced by it.
        border: time dropped at both ends of every segment, s. Default: two periods of the cut-off, or half a window.
        slow: speed below which the equation of a joint is not used, rad/s or m/s; one number or one per joint. Default:
            1 % of the top speed of the joint; in a run, 0 where the model describes slow motion.
        slow_rows: "own" drops the equation of a slow joint, "any" the equations of all joints if one is slow (Ardiani,
            B.3.3).
        saturation: largest torque, one number or one per joint (inf for no limit), "auto" for limits found in the data,
            or "none".
        saturated_samples: number of consecutive samples at the limit that count as saturated.
        stuck: whether to leave out rows that repeat while the robot moves.
        thin: keep one row per this number of rows, after filtering.
        decimate: decimation factor of the parallel decimation, 1 for none. Default: torques and regressor are
            filtered together at the cut-off, so that steps of Coulomb friction are treated alike in both. This is not
            done if the torques have a filter of their own or rows are thinned.
        stages: number of times that decimation is repeated.
        decimate_order: order of the Butterworth filter of decimation in one direction.
        decimate_share: cut-off of decimation as a share of the Nyquist frequency after one stage.
        equations: "torque" (inverse dynamics in every row) or, without accelerations, "kernel" (momentum and force of
            each joint through a polynomial kernel), "products" (products of signals through kernels), "power" or
            "energy" (of the whole robot, through a kernel or a window).
        kernel_window: length T of the kernel or of the window, s. Default: gain 1/2 at the cut-off.
        kernel_order: order N of the kernel.
        kernel_alpha, kernel_beta: exponents of the weight of the kernel.
        kernel_delay: delay of the kernel, s. Default: the latest zero of the next polynomial.
        product_order: order N* of products, or of the kernel that gives velocities.
        suppress: frequencies that the kernel suppresses, Hz, one or several.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")

    method: Method = "butterworth"
    cutoff: Frequency | None = None
    order: Annotated[int, Field(ge=1, le=10)] = 4
    window: Seconds | None = None
    torque_cutoff: Frequency | Literal["same", "none"] | None = None
    rate: Frequency | None = None
    gap: Seconds | None = None
    velocity: Velocity | tuple[Velocity, ...] = "auto"
    velocity_delay: Annotated[float, Field(ge=-1e3, le=1e3)] | None = None
    border: NotNegative | None = None
    slow: NotNegative | tuple[NotNegative | None, ...] | None = None
    slow_rows: Literal["own", "any"] = "own"
    saturation: Limit | tuple[Limit, ...] | Literal["auto", "none"] = "auto"
    saturated_samples: Annotated[int, Field(ge=1)] = 5
    stuck: bool = True
    thin: Annotated[int, Field(ge=1)] = 1
    decimate: Annotated[int, Field(ge=1, le=MOST_DECIMATION)] | None = None
    stages: Annotated[int, Field(ge=1, le=6)] = 1
    decimate_order: Annotated[int, Field(ge=1, le=10)] = 4
    decimate_share: Annotated[float, Field(gt=0.0, le=1.0)] = 0.8
    equations: EquationsKind = "torque"
    kernel_window: Seconds | None = None
    kernel_order: Annotated[int, Field(ge=0, le=MOST_ORDER)] = 1
    kernel_alpha: Annotated[float, Field(gt=MOST_DERIVATIVES, allow_inf_nan=False)] = 3.0
    kernel_beta: Annotated[float, Field(gt=MOST_DERIVATIVES, allow_inf_nan=False)] = 3.0
    kernel_delay: NotNegative | None = None
    product_order: Annotated[int, Field(ge=0, le=MOST_ORDER)] = 2
    suppress: Frequency | tuple[Frequency, ...] = ()

    @model_validator(mode="after")
    def _one_way_to_fewer_rows(self) -> Preparation:
        if self.thin > 1 and (self.decimate or 1) > 1:
            raise ValueError("the options 'thin' and 'decimate' exclude each other; give only one of them")
        if (self.decimate or 1) ** self.stages > MOST_DECIMATION:
            raise ValueError(f"decimate = {self.decimate} in {self.stages} stages keeps less than one row in "
                             f"{MOST_DECIMATION}; give smaller numbers")
        if self.thin > 1 and self.equations != "torque":
            raise ValueError(f"rows for equations = '{self.equations}' are decimated by their kernel; remove the "
                             "setting 'thin'")
        if self.method == "none" and self.equations != "torque" and self.cutoff is None and self.kernel_window is None:
            raise ValueError("with method = 'none' no cut-off is chosen, from which the length of the kernel would "
                             "follow; give the length with --set prepare.kernel_window=SECONDS")
        return self

    @staticmethod
    def from_settings(values: Mapping[str, Any], source: str = "preparation") -> Preparation:
        """Return options from a mapping (a TOML table); errors name the option and `source`."""
        try:
            return Preparation.model_validate(dict(values))
        except ValidationError as problem:
            raise RecordingError(f"{source}: {_sentence(problem)}", code="wrong-setting") from None

    def with_changes(self, **changes: Any) -> Preparation:
        """Return a copy with some options changed and checked again."""
        return Preparation.from_settings({**self.model_dump(), **changes})

    @property
    def chooses_cutoff(self) -> bool:
        """Whether there is a low-pass whose cut-off is not given."""
        return self.method != "none" and self.cutoff is None and self.window is None and self.kernel_window is None

    @property
    def kernel_options(self) -> KernelOptions:
        """Return the options of the kernel, without its window."""
        suppress = (self.suppress,) if isinstance(self.suppress, float) else self.suppress
        return KernelOptions(self.kernel_order, self.kernel_alpha, self.kernel_beta, self.kernel_delay, suppress,
                             self.product_order)

    @property
    def filtered(self) -> FilteredKind | None:
        """Kind of the equations without accelerations, such as "kernel"; None for torque equations."""
        return None if self.equations == "torque" else self.equations

    def with_kernel_cutoff(self) -> Preparation:
        """Return the same options with the cut-off that belongs to a given kernel window, if no cut-off is given."""
        if self.filtered is None or self.kernel_window is None or self.cutoff is not None or self.window is not None:
            return self
        return self.with_changes(cutoff=float(f"{self.kernel_options.cutoff(self.filtered, self.kernel_window):.6g}"))

    def elsewhere(self) -> Preparation:
        """Return the options for another log: filter and row selection are kept; rate, gaps, and quality and delay of
        the velocity are determined again."""
        def anew(velocity: Velocity) -> Velocity:
            return "differentiate" if velocity == "differentiate" else "auto"

        own = self.velocity
        return self.with_changes(rate=None, gap=None, velocity_delay=None,
                                 velocity=anew(own) if isinstance(own, str) else tuple(map(anew, own)))

    def keeping_slow(self, joints: Collection[int], dof: int) -> Preparation:
        """Return the options with slow rows kept for some `joints` (from 0) of `dof`, unless `slow` is given."""
        if self.slow is not None or not joints:
            return self
        return self.with_changes(slow=tuple(0.0 if j in joints else None for j in range(dof)))

    def as_table(self) -> dict[str, Any]:
        """Return plain values for a TOML table, without the options that are None."""
        return self.model_dump(mode="json", exclude_none=True)


def _sentence(problem: ValidationError) -> str:
    errors = problem.errors(include_url=False)
    # An option of several types has an error for each type: report that of the closest type.
    errors = [error for error in errors if error["loc"][:1] == errors[0]["loc"][:1]]
    first = max(errors, key=lambda error: (len(error["loc"]),
                                           isinstance(error["input"], str) == (error["type"] == "literal_error")))
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return f"unknown preparation option '{name}'; {did_you_mean(name, Preparation.model_fields, 'the options are')}"
    complaint = str(first["msg"]).removeprefix("Value error, ")
    if not first["loc"]:
        return complaint
    return f"option '{name}' cannot be {first['input']!r}, {complaint[0].lower()}{complaint[1:]}"


@dataclass(frozen=True, eq=False)
class Plan:
    """Filters that were chosen for one log.

    Attributes:
        method, steps: filter method, and sentences on the choices.
        cutoff: cut-off of position and velocity, Hz; with method "none" only for testing the velocity.
        torque: cut-off of the torques in Hz, "same" or "none".
        order: order of the filter in one direction, or degree of the polynomial.
        window, border: rows of the Savitzky-Golay window, and rows dropped at each end of a segment.
        decimate: decimation factor of one stage.
        share: cut-off of decimation relative to the new Nyquist frequency.
        rate: sampling rate, Hz.
    """

    method: Method
    cutoff: float
    torque: float | Literal["same", "none"]
    order: int
    window: int
    border: int
    decimate: int
    share: float
    rate: float
    steps: tuple[str, ...]

    @property
    def torque_cutoff(self) -> float | None:
        """Cut-off of the torques, Hz; None for torques as measured."""
        if isinstance(self.torque, str):
            return self.cutoff if self.torque == "same" else None
        return self.torque

    @property
    def torque_order(self) -> int:
        """Order of the Butterworth on torques that matches the filter of the positions."""
        return {"kalman": EQUIVALENT_ORDER, "butterworth": self.order}.get(self.method, 4)

    @property
    def fewest(self) -> int:
        """Number of rows that a segment needs so that one remains after its borders are dropped."""
        return max(2 * self.border + 1, self.window, 5)


def make_plan(chosen: Preparation, rate: float, rows: int, spectrum: Spectrum | None, source: str) -> Plan:
    """Return the filters of a log of `rows` rows at `rate` Hz; its spectrum decides options that are not given."""
    method, steps = chosen.method, []
    cutoff, window = chosen.cutoff, 0
    if method == "savitzky-golay" and chosen.window is not None:
        window = 2 * round((chosen.window * rate - 1.0) / 2.0) + 1
        if window <= chosen.order:
            raise NotPossibleError(f"{source}: a window of {chosen.window:g} s contains {window} samples at {rate:g} "
                                   f"Hz, too few for a polynomial of degree {chosen.order}; give a longer one "
                                   "with --set prepare.window=SECONDS",
                                   code="window-too-short")
        cutoff = cutoff or savitzky_golay_cutoff(window, rate, chosen.order)
    elif cutoff is None and spectrum is not None:
        cutoff = spectrum.common
        if method != "none":
            own = spectrum.cutoff[np.isfinite(spectrum.cutoff)]
            asked = f"the joints need {own.min():.3g} to {own.max():.3g} Hz" if len(own) else (
                f"no noise is visible, the motion reaches {spectrum.band:.2g} Hz")
            steps.append(f"cut-off {cutoff:g} Hz chosen from the spectra of the positions: {asked}")
    elif cutoff is None:
        cutoff = _COMPARISON_CUTOFF_OF_RATE * rate
    _below_nyquist(cutoff, rate, "cut-off", source)
    if method == "savitzky-golay" and not window:
        window = savitzky_golay_window(cutoff, rate, chosen.order)

    decimate, share = _decimation(chosen, cutoff, rate, rows)
    torque = chosen.torque_cutoff or ("none" if decimate > 1 else "same")
    if method == "none" and torque == "same":
        torque = "none"
    if not isinstance(torque, str):
        _below_nyquist(torque, rate, "torque cut-off", source)
    if chosen.border is not None:
        border = round(chosen.border * rate)
    elif method == "none":
        border = 1
    else:
        border = (window + 1) // 2 if window else int(np.ceil(_BORDER_PERIODS * rate / cutoff))
    return Plan(method, cutoff, torque, chosen.order, window, border, decimate, share, rate, tuple(steps))


def _decimation(chosen: Preparation, cutoff: float, rate: float, rows: int) -> tuple[int, float]:
    """Return the decimation factor and relative cut-off: as given, or the largest possible."""
    if chosen.decimate is not None:
        return chosen.decimate, chosen.decimate_share
    if chosen.method == "none" or chosen.thin > 1 or chosen.torque_cutoff is not None:
        return 1, chosen.decimate_share
    factor = max(1, min(int(chosen.decimate_share * rate / (2.0 * cutoff)), rows // _ROWS_LEFT))
    return factor, 2.0 * cutoff * factor / rate if factor > 1 else chosen.decimate_share


def _below_nyquist(cutoff: float, rate: float, what: str, source: str) -> None:
    if cutoff >= 0.5 * rate * (1.0 - RATE_ROUNDING):
        raise NotPossibleError(f"{source}: a {what} of {cutoff:g} Hz needs a rate of more than {2 * cutoff:g} Hz, but "
                               f"the log has {rate:g} Hz; give a lower {what}, for example --set "
                               f"prepare.{what.replace(' ', '_').replace('-', '')}={0.1 * rate:.3g}",
                               code="cutoff-above-rate")
