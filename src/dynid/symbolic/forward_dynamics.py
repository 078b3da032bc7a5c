"""Forward dynamics on the graph, also for friction that depends on the torques of the bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynid.model.term_capabilities import capabilities
from dynid.symbolic import matrices
from dynid.symbolic.derivative import Derivatives
from dynid.symbolic.graph import Value
from dynid.symbolic.trace import traced_entries
from dynid.symbolic.vectors import Matrix, Vector, add, apply
from dynid.symbolic.writer import Writer

# Friction from load is piecewise linear in the accelerations, and Newton's method exact once the signs of the bodies'
# torques are right: in 80,000 random states of five arms, friction up to half of the torque, none needed a third step.
REFINEMENT_STEPS = 3


def accelerations(w: Writer, tau: Sequence[Value]) -> Vector:
    """Return the accelerations ddq (dof,) that solve M ddq + c + g + friction = tau."""
    still = w.others(w.dq, w.still, loaded=False)
    bias = add(w.rigid(w.dq, w.still, weight=True), still)
    rest = [t - b for t, b in zip(tau, bias, strict=True)]
    mass = w.inertia()
    found = _solved(w, [list(row) for row in mass], list(rest))
    loads = _loads(w)
    for _ in range(REFINEMENT_STEPS if loads else 0):
        left = [r - x for r, x in zip(rest, apply(mass, found), strict=True)]
        matrix = [list(row) for row in mass]
        for load in loads:
            torques = add(apply(load.inertia, found), load.bias)
            told = {symbol.node: value for symbol, value in zip(load.symbols, torques, strict=True)}
            for i, (friction, slope) in enumerate(zip(load.friction, load.slopes, strict=True)):
                friction, slope = w.graph.rewritten([friction, slope], told)
                left[i] = left[i] - friction
                matrix[i] = [m + slope * x for m, x in zip(matrix[i], load.inertia[i], strict=True)]
        found = add(found, _solved(w, matrix, left))
    return found


@dataclass(frozen=True)
class _Load:
    """Friction (dof,) of a load-dependent term and its derivatives (dof,) by the torques of the bodies, which are
    inertia ddq + bias."""

    symbols: Vector
    friction: Vector
    slopes: Vector
    inertia: Matrix
    bias: Vector


def _loads(w: Writer) -> list[_Load]:
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
        tree = matrices.inertia(w.graph, w.plan.chain, w.frames, w.told_bodies(load))
        found.append(_Load(symbols, friction, slopes, w.between_joints(tree), w.loads(term, w.dq, w.still)))
    return found


def _solved(w: Writer, matrix: Matrix, rest: Vector) -> Vector:
    """Return x with matrix x = rest by factorisation from the last joint to the first, which keeps the zeros between
    branches. A symmetric matrix has factors L D L'. matrix and rest are overwritten."""
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

