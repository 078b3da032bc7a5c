"""Validation of an earlier result on other logs: prediction of torques and simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.datasets import LogFacts
from dynid.estimate import Estimate
from dynid.findings import Finding
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.progress import ProgressCallback, silent
from dynid.recording import Recording
from dynid.recording.preparation import Preparation
from dynid.robot import Robot
from dynid.runs.arguments import settings_for_other_logs
from dynid.runs.identification import simulated
from dynid.runs.loading import Resting, prepared
from dynid.runs.models import make_robot
from dynid.runs.results import load
from dynid.validate import Reconstruction, SimulationCheck, reconstruct
from dynid.validate.verdict_checks.transfer import negative_r2


@dataclass(frozen=True, eq=False)
class ValidatedResult:
    """Torque predictions and simulations of an earlier result on other logs.

    Attributes:
        source, estimate, robot: result folder, its estimate and its robot.
        fits, simulations: one per log; simulations are empty if not requested.
        logs: facts on the reading of each log.
        left_out: findings on logs that could not be used.
    """

    source: str
    estimate: Estimate
    robot: Robot
    fits: tuple[Reconstruction, ...]
    simulations: tuple[SimulationCheck, ...]
    logs: tuple[LogFacts, ...] = ()
    left_out: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on excluded logs, and on logs that are predicted no better than by zero torque."""
        return (*self.left_out, *(finding for fit in self.fits for finding in negative_r2(fit)))

    @output_fields(result=str, method=str, robot=str, validation=list[Reconstruction],
                   simulation=list[SimulationCheck], logs=list[LogFacts], findings=list[Finding])
    def to_dict(self) -> dict[str, Any]:
        """Return the validation as plain data for JSON."""
        return plain({"result": self.source, "method": self.estimate.method, "robot": self.robot.name,
                      "validation": self.fits, "simulation": self.simulations, "logs": self.logs,
                      "findings": self.findings})


def validate_result(folder: str | Path, logs: Sequence[str], given: Mapping[str, Any] | None = None,
                    progress: ProgressCallback = silent, *, trust: bool = False) -> ValidatedResult:
    """Validate the result in a folder on logs prepared like those it was identified from.

    given: overriding settings, see `merged`; a table "log" replaces the run's unless it only has a time window. The
    run's own window is not used. trust: see `load`.
    """
    progress("reading the result")
    estimate, settings = load(folder, trust=trust)
    settings = settings_for_other_logs(settings, given or {}, str(folder))
    robot = make_robot(settings, allows_free_base=True)
    chosen = Preparation.from_settings(settings.prepare).elsewhere()
    fits, recordings = list[Reconstruction](), list[Recording]()
    resting: list[Resting] = []
    for recording, samples in prepared(logs, settings, robot, chosen, progress, resting):
        recordings.append(recording)
        fits.append(reconstruct(estimate, samples))
    if not fits:
        raise resting[0].problem
    own = [(fit.samples, recording) for fit, recording in zip(fits, recordings, strict=True)]
    simulations = () if robot.has_free_base else simulated(estimate, settings, own, progress)
    return ValidatedResult(str(folder), estimate, robot, tuple(fits), simulations,
                           tuple(LogFacts.from_recording(one, "validation") for one in recordings),
                           tuple(one.finding for one in resting))
