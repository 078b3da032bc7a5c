"""Code of a robot's model, with the parameters of its file or of an earlier result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.model import robot_model
from dynid.output_fields import map_of, output_fields, record
from dynid.robot import Robot
from dynid.runs.code_files import CodeOptions, estimate_program, model_program
from dynid.runs.motion_design import terms_model
from dynid.runs.results import load
from dynid.symbolic import Program
from dynid.symbolic.languages.text import identifier


def make_program(robot: Robot, options: CodeOptions, *, friction: Sequence[str] = (), rotor: bool = False,
                 result: Path | None = None, trust: bool = False) -> Program:
    """Return the program of a robot with these terms, or of an earlier result with its own terms; trust: see `load`."""
    if result is None:
        return model_program(terms_model(robot, tuple(friction), rotor), options)
    if friction or rotor:
        raise DynidError("--from takes the terms of the earlier result, so remove --friction and --rotor",
                         code="conflicting-options")
    estimate, _ = load(result, trust=trust)
    model = robot_model(estimate.model)
    if model is None or model.robot.joint_names != robot.joint_names:
        raise DynidError(f"{result} is the result of another robot than '{robot.name}': their joints differ",
                         code="another-robot")
    return estimate_program(estimate, options)


_OPERATIONS = record("Operations", multiplications=int, additions=int, divisions=int, functions=int)


@output_fields(robot=str, name=str, parameters=str, numbers=list[str], operations=map_of(_OPERATIONS),
               files=dict[str, str])
def code_facts(program: Program, paths: dict[str, Path]) -> dict[str, Any]:
    """Return the program as the object that `dynid generate --json` prints."""
    return {"robot": program.plan.model.robot.name, "name": identifier(program.name), "parameters": program.mode,
            "numbers": list(program.parameter_names),
            "operations": {name: {"multiplications": ops.multiplications, "additions": ops.additions,
                                  "divisions": ops.divisions, "functions": ops.functions}
                           for name, ops in program.ops.items()},
            "files": {language: str(path) for language, path in paths.items()}}
