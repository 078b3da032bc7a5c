"""ReportData: what a report is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dynid.estimate import Essential, Estimate, FrictionChoice
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.recording import Samples
from dynid.recording.names import short_name
from dynid.report.units import JointUnits, joint_units
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
    from dynid.estimate.controller_fit import ControllerFit
    from dynid.simulation import Controller

if TYPE_CHECKING:
    from dynid.payloads.result import PayloadEstimate



@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything the sections show; what is empty or None leaves its section or column out.

    estimate: the one the report is about; others: of other methods on the same data. reconstruction: on the data it was
    identified from; validations: on other logs; simulations: of these, or of its own. physics: the estimate as a robot.
    cutoff_choice: None where the cut-off was given; cutoff_dependence: how parameters move with it. friction: what was
    chosen for each joint. essential: what was left out of the model; essential_on_others: the error of all parameters
    on each of the validations. deflections: of joints whose motor and link were both measured. breakaway: of joints
    that start from rest. payloads: of the logs that name one. tracking: commanded against sensed, of the logs that hold
    both; controller_fit: the loops that these show, controller: the law that the run was given.
    samples: of the identification, default those of the reconstruction. problem: facts worth a row in the last section,
    by name. notes: what reading the logs said. command: repeats it at the command line; settings: the text of its run
    file; improve: the command that designs a motion for what is known worst. seconds: it took.
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
    seconds: float | None = None

    @property
    def logs(self) -> tuple[Samples, ...]:
        """What the estimate was identified from."""
        return self.samples or self.reconstruction.samples

    def log_name(self, source: str) -> str:
        """A log as the report calls it: its file, with as many folders as tell it from the other logs."""
        return short_name(source, [*(one.source for one in self.logs),
                                   *(name for one in self.validations for name in one.sources)])

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.reconstruction.names

    @cached_property
    def units(self) -> tuple[JointUnits, ...]:
        """Of every joint."""
        return joint_units(self.estimate.model, self.robot)
