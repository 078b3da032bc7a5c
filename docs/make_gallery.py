"""Make docs/gallery.md, docs/gallery.json and docs/images/gallery/: twenty machines, each identified from one log.

    python docs/make_gallery.py            identify all of them and write the pages
    python docs/make_gallery.py --check    identify and compare with docs/gallery.json; exit code 1 where they differ

Ten machines are simulated from built-in robots. Ten are real; their logs are read below DYNID_DATA, and only results
are kept. Without that folder the real ones are skipped, and their stored results stay.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid import Model, Recording, Robot, make_terms
from dynid.arrays import Array
from dynid.dynamics import forward_kinematics
from dynid.recording.write import write_npz
from dynid.robot.write_urdf import plain_urdf
from dynid.runs import ModelSettings, RunSettings, run
from dynid.runs.demonstration import true_parameters
from dynid.runs.results import facts

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from benchmarks import _open_machines as machines  # noqa: E402

PAGE, NUMBERS, PICTURES = HERE / "gallery.md", HERE / "gallery.json", HERE / "images" / "gallery"
FRICTION = ("viscous", "coulomb", "offset")
RATE, DURATION, HARMONICS = 200.0, 20.0, 4  # Hz and s of a simulated log, sines of its motion
REACH, SPEED = 0.35, 0.35  # shares of a joint's range and top speed that a simulated motion uses
NOISE, ENCODER = 0.005, 2.0 * np.pi / 2**18  # of torques as a share of their rms; rad per count
SIMULATED = {
    "arm3r": "three joints, the arm of an extraction study", "scara2": "two horizontal joints",
    "puma560": "Unimation PUMA 560", "barrett-wam": "Barrett WAM, cable-driven", "ur10": "Universal Robots UR10",
    "franka-panda": "Franka Panda", "kuka-iiwa14": "KUKA LBR iiwa 14", "four-bar": "a four-bar linkage",
    "delta": "a delta robot with three closed chains", "palletiser": "a palletiser with parallelograms"}
REAL = {  # machine -> split of benchmarks/_open_machines.py that is identified, and what it is
    "emps": ("first half -> second", "EMPS, a prismatic axis with a ball screw"),
    "tx40": ("first half -> second", "Staubli TX40, motor currents"),
    "kuka_lwr4": ("1 -> 2", "KUKA LWR IV+, torque sensors"),
    "panda": ("first half -> second", "Franka Panda, torque sensors"),
    "iiwa14": ("first half -> second", "KUKA LBR iiwa 14, torque sensors, 25 Hz"),
    "ur3": ("id1 -> id2", "Universal Robots UR3, currents"),
    "dvrk_psm": ("one -> two", "da Vinci patient-side manipulator, first three joints"),
    "six_axis_plc": ("2 -> 1", "a six-axis arm on a PLC, currents"),
    "six_axis_ethercat": ("1 -> 2", "a six-axis arm on EtherCAT, permille of rated torque"),
    "double_pendulum": ("A0 four -> 01", "a double pendulum with quasi-direct drives")}
UR3 = """convention = "dh"
""" + "".join(f"\n[[joint]]\nalpha = {alpha}\na = {a}\nd = {d}\n" for alpha, a, d in (
    ('"pi/2"', 0, 0.1519), (0, -0.24365, 0), (0, -0.21325, 0), ('"pi/2"', 0, 0.11235), ('"-pi/2"', 0, 0.08535),
    (0, 0, 0.0819)))
URDFS = {"tx40": "tx40/tx40_mdh_modified.urdf", "kuka_lwr4": "kuka_lwr4/kuka_lwr4.urdf",
         "panda": "panda/panda_arm.urdf", "iiwa14": "machines/iiwa14/iiwa14.urdf"}
TOLERANCE = 0.1  # share by which errors may differ on another machine: last digits move a chosen cut-off
WIDTH, HEIGHT, BAR = 300, 170, 100  # pixels of a picture, and of its bars


@dataclass(frozen=True, eq=False)
class Machine:
    """A machine of the gallery: its robot and logs, in the folder where it is identified."""

    name: str
    title: str
    robot: Robot
    robot_file: str
    fitted: Sequence[Recording]
    unseen: Sequence[Recording]
    truth: Array | None = None


def simulated(name: str, title: str) -> Machine:
    """Two logs of a built-in robot with friction, noise and encoder counts."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=FRICTION))
    effort = robot.limit("effort")
    if not np.isfinite(effort).all():
        share = {"Fv": 0.3, "Fc": 0.5, "Fo": 0.05}
        truth = np.array([share[one.name[:2]] if one.nominal is None else one.nominal for one in model.parameters])
    else:
        truth = true_parameters(model)
    logs = []
    for seed in (1, 2):
        rng = np.random.default_rng([seed, *name.encode()])
        t, (q, dq, ddq) = np.arange(0.0, DURATION, 1.0 / RATE), motion(robot, rng)
        tau = model.inverse_dynamics(truth, q, dq, ddq)
        scale = NOISE * np.sqrt(np.mean(tau**2, axis=0))
        logs.append(Recording(t, ENCODER * np.round(q / ENCODER), tau + scale * rng.normal(size=tau.shape),
                              joints=robot.joint_names, source=f"{name} {seed}"))
    return Machine(name, f"{title} (simulated)", robot, name, logs[:1], logs[1:], truth)


def motion(robot: Robot, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations (samples, dof) of sines inside the joint limits."""
    t = np.arange(0.0, DURATION, 1.0 / RATE)[:, None]
    lower, upper = (np.where(np.isfinite(x), x, side) for x, side in (
        (robot.limit("lower"), -np.pi / 2), (robot.limit("upper"), np.pi / 2)))
    lower, upper = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    top = np.where(np.isfinite(robot.limit("velocity")), robot.limit("velocity"), 2.0)
    w = 2.0 * np.pi / DURATION * np.arange(2, 2 + 3 * HARMONICS, 3)
    a, phase = rng.uniform(0.3, 1.0, (HARMONICS, robot.dof)), rng.uniform(0.0, 2.0 * np.pi, (HARMONICS, robot.dof))
    a *= np.minimum(REACH * (upper - lower) / a.sum(axis=0), SPEED * top / (w @ a))
    angle = [one * t + p for one, p in zip(w, phase, strict=True)]
    q = 0.5 * (lower + upper) + sum(x * np.sin(y) for x, y in zip(a, angle, strict=True))
    dq = sum(one * x * np.cos(y) for one, x, y in zip(w, a, angle, strict=True))
    ddq = sum(-one**2 * x * np.sin(y) for one, x, y in zip(w, a, angle, strict=True))
    return np.asarray(q), np.asarray(dq), np.asarray(ddq)


def real(name: str, split_name: str, title: str) -> Machine:
    """The logs of a real machine, below DYNID_DATA."""
    split = next(one for one in machines.splits([name]) if one.name == split_name)
    file = {"emps": "emps", "ur3": "ur3.toml"}.get(name, f"{name}.urdf")
    return Machine(name, f"{title} (real log)", split.robot, file, split.fitted, split.tested)


def every_machine(wanted: Sequence[str]) -> Iterator[Machine]:
    for name, title in SIMULATED.items():
        if not wanted or name in wanted:
            yield simulated(name, title)
    for name, (split, title) in REAL.items():
        if machines.DATA.is_dir() and (not wanted or name in wanted):
            yield real(name, split, title)


def identified(machine: Machine, folder: Path) -> dict[str, Any]:
    """Write robot and logs of a machine into a folder, identify it by its run file, and return what the page shows."""
    names: dict[str, list[str]] = {}
    for role, logs in (("fitted", machine.fitted), ("unseen", machine.unseen)):
        names[role] = [f"{role}_{k + 1}.npz" for k in range(len(logs))]
        for file, log in zip(names[role], logs, strict=True):
            write_npz(replace(log, t=log.t - log.t[0]), folder / file)
    if machine.name in URDFS:
        (folder / machine.robot_file).write_bytes((machines.DATA / URDFS[machine.name]).read_bytes())
    elif machine.robot_file.endswith(".toml"):
        (folder / machine.robot_file).write_text(UR3, encoding="utf-8")
    elif machine.robot_file.endswith(".urdf"):
        (folder / machine.robot_file).write_text(str(plain_urdf(machine.robot)), encoding="utf-8")
    # Real machines are identified with the defaults: friction and method are chosen from the log.
    chosen: dict[str, Any] = {} if machine.truth is None else {"method": "wls",
                                                               "model": ModelSettings(friction=FRICTION)}
    settings = RunSettings(robot=machine.robot_file, logs=tuple(names["fitted"]), validate_on=tuple(names["unseen"]),
                           simulation={"run": False}, **chosen)
    start = time.process_time()
    with chdir(folder):
        done = run(settings)
    seconds = time.process_time() - start
    found = facts(done)
    summary, unseen = found["verdict"]["summary"], found["validation"][0]
    result = {"title": machine.title, "run": settings.as_toml(), "joints": machine.robot.dof,
              "seconds_of_motion": round(sum(log.duration for log in machine.fitted), 1), "cpu_s": round(seconds, 1),
              "parameters": summary["parameters"], "well_determined": summary["well_determined"],
              "error": found["relative_error"], "unseen_error": unseen["relative_error"],
              "unseen_error_per_joint": unseen["relative_error_per_joint"], "grade": summary["grade"],
              "findings": sorted({one["code"] for one in found["verdict"]["findings"]
                                  if one["severity"] != "info"})}
    if machine.truth is not None:
        estimate = done.estimate
        off = np.abs(estimate.values - estimate.base.reduce(machine.truth))[estimate.well_determined]
        within = off < 3.0 * estimate.std[estimate.well_determined]
        result["within_three_standard_errors"] = round(float(np.mean(within)), 3)
    return result


def picture(machine: Machine, errors: Sequence[float | None]) -> str:
    """An SVG: the chain of joints of the robot, and bars of the torque error of each joint on the unseen log."""
    posture = machine.unseen[0].q[len(machine.unseen[0]) // 3]
    poses = forward_kinematics(machine.robot, posture)
    tree = machine.robot if machine.robot.followers is None else machine.robot.followers.tree
    order = [machine.robot.body_names.index(one) if one in machine.robot.body_names else None
             for one in tree.body_names]
    points = {-1: np.zeros(3)}
    for body, place in enumerate(order):
        points[body] = poses[body if place is None else place, :3, 3]
    seen = {body: (0.87 * x - 0.5 * y, 0.9 * z + 0.25 * x + 0.43 * y) for body, (x, y, z) in points.items()}
    spots = np.array(list(seen.values()))
    low, size = spots.min(axis=0), max(float(np.ptp(spots, axis=0).max()), 1e-6)
    middle = 0.5 * (size - np.ptp(spots, axis=0))

    def at(body: int) -> tuple[float, float]:
        x, y = (np.array(seen[body]) - low + middle) / size
        return 15 + 140 * float(x), 155 - 140 * float(y)

    parts = []
    for body, joint in enumerate(tree.joints):
        (x0, y0), (x1, y1) = at(joint.parent), at(body)
        parts.append(f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="#0072B2" stroke-width="5" '
                     'stroke-linecap="round"/>')
    for body in range(len(tree.joints)):
        x, y = at(body)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#fff" stroke="#333" stroke-width="1.5"/>')
    known = [0.0 if one is None else one for one in errors]
    step, most = min(20.0, 130.0 / max(len(known), 1)), max(*known, 1.0) if len(known) > 1 else max(known[0], 1.0)
    for k, error in enumerate(known):
        y = 28 + step * k
        parts.append(f'<rect x="175" y="{y:.1f}" width="{70 * error / most:.1f}" height="{0.7 * step:.1f}" '
                     f'fill="#D55E00"/><text x="{180 + 70 * error / most:.1f}" y="{y + 0.62 * step:.1f}">{error:.1f} %'
                     "</text>")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" font-family="sans-serif" font-size="10"><rect width="{WIDTH}" height="{HEIGHT}" '
            f'fill="#fff"/>{"".join(parts)}<text x="175" y="18" font-weight="bold">torque error by joint</text></svg>'
            "\n")


def page(results: dict[str, dict[str, Any]]) -> str:
    """The text of docs/gallery.md."""
    about = (f"This page shows {len(results)} machines, each identified from one log and tested on another. Use the "
             "run file of a machine that is similar to yours as a start. Ten machines are simulated from built-in "
             "robots with friction, encoder counts and noise. Ten machines are real, with published logs that are "
             "not part of dynid.")
    made = ("Each picture shows the chain of joints in a posture of the log, and the torque error of each joint on the "
            "unseen log. `python docs/make_gallery.py` makes this page. CPU times are those of one core of a shared "
            "machine.")
    lines = ["# Gallery", "", *wrapped(about), "", *wrapped(made), "",
             "| machine | joints | motion, s | well determined | torque error, unseen log, % | CPU, s |",
             "| --- | --- | --- | --- | --- | --- |"]
    for one in results.values():
        lines.append(f"| [{one['title']}](#{anchor(one['title'])}) | {one['joints']} | "
                     f"{one['seconds_of_motion']:g} | {one['well_determined']} of {one['parameters']} | "
                     f"{one['unseen_error']:.1f} | {one['cpu_s']:.1f} |")
    for name, one in results.items():
        text = (f"The model of `{name}` has a torque error of {one['error']:.1f} % on the fitted log and "
                f"{one['unseen_error']:.1f} % on the unseen log. Of the {one['parameters']} base "
                f"parameters of `{name}`, {one['well_determined']} are well determined.")
        if "within_three_standard_errors" in one:
            text += (f" In the simulation of `{name}`, {100 * one['within_three_standard_errors']:.0f} % of the base "
                     "parameters are within three standard errors of their true values.")
        if one["findings"]:
            listed = ", ".join(f"`{code}`" for code in one["findings"])
            text += f" The verdict on `{name}` has the finding{'s' * (len(one['findings']) > 1)} {listed}."
        lines += ["", f"## {one['title'][0].upper()}{one['title'][1:]}", "",
                  f"![{one['title']}](images/gallery/{name}.svg)", "",
                  *wrapped(text), "",
                  *(f"    {line}".rstrip() for line in one["run"].strip().splitlines())]
    return "\n".join(lines) + "\n"


def wrapped(text: str) -> list[str]:
    """The lines of a paragraph."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def anchor(heading: str) -> str:
    """The address of a heading within its page, as GitHub and Sphinx make it."""
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def differences(stored: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    """Sentences on results that are not the stored ones: errors beyond the tolerance, other counts of parameters."""
    found = []
    for name, new in fresh.items():
        old = stored.get(name)
        if old is None:
            found.append(f"{name} is not in {NUMBERS.name}")
            continue
        for key in ("error", "unseen_error"):
            if not abs(new[key] - old[key]) <= TOLERANCE * abs(old[key]):
                found.append(f"{name}: {key} is {new[key]:.3g}, stored {old[key]:.3g}")
        if new["parameters"] != old["parameters"]:
            found.append(f"{name}: {new['parameters']} base parameters, stored {old['parameters']}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="machines, all by default")
    parser.add_argument("--check", action="store_true", help="compare with the stored numbers and write nothing")
    given = parser.parse_args(arguments)
    stored = json.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else {}
    fresh: dict[str, Any] = {}
    for machine in every_machine(given.names):
        with tempfile.TemporaryDirectory() as folder:
            fresh[machine.name] = one = identified(machine, Path(folder))
        print(f"{machine.name}: {one['unseen_error']:.2f} % unseen, {one['cpu_s']:.1f} s", flush=True)
        if not given.check:
            PICTURES.mkdir(parents=True, exist_ok=True)
            text = picture(machine, one["unseen_error_per_joint"])
            (PICTURES / f"{machine.name}.svg").write_text(text, encoding="utf-8")
    if given.check:
        wrong = differences(stored, fresh)
        print(*wrong, sep="\n")
        return 1 if wrong else 0
    every = {name: {**stored, **fresh}[name] for name in (*SIMULATED, *REAL) if name in {**stored, **fresh}}
    NUMBERS.write_text(json.dumps(every, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(every), encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
