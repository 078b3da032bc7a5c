"""Simulation of a model under a control law, also for many parameter vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics import Wrench
from dynid.dynamics.kinematics import places, series
from dynid.dynamics.loop_faults import not_closed
from dynid.errors import ModelError, NotPossibleError
from dynid.model import FlexibleModel, LinearModel, complete, flexible_joint_model, robot_model
from dynid.model.completion import can_compile
from dynid.recording import Samples
from dynid.simulation import kernels, loop
from dynid.simulation.chain import ChainRows
from dynid.simulation.controllers import Controller, Poles, TorqueDriven, control_law
from dynid.simulation.friction_kernels import settle_along
from dynid.simulation.kernels import DIVERGED, DONE, SINGULAR
from dynid.simulation.plant import (
    DIRECTION,
    KIND,
    SLIP_JOINT,
    SOFT,
    WIDTH,
    Flexible,
    LuGre,
    Plant,
    Ripple,
    Widths,
    all_smooth,
    as_narrow,
    flexible_machine,
    make_plant,
    per_joint,
    sign_widths,
    smoothed,
    spring_rate,
    sticking,
    with_motor_signs,
)
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from dynid.threads import pool, thread_count

_MAX_SWING_ANGLE = 0.5  # rad: largest phase of the oscillation of a flexible joint or of elastic friction per step
_MIN_STEP = 1e-5  # s: smaller steps are refused as a typing error


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated motion, one row per sampling period of the controller.

    Inverse dynamics gives exactly tau for q, dq, ddq (rigid joints, smooth signs), minus the torques of external
    wrenches (`dynamics.wrench_torques`).

    Attributes:
        t: times (ticks,), s.
        q, dq, ddq: positions, velocities and accelerations of the links (ticks, dof).
        tau: torques of the motors (ticks, dof); the torque of a tick is already applied.
        measured: positions measured by the controller (ticks, dof).
        rate: sampling rate of the controller, Hz.
        motors: position, velocity and acceleration of the motors (3, ticks, dof) for flexible joints, otherwise None;
            the controller then measures the motors.
    """

    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array
    rate: float
    motors: Array | None = None

    def __len__(self) -> int:
        return len(self.t)

    def samples(self, source: str = "simulation") -> Samples:
        """Return unfiltered samples of the motion for regression; with flexible joints, samples of the links."""
        return Samples.from_arrays(self.q, self.dq, self.ddq, self.tau, t=self.t, rate=self.rate, source=source)


@dataclass(frozen=True, eq=False)
class Settings:
    """Options of a simulation.

    Attributes:
        step, tolerance: step of RK4, s, an integer fraction of the controller's period (default one step per period);
            "adaptive": Dormand-Prince within `tolerance`.
        smooth: width (rad/s or m/s) of discontinuous signs of dry friction, one number or one per element; None: as
            small as the step allows; "stick": discontinuous with stiction; "none": discontinuous without stiction.
        start: position and velocity (2, dof) at the first tick. Default: those of the reference.
        lugre, ripple, flexible: further effects of the simulated robot, see `LuGre`, `Ripple` and `Flexible`.
        sensors: sensors of the controller.
        wrenches: external wrenches on the links, linear between ticks.
    """

    step: float | str | None = None
    tolerance: float = 1e-9
    smooth: ArrayLike | str | None = None
    start: ArrayLike | None = None
    lugre: LuGre | None = None
    ripple: Ripple | None = None
    flexible: Flexible | None = None
    sensors: Sensors | None = None
    wrenches: Sequence[Wrench] = ()


def simulate(model: LinearModel, theta: ArrayLike, controller: Controller, reference: Reference,
             **settings: Any) -> Simulation:
    """Simulate the closed loop of a model with parameters theta over the whole reference.

    The torque is constant between ticks. Models and terms without elements, and control functions, run in a Python loop
    with the same results. A model with flexible joints follows a reference of its motors. `settings`: see `Settings`.
    """
    run = Settings(**settings)
    vector = model.parameters.vector(theta)
    bending = _spring_model(model, reference)
    if bending is not None:
        model, vector, flexible = flexible_machine(bending, vector)
        run = replace(run, flexible=flexible)
    return _simulate(model, vector, controller, reference, run, None)


def _spring_model(model: LinearModel, reference: Reference) -> FlexibleModel | None:
    """Return a model with flexible joints if the reference has one column per joint, so that springs are simulated;
    otherwise None."""
    flexible = flexible_joint_model(model)
    return flexible if flexible is not None and reference.q.shape[1] == flexible.links.dof else None


def simulate_windows(model: LinearModel, theta: ArrayLike, windows: Iterable[tuple[Controller, Reference, Array]],
                     **settings: Any) -> Iterator[Simulation | NotPossibleError]:
    """Yield the simulation of a model with parameters theta over each of several references, as by `simulate`.

    Each window is a controller, a reference and the positions (rows, dof) that lead to its start, from which the play
    operators of hysteresis have their state.
    For a reference that cannot be simulated, the error is yielded. The model is converted once for all references.
    """
    vector, made = model.parameters.vector(theta), None
    for controller, reference, past in windows:
        try:
            if _spring_model(model, reference) is not None:
                yield simulate(model, vector, controller, reference, **settings)
                continue
            made = make_plant(model, vector) if made is None and can_compile(model) else made
            yield _simulate(model, vector, controller, reference, Settings(**settings), None, made, past)
        except NotPossibleError as error:
            yield error


def simulate_many(model: LinearModel, thetas: ArrayLike, controller: Controller | Sequence[Controller],
                  reference: Reference, *, threads: int | None = None, **settings: Any) -> list[Simulation]:
    """Simulate each row of thetas (many, parameters) in parallel, with friction signs as wide as for the first row.

    controller: one controller for all rows, or one for each row.
    """
    rows = [model.parameters.vector(theta) for theta in np.atleast_2d(np.asarray(thetas, dtype=float))]
    run = Settings(**settings)
    laws = list(controller) if isinstance(controller, Sequence) else [controller] * len(rows)
    if len(laws) != len(rows):
        raise ModelError(f"{len(laws)} controllers were given for {len(rows)} parameter vectors")
    if _spring_model(model, reference) is not None:
        return [simulate(model, row, law, reference, **settings) for row, law in zip(rows, laws, strict=True)]
    widths = None
    if can_compile(model) and run.smooth is None:
        widths = _widths(model, make_plant(model, rows[0]), rows[0], reference, run)

    def one(k: int) -> Simulation:
        return _simulate(model, rows[k], laws[k], reference, run, widths)

    count = min(thread_count(threads), len(rows))
    if count <= 1 or not can_compile(model):
        return [one(k) for k in range(len(rows))]
    return list(pool(count).map(one, range(len(rows))))


def joint_inertia(model: LinearModel, theta: ArrayLike, q: ArrayLike) -> Array:
    """Return the largest inertia of each joint (dof,) over postures (samples, dof): J of Janot et al., eq. 38."""
    q = np.asarray(q, dtype=float)
    few = q[:: max(1, len(q) // 200)]
    return complete(model).inertia_matrix(theta, few).diagonal(axis1=1, axis2=2).max(axis=0)


def dry_elements(model: LinearModel, theta: ArrayLike, reference: Reference, step: float | None = None, *,
                 steps: bool = True) -> tuple[Array, Array]:
    """Return the elements of dry friction: their directions w (elements, dof), which act on w.dq, and the widths of
    their simulated signs (elements,), rad/s or m/s.

    steps: whether to include the steps of friction curves. A model without compiled elements is assumed to have one
    element of zero width per joint.
    """
    if not can_compile(model):
        return np.eye(model.dof), np.zeros(model.dof)
    vector, run = model.parameters.vector(theta), Settings(step=step)
    plant = make_plant(model, vector)
    wanted = np.full(len(plant.dry), True) if steps else plant.dry[:, KIND] != SOFT
    plant = smoothed(plant, _widths(model, plant, vector, reference, run))
    return plant.dry[wanted, DIRECTION:], plant.dry[wanted, WIDTH]


def _simulate(model: LinearModel, theta: Array, controller: Controller, reference: Reference, run: Settings,
              widths: Widths | None, made: Plant | None = None, past: Array | None = None) -> Simulation:
    """Simulate the closed loop of a model and a controller.

    widths: widths of smooth signs of dry friction; None: computed from the step. made: plant of the model without LuGre
    friction, ripple and flexible joints; None: converted here from the model. past: see `simulate_windows`.
    """
    controller = control_law(controller)
    n, ticks = model.dof, len(reference)
    if reference.q.shape[1] != n:
        raise ModelError(f"the reference has {reference.q.shape[1]} joints, the model has {n}", code="joint-count")
    run = _fine_enough(model, theta, reference, run, made)
    if isinstance(controller, Poles):
        rotor = 0.0 if run.flexible is None or run.flexible.rotor is None else run.flexible.rotor
        controller = controller.tuned(joint_inertia(model, theta, reference.q) + per_joint(rotor, n, "rotor inertia"))
    if isinstance(controller, TorqueDriven) and len(controller.torque) < ticks:
        raise ModelError(f"the driving torques end after {len(controller.torque)} samples "
                         f"({len(controller.torque) / reference.rate:.4g} s), but the reference has {ticks} samples",
                         code="torques-too-short")
    steps = _steps(run, reference.rate)
    sensors = run.sensors or Sensors(np.zeros((0, n)), np.zeros(n), 0.0)
    plant = _plant(model, theta, reference, run, widths, made)
    states = 2 * n if plant is None else plant.states
    y = _start(run, reference, states, plant, past)
    work = kernels.space(loop.NO_PLANT if plant is None else plant)
    bending = plant is not None and len(plant.flexible) > 0
    out, measured = np.zeros((7 if bending else 4, ticks, n)), np.zeros((ticks, n))
    # An unstable loop doubles its speed every few ticks: ten times the reference is far outside any useful motion.
    fastest = 10.0 * reference.speed + 100.0
    law = controller.law(n)
    if plant is not None and law is not None:
        # A law without a model has rows of the plant's type, so that the loop is compiled once for all laws.
        ended, tick = kernels.run(plant, law if len(law.extra) else law._replace(rows=plant.rows), sensors, reference.q,
                                  reference.dq, reference.ddq, y, 1.0 / reference.rate, steps, run.tolerance, fastest,
                                  out, measured, kernels.memory(law), work)
    else:
        body: Any = loop.CompiledBody(plant, work, steps, run.tolerance, 1.0 / reference.rate) if plant else \
            loop.ModelBody(model, theta, steps, loop.outside_torques(model, run.wrenches, reference.t))
        command = loop.function_command(controller, reference, n) if law is None else \
            loop.law_command(law, plant, reference, n, work)
        first = 0 if plant is None or not bending else 2 * n + len(plant.lugre)
        delay, lag = (0, 0.0) if law is None else (law.delay, law.speed_lag)
        seat = (first, first + n)
        ended, tick = loop.run(body, command, delay, lag, sensors, reference, y, fastest, seat, out, measured)
    if ended == SINGULAR and isinstance(work.rows, ChainRows) and work.rows.open:
        raise _not_closed(model, work.rows, float(reference.t[tick]))
    if ended != DONE:
        step = 1.0 / (reference.rate * max(steps, 1))
        raise _not_possible(ended, reference.t[tick], model, out, tick, step)
    q, dq, ddq, tau = out[:4]
    return Simulation(reference.t, q, dq, ddq, tau, measured, reference.rate, out[4:] if bending else None)


def _plant(model: LinearModel, theta: Array, reference: Reference, run: Settings,
           widths: Widths | None, made: Plant | None = None) -> Plant | None:
    """Return the compiled plant, or None for a model that is simulated by its own methods."""
    if not can_compile(model):
        if run.lugre is not None or run.ripple is not None or run.flexible is not None:
            raise ModelError("LuGre friction, ripple and flexible joints need a model made from a robot, all of whose "
                             "terms have a method `elements`")
        return None
    plant = made
    if plant is None or not (run.lugre is None and run.ripple is None and run.flexible is None):
        plant = make_plant(model, theta, lugre=run.lugre, ripple=run.ripple, flexible=run.flexible)
    robot = complete(model).robot
    if run.wrenches and robot is not None:
        plant = plant._replace(places=places(robot, run.wrenches), wrenches=series(run.wrenches, reference.t))
    plant = with_motor_signs(plant, 1.0 / (reference.rate * max(_steps(run, reference.rate), 1)), reference.speed)
    if isinstance(run.smooth, str):
        if run.smooth not in ("stick", "none"):
            raise ModelError(f"the smooth sign of a simulation is a width, 'stick' or 'none', got '{run.smooth}'",
                             code="unknown-sign")
        if run.smooth == "none":
            return as_narrow(plant)
        if _steps(run, reference.rate) > 0:  # the adaptive integrator has no fixed steps for a constant force
            plant = sticking(plant)
    if all_smooth(plant):
        return plant
    if widths is None:
        widths = _widths(model, plant, theta, reference, run)
        if not (run.smooth is None or isinstance(run.smooth, str)):
            given = per_joint(run.smooth, len(plant.dry), "the width of smooth signs")
            widths = widths._replace(dry=given)
    return smoothed(plant, widths)


def _fine_enough(model: LinearModel, theta: Array, reference: Reference, run: Settings, made: Plant | None) -> Settings:
    """Return the settings with a step that resolves the oscillation of flexible joints and of friction that is elastic
    before it slides, if no step is given. made: see `_simulate`.

    RK4 is stable up to steps of 2.8 / rate of the oscillation, and accurate to a thousandth at 0.5 / rate.
    """
    if run.step is not None or not can_compile(model) or (run.flexible is None and not complete(model).channels):
        return run
    plant = made if made is not None and run.flexible is None else make_plant(model, theta, flexible=run.flexible)
    rate = spring_rate(plant, _inverse_inertias(model, theta, reference))
    period = 1.0 / reference.rate
    if run.flexible is None:
        return run if rate * period <= _MAX_SWING_ANGLE else replace(run, step=max(_MAX_SWING_ANGLE / rate, _MIN_STEP))
    return run if rate == 0.0 else replace(run, step=max(min(0.25 * period, _MAX_SWING_ANGLE / rate), _MIN_STEP))


def _inverse_inertias(model: LinearModel, theta: Array, reference: Reference) -> Array:
    """Return inverses of the inertia matrix (k, n, n) at some postures of the reference."""
    few = reference.q[::max(1, len(reference) // 20)]
    try:
        return np.asarray(np.linalg.inv(complete(model).inertia_matrix(theta, few)), dtype=float)
    except np.linalg.LinAlgError:
        raise NotPossibleError("the inertia matrix is singular along the reference with these parameters, so the "
                               "motion cannot be simulated",
                               "use physically consistent parameters or add rotor inertia",
                               "inertia-singular") from None


def _widths(model: LinearModel, plant: Plant, theta: Array, reference: Reference, run: Settings) -> Widths:
    moving = slice(None, None, max(1, len(reference) // 200))
    inverses = _inverse_inertias(model, theta, reference)
    step = 1.0 / (reference.rate * max(_steps(run, reference.rate), 1))
    torques = np.zeros(model.dof)
    own = robot_model(model)
    if len(plant.load) and own is not None:
        torques = np.abs(dynamics.inverse_dynamics(own.robot, own.body_numbers(theta), reference.q[moving],
                                                   reference.dq[moving], reference.ddq[moving])).max(axis=0)
    return sign_widths(plant, inverses, step, reference.speed, torques)


def _steps(run: Settings, rate: float) -> int:
    """Return the number of RK4 steps per tick; 0 for the adaptive integrator."""
    if run.step is None:
        return 1
    if isinstance(run.step, str):
        if run.step != "adaptive":
            raise ModelError(f"the step of a simulation is a time in seconds or 'adaptive', got '{run.step}'")
        return 0
    if not run.step >= _MIN_STEP:
        raise ModelError(f"the step of a simulation must be at least {_MIN_STEP} s, got {run.step}")
    return max(1, round(1.0 / (rate * run.step)))


def _start(run: Settings, reference: Reference, states: int, plant: Plant | None, past: Array | None) -> Array:
    n = reference.q.shape[1]
    y = np.zeros(states)
    y[:n], y[n:2 * n] = reference.q[0], reference.dq[0]
    if run.start is not None:
        given = np.asarray(run.start, dtype=float)
        if given.shape != (2, n) or not np.isfinite(given).all():
            raise ModelError(f"the start of a simulation is position and velocity (2, {n}), got shape {given.shape}")
        y[:n], y[n:2 * n] = given
    if plant is not None and len(plant.flexible):
        at = 2 * n + len(plant.lugre)
        y[at:at + n], y[at + n:at + 2 * n] = y[:n], y[n:2 * n]
    if plant is not None and len(plant.slips):  # play operators are not deflected at the first known position
        path = y[None, :n] if past is None else np.vstack([past, y[:n]])
        y[plant.first_slip:] = path[0, plant.slips[:, SLIP_JOINT].astype(int)]
        settle_along(plant.slips, path, y[plant.first_slip:])
    return y


def _not_closed(model: LinearModel, rows: ChainRows, time: float) -> NotPossibleError:
    """Return the error for a simulated robot whose loops do not close, or are at a singular posture."""
    robot = complete(model).robot
    assert robot is not None and robot.followers is not None and robot.followers.loops is not None
    why = not_closed(robot, int(rows.status[0]), f"at {time:.4g} s of the simulation", rows.q[0])
    return NotPossibleError(why, "choose reference and gains such that the robot stays where its loops close",
                            "loops-open")


def _not_possible(ended: int, time: float, model: LinearModel, out: Array, tick: int, step: float) -> NotPossibleError:
    """Return the error that states why a simulation ended early, from the kernel's status."""
    if ended == SINGULAR:
        return NotPossibleError(f"the inertia matrix became singular at {time:.4g} s of the simulation",
                                "use physically consistent parameters (--method pc-wls) or add rotor "
                                "inertia", "inertia-singular")
    if ended == DIVERGED:
        joint = int(np.argmax(np.nan_to_num(np.abs(out[1, tick]), nan=np.inf)))
        name = complete(model).joint_names[joint]
        return NotPossibleError(f"the simulation diverged at {time:.4g} s, first in {name}",
                                f"try a smaller step than {step:.3g} s, lower gains, or "
                                "parameters closer to those of the robot", "simulation-diverged")
    return NotPossibleError(f"the adaptive integrator stopped making progress at {time:.4g} s",
                            "use a wider smoothing of the sign function or a fixed step", "integrator-stuck")
