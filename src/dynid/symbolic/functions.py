"""Functions that can be generated: what each takes, what it gives, and how it is made on a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model.term import Stepping, Term, UnderLoad
from dynid.regression.base import BaseParameters
from dynid.robot import BASE
from dynid.robot.pose import inverse
from dynid.symbolic import matrices, motion
from dynid.symbolic.graph import Graph, Operations, Value
from dynid.symbolic.numbers import Layout
from dynid.symbolic.regroup import regrouped
from dynid.symbolic.trace import traced_entries, traced_step
from dynid.symbolic.vectors import Matrix, Rotation, Vector, add, apply, cross, dot, numbers, transposed


@dataclass(frozen=True)
class Output:
    """Values of a result. shape: (n,), (rows, columns); in the order of rows."""

    name: str
    shape: tuple[int, ...]
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Function:
    """A function on a graph of its own. inputs: names and sizes, in order."""

    name: str
    about: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[Output, ...]
    graph: Graph

    @property
    def values(self) -> list[Value]:
        """All values of all outputs in order."""
        return [value for output in self.outputs for value in output.values]

    @cached_property
    def operations(self) -> Operations:
        return self.graph.operations(self.values)


@dataclass(frozen=True)
class Writer:
    """What the recipes below work with: a graph, the model's layout, the joints' symbols and the numbers."""

    graph: Graph
    plan: Layout
    base: BaseParameters
    p: tuple[Value, ...]  # of the base's numbers

    @cached_property
    def q(self) -> Vector:
        return self.graph.symbols("q", self.plan.dof)

    @cached_property
    def dq(self) -> Vector:
        return self.graph.symbols("dq", self.plan.dof)

    @cached_property
    def ddq(self) -> Vector:
        return self.graph.symbols("ddq", self.plan.dof)

    @cached_property
    def still(self) -> Vector:
        return [self.graph.zero] * self.plan.dof

    @cached_property
    def bodies(self) -> list[Vector]:
        """Ten numbers of each body of the tree."""
        numbers = [self.graph.zero] * (10 * self.plan.bodies)
        for place, value in zip(self.base.independent, self.p, strict=True):
            if place < len(numbers):
                numbers[place] = value
        return [numbers[10 * i:10 * i + 10] for i in range(self.plan.bodies)]

    @cached_property
    def frames(self) -> list[motion.Place]:
        return motion.places(self.graph, self.plan.chain, self.tree(self.q, self.plan.offset))

    def tree(self, signal: Sequence[Value], offset: Array | None = None) -> Vector:
        """A signal of the robot's joints for all joints of the tree."""
        rows = [dot(numbers(self.graph, row), signal) for row in self.plan.coupling]
        return rows if offset is None else [x + float(b) for x, b in zip(rows, offset, strict=True)]

    def joints(self, torques: Sequence[Value]) -> Vector:
        """Torques of all joints of the tree as those of the robot's joints."""
        return [dot(numbers(self.graph, column), torques) for column in self.plan.coupling.T]

    def motion(self, dq: Sequence[Value], ddq: Sequence[Value], *, weight: bool) -> list[motion.State]:
        gravity = [float(x) for x in self.plan.chain.gravity] if weight else [0.0] * 3
        return motion.states(self.graph, self.plan.chain, self.frames, self.tree(dq), self.tree(ddq), gravity)

    def rigid(self, dq: Sequence[Value], ddq: Sequence[Value], *, weight: bool) -> Vector:
        """Torques of the bodies alone."""
        states = self.motion(dq, ddq, weight=weight)
        return self.joints(motion.torques(self.graph, self.plan.chain, self.frames, states, self.bodies))

    def weight(self) -> Vector:
        """Torques of the bodies' weight, by first moments of all that a joint carries or by the recursion of torques,
        which is shorter where axes are parallel."""
        ways = (self.joints(matrices.weight(self.graph, self.plan.chain, self.frames, self.bodies)),
                self.rigid(self.still, self.still, weight=True))
        return min(ways, key=lambda torques: self.graph.operations(torques).total)

    @cached_property
    def memory(self) -> Vector:
        """What the terms remember at the sample."""
        return self.graph.symbols("memory", self.plan.remembers)

    def loads(self, term: Term, dq: Sequence[Value], ddq: Sequence[Value]) -> Vector:
        """Torques of the bodies as a term knows them; none for one that does not ask."""
        if not isinstance(term, UnderLoad):
            return []
        told = numbers(self.graph, self.plan.link_numbers(term, self.base))
        for place, value in zip(self.base.independent, self.p, strict=True):
            if place < len(told) and _equal(told[place].number, value.number):
                told[place] = value  # which the torques of the bodies have already
        bodies = [told[10 * i:10 * i + 10] for i in range(self.plan.bodies)]
        states = self.motion(dq, ddq, weight=True)
        return self.joints(motion.torques(self.graph, self.plan.chain, self.frames, states, bodies))

    def columns(self, dq: Sequence[Value], ddq: Sequence[Value], *,
                loaded: bool = True) -> dict[tuple[int, int], Value]:
        """(joint, column of the base): torque for one unit of each number of the terms that are no bodies; loaded:
        also of those that see the torques of the bodies."""
        column = {int(place): k for k, place in enumerate(self.base.independent)}
        found: dict[tuple[int, int], Value] = {}
        for (term, places), own in zip(self.plan.terms, self.plan.channels, strict=True):
            if isinstance(term, UnderLoad) and not loaded:
                continue
            for joint, parameter, value in traced_entries(self.graph, term, self.plan.model.robot, (self.q, dq, ddq),
                                                          self.loads(term, dq, ddq), self.memory[own]):
                if places[parameter] in column:
                    key = (joint, column[places[parameter]])
                    found[key] = found.get(key, self.graph.zero) + value
        return found

    def others(self, dq: Sequence[Value], ddq: Sequence[Value]) -> Vector:
        """Torques of the terms that are no bodies."""
        total = list(self.still)
        for (joint, column), value in self.columns(dq, ddq).items():
            total[joint] = total[joint] + self.p[column] * value
        return total

    def inertia(self) -> Matrix:
        """The joints' inertia matrix, rotors and all."""
        tree = matrices.inertia(self.graph, self.plan.chain, self.frames, self.bodies)
        coupling = [numbers(self.graph, row) for row in self.plan.coupling.T]
        half = [[dot(row, column) for column in transposed(tree)] for row in coupling]
        matrix = [[dot(row, column) for column in coupling] for row in half]
        for k in range(self.plan.dof):
            unit = [self.graph.one if i == k else self.graph.zero for i in range(self.plan.dof)]
            for i, more in enumerate(self.accelerated(unit)):
                matrix[i][k] = matrix[i][k] + more
        return matrix

    def accelerated(self, ddq: Sequence[Value]) -> Vector:
        """What accelerations add to the torques of the terms that are no bodies; velocities do not matter for it, and
        friction from load, which is no inertia, does not count."""
        total, without = list(self.still), self.columns(self.still, self.still, loaded=False)
        for (joint, column), value in self.columns(self.still, ddq, loaded=False).items():
            total[joint] = total[joint] + self.p[column] * (value - without.get((joint, column), self.graph.zero))
        return total


def _equal(a: float | None, b: float | None) -> bool:
    """Whether two values are the same number but for rounding."""
    return a is not None and b is not None and abs(a - b) <= 1e-13 * abs(a)


def inverse_dynamics(w: Writer) -> list[Output]:
    """Torques that a motion needs."""
    return [_vector("tau", add(w.rigid(w.dq, w.ddq, weight=True), w.others(w.dq, w.ddq)))]


def gravity(w: Writer) -> list[Output]:
    """Torques that hold the robot's bodies still against gravity."""
    return [_vector("g", w.weight())]


def coriolis(w: Writer) -> list[Output]:
    """Torques of the bodies from velocities alone, C dq."""
    return [_vector("c", w.rigid(w.dq, w.still, weight=False))]


def friction(w: Writer) -> list[Output]:
    """Torques of all that is neither body nor inertia: friction, offsets, springs."""
    if not w.plan.loaded:
        return [_vector("f", w.others(w.dq, w.still))]
    inertial = w.accelerated(w.ddq)
    return [_vector("f", [a - b for a, b in zip(w.others(w.dq, w.ddq), inertial, strict=True)])]


def step(w: Writer) -> list[Output]:
    """Memory of the terms at a sample from that of the sample before; at the start it is zero."""
    if not w.plan.remembers:
        raise ModelError("no term of the model remembers the motion, so there is no 'step' to generate")
    names = ("q_before", "dq_before", "memory_before")
    q, dq, memory = (w.graph.symbols(name, size) for name, size in zip(
        names, (w.plan.dof, w.plan.dof, w.plan.remembers), strict=True))
    found: Vector = []
    for (term, _), own in zip(w.plan.terms, w.plan.channels, strict=True):
        if isinstance(term, Stepping):
            found += traced_step(w.graph, term, w.plan.model.robot, (q, dq, memory[own]), (w.q, w.dq))
    return [_vector("memory", found)]


def inertia(w: Writer) -> list[Output]:
    """The inertia matrix M, rotors included."""
    return [_matrix("M", w.inertia())]


def regressor(w: Writer) -> list[Output]:
    """Y with tau = Y p."""
    states = w.motion(w.dq, w.ddq, weight=True)
    bodies = [int(place) for place in w.base.independent if place < 10 * w.plan.bodies]
    tree = matrices.regressor(w.graph, w.plan.chain, w.frames, states, bodies)
    rows = transposed([w.joints(column) for column in transposed(tree)])
    rows = [[*row, *[w.graph.zero] * (len(w.base) - len(bodies))] for row in rows]
    for (joint, column), value in w.columns(w.dq, w.ddq).items():
        rows[joint][column] = rows[joint][column] + value
    return [_matrix("Y", rows)]


def forward_dynamics(w: Writer) -> list[Output]:
    """Accelerations under torques, M = L D L' solved."""
    if w.plan.loaded:
        raise NotPossibleError("accelerations under friction from load are the solution of equations whose signs are "
                               "not known before, so 'forward_dynamics' cannot be generated",
                               "generate 'inverse_dynamics' and 'inertia' and correct accelerations until they agree, "
                               "or leave out the term 'load'")
    tau, n = w.graph.symbols("tau", w.plan.dof), w.plan.dof
    rest = [t - b for t, b in zip(tau, add(w.rigid(w.dq, w.still, weight=True), w.others(w.dq, w.still)), strict=True)]
    matrix = w.inertia()
    lower = [[w.graph.zero] * n for _ in range(n)]
    reciprocal: Vector = []
    # From the last joint to the first: what a joint far out gives is zero for joints on other branches.
    for j in reversed(range(n)):
        pivot = matrix[j][j]
        reciprocal.insert(0, w.graph.one / pivot)
        scaled = {i: matrix[i][j] * reciprocal[0] for i in range(j)}
        for i in range(j):
            lower[j][i] = scaled[i]
            for k in range(i + 1):
                matrix[i][k] = matrix[k][i] = matrix[i][k] - scaled[i] * matrix[k][j]
            rest[i] = rest[i] - scaled[i] * rest[j]
    ddq: Vector = []
    for j in range(n):
        value = rest[j] * reciprocal[j]
        for i in range(j):
            value = value - lower[j][i] * ddq[i]
        ddq.append(value)
    return [_vector("ddq", ddq)]


def coriolis_matrix(w: Writer) -> list[Output]:
    """C with c = C dq, of Christoffel symbols: dM/dt - 2 C is skew."""
    tree = matrices.coriolis(w.graph, w.plan.chain, w.frames, w.motion(w.dq, w.still, weight=False), w.tree(w.dq),
                             w.bodies)
    coupling = [numbers(w.graph, row) for row in w.plan.coupling.T]
    half = [[dot(row, column) for column in transposed(tree)] for row in coupling]
    return [_matrix("C", [[dot(row, column) for column in coupling] for row in half])]


def momentum(w: Writer) -> list[Output]:
    """Momentum M dq, and C' dq - g: dp/dt = tau - friction + C' dq - g, what a momentum observer integrates."""
    inertial = add(w.rigid(w.still, w.dq, weight=False), w.accelerated(w.dq))
    slope = w.joints(matrices.kinetic_slope(w.graph, w.plan.chain, w.frames, w.tree(w.dq), w.bodies))
    return [_vector("p_m", inertial), _vector("beta", [a - b for a, b in zip(slope, w.weight(), strict=True)])]


def energy(w: Writer) -> list[Output]:
    """Kinetic energy, rotors included, and potential energy of gravity, the latter up to a constant (J)."""
    inertial = momentum(w)[0].values
    kinetic = dot(inertial, w.dq) * 0.5
    potential = matrices.potential(w.graph, w.plan.chain, w.frames, w.bodies)
    return [Output("energy", (2,), (kinetic, potential))]


def _vector(name: str, values: Sequence[Value]) -> Output:
    return Output(name, (len(values),), tuple(values))


def _matrix(name: str, rows: Matrix) -> Output:
    return Output(name, (len(rows), len(rows[0])), tuple(value for row in rows for value in row))


Recipe = Callable[[Writer], list[Output]]
_MOTION = {"inverse_dynamics": "q dq ddq p", "regressor": "q dq ddq", "inertia": "q p", "coriolis": "q dq p",
           "coriolis_matrix": "q dq p", "gravity": "q p", "friction": "q dq p", "forward_dynamics": "q dq tau p",
           "momentum": "q dq p", "energy": "q dq p", "step": "q_before dq_before memory_before q dq"}
_REMEMBERING = ("inverse_dynamics", "regressor", "friction", "forward_dynamics")  # of a model that remembers
RECIPES: Mapping[str, Recipe] = {recipe.__name__: recipe for recipe in (
    inverse_dynamics, regressor, inertia, coriolis, coriolis_matrix, gravity, friction, forward_dynamics, momentum,
    energy, step)}
OF_FRAME = ("kinematics", "jacobian")


def make(name: str, plan: Layout, base: BaseParameters, values: Array | None = None, frame: str = "") -> Function:
    """A function by its name. values: of the base's numbers, where they are to be folded in; frame: of `kinematics` and
    `jacobian`."""
    graph = Graph()
    if name in OF_FRAME:
        outputs = _of_frame(name, Writer(graph, plan, base, tuple(graph.symbols("p", len(base)))), frame)
        about, inputs = _ABOUT[name].format(frame=frame), "q"
    elif name in RECIPES:
        p = graph.symbols("p", len(base)) if values is None else numbers(graph, values)
        outputs = RECIPES[name](Writer(graph, plan, base, tuple(p)))
        about, inputs = str(RECIPES[name].__doc__), _inputs(name, plan)
    else:
        raise ModelError(f"there is no function '{name}' to generate; there are {', '.join([*RECIPES, *OF_FRAME])}")
    graph, flat = regrouped(graph, [value for output in outputs for value in output.values])
    at, kept = 0, []
    for output in outputs:
        kept.append(Output(output.name, output.shape, tuple(flat[at:at + len(output.values)])))
        at += len(output.values)
    sizes = {"p": len(base), "memory": plan.remembers, "memory_before": plan.remembers}
    sizes |= dict.fromkeys(("q", "dq", "ddq", "tau", "q_before", "dq_before"), plan.dof)
    given = tuple((one, sizes[one]) for one in inputs.split() if one != "p" or values is None)
    return Function(name, about.splitlines()[0], given, tuple(kept), graph)


def _inputs(name: str, plan: Layout) -> str:
    """Names of a function's inputs."""
    inputs = _MOTION[name]
    if name == "friction" and plan.loaded:
        inputs = "q dq ddq p"
    if name in _REMEMBERING and plan.remembers:
        inputs = f"{inputs.removesuffix(' p')} memory{' p' if inputs.endswith(' p') else ''}"
    return inputs


_ABOUT = {"kinematics": "Rotation R and position x of frame {frame} in the base, m.",
          "jacobian": "Jacobian of frame {frame} in the base: velocity of its origin, then turn rate."}


def _of_frame(name: str, w: Writer, wanted: str) -> list[Output]:
    frame = w.plan.tree.frame(wanted)
    if frame.body == BASE:
        raise ModelError(f"frame '{wanted}' stands still on the base")
    links, graph = w.plan.chain.links, w.graph
    still = Rotation(graph, inverse(w.plan.chain.base)[:3, :3], None, None)
    origin = numbers(graph, inverse(w.plan.chain.base)[:3, 3])
    path = [frame.body]
    while links[path[0]].parent != BASE:
        path.insert(0, links[path[0]].parent)

    def to_base(vector: Vector, depth: int) -> Vector:
        for i in reversed(path[:depth + 1]):
            vector = w.frames[i].rotation.up(vector)
        return still.up(vector)

    origins = []
    for depth in range(len(path)):
        step = w.frames[path[depth]].origin
        origin = add(origin, to_base(step, depth - 1))
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
            arm = [a - b for a, b in zip(tip, origins[depth], strict=True)]
            tree[i] = [*cross(axis, arm), *axis]
    coupling = [numbers(graph, column) for column in w.plan.coupling.T]
    return [_matrix("J", [apply(coupling, row) for row in transposed(tree)])]
