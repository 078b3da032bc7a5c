"""Data of the report on an identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dynid.estimate import Essential, Estimate, FrictionChoice
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.recording import Samples
from dynid.recording.log_files import short_name
from dynid.report.words import JointUnits, joint_units
from dynid.robot import Robot
from dynid.validate import (
    Breakaway,
    CrossValidation,
    CutoffDependence,
    Deflection,
    Physics,
    Reconstruction,
    SimulationCheck,
    Tracking,
    Verdict,
)

if TYPE_CHECKING:
    from dynid.estimate.export import WrittenFile
    from dynid.estimate.loop_fit import ControllerFit
    from dynid.payloads.result import PayloadEstimate
    from dynid.simulation import Controller


@dataclass(frozen=True, eq=False)
class ReportData:
    """Data of the report. Empty values and None omit their section or column.

    Attributes:
        title, robot: headline, and the robot.
        estimate, verdict: the subject of the report, and the verdict on it.
        others: estimates of other methods on the same data.
        reconstruction, validations: torques of the fitted data, and of other logs.
        simulations: simulations of the validation logs, or of the fitted logs.
        cross_validation, physics: errors over blocks of time, and physical properties of the estimate.
        cutoff_choice, cutoff_dependence: choice of the cut-off, None if it was given; influence of the cut-off.
        friction: terms chosen for each joint.
        essential, essential_on_others: reduced model; relative error of the full model on each validation log.
        deflections: joints whose motor and link positions were both measured.
        breakaway: joints that start from rest.
        payloads: payloads of the logs that name one.
        tracking: tracking errors of logs with commanded and measured signals.
        controller_fit, controller: identified control loops; control law given for the run.
        samples: samples of the identification; default: those of the reconstruction.
        problem: facts for the last section, by name.
        notes: sentences on reading the logs.
        command, settings, improve: command line and run file of the result; command that designs a better motion.
        corrections: options of the command that correct or test a problem, by the text of its finding.
        written_file: torque errors of the written robot file.
        seconds: computing time of the run, s.
    """

    title: str
    estimate: Estimate
    reconstruction: Reconstruction
    verdict: Verdict
    robot: Robot | None = None
    others: tuple[Estimate, ...] = ()
    validations: tuple[Reconstruction, ...] = ()
    simulations: tuple[SimulationCheck, ...] = ()
    cross_validation: CrossValidation | None = None
    physics: Physics | None = None
    cutoff_choice: CutoffChoice | None = None
    cutoff_dependence: CutoffDependence | None = None
    friction: FrictionChoice | None = None
    essential: Essential | None = None
    essential_on_others: tuple[float, ...] = ()
    deflections: tuple[Deflection, ...] = ()
    breakaway: tuple[Breakaway, ...] = ()
    payloads: tuple[PayloadEstimate, ...] = ()
    tracking: tuple[Tracking, ...] = ()
    controller_fit: ControllerFit | None = None
    controller: Controller | None = None
    samples: tuple[Samples, ...] = ()
    problem: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""
    settings: str = ""
    improve: str = ""
    corrections: Mapping[str, str] = field(default_factory=dict)
    written_file: WrittenFile | None = None
    seconds: float | None = None

    @property
    def logs(self) -> tuple[Samples, ...]:
        """Logs used for identification."""
        return self.samples or self.reconstruction.samples

    def log_name(self, source: str) -> str:
        """Short name of a log in the report: its file name, with folders if needed to distinguish it."""
        return short_name(source, [*(one.source for one in self.logs),
                                   *(name for one in self.validations for name in one.sources)])

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.reconstruction.names

    @cached_property
    def units(self) -> tuple[JointUnits, ...]:
        """Units of position, velocity and torque of every joint."""
        return joint_units(self.estimate.model, self.robot)
