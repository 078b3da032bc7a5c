"""Repeated excitation: design a motion for the least determined parameters, record it, identify with all logs, repeat.

Sousa (s. 8.1) proposes a controller that excites the least known parameters. Here each round designs the motion that
reduces the largest standard errors most. A virtual robot or a user's program records the motion.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError, NotPossibleError
from dynid.files import try_folder
from dynid.output_fields import output_fields, record
from dynid.progress import ProgressCallback, silent
from dynid.recording.preparation import Preparation
from dynid.robot import Robot
from dynid.runs.identification import run
from dynid.runs.motion_design import Earlier, MotionRequest, checked_noise, design_motion, earlier
from dynid.runs.motion_improvement import improvements
from dynid.runs.results import SETTINGS, save
from dynid.runs.settings import RunSettings
from dynid.runs.virtual_log import VirtualLoopOptions, save_log, simulate_log

VIRTUAL = "virtual"  # recorder that simulates the robot
_LOG_RATE = 1000.0  # Hz: rate of the virtual robot's controller and log
_NAMED_PARAMETERS = 5  # parameters listed per round

Recorder = Callable[[Path, Path, int], None]  # (motion, log to write, number of the round)


@dataclass(frozen=True, eq=False)
class ImprovementRound:
    """One round of the loop and its result.

    Attributes:
        number: 0 for the result that the loop starts from.
        motion: motion that was designed for this round, None for the first round.
        log: recording of this motion, None for the first round.
        result: folder of the result with all logs so far.
        not_identified: base parameters that the logs do not determine.
        poorly_determined: base parameters with a large standard error.
        largest: the largest standard errors by name, relative to the parameter's value, or to a tenth of the typical
            value of its unit if that is larger. The next motion is designed to reduce them.
        relative_error: relative torque error, percent.
    """

    number: int
    motion: Path | None
    log: Path | None
    result: Path
    not_identified: tuple[str, ...]
    poorly_determined: tuple[str, ...]
    largest: dict[str, float]
    relative_error: float

    @property
    def is_good(self) -> bool:
        """Whether every base parameter is well determined."""
        return not self.not_identified and not self.poorly_determined

    @output_fields(round=int, motion=str | None, log=str | None, result=str, not_identified=list[str],
                   poorly_determined=list[str], largest_relative_standard_errors=dict[str, float | None],
                   relative_error=float | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data for JSON."""
        return {"round": self.number, "motion": None if self.motion is None else str(self.motion),
                "log": None if self.log is None else str(self.log), "result": str(self.result),
                "not_identified": list(self.not_identified), "poorly_determined": list(self.poorly_determined),
                "largest_relative_standard_errors": self.largest, "relative_error": self.relative_error}


ROUNDS = record("Rounds", rounds=list[ImprovementRound])  # output of `dynid excite --repeat --json`


def recorder_for(words: str, robot: Robot, request: MotionRequest) -> Recorder:
    """Return the function that records a motion: "virtual", or a command that contains {motion} and {log}."""
    if words == VIRTUAL:
        return lambda motion, log, number: _simulated(robot, request, motion, log, number)
    for place in ("{motion}", "{log}"):
        if place not in words:
            raise DynidError(f"the command that records a motion has no {place}: {words!r}",
                             "give --record virtual, or for example --record 'python play.py {motion} {log}'",
                             code="no-recorder")
    return lambda motion, log, number: _commanded(words, motion, log)


def _simulated(robot: Robot, request: MotionRequest, motion: Path, log: Path, number: int) -> None:
    """Simulate the virtual robot along a motion; the torque noise is the given one, or that of the earlier logs."""
    assert request.improve is not None
    noise = checked_noise(request.noise, robot.dof)
    if noise is None:
        noise = earlier(request.improve, request.rate, trust=request.trust).noise
    found = simulate_log(robot, motion, VirtualLoopOptions(rate=_LOG_RATE), seed=request.search.seed + number,
                         torque_noise=noise * np.sqrt(_LOG_RATE / request.rate))
    save_log(found, log)


def _commanded(words: str, motion: Path, log: Path) -> None:
    """Run the user's program, without a shell, and check that it wrote the log."""
    command = [part.replace("{motion}", str(motion)).replace("{log}", str(log)) for part in shlex.split(words)]
    try:
        done = subprocess.run(command, check=False)
    except OSError as problem:
        raise DynidError(f"the recorder could not be started: {command[0]}: {problem.strerror}",
                         code="recorder-failed") from None
    if done.returncode != 0:
        raise NotPossibleError(f"the recorder ended with exit code {done.returncode}: {shlex.join(command)}",
                               code="recorder-failed")
    if not log.is_file():
        raise NotPossibleError(f"the recorder did not write {log}: {shlex.join(command)}", code="recorder-failed")


def improve_in_loop(robot: Robot, request: MotionRequest, record: Recorder, folder: Path, rounds: int,
                    progress: ProgressCallback = silent) -> list[ImprovementRound]:
    """Return one result per round of excitation, beginning with the given result (`request.improve`).

    The loop ends after `rounds` rounds, when every base parameter is well determined, or when no motion reduces a
    standard error by more than a third. Motions, logs and results are written into `folder`.
    """
    if request.improve is None:
        raise DynidError("--repeat needs a result to start from", "give --improve RESULT", code="no-result")
    first = Path(request.improve)
    if not (first / SETTINGS).is_file():
        raise DynidError(f"{first} has no {SETTINGS}, so its logs are not known",
                         "identify the logs with `dynid identify ... -o FOLDER`", code="no-settings")
    try_folder(folder)
    settings = _for_more_logs(RunSettings.load(first / SETTINGS, trust=request.trust))
    found = [_round(0, earlier(first, request.rate, trust=request.trust), first, None, None)]
    for number in range(1, rounds + 1):
        if found[-1].is_good:
            break
        progress(f"round {number} of {rounds}: designing a motion")
        data = design_motion(robot, replace(request, improve=found[-1].result), progress)
        if not improvements(data):
            break
        motion, log, result = (folder / f"{name}_{number}{end}"
                               for name, end in (("motion", ".csv"), ("log", ".csv"), ("result", "")))
        data.excitation.save(motion)
        progress(f"round {number} of {rounds}: recording")
        record(motion, log, number)
        settings = settings.model_copy(update={"logs": (*settings.logs, str(log))})
        progress(f"round {number} of {rounds}: identifying from {len(settings.logs)} logs")
        save(run(settings, progress), result, request.command, force=True)
        found.append(_round(number, earlier(result, request.rate, trust=request.trust), result, motion, log))
    return found


def _for_more_logs(settings: RunSettings) -> RunSettings:
    """Return the settings of a result for more logs, whose rate and decimation follow from the cut-off."""
    own = Preparation.from_settings(settings.prepare).elsewhere().as_table()
    prepare = {name: value for name, value in own.items() if name not in ("decimate", "decimate_share", "stages")}
    return settings.model_copy(update={"prepare": prepare})


def _round(number: int, past: Earlier, result: Path, motion: Path | None, log: Path | None) -> ImprovementRound:
    estimate = past.estimate
    names = np.array(estimate.names)
    share = np.where(estimate.identified, estimate.std / past.scale, np.inf)
    worst = [k for k in np.argsort(-share, kind="stable") if np.isfinite(share[k])][:_NAMED_PARAMETERS]
    return ImprovementRound(number, motion, log, result, tuple(names[~estimate.identified].tolist()),
                            tuple(names[estimate.poorly_determined].tolist()),
                            {str(names[k]): float(share[k]) for k in worst},
                            float(estimate.diagnostics["relative_error"]))
