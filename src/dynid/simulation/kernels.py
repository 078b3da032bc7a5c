"""Compiled closed loops: derivative of the state, integrators, controllers, and the simulation loop."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.compiled import BORROWING, INNER_BORROWING
from dynid.dynamics.state import solve_state
from dynid.kernel_store import njit
from dynid.simulation.chain import add_wrenches, mass_and_bias
from dynid.simulation.friction_kernels import curve_torques, friction, settle_slips, slip_torques, substitute, transmit
from dynid.simulation.plant import DIRECTION, FCN, FCP, HIGH, KIND, LOW, STATIC, STICK, WIDTH, Plant
from dynid.simulation.sensors import ONCE, Sensors, lagged, see

DONE, SINGULAR, DIVERGED, STIFF = 0, 1, 2, 3  # exit status of a simulation
REST = 1e-7  # rad/s or m/s below which a sticking element is at rest


class Law(NamedTuple):
    """A control law of n joints as numbers: a = kp e + ki int e + kd (follow dqr - dq) + ahead ddqr with e = qr - q.

    Without a model of the bodies, the torque is a. With a model, the torque is M a + c + g; if `beside` is set, M
    multiplies only ahead ddqr, and the feedback is a torque. Then `feed` is added, and the sum is limited to +-limit.

    Attributes:
        kp, ki, kd, follow, ahead: gains and factors of the law (n,).
        rows, extra: work array and rotor inertias (n, n) of the model; extra is (0, n) for a law without a model.
        feed: torques that are added at each tick (ticks, n), or (0, n).
        limit: largest torques (n,), N m or N.
        delay: sampling periods until the torque reaches the motor.
        speed_lag: delay of the velocity in sampling periods, not necessarily an integer.
        beside: whether the feedback is a torque.
    """

    kp: Array
    ki: Array
    kd: Array
    follow: Array
    ahead: Array
    rows: Array
    extra: Array
    feed: Array
    limit: Array
    delay: int
    speed_lag: float
    beside: bool


class RunBuffers(NamedTuple):
    """Work space of one simulation.

    Attributes:
        rows, matrix, bias, net, stages, trial: work arrays of dynamics and integrator.
        signs: (elements,), friction that is constant over a step for sticking elements, otherwise (0,).
        answers: (elements, n), accelerations M^-1 w by unit forces of those elements.
        linked: (n + 3, n) or (0, n), of the bodies alone, for load friction (see `load_friction`).
        first: (states,), derivative at a tick.
        guess: (1,), next step of the adaptive integrator, s.
        clock: (1,), the tick.
        outside: (k, 6), present wrenches.
    """

    rows: Array
    matrix: Array
    bias: Array
    net: Array
    stages: Array
    trial: Array
    signs: Array
    answers: Array
    linked: Array
    first: Array
    guess: Array
    clock: Array
    outside: Array


class LawState(NamedTuple):
    """State of a control law from tick to tick.

    Attributes:
        seen, speed, old: measured position and speed, and delayed speed (n,).
        integral, tau: integral of the position error, and applied torque (n,).
        held, past: delayed torques (delay + 1, n), and earlier speeds (lags, n).
    """

    seen: Array
    speed: Array
    old: Array
    integral: Array
    tau: Array
    held: Array
    past: Array


def memory(law: Law) -> LawState:
    """Return the state of a control law before the first tick."""
    n = len(law.kp)
    seen, speed, old, integral, tau = np.zeros((5, n))
    held, past = np.zeros((law.delay + 1, n)), np.zeros((int(law.speed_lag) + 2, n))
    return LawState(seen, speed, old, integral, tau, held, past)


def space(plant: Plant) -> RunBuffers:
    """Return the work space of one simulation of a plant."""
    n, states = plant.dof, plant.states
    sticking = len(plant.dry) if np.any(plant.dry[:, KIND:WIDTH] == STICK) else 0
    shapes: tuple[tuple[int, ...], ...] = (
        (n, n), (n,), (n,), (7, states), (states,), (sticking,), (sticking, n), (n + 3 if len(plant.load) else 0, n),
        (states,), (1,), (1,), plant.wrenches.shape[1:])
    return RunBuffers(plant.rows.copy(), *(np.zeros(shape) for shape in shapes))


@njit(**BORROWING)
def act(plant: Plant, share: float, work: RunBuffers) -> None:
    """Set the external wrenches in `work` to those at a fraction `share` of the period after the present tick."""
    tick = int(work.clock[0])
    later = min(tick + 1, len(plant.wrenches) - 1)
    for k in range(len(work.outside)):
        for i in range(6):
            work.outside[k, i] = (1.0 - share) * plant.wrenches[tick, k, i] + share * plant.wrenches[later, k, i]


@njit(**BORROWING)
def derivative(plant: Plant, tau: Array, y: Array, dy: Array, work: RunBuffers) -> bool:
    """Compute the derivative dy of the state y under motor torques tau; return False for singular inertia."""
    n = len(plant.parent)
    matrix, bias, net = work.matrix, work.bias, work.net
    flexible, lugre = len(plant.flexible) > 0, len(plant.lugre) > 0
    at = 2 * n + len(plant.lugre)
    mass_and_bias(plant.parent, plant.gravity, work.rows, y, y[n:], matrix, bias)
    if len(work.outside) > 0:
        add_wrenches(plant.parent, work.rows, plant.places, work.outside, bias)
    for i in range(n):
        drive = tau[i]
        if len(plant.ripple) > 0:
            turn = y[at + i] if flexible else y[i]
            drive += plant.ripple[i, 0] * math.sin(plant.ripple[i, 1] * turn + plant.ripple[i, 2])
        if flexible and math.isfinite(plant.flexible[i, 0]):  # Ardiani, eq. 1.17
            spring = plant.flexible[i, 0] * (y[at + i] - y[i]) + plant.flexible[i, 1] * (y[at + n + i] - y[n + i])
            drive -= plant.flexible[i, 3] * y[at + n + i]
            if plant.flexible[i, 4] > 0.0:
                drive -= plant.flexible[i, 4] * math.tanh(y[at + n + i] / plant.flexible[i, 5])
            dy[at + i] = y[at + n + i]
            dy[at + n + i] = (drive - spring) / plant.flexible[i, 2]
            drive = spring
        net[i] = drive - bias[i] - plant.constant[i] - plant.spring[i] * y[i]
        if lugre:
            v, z = y[n + i], y[2 * n + i]
            g = plant.lugre[i, 3] + (plant.lugre[i, 4] - plant.lugre[i, 3]) * math.exp(-(v / plant.lugre[i, 5]) ** 2)
            dz = v - plant.lugre[i, 0] * abs(v) / g * z
            dy[2 * n + i] = dz
            net[i] -= plant.lugre[i, 0] * z + plant.lugre[i, 1] * dz + plant.lugre[i, 2] * v
    for i in range(len(plant.viscous)):
        for j in range(n):
            net[i] -= plant.viscous[i, j] * y[n + j]
    if len(plant.dry) > 0:
        friction(plant.dry, y[n:], work.signs, net)
    if len(plant.curves) > 0:
        curve_torques(plant, y, y[n:], net)
    if len(plant.slips) > 0:
        slip_torques(plant.slips, y, dy, net)
    loaded = len(plant.load) > 0
    if loaded:
        for i in range(n):
            work.linked[n, i], work.linked[n + 1, i] = bias[i], net[i]
            for j in range(i + 1):
                work.linked[i, j] = matrix[i, j]
    for i in range(len(plant.extra)):
        for j in range(i + 1):
            matrix[i, j] += plant.extra[i, j]
    regular = solve_state(matrix, bias, net)
    if loaded and regular:
        transmit(plant.load, y[n:], net, work.linked, matrix, bias)
    for i in range(n):
        dy[i], dy[n + i] = y[n + i], net[i]
        if flexible and not math.isfinite(plant.flexible[i, 0]):
            dy[at + i], dy[at + n + i] = y[n + i], net[i]
    return regular


@njit(**ONCE)
def derivative_held(plant: Plant, tau: Array, y: Array, h: float, dy: Array, work: RunBuffers) -> bool:
    """Compute the derivative of the state, with dry friction of sticking elements for the next h seconds."""
    for e in range(len(work.signs)):
        work.signs[e] = 0.0
    regular = derivative(plant, tau, y, dy, work)
    if regular:
        hold(plant.dry, y, h, dy, work)
        if len(plant.load) > 0:  # friction of sticking elements changes the torques of the bodies
            regular = derivative(plant, tau, y, dy, work)
    return regular


@njit(**INNER_BORROWING)
def hold(dry: Array, y: Array, h: float, dy: Array, work: RunBuffers) -> None:
    """Compute the dry friction `work.signs` of sticking elements, and add its effect to the derivative dy.

    The friction is constant over the step. It is the force p / h within its bounds that brings v = w.dq nearest to zero
    at the end of the step, v + h w.ddq - sum_k (w.M^-1 w_k) p_k, computed for all elements by projected Gauss-Seidel
    iteration. The full force means sliding, a smaller force means rest or the end of sliding. Elements that already
    rest also have their static excess.
    """
    signs, answers, n = work.signs, work.answers, len(work.net)
    for e in range(len(signs)):
        if dry[e, KIND] != STICK:
            continue
        for i in range(n):
            answers[e, i] = dry[e, DIRECTION + i]
        substitute(work.matrix, work.bias, answers[e])
    for _ in range(50):
        moved = 0.0
        for e in range(len(signs)):
            row = dry[e]
            if row[KIND] != STICK:
                continue
            v, mobility, before = 0.0, 0.0, 0.0
            for j in range(int(row[LOW]), int(row[HIGH])):
                before += row[DIRECTION + j] * y[n + j]
                v += row[DIRECTION + j] * (y[n + j] + h * dy[n + j])
                mobility += row[DIRECTION + j] * answers[e, j]
            old = signs[e] * (row[FCP] if signs[e] > 0.0 else row[FCN])
            more = row[STATIC] if abs(before) < REST else 0.0
            force = min(max(old + v / (h * mobility), -row[FCN] - more), row[FCP] + more) if mobility > 0.0 else 0.0
            signs[e] = force / (row[FCP] if force > 0.0 else row[FCN])
            moved = max(moved, abs(force - old) / row[FCP])
            for i in range(n):
                dy[n + i] -= (force - old) * answers[e, i]
        if moved < 1e-9:
            break


@njit(**ONCE)
def advance_rk4(plant: Plant, tau: Array, y: Array, first: Array, h: float, steps: int, work: RunBuffers) -> int:
    """Advance the state y by `steps` classical Runge-Kutta steps of h seconds; first: its initial derivative."""
    k, total, trial, states = work.stages[0], work.stages[1], work.trial, len(y)
    sticking = len(work.signs) > 0
    for step in range(steps):
        for i in range(states):
            total[i], trial[i] = 0.0, y[i]
        for stage in range(4):
            if len(work.outside) > 0:
                act(plant, (step + 0.5 * ((stage + 1) // 2)) / steps, work)
            if stage == 0 and step == 0:
                for i in range(states):
                    k[i] = first[i]
            elif stage == 0 and sticking:
                if not derivative_held(plant, tau, trial, h, k, work):
                    return SINGULAR
            elif not derivative(plant, tau, trial, k, work):
                return SINGULAR
            weight = 1.0 if stage == 0 or stage == 3 else 2.0
            ahead = h if stage == 2 else 0.5 * h
            for i in range(states):
                total[i] += weight * k[i]
                trial[i] = y[i] + ahead * k[i]
        for i in range(states):
            y[i] += h / 6.0 * total[i]
        settle_slips(plant.slips, y)
    return DONE


_A = np.array([
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0], [3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0],
    [44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]])
_E = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])


@njit(**ONCE)
def advance_adaptive(plant: Plant, tau: Array, y: Array, first: Array, span: float, tolerance: float,
                     work: RunBuffers) -> int:
    """Advance the state y by `span` seconds with the Dormand-Prince 5(4) pair, starting with the last step size."""
    k, trial, guess, states = work.stages, work.trial, work.guess, len(y)
    for i in range(states):
        k[0, i] = first[i]
    done, h = 0.0, min(guess[0] if guess[0] > 0.0 else 0.1 * span, span)
    for _ in range(100000):
        if done >= span * (1.0 - 1e-12):
            return DONE
        h = min(h, span - done)
        for stage in range(1, 7):
            for i in range(states):
                value = y[i]
                for s in range(stage):
                    value += h * _A[stage, s] * k[s, i]
                trial[i] = value
            if len(work.outside) > 0:
                act(plant, (done + h * _A[stage].sum()) / span, work)
            if not derivative(plant, tau, trial, k[stage], work):
                return SINGULAR
        worst = 0.0
        for i in range(states):
            error = 0.0
            for s in range(7):
                error += _E[s] * k[s, i]
            scale = tolerance * (1.0 + max(abs(y[i]), abs(trial[i])))
            worst = max(worst, abs(h * error) / scale)
        if not math.isfinite(worst):
            return DIVERGED
        if worst <= 1.0:
            done += h
            for i in range(states):
                y[i], k[0, i] = trial[i], k[6, i]
            settle_slips(plant.slips, y)
            guess[0] = h
        h *= min(5.0, max(0.2, 0.9 * worst ** -0.2 if worst > 0.0 else 5.0))
    return STIFF


@njit(**ONCE)
def command(law: Law, plant: Plant, tick: int, period: float, seen: Array, speed: Array, qr: Array, dqr: Array,
            ddqr: Array, integral: Array, out: Array, work: RunBuffers) -> None:
    """Compute the law's torque (n,) at one tick from measured position, speed and reference; `integral` is updated."""
    n = len(seen)
    for i in range(n):
        e = qr[i] - seen[i]
        out[i] = law.kp[i] * e + law.kd[i] * (law.follow[i] * dqr[i] - speed[i]) + law.ahead[i] * ddqr[i]
        if law.ki[i] != 0.0:
            out[i] += law.ki[i] * (integral[i] + period * e)
    if len(law.extra) > 0:  # Sousa, eq. 5.8
        mass_and_bias(plant.parent, plant.gravity, law.rows, seen, speed, work.matrix, work.bias)
        for i in range(n):
            total = work.bias[i]
            if law.beside:  # Sousa, eq. 4.16
                total += out[i] - law.ahead[i] * ddqr[i]
            for j in range(n):
                a = law.ahead[j] * ddqr[j] if law.beside else out[j]
                total += ((work.matrix[i, j] if j <= i else work.matrix[j, i]) + law.extra[i, j]) * a
            work.net[i] = total
        for i in range(n):
            out[i] = work.net[i]
    for i in range(n):
        if len(law.feed) > 0:
            out[i] += law.feed[tick, i]
        if abs(out[i]) > law.limit[i]:  # anti-windup: the integral is constant while the torque is limited
            out[i] = math.copysign(law.limit[i], out[i])
        else:
            integral[i] += period * (qr[i] - seen[i])


@njit(**BORROWING)
def run(plant: Plant, law: Law, sensors: Sensors, qr: Array, dqr: Array, ddqr: Array, y: Array, period: float,
        steps: int, tolerance: float, fastest: Array, out: Array, measured: Array, carried: LawState,
        work: RunBuffers) -> tuple[int, int]:
    """Run the closed loop over all ticks of the reference (ticks, n); return the exit status and the last tick.

    steps: RK4 steps per tick, or 0 for the adaptive integrator with `tolerance`. out (4, ticks, n): position, velocity,
    acceleration of the links and torque of the motors at each tick, with the torque of that tick already applied; with
    flexible joints (7, ticks, n), followed by position, velocity and acceleration of the motors. measured (ticks, n):
    positions measured by the controller.
    """
    n, ticks = len(plant.parent), len(qr)
    flexible = len(plant.flexible) > 0
    at = 2 * n + len(plant.lugre)
    seen, speed, old, integral, tau, held, past = carried
    first = work.first
    for tick in range(ticks):
        if flexible:
            see(sensors, tick, period, y[at:at + n], y[at + n:at + 2 * n], seen, speed)
        else:
            see(sensors, tick, period, y[:n], y[n:2 * n], seen, speed)
        slot = held[tick % (law.delay + 1)]
        lagged(past, tick, law.speed_lag, speed, old)
        command(law, plant, tick, period, seen, old, qr[tick], dqr[tick], ddqr[tick], integral, slot, work)
        late = (tick + 1) % (law.delay + 1) if tick >= law.delay else 0
        for i in range(n):
            tau[i] = held[late, i]
        work.clock[0] = tick
        act(plant, 0.0, work)
        if len(work.signs) > 0:
            regular = derivative_held(plant, tau, y, period / max(steps, 1), first, work)
        else:
            regular = derivative(plant, tau, y, first, work)
        if not regular:
            return SINGULAR, tick
        for i in range(n):
            out[0, tick, i], out[1, tick, i], out[2, tick, i], out[3, tick, i] = y[i], y[n + i], first[n + i], tau[i]
            measured[tick, i] = seen[i]
            if flexible:
                out[4, tick, i], out[5, tick, i], out[6, tick, i] = y[at + i], y[at + n + i], first[at + n + i]
            if not abs(y[n + i]) < fastest[i] or not math.isfinite(first[n + i]):
                return DIVERGED, tick
        if tick + 1 < ticks:
            if steps > 0:
                ended = advance_rk4(plant, tau, y, first, period / steps, steps, work)
            else:
                ended = advance_adaptive(plant, tau, y, first, period, tolerance, work)
            if ended != DONE:
                return ended, tick
    return DONE, ticks
