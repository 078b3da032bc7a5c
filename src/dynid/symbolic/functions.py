"""Functions that can be generated: their inputs, outputs, and construction on an expression graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.term_capabilities import capabilities
from dynid.regression.base import BaseParameters
from dynid.robot import BASE
from dynid.robot.pose import inverse
from dynid.symbolic import matrices, motion
from dynid.symbolic.closures import path_to
from dynid.symbolic.frames import clean
from dynid.symbolic.graph import Derivatives, Graph, Operations, Value
from dynid.symbolic.numbers import ModelLayout
from dynid.symbolic.regroup import regrouped
from dynid.symbolic.trace import traced_entries, traced_step
from dynid.symbolic.vectors import Matrix, Rotation, Vector, add, apply, cross, dot, numbers, subtract, transposed
from dynid.symbolic.writer import Writer

# Load-dependent friction is piecewise linear in the accelerations, so Newton's method is exact once the signs of the
# torques are right. No third step was needed in 80,000 random states of five arms with friction up to half the torque.
REFINEMENT_STEPS = 3
_FUNCTION_ARGUMENTS = {
    "inverse_dynamics": "q dq ddq p", "regressor": "q dq ddq", "inertia": "q p", "coriolis": "q dq p",
    "coriolis_matrix": "q dq p", "gravity": "q p", "friction": "q dq p", "forward_dynamics": "q dq tau p",
    "momentum": "q dq p", "energy": "q dq p", "following": "q", "wrenches": "q dq ddq p",
    "step": "q_before dq_before memory_before q dq"}
_REMEMBERING = ("inverse_dynamics", "regressor", "friction", "forward_dynamics")  # with the memory of terms as input
OF_BODIES = ("wrenches",)  # functions that depend on all parameters of each body, not on base parameters alone
OF_FRAME = ("kinematics", "jacobian")
_FUNCTION_DESCRIPTIONS = {
    "kinematics": "Rotation R and position x of frame {frame} in the base, m.",
    "jacobian": "Jacobian of frame {frame} in the base: velocity of its origin, then angular velocity."}


def accelerations(w: Writer, tau: Sequence[Value]) -> Vector:
    """Return the accelerations ddq (dof,) that solve M ddq + c + g + friction = tau."""
    still = w.others(w.dq, w.still, loaded=False)
    bias = add(w.rigid(w.dq, w.still, weight=True), still)
    rest = subtract(tau, bias)
    mass = w.inertia()
    found = _solved(w, [list(row) for row in mass], list(rest))
    loads = _loads(w)
    for _ in range(REFINEMENT_STEPS if loads else 0):
        left = subtract(rest, apply(mass, found))
        matrix = [list(row) for row in mass]
        for load in loads:
            torques = add(apply(load.inertia, found), load.bias)
            substituted = {symbol.node: value for symbol, value in zip(load.symbols, torques, strict=True)}
            for i, (friction, slope) in enumerate(zip(load.friction, load.slopes, strict=True)):
                friction, slope = w.graph.rewritten([friction, slope], substituted)
                left[i] = left[i] - friction
                matrix[i] = [m + slope * x for m, x in zip(matrix[i], load.inertia[i], strict=True)]
        found = add(found, _solved(w, matrix, left))
    return found


@dataclass(frozen=True)
class _Load:
    """Load-dependent friction of a term as a function of the torques of the bodies.

    Attributes:
        symbols: symbols of the torques of the bodies (dof,).
        friction, slopes: friction torques (dof,), and their derivatives (dof,) by the torques of the bodies.
        inertia, bias: matrix (dof, dof) and vector (dof,) of the torques of the bodies, inertia ddq + bias.
    """

    symbols: Vector
    friction: Vector
    slopes: Vector
    inertia: Matrix
    bias: Vector


def _loads(w: Writer) -> list[_Load]:
    """Return the load-dependent friction of all terms of a model."""
    column = {int(place): k for k, place in enumerate(w.base.independent)}
    found = []
    for k, ((term, places), own) in enumerate(zip(w.plan.terms, w.plan.memory_slices, strict=True)):
        load = capabilities(term).load
        if load is None:
            continue
        symbols, friction = w.graph.symbols(f"load{k}", w.plan.dof), list(w.still)
        for joint, parameter, value in traced_entries(w.graph, term, w.plan.robot, (w.q, w.dq, w.still), symbols,
                                                      w.memory[own]):
            if places[parameter] in column:
                friction[joint] = friction[joint] + w.p[column[places[parameter]]] * value
        slopes = [Derivatives(w.graph, {symbol: w.graph.one})(f) for symbol, f in zip(symbols, friction, strict=True)]
        tree = matrices.inertia(w.graph, w.plan.chain, w.frames, w.loading_bodies(load))
        found.append(_Load(symbols, friction, slopes, w.between_joints(tree), w.loads(term, w.dq, w.still)))
    return found


def _solved(w: Writer, matrix: Matrix, rest: Vector) -> Vector:
    """Return the solution x of matrix x = rest. The matrix is factorised from the last joint to the first, which
    preserves zeros between branches; a symmetric matrix has factors L D L'. matrix and rest are overwritten."""
    n, graph = w.plan.dof, w.graph
    symmetric = all(matrix[i][j] == matrix[j][i] for i in range(n) for j in range(i))
    lower = [[graph.zero] * n for _ in range(n)]
    reciprocal: Vector = []
    for j in reversed(range(n)):
        reciprocal.insert(0, graph.one / matrix[j][j])
        scaled = [matrix[i][j] * reciprocal[0] for i in range(j)]
        for i in range(j):
            lower[j][i] = scaled[i] if symmetric else matrix[j][i] * reciprocal[0]
            for k in range(i + 1 if symmetric else j):
                matrix[i][k] = matrix[i][k] - scaled[i] * matrix[j][k]
                if symmetric:
                    matrix[k][i] = matrix[i][k]
            rest[i] = rest[i] - scaled[i] * rest[j]
    found: Vector = []
    for j in range(n):
        value = rest[j] * reciprocal[j]
        for i in range(j):
            value = value - lower[j][i] * found[i]
        found.append(value)
    return found


@dataclass(frozen=True)
class Output:
    """An output of a generated function: its name, its shape (n,) or (rows, columns), and its values row by row."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Value, ...]


def split(outputs: Sequence[Output], flat: Iterable[Any]) -> list[list[Any]]:
    """Return the entries of each output; flat: the entries of all outputs, one output after the other."""
    rest = iter(flat)
    return [[next(rest) for _ in output.values] for output in outputs]


@dataclass(frozen=True)
class Function:
    """A function to generate, as an expression graph.

    Attributes:
        name: name of the function.
        about: description in one sentence.
        inputs: name and size of each input, in order.
        outputs: outputs of the function, in order.
        graph: graph of the outputs.
    """

    name: str
    about: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[Output, ...]
    graph: Graph

    @property
    def values(self) -> list[Value]:
        """Graph values of all outputs of the function, in order."""
        return [value for output in self.outputs for value in output.values]

    @cached_property
    def operations(self) -> Operations:
        return self.graph.operations(self.values)


def inverse_dynamics(w: Writer) -> list[Output]:
    """Joint torques for given positions, velocities and accelerations."""
    return [_vector("tau", add(w.rigid(w.dq, w.ddq, weight=True), w.others(w.dq, w.ddq)))]


def gravity(w: Writer) -> list[Output]:
    """Joint torques that hold the robot's bodies against gravity."""
    return [_vector("g", w.weight())]


def coriolis(w: Writer) -> list[Output]:
    """Joint torques of Coriolis and centrifugal effects of the bodies, C dq."""
    return [_vector("c", w.rigid(w.dq, w.still, weight=False))]


def friction(w: Writer) -> list[Output]:
    """Joint torques of friction, offsets and springs: all terms except bodies and inertias."""
    if not w.plan.loaded:
        return [_vector("f", w.others(w.dq, w.still))]
    return [_vector("f", subtract(w.others(w.dq, w.ddq), w.accelerated(w.ddq)))]


def step(w: Writer) -> list[Output]:
    """Memory of the terms at a sample, computed from the memory at the previous sample; it is zero at the start."""
    if not w.plan.remembers:
        raise ModelError("no term of the model has a memory, so there is no function 'step' to generate",
                         "remove 'step' from the functions", code="no-memory")
    names = ("q_before", "dq_before", "memory_before")
    q, dq, memory = (w.graph.symbols(name, size) for name, size in zip(
        names, (w.plan.dof, w.plan.dof, w.plan.remembers), strict=True))
    found: Vector = []
    for (term, _), own in zip(w.plan.terms, w.plan.memory_slices, strict=True):
        update = capabilities(term).step
        if update is not None:
            found += traced_step(w.graph, term, update, w.plan.model.robot, (q, dq, memory[own]), (w.q, w.dq))
    return [_vector("memory", found)]


def inertia(w: Writer) -> list[Output]:
    """The inertia matrix M, including rotors."""
    return [_matrix("M", w.inertia())]


def regressor(w: Writer) -> list[Output]:
    """The regressor Y of the parameters p: tau = Y p."""
    states = w.motion(w.dq, w.ddq, weight=True)
    bodies = [int(place) for place in w.base.independent if place < 10 * w.plan.bodies]
    tree = matrices.regressor(w.graph, w.plan.chain, w.frames, states, bodies)
    rows = transposed([w.joints(column) for column in transposed(tree)])
    rows = [[*row, *[w.graph.zero] * (len(w.base) - len(bodies))] for row in rows]
    for (joint, column), value in w.columns(w.dq, w.ddq).items():
        rows[joint][column] = rows[joint][column] + value
    return [_matrix("Y", rows)]


def forward_dynamics(w: Writer) -> list[Output]:
    """Joint accelerations under given joint torques, by the factorisation M = L D L' of the inertia matrix."""
    return [_vector("ddq", accelerations(w, w.graph.symbols("tau", w.plan.dof)))]


def coriolis_matrix(w: Writer) -> list[Output]:
    """The Coriolis matrix C with torques C dq, from Christoffel symbols: dM/dt - 2 C is skew-symmetric."""
    tree = matrices.coriolis(w.graph, w.plan.chain, w.frames, w.motion(w.dq, w.still, weight=False), w.tree(w.dq),
                             w.bodies)
    matrix = w.between_joints(tree)
    if w.plan.follow:  # with dependent joints C is G' (C G + M dG/dt), M the inertia matrix of the tree
        mass = matrices.inertia(w.graph, w.plan.chain, w.frames, w.bodies)
        more = transposed([w.joints(apply(mass, column)) for column in transposed(w.rate_slopes)])
        matrix = [add(a, b) for a, b in zip(matrix, more, strict=True)]
    return [_matrix("C", matrix)]


def momentum(w: Writer) -> list[Output]:
    """Momentum p = M dq and torques C' dq - g for a momentum observer: dp/dt = tau - friction + C' dq - g."""
    states = w.motion(w.still, w.dq, weight=False)
    tree = motion.torques(w.graph, w.plan.chain, w.frames, states, w.bodies)
    inertial = add(w.joints(tree), w.accelerated(w.dq))
    slope = w.joints(matrices.kinetic_slope(w.graph, w.plan.chain, w.frames, w.tree(w.dq), w.bodies))
    if w.plan.follow:  # dependent joints add (dG/dt)' times the momentum of the tree
        slope = add(slope, apply(transposed(w.rate_slopes), tree))
    return [_vector("p_m", inertial), _vector("beta", subtract(slope, w.weight()))]


def following(w: Writer) -> list[Output]:
    """Positions of the dependent joints of loops; positions given as an input are improved by a Newton step."""
    if not w.plan.follow:
        raise ModelError(f"robot '{w.plan.robot.name}' has no closed loops, so there is no function 'following' to "
                         "generate", "remove 'following' from the functions", code="no-dependent-joints")
    if w.plan.solved:
        return [_vector("found", w.q_follow)]
    return [_vector("found", add(w.q_follow, w.of_loops(w.plan.loops.correction)))]


def energy(w: Writer) -> list[Output]:
    """Kinetic energy, including rotors, and potential energy of gravity up to a constant (J)."""
    inertial = momentum(w)[0].values
    kinetic = dot(inertial, w.dq) * 0.5
    potential = matrices.potential(w.graph, w.plan.chain, w.frames, w.bodies)
    return [Output("energy", (2,), (kinetic, potential))]


def wrenches(w: Writer) -> list[Output]:
    """Force and moment transmitted by each joint, from the bodies alone, in the joint's frame after its motion.

    The wrenches (joints, 6), N and N m, are about the joint's origin. The third moment of a revolute joint is its
    torque (Simionato, eq. 2.12-2.14, 2.32).
    """
    if w.plan.robot.followers is not None:
        raise ModelError(f"robot '{w.plan.robot.name}' has dependent joints, for which code of the wrenches between "
                         "bodies is not generated", "use dynid.dynamics.link_wrenches", code="no-wrench-code")
    states = w.motion(w.dq, w.ddq, weight=True)
    rows = []
    for link, joint, force, moment in zip(w.plan.chain.links, w.plan.robot.joints, *motion.wrenches(
            w.graph, w.plan.chain, w.frames, states, w.bodies), strict=True):
        pose = clean(link.place @ inverse(joint.after))  # the joint's frame in that of the body's code
        lever = cross(numbers(w.graph, pose[:3, 3]), force)
        back = [numbers(w.graph, row) for row in pose[:3, :3].T]
        rows.append([*apply(back, force), *apply(back, subtract(moment, lever))])
    return [_matrix("wrenches", rows)]


def _vector(name: str, values: Sequence[Value]) -> Output:
    return Output(name, (len(values),), tuple(values))


def _matrix(name: str, rows: Matrix) -> Output:
    return Output(name, (len(rows), len(rows[0])), tuple(value for row in rows for value in row))


Recipe = Callable[[Writer], list[Output]]
RECIPES: Mapping[str, Recipe] = {recipe.__name__: recipe for recipe in (
    inverse_dynamics, regressor, inertia, coriolis, coriolis_matrix, gravity, friction, forward_dynamics, momentum,
    energy, following, step, wrenches)}


def make(name: str, plan: ModelLayout, base: BaseParameters, values: Array | None = None, frame: str = "") -> Function:
    """Return the function with a given name on an expression graph.

    Args:
        name: name of the function.
        plan: the model for code generation.
        base: parameters of the function as combinations of the parameters in `plan`.
        values: values of these parameters to insert as constants. Default: the parameters are an input p.
        frame: name of the frame of `kinematics` and `jacobian`.
    """
    graph = Graph()
    if name in OF_FRAME:
        outputs = _of_frame(name, Writer(graph, plan, base, tuple(graph.symbols("p", len(base)))), frame)
        about, inputs = _FUNCTION_DESCRIPTIONS[name].format(frame=frame), "q"
    elif name in RECIPES:
        p = graph.symbols("p", len(base)) if values is None else numbers(graph, values)
        outputs = RECIPES[name](Writer(graph, plan, base, tuple(p)))
        about, inputs = str(RECIPES[name].__doc__), _inputs(name, plan)
    else:
        raise ModelError(f"there is no function '{name}' to generate; there are {', '.join([*RECIPES, *OF_FRAME])}")
    graph, flat = regrouped(*_with_loops(graph, plan, [value for output in outputs for value in output.values]))
    kept = (replace(output, values=tuple(own)) for output, own in zip(outputs, split(outputs, flat), strict=True))
    sizes = {"p": len(base), "memory": plan.remembers, "memory_before": plan.remembers, "q_follow": plan.follow}
    sizes |= dict.fromkeys(("q", "dq", "ddq", "tau", "q_before", "dq_before"), plan.dof)
    if plan.follow and not plan.solved and name != "step":
        inputs = inputs.replace("q", "q q_follow", 1)
    given = tuple((signal, sizes[signal]) for signal in inputs.split() if signal != "p" or values is None)
    return Function(name, about.splitlines()[0], given, tuple(kept), graph)


def _with_loops(graph: Graph, plan: ModelLayout, values: Sequence[Value]) -> tuple[Graph, list[Value]]:
    """Return the graph and the values with positions of dependent joints in closed form, unless q_follow is an
    input."""
    if not plan.solved:
        return graph, list(values)
    explicit = plan.explicit
    assert explicit is not None
    made: dict[int, Value] = {}
    q = graph.symbols("q", plan.dof)
    for k, turn in enumerate(explicit.turns):
        symbol = graph.symbol(f"q_follow[{k}]")
        made[symbol.node] = graph.taken_over(explicit.graph, [explicit.positions[k]], {"q": q})[0]
        if turn is not None:
            sine, cosine = graph.taken_over(explicit.graph, turn, {"q": q})
            made |= {graph.apply("sin", symbol).node: sine, graph.apply("cos", symbol).node: cosine}
    return graph, graph.rewritten(values, made)


def _inputs(name: str, plan: ModelLayout) -> str:
    """Return the names of a function's inputs, separated by spaces."""
    inputs = _FUNCTION_ARGUMENTS[name]
    if name == "friction" and plan.loaded:
        inputs = "q dq ddq p"
    if name in _REMEMBERING and plan.remembers:
        inputs = f"{inputs.removesuffix(' p')} memory{' p' if inputs.endswith(' p') else ''}"
    return inputs


def _of_frame(name: str, w: Writer, wanted: str) -> list[Output]:
    """Return the outputs of the function `name`, "kinematics" or "jacobian", for the frame `wanted`."""
    frame = w.plan.tree.frame(wanted)
    if frame.body == BASE:
        raise ModelError(f"frame '{wanted}' is fixed to the base, so its pose is constant; name a frame that moves")
    links, graph = w.plan.chain.links, w.graph
    still = Rotation(graph, inverse(w.plan.chain.base)[:3, :3], None, None)
    origin = numbers(graph, inverse(w.plan.chain.base)[:3, 3])
    path = path_to(w.plan.chain, frame.body)

    def to_base(vector: Vector, depth: int) -> Vector:
        for i in reversed(path[:depth + 1]):
            vector = w.frames[i].rotation.up(vector)
        return still.up(vector)

    origins = []
    for depth, i in enumerate(path):
        origin = add(origin, to_base(w.frames[i].origin, depth - 1))
        origins.append(origin)
    pose = links[frame.body].place @ frame.pose
    tip = add(origin, to_base(numbers(graph, pose[:3, 3]), len(path) - 1))
    if name == "kinematics":
        columns = [to_base(numbers(graph, pose[:3, k]), len(path) - 1) for k in range(3)]
        return [_matrix("R", transposed(columns)), _vector("x", tip)]
    tree = [[graph.zero] * 6 for _ in links]
    for depth, i in enumerate(path):
        axis = to_base([graph.zero, graph.zero, graph.one], depth)
        if links[i].sliding:
            tree[i] = [*axis, *[graph.zero] * 3]
        else:
            tree[i] = [*cross(axis, subtract(tip, origins[depth])), *axis]
    return [_matrix("J", [w.joints(row) for row in transposed(tree)])]
