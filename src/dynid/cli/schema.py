"""`dynid schema`: JSON schemas of run files and of the outputs of commands."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from dynid.cli.output import print_json
from dynid.errors import DynidError
from dynid.output_fields import output_schema, record
from dynid.version import __version__

RUN_FILE = "run"
# Command -> declaration of each form of its output, as module:name. A form with + also has the key `outputs`, the
# written files.
FORMS: dict[str, tuple[str, ...]] = {
    "demo": ("dynid.runs.demonstration:demo_facts+",),
    "warmup": ("dynid.cli.warmup:OUTPUT",),
    "robots": ("dynid.cli.robots:OUTPUT",),
    "inspect": ("dynid.runs.consistency_check:Inspection",),
    "excite": ("dynid.runs.motion_design:motion_facts+", "dynid.runs.actuator_experiment:experiment_facts+",
               "dynid.runs.improve_loop:ROUNDS"),
    "motion": ("dynid.runs.motion_design:NAMED_MOTION+",),
    "simulate": ("dynid.runs.virtual_log:log_facts+",),
    "identify": ("dynid.runs.results:facts+",),
    "watch": ("dynid.runs.watching:look_facts", "dynid.runs.watching:PayloadLook"),
    "payload": ("dynid.runs.payload_result:FoundPayload+",),
    "contact": ("dynid.runs.contact_result:FoundContacts+",),
    "gains": ("dynid.runs.drive_gains:FoundGains",),
    "actuators": ("dynid.runs.actuators:FoundActuators+",),
    "extract": ("dynid.runs.extracted_sets:ExtractedSets+",),
    "validate": ("dynid.runs.validation:ValidatedResult",),
    "check": ("dynid.runs.consistency_check:Check",),
    "compare": ("dynid.runs.comparison:comparison_facts+", "dynid.runs.comparison:ComparedResults",
                "dynid.study.result:StudyResult+"),
    "fleet": ("dynid.fleet.result:FleetResult+",),
    "generate": ("dynid.runs.code_files:code_facts",),
    "export": ("dynid.estimate.simulators.exports:Exported", "dynid.runs.simulator_files:DrawnFiles",
               "dynid.runs.simulator_files:DrawnActuators"),
    "ros2": ("dynid.runs.ros2_bridge:recording_facts+", "dynid.cli.ros2:OUTPUT"),
    "methods": ("dynid.cli.methods:OUTPUT",),
    "presets": ("dynid.cli.presets:OUTPUT",),
    "plugins": ("dynid.cli.plugins:OUTPUT",),
    "reproduce": ("dynid.cli.scripts:REPRODUCTIONS", "dynid.cli.scripts:RESULT"),
    "bench": ("dynid.cli.scripts:BENCHMARKS", "dynid.cli.scripts:RESULT"),
    "version": ("dynid.cli.version:OUTPUT",),
}


def command(
    name: Annotated[str, typer.Argument(metavar="[run|COMMAND]", show_default="run",
                                        help="run: schema of run files; name of a command: schema of its output with "
                                             "--json.")] = RUN_FILE,
) -> None:
    """Print the JSON schema of run files, with which editors complete and check them, or of a command's output."""
    from dynid.runs.schema import run_file_schema

    if name != RUN_FILE and name not in FORMS:
        raise DynidError(f"there is no schema '{name}'; there are {', '.join((RUN_FILE, *FORMS))}", code="unknown-name")
    print_json(run_file_schema() if name == RUN_FILE else command_schema(name))


def command_schema(name: str) -> dict[str, Any]:
    """Return the schema of the --json output of a command of FORMS."""
    return output_schema([_form(one) for one in FORMS[name]], f"Output of dynid {name} --json, dynid {__version__}")


def _form(place: str) -> Any:
    module, _, name = place.removesuffix("+").partition(":")
    declared = getattr(import_module(module), name)
    return record("Output", declared, outputs=dict[str, str]) if place.endswith("+") else declared
