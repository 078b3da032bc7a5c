"""Signals for equations without accelerations, from a recording on a uniform grid, and its torque limits."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, like
from dynid.errors import NotPossibleError, RecordingError
from dynid.recording.preparation import selection
from dynid.recording.preparation.filters import Segments
from dynid.recording.preparation.options import Plan, Preparation
from dynid.recording.preparation.resample import Uniform
from dynid.recording.preparation.row_filter import FilteredSignals, RowFilter
from dynid.recording.preparation.selection import Mask
from dynid.recording.recording import Recording

_ROWS_LEFT = 400  # smallest number of filtered rows of a log


def filtered_signals(recording: Recording, grid: Uniform, segments: Segments, moving: Mask, plan: Plan,
                     chosen: Preparation) -> FilteredSignals | None:
    """Return the signals for equations without accelerations; None for torque equations. moving: mask of the joints."""
    kind, options = chosen.filtered, chosen.kernel_options
    if kind is None:
        return None
    if kind in ("power", "energy") and recording.unmeasured:
        raise NotPossibleError(f"{recording.source}: the {kind} of the whole robot needs the torques of all joints, "
                               f"but the torque of {recording.unmeasured[0]} is not measured; use --equations kernel "
                               "or --equations torque", code="torque-not-measured")
    window = chosen.kernel_window or float(f"{options.window(kind, plan.cutoff):.6g}")
    filter_ = RowFilter.from_options(kind, window, options, grid.rate, len(grid.q), _ROWS_LEFT)
    q, dq = (filter_.motion.applied(grid.q, grid.rate, segments, derivative) for derivative in (0, 1))
    if kind == "products":
        q = np.asarray(grid.q).copy()
    q, dq, _ = selection.held_still(q, dq, dq, moving)
    inside = selection.inside_borders(segments, len(grid.q), filter_.motion.border(grid.rate)) & grid.measured
    whole = like(grid.q, grid.q.shape, bool)
    whole[:] = inside[:, None]
    if chosen.saturation != "none":
        whole &= ~selection.at_limit(grid.tau, *torque_limits(recording, chosen), chosen.saturated_samples)
    lengths = segments[:, 1] - segments[:, 0]
    fewest = len(filter_.taps) + 2 * filter_.motion.border(grid.rate)
    if int(lengths.max(initial=0)) < fewest:
        raise NotPossibleError(f"{recording.source}: the longest run without a gap has {int(lengths.max(initial=0))} "
                               f"samples, but a window of {window:.3g} s needs {fewest}; record longer, "
                               "or give a shorter one with --set prepare.kernel_window=SECONDS", code="log-too-short")
    return FilteredSignals(filter_, q, dq, grid.tau, whole)


def check_window(chosen: Preparation, rate: float, source: str) -> None:
    """Refuse a given window with too few samples at `rate` Hz, or shorter than a period to be suppressed."""
    if chosen.filtered is None or chosen.kernel_window is None:
        return
    try:
        RowFilter.from_options(chosen.filtered, chosen.kernel_window, chosen.kernel_options, rate, 1, 1)
    except NotPossibleError as problem:
        raise NotPossibleError(f"{source}: {problem}", code=problem.code) from None


def torque_limits(recording: Recording, chosen: Preparation) -> tuple[Array, Array]:
    """Return lower and upper limits of the torques (joints,), given or found in the log; infinite if there are none."""
    if chosen.saturation == "auto":
        return selection.found_limits(recording.tau, chosen.saturated_samples)
    limits = np.full(recording.dof, np.inf) if chosen.saturation == "none" else per_joint(
        chosen.saturation, recording.dof, "saturation", recording.source)
    return -limits, limits


def per_joint(value: float | tuple[float | None, ...] | None, dof: int, option: str, source: str) -> Array:
    """Return the values (dof,) of an option that is one number or one per joint; nan if it is not given."""
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if len(values) not in (1, dof):
        raise RecordingError(f"{source}: option '{option}' of [prepare] has {len(values)} values; give one, or one for "
                             f"each of the {dof} joints with --set 'prepare.{option}=[...]'")
    return np.broadcast_to(values, (dof,)).copy()
