"""Plausible ranges of quantities of robots, logs and motions; a number outside its range is an error.

The ranges are several orders of magnitude wider than the numbers of any machine. They exclude implausible numbers
(1e-300 Hz, 1e308 s), which would overflow or exhaust memory in the algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynid.errors import DynidError


@dataclass(frozen=True)
class Quantity:
    """A range of numbers: smallest and largest number, and unit for messages."""

    low: float
    high: float
    unit: str


RATE = Quantity(1e-3, 1e7, "Hz")  # of samples and controllers: from one row per quarter of an hour to drive electronics
CUTOFF = Quantity(1e-2, 1e7, "Hz")  # of the filter of a stream, whose delay is then up to minutes
MASS = Quantity(1e-6, 1e6, "kg")  # of loads
DURATION = Quantity(1e-3, 1e6, "s")  # of motions: up to eleven days
WINDOW = Quantity(1e-5, 1e3, "s")  # of filters
BANDWIDTH = Quantity(1e-3, 1e6, "rad/s")  # of closed loops
DAMPING = Quantity(1e-3, 1e3, "times critical damping")  # of closed loops
ALARMS = Quantity(1e-9, 1e6, "per hour")  # false alarms: from one in 100,000 years to 300 per second
FORCE = Quantity(1e-6, 1e9, "N or N m")  # standard deviations of wrenches
TORQUE_NOISE = Quantity(1e-12, 1e9, "N m or N")  # standard deviations
GRAVITY = Quantity(0.0, 1e4, "m/s^2")
SIGNAL_TO_NOISE = Quantity(-300.0, 300.0, "dB")

_SMALLEST_QUANTITY, LARGEST = 1e-100, 1e100
NO_LIMIT = 1e9  # rad, rad/s, N m and others: larger limits count as none
MOST_SAMPLES = 20_000_000  # of a planned motion: more than five hours at 1 kHz, and one gigabyte for seven joints


def is_physical(value: float) -> bool:
    """Return whether a number is plausible in SI units: it is finite, and its square does not overflow or underflow."""
    return value == 0.0 or _SMALLEST_QUANTITY <= abs(value) <= LARGEST


def finite_number(text: str) -> float:
    """Return the number in a text; raise ValueError if it is not a finite number."""
    value = float(text)
    if not is_physical(value):
        raise ValueError(f"'{text}' is not a number of plausible size for a robot; use SI units")
    return value


def check_quantity(quantity: Quantity, value: float, what: str, error: type[DynidError] = DynidError) -> None:
    """Raise an error if a number is outside the range of its quantity; what: its name in the message."""
    if not quantity.low <= value <= quantity.high:
        raise error(f"{what} must be between {quantity.low:g} and {quantity.high:g} {quantity.unit}, got {value:g}",
                    code="out-of-range")


def check_samples(duration: float, rate: float) -> None:
    """Raise an error if a motion of `duration` s at `rate` Hz has too many samples."""
    if duration * rate > MOST_SAMPLES:
        raise DynidError(f"a motion of {duration:g} s at {rate:g} Hz has {duration * rate:.3g} samples, more than the "
                         f"limit of {MOST_SAMPLES:g}", "give a lower --rate or a shorter --duration")


def percent_text(percent: float) -> str:
    """Format a percentage with two significant digits, without a power of ten: '0.48 %', '5.1 %', '100 %'."""
    return f"{percent:.0f} %" if abs(percent) >= 9.5 else f"{percent:.2g} %"
