"""The verdict on real logs: as they are, shortened, thinned, rounded and jittered, and with faults put in.

Nothing is named by the user. A healthy log may not be blamed (`BLAMES`), and a fault must not be taken for another.
Real machines hide some faults, so how many are named is counted and not asked, and causes that are stated as one of
several count as neither. The rules were chosen with these logs in view. Without the data folder nothing is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.recording import Recording
from dynid.workers import Workers
from reproductions._data import DATA
from reproductions._faults import DELAY, Fault, Put, mounted, payload_in_mid_log, scales, signs, swapped_torques
from reproductions._faulty_machines import RealMachine
from reproductions._real_logs import OPEN, OpenMachine, halves, open_machine
from reproductions._verdicts import BLAMES, Outcome, Task, outcome, percent
from reproductions.verdict import FALSE_AT_MOST, WRONG_AT_MOST

OWN_STUDY = True  # no document prints it
# The smaller study of `--all`: short logs.
IN_ALL = {"machines": ("emps", "dvrk_psm"), "only": ("log", "second half", "sign of one joint", "swapped torques")}
BITS = 12  # of rounded positions, per turn or per range of a prismatic joint
JITTER = 0.3  # sample periods by which stamps err at most
LATE_ROWS = 3  # by which torques are late
OFFSET = 0.1  # rad or m, of one position
GAIN = 1.3
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


FAULTS = (
    Fault("torque of one joint times 1.3", ("drive-gain",), lambda m, rng: scales(m.log, rng, 1, (GAIN,))),
    Fault("sign of one joint", ("torque-sign",), lambda m, rng: signs(m.log, rng, 1)),
    Fault("swapped torques", ("torques-swapped",), lambda m, rng: swapped_torques(m.log, rng)),
    Fault("torques 3 rows late", DELAY, _late),
    Fault("position off by 0.1", MISFIT, _shifted),
    Fault("positions in degrees", ("degrees-for-radians",),
          lambda m, rng: Put(replace(m.log, q=np.rad2deg(m.log.q), dq=None))),
    Fault("mounted sideways", ("gravity-direction",), lambda m, rng: mounted(m, False)),
    Fault("payload in mid-log", ("load-changed",), payload_in_mid_log),
    Fault("file of another machine", MISFIT, _other_file))


def tried(shared: Sequence[str], name: str) -> list[Outcome]:
    """One machine: logs as they are, then faults, of the names that are asked for, or all."""
    real, found, own = open_machine(name), list[Outcome](), frozenset[str]()
    for words, put in conditions(real):
        if not shared or words in shared:
            one = outcome(Task("real logs", name, None, ()), HEALTHY, put, real.robot)
            own = own | frozenset(one.found)
            found.append(_certain(replace(one, fault=f"healthy, {words}", wrong=tuple(set(one.found) & BLAMES))))
    for k, fault in enumerate(FAULTS):
        if not shared or fault.name in shared:
            put = fault.put(RealMachine(real.log, real.other, real.robot), np.random.default_rng([29, k]))
            if put is not None:
                found.append(_certain(outcome(Task("real logs", name, None, ()), fault, put, real.robot, own)))
    return found


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
    return {"outcomes": [vars(one) for one in outcomes], "checks": checks}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = []
    for fault in dict.fromkeys(one["fault"] for one in result["outcomes"]):
        own = [one for one in result["outcomes"] if one["fault"] == fault]
        rows.append((fault, str(len(own)), str(sum(one["named"] for one in own)),
                     "; ".join(f"{one['robot']}: {', '.join(one['wrong'])}" for one in own if one["wrong"])))
    return [("log", "machines", "named, or nothing false said", "wrong"), *rows]
