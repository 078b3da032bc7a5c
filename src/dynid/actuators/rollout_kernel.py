"""Compiled closed-loop simulation of actuated joints with drive law, dry friction with sticking, delay and backlash.

An integration step of length h is of second order. It advances the positions by h / 2, the velocities by h, and then
the positions by h / 2. Rigid-body terms are evaluated at the middle; linear damping uses the implicit midpoint rule.
Dry friction has a largest torque per joint; when a joint stops within a step, its friction changes sign or the joint
sticks from then on. Friction torques of a chain are found together by Gauss-Seidel iteration. Each step uses the mean
of the command over the step, so that simulated positions are continuous in the delay. A command is constant until the
next row, or a ramp if the drive limits its speed. The supply voltage has the delay of the commands, because a command
also switches the drive off.
"""

from __future__ import annotations

import math

from dynid.actuators import columns as c
from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import BORROWING, INNER_BORROWING
from dynid.dynamics.state import mass_and_bias
from dynid.kernel_store import njit

_MAX_SWEEPS = 40  # Gauss-Seidel sweeps over the joints of a chain; one is exact for a single joint
_SWEEP_TOLERANCE = 1e-9  # rad/s: change of a velocity below which the friction torques have converged
# Rows of the work array (WORK_ROWS, n), one number per joint.
(_Q, _V, _HALF, _TORQUE, _MIDDLE, _BUDGET, _FRICTION, _CHANGE, _PLAY, _INTEGRAL, _ERROR, _EXTERNAL) = range(12)
WORK_ROWS = 12


@njit(**INNER_BORROWING)
def friction_budget(p: Array, motor: float, external: float, speed: float) -> float:
    """Return the largest dry friction torque of a joint, N m, by the friction models M1 to M6 of BAM. p: parameters of
    the joint (JOINT_COLUMNS,), see `columns`. motor, external: torques of the motor and of the load, N m. speed:
    velocity, rad/s."""
    budget = p[c.COULOMB] + abs(p[c.LOAD_EXTERNAL] * external - p[c.LOAD_MOTOR] * motor)
    more = p[c.STRIBECK] + abs(p[c.STRIBECK_LOAD_EXTERNAL] * external - p[c.STRIBECK_LOAD_MOTOR] * motor)
    if external * motor < 0.0:
        if abs(external) < abs(motor):
            more += p[c.QUADRATIC_EXTERNAL] * external * external
        else:
            more += p[c.QUADRATIC_MOTOR] * motor * motor
    if more != 0.0:
        budget += more * math.exp(-(abs(speed) / p[c.STRIBECK_SPEED]) ** p[c.STRIBECK_SHAPE])
    return budget


@njit(**INNER_BORROWING)
def rounded(position: float, count: float, origin: float) -> float:
    """Return the position rounded to encoder counts of size `count`, rad; count 0 means no rounding."""
    return position if count == 0.0 else origin + count * math.floor((position - origin) / count + 0.5)


@njit(**INNER_BORROWING)
def _rows_between(t: Array, start: float, stop: float, at: int) -> tuple[int, int]:
    """Return the indices of the rows whose values apply at the times `start` and `stop`, s; at: row at which the search
    begins."""
    last = len(t) - 1
    high = min(at, last)
    while high < last and t[high + 1] <= stop:
        high += 1
    while high > 0 and t[high] > stop:
        high -= 1
    low = high
    while low > 0 and t[low] > start:
        low -= 1
    return low, high


@njit(**INNER_BORROWING)
def _mean_supply(t: Array, supply: Array, j: int, start: float, stop: float, low: int,
                 high: int) -> tuple[float, float]:
    """Return the mean supply of joint j from `start` to `stop`, s, and the share of that time in which the supply is
    not zero; low, high: rows that apply at the two times."""
    if low == high:
        return supply[high, j], 0.0 if supply[high, j] == 0.0 else 1.0
    mean, share, since = 0.0, 0.0, start
    for row in range(low, high + 1):
        until = stop if row == high else max(t[row + 1], start)
        mean += supply[row, j] * (until - since)
        share += 0.0 if supply[row, j] == 0.0 else until - since
        since = until
    return mean / (stop - start), share / (stop - start)


@njit(**INNER_BORROWING)
def _invert(a: Array, inverse: Array, n: int) -> bool:
    """Compute the inverse (n, n) of a symmetric positive definite matrix a from its lower triangle, which is
    overwritten; return whether the inverse exists."""
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        if not a[j, j] > 0.0:
            return False
        a[j, j] = math.sqrt(a[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
    for j in range(n):
        for i in range(n):
            inverse[i, j] = 1.0 if i == j else 0.0
        for i in range(j, n):
            for k in range(j, i):
                inverse[i, j] -= a[i, k] * inverse[k, j]
            inverse[i, j] /= a[i, i]
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                inverse[i, j] -= a[k, i] * inverse[k, j]
            inverse[i, j] /= a[i, i]
    return True


@njit(**INNER_BORROWING)
def _total_until(t: Array, command: Array, total: Array, ramp: Array, row: int, j: int, time: float) -> float:
    """Return the integral of the command of joint j until `time`, s, which is after the time stamp of `row`."""
    since = time - t[row]
    found = total[row, j] + command[row, j] * since
    slope = ramp[0, row, j]
    if slope != 0.0 and since > 0.0:
        length = ramp[1, row, j]
        found += slope * (0.5 * since * since if since < length else length * (since - 0.5 * length))
    return found


@njit(**BORROWING)
def rollout(parent: Ints, gravity: Array, rows: Array, t: Array, command: Array, total: Array, ramp: Array, rate: Array,
            feed: Array, supply: Array, starts: Ints, first: Array, p: Array, step: float, work: Array, mass: Array,
            inverse: Array, out: Array) -> bool:
    """Simulate a chain of joints in closed loop over a log; return False if the simulation diverges or the inertia
    matrix is singular.

    Args:
        parent, gravity, rows: the chain, see `dynid.dynamics.state.pack`.
        t: time stamps (rows,), s.
        command, total: commanded positions at each row and their integrals over time (rows, n).
        ramp: slopes of the commands after each row, rad/s, and their duration, s (2, rows, n).
        rate, feed, supply: commanded velocities, feed-forward, and supply (rows, n).
        starts: rows at which the simulation restarts from `first`; ascending, the first is 0.
        first: positions and velocities at these rows (starts, 2, n).
        p: parameters of each joint (n, JOINT_COLUMNS), see `columns`.
        step: largest integration step, s.
        work, mass, inverse: work space (WORK_ROWS, n), (n, n), (n, n).
        out: encoder positions and velocities (2, rows, n).
    """
    n, count = len(parent), len(t)
    segment = 0
    for row in range(count):
        if segment < len(starts) and starts[segment] == row:
            for j in range(n):
                work[_Q, j] = first[segment, 0, j] - p[j, c.BIAS]
                work[_V, j] = first[segment, 1, j]
                work[_PLAY, j], work[_INTEGRAL, j], work[_FRICTION, j] = work[_Q, j], 0.0, 0.0
                work[_CHANGE, j] = 0.0
            segment += 1
        for j in range(n):
            out[0, row, j] = rounded(work[_PLAY, j] + p[j, c.BIAS], p[j, c.ENCODER_COUNT], p[j, c.ENCODER_ORIGIN])
            out[1, row, j] = work[_V, j]
        if row + 1 == count or (segment < len(starts) and starts[segment] == row + 1):
            continue
        span = t[row + 1] - t[row]
        steps = max(math.ceil(span / step - 1e-9), 1)
        h = span / steps
        for s in range(steps):
            if not _advance(parent, gravity, rows, t, command, total, ramp, rate, feed, supply, p, row, t[row] + s * h,
                            h, work, mass, inverse):
                return False
    return True


@njit(**BORROWING)
def limit_speed(t: Array, command: Array, starts: Ints, limits: Array, target: Array, ramp: Array) -> None:
    """Compute the internal position targets of drives that follow commands at a limited speed.

    Args:
        t: time stamps (rows,), s.
        command: commanded positions, constant after each row (rows, n).
        starts: rows at which the target equals the command.
        limits: largest speeds (n,).
        target: output, targets at the rows (rows, n).
        ramp: output, slopes of the targets after each row, rad/s, and their duration, s (2, rows, n).
    """
    for j in range(command.shape[1]):
        segment, now = 0, command[0, j]
        for row in range(len(t)):
            if segment < len(starts) and starts[segment] == row:
                now = command[row, j]
                segment += 1
            target[row, j] = now
            difference = command[row, j] - now
            if difference == 0.0:
                continue
            span = t[row + 1] - t[row] if row + 1 < len(t) else math.inf
            ramp[0, row, j] = math.copysign(limits[j], difference)
            ramp[1, row, j] = min(abs(difference) / limits[j], span)
            now = command[row, j] if abs(difference) <= limits[j] * span else now + ramp[0, row, j] * span


@njit(**INNER_BORROWING)
def _mean_friction(before: float, free: float, mobility: float, budget: float) -> float:
    """Return the mean dry friction torque of a joint over a step, N m, including a stop or reversal within the step.

    Until the velocity is zero, friction opposes it. Afterwards the joint sticks, or friction opposes the new direction.
    Friction of one sign over the whole step would cause a velocity error proportional to the step after each reversal.

    Args:
        before: velocity at the start of the step, rad/s.
        free: velocity at the end of the step without dry friction, rad/s.
        mobility: change of the velocity by a torque of 1 N m over the step, rad/s/(N m).
        budget: largest friction torque, N m.
    """
    if before < 0.0:
        return -_mean_friction_forward(-before, -free, mobility, budget)
    return _mean_friction_forward(before, free, mobility, budget)


@njit(**INNER_BORROWING)
def _mean_friction_forward(before: float, free: float, mobility: float, budget: float) -> float:
    """Return the mean dry friction torque, see `_mean_friction`, of a joint that moves forward or rests."""
    if before == 0.0:
        return min(max(free / mobility, -budget), budget)
    slid = free - mobility * budget
    if slid >= 0.0:
        return budget
    rest = slid / (slid - before)  # share of the step after the velocity has reached zero
    after = rest * min(free - before + mobility * budget, 0.0)  # zero if friction keeps the joint at rest
    return (free - after) / mobility


@njit(**INNER_BORROWING)
def _advance(parent: Ints, gravity: Array, rows: Array, t: Array, command: Array, total: Array, ramp: Array,
             rate: Array, feed: Array, supply: Array, p: Array, row: int, now: float, h: float, work: Array,
             mass: Array, inverse: Array) -> bool:
    """Advance the simulated state in `work` by one step of h s from the time `now`, after the time stamp of `row`;
    return False if the simulation diverges. The other arguments are those of `rollout`."""
    n = len(parent)
    for j in range(n):
        work[_HALF, j] = work[_Q, j] + 0.5 * h * work[_V, j]
        work[_MIDDLE, j] = work[_V, j] + 0.5 * work[_CHANGE, j]  # extrapolated from the step before
    # Velocities at the start of the step would cause first-order errors of the centrifugal and Coriolis torques.
    mass_and_bias(parent, gravity, rows, work[_HALF], work[_MIDDLE], mass, work[_EXTERNAL])
    for j in range(n):
        v, own, middle = work[_V, j], p[j], work[_MIDDLE, j]
        if middle * v <= 0.0:
            middle = 0.0
        seen = min(max(work[_PLAY, j], work[_HALF, j] - 0.5 * own[c.BACKLASH]), work[_HALF, j] + 0.5 * own[c.BACKLASH])
        seen = rounded(seen + own[c.BIAS], own[c.ENCODER_COUNT], own[c.ENCODER_ORIGIN])
        late = now - own[c.DELAY]
        low, high = _rows_between(t, late, late + h, row)
        sent = _total_until(t, command, total, ramp, high, j, late + h)
        sent -= _total_until(t, command, total, ramp, low, j, late)
        error = sent / h - seen
        growth = own[c.INTEGRAL_ERROR] * error - own[c.INTEGRAL_SPEED] * middle
        u = own[c.KP] * error + own[c.KI] * (work[_INTEGRAL, j] + 0.5 * h * growth)
        damping = 0.0
        if own[c.KD] != 0.0:
            u += own[c.KD] * (own[c.FOLLOW] * rate[high if t[high] <= late + 0.5 * h else low, j] - v)
            damping = own[c.KD]
        if own[c.FEED] != 0.0:
            u += own[c.FEED] * feed[row, j]
        work[_ERROR, j] = error
        is_cut = abs(u) > own[c.U_LIMIT]
        if own[c.KI] != 0.0 and (own[c.WINDUP] != 0.0 or not is_cut):  # else the integral stops while limited
            work[_INTEGRAL, j] += h * growth
        if is_cut:
            u = math.copysign(own[c.U_LIMIT], u)
            damping = 0.0
        volts, is_on = _mean_supply(t, supply, j, late, late + h, low, high)  # when switched off, the winding is open
        motor = own[c.TORQUE_GAIN] * volts * u - is_on * own[c.BACK_EMF] * v
        damping = own[c.TORQUE_GAIN] * volts * damping + is_on * own[c.BACK_EMF]
        if abs(motor) > own[c.TORQUE_LIMIT]:
            motor = math.copysign(own[c.TORQUE_LIMIT], motor)
            damping = 0.0
        external = -work[_EXTERNAL, j]
        work[_BUDGET, j] = friction_budget(own, motor - damping * (middle - v), external, middle)
        work[_TORQUE, j] = motor + external - own[c.OFFSET] - own[c.VISCOUS] * v
        mass[j, j] += own[c.ARMATURE] + 0.5 * h * (damping + own[c.VISCOUS])
    if not _invert(mass, inverse, n):
        return False
    for i in range(n):
        change = 0.0
        for j in range(n):
            change += inverse[i, j] * (work[_TORQUE, j] - work[_FRICTION, j])
        work[_CHANGE, i] = h * change
    for _ in range(_MAX_SWEEPS):
        moved = 0.0
        for j in range(n):
            if work[_BUDGET, j] <= 0.0 and work[_FRICTION, j] == 0.0:
                continue
            old = work[_FRICTION, j]
            new = _mean_friction(work[_V, j], work[_V, j] + work[_CHANGE, j] + h * inverse[j, j] * old,
                                 h * inverse[j, j], work[_BUDGET, j])
            work[_FRICTION, j] = new
            moved = max(moved, abs(new - old) * h * inverse[j, j])
            for i in range(n):
                work[_CHANGE, i] -= h * inverse[i, j] * (new - old)
        if moved < _SWEEP_TOLERANCE:
            break
    for j in range(n):
        work[_V, j] += work[_CHANGE, j]
        work[_Q, j] = work[_HALF, j] + 0.5 * h * work[_V, j]
        if not abs(work[_V, j]) < 1e6:
            return False
        gap = 0.5 * p[j, c.BACKLASH]
        work[_PLAY, j] = min(max(work[_PLAY, j], work[_Q, j] - gap), work[_Q, j] + gap)
    return True
