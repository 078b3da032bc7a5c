"""Reference implementations for code generation: the classical recursion with inertia tensors, on symbols of SymPy and
CasADi.

The Newton-Euler recursion is written in the usual form, in the frames and with the parameters of the robot file:
rotation matrices, angular velocities, accelerations, forces and moments. With SymPy every result that is not a symbol
or number is assigned to a name, as in SymPyBotics, and common subexpressions of all assignments are eliminated. CasADi
shares equal nodes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.robot import BASE, Robot

Keep = Callable[[Any], Any]


class Recursion:
    """Newton-Euler recursion on any symbols. cos, sin: functions of the symbolic package; keep: function that is
    applied to every result."""

    def __init__(self, robot: Robot, cos: Callable[[Any], Any], sin: Callable[[Any], Any], keep: Keep) -> None:
        self._robot, self._cos, self._sin, self._keep = robot, cos, sin, keep

    def poses(self, q: Sequence[Any]) -> list[tuple[list[list[Any]], list[Any]]]:
        """Rotation (3, 3) and origin (3) of every body in the one before."""
        found = []
        for joint, position in zip(self._robot.joints, q, strict=True):
            c, s = self._cos(position), self._sin(position)
            motion = [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
            if joint.prismatic:
                motion = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, position], [0, 0, 0, 1]]
            pose = self._product(self._product(_plain(joint.before), motion), _plain(joint.after))
            found.append(([row[:3] for row in pose[:3]], [row[3] for row in pose[:3]]))
        return found

    def torques(self, inertias: Sequence[Sequence[Any]], q: Sequence[Any], dq: Sequence[Any], ddq: Sequence[Any],
                gravity: Sequence[float]) -> list[Any]:
        """Joint torques of bodies with ten numbers each."""
        robot, keep, poses = self._robot, self._keep, self.poses(q)
        states: list[tuple[list[Any], ...]] = []
        for i, joint in enumerate(robot.joints):
            still = ([0, 0, 0], [0, 0, 0], [-float(g) for g in gravity])
            before = still if joint.parent == BASE else states[joint.parent]
            rotation, origin = poses[i]
            back = [list(row) for row in zip(*rotation, strict=True)]
            z = [float(x) for x in joint.after[2, :3]]
            w0, dw0, a0 = before
            w, dw = self._apply(back, w0), self._apply(back, dw0)
            a = self._apply(back, _sum(a0, _sum(_cross(dw0, origin), _cross(w0, _cross(w0, origin)))))
            spin, rise = [x * dq[i] for x in z], [x * ddq[i] for x in z]
            if joint.prismatic:
                a = _sum(a, _sum(rise, [2 * x for x in _cross(w, spin)]))
            else:
                dw = _sum(dw, _sum(rise, _cross(w, spin)))
                w = _sum(w, spin)
                r = joint.after[:3, :3].T @ joint.after[:3, 3]
                if np.any(r):  # the body's origin turns about the joint: what the pose above has not seen
                    arm = [float(x) for x in r]
                    moved = _sum(_cross(rise, arm), _sum(_cross(spin, _cross(spin, arm)),
                                                         [2 * x for x in _cross(self._apply(back, w0),
                                                                                _cross(spin, arm))]))
                    a = _sum(a, moved)
            states.append(tuple([keep(x) for x in part] for part in (w, dw, a)))
        forces, moments = [], []
        for (w, dw, a), ten in zip(states, inertias, strict=True):
            tensor = [[ten[0], ten[1], ten[2]], [ten[1], ten[3], ten[4]], [ten[2], ten[4], ten[5]]]
            h, m = list(ten[6:9]), ten[9]
            forces.append([keep(x) for x in _sum([m * x for x in a], _sum(_cross(dw, h), _cross(w, _cross(w, h))))])
            moments.append([keep(x) for x in _sum(self._apply(tensor, dw), _sum(
                _cross(w, self._apply(tensor, w)), _cross(h, a)))])
        tau: list[Any] = [None] * robot.dof
        for i in reversed(range(robot.dof)):
            joint, (rotation, origin) = robot.joints[i], poses[i]
            z = [float(x) for x in joint.after[2, :3]]
            if joint.prismatic:
                tau[i] = _dot(z, forces[i])
            else:
                arm = [float(x) for x in joint.after[:3, :3].T @ joint.after[:3, 3]]
                tau[i] = _dot(z, _sum(moments[i], _cross(arm, forces[i])))
            if joint.parent != BASE:
                force = [keep(x) for x in self._apply(rotation, forces[i])]
                moment = _sum(self._apply(rotation, moments[i]), _cross(origin, force))
                forces[joint.parent] = [keep(x) for x in _sum(forces[joint.parent], force)]
                moments[joint.parent] = [keep(x) for x in _sum(moments[joint.parent], moment)]
        return tau

    def _apply(self, matrix: Sequence[Sequence[Any]], vector: Sequence[Any]) -> list[Any]:
        return [_dot(row, vector) for row in matrix]

    def _product(self, a: Sequence[Sequence[Any]], b: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [[self._keep(_dot(row, column)) for column in zip(*b, strict=True)] for row in a]


def _plain(matrix: np.ndarray) -> list[list[Any]]:
    """Return numbers, with integers as int, so that symbolic packages recognise zeros and ones."""
    return [[int(x) if x == int(x) else float(x) for x in row] for row in matrix]


def _sum(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _cross(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def symbols_of(name: str, count: int, make: Callable[[str], Any]) -> list[Any]:
    return [make(f"{name}{k}") for k in range(count)]


def functions_of(robot: Robot, recursion: Recursion, q: Sequence[Any], dq: Sequence[Any],
                 ddq: Sequence[Any]) -> dict[str, list[Any]]:
    """Return tau, M (by columns) and g with the robot's own parameters as constants."""
    numbers = [[int(x) if x == int(x) else float(x) for x in row] for row in robot.inertias]
    n, still = robot.dof, [0] * robot.dof
    columns = [recursion.torques(numbers, q, still, [int(k == j) for k in range(n)], np.zeros(3)) for j in range(n)]
    return {"inverse_dynamics": recursion.torques(numbers, q, dq, ddq, robot.gravity),
            "inertia": [columns[j][i] for i in range(n) for j in range(n)],
            "gravity": recursion.torques(numbers, q, still, still, robot.gravity)}


def sympy_c(robot: Robot) -> str:
    """C functions by SymPy: every step named, then common subexpressions of all steps."""
    import sympy

    n, text = robot.dof, "#include <math.h>\n"
    q, dq, ddq = (symbols_of(name, n, sympy.Symbol) for name in ("q", "dq", "ddq"))
    for name in ("inverse_dynamics", "inertia", "gravity"):
        steps: list[tuple[Any, Any]] = []

        def keep(x: Any, steps: list[tuple[Any, Any]] = steps) -> Any:
            x = sympy.sympify(x)
            if x.is_Atom or (-x).is_Atom:
                return x
            steps.append((sympy.Symbol(f"v{len(steps)}"), x))
            return steps[-1][0]

        found = functions_of(robot, Recursion(robot, sympy.cos, sympy.sin, keep), q, dq, ddq)[name]
        used = _needed(steps, found)
        shared, rest = sympy.cse([x for _, x in used] + found, symbols=sympy.numbered_symbols("s"), optimizations=[])
        text += f"void sympy_{name}(const double *q, const double *dq, const double *ddq, double *out)\n{{\n"
        text += "(void)dq; (void)ddq;\n"
        for one, signal in (("q", q), ("dq", dq), ("ddq", ddq)):
            text += "".join(f"const double {symbol} = {one}[{k}]; (void){symbol};\n" for k, symbol in enumerate(signal))
        text += _ordered(shared, list(zip([s for s, _ in used], rest[:len(used)], strict=True)), sympy)
        text += "".join(f"out[{k}] = {sympy.ccode(x)};\n" for k, x in enumerate(rest[len(used):])) + "}\n"
    return text


def _needed(steps: Sequence[tuple[Any, Any]], outputs: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The steps that the outputs need, in order."""
    import sympy
    wanted = set().union(*(sympy.sympify(x).free_symbols for x in outputs))
    kept = []
    for symbol, x in reversed(steps):
        if symbol in wanted:
            kept.append((symbol, x))
            wanted |= x.free_symbols
    return kept[::-1]


def _ordered(shared: Sequence[tuple[Any, Any]], steps: Sequence[tuple[Any, Any]], sympy: Any) -> str:
    """Return the assignments of both lists in an order in which each follows the assignments that it uses."""
    waiting, done, text = [*shared, *steps], set(), ""
    names = {symbol for symbol, _ in waiting}
    while waiting:
        later = []
        for symbol, x in waiting:
            if (x.free_symbols & names) <= done:
                text += f"const double {symbol} = {sympy.ccode(x)};\n"
                done.add(symbol)
            else:
                later.append((symbol, x))
        waiting = later
    return text


def casadi_c(robot: Robot, folder: Path) -> Path:
    """C functions by CasADi's generator."""
    import casadi

    n = robot.dof
    symbols = {name: casadi.SX.sym(name, n) for name in ("q", "dq", "ddq")}
    q, dq, ddq = ([symbols[name][k] for k in range(n)] for name in ("q", "dq", "ddq"))
    made = functions_of(robot, Recursion(robot, casadi.cos, casadi.sin, lambda x: x), q, dq, ddq)
    generator = casadi.CodeGenerator("peer.c")
    for name, values in made.items():
        generator.add(casadi.Function(f"casadi_{name}", list(symbols.values()), [casadi.vertcat(*values)]))
    generator.generate(f"{folder}/")
    return folder / "peer.c"


__all__ = ["Recursion", "casadi_c", "functions_of", "sympy_c"]
