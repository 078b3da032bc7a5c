"""Instrumental variables: iv, and pc-iv inside the set of robots that can exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, Bools, Ints
from dynid.consistency import Consistency, fit
from dynid.consistency.consistency import Form
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import closed_loop
from dynid.estimate.closed_loop import (
    How,
    Loop,
    Start,
    at_samples,
    first_run,
    has_settled,
    make_loop,
    relaxed,
    standing,
    step_size,
    stopped,
    tracking,
)
from dynid.estimate.consistent import consistency_of, filled
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.instruments import (
    WINDOW,
    Measured,
    Shadow,
    dry_columns,
    equations,
    fold_instruments,
    low_decimation,
    soften,
    taper,
)
from dynid.estimate.problem import Problem, method
from dynid.estimate.transfer import filtered_references, plain_references
from dynid.findings import Note
from dynid.recording import Samples
from dynid.regression import Stacked
from dynid.regression.base import reduce_columns
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.simulation import Controller, Simulation

Source = Literal["simulation", "transfer", "reference"]
_NOT_EXCITED = 1e-8  # share of an instrument column that is news, below which it is not told from the others
_INSIDE = 0.003  # share of the squares that noise is worth which may be spent on a robot well inside the set
_NEAR_ROWS = 11  # of the low rate, over which the amplitude of residuals is taken
_QUIETEST = 0.2  # share of the deviation of all residuals below which their amplitude is not believed


@dataclass(frozen=True, eq=False)
class Projected:
    """All joints seen through the instruments: minimise |r beta - rho| (Ardiani, eq. 2.9).

    r (kept, kept), rho (kept,): Q_Z'Y and Q_Z'tau. z (kept, kept): triangular factor of Z. kept: base columns that the
    instruments excite. rest: weighted squared torque that the instruments do not see.
    """

    r: Array
    rho: Array
    z: Array
    kept: Ints
    rest: float

    @property
    def cross(self) -> Array:
        """Z'Y, weighted (kept, kept)."""
        return self.z.T @ self.r


def project(problem: Problem, layout: Layout, factors: Sequence[Array], weights: Array, iteration: int,
            name: str) -> Projected:
    """Two QR factorisations in one: R of [Z Y tau] holds Q_Z'Y and Q_Z'tau (Janot, Vandanjon, Gautier, eq. 34)."""
    b = len(problem.base)
    tall = np.zeros((sum(len(f) for f in factors), 2 * b + 1))
    at = 0
    for weight, factor, columns in zip(weights, factors, layout.columns, strict=True):
        rows, c = slice(at, at + len(factor)), len(columns)
        tall[rows, columns] = weight * factor[:, :c]
        tall[rows, b + columns] = weight * factor[:, c:2 * c]
        tall[rows, -1] = weight * factor[:, -1]
        at = rows.stop
    instruments = triangular(tall[:, :b])
    if not np.any(np.abs(instruments) > 0):
        raise NotPossibleError(f"method '{name}' stopped at iteration {iteration}: no equation is left once the start "
                               "of the simulation is dropped; record longer or give a faster controller")
    kept = np.sort(reduce_columns(instruments, problem.base.parameters, range(b), tolerance=_NOT_EXCITED).independent)
    k = len(kept)
    r = triangular(tall[:, np.concatenate([kept, b + kept, [2 * b]])])
    found = Projected(r[:k, k:2 * k], r[:k, -1], r[:k, :k], kept, float(np.sum(r[k:, -1] ** 2)))
    scale = np.linalg.norm(found.r, axis=0)
    singular = np.linalg.svd(found.r / np.where(scale > 0, scale, 1.0), compute_uv=False)
    if singular[-1] < 1e-12 * singular[0]:
        raise NotPossibleError(f"method '{name}' stopped at iteration {iteration}: the instruments lost rank against "
                               "the data, the simulated motion is not the measured one; check the controller's "
                               "gains and the reference, or use start = 'wls'")
    return found


Solver = Callable[[Projected, int], tuple[Array, Array | None]]


@method("iv", "instrumental variables from the simulated closed loop", needs={"data"})
def instrumental_variables(problem: Problem, *, instruments: Source = "simulation", start: Start = "regular",
                           tolerance: float = 0.005, max_iterations: int = 15, step: float | None = None,
                           controller: Controller | None = None, transient: float | None = None) -> Estimate:
    """Janot, Vandanjon, Gautier, s. 3: unbiased whatever the filtering.

    instruments: "simulation" of the closed loop with the last estimate; "transfer": references through each joint's
    identified closed loop; "reference": references alone (Ardiani, s. 3.3.2); the last two need no iteration.
    start: "regular" (inertia matrix = identity), "nominal" or "wls". tolerance: change of the torques between two
    iterations, a share of them, at which the document stops; here no parameter may have moved by more than a tenth of
    its stated deviation besides, so that what is left of the iterations is far below it. step: of the simulation, s.
    transient: s dropped at the start, by default what the loop needs to forget it.
    """
    how = How(start, tolerance, max_iterations, step, controller, transient)
    return _iterate(problem, "iv", _unconstrained, instruments, how)


@method("pc-iv", "instrumental variables among physically consistent robots", needs={"data"}, gives={"theta"})
def consistent_instrumental_variables(problem: Problem, *, instruments: Source = "simulation", start: Start = "regular",
                                      tolerance: float = 0.005, max_iterations: int = 15, step: float | None = None,
                                      controller: Controller | None = None, transient: float | None = None,
                                      form: Form = "pseudo") -> Estimate:
    """Ardiani, s. 2.3: the projected criterion (eq. 2.9) under the consistency cones, a cone program each iteration."""
    consistency = consistency_of(problem, form=form)

    def constrained(projected: Projected, rows: int) -> tuple[Array, Array | None]:
        theta = _inside(problem, consistency, projected, rows)
        return problem.base.matrix @ theta, theta

    how = How(start, tolerance, max_iterations, step, controller, transient)
    return _iterate(problem, "pc-iv", constrained, instruments, how)


def _unconstrained(projected: Projected, rows: int) -> tuple[Array, Array | None]:
    scale = np.linalg.norm(projected.r, axis=0)
    return np.linalg.solve(projected.r / scale, projected.rho) / scale, None


def _iterate(problem: Problem, name: str, solver: Solver, source: Source, how: How) -> Estimate:
    loop = make_loop(problem, name, how.controller, how.step)
    dropped = loop.settled if how.transient is None else how.transient
    layout, dry = Layout.of(problem.model, problem.base), dry_columns(problem.model, problem.base)
    tapers = [taper(log.samples, dropped) for log in loop.logs]
    measured = [Measured(layout, log.samples, dry) for log in loop.logs]
    if source not in ("simulation", "transfer", "reference"):
        raise ModelError(f"instruments come from 'simulation', 'transfer' or 'reference', not '{source}'")
    runs = None
    try:
        if source == "simulation":
            runs = first_run(problem, loop, how.start)
            clean = [at_samples(log.samples, run) for log, run in zip(loop.logs, runs, strict=True)]
        else:
            clean = (filtered_references if source == "transfer" else plain_references)(loop)
    except NotPossibleError as error:
        raise stopped(name, 1, error) from None
    notes: list[Note] = []
    weights = np.ones(problem.model.dof)
    rows = sum(problem.regression.rows)
    history: list[dict[str, Any]] = []
    last: tuple[Array, Array | None] | None = None
    changes: list[float] = []
    simulated: Array | None = None
    step = np.inf  # of the last iteration, in deviations
    for iteration in range(1, how.max_iterations + 1):
        if step > 1.0:  # a row that is in and out by turns would keep a good estimate swinging for ever
            moving = _moving(loop, measured, clean, simulated)
        shadows = [Shadow(data, there, part * kept)
                   for data, there, part, kept in zip(measured, clean, tapers, moving, strict=True)]
        factors = fold_instruments(layout, shadows, dry, problem.threads)
        if last is None:  # the first weights need a first estimate
            values, _ = _solved(problem, solver, project(problem, layout, factors, weights, iteration, name), rows)
            weights = _weights(layout, shadows, dry, values)
        projected = project(problem, layout, factors, weights, iteration, name)
        found = _solved(problem, solver, projected, rows)
        move = np.zeros(len(problem.base))
        if last is not None:
            changes.append(_change(projected, found[0], last[0]))
            move = found[0] - last[0]
            found = relaxed(found, last, changes)
        last = found
        (beta, theta), change = found, changes[-1] if changes else np.inf
        simulated = problem.base.expand(beta) if theta is None else theta
        low = _low(layout, shadows, dry, beta)
        final = source != "simulation"
        if final or change <= how.tolerance:
            covariance = _covariance(problem, projected, low, weights)
            step = step_size(move, covariance)
        else:
            step = np.inf
        history.append({"values": beta.tolist(), "change": None if not np.isfinite(change) else float(change),
                        "step": None if not np.isfinite(step) else step,
                        "simulated_relative_error": low.relative_error,
                        "tracking_error": None if runs is None else tracking(loop, runs)})
        if final or has_settled(change, how.tolerance, step):
            break
        weights = 1.0 / np.maximum(low.deviation, 1e-9 * low.deviation.max()) if low.deviation.max() > 0 else weights
        try:
            runs, simulated = _run(problem, loop, projected, found, rows, notes)
        except NotPossibleError as error:
            raise stopped(name, iteration + 1, error) from None
        clean = [at_samples(log.samples, run) for log, run in zip(loop.logs, runs, strict=True)]
    else:
        said = f" and a parameter by {step:.2g} of its deviations" if np.isfinite(step) else ""
        raise NotPossibleError(f"method '{name}' did not settle in {how.max_iterations} iterations: the last "
                               f"changed the torques by {100.0 * change:.2g} %{said}; check the controller, whose "
                               "simulated loop may be far from the machine's, or give more iterations")
    # Of measured equations alone, the noise of second differences may well leave more unexplained than there is torque.
    if low.share > 1.0 and low.relative_error > 100.0:
        raise NotPossibleError(f"method '{name}' settled on parameters that explain the torques worse than none at "
                               "all; the simulated loop is not the machine's: check its controller and reference")
    identified = np.zeros(len(problem.base), dtype=bool)
    identified[projected.kept] = True
    return Estimate(name, problem.model, problem.base, beta, covariance, identified, theta,
                    diagnostics=_diagnostics(problem, loop, projected, low, weights, beta, history, dropped, source,
                                             theta, notes), uncertainty="instruments")


def _moving(loop: Loop, measured: Sequence[Measured], clean: Sequence[Samples], theta: Array | None) -> list[Array]:
    """How much each equation counts where dry friction loses its sign (samples, dof), one a log.

    Where the machine itself sticks, its dry friction is anything below its full value, whatever the simulation does
    there: until both reverse together such rows would pull inertia from light joints. Rows count less and less towards
    such a stretch and not at all at its border, where the sign of a smoothed velocity is another than the true one;
    over half the window, for the slow rows beside it tell dry from viscous friction.
    """
    still = [standing(loop, [there.dq, data.steady.dq], theta, log.reference)
             for log, data, there in zip(loop.logs, measured, clean, strict=True)]
    return [soften(~rows, there, 0.5 * WINDOW) for rows, there in zip(still, clean, strict=True)]


def _run(problem: Problem, loop: Loop, projected: Projected, found: tuple[Array, Array | None], rows: int,
         notes: list[Note]) -> tuple[list[Simulation], Array]:
    """The loop with the last estimate, or where that robot cannot move with a consistent one that fits as well as any
    can: the best of all or one well inside, whichever follows the log better. An instrument may come from any robot
    close to the machine."""
    theta = problem.base.expand(found[0]) if found[1] is None else found[1]
    try:
        return loop.run(theta), theta
    except NotPossibleError as error:
        if found[1] is not None or not problem.model.parameters.bodies:
            raise
        reason = error
    note = Note("simulated-consistent",
                "where the unconstrained estimate could not be simulated, the nearest consistent robot was")
    notes += [] if note in notes else [note]
    consistency, tries = consistency_of(problem), []
    for near in (partial(_border, problem, consistency, projected, rows),
                 partial(_inside, problem, consistency, projected, rows)):
        try:
            theta = near()
            runs = loop.run(theta)
            tries.append((tracking(loop, runs), runs, theta))
        except NotPossibleError:
            continue
    if not tries:
        raise reason
    _, runs, theta = min(tries, key=lambda one: one[0])
    return runs, theta


def _border(problem: Problem, consistency: Consistency, projected: Projected, rows: int) -> Array:
    """The consistent parameters (parameters,) that fit best, as a rule on the border of the set."""
    return fit(consistency, problem.base, _stacked(problem, projected, rows)).theta


def _inside(problem: Problem, consistency: Consistency, projected: Projected, rows: int) -> Array:
    """Consistent parameters (parameters,) that fit as well as noise can tell, and otherwise lie well inside: on the
    border light links have hardly any inertia, which no controller holds."""
    stacked = _stacked(problem, projected, rows)
    best = fit(consistency, problem.base, stacked)
    noise = len(projected.kept) * stacked.rest / max(rows, 1)
    try:
        return filled(problem, consistency, stacked, best, _INSIDE * noise)[0]
    except NotPossibleError:
        return best.theta


def _stacked(problem: Problem, projected: Projected, rows: int) -> Stacked:
    b = len(problem.base)
    wide, rho = np.zeros((b, b)), np.zeros(b)
    wide[:len(projected.kept), projected.kept], rho[:len(projected.kept)] = projected.r, projected.rho
    return Stacked(wide, rho, projected.rest, rows)


def _solved(problem: Problem, solver: Solver, projected: Projected, rows: int) -> tuple[Array, Array | None]:
    """Base values (base,) and, from a constrained solver, all parameters."""
    values, theta = solver(projected, rows)
    if theta is not None:
        return values, theta
    beta = np.zeros(len(problem.base))
    beta[projected.kept] = values
    return beta, None


def _change(projected: Projected, new: Array, old: Array) -> float:
    """Share of the torques along the instruments that changed."""
    step, size = projected.z @ (new - old)[projected.kept], projected.z @ new[projected.kept]
    return float(np.linalg.norm(step)) / max(float(np.linalg.norm(size)), 1e-300)


@dataclass(frozen=True, eq=False)
class Low:
    """Equations at the low rate where residuals are judged: z per joint (columns, rows), residual (rows, dof).

    kept (rows, dof): how much of its instruments each row keeps. scale: what a sum over these rows stands for in rows
    of the fold. relative_error: percent, of the torques along the instruments against the measured ones. share: of the
    torque that the measured equations leave unexplained.
    """

    z: list[Array]
    residual: Array
    kept: Array
    columns: tuple[Ints, ...]
    scale: float
    deviation: Array
    relative_error: float
    share: float


def _low(layout: Layout, shadows: Sequence[Shadow], dry: Bools, beta: Array) -> Low:
    dof = layout.model.dof
    z: list[list[Array]] = [[] for _ in range(dof)]
    residual: list[list[Array]] = [[] for _ in range(dof)]
    kept: list[list[Array]] = [[] for _ in range(dof)]
    miss = size = 0.0
    scale = 1.0
    for shadow in shadows:
        samples = shadow.measured.samples
        decimation = low_decimation(samples)
        if samples.decimation is None and decimation is not None:
            scale = float(decimation.total)
        for piece in equations(layout, shadow, dry, decimation, with_clean=True):
            for j, (c, columns) in enumerate(zip(piece, layout.columns, strict=True)):
                z[j].append(c.z)
                residual[j].append(c.tau - beta[columns] @ c.y)
                kept[j].append(c.kept)
                counts = c.kept > 0.0
                clean = c.z if c.clean is None else c.clean
                miss += float(np.sum((c.tau - beta[columns] @ clean)[counts] ** 2))
                size += float(np.sum(c.tau[counts] ** 2))
    rows = [np.concatenate(part, axis=1) for part in z]
    series = np.column_stack([np.concatenate(part) for part in residual])
    part_kept = np.column_stack([np.concatenate(part) for part in kept])
    counts = part_kept > 0.0
    series = np.where(counts, series, 0.0)
    deviation = np.sqrt((series ** 2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1))
    size = max(size, 1e-300)
    return Low(rows, series, part_kept, layout.columns, scale, deviation, 100.0 * float(np.sqrt(miss / size)),
               float(np.sqrt(np.sum(series ** 2) / size)))


def _weights(layout: Layout, shadows: Sequence[Shadow], dry: Bools, beta: Array) -> Array:
    deviation = _low(layout, shadows, dry, beta).deviation
    if not np.any(deviation > 0):
        return np.ones(len(deviation))
    return 1.0 / np.maximum(deviation, 1e-9 * deviation.max())


def _covariance(problem: Problem, projected: Projected, low: Low, weights: Array) -> Array:
    """(Z'Y)^-1 S (Z'Y)^-T, S the covariance of Z'residual under residuals correlated in time and between joints.

    Both are taken at the low rate, where the sum of Z times a residual loses nothing, as Z has no faster parts. S is
    summed over frequencies, S_jl = sum_k Z_j(k) P_jl(k) Z_l(k)* / rows with the residuals' cross-spectrum P: the noise
    of second differences grows with the fourth power of frequency, and what it has above the motion must not count.
    Residuals are stationary only once divided by their own amplitude, which then counts with the instruments: a coarse
    encoder errs most where a joint is slow.
    """
    b, (rows, dof) = len(problem.base), low.residual.shape
    amplitude = _amplitude(low)
    instruments = [np.fft.rfft(z * a, axis=1) for z, a in zip(low.z, amplitude, strict=True)]
    kept = low.kept.T
    spectra = np.fft.rfft(kept * low.residual.T / amplitude, axis=1)
    both = np.full(spectra.shape[1], 2.0)  # a real series: every frequency but the ends stands for two
    both[0] = 1.0
    if rows % 2 == 0:
        both[-1] = 1.0
    free = _free(instruments, low.columns, weights, projected.kept, both)
    middle = np.zeros((b, b))
    for j in range(dof):
        for other in range(j, dof):
            count = max(float(np.sum(kept[j] * kept[other])), 1.0)
            power = _near(spectra[j] * spectra[other].conj()) / (count * np.sqrt(free[j] * free[other]))
            part = np.real((instruments[j] * (both * power.conj())) @ instruments[other].conj().T) / rows
            part *= weights[j] ** 2 * weights[other] ** 2
            middle[np.ix_(low.columns[j], low.columns[other])] += part
            if other != j:
                middle[np.ix_(low.columns[other], low.columns[j])] += part.T
    middle = low.scale ** 2 * middle[np.ix_(projected.kept, projected.kept)]
    inverse = np.linalg.inv(projected.cross)
    covariance = np.zeros((b, b))
    covariance[np.ix_(projected.kept, projected.kept)] = inverse @ (0.5 * (middle + middle.T)) @ inverse.T
    return covariance


def _amplitude(low: Low) -> Array:
    """How large the residuals of each joint are about each row (dof, rows), not below a fifth of their deviation."""
    from scipy.ndimage import uniform_filter1d

    counts = (low.kept > 0.0).astype(float).T
    near = (uniform_filter1d(x, _NEAR_ROWS, axis=1) for x in (counts * low.residual.T ** 2, counts))
    power, share = (np.maximum(x, 0.0) for x in near)  # sums that run along may end below zero by rounding
    local = np.sqrt(power / np.maximum(share, 1.0 / _NEAR_ROWS))
    return np.maximum(local, np.maximum(_QUIETEST * low.deviation, 1e-300)[:, None])


def _free(instruments: Sequence[NDArray[np.complex128]], columns: Sequence[Ints], weights: Array,
          kept: Ints, both: Array) -> list[Array]:
    """Share of the noise that the fit leaves in the residuals of each joint, near each frequency (frequencies,).

    A fit takes noise away at the few frequencies of the motion, where the instruments are and S is summed, and leaves
    the rest alone: 1 - w^2 z* (Z'W^2 Z)^-1 z, one minus the leverage of a frequency, not one number for all of them.
    """
    wide = []
    for weight, z, own in zip(weights, instruments, columns, strict=True):
        full = np.zeros((int(max(kept.max(), own.max())) + 1, z.shape[1]), dtype=complex)
        full[own] = weight * z
        wide.append(full[kept])
    gram = np.sum([np.real((z * both) @ z.conj().T) for z in wide], axis=0)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))[:, None]
    inverse = np.linalg.pinv(gram / (scale * scale.T), hermitian=True)
    taken = [np.real(np.sum((z / scale).conj() * (inverse @ (z / scale)), axis=0)) for z in wide]
    return [np.maximum(1.0 - _near(share.astype(complex)).real, 0.1) for share in taken]


def _near(spectrum: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Mean over neighbouring frequencies: enough of them to be steady, few enough to leave the shape."""
    half = min(max(4, len(spectrum) // 50), max((len(spectrum) - 1) // 2, 0))
    mirrored = np.concatenate([spectrum[half:0:-1].conj(), spectrum, spectrum[-2:-2 - half:-1].conj()])
    return np.convolve(mirrored, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")


def _diagnostics(problem: Problem, loop: Loop, projected: Projected, low: Low, weights: Array, beta: Array,
                 history: list[dict[str, Any]], dropped: float, source: Source, theta: Array | None,
                 notes: list[Note]) -> Diagnostics:
    regression = problem.regression
    scale = np.linalg.norm(projected.r, axis=0)
    singular = np.linalg.svd(projected.r / scale, compute_uv=False)
    out = closed_loop.facts(loop, history, dropped)
    out["notes"] += notes
    if theta is not None:
        out["consistent"] = True
    return Diagnostics.of_fit(regression, beta, rank=len(projected.kept), condition=float(singular[0] / singular[-1]),
                              weights=weights.tolist(), simulated_relative_error=low.relative_error,
                              instruments=source, residual_deviation_per_joint=low.deviation.tolist(), **out)
