"""Interface of a term, a part of the torque that is linear in its parameters, and defaults of its optional methods.

A term is any object with
    parameters(robot) -> its parameters in order, with names, units and kinds,
    entries(robot, q, dq, ddq) -> (joint, parameter, values (samples,)) for each entry of its columns that is
        not always zero, joint and parameter counted from 0.
Nothing has to be inherited. Further methods are optional; `dynid.model.term_capabilities` states those of a term:
    slopes(robot, q, dq, ddq) -> (joint, parameter, signal, by, values) for each entry's derivative by the signal
        (Q, DQ, DDQ) of joint `by` that is not always zero; without them derivatives are computed from the entries
        (`derived_slopes`).
    elements(robot, values) -> its form in a compiled simulation for parameters `values` (`dynid.model.elements`);
        without it a model is simulated in a Python loop.
    fill, pull_back, torques, inertia: all its entries, their derivatives, torques and inertia matrix, if a compiled
        kernel is faster than single entries (see `RigidBodies`).
    momentum(robot, q, dq, place, momentum, force, changing): its momentum and force, if it has a compiled kernel
        (`dynid.model.momentum`); without it they are computed from its entries.
    instant(robot, q, dq, ddq) -> values (entries,) of its entries for one motion (dof,), in the order of
    instant_entries(robot) -> joints (entries,) and parameters (entries,): for controllers, which need one sample.
    shape_names, shape, with_shape: parameters in which it is nonlinear (see `Stribeck`).
    slow_joints(robot) -> joints, counted from 0, whose friction at low speed it models: a run then keeps slow rows,
        which it otherwise drops because Coulomb friction is undetermined at low speed.
    dissipating(robot, speeds (dof,)) -> rows (k, its parameters): if rows @ values >= 0 and no parameter violates its
        sign constraint, the term dissipates power at all speeds up to these; for methods with constraints.
    learned: its fields that are set from logs or an estimate, each with its entry of `DataContext`: speeds, times,
        temperatures, bodies, estimate (see `FrictionCurve`, `Drift`, `LoadFriction`). They are saved with an estimate.
    channels(robot), memory(model, motion) -> (samples, channels), remembered(robot, q, dq, ddq, memory) -> entries: a
        term that needs times or the order of samples. `memory` is called once for every part of a log without a
        gap; `remembered` returns the entries of any of its rows, and `entries` those of a motion without times.
    step(robot, (q, dq, memory) of the previous sample, q, dq) -> each channel of the memory (samples,): the update
        from sample to sample in streams and in generated code.
    link_numbers(robot) -> (dof, 10), under_load(robot, torques (samples, dof), dq) -> entries: for a term that depends
        on the torques of the bodies, which are computed first (see `LoadFriction`).
`kind` is its name in robot files and on the command line (`dynid.model.register_term`). New capabilities are
added as further optional methods, so that existing terms do not change.

A term is defined by its `entries`, a function of arrays. If `entries` is called with `Signal` objects, it returns each
entry with its derivatives by positions, velocities and accelerations (forward-mode differentiation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.following import random_postures
from dynid.model.parameters import Parameter, Parameters
from dynid.model.sign import Sign
from dynid.robot import Robot

Entries = Iterator[tuple[int, int, Array]]
Slope = tuple[int, int, int, int, Array | float]  # joint, parameter, signal, by, values
Slopes = Iterator[Slope]
Place = Ints

Q, DQ, DDQ = 0, 1, 2  # signals of a slope
TERM_STEP = 1e-4  # step of differences, rad, rad/s, rad/s^2: errors below 1e-11, and 1e-8 for a sign of width 0.01
_COMPARISONS = (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)


class Term(Protocol):
    """Protocol of a term: a part of the torques that is linear in its own parameters."""

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]: ...

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries: ...


class MotionSegment(NamedTuple):
    """Motion without a gap: t (samples,), s, q, dq, ddq (samples, dof), and temperatures (samples, dof) or None."""

    t: Array
    q: Array
    dq: Array
    ddq: Array
    temperature: Array | None = None


class TorqueModel(Protocol):
    """Protocol of the methods of a model that a term with memory may use."""

    @property
    def robot(self) -> Robot: ...

    @property
    def parameters(self) -> Parameters: ...

    def inverse_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array: ...


def fill_entries(term: Term, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, out: Array,
                 memory: Array | None = None) -> None:
    """Write the regressor entries of a term into rows of out (rows, samples).

    place (joints, parameters): row of each entry, -1 for none. memory (samples, channels): states of a term with
    memory, nan for a motion without times.
    """
    remembered, fill = getattr(term, "remembered", None), getattr(term, "fill", None)
    if remembered is not None:
        out[place[place >= 0]] = 0.0
    elif fill is not None:
        fill(robot, q, dq, ddq, place, out)
        return
    entries = (term.entries(robot, q, dq, ddq) if remembered is None or memory is None or np.isnan(memory[:1]).any()
               else remembered(robot, q, dq, ddq, memory))
    for joint, parameter, values in entries:
        if place[joint, parameter] >= 0:
            out[place[joint, parameter]] = values


def pull_back(term: Term, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
              out: Array) -> None:
    """Add to out (3, samples, dof) the derivatives by q, dq, ddq of the sum of weights (rows, samples) times a term's
    entries.

    place (dof, parameters of the term): the row of each entry, -1 for none. The derivatives are exact if the term has
    `slopes` or its entries can be differentiated automatically, otherwise they are fourth-order differences.
    """
    adjoint, slopes = getattr(term, "pull_back", None), getattr(term, "slopes", None)
    if adjoint is not None:
        adjoint(robot, q, dq, ddq, place, weights, out)
        return
    found = derived_slopes(term, robot, q, dq, ddq) if slopes is None else slopes(robot, q, dq, ddq)
    if found is None:
        out += entry_differences(term, robot, q, dq, ddq, place, weights)
        return
    for joint, parameter, signal, by, values in found:
        row = place[joint, parameter]
        if row >= 0:
            out[signal, :, by] += weights[row] * values


def derived_slopes(term: Term, robot: Robot, q: Array, dq: Array, ddq: Array) -> list[Slope] | None:
    """Return the derivatives of a term's entries by automatic differentiation, in the form of `slopes`; None if the
    entries use operations that `Signal` and `Differentiated` do not support."""
    if hasattr(term, "fill"):  # its entries are computed by a kernel
        return None
    signals: Any = [Signal(values, number) for number, values in enumerate((q, dq, ddq))]
    found: list[Slope] = []
    try:
        for joint, parameter, values in term.entries(robot, *signals):
            if isinstance(values, Differentiated):
                found += [(joint, parameter, signal, by, slope) for (signal, by), slope in values.partials.items()]
    except Exception:  # an array operation that `Signal` lacks; an error of the term itself is raised again later
        return None
    return found


def entry_differences(term: Term, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array) -> Array:
    """Return the derivatives (3, samples, dof) that `pull_back` adds, by fourth-order differences."""
    rows = place[place >= 0]

    def entries(q: Array, dq: Array, ddq: Array) -> Array:
        values = np.zeros((len(weights), len(q)))
        fill_entries(term, robot, q, dq, ddq, place, values)
        return values[rows]

    return differences(entries, q, dq, ddq, weights[rows])


def differences(entries: Any, q: Array, dq: Array, ddq: Array, weights: Array) -> Array:
    """Return the derivatives (3, samples, dof) by q, dq and ddq of sum(weights * entries(q, dq, ddq)) by fourth-order
    differences. weights and the result of `entries` are (rows, samples). Signs must be smooth over several steps."""
    motion = [q, dq, ddq]
    out = np.zeros((3, *q.shape))
    for signal in (Q, DQ, DDQ):
        for joint in range(q.shape[1]):
            total = np.zeros(len(q))
            for steps, factor in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
                moved = motion[signal].copy()
                moved[:, joint] += steps * TERM_STEP
                values = entries(*(moved if k == signal else x for k, x in enumerate(motion)))
                total += factor * np.einsum("rs,rs->s", values, weights)
            out[signal, :, joint] = total / (12.0 * TERM_STEP)
    return out


def accelerates(term: Term, robot: Robot) -> bool:
    """Return whether a term's entries depend on accelerations, tested at a few random motions."""
    q, dq, ddq = probing_motion(robot, 4)
    with_, without = (list(term.entries(robot, q, dq, x)) for x in (ddq, np.zeros_like(ddq)))
    return any(not np.array_equal(a, b) for (_, _, a), (_, _, b) in zip(with_, without, strict=True))


def probing_motion(robot: Robot, samples: int) -> Array:
    """Return a few random positions, velocities and accelerations (3, samples, dof) that the robot can reach."""
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(3, samples, robot.dof))
    if robot.followers is not None and robot.followers.loops is not None:
        motion[0] = random_postures(robot, samples, rng)
    return motion


SomeTerm = TypeVar("SomeTerm", bound=Term)


def with_smooth_signs(term: SomeTerm, width: float) -> SomeTerm:
    """Return the term with every discontinuous `Sign` in its fields made smooth over `width` (rad/s)."""
    if not is_dataclass(term):
        return term
    hard = [f.name for f in fields(term) if isinstance(getattr(term, f.name), Sign)
            and getattr(term, f.name).kind == "hard"]
    soft: dict[str, Any] = {name: Sign("tanh", width) for name in hard}
    return replace(term, **soft) if soft else term


Partials = dict[tuple[int, int], Any]  # by signal and joint: derivative (samples,), or a number for all samples
_Rule = Callable[..., Any]  # derivative by one argument, from the result and the arguments

_DERIVATIVE_RULES: dict[Any, tuple[_Rule, ...]] = {
    np.add: (lambda f, x, y: 1.0, lambda f, x, y: 1.0), np.subtract: (lambda f, x, y: 1.0, lambda f, x, y: -1.0),
    np.multiply: (lambda f, x, y: y, lambda f, x, y: x), np.divide: (lambda f, x, y: 1.0 / y, lambda f, x, y: -f / y),
    np.power: (lambda f, x, y: y * x ** np.where(np.equal(y, 0.0), 1.0, y - 1.0), lambda f, x, y: f * np.log(x)),
    np.negative: (lambda f, x: -1.0,), np.positive: (lambda f, x: 1.0,), np.square: (lambda f, x: 2.0 * x,),
    np.sin: (lambda f, x: np.cos(x),), np.cos: (lambda f, x: -np.sin(x),), np.tanh: (lambda f, x: 1.0 - f * f,),
    np.arctan: (lambda f, x: 1.0 / (1.0 + x * x),), np.exp: (lambda f, x: f,), np.sqrt: (lambda f, x: 0.5 / f,),
    np.absolute: (lambda f, x: np.sign(x),), np.sign: (lambda f, x: 0.0,),
    np.maximum: (lambda f, x, y: np.greater_equal(x, y), lambda f, x, y: np.less(x, y)),
    np.minimum: (lambda f, x, y: np.less(x, y), lambda f, x, y: np.greater_equal(x, y)),
    np.arctan2: (lambda f, y, x: x / (x * x + y * y), lambda f, y, x: -y / (x * x + y * y))}


class NotDifferentiableError(TypeError):
    """Error: the entries of a term use an operation whose derivative is not implemented."""


class Differentiated(NDArrayOperatorsMixin):
    """Values (samples,) of a function of the motion, with derivatives by positions, velocities and accelerations."""

    def __init__(self, value: Any, partials: Partials) -> None:
        self.value, self.partials = value, partials

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NotDifferentiableError("a conversion to a plain array would lose the derivatives of the values")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        values = [x.value if isinstance(x, Differentiated) else x for x in inputs]
        if method != "__call__" or options or (ufunc not in _DERIVATIVE_RULES and ufunc not in _COMPARISONS):
            return NotImplemented
        found = ufunc(*values)
        if ufunc in _COMPARISONS:
            return found
        partials: Partials = {}
        for x, rule in zip(inputs, _DERIVATIVE_RULES[ufunc], strict=True):
            if isinstance(x, Differentiated):
                slope = rule(found, *values)
                for key, own in x.partials.items():
                    partials[key] = partials[key] + slope * own if key in partials else slope * own
        return Differentiated(found, partials)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in (np.zeros_like, np.ones_like) and not options:
            return function(self.value)
        if function is not np.where or len(arguments) != 3 or isinstance(arguments[0], Differentiated):
            raise NotDifferentiableError(f"there is no derivative of {function.__name__}")
        chosen, *both = arguments
        parts = [x.partials if isinstance(x, Differentiated) else {} for x in both]
        values = [x.value if isinstance(x, Differentiated) else x for x in both]
        return Differentiated(np.where(chosen, *values), {
            key: np.where(chosen, parts[0].get(key, 0.0), parts[1].get(key, 0.0)) for key in {**parts[0], **parts[1]}})


class Signal:
    """Positions, velocities or accelerations of all joints (samples, dof), whose columns carry derivatives."""

    __array_ufunc__ = None  # operators with arrays are those below

    def __init__(self, values: Array, number: int) -> None:
        self.values, self.number, self.shape, self.ndim = values, number, values.shape, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise NotDifferentiableError("a conversion to a plain array would lose the derivatives of the values")

    def __getitem__(self, key: Any) -> Differentiated:
        rows, joint = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
        if rows != slice(None) or not isinstance(joint, int | np.integer):
            raise NotDifferentiableError("derivatives exist only for whole columns, such as dq[:, 2]")
        return Differentiated(self.values[:, joint], {(self.number, int(joint) % self.shape[1]): 1.0})

    def __matmul__(self, weights: Array) -> Differentiated:
        if np.ndim(weights) != 1:
            raise NotDifferentiableError("derivatives exist only for weighted sums over the joints, such as dq @ "
                                         "weights")
        return Differentiated(self.values @ weights, {(self.number, j): float(weights[j])
                                                      for j in np.flatnonzero(weights).tolist()})
