"""`dynid generate`: generation of source code for the model of a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dynid.cli import options
from dynid.cli.output import Json, console, print_json, show_progress, table
from dynid.files import refuse_to_replace

ParameterForm = Literal["fixed", "base", "full"]
Followed = Literal["auto", "given", "solved"]
Real = Literal["double", "float"]


def command(
    robot: options.RobotName,
    output: Annotated[Path, typer.Option("-o", "--output", show_default=False, help="Folder for the files.")],
    language: Annotated[str, typer.Option(metavar="LANGUAGE,...",
                                          help="Languages: c, python, python-plain, julia, latex, cuda, jax, torch, "
                                               "rust.")] = "c",
    what: Annotated[str, typer.Option(
        metavar="FUNCTION,...", show_default="inverse_dynamics,inertia,coriolis,gravity,friction,forward_dynamics",
        help="Functions: inverse_dynamics, regressor, inertia, coriolis, coriolis_matrix, gravity, friction, "
             "forward_dynamics, momentum, energy, wrenches, step, following, kinematics, jacobian, online, "
             "observer.")] = "",
    parameters: Annotated[ParameterForm, typer.Option(
        help="fixed: values are constants; base: base parameters are an input p; full: also a function that computes p "
             "from all parameters.")] = "fixed",
    result: Annotated[Path | None, typer.Option("--from", metavar="RESULT", show_default=False,
                                                help="Result folder of `dynid identify -o`: use its terms "
                                                     "and values instead of those of the robot file.")] = None,
    friction: options.NominalFriction = "",
    rotor: options.Rotor = False,
    frame: Annotated[str, typer.Option(metavar="LINK", show_default=False,
                                       help="Frame whose pose and Jacobian are computed.")] = "",
    following: Annotated[Followed, typer.Option(help="Dependent joints: given (an input), solved (in closed form), or "
                                                     "auto (solved where a closed form exists).")] = "auto",
    real: Annotated[Real, typer.Option(help="Number type in C, CUDA and Rust. JAX and PyTorch functions have the "
                                            "number type of their inputs.")] = "double",
    batch: Annotated[int, typer.Option(metavar="1|4|8", help="Samples per call in C.")] = 1,
    name: Annotated[str, typer.Option(metavar="NAME", show_default="the robot's",
                                      help="Name of files and functions.")] = "",
    lock: options.Lock = None,
    fixed_base: options.FixedBase = None,
    only: options.Only = "",
    force: options.ForceFiles = False,
    trust: options.Trust = False,
    json: Json = False,
) -> None:
    """Write a robot's dynamics as source code for a controller, an optimiser, an accelerator or a paper."""
    from dynid.robot.free_base import refuse_free_base
    from dynid.runs.code_files import CodeOptions, code_facts, code_paths, make_program, with_companions, write_code

    code = CodeOptions(options.words(what), with_companions(options.words(language)), parameters, real,
                       batch, frame, name, following)
    machine = options.load_robot(robot, only, lock, fixed_base)
    refuse_free_base(machine, "code generation")
    refuse_to_replace(code_paths(output, name or machine.name, code).values(), force)
    with show_progress("generate") as progress:
        progress(f"functions of {machine.name}")
        program = make_program(machine, code, friction=options.words(friction), rotor=rotor, result=result,
                               trust=trust)
        paths = write_code(program, code, output)
    if json:
        print_json(code_facts(program, paths))
        return
    to = console()
    head = ["function", "multiplications", "additions", "divisions", "functions"]
    rows = [[one, str(ops.multiplications), str(ops.additions), str(ops.divisions), str(ops.functions)]
            for one, ops in program.ops.items()]
    to.print(table(head, rows, numbers=head[1:], title=f"{machine.name}, parameters {program.mode}"))
    for path in paths.values():
        to.print(str(path), markup=False)
