"""Findings on actuators without torque sensors: wrong gains, delays and masses, saturation and unknown gains.

Each fault must be named by a finding with the right cause, stated in a note as not tested or not distinguished, or
leave the truth inside the intervals. Healthy logs must have no finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid import Recording
from dynid.actuators import ActuatorEstimate, identify_actuators, pendulum
from dynid.errors import DynidError
from reproductions._servos import Servo, motions, simulate
from reproductions.actuators import ARMATURE, LAWS, LENGTH, MASS, interval_errors

OWN_STUDY = True  # no document prints it
LOGS = 1  # of each law and fault
IN_ALL = {"only": ("pd", "voltage")}  # the smaller study of `--all`
FIRST_SEED = 9100
RATE, SECONDS, DELAY = 100.0, 6.0, 0.01  # Hz; s of a log; s of the commands
FRICTION = {"coulomb": 0.08, "viscous": 0.05}
WRONG = (1.2, 0.8)  # factors on a given gain, in turn
WRONG_DELAY = 0.02  # s more than the true one
WRONG_MASS = 1.2  # factor on the mass of the pendulum
TORQUE_LIMIT, DUTY_LIMIT = 0.7, 0.35  # N m, and share of the supply voltage, that a saturating drive has
LIMIT_TOLERANCE = 0.1  # relative, within which a limit is named
FAR = 3.0  # standard errors: by chance one of 370 intervals misses the truth by more
TESTED = {"pd": ("kp", "kd"), "pid": ("kp", "ki", "kd"), "cascade": ("kp", "kv", "ki"),
          "voltage": ("kp", "gain", "kt"), "current": ("kt",)}  # gains that are given wrong, one at a time
OPEN = ("kd", "kv", "kt")  # gains that one log cannot distinguish from friction or from each other
OUTCOMES = ("named", "stated", "inside", "another cause", "missed")


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault in the input of one identification.

    Attributes:
        name: description, such as "kp 20 % high".
        codes: codes of the findings that name its cause.
        gains: gains that are given to the identification.
        mass: mass that is given, kg.
        delay: delay that is given, s; None if it is estimated.
        saturates: whether the log is that of a drive that saturates.
        tested: name of the given gain that is wrong.
    """

    name: str
    codes: frozenset[str]
    gains: Mapping[str, float] = field(default_factory=dict)
    mass: float = MASS
    delay: float | None = None
    saturates: bool = False
    tested: str = ""


def faults_of(law: str, factor: float) -> list[Fault]:
    """All faults of a law; factor: on a given gain."""
    true, given = LAWS[law]
    gains = {name: true[name] for name in given}
    found = [Fault("none", frozenset(), gains)]
    for name in TESTED[law]:
        found.append(Fault(f"wrong {name}", frozenset({"scale-contradicted", "gain-contradicted"}),
                           {**gains, name: factor * true[name]}, tested=name))
    found.append(Fault("wrong delay", frozenset({"delay-contradicted"}), gains, delay=DELAY + WRONG_DELAY))
    found.append(Fault("wrong mass", frozenset({"scale-contradicted"}), gains, mass=WRONG_MASS * MASS))
    if law != "current":
        found.append(Fault("saturation", frozenset({"saturation"}),
                           {name: value for name, value in gains.items() if name != "limit"}, saturates=True))
    found.append(Fault("open gains", frozenset(), {name: value for name, value in gains.items() if name not in OPEN}))
    return found


def servo_log(law: str, seed: int, saturates: bool) -> Recording:
    """A log of a servo with friction M1."""
    rows = int(SECONDS * RATE)
    commands = motions(1, rows, RATE, [seed, list(LAWS).index(law)])
    gains = {**LAWS[law][0], "limit": DUTY_LIMIT} if saturates and law == "voltage" else LAWS[law][0]
    servo = Servo(MASS, LENGTH, ARMATURE, law, gains, FRICTION, delay=0.0 if law == "current" else DELAY)
    if saturates and law != "voltage":
        servo = replace(servo, torque_limit=TORQUE_LIMIT)
    q, t = simulate([servo], commands, RATE)[0][:, None], np.arange(rows) / RATE
    if law == "current":
        return replace(Recording.from_commands(t, q, q, joints=("joint",)), current=commands[0][:, None])
    return Recording.from_commands(t, q, commands[0][:, None], joints=("joint",))


def outcome(found: ActuatorEstimate, law: str, fault: Fault) -> str:
    """Return how an estimate treats a fault, one of OUTCOMES."""
    codes = {one.code for one in found.findings}
    if codes & fault.codes and (not fault.saturates or _names_limit(found, law)):
        return "named"
    if codes:
        return "another cause"
    stated = {note.code: note.text for note in found.notes}
    untested = " ".join(note.text for note in found.notes if note.code == "given-untested")
    if fault.tested and f"the given {fault.tested} = " in untested:
        return "stated"
    if fault.mass != MASS and "wrong by the same factor" in stated.get("scale", ""):
        return "stated"
    truth = {"armature": ARMATURE, "offset": 0.0, "delay": DELAY, **FRICTION, **LAWS[law][0]}
    errors, missing = interval_errors(found, {"joint": truth}, ("delay",) if law == "current" else ())
    if any(abs(z) > FAR for _, z in errors):
        return "missed"
    notes = " ".join(note.text for note in found.notes if note.code in ("not-distinguished", "at-bound"))
    is_named = all(one.identified or one.is_given or one.name in notes for one in found.parameters)
    return ("stated" if missing else "inside") if is_named else "missed"


def _names_limit(found: ActuatorEstimate, law: str) -> bool:
    """Whether the finding on saturation has the true limit, of the duty cycle or of the torque."""
    numbers = next(one for one in found.findings if one.code == "saturation").evidence
    share = numbers["limit"] / DUTY_LIMIT if law == "voltage" else numbers["torque"] / TORQUE_LIMIT
    return bool(abs(share - 1.0) < LIMIT_TOLERANCE)


def run(progress: Callable[[str], None], logs: int = LOGS, seed: int = FIRST_SEED,
        only: Sequence[str] = tuple(LAWS)) -> dict[str, Any]:
    """Outcomes of all faults.

    Args:
        progress: is called with what is being done.
        logs: number of logs of each law.
        seed: of the first log.
        only: drive laws.
    """
    unknown = [name for name in only if name not in LAWS]
    if unknown:
        raise DynidError(f"the study has no drive law '{unknown[0]}'; it has {', '.join(LAWS)}")
    counts: dict[tuple[str, str], Counter[str]] = {}
    texts: list[dict[str, Any]] = []
    for law in only:
        for k in range(logs):
            recordings = {saturates: servo_log(law, seed + k, saturates) for saturates in (False, True)
                          if law != "current" or not saturates}
            for fault in faults_of(law, WRONG[k % len(WRONG)]):
                progress(f"{law} law, {fault.name}, log {k + 1} of {logs}")
                found = identify_actuators(pendulum(fault.mass, LENGTH), recordings[fault.saturates], law=law,
                                           gains=fault.gains, friction="m1", delay=fault.delay)
                result = outcome(found, law, fault)
                counts.setdefault((law, fault.name), Counter())[result] += 1
                if result in ("another cause", "missed"):
                    texts.append({"law": law, "fault": fault.name, "seed": seed + k, "outcome": result,
                                  "findings": [one.text for one in found.findings]})
    rows = [{"law": law, "fault": name, "logs": own.total(), **{what: own[what] for what in OUTCOMES}}
            for (law, name), own in counts.items()]
    faulty, healthy = [one for one in rows if one["fault"] != "none"], [one for one in rows if one["fault"] == "none"]
    count = sum(one["logs"] for one in faulty)
    missed, other = (sum(one[what] for one in faulty) for what in ("missed", "another cause"))
    alarms = sum(one["another cause"] for one in healthy)
    checks = {f"{count - missed - other} of {count} faults are named with their cause, stated or inside the intervals, "
              f"{missed} missed": missed == 0,
              f"{other} of {count} faults are named with another cause, at most a tenth wanted": 10 * other <= count,
              f"{alarms} of {sum(one['logs'] for one in healthy)} healthy logs have a finding": alarms == 0}
    return {"checks": checks, "seed": seed, "rows": rows, "wrong": texts}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table: each law and fault, with the number of logs of each outcome."""
    rows: list[tuple[str, ...]] = [("law, fault", "logs", *OUTCOMES)]
    return [*rows, *((f"{one['law']}, {one['fault']}", str(one["logs"]), *(str(one[what] or "") for what in OUTCOMES))
                     for one in result["rows"])]
