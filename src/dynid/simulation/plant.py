"""Simulated robots as plain arrays: a model with parameters, and effects that are not linear in parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.state import pack
from dynid.dynamics.tree import robot_tree
from dynid.errors import ModelError
from dynid.model import Bodies, Curve, Dry, FlexibleModel, Linear, LinearModel, Load, Model, complete
from dynid.model.elements import Bristles, Element, MaxwellSlip
from dynid.robot import Robot
from dynid.robot.free_base import refuse_free_base
from dynid.simulation.chain import chain_rows

# A row of dry friction depends on the velocity v = w.dq and gives the torques w f(v) (see `friction_kernels`).
KIND, WIDTH, FCP, FCN, STATIC, LOW, HIGH, DIRECTION = range(8)
TANH, ARCTAN, HARD, STICK, SOFT = 0.0, 1.0, 2.0, 3.0, 4.0  # SOFT: a tanh that may be widened, see `smoothed`
# A row of load friction, one per joint: its factors, and the kind of its sign.
MOTORING, GENERATING, LOAD_KIND, LOAD_WIDTH = range(4)
# A row of a curve: the joints from LOW to HIGH of its direction, and the index of its first value.
CURVE_LOW, CURVE_HIGH, CURVE_VALUES, CURVE_DIRECTION = range(4)
# A row of a play operator: its joint, its stiffness (N m/rad or N/m), and the limits of its deflection (rad or m).
SLIP_JOINT, SLIP_STIFFNESS, SLIP_LOW, SLIP_HIGH = range(4)
_SIGN_KINDS = {"hard": HARD, "tanh": TANH, "arctan": ARCTAN}
COMPILED_MOTOR_FRICTION = ("viscous", "coulomb")  # friction of motors that compiled code supports


@dataclass(frozen=True, eq=False)
class LuGre:
    """LuGre friction of the simulated robot, which is not linear in its parameters.

    dz = v - sigma0 |v| / g(v) z,  g = Fc + (Fs - Fc) exp(-(v / vs)^2),  torque = sigma0 z + sigma1 dz + sigma2 v

    Each value is one number or one per joint. The friction of the model, usually zero, is added. Fc, Fs: N m or N. vs:
    rad/s or m/s. sigma0: N m/rad. sigma1, sigma2: N m s/rad.
    """

    Fc: ArrayLike
    Fs: ArrayLike
    vs: ArrayLike = 0.05
    sigma0: ArrayLike = 1e3
    sigma1: ArrayLike = 1.0
    sigma2: ArrayLike = 0.0

    def array(self, dof: int) -> Array:
        """Return the values as an array (dof, 6) with the columns sigma0, sigma1, sigma2, Fc, Fs, vs."""
        rows = [per_joint(getattr(self, name), dof, f"{name} of LuGre friction")
                for name in ("sigma0", "sigma1", "sigma2", "Fc", "Fs", "vs")]
        if np.any(rows[0] <= 0) or np.any(rows[3] <= 0) or np.any(rows[4] < rows[3]) or np.any(rows[5] <= 0):
            raise ModelError("LuGre friction needs positive sigma0, Fc and vs, and Fs at least Fc")
        return np.ascontiguousarray(np.column_stack(rows))


@dataclass(frozen=True, eq=False)
class Flexible:
    """Spring and damper between motor and link at every joint (Ardiani, eq. 1.17); one number or one per joint each.

    Attributes:
        stiffness: N m/rad, infinite for a rigid joint.
        damping: N m s/rad.
        rotor: inertia of the motors, kg m^2. Default: the rotor inertia of the model, which then moves with the motors.
        viscous, coulomb: friction of the motors, N m s/rad and N m. Friction of the model acts on the links.
    """

    stiffness: ArrayLike
    damping: ArrayLike = 0.0
    rotor: ArrayLike | None = None
    viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0

    def array(self, dof: int, extra: Array) -> Array:
        """Return an array (dof, 6) with the columns stiffness, damping, rotor inertia, viscous friction, Coulomb
        friction and width of its sign, which is still zero.

        extra (dof,): rotor inertia of the model, kg m^2.
        """
        given = np.atleast_1d(np.asarray(self.stiffness, dtype=float))
        rigid = np.broadcast_to(np.isposinf(given), (dof,)) if given.size in (1, dof) else np.zeros(dof, dtype=bool)
        stiffness = per_joint(np.where(np.isposinf(given), 1.0, given), dof, "stiffness")
        rows = np.column_stack([
            np.where(rigid, np.inf, stiffness), per_joint(self.damping, dof, "damping"),
            extra if self.rotor is None else per_joint(self.rotor, dof, "rotor inertia"),
            per_joint(self.viscous, dof, "viscous friction of the motors"),
            per_joint(self.coulomb, dof, "Coulomb friction of the motors"), np.zeros(dof)])
        if np.any(rows[~rigid][:, [0, 2]] <= 0) or np.any(rows[:, [1, 3, 4]] < 0):
            raise ModelError("flexible joints need positive stiffness and rotor inertia, and damping and friction "
                             "that are not negative", code="bad-flexible-joint")
        return np.ascontiguousarray(rows)


@dataclass(frozen=True, eq=False)
class Ripple:
    """Torque ripple of the motor that its current does not show: amplitude sin(periods q + phase).

    Every value is one number or one per joint. amplitude: N m or N. periods: per rad (or m) of the joint. phase: rad.
    """

    amplitude: ArrayLike
    periods: ArrayLike = 40.0
    phase: ArrayLike = 0.0

    def array(self, dof: int) -> Array:
        return np.ascontiguousarray(np.column_stack([per_joint(getattr(self, name), dof, f"{name} of the ripple")
                                                     for name in ("amplitude", "periods", "phase")]))


class Plant(NamedTuple):
    """A simulated robot with n joints as arrays for the kernels. Arrays of absent effects have zero rows.

    Attributes:
        parent, gravity: parent bodies (n,), and gravity in the base frame (3,), m/s^2.
        rows: work array of the bodies from `state.pack`, or `ChainRows` for a robot with dependent joints.
        extra, viscous: matrices (n, n) of torques extra ddq and viscous dq, such as those of rotors.
        spring, constant: vectors (n,) of torques spring q + constant.
        dry: rows of dry friction (m, 7 + n).
        curves, addresses, values: rows of curves (c, 3 + n), addresses of their functions (c,), and all their values.
        load: rows of load-dependent friction (n, 4).
        lugre: rows of LuGre friction (n, 6), see `LuGre.array`.
        ripple: rows of torque ripple (n, 3), which adds to the motor torques.
        flexible: rows of flexible joints (n, 6), see `Flexible.array`.
        slips: rows of play operators (s, 4), whose states are the positions from which they are deflected.
        places, wrenches: points (k, 14) and values (ticks, k, 6) of external wrenches, see `state.add_wrenches`.
    """

    parent: Ints
    gravity: Array
    rows: Any
    extra: Array
    viscous: Array
    spring: Array
    constant: Array
    dry: Array
    curves: Array
    addresses: Ints
    values: Array
    load: Array
    lugre: Array
    ripple: Array
    flexible: Array
    slips: Array
    places: Array
    wrenches: Array

    @property
    def dof(self) -> int:
        return len(self.parent)

    @property
    def states(self) -> int:
        """Size of the state: joint positions and velocities, LuGre states, motor positions and velocities, play
        operators."""
        return self.first_slip + len(self.slips)

    @property
    def first_slip(self) -> int:
        """Index of the state of the first play operator."""
        return 2 * self.dof + len(self.lugre) + 2 * len(self.flexible)


def make_plant(model: LinearModel, theta: ArrayLike, *, lugre: LuGre | None = None, ripple: Ripple | None = None,
               flexible: Flexible | None = None) -> Plant:
    """Return a model with parameters theta as a `Plant`, in which signs are still discontinuous (see `smoothed`)."""
    whole = complete(model)
    elements = whole.elements(theta)
    if whole.robot is None or elements is None:
        raise ModelError("a compiled simulation needs a model made from a robot, all of whose terms have a method "
                         "`elements`")
    refuse_free_base(whole.robot, "closed-loop simulation")
    n = model.dof
    extra, viscous = np.zeros((n, n)), np.zeros((n, n))
    spring, constant = np.zeros(n), np.zeros(n)
    for element in elements:
        if isinstance(element, Linear):
            extra += element.inertia
            viscous += element.viscous
            spring += element.stiffness
            constant += element.constant
    springs = np.zeros((0, 6))
    if flexible is not None:
        springs = flexible.array(n, np.diag(extra).copy())
        bends = np.isfinite(springs[:, 0])
        extra[np.diag_indices(n)] = np.where(bends & (flexible.rotor is None), 0.0, np.diag(extra))
        viscous += np.diag(np.where(bends, 0.0, springs[:, 3]))
    none = np.zeros((0, n))  # saves the kernels an empty sum
    tree = robot_tree(whole.robot)
    return Plant(tree.parent, tree.gravity, _rows(whole.robot, elements), extra if np.any(extra) else none,
                 viscous if np.any(viscous) else none, spring, constant, _dry(elements, n), *_curves(elements, n),
                 _load(elements, n), _bristles(elements, n, lugre),
                 np.zeros((0, 3)) if ripple is None else ripple.array(n), springs, _slips(elements),
                 np.zeros((0, 14)), np.zeros((1, 0, 6)))


def _rows(robot: Robot, elements: tuple[Element, ...]) -> Any:
    """Return the work array of the bodies from `state.pack`, or `ChainRows` for a robot with dependent joints."""
    followers, numbers = robot.followers, np.zeros((robot.tree.dof, 10))
    for element in elements:
        if isinstance(element, Bodies):
            numbers[:len(element.numbers)] += element.numbers
    return pack(robot_tree(robot), numbers) if followers is None else chain_rows(robot, followers, numbers)


def _load(elements: tuple[Element, ...], dof: int) -> Array:
    """Return the rows (dof, 4) of load-dependent friction of a model; (0, 4) if the model has none."""
    found = [one for one in elements if isinstance(one, Load)]
    rows = np.tile([0.0, 0.0, TANH, 1.0], (dof if found else 0, 1))
    for one in found:
        rows[one.joint] = one.motoring, one.generating, _SIGN_KINDS[one.sign.kind], one.sign.width
    return rows


def _bristles(elements: tuple[Element, ...], dof: int, lugre: LuGre | None) -> Array:
    """Return the rows (dof, 6) of LuGre and Dahl friction, with the columns of `LuGre.array`; (0, 6) if there is
    none."""
    found = [one for one in elements if isinstance(one, Bristles) and one.force > 0]
    if lugre is not None or not found:
        if found:
            raise ModelError("LuGre friction of the simulated plant and Dahl friction of its model cannot be "
                             "simulated together; remove one of them")
        return np.zeros((0, 6)) if lugre is None else lugre.array(dof)
    rows = np.tile([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], (dof, 1))
    for one in found:
        # LuGre's state is z reach, and its damping acts on the derivative of that.
        rows[one.joint] = (one.force / one.reach, one.damping / one.reach, 0.0, one.force, one.force * one.ratio,
                           one.vs)
    return rows


def _slips(elements: tuple[Element, ...]) -> Array:
    """Return the rows (s, 4) of the play operators of a model."""
    rows = [[one.joint, one.stiffness, one.low, one.high] for one in elements
            if isinstance(one, MaxwellSlip) and one.stiffness != 0.0]
    return np.array(rows, dtype=float).reshape(-1, 4)


def _dry(elements: tuple[Element, ...], dof: int) -> Array:
    """Return the table (m, 7 + dof) of dry friction elements for the compiled simulation."""
    rows = [[SOFT if one.widened and one.sign.kind == "tanh" else _SIGN_KINDS[one.sign.kind],
             0.0 if one.sign.kind == "hard" else one.sign.width, one.forward, one.backward, one.static,
             *_reach(one.direction), *one.direction] for one in elements if isinstance(one, Dry)]
    return np.array(rows, dtype=float).reshape(-1, DIRECTION + dof)


def _curves(elements: tuple[Element, ...], dof: int) -> tuple[Array, Ints, Array]:
    """Return rows (c, 3 + dof) of curves, the addresses (c,) of their functions, and all values."""
    curves = [one for one in elements if isinstance(one, Curve)]
    starts = np.cumsum([0, *(len(one.values) for one in curves)])
    rows = [[*_reach(one.direction), start, *one.direction] for one, start in zip(curves, starts, strict=False)]
    values = np.array([float(value) for one in curves for value in one.values])
    return (np.array(rows, dtype=float).reshape(-1, CURVE_DIRECTION + dof),
            np.array([one.function.address for one in curves], dtype=np.int64), values)


def _reach(direction: Array) -> tuple[int, int]:
    """Return the range of joints that a direction vector involves: indices of the first joint, and of the joint after
    the last."""
    touched = np.flatnonzero(direction)
    return (int(touched[0]), int(touched[-1]) + 1) if len(touched) else (0, 0)


class Widths(NamedTuple):
    """Widths of signs, rad/s or m/s: of each row of dry friction (m,) and of friction from load (n,) or (0,)."""

    dry: Array
    load: Array


def spring_rate(plant: Plant, inverse_inertias: Array) -> float:
    """Return the fastest rate, 1/s, of oscillation or decay of springs between motors and links, and of friction that
    is elastic before it slides; zero without either.

    inverse_inertias (k, n, n): inverse inertia matrices of the links at k postures, of which the fastest rate is
    returned.
    """
    mobility = np.diagonal(inverse_inertias, axis1=1, axis2=2).max(axis=0)
    bends = np.isfinite(plant.flexible[:, 0]) if len(plant.flexible) else np.zeros(0, dtype=bool)
    springs = [np.zeros((3, 1))]  # stiffness, damping and mobility of each spring
    if bends.any():
        stiffness, damping, rotor = plant.flexible[bends, :3].T
        springs.append(np.stack([stiffness, damping, 1.0 / rotor + mobility[bends]]))
    if len(plant.lugre):
        springs.append(np.stack([plant.lugre[:, 0], plant.lugre[:, 1], mobility]))
    if len(plant.slips):
        total = np.bincount(plant.slips[:, SLIP_JOINT].astype(int), plant.slips[:, SLIP_STIFFNESS], plant.dof)
        springs.append(np.stack([total, np.zeros(plant.dof), mobility]))
    stiffness, damping, movable = np.hstack(springs)
    return float(np.max(np.maximum(np.sqrt(stiffness * movable), damping * movable)))


def with_motor_signs(plant: Plant, step: float, speed: Array) -> Plant:
    """Return the plant with a smooth sign of the motors' dry friction, as narrow as the integrator's step allows.

    speed (n,): largest reference speed of each joint, rad/s or m/s.
    """
    if not len(plant.flexible):
        return plant
    rows = plant.flexible.copy()
    rows[:, 5] = np.maximum(step * rows[:, 4] / np.where(rows[:, 2] > 0, rows[:, 2], 1.0),
                            1e-3 * np.maximum(speed, 1e-3))
    return plant._replace(flexible=rows)


def smoothed(plant: Plant, widths: Widths) -> Plant:
    """Return the plant with discontinuous signs replaced by tanh(v / width); widenable signs are at least as wide."""
    dry, load = plant.dry.copy(), plant.load.copy()
    hard, soft = dry[:, KIND] == HARD, dry[:, KIND] == SOFT
    dry[hard, WIDTH], dry[soft, WIDTH] = widths.dry[hard], np.maximum(dry[soft, WIDTH], widths.dry[soft])
    dry[hard | soft, KIND] = TANH
    hard = load[:, LOAD_KIND] == HARD
    load[hard, LOAD_WIDTH], load[hard, LOAD_KIND] = widths.load[hard], TANH
    return plant._replace(dry=dry, load=load)


def as_narrow(plant: Plant) -> Plant:
    """Return the plant with smooth signs that keep their own width and are not widened; discontinuous signs remain."""
    dry = plant.dry.copy()
    dry[dry[:, KIND] == SOFT, KIND] = TANH
    return plant._replace(dry=dry)


def all_smooth(plant: Plant) -> bool:
    """Return whether no sign remains that the integrator has to make smooth or may widen."""
    return not (np.any(np.isin(plant.dry[:, KIND], (HARD, SOFT))) or np.any(plant.load[:, LOAD_KIND] == HARD))


def sticking(plant: Plant) -> Plant:
    """Return the plant with stiction in place of discontinuous signs (see `kernels.derivative_held`)."""
    dry = plant.dry.copy()
    dry[(dry[:, KIND] == HARD) & (dry[:, FCP] > 0) & (dry[:, FCN] > 0), KIND] = STICK
    return plant._replace(dry=dry)


def sign_widths(plant: Plant, inverse_inertias: Array, step: float, speed: Array, torques: Array) -> Widths:
    """Return a width for every sign, as small as the integrator's step allows.

    Near rest, dry friction damps the velocity at the rate Fc w'M^-1 w / width, and RK4 is stable up to 2.78 / step. The
    width is at least a thousandth of the fastest reference speed. Friction levels along one direction are added if one
    of the signs may be widened.

    Args:
        plant: the simulated robot.
        inverse_inertias: M^-1 (k, n, n) along the motion, of which the largest mobility w'M^-1 w counts.
        step: step of the integrator, s.
        speed: fastest reference speed of each joint (n,), rad/s or m/s.
        torques: largest torques of the bodies along the motion (n,), for load-dependent friction.
    """
    directions = plant.dry[:, DIRECTION:]
    mobility = np.abs(np.sum((directions @ inverse_inertias) * directions, axis=2)).max(axis=0)
    size = np.maximum(np.abs(plant.dry[:, FCP]), np.abs(plant.dry[:, FCN]))
    is_equal = np.all(directions[:, None] == directions, axis=2)
    size = np.where(is_equal @ (plant.dry[:, KIND] == SOFT), is_equal @ size, size)
    least = 1e-3 * np.maximum(np.abs(directions) @ speed, 1e-3)
    own = np.abs(np.diagonal(inverse_inertias, axis1=1, axis2=2)).max(axis=0)
    load = np.maximum(step * plant.load[:, [MOTORING, GENERATING]].max(axis=1) * torques * own,
                      1e-3 * np.maximum(speed, 1e-3)) if len(plant.load) else np.zeros(0)
    return Widths(np.maximum(step * size * mobility, least), load)


def per_joint(value: ArrayLike, dof: int, name: str) -> Array:
    """Return a value, given as one finite number or one per joint, as an array (dof,); name: its name in messages."""
    try:
        values = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be one number or {dof}, one per joint") from None
    if values.shape not in ((1,), (dof,)) or not np.isfinite(values).all():
        raise ModelError(f"{name} must be one finite number or {dof}, one per joint, got shape {values.shape}",
                         code="wrong-size")
    return np.broadcast_to(values, (dof,)).copy()


def flexible_machine(model: FlexibleModel, theta: ArrayLike) -> tuple[Model, Array, Flexible]:
    """Return the model of the links, its parameter values (parameters,), and the springs and motors for `simulate`.

    The offset of a spring and the skew between encoders are properties of a log and are not simulated.
    """
    strange = [kind for kind in model.motor_friction if kind not in COMPILED_MOTOR_FRICTION]
    if strange:
        raise ModelError(f"motors with friction of kind '{strange[0]}' cannot be simulated; possible kinds are "
                         f"{' and '.join(COMPILED_MOTOR_FRICTION)}")
    values = dict(zip(model.parameters.names, model.parameters.vector(theta), strict=True))
    n, links = model.links.dof, model.links

    def of_joints(symbol: str, otherwise: float = 0.0) -> Array:
        return np.array([values.get(f"{symbol}{j + 1}", otherwise) if j in model.bending else otherwise
                         for j in range(n)])

    flexible = Flexible(of_joints("K", np.inf), of_joints("D"), of_joints("Jm"), of_joints("Fvm"), of_joints("Fcm"))
    return links, np.array([values[name] for name in links.parameters.names]), flexible
