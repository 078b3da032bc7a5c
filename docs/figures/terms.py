"""Make docs/images/terms.svg: what every kind of friction and spring adds to the torque of its joint, drawn from the
terms' own columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from drawing import Panel, write

from dynid.arrays import Array
from dynid.model import LoadFriction, Model, term_from_table
from dynid.model.term import MotionSegment
from dynid.model.term_capabilities import capabilities
from dynid.robot import Robot

ROBOT = Robot.builtin("arm3r")
JOINT = ROBOT.joint_names[1]


def torque(tables: Mapping[str, Mapping[str, float]], motion: MotionSegment, **options: Any) -> Array:
    """Torque (samples,) on the second joint of terms by kind with these values by symbol, along a motion of it."""
    found = np.zeros(len(motion.t))
    for kind, values in tables.items():
        where = {"joint": JOINT} if kind in ("spring", "polynomial-spring", "gas-spring", "counterbalance") else {
            "joints": [JOINT]}
        term = term_from_table({"kind": kind, **where, **options.get(kind.replace("-", "_"), {})})
        model = Model(ROBOT, (term,))
        theta = np.array([values.get(item.symbol, 0.0) for item in model.parameters])
        signals, history = (motion.q, motion.dq, motion.ddq), capabilities(term).history
        entries = term.entries(ROBOT, *signals) if history is None else history.remembered(
            ROBOT, *signals, history.memory(model, motion))
        for joint, parameter, column in entries:
            if joint == 1:
                found = found + theta[parameter] * column
    return found


def moving(
    q: Array, dq: Array | None = None, t: Array | None = None, temperature: Array | None = None
) -> MotionSegment:
    """The second joint at q (samples,) with speeds dq, the others at rest."""
    times = np.linspace(0.0, 1.0, len(q)) if t is None else t
    whole = np.zeros((3, len(q), ROBOT.dof))
    whole[0, :, 1] = q
    whole[1, :, 1] = np.gradient(q, times) if dq is None else dq
    return MotionSegment(times, *whole, temperature)


def velocity_panels() -> list[Panel]:
    v = np.concatenate([np.linspace(-2.0, -1e-4, 400), np.linspace(1e-4, 2.0, 400)])
    at = moving(np.zeros(len(v)), v)
    shapes = {
        "viscous + coulomb": ({"viscous": {"Fv": 0.5}, "coulomb": {"Fc": 1.0}}, {}),
        "asymmetric-viscous + asymmetric-coulomb": ({"asymmetric-viscous": {"Fvp": 0.8, "Fvn": 0.3},
                                                     "asymmetric-coulomb": {"Fcp": 1.3, "Fcn": 0.7}}, {}),
        "stribeck": ({"stribeck": {"Fc": 1.8, "Fsc": -0.6, "Fv": 0.4, "Fnl": 0.1}}, {}),
        "exponential-stribeck": ({"exponential-stribeck": {"Fc": 0.8, "Fs": 1.6, "Fv": 0.4}},
                                 {"exponential_stribeck": {"vs": 0.2}}),
        "polynomial": ({"polynomial": {"Fp0_": 0.6, "Fp1_": 0.1, "Fp2_": 0.3}}, {}),
        "curve": ({"curve": {"Fv": 0.2, "Fc": 0.4, "Ft5_": 0.4, "Ft6_": 0.6}}, {"curve": {"speed": 2.0}})}
    first = {name: (v, torque(tables, at, **options)) for name, (tables, options) in shapes.items()}
    low = 1e-6
    held = {"coulomb": (np.array([-2.0, -low, low, 2.0]), np.array([-1.0, -1.0, 1.0, 1.0])),
            "breakaway: 0.5 N m more at rest": (np.array([-2.0, -low, -low, low, low, 2.0]),
                                                        np.array([-1.0, -1.0, -1.5, 1.5, 1.0, 1.0]))}
    return [Panel("Friction over velocity", "velocity, rad/s", "torque, N m", first),
            Panel("Breakaway", "velocity, rad/s", "torque, N m", held), load_panel()]


def load_panel() -> Panel:
    bodies = np.linspace(-10.0, 10.0, 401)
    torques, dq = np.zeros((2, len(bodies), ROBOT.dof))
    torques[:, 1], dq[:, 1] = bodies, 1.0
    plain, apart = LoadFriction(joints=(JOINT,)), LoadFriction(joints=(JOINT,), separate=True)
    lines = {"load, Fl = 0.1": [0.1 * y for _, _, y in plain.under_load(ROBOT, torques, dq)],
             "load, separate: 0.15 if driving, 0.05 if driven": [share * y for share, (_, _, y) in zip(
                 (0.15, 0.05), apart.under_load(ROBOT, torques, dq), strict=True)]}
    return Panel("Friction from load, joint moving forward", "torque of the bodies, N m", "friction, N m",
                 {name: (bodies, np.sum(parts, axis=0)) for name, parts in lines.items()})


def position_panels() -> list[Panel]:
    q = np.linspace(-np.pi, np.pi, 800)
    at = moving(q, np.zeros(len(q)))
    waves = {"cable, orders 1 and 2": torque({"cable": {"Cc1_": 0.6, "Cs2_": 0.4}}, at),
             "ripple, order 12": torque({"ripple": {"Rc12_": 0.2, "Rs12_": 0.1}}, at, ripple={"orders": (12.0,)})}
    near = np.linspace(-1.5, 1.5, 400)
    bent = moving(near, np.zeros(len(near)))
    strut = {"base": 0.3, "link": 0.15, "zero": 0.5}
    springs = {"spring": torque({"spring": {"K": 4.0}}, bent),
               "polynomial-spring": torque({"polynomial-spring": {"K1_": 4.0, "K3_": 3.0}}, bent,
                                           polynomial_spring={"degree": 3}),
               "gas-spring": torque({"gas-spring": {"Fg": 100.0, "Kg": 100.0}}, bent,
                                    gas_spring={**strut, "longest": 0.5}),
               "counterbalance": torque({"counterbalance": {"Kc": 500.0}}, bent,
                                        counterbalance={**strut, "slack": 0.1})}
    return [Panel("Waves over the joint's angle", "angle, rad", "torque, N m",
                  {name: (q, y) for name, y in waves.items()}),
            Panel("Springs", "angle, rad", "torque, N m", {name: (near, y) for name, y in springs.items()})]


def memory_panels() -> list[Panel]:
    t = np.linspace(0.0, 2.0, 8001)
    q = 0.004 * np.sin(2.0 * np.pi * t)
    swing, last = moving(q, t=t), t > 1.0
    loops = {"coulomb": torque({"coulomb": {"Fc": 1.0}}, swing),
             "dahl": torque({"dahl": {"Fd": 1.0}}, swing, dahl={"reach": 1e-3}),
             "lugre": torque({"lugre": {"Fz": 1.0, "Fz1_": 0.0}}, swing, lugre={"reach": 5e-4, "vs": 0.01}),
             "hysteresis": torque({"hysteresis": {"Fh1_": 0.4, "Fh2_": 0.6}}, swing,
                                  hysteresis={"radii": [5e-4, 2e-3], "unit": "rad"})}
    hour = np.linspace(0.0, 3600.0, 600)
    forward = np.full(len(hour), 0.5)
    warm = np.column_stack([20.0 + 30.0 * (1.0 - np.exp(-hour / 900.0))] * ROBOT.dof)
    dry = {"viscous": {"Fv": 1.0}, "coulomb": {"Fc": 1.0}}
    at = moving(0.5 * hour, forward, hour, warm)
    changes = {"viscous + coulomb at 0.5 rad/s": torque(dry, at),
               "with drift, three knots": torque({**dry, "drift": {"Fw1_": -0.3, "Fw2_": -0.05, "Fw3_": 0.1}}, at,
                                                drift={"knots": 3, "span": (0.0, 3600.0)}),
               "with temperature, 20 to 50 °C": torque({**dry, "temperature": {"Fct": -0.005, "Fvt": -0.01}}, at,
                                                       temperature={"reference": 40.0})}
    return [Panel("Presliding friction at a reversal", "angle, mrad", "torque, N m",
                  {name: (1e3 * q[last][::10], y[last][::10]) for name, y in loops.items()}),
            delay_panel(), Panel("Friction that changes over time", "time, min", "torque, N m",
                  {name: (hour / 60.0, y) for name, y in changes.items()})]


def delay_panel() -> Panel:
    t = np.linspace(0.0, 1.0, 400)
    swing, late = 2.0 * np.sin(2.0 * np.pi * t), 2.0 * np.sin(2.0 * np.pi * (t - 0.04))
    return Panel("Delay", "time, s", "torque, N m", {"without delay": (t, swing), "delay, D = 40 ms": (t, late)})


def main() -> None:
    write("terms", [*velocity_panels(), *position_panels(), *memory_panels()])


if __name__ == "__main__":
    main()
