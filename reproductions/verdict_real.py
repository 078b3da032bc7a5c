"""The verdict on real logs: unchanged, shortened, thinned, rounded and jittered, and with added faults.

The user specifies no options. A healthy log must have no finding that blames it (`BLAMES`), and a fault must not be
reported as another fault. Real machines hide some faults, so the number of faults found is counted and not checked.
Causes that are reported as one of several count as neither found nor wrong. A fault that is not found matters if the
model predicts a healthy second log worse by more than HARMFUL because of it. Rules were chosen on the machines of
CHOSEN_ON and are tested on the others. Without the data folder nothing is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.validate import reconstruct
from dynid.workers import Workers
from reproductions._data import DATA
from reproductions._faults import (
    DELAY,
    UNRELATED,
    Fault,
    Put,
    exchanged,
    mounted,
    payload_in_mid_log,
    scales,
    signs,
    swapped_torques,
)
from reproductions._faulty_machines import RealMachine
from reproductions._real_logs import OPEN, OpenMachine, halves, open_machine
from reproductions._verdicts import (
    BLAMES,
    Judged,
    Outcome,
    Task,
    given_robot,
    judged,
    outcome,
    outcome_of,
    percent,
    refused,
)
from reproductions.verdict import FALSE_AT_MOST, WRONG_AT_MOST

OWN_STUDY = True  # no document prints it
GROUP = "real logs"
# The smaller study of `--all`: short logs.
IN_ALL = {"machines": ("emps", "dvrk_psm"), "only": ("log", "second half", "sign of one joint", "swapped torques")}
BITS = 12  # of rounded positions, per turn or per range of a prismatic joint
JITTER = 0.3  # sample periods by which stamps err at most
LATE_ROWS = 3  # by which torques are late
OFFSET = 0.1  # rad or m, of one position
GAIN = 1.3
HARMFUL = 1.2  # times the error of the healthy fit on the second log, from which a fault matters
# Machines whose logs were in view when rules were chosen; the rules are judged on the others.
CHOSEN_ON = ("panda", "emps", "kuka_lwr4", "six_axis_plc", "ur3", "pendulum_a0")
HEALTHY = Fault("healthy", (), lambda machine, rng: None)
HEDGES = ("One of:", "looks the same")  # in sentences that leave the cause open
MISFIT = ("unexplained-misfit", "low-r2", "worse-than-mean", "worse-than-zero")


def _rounded(log: Recording, real: OpenMachine) -> Recording:
    slides = np.array([joint.prismatic for joint in real.robot.joints])
    step = np.where(slides, np.ptp(log.q, axis=0), 2.0 * np.pi) / 2 ** BITS
    return replace(log, q=np.round(log.q / step) * step, dq=None)


def _jittered(log: Recording) -> Recording:
    rng = np.random.default_rng(len(log.t))
    return replace(log, t=log.t + JITTER * np.median(np.diff(log.t)) * rng.uniform(-1.0, 1.0, len(log.t)))


def conditions(real: OpenMachine) -> Iterator[tuple[str, Put]]:
    """Logs with nothing wrong, and how each was made from that of the machine."""
    first, second = halves(real.log)
    yield "log", Put(real.log)
    yield "log to second log", Put(real.log, real.other)
    yield "second log to log", Put(real.other, real.log)
    yield "first half to second", Put(first, second)
    yield "second half", Put(second)
    yield "one row in two", Put(real.log[::2])
    yield "one row in four", Put(real.log[::4])
    yield "12 bits", Put(_rounded(real.log, real))
    yield "jittered stamps", Put(_jittered(real.log))


def _late(machine: RealMachine, rng: np.random.Generator) -> Put:
    log = machine.log
    return Put(replace(log[LATE_ROWS:], tau=log.tau[:-LATE_ROWS]))


def _shifted(machine: RealMachine, rng: np.random.Generator) -> Put:
    j = int(rng.integers(min(1, machine.log.dof - 1), machine.log.dof))
    return Put(replace(machine.log, q=machine.log.q + OFFSET * (np.arange(machine.log.dof) == j)), joints=(j,))


def _other_file(machine: RealMachine, rng: np.random.Generator) -> Put | None:
    own = machine.log.dof
    files = [robot for name in OPEN if (robot := open_machine(name).robot).dof == own
             and robot.name != machine.robot.name]
    return Put(machine.log, robot=files[int(rng.integers(len(files)))]) if files else None


def _fast_clock(machine: RealMachine, rng: np.random.Generator) -> Put:
    log = machine.log
    return Put(replace(log, t=log.t[0] + 0.5 * (log.t - log.t[0]), dq=None))


FAULTS = (
    Fault("torque of one joint times 1.3", ("drive-gain",), lambda m, rng: scales(m.log, rng, 1, (GAIN,))),
    Fault("sign of one joint", ("torque-sign",), lambda m, rng: signs(m.log, rng, 1)),
    Fault("swapped torques", ("torques-swapped",), lambda m, rng: swapped_torques(m.log, rng)),
    Fault("torques 3 rows late", DELAY, _late),
    Fault("position off by 0.1", ("position-offset", *MISFIT), _shifted),
    Fault("positions in degrees", ("degrees-for-radians",),
          lambda m, rng: Put(replace(m.log, q=np.rad2deg(m.log.q), dq=None))),
    Fault("mounted sideways", ("gravity-direction",), lambda m, rng: mounted(m, False)),
    Fault("payload in mid-log", ("load-changed",), payload_in_mid_log),
    Fault("file of another machine", MISFIT, _other_file),
    Fault("torques of another log", UNRELATED, exchanged),
    Fault("clock twice too fast", ("time-scale",), _fast_clock))


def tried(shared: Sequence[str], name: str) -> list[Outcome]:
    """Return the outcomes of one machine: unchanged logs, then the selected faults, by default all."""
    real, found, own, task = open_machine(name), list[Outcome](), frozenset[str](), Task(GROUP, name, None, ())
    for words, put in conditions(real):
        if not shared or words in shared:
            one = outcome(task, HEALTHY, put, real.robot)
            own = own | frozenset(one.found)
            found.append(_certain(replace(one, fault=f"healthy, {words}", wrong=tuple(set(one.found) & BLAMES))))
    healthy: float | None = None
    for k, fault in enumerate(FAULTS):
        if not shared or fault.name in shared:
            put = fault.put(RealMachine(real.log, real.other, real.robot), np.random.default_rng([29, k]))
            if put is not None:
                healthy = _error_on_second(judged(real.robot, Put(real.log)), real) if healthy is None else healthy
                found.append(_certain(_faulty(task, fault, put, real, own, healthy)))
    return found


def _faulty(task: Task, fault: Fault, put: Put, real: OpenMachine, own: frozenset[str], healthy: float) -> Outcome:
    """The outcome of a log with a fault, and the harm that the fault does. own: causes that the log has without it;
    healthy: error of the fit to the healthy log on the second one, percent."""
    try:
        one = judged(given_robot(real.robot, put), put)
        said = one.verdict
    except DynidError as error:
        return refused(error, task, fault)
    return replace(outcome_of(said, task, fault, put, real.robot, own), harm=_error_on_second(one, real) / healthy)


def _error_on_second(one: Judged, real: OpenMachine) -> float:
    """Return the error of an estimate on the unchanged second log of a machine, percent."""
    return reconstruct(one.estimate, prepare(real.other, one.problem.data[0].preparation)).relative_error


def _certain(one: Outcome) -> Outcome:
    """The outcome without causes that are stated as one of several (HEDGES)."""
    hedged = {words.split(":")[0] for words in one.findings if any(hedge in words for hedge in HEDGES)}
    return replace(one, wrong=tuple(code for code in one.wrong if code not in hedged))


def run(progress: Callable[[str], None], machines: Sequence[str] = tuple(OPEN), only: Sequence[str] = ()
        ) -> dict[str, Any]:
    machines = machines if DATA.is_dir() else ()
    found: dict[int, list[Outcome]] = {}
    for k, outcomes in Workers().each(tried, tuple(only), machines) if machines else ():
        found[k] = outcomes
        progress(f"{len(found)} of {len(machines)} machines, last {machines[k]}")
    outcomes = [one for k in sorted(found) for one in found[k]]
    well, sick = [one for one in outcomes if one.healthy], [one for one in outcomes if not one.healthy]
    checks = {}
    for own, words, bar in ((well, "healthy logs blamed", FALSE_AT_MOST),
                            (sick, "faults taken for another", WRONG_AT_MOST)):
        share = percent([bool(one.wrong) for one in own])
        checks |= {f"{share:.1f} % of {len(own)} {words}, at most {bar:g} wanted": share <= bar} if own else {}
    return {"outcomes": [vars(one) for one in outcomes], "totals": _totals(well, sick), "checks": checks}


def _totals(well: Sequence[Outcome], sick: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """Return the number of logs of each outcome, for the machines that rules were chosen on and for the others."""
    found = {}
    for group, members in (("chosen on", CHOSEN_ON), ("judged on", [name for name in OPEN if name not in CHOSEN_ON])):
        own, whole = [one for one in sick if one.robot in members], [one for one in well if one.robot in members]
        if not own and not whole:
            continue
        found[group] = {"healthy": len(whole), "blamed": sum(bool(one.wrong) for one in whole),
                        "left open": sum(bool(set(one.found) & BLAMES) and not one.wrong for one in whole),
                        "faulty": len(own), "named": sum(one.named for one in own),
                        "wrong": sum(bool(one.wrong) for one in own),
                        "harmful": sum(_matters(one) for one in own),
                        "harmful and named": sum(_matters(one) and one.named for one in own)}
    return found


def _matters(one: Outcome) -> bool:
    """Whether a fault makes the model worse, or stops the run."""
    return one.harm is None or one.harm > HARMFUL


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [(f"all, {group}", str(one["faulty"]), str(one["named"]), f"{one['harmful and named']} of {one['harmful']}",
             f"{one['wrong']} wrong causes; of {one['healthy']} healthy logs {one['blamed']} blamed, "
             f"{one['left open']} left open") for group, one in result.get("totals", {}).items()]
    for fault in dict.fromkeys(one["fault"] for one in result["outcomes"]):
        own = [one for one in result["outcomes"] if one["fault"] == fault]
        harmful = [one for one in own if not fault.startswith(HEALTHY.name) and (
            one["harm"] is None or one["harm"] > HARMFUL)]
        missed = [f"{one['robot']} not named (error times {one['harm'] or float('inf'):.3g})" for one in harmful
                  if not one["named"]]
        rows.append((fault, str(len(own)), str(sum(one["named"] for one in own)),
                     f"{sum(one['named'] for one in harmful)} of {len(harmful)}" if harmful else "",
                     "; ".join([*(f"{one['robot']}: {', '.join(one['wrong'])}" for one in own if one["wrong"]),
                                *missed])))
    return [("log", "machines", "named, or nothing false said", "harmful and named", "wrong, or harmful and not named"),
            *rows]
