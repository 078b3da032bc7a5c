"""WAM (Sousa, s. 4.5.4, chapter 5): limits on centres of mass, free fall, and controllers that use each estimate.

The thesis runs the controller on the real arm. Here the arm is simulated with the printed solution that satisfies all
limits, including friction and rotors, and the controller uses each of the four printed solutions. On the real arm, the
controller with weighted LS also diverged with gains near zero. The simulation does not reproduce this, and the table
lists the smallest gains at which it diverges.

The control is turned on in three stages as in the thesis: gravity and Coriolis torques alone, then the PD law at the
first point, then motion B. A simulated arm without friction shows whether friction keeps the arm at rest with low
gains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.consistency import Box, Consistency, MassLimit
from dynid.consistency import test as is_possible
from dynid.errors import NotPossibleError
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.report.drawing import thinned
from dynid.robot import Robot
from dynid.simulation import CompensatedPD, ComputedTorque, ControlLaw, Reference, simulate
from dynid.validate import free_fall
from reproductions._printed import Comparison, printed
from reproductions._sousa import BOXES, GAINS, HEAVIEST, TRACKING, TRAJECTORY_B, WAM

Array = NDArray[np.float64]
COLUMNS = ("weighted LS", "nearest feasible", "constrained", "constrained, more limits")
PERIOD, RATE, HELD = 12.5, 1000.0, 2.0  # s, Hz, s at the first point before the motion begins
WEAKER = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)  # of the damping of the loop; stiffness falls with its square
STOPPED = 0.1  # rad, within which an arm counts as stopped
FALL, SOON = 5.0, 0.5  # s, of a fall, and within which one that cannot be is over
BEFORE = 4  # ticks by which a motion that diverges is cut shorter, until it is simulated to its end
FAST = 100.0  # rad/s, to which a fall that cannot be is drawn
SIGN = 0.01  # rad/s, width of the sigmoid for the sign of dry friction


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    motion = FourierSeries(TRAJECTORY_B[:, :6], TRAJECTORY_B[:, 6:12], TRAJECTORY_B[:, 12], PERIOD)
    progress("limits on centres of mass")
    plain = Consistency(model.parameters, form="spatial", margin=0.0)
    extended = Consistency(model.parameters, form="spatial", margin=0.0, masses=(MassLimit(high=HEAVIEST),),
                           centres={body: Box(*corners) for body, corners in zip(robot.body_names, BOXES, strict=True)})
    within = {name: is_possible(extended, column, base, tolerance=1e-4) for name, column in zip(COLUMNS, WAM.T,
                                                                                               strict=True)}
    believed = {name: base.expand(column) if name == COLUMNS[0] else is_possible(
        extended if name == COLUMNS[3] else plain, column, base, tolerance=1e-3).theta
        for name, column in zip(COLUMNS, WAM.T, strict=True)}
    machine = believed[COLUMNS[3]]
    runs = {}
    for gains, (kp, kd) in GAINS.items():
        for name, theta in believed.items():
            progress(f"motion B, {gains} gains, the controller believes {name}")
            runs[f"{name}, {gains}"] = _follow(model, machine, ComputedTorque(
                model, theta, kp, kd, feedforward=False, rotors=False), motion)
    progress("motion B, PD beside the model of the maker's drawings (eq. 4.16)")
    drawings = np.array([p.nominal if p.body is not None and p.nominal is not None else 0.0 for p in model.parameters])
    tracking = _follow(model, machine, CompensatedPD(model, drawings, *TRACKING, rotors=False), motion)
    progress("gravity and Coriolis compensation alone")
    still = np.zeros(model.dof)
    compensated = {name: _drift(model, machine, ComputedTorque(model, theta, still, still, feedforward=False,
                                                               rotors=False), motion)
                   for name, theta in believed.items()}
    progress("motion B with ever weaker gains")
    kp, kd = GAINS["slow"]
    smooth = machine.copy()
    smooth[[k for k, item in enumerate(model.parameters) if item.symbol in ("Fc", "Fv")]] = 0.0
    weaker, without = ({share: _follow(model, arm, ComputedTorque(
        model, believed[COLUMNS[0]], share ** 2 * kp, share * kd, feedforward=False, rotors=False), motion)["diverged"]
        for share in WEAKER} for arm in (machine, smooth))
    falls = {}
    for name, theta in believed.items():
        progress(f"free fall of {name}")
        falls[name] = _fall(model, theta)
    falls[COLUMNS[0]] |= _dormand_prince(model, believed[COLUMNS[0]])
    fall = Comparison(printed("001", "s. 5.1"))
    fall.compare("weighted LS", "seconds", falls[COLUMNS[0]]["dormand_prince"], claimed=False)
    return {"printed": [fall.summary()], "follow": runs, "tracking": tracking, "fall": falls,
            "diverges_with_gains": {str(share): when for share, when in weaker.items()},
            "diverges_without_friction": {str(share): when for share, when in without.items()},
            "gravity_alone_moved": compensated,
            "within_limits": {name: {"possible": one.possible, "distance": one.distance}
                              for name, one in within.items()},
            "checks": {**_checks(within, runs, falls), **_tracking_check(tracking), **_stage_checks(compensated, runs)}}


def _stage_checks(compensated: dict[str, float | None], runs: dict[str, Any]) -> dict[str, bool]:
    """The first two of the three stages (s. 5.2): the arm remains stopped."""
    said = ", ".join("-" if x is None else f"{x:.3f}" for x in compensated.values())
    held = [one["moved"] for one in runs.values() if one["moved"] is not None]
    return {f"first stage, gravity and Coriolis forces alone: no solution lets the arm move by more than {STOPPED:g} "
            f"rad in 2 s: {said}": all(x is not None and x < STOPPED for x in compensated.values()),
            f"second stage, PD at the first point: the arm stays within {STOPPED:g} rad of it: {max(held):.3f}":
                max(held) < STOPPED}


def _drift(model: Model, machine: Array, law: ControlLaw, motion: FourierSeries) -> float | None:
    """Return the largest motion of a joint (rad) within 2 s at the first point of motion B; None if it diverges."""
    wanted = np.tile(motion.at(np.zeros(1)).q, (round(HELD * RATE), 1))
    try:
        return float(np.abs(simulate(model, machine, law,
                                     Reference.from_arrays(wanted, rate=RATE)).q - wanted[0]).max())
    except NotPossibleError:
        return None


def _follow(model: Model, machine: Array, law: ControlLaw, motion: FourierSeries) -> dict[str, Any]:
    """Simulate the machine under a control law: at rest at the first point, then along motion B. diverged: time of
    divergence after motion B begins, s, or None. errors (dof,): largest errors, rad. moved: largest motion at rest,
    rad. t, q, wanted: the motion that is drawn."""
    t = np.arange(0.0, HELD + PERIOD, 1.0 / RATE)
    wanted = motion.at(np.clip(t - HELD, 0.0, None)).q
    try:
        found = simulate(model, machine, law, Reference.from_arrays(wanted, rate=RATE)).q
    except NotPossibleError as problem:
        when = float(str(problem).split("diverged at ")[1].split(" s")[0])
        return {"diverged": when - HELD, "errors": None, "moved": None,
                **_curves(t, _as_far(model, machine, law, wanted[:int(when * RATE)]), wanted)}
    error = np.abs(found - wanted[:len(found)])
    held = round(HELD * RATE)
    return {"diverged": None, "errors": error[held:].max(axis=0).tolist(), "moved": float(error[:held].max()),
            **_curves(t, found, wanted)}


def _as_far(model: Model, machine: Array, law: ControlLaw, wanted: Array) -> Array:
    """Positions (rows, dof) of a motion that diverges, as far as it is simulated. A shorter reference moves more slowly
    and counts as diverged a little sooner."""
    try:
        return simulate(model, machine, law, Reference.from_arrays(wanted, rate=RATE)).q
    except NotPossibleError:
        return _as_far(model, machine, law, wanted[:-BEFORE])


def _curves(t: Array, found: Array, wanted: Array) -> dict[str, Any]:
    """Positions found and wanted, rad, over s since motion B begins."""
    times, columns = thinned(t[:len(found)] - HELD, np.hstack([found, wanted[:len(found)]]), 1000)
    return {"t": times, "q": columns[:found.shape[1]], "wanted": columns[found.shape[1]:]}


def _fall(model: Model, theta: Array) -> dict[str, Any]:
    """Release the arm at q = 0: return the duration of the fall, s, the largest increase of its energy, J, and the
    motion that is drawn. No joint limits stop the arm."""
    found = free_fall(model, theta, seconds=FALL, start=np.zeros(model.dof))
    energies = np.column_stack([found.energy, found.kinetic, found.potential])
    t, columns = thinned(found.t, np.hstack([found.q, energies]), 600)
    return {"until": float(found.t[-1]), "rise": found.growth, "spread": found.in_play, "stable": found.stable,
            "t": t, "q": columns[:model.dof], "energy": columns[model.dof:]}


def _dormand_prince(model: Model, theta: Array) -> dict[str, Any]:
    """Integrate the fall by Dormand-Prince 4(5) with narrow sigmoids as signs, as the thesis does. Return the time, s,
    until the integration fails or joints are faster than 1e4 rad/s, and the fall with its kinetic energy that is drawn.
    """
    from scipy.integrate import solve_ivp

    smooth = model.with_smooth_signs(SIGN)
    dof = model.dof
    still = np.zeros((1, dof))

    def slope(_: float, y: Array) -> Array:
        ddq = smooth.forward_dynamics(theta, y[None, :dof], y[None, dof:], still)[0]
        return np.concatenate([y[dof:], ddq])

    with np.errstate(all="ignore"):
        found = solve_ivp(slope, (0.0, SOON), np.zeros(2 * dof), rtol=1e-6, atol=1e-8, events=_Enough())
    fine = np.flatnonzero(np.abs(np.nan_to_num(found.y[dof:], nan=1e9)).max(axis=0) < FAST)
    q, dq = found.y[:dof, fine].T, found.y[dof:, fine].T
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", dq, model.inertia_matrix(theta, q), dq)
    t, columns = thinned(found.t[fine], np.column_stack([q, kinetic]), 600)
    return {"dormand_prince": float(found.t[-1]), "t": t, "q": columns[:dof], "energy": columns[dof:]}


class _Enough:
    """Exception that stops an integration if joints are faster than 1e4 rad/s."""

    terminal = True

    def __call__(self, _: float, y: Array) -> float:
        return 1e4 - float(np.abs(np.nan_to_num(y[len(y) // 2:], nan=1e9)).max())


def _checks(within: dict[str, Any], runs: dict[str, Any], falls: dict[str, Any]) -> dict[str, bool]:
    infeasible, feasible = COLUMNS[0], COLUMNS[1:]
    worst = {gains: max(max(runs[f"{name}, {gains}"]["errors"] or [np.inf]) for name in feasible) for gains in GAINS}
    late = [runs[f"{infeasible}, {gains}"]["diverged"] for gains in GAINS]
    errors = {gains: [np.array(runs[f"{name}, {gains}"]["errors"] or np.full(7, np.inf)) for name in feasible]
              for gains in GAINS}
    alike = float(np.abs(errors["tight"][1] - errors["tight"][2]).max())
    checks = {
        "table 4.8: the constrained solution does not pass the limits on centres": not within[COLUMNS[2]].possible,
        "table 4.8: the one found with these limits passes": within[COLUMNS[3]].possible,
        "the controller that believes weighted LS diverges as soon as motion B begins: "
        f"{', '.join('-' if one is None else f'{one:.2f} s' for one in late)} after":
            all(one is not None and 0.0 < one < 1.0 for one in late),
        "those that believe the feasible ones follow, with slow and with tight gains":
            all(runs[f"{name}, {gains}"]["diverged"] is None for name in feasible for gains in GAINS),
        f"tight gains follow better: largest error {worst['tight']:.2f} rad, slow {worst['slow']:.2f} rad":
            all(np.all(tight < slow) for tight, slow in zip(errors["tight"], errors["slow"], strict=True)),
        f"with tight gains the two constrained solutions differ little: {alike:.3f} rad": alike < 0.05,
        "let go, weighted LS breaks off, by Dormand-Prince at "
        f"{falls[infeasible]['dormand_prince']:.3f} s (printed 0.041)":
            not falls[infeasible]["stable"] and falls[infeasible]["dormand_prince"] < SOON,
        "let go, the three feasible solutions fall to the end and their energy does not rise":
            all(falls[name]["stable"] and falls[name]["until"] > 0.99 * FALL for name in feasible)}
    return {sentence: bool(holds) for sentence, holds in checks.items()}


def _tracking_check(tracking: dict[str, Any]) -> dict[str, bool]:
    errors = tracking["errors"]
    said = "diverges" if errors is None else " ".join(f"{x:.2f}" for x in errors)
    return {"table 4.3: PD beside the model of the drawings, without friction, follows motion B in the joints of the "
            f"arm within 0.2 rad: {said}": errors is not None and max(errors[:4]) < 0.2}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("the controller believes", "gains", "diverges after", "largest errors of joints 1-7, rad")]
    for name, one in result["follow"].items():
        who, _, gains = name.rpartition(", ")
        rows.append((who, gains, "-" if one["diverged"] is None else f"{one['diverged']:.2f} s",
                     "-" if one["errors"] is None else " ".join(f"{x:.2f}" for x in one["errors"])))
    errors = result["tracking"]["errors"]
    rows.append(("the drawings, PD beside (eq. 4.16)", "table 4.3", "-" if errors else "diverges",
                 " ".join(f"{x:.2f}" for x in errors or ())))
    for share, when in result["diverges_with_gains"].items():
        bare = result["diverges_without_friction"][share]
        rows.append((COLUMNS[0], f"slow, damping x {share}", "-" if when is None else f"{when:.2f} s",
                     f"without friction {'-' if bare is None else f'{bare:.2f} s'}"))
    for name, moved in result["gravity_alone_moved"].items():
        rows.append((name, "gravity and Coriolis alone", "", "-" if moved is None else f"moves {moved:.3f} rad in 2 s"))
    for name, fall in result["fall"].items():
        rows.append((f"free fall of {name}", "", f"comes to {fall['until']:.3f} s",
                     f"energy rises by {fall['rise']:.2g} J of {fall['spread']:.3g} J"))
    return rows
