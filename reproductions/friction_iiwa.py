"""Friction of Ardiani, s. 2.4, on a virtual KUKA iiwa: one shape for all joints, or one per joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, nearest
from dynid.estimate import Estimate, Problem, identify
from dynid.excitation import Limits
from dynid.excitation.sweeps import friction_sweep
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.excitation.waypoints import quintics_within
from dynid.model import FrictionCurve, Model, Offset, RigidBodies, Sign, Stribeck
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import reconstruct
from reproductions._printed import Comparison, printed

RATE, CUTOFF, SLOW = 200.0, 25.0, 0.004  # Hz, Hz, rad/s below which a joint's own row is not used
ENCODER, NOISE = 5e-6, (0.03, 0.04, 0.02, 0.025, 0.01, 0.01, 0.008)  # rad, N m
STEEP = 100.0  # K_v, as the document has it
POINTS, SPEED = 40, 0.8  # of a motion of all joints, and the share of the top speeds that motions reach
BELIEVED = 0.01  # share by which the controller's own inertial parameters err
# Friction of the machine: fc, fsc, fv, offset as model B of table 2.9 where it has them, and a nonlinear viscous part
# large enough to have a power; shapes of each joint, and one that all share.
VALUES = {"Fc": (1.49, 2.33, 0.60, 0.58, 0.45, 0.47, 0.48), "Fsc": (-0.62, -1.06, -0.25, -0.17, -0.15, -0.13, -0.16),
          "Fv": (0.27, 0.40, 0.15, 0.15, 0.053, 0.06, 0.05), "Fo": (0.043, -0.96, 0.099, 0.383, 0.014, -0.18, 0.072),
          "Fnl": (0.9, 1.3, 0.5, 0.5, 0.25, 0.25, 0.2)}
DELTA, ALPHA = (3.5, 6.0, 3.7, 12.0, 5.0, 4.0, 8.0), (1.9, 1.6, 2.1, 1.7, 1.8, 2.2, 2.0)
SHARED = {"delta": 6.0, "alpha": 1.8}
KNOTS = (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # of the curve: long motions with little noise tell so many
CELLS = 11  # of 14 in which the document's model A is better
DEVIATIONS = 2.5


@dataclass(frozen=True, eq=False)
class Machine:
    """The virtual iiwa with given shapes of friction: its model, its true parameters and those of its controller."""

    model: Model
    theta: Array
    believed: Array

    @staticmethod
    def from_shape(delta: Any, alpha: Any) -> Machine:
        robot = Robot.builtin("kuka-iiwa14")
        bodies = Model(robot, (RigidBodies(),))
        real = nearest(Consistency(bodies.parameters), bodies.parameters.nominal).theta
        model = Model(robot, (RigidBodies(), Stribeck(delta=delta, alpha=alpha, Kv=STEEP)))
        body = dict(zip(bodies.parameters.names, real, strict=True))
        theta = np.array([body[item.name] if item.name in body else VALUES[item.symbol][item.owner]
                          for item in model.parameters])
        wrong = 1.0 + BELIEVED * np.random.default_rng(3).normal(size=len(theta))
        return Machine(model, theta, theta * wrong)

    def record(self, path: Trajectory, seed: int) -> Samples:
        """Samples of a log of the machine, which follows the path; noise on its positions and torques."""
        rng = np.random.default_rng(seed)
        t = np.arange(int(path.duration * RATE)) / RATE
        motion = path.at(t)
        tau = self.model.inverse_dynamics(self.theta, motion.q, motion.dq, motion.ddq)
        log = Recording(t, motion.q + ENCODER * rng.normal(size=tau.shape), tau + NOISE * rng.normal(size=tau.shape),
                        joints=self.model.joint_names)
        return prepare(log, cutoff=CUTOFF, slow=SLOW)

    def all_joints(self, seed: int, acceleration: float = 6.0) -> Samples:
        """A motion of all joints through random points, rad/s^2 at most."""
        robot = self.model.robot
        limits = Limits.from_robot(robot, acceleration=np.full(robot.dof, acceleration),
                                   velocity=SPEED * robot.limit("velocity"))
        low, high = 0.8 * robot.limit("lower"), 0.8 * robot.limit("upper")
        return self.record(quintics_within(np.random.default_rng(seed).uniform(low, high, (POINTS, 7)), limits), seed)

    def one_at_a_time(self, seed: int) -> Samples:
        """Motions of one joint after the other at constant speeds (fig. 2.5)."""
        robot = self.model.robot
        limits = Limits.from_robot(robot, acceleration=np.full(robot.dof, 6.0),
                                   velocity=SPEED * robot.limit("velocity"))
        return self.record(friction_sweep(limits, speeds=10, slowest=0.005, longest=4.0), seed)

    # -- the document's two procedures, and the curve -----------------------------------------------
    def model_a(self, samples: Samples) -> Estimate:
        """Identify inertias and friction jointly, with one shape for all joints from a grid search and a refinement."""
        term = Stribeck(delta=5.0, alpha=2.0, Kv=STEEP, free=("delta", "alpha"), shared=True)
        return identify(Problem.from_model(Model(self.model.robot, (RigidBodies(), term)), samples), method="sls")

    def model_b(self, samples: Samples, bodies: Array) -> Estimate:
        """Identify friction alone, with a shape for each joint, by separable least squares. The torques of known
        inertias are subtracted first."""
        term = Stribeck(delta=5.0, alpha=2.0, Kv=STEEP, free=("delta", "alpha"))
        model = Model(self.model.robot, (RigidBodies(), term))
        known = {item.name: float(value) for item, value in zip(self.model.parameters, bodies, strict=True)
                 if item.body is not None}
        return identify(Problem.from_model(model, samples, known=known), method="sls")

    def curve(self, samples: Samples) -> Estimate:
        """Identify inertias and a friction curve jointly."""
        curve = FrictionCurve(shape="spline", widths=KNOTS, sign=Sign("arctan", 1.0 / STEEP))
        terms = (RigidBodies(), curve, Offset())
        return identify(Problem.from_model(Model(self.model.robot, terms), samples), method="wls")


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("a machine whose joints have shapes of their own")
    made = Machine.from_shape(DELTA, ALPHA)
    whole, single = made.all_joints(0), made.one_at_a_time(1)
    others = [made.all_joints(2), made.all_joints(3, 10.0)]
    progress("models A and B, and the curve")
    found = {"A": made.model_a(whole), "B": made.model_b(single, made.believed), "curve": made.curve(whole),
             "B, inertias known": made.model_b(single, made.theta)}
    errors = {name: [[joint.relative_error for joint in reconstruct(one, log).joints] for log in others]
              for name, one in found.items()}
    progress("a machine whose joints share one shape")
    common = Machine.from_shape(**SHARED)
    shared = common.model_a(common.all_joints(0))
    shapes = {"A": shared.diagnostics["shape"], "B": found["B, inertias known"].diagnostics["shape"]}
    true = {"A": dict(SHARED), "B": {f"{name}{j + 1}": value for name, values in (("delta", DELTA), ("alpha", ALPHA))
                                     for j, value in enumerate(values)}}
    off = {model: {name: (shapes[model][name]["value"] - value) / shapes[model][name]["std"]
                   for name, value in true[model].items()} for model in true}
    plain = {model: {name: {key: float(one[key]) if np.isfinite(one[key]) else None for key in ("value", "std")}
                     for name, one in own.items()} for model, own in shapes.items()}
    published = {model: [[float(x) for x in printed("000", "2.10").rows[f"{model}, motion {k}"]] for k in (1, 2)]
                 for model in "AB"}
    return {"errors": errors, "published": published, "printed": [_inertial_table(found["A"]), _error_table()],
            "shapes": plain, "true_shapes": true,
            "inertial": _inertial(made, found["A"]), "friction": {name: _values(one) for name, one in found.items()},
            "curves": _curves(made, found),
            "checks": {}, "demonstrations": _checks(errors, off)}


def _inertial_table(estimate: Estimate) -> dict[str, Any]:
    """Compare table 2.8, model A, within two standard errors of both estimates.

    The virtual robot has the inertias of table 2.5, which were estimated from another motion."""
    compared = Comparison(printed("000", "2.8"))
    for row in compared.table.rows:
        if compared.table.text(row, "A") == "-":
            continue
        k = list(estimate.names).index(row)
        stated = 0.01 * compared.table.value(row, "A%") * abs(compared.table.value(row, "A"))
        compared.compare(row, "A", float(estimate.values[k]), claimed=False,
                         noise=2.0 * float(np.hypot(stated, estimate.std[k])))
    compared.leave_out("the controller's model, which the virtual robot does not have",
                       [entry for entry in compared.table.entries if entry[1][0] == "B"])
    compared.leave_out("the noise of the log is not printed")
    return compared.summary()


def _error_table() -> dict[str, Any]:
    compared = Comparison(printed("000", "2.10"))
    compared.leave_out("errors of the real robot, whose friction is not all printed")
    return compared.summary()


def _curves(made: Machine, found: dict[str, Estimate]) -> dict[str, Any]:
    """Return the friction of each joint over its speed, rad/s, without offset, N m. It is half the difference of the
    torques of both directions, in which gravity and offset cancel. Each joint moves alone at constant speed, so no
    other torque remains."""
    speeds = np.geomspace(SLOW, SPEED * made.model.robot.limit("velocity").min(), 60)
    still = np.zeros((len(speeds), 7))

    def odd(torques: Callable[[Array, Array, Array], Array]) -> list[list[float]]:
        moving = [np.outer(speeds, np.eye(7)[j]) for j in range(7)]
        return [(0.5 * (torques(still, dq, still) - torques(still, -dq, still))[:, j]).tolist()
                for j, dq in enumerate(moving)]

    return {"speeds": speeds.tolist(), "true": odd(lambda *motion: made.model.inverse_dynamics(made.theta, *motion)),
            **{name: odd(one.predict) for name, one in found.items()}}


def _cells(errors: dict[str, list[list[float]]], first: str, second: str) -> int:
    """Return the number of cells of the table in which the first model is better."""
    return int(np.sum(np.array(errors[first]) < np.array(errors[second])))


def _checks(errors: dict[str, list[list[float]]], off: dict[str, dict[str, float]]) -> dict[str, bool]:
    better, perfect = _cells(errors, "A", "B"), _cells(errors, "A", "B, inertias known")
    near = {model: float(np.mean([abs(one) < DEVIATIONS for one in values.values()])) for model, values in off.items()}
    mean = {name: float(np.mean(values)) for name, values in errors.items()}
    return {
        f"model A is better than B in {better} of 14 cells, at least {CELLS} as published": better >= CELLS,
        f"because of the inertias: with the true ones B is better in {14 - perfect} of 14": 14 - perfect >= 7,
        f"the curve (mean {mean['curve']:.2f} %) is no worse than A ({mean['A']:.2f} %) by a tenth, and better "
        f"than B ({mean['B']:.2f} %)": mean["curve"] <= 1.1 * mean["A"] and mean["curve"] < mean["B"],
        "A finds delta and alpha where joints share them, within 2.5 deviations": near["A"] == 1.0,
        f"B finds {100 * near['B']:.0f} % of 14 shapes within 2.5 deviations, at least 85 %": near["B"] >= 0.85}


def _values(estimate: Estimate) -> dict[str, dict[str, float]]:
    """Return the friction parameters with their relative standard errors, percent (table 2.9)."""
    return {name: {"value": float(value), "percent": float(100 * std / max(abs(value), 1e-12))}
            for name, value, std in zip(estimate.names, estimate.values, estimate.std, strict=True) if name[0] == "F"}


def _inertial(made: Machine, estimate: Estimate) -> dict[str, dict[str, float]]:
    """Return base inertial parameters with a standard error of at most a tenth, and those of the controller (table
    2.8)."""
    base = estimate.base
    believed = base.reduce(made.believed)
    return {name: {"A": float(value), "percent": float(100 * std / abs(value)), "B": float(given)}
            for name, value, std, given in zip(estimate.names, estimate.values, estimate.std, believed, strict=True)
            if name[0] in "XYZM" and std < 0.1 * abs(value)}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    joints = [str(j + 1) for j in range(7)]
    rows = [("error of torques, % (table 2.10)", *joints)]
    for k in (0, 1):
        for name, both in result["errors"].items():
            rows.append((f"motion {k + 1}, {name}", *(f"{error:.2f}" for error in both[k])))
        rows += [(f"motion {k + 1}, {name}, published on the real robot", *(f"{error:.2f}" for error in both[k]))
                 for name, both in result["published"].items()]
    for name in ("Fc", "Fsc", "Fv", "Fo", "Fnl"):
        for model in ("A", "B"):
            own = result["friction"][model]
            rows.append((f"{name}, {model} (table 2.9), true {', '.join(f'{v:g}' for v in VALUES[name])}",
                         *(f"{own[f'{name}{j}']['value']:.3f}" if f"{name}{j}" in own else "" for j in joints)))
    for name in ("delta", "alpha"):
        true, found = result["true_shapes"]["B"], result["shapes"]["B"]
        rows.append((f"{name}, true", *(f"{true[f'{name}{j}']:g}" for j in joints)))
        rows.append((f"{name}, B with true inertias", *(f"{found[f'{name}{j}']['value']:.2f}" for j in joints)))
        one = result["shapes"]["A"][name]
        rows.append((f"{name}, A where all joints have {SHARED[name]:g}", f"{one['value']:.3f}", f"+- {one['std']:.3f}",
                     *5 * ("",)))
    for name, own in result["inertial"].items():
        rows.append((f"{name}, A, %, B (table 2.8)", f"{own['A']:.4f}", f"{own['percent']:.2f}", f"{own['B']:.4f}",
                     *4 * ("",)))
    return rows
