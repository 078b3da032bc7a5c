"""Preparation of samples from a recording: resampling, choice of the cut-off, filters, derivatives, row selection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, first_not_finite, lies_on_disk, like
from dynid.errors import NotPossibleError, RecordingError, require_type
from dynid.recording.check import lost_rows
from dynid.recording.preparation import Preparation, selection
from dynid.recording.preparation.cutoff import Spectrum, position_spectrum
from dynid.recording.preparation.filters import Segments, differentiate, differentiate_twice, low_pass, savitzky_golay
from dynid.recording.preparation.options import Plan, make_plan
from dynid.recording.preparation.resample import Uniform, to_uniform
from dynid.recording.preparation.row_signals import check_window, filtered_signals, per_joint, torque_limits
from dynid.recording.preparation.selection import Mask
from dynid.recording.preparation.smoother import smooth
from dynid.recording.preparation.velocity import advance, compare
from dynid.recording.recording import Recording
from dynid.recording.samples import Decimation, Samples
from dynid.robot import numbered_joints
from dynid.signals import at_times

AT_REST = "log-at-rest"  # code of the error for a log without motion
MIN_LOG_SAMPLES = 10  # smallest number of samples of a log


def prepare(recording: Recording, settings: Preparation | None = None, **overrides: Any) -> Samples:
    """Return filtered positions, velocities, accelerations and torques (samples, joints), and which rows to use.

    `settings` are options (see `Preparation`), `overrides` single options by name. `Samples.settings` contains all
    options with the chosen values; preparing the same recording with them gives identical bytes.

    >>> t = np.arange(2000) / 200
    >>> q = np.sin(np.outer(t, [1.0, 1.5]))
    >>> samples = dynid.prepare(dynid.Recording(t, q, tau=q), cutoff=10.0)
    >>> samples.ddq.shape, samples.settings["cutoff"]
    ((2000, 2), 10.0)
    """
    require_type(recording, Recording, "prepare", "prepare(dynid.read('log.csv', robot=robot))")
    chosen = settings or Preparation()
    if overrides:
        chosen = chosen.with_changes(**overrides)
    return prepare_gridded(on_grid(recording, chosen), chosen)


@dataclass(frozen=True, eq=False)
class Gridded:
    """A recording on a uniform grid, which is the same for all cut-offs that are tried.

    Attributes:
        recording, grid: the recording, and its signals on the grid.
        moving: (joints,), whether each joint moves.
        remarks: sentences on the recording.
        spectrum: spectrum of the positions, or None if it is not needed.
    """

    recording: Recording
    grid: Uniform
    moving: Mask
    remarks: tuple[str, ...]
    spectrum: Spectrum | None

    def averaged(self, times: int) -> Gridded:
        """Return the recording with every `times` neighbouring rows averaged to one."""
        return replace(self, grid=self.grid.averaged(times))


def on_grid(recording: Recording, settings: Preparation, spectrum: bool = True) -> Gridded:
    """Return a recording on its uniform grid. spectrum: False omits the spectrum if the cut-off is given."""
    if recording.unscaled:
        raise RecordingError(f"{recording.source}: contains currents whose drive gains are to be determined from a "
                             "known load",
                             "give a log with that load in the same run file, or the gains as numbers with --set "
                             "'log.drive_gain=[...]'",
                             code="gains-undetermined")
    moving, remarks = check_usable(recording)
    lost = lost_rows(recording.t, recording.q)
    if lost is not None:
        remarks.append(f"{int(lost.counts.sum())} rows are missing at {len(lost.rows)} places, the first before row "
                       f"{int(lost.rows[0])}, although the time stamps are regular: the stamps were corrected by the "
                       "motion")
        recording = replace(recording, t=lost.restamped(recording.t))
    grid = to_uniform(recording, settings.rate, settings.gap, settings.stuck)
    found = None
    if spectrum or settings.cutoff is None:
        found = _spectrum(grid, moving, settings, recording.source)
    return Gridded(recording, grid, moving, tuple(remarks), found)


def _named(recording: Recording) -> Recording:
    return replace(recording, joints=numbered_joints(recording.dof))


def prepare_gridded(gridded: Gridded, chosen: Preparation) -> Samples:
    """Return samples of a gridded recording, see `prepare`."""
    recording, grid, moving, spectrum = gridded.recording, gridded.grid, gridded.moving, gridded.spectrum
    source, joints, remarks = recording.source, recording.joints, gridded.remarks
    if not joints:
        recording = _named(recording)
    check_window(chosen, grid.rate, source)
    chosen = chosen.with_kernel_cutoff()
    plan = make_plan(chosen, grid.rate, len(grid.q), spectrum, source)
    segments, short = _long_enough(grid, plan, source)
    steps = [*recording.notes, *remarks, *grid.steps, *plan.steps, *short]

    velocity, used, noise, chosen, velocity_steps = _velocity(recording, grid, segments, moving, plan, chosen)
    q, dq, ddq, motion_step = _motion(grid.q, velocity, used, noise, segments, plan)
    q, dq, ddq = selection.held_still(q, dq, ddq, moving)
    tau, torque_step = _torque(grid.tau, segments, plan)
    wrench = None if recording.wrench is None else _torque(_wrench(recording, grid), segments, plan)[0]
    steps += [*velocity_steps, motion_step, torque_step]
    keep, slow, dropped = _selected(recording, grid, segments, dq, moving, plan, chosen)
    steps += dropped
    if lies_on_disk(q):  # a mask needs seven bytes per row of seven joints, for every cut-off that is tried
        stored = like(q, dtype=bool)
        stored[:] = keep
        keep = stored

    samples = Samples(grid.t, q, dq, ddq, tau, keep, segments, grid.rate, None, joints, source,
                      unmeasured=recording.unmeasured, raw_tau=None if plan.torque_cutoff is None else grid.tau,
                      temperature=None if recording.temperature is None else at_times(grid.t, recording.t,
                                                                                      recording.temperature),
                      wrench=wrench, gain_covariance=recording.gain_covariance)
    if chosen.thin > 1:
        samples = samples.every(chosen.thin)  # after filtering (Ardiani, s. B.3.3)
        steps.append(f"decimated to one row in {chosen.thin}: {len(samples)} rows at {samples.rate:.6g} Hz")
    filtered = filtered_signals(recording, grid, segments, moving, plan, chosen)
    steps += [] if filtered is None else [filtered.filter.sentence()]
    decimation = None
    if plan.decimate > 1:
        decimation = Decimation(plan.decimate, chosen.stages, chosen.decimate_order, plan.share)
        steps.append(f"torques and regressor are decimated in parallel, one row in {decimation.total} "
                     f"({chosen.stages} x {plan.decimate}), the last low-pass at "
                     f"{plan.share * grid.rate / (2 * decimation.total):.4g} Hz")
    resolved = chosen.with_changes(
        cutoff=None if plan.method == "none" else plan.cutoff, window=plan.window / grid.rate if plan.window else None,
        torque_cutoff=plan.torque, rate=grid.rate, gap=grid.gap, border=plan.border / grid.rate, slow=slow,
        decimate=plan.decimate, decimate_share=plan.share,
        kernel_window=chosen.kernel_window if filtered is None else filtered.filter.window)
    samples = replace(samples, decimation=decimation, filtered=filtered, steps=tuple(steps),
                      settings=resolved.as_table(), spectrum=spectrum.by_joint(recording.joints) if spectrum else {})
    found: Samples = samples if recording.to_samples is None else recording.to_samples(samples)
    return found


def filtered_again(samples: Samples, q: Array) -> tuple[Array, Array, Array]:
    """Return filtered position, velocity and acceleration of q (samples, joints), with the filter of the samples."""
    plan = make_plan(Preparation.from_settings(samples.settings), samples.rate, len(samples), None, samples.source)
    return _filtered(q, None, None, samples.segments, plan)[:3]


def check_usable(recording: Recording) -> tuple[Mask, list[str]]:
    """Return the moving joints (joints,) and remarks; raise an error if no parameter can be identified."""
    recording = recording if recording.joints else _named(recording)
    source = recording.source
    if len(recording) < MIN_LOG_SAMPLES:
        raise NotPossibleError(f"{source}: {len(recording)} samples are too few to filter, at least {MIN_LOG_SAMPLES} "
                               "are needed; record some seconds of motion")
    moving = selection.moving_joints(recording.q)
    moving[:recording.base_width] = np.any(moving)  # signals of a free base are never at rest
    if not np.any(moving):
        widest = int(np.argmax(np.ptp(recording.q, axis=0)))
        raise NotPossibleError(f"{source}: no joint moves; the widest range is {np.ptp(recording.q[:, widest]):.3g} "
                               f"(rad or m), of {recording.joints[widest]}", "give a log with motion, because a log at "
                                                                             "rest cannot be used", AT_REST)
    if recording.is_torque_free:
        raise NotPossibleError(f"{source}: has no torques, only positions and commands",
                               "identify its actuators from these with dynid actuators, or map torques with --set "
                               "'log.torque=[...]'", "no-torques")
    low, high = recording.tau.min(axis=0), recording.tau.max(axis=0)
    top = np.maximum(high, -low)
    if not np.any(top > 0.0):
        raise NotPossibleError(f"{source}: the torque of every joint is zero in all {len(recording)} rows; check "
                               "which columns are mapped to the torque (--set 'log.torque=[...]')", code="torques-zero")
    remarks = []
    for j, name in list(enumerate(recording.joints))[recording.base_width:]:
        if not moving[j]:
            remarks.append(f"{name} does not move in this log, so its inertia and friction cannot be identified from "
                           "it; the joint is treated as at rest")
        if name in recording.unmeasured:
            remarks.append(f"the torque of {name} is not measured: the joint moves and carries load, but contributes "
                           "no equation")
        elif top[j] == 0.0:
            remarks.append(f"the torque of {name} is always zero")
        elif low[j] == high[j]:
            remarks.append(f"the torque of {name} never changes")
    return moving, remarks


def _spectrum(grid: Uniform, moving: Mask, chosen: Preparation, source: str) -> Spectrum | None:
    """Return the spectrum of the positions; None if the log is too short for one and the cut-off is given."""
    try:
        return position_spectrum(grid.q, grid.rate, grid.segments, moving, source)
    except NotPossibleError:
        if chosen.cutoff is None and chosen.method != "none" and not (
                chosen.method == "savitzky-golay" and chosen.window is not None):
            raise
        return None


def _long_enough(grid: Uniform, plan: Plan, source: str) -> tuple[Segments, list[str]]:
    """Return the segments that keep a row after their borders are dropped, and sentences on the ignored ones."""
    lengths = grid.segments[:, 1] - grid.segments[:, 0]
    good = lengths >= plan.fewest
    if not np.any(good):
        raise NotPossibleError(f"{source}: the longest run without a gap has {int(lengths.max())} samples "
                               f"({lengths.max() / grid.rate:.3g} s); a filter at {plan.cutoff:.3g} Hz needs "
                               f"{plan.fewest} including its borders; record longer, or give a higher cut-off with "
                               "--set prepare.cutoff=N")
    if np.all(good):
        return grid.segments, []
    return (np.ascontiguousarray(grid.segments[good]),
            [f"{int(np.sum(~good))} segments shorter than {plan.fewest} samples were ignored "
             f"({int(lengths[~good].sum())} samples)"])


def _velocity(recording: Recording, grid: Uniform, segments: Segments, moving: Mask, plan: Plan, chosen: Preparation
              ) -> tuple[Array | None, Mask, Array | None, Preparation, list[str]]:
    """Return the measured velocity without its delay if it is used, and how it is used.

    Returns:
        The velocity or None; joints (joints,) for which it is used; its noise for the smoother; the resolved options;
            and the processing steps as sentences.
    """
    names = recording.joints
    kinds = [chosen.velocity] * len(names) if isinstance(chosen.velocity, str) else list(chosen.velocity)
    if len(kinds) != len(names):
        raise RecordingError(f"{recording.source}: option 'velocity' of [prepare] has {len(kinds)} values; give one "
                             f"value, or one for each of the {len(names)} joints with --set 'prepare.velocity=[...]'")
    nothing = np.zeros(len(names), dtype=bool)
    if grid.dq is None:
        if "measured" in kinds:
            raise RecordingError(f"{recording.source}: option 'velocity' of [prepare] is 'measured', but the log has "
                                 "no velocity; map its columns with --set 'log.velocity=[...]', or use --set "
                                 "prepare.velocity=differentiate")
        return None, nothing, None, chosen.with_changes(velocity="differentiate"), []
    if set(kinds) == {"differentiate"}:
        return None, nothing, None, chosen, ["the measured velocity is not used, as requested"]
    found = compare(grid.q, grid.dq, grid.rate, plan.cutoff, segments, moving, names)
    use = np.array([how == "measured" or (how == "auto" and good) for how, good in zip(kinds, found.good, strict=True)])
    if not np.any(use):
        return (None, use, None, chosen.with_changes(velocity="differentiate"),
                [f"the measured velocity is not used: {found.reason}"])
    delay = chosen.velocity_delay
    if delay is None:
        delay = float(f"{found.delay:.6g}") if np.any(found.good & moving) else 0.0
    whose = "" if np.all(use) else f" of {', '.join(name for name, yes in zip(names, use, strict=True) if yes)}"
    words = "is used" if np.all(found.good[use]) else "is used as requested, although"
    sources = "measured" if np.all(use) else tuple("measured" if yes else "differentiate" for yes in use)
    decided = chosen.with_changes(velocity=sources, velocity_delay=delay)
    return (advance(grid.dq, delay, grid.rate, segments), use, found.noise_ratio, decided,
            [f"the measured velocity{whose} {words}: {found.reason}; it was advanced by {1e3 * delay:.3g} ms"])


def _motion(q: Array, dq: Array | None, use: Mask, noise: Array | None, segments: Segments, plan: Plan
            ) -> tuple[Array, Array, Array, str]:
    """Return filtered position, velocity and acceleration, and the processing step as a sentence.

    use: joints (dof,) whose measured velocity dq is used.
    """
    if dq is None or noise is None or np.all(use):
        return _filtered(q, dq, noise, segments, plan)
    out, steps = (like(q), like(q), like(q)), list[str]()
    for j in range(q.shape[1]):
        one = slice(j, j + 1)
        *found, step = _filtered(q[:, one], dq[:, one] if use[j] else None, noise[one] if use[j] else None, segments,
                                 plan)
        for signal, values in zip(out, found, strict=True):
            signal[:, one] = values
        steps.append(step)
    return *out, "; ".join(dict.fromkeys(steps))


def _filtered(q: Array, dq: Array | None, noise: Array | None, segments: Segments, plan: Plan
              ) -> tuple[Array, Array, Array, str]:
    """Return filtered position, velocity and acceleration, and a sentence on the filter. dq: measured, or None."""
    rate, what = plan.rate, "position" if dq is None else "position and measured velocity"
    if plan.method == "kalman":
        return (*smooth(q, plan.cutoff, rate, segments, dq, noise),
                f"{what} through a Kalman smoother with white jerk, gain 1/2 at {plan.cutoff:g} Hz")
    if plan.method == "savitzky-golay":
        use = (plan.window, plan.order, rate, segments)
        first, lift = (q, 0) if dq is None else (dq, 1)
        return (savitzky_golay(q, *use), savitzky_golay(first, *use, derivative=1 - lift),
                savitzky_golay(first, *use, derivative=2 - lift),
                f"{what} and derivatives by Savitzky-Golay of degree {plan.order} over {plan.window} samples")
    if plan.method == "butterworth":
        q = low_pass(q, plan.cutoff, rate, plan.order, segments)
        dq = None if dq is None else low_pass(dq, plan.cutoff, rate, plan.order, segments)
        step = (f"{what} low-passed at {plan.cutoff:g} Hz (Butterworth of order {plan.order}, forward and backward), "
               f"derivatives by central differences")
    else:
        step = f"{what} not filtered, derivatives by central differences"
    if dq is None:
        return q, differentiate(q, rate, segments), differentiate_twice(q, rate, segments), step
    return q, dq, differentiate(dq, rate, segments), step


def _torque(tau: Array, segments: Segments, plan: Plan) -> tuple[Array, str]:
    cutoff = plan.torque_cutoff
    if cutoff is None:
        return tau, "torques not filtered"
    if plan.torque == "same" and plan.method == "savitzky-golay":
        return savitzky_golay(tau, plan.window, plan.order, plan.rate, segments), "torques by the same filter"
    return (low_pass(tau, cutoff, plan.rate, plan.torque_order, segments),
            f"torques low-passed at {cutoff:g} Hz (Butterworth of order {plan.torque_order}, forward and backward)")


def _wrench(recording: Recording, grid: Uniform) -> Array:
    """Return force and moment of a sensor (samples, 6) at the times of the grid."""
    given = np.asarray(recording.wrench, dtype=float)
    wrong = first_not_finite(given)
    if wrong is not None:
        raise RecordingError(f"{recording.source}: the wrench is not a finite number in row {wrong[0]}")
    same = len(grid.t) == len(recording.t) and np.array_equal(grid.t, recording.t)
    return given if same else at_times(grid.t, recording.t, given)


def _selected(recording: Recording, grid: Uniform, segments: Segments, dq: Array, moving: Mask, plan: Plan,
              chosen: Preparation) -> tuple[Mask, tuple[float, ...], list[str]]:
    """Return the used equations (samples, joints), the minimum speeds (joints,), and sentences on the selection."""
    source, dof = recording.source, recording.dof
    inside = selection.inside_borders(segments, len(grid.t), plan.border)
    steps = [f"dropped {int(np.sum(~inside))} rows within {plan.border / grid.rate:.3g} s of a border"]
    if not np.all(grid.measured):
        steps.append(f"dropped {int(np.sum(inside & ~grid.measured))} rows too far from a measurement")
        inside &= grid.measured
    keep = np.repeat(inside[:, None], dof, axis=1)

    if chosen.saturation != "none":
        lower, upper = torque_limits(recording, chosen)
        # A clipped torque affects its neighbours within the reach of the torque filter.
        margin = max(plan.decimate**chosen.stages if plan.decimate > 1 else 0,
                     round(0.5 * plan.rate / plan.torque_cutoff) if plan.torque_cutoff else 0)
        steps += selection.drop_saturated(keep, grid.tau, lower, upper, chosen.saturated_samples, margin, segments,
                                          recording.joints)
    given = per_joint(chosen.slow, dof, "slow", source)  # nan if it is to be chosen
    slow = np.where(np.isnan(given), selection.slow_speeds(dq, keep, moving), given)
    steps += selection.drop_slow(keep, dq, slow, recording.joints, chosen.slow_rows == "any")

    silent = np.array([name in recording.unmeasured for name in recording.joints], dtype=bool)
    keep[:, silent] = False
    counts = keep.sum(axis=0)
    if not np.any(counts):
        raise NotPossibleError(f"{source}: no row remains after dropping borders, slow and saturated samples; record "
                               "longer, or keep more rows with --set prepare.slow=0 or --set prepare.border=0",
                               code="no-usable-row")
    steps += [f"no row remains for {recording.joints[j]}" for j in np.flatnonzero((counts == 0) & ~silent)]
    steps.append(f"{int(counts.sum())} of {keep.size} equations are used")
    return keep, tuple(float(x) for x in slow), steps
