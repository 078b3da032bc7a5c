"""From a recording to samples: resample, choose a cut-off, filter, differentiate, select; and say what was done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError, RecordingError
from dynid.recording.preparation import Preparation, selection
from dynid.recording.preparation.cutoff import Spectrum, position_spectrum
from dynid.recording.preparation.filters import Segments, differentiate, differentiate_twice, low_pass, savitzky_golay
from dynid.recording.preparation.plan import Plan, make_plan
from dynid.recording.preparation.resample import Uniform, to_uniform
from dynid.recording.preparation.selection import Mask
from dynid.recording.preparation.smoother import smooth
from dynid.recording.preparation.velocity import advance, compare
from dynid.recording.recording import Recording
from dynid.recording.samples import Decimation, Samples
from dynid.robot import numbered_joints

_FEWEST = 10  # samples of a log below which nothing is tried


def prepare(recording: Recording, settings: Preparation | None = None, **overrides: Any) -> Samples:
    """Positions, velocities, accelerations and torques (samples, joints), filtered, with the rows that count.

    settings: see `Preparation`; overrides: single options of it by name. `Samples.settings` holds all
    options as they were resolved: preparing the same recording with them gives the same bytes.
    """
    chosen = settings or Preparation()
    if overrides:
        chosen = chosen.with_changes(**overrides)
    source, joints = recording.source, recording.joints
    if not joints:
        recording = replace(recording, joints=numbered_joints(recording.dof))
    moving, remarks = _usable(recording)
    grid = to_uniform(recording, chosen.rate, chosen.gap, chosen.stuck)
    spectrum = _spectrum(grid, moving, chosen, source)
    plan = make_plan(chosen, grid.rate, len(grid.q), spectrum, source)
    segments, short = _long_enough(grid, plan, source)
    steps = [*recording.notes, *remarks, *grid.steps, *plan.steps, *short]

    velocity, noise, chosen, velocity_steps = _velocity(recording, grid, segments, moving, plan, chosen)
    q, dq, ddq, motion_step = _motion(grid.q, velocity, noise, segments, plan)
    q, dq, ddq = selection.held_still(q, dq, ddq, moving)
    tau, torque_step = _torque(grid.tau, segments, plan)
    steps += [*velocity_steps, motion_step, torque_step]
    keep, slow, dropped = _selected(recording, grid, segments, dq, moving, plan, chosen)
    steps += dropped

    samples = Samples(grid.t, q, dq, ddq, tau, keep, segments, grid.rate, None, joints, source,
                      unmeasured=recording.unmeasured)
    if chosen.thin > 1:
        samples = _thinned(samples, chosen.thin)
        steps.append(f"one row in {chosen.thin} taken: {len(samples)} rows at {samples.rate:.6g} Hz")
    decimation = None
    if plan.decimate > 1:
        decimation = Decimation(plan.decimate, chosen.stages, chosen.decimate_order, plan.share)
        steps.append(f"torques and regressor are to be decimated in parallel, one row in {decimation.total} "
                     f"({chosen.stages} x {plan.decimate}), the last low-pass at "
                     f"{plan.share * grid.rate / (2 * decimation.total):.4g} Hz")
    resolved = chosen.with_changes(
        cutoff=None if plan.method == "none" else plan.cutoff, window=plan.window / grid.rate if plan.window else None,
        torque_cutoff=plan.torque, rate=grid.rate, gap=grid.gap, border=plan.border / grid.rate, slow=slow,
        decimate=plan.decimate, decimate_share=plan.share)
    return replace(samples, decimation=decimation, steps=tuple(steps), settings=resolved.as_table(),
                   spectrum=spectrum.by_joint(recording.joints) if spectrum else {})


def filtered_again(samples: Samples, q: Array) -> tuple[Array, Array, Array]:
    """Positions q (samples, joints) at the rows of samples that `prepare` made, through the same filter: position,
    velocity and acceleration, each (samples, joints). What is linear in the positions, their noise among it, goes the
    way that the positions went."""
    plan = make_plan(Preparation.of(samples.settings), samples.rate, len(samples), None, samples.source)
    return _motion(q, None, None, samples.segments, plan)[:3]


def _usable(recording: Recording) -> tuple[Mask, list[str]]:
    """Joints that move (joints,), and remarks on the recording; a recording that identifies nothing is refused."""
    source = recording.source
    if len(recording) < _FEWEST:
        raise NotPossibleError(f"{source}: {len(recording)} samples are too few to filter, at least {_FEWEST} are "
                               f"needed; record some seconds of motion")
    moving = selection.moving_joints(recording.q)
    if not np.any(moving):
        widest = int(np.argmax(np.ptp(recording.q, axis=0)))
        raise NotPossibleError(f"{source}: no joint moves, the widest range is {np.ptp(recording.q[:, widest]):.3g} "
                               f"(rad or m) of {recording.joints[widest]}; a robot at rest identifies nothing")
    low, high = recording.tau.min(axis=0), recording.tau.max(axis=0)
    top = np.maximum(high, -low)
    if not np.any(top > 0.0):
        raise NotPossibleError(f"{source}: the torque of every joint is zero in all {len(recording)} rows; "
                               f"check which columns are named as torque")
    remarks = []
    for j, name in enumerate(recording.joints):
        if not moving[j]:
            remarks.append(f"{name} does not move in this log, so its inertia and friction cannot be found from it; "
                           f"it is taken as at rest")
        if name in recording.unmeasured:
            remarks.append(f"the torque of {name} is not measured: it moves and carries load, but has no equation")
        elif top[j] == 0.0:
            remarks.append(f"the torque of {name} is zero throughout")
        elif low[j] == high[j]:
            remarks.append(f"the torque of {name} never changes")
    return moving, remarks


def _spectrum(grid: Uniform, moving: Mask, chosen: Preparation, source: str) -> Spectrum | None:
    """The positions' spectrum; None where the log is too short for one and the cut-off is known without it."""
    try:
        return position_spectrum(grid.q, grid.rate, grid.segments, moving, source)
    except NotPossibleError:
        if chosen.cutoff is None and chosen.method != "none" and not (
                chosen.method == "savitzky-golay" and chosen.window is not None):
            raise
        return None


def _long_enough(grid: Uniform, plan: Plan, source: str) -> tuple[Segments, list[str]]:
    """The segments that hold a row after their borders are dropped."""
    lengths = grid.segments[:, 1] - grid.segments[:, 0]
    good = lengths >= plan.fewest
    if not np.any(good):
        raise NotPossibleError(f"{source}: the longest run without a gap has {int(lengths.max())} samples "
                               f"({lengths.max() / grid.rate:.3g} s), but a filter at {plan.cutoff:.3g} Hz needs "
                               f"{plan.fewest} with its borders; record longer, or give a higher cut-off")
    if np.all(good):
        return grid.segments, []
    return (np.ascontiguousarray(grid.segments[good]),
            [f"{int(np.sum(~good))} segments shorter than {plan.fewest} samples were left out "
             f"({int(lengths[~good].sum())} samples)"])


def _velocity(recording: Recording, grid: Uniform, segments: Segments, moving: Mask, plan: Plan, chosen: Preparation
              ) -> tuple[Array | None, Array | None, Preparation, list[str]]:
    """The measured velocity without its delay if it is used, its noise for the smoother, the options as decided, and
    the steps in words."""
    if grid.dq is None:
        if chosen.velocity == "measured":
            raise RecordingError(f"{recording.source}: velocity = 'measured' was asked for, but the log has none; "
                                 f"name its columns in the mapping or let the positions be differentiated")
        return None, None, chosen.with_changes(velocity="differentiate"), []
    if chosen.velocity == "differentiate":
        return None, None, chosen, ["the measured velocity is not used, as asked"]
    found = compare(grid.q, grid.dq, grid.rate, plan.cutoff, segments, moving, recording.joints)
    if chosen.velocity == "auto" and not found.good:
        return (None, None, chosen.with_changes(velocity="differentiate"),
                [f"the measured velocity is not used: {found.reason}"])
    delay = chosen.velocity_delay
    if delay is None:
        delay = float(f"{found.delay:.6g}") if found.good else 0.0
    words = "is used" if found.good else "is used as asked, although"
    decided = chosen.with_changes(velocity="measured", velocity_delay=delay)
    return (advance(grid.dq, delay, grid.rate, segments), found.noise_ratio, decided,
            [f"the measured velocity {words}: {found.reason}; it was advanced by {1e3 * delay:.3g} ms"])


def _motion(q: Array, dq: Array | None, noise: Array | None, segments: Segments, plan: Plan
            ) -> tuple[Array, Array, Array, str]:
    """Filtered position, velocity and acceleration, and the step in words; dq: measured velocity or None."""
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


def _selected(recording: Recording, grid: Uniform, segments: Segments, dq: Array, moving: Mask, plan: Plan,
              chosen: Preparation) -> tuple[Mask, tuple[float, ...], list[str]]:
    """Equations to use (samples, joints), the speeds below which none is used (joints,), and the steps in words."""
    source, dof = recording.source, recording.dof
    inside = selection.inside_borders(segments, len(grid.t), plan.border)
    steps = [f"dropped {int(np.sum(~inside))} rows within {plan.border / grid.rate:.3g} s of a border"]
    if not np.all(grid.measured):
        steps.append(f"dropped {int(np.sum(inside & ~grid.measured))} rows too far from a measurement")
        inside &= grid.measured
    keep = np.repeat(inside[:, None], dof, axis=1)

    if chosen.saturation != "none":
        if chosen.saturation == "auto":
            lower, upper = selection.found_limits(recording.tau, chosen.saturated_samples)
        else:
            upper = _per_joint(chosen.saturation, dof, "saturation", source)
            lower = -upper
        # A clipped torque spoils its neighbours as far as the filter of the torques reaches.
        margin = max(plan.decimate**chosen.stages if plan.decimate > 1 else 0,
                     round(0.5 * plan.rate / plan.torque_cutoff) if plan.torque_cutoff else 0)
        steps += selection.drop_saturated(keep, grid.tau, lower, upper, chosen.saturated_samples, margin, segments,
                                          recording.joints)
    slow = (selection.slow_speeds(dq, keep, moving) if chosen.slow is None
            else _per_joint(chosen.slow, dof, "slow", source))
    steps += selection.drop_slow(keep, dq, slow, recording.joints)

    silent = np.array([name in recording.unmeasured for name in recording.joints], dtype=bool)
    keep[:, silent] = False
    counts = keep.sum(axis=0)
    if not np.any(counts):
        raise NotPossibleError(f"{source}: no row is left after dropping borders, slow and saturated samples; "
                               f"record longer, or lower 'slow' and 'border'")
    steps += [f"no row is left for {recording.joints[j]}" for j in np.flatnonzero((counts == 0) & ~silent)]
    steps.append(f"{int(counts.sum())} of {keep.size} equations are used")
    return keep, tuple(float(x) for x in slow), steps


def _thinned(samples: Samples, step: int) -> Samples:
    """One row in `step` of every segment, after filtering (Ardiani, s. B.3.3)."""
    rows = np.concatenate([np.arange(a, b, step) for a, b in samples.segments])
    ends = np.cumsum([len(range(a, b, step)) for a, b in samples.segments])
    segments = np.column_stack([np.concatenate([[0], ends[:-1]]), ends]).astype(np.int64)
    return replace(samples, t=samples.t[rows], q=samples.q[rows], dq=samples.dq[rows], ddq=samples.ddq[rows],
                   tau=samples.tau[rows], keep=samples.keep[rows], segments=segments, rate=samples.rate / step)


def _per_joint(value: float | tuple[float, ...], dof: int, option: str, source: str) -> Array:
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if len(values) not in (1, dof):
        raise RecordingError(f"{source}: option '{option}' has {len(values)} values, expected one or one for each of "
                             f"the {dof} joints")
    return np.broadcast_to(values, (dof,)).copy()
