"""Make docs/images/terms.svg: what every kind of friction and spring adds to the torque of its joint, drawn from the
terms' own columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.model import LoadFriction, Model, term_from_table
from dynid.model.term import Motion, Remembering
from dynid.robot import Robot

IMAGE = Path(__file__).resolve().parent / "images" / "terms.svg"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito's
WIDTH, HEIGHT, COLUMNS = 450, 340, 2  # of a panel, pixels
LEFT, TOP, BOTTOM = 52, 30, 118  # room for labels and the legend
ROBOT = Robot.builtin("arm3r")
JOINT = ROBOT.joint_names[1]


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines by their legend, each x and y (points,)."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Array, Array]]


def torque(tables: Mapping[str, Mapping[str, float]], motion: Motion, **options: Any) -> Array:
    """Torque (samples,) on the second joint of terms by kind with these values by symbol, along a motion of it."""
    found = np.zeros(len(motion.t))
    for kind, values in tables.items():
        where = {"joint": JOINT} if kind in ("spring", "polynomial-spring", "gas-spring", "counterbalance") else {
            "joints": [JOINT]}
        term = term_from_table({"kind": kind, **where, **options.get(kind.replace("-", "_"), {})})
        model = Model(ROBOT, (term,))
        theta = np.array([values.get(item.symbol, 0.0) for item in model.parameters])
        entries = term.remembered(ROBOT, motion.q, motion.dq, motion.ddq, term.memory(model, motion)) if isinstance(
            term, Remembering) else term.entries(ROBOT, motion.q, motion.dq, motion.ddq)
        for joint, parameter, column in entries:
            if joint == 1:
                found = found + theta[parameter] * column
    return found


def moving(q: Array, dq: Array | None = None, t: Array | None = None, temperature: Array | None = None) -> Motion:
    """The second joint at q (samples,) with speeds dq, the others at rest."""
    times = np.linspace(0.0, 1.0, len(q)) if t is None else t
    whole = np.zeros((3, len(q), ROBOT.dof))
    whole[0, :, 1] = q
    whole[1, :, 1] = np.gradient(q, times) if dq is None else dq
    return Motion(times, *whole, temperature)


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
            "breakaway: 0.5 N m more is held at rest": (np.array([-2.0, -low, -low, low, low, 2.0]),
                                                        np.array([-1.0, -1.0, -1.5, 1.5, 1.0, 1.0]))}
    return [Panel("Friction over velocity", "velocity, rad/s", "torque, N m", first),
            Panel("Breakaway", "velocity, rad/s", "torque, N m", held), load_panel()]


def load_panel() -> Panel:
    bodies = np.linspace(-10.0, 10.0, 401)
    torques, dq = np.zeros((2, len(bodies), ROBOT.dof))
    torques[:, 1], dq[:, 1] = bodies, 1.0
    plain, apart = LoadFriction(joints=(JOINT,)), LoadFriction(joints=(JOINT,), apart=True)
    lines = {"load, Fl = 0.1": [0.1 * y for _, _, y in plain.under_load(ROBOT, torques, dq)],
             "load apart, 0.15 driving and 0.05 driven": [share * y for share, (_, _, y) in zip(
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
             "lugre": torque({"lugre": {"Fz": 1.0, "Fz1_": 0.0}}, swing, lugre={"reach": 5e-4, "vs": 0.01})}
    hour = np.linspace(0.0, 3600.0, 600)
    forward = np.full(len(hour), 0.5)
    warm = np.column_stack([20.0 + 30.0 * (1.0 - np.exp(-hour / 900.0))] * ROBOT.dof)
    dry = {"viscous": {"Fv": 1.0}, "coulomb": {"Fc": 1.0}}
    at = moving(0.5 * hour, forward, hour, warm)
    changes = {"viscous + coulomb at 0.5 rad/s": torque(dry, at),
               "and drift, three knots": torque({**dry, "drift": {"Fw1_": -0.3, "Fw2_": -0.05, "Fw3_": 0.1}}, at,
                                                drift={"knots": 3, "span": (0.0, 3600.0)}),
               "and temperature, 20 to 50 deg": torque({**dry, "temperature": {"Fct": -0.005, "Fvt": -0.01}}, at,
                                                       temperature={"reference": 40.0})}
    return [Panel("Friction that remembers: a reversal", "angle, mrad", "torque, N m",
                  {name: (1e3 * q[last][::10], y[last][::10]) for name, y in loops.items()}),
            delay_panel(), Panel("Friction that changes", "time, min", "torque, N m",
                  {name: (hour / 60.0, y) for name, y in changes.items()})]


def delay_panel() -> Panel:
    t = np.linspace(0.0, 1.0, 400)
    swing, late = 2.0 * np.sin(2.0 * np.pi * t), 2.0 * np.sin(2.0 * np.pi * (t - 0.04))
    return Panel("Delay", "time, s", "torque, N m", {"as the positions are": (t, swing), "delay, D = 40 ms": (t, late)})


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two."""
    raw = (high - low) / 5.0
    step = min((m * 10.0 ** np.floor(np.log10(raw)) for m in (1.0, 2.0, 5.0, 10.0)), key=lambda s: abs(s - raw))
    return [float(round(x, 10)) + 0.0 for x in np.arange(np.ceil(low / step) * step, high + 1e-9 * step, step)]


def drawn(panel: Panel) -> str:
    """A panel as SVG, its upper left corner at the origin."""
    xs, ys = (np.concatenate([line[k] for line in panel.lines.values()]) for k in (0, 1))
    room = 0.06 * (ys.max() - ys.min())
    (x0, x1), (y0, y1) = (xs.min(), xs.max()), (ys.min() - room, ys.max() + room)
    right, low = WIDTH - 12, HEIGHT - BOTTOM

    def place(x: Any, y: Any) -> tuple[Any, Any]:
        return LEFT + (x - x0) / (x1 - x0) * (right - LEFT), low - (y - y0) / (y1 - y0) * (low - TOP)

    parts = [f'<text x="{LEFT}" y="18" font-weight="bold" font-size="14">{panel.title}</text>']
    for x in ticks(x0, x1):
        at, _ = place(x, 0.0)
        parts.append(f'<path d="M{at:.1f} {TOP}V{low}" stroke="#e4e4e4"/><text x="{at:.1f}" y="{low + 15}" '
                     f'text-anchor="middle">{x:g}</text>')
    for y in ticks(y0, y1):
        _, at = place(0.0, y)
        parts.append(f'<path d="M{LEFT} {at:.1f}H{right}" stroke="#e4e4e4"/><text x="{LEFT - 6}" y="{at + 4:.1f}" '
                     f'text-anchor="end">{y:g}</text>')
    parts.append(f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{low - TOP}" fill="none" stroke="#999"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{low + 31}" text-anchor="middle">{panel.x}</text>')
    parts.append(f'<text transform="translate(13 {(TOP + low) / 2}) rotate(-90)" text-anchor="middle">{panel.y}</text>')
    for k, (name, (x, y)) in enumerate(panel.lines.items()):
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*place(x, y), strict=True))
        key = low + 47 + 13 * k
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[k]}" stroke-width="1.8"/>'
                     f'<path d="M{LEFT} {key - 4}h20" stroke="{COLOURS[k]}" stroke-width="3"/>'
                     f'<text x="{LEFT + 26}" y="{key}">{name}</text>')
    return "".join(parts)


def main() -> None:
    panels = [*velocity_panels(), *position_panels(), *memory_panels()]
    rows = -(-len(panels) // COLUMNS)
    inside = "\n".join(f'<g transform="translate({WIDTH * (k % COLUMNS)} {HEIGHT * (k // COLUMNS)})">{drawn(one)}</g>'
                       for k, one in enumerate(panels))
    IMAGE.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * COLUMNS} {HEIGHT * rows}" '
                     f'font-family="sans-serif" font-size="11" fill="#222"><rect width="100%" height="100%" '
                     f'fill="#fff"/>\n{inside}\n</svg>\n', encoding="utf-8")


if __name__ == "__main__":
    main()
