"""`dynid inspect`: what a robot is, what can be identified on it, and what is wrong with its inertias."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.output import Json, console, finite, print_json, table
from dynid.errors import DynidError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

    from dynid.regression import BaseParameters
    from dynid.robot import Robot

MASS_FIRST = ("M", "MX MY MZ", "XX XY XZ YY YZ ZZ")  # the order of Simionato's tables
LIMITS = ("lower", "upper", "velocity", "acceleration", "effort")


COUPLINGS = {"motor-side", "coupled-wrist"}  # kinds of terms without which the torques make no sense


class Terms(StrEnum):
    default = "default"
    own = "own"
    none = "none"


class Order(StrEnum):
    body = "body"
    mass_first = "mass-first"


def command(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", show_default=False,
                                         help="A URDF, a robot TOML (DH or MDH) or a built-in name.")],
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction at every joint: viscous, coulomb, offset, ...")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="The reflected rotor inertia of every joint.")] = False,
    terms: Annotated[Terms, typer.Option(help="The terms of the robot's own file beside those asked for: by default "
                                         "where its motors couple joints, always (own), or none.")] = Terms.default,
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", show_default=False,
                                         help="Gravity in the base frame, m/s^2, instead of the robot's own.")] = "",
    order: Annotated[Order, typer.Option(help="Parameters group onto earlier ones: body by body, or all masses, "
                                         "then moments, then inertias.")] = Order.body,
    json: Json = False,
) -> None:
    """Show a robot's tree, limits and base parameters, and what is wrong with its inertias."""
    from dynid.robot import Robot

    machine = Robot.load(robot)
    if gravity:
        machine = machine.with_gravity(_three_numbers(gravity))
    kinds = tuple(kind.strip() for kind in friction.split(",") if kind.strip())
    coupled = any(term["kind"] in COUPLINGS for term in machine.terms)
    own_terms = terms is Terms.own or (terms is Terms.default and coupled)
    facts = look_at(machine, kinds, rotor, own_terms=own_terms, mass_first=order is Order.mass_first)
    if json:
        print_json(facts)
    else:
        show(facts, console())


def look_at(robot: Robot, friction: tuple[str, ...] = (), rotor: bool = False, *, own_terms: bool = False,
            mass_first: bool = False) -> dict[str, Any]:
    """All that `dynid inspect` says about a robot, as the object that ``--json`` prints."""
    from dynid.model import Model, make_terms
    from dynid.regression import base_parameters
    from dynid.robot.check import inertia_problems

    model = Model(robot, make_terms(robot, friction=friction, rotor=rotor, defaults=own_terms))
    base = base_parameters(model, priority=MASS_FIRST if mass_first else None)
    return {
        "robot": robot.name,
        "source": robot.source,
        "warnings": list(robot.warnings),
        "dof": robot.dof,
        "gravity": [float(g) for g in robot.gravity],
        "base": robot.base,
        "joints": [
            {"name": joint.name, "kind": joint.kind, "link": body.name,
             "parent": robot.base if joint.parent < 0 else robot.bodies[joint.parent].name,
             **{which: finite(getattr(joint, which)) for which in LIMITS}}
            for joint, body in zip(robot.joints, robot.bodies, strict=True)
        ],
        "parameters": [
            {"name": one.name, "unit": one.unit, "of": one.part, "value": one.nominal, "seen": seen}
            for one, seen in zip(model.parameters, how_seen(base), strict=True)
        ],
        "base_count": len(base),
        "base_parameters": [{"name": name, "expression": expression}
                            for name, expression in zip(base.names, base.expressions, strict=True)],
        "inertia_problems": [
            {"link": problem.link, "kind": problem.kind, "message": problem.message, "violation": problem.violation}
            for problem in inertia_problems(robot)
        ],
    }


def how_seen(base: BaseParameters) -> list[str]:
    """How torques show each parameter: "alone", "combined" with others, or "never"."""
    used = base.matrix != 0.0
    lone_rows = used.sum(axis=1) == 1
    seen = []
    for rows in used.T:
        alone = rows.sum() == 1 and (rows & lone_rows).any()
        seen.append("alone" if alone else "combined" if rows.any() else "never")
    return seen


def _three_numbers(text: str) -> list[float]:
    try:
        x, y, z = (float(part) for part in text.split(","))
    except ValueError:
        raise DynidError(f"--gravity takes three numbers such as 0,0,-9.81, got '{text}'") from None
    return [x, y, z]


# -- for people --------------------------------------------------------------------------------------
def show(facts: Mapping[str, Any], to: Console) -> None:
    """Print what `look_at` found."""
    parameters, base = facts["parameters"], facts["base_parameters"]
    to.print(f"[bold]{facts['robot']}[/bold]: {facts['dof']} joints, "
             f"gravity ({', '.join(f'{g:g}' for g in facts['gravity'])}) m/s^2")
    to.print(f"from {facts['source']}", markup=False)
    for warning in facts["warnings"]:
        to.print(f"Note: {warning}", markup=False)
    to.print()
    to.print(_tree(facts))
    to.print()
    to.print(table(["", "joint", "kind", *LIMITS], [
        (i, joint["name"], joint["kind"], *("-" if joint[which] is None else f"{joint[which]:.4g}" for which in LIMITS))
        for i, joint in enumerate(facts["joints"], 1)
    ], numbers=["", *LIMITS], title="Limits in rad or m, s, N m or N"))
    to.print(table(["torques show", "", "of these parameters"], [
        (how, len(names), " ".join(names))
        for seen, how in (("alone", "alone"), ("combined", "combined with others"), ("never", "never"))
        if (names := [one["name"] for one in parameters if one["seen"] == seen])
    ], numbers=[""], title=f"{len(parameters)} parameters"))
    to.print(table(["", "name", "is"], [(i, one["name"], one["expression"]) for i, one in enumerate(base, 1)],
                   numbers=[""], title=f"{len(base)} base parameters"))
    for sentence in verdict(facts):
        to.print(sentence, markup=False)


def verdict(facts: Mapping[str, Any]) -> list[str]:
    """On the inertias that the robot's own file gives: one sentence, then one for each problem."""
    problems = facts["inertia_problems"]
    missing = [problem["link"] for problem in problems if problem["kind"] == "missing"]
    wrong = [problem["message"] for problem in problems if problem["kind"] != "missing"]
    sentences = []
    if missing:
        who = "any link" if len(missing) == facts["dof"] else ", ".join(missing)
        sentences.append(f"Inertias: the source gives none for {who}.")
    if wrong:
        sentences.append(f"Inertias: {len(wrong)} problem{'s' if len(wrong) > 1 else ''}.")
        sentences += [f"  - {message}" for message in wrong]
    return sentences or ["Inertias: every body can exist."]


def _tree(facts: Mapping[str, Any]) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text(facts["base"]))
    branches = {facts["base"]: root}
    for joint in facts["joints"]:
        label = Text.assemble((f"{joint['name']} ", "cyan"), (f"({joint['kind']}) ", "dim"), joint["link"])
        branches[joint["link"]] = branches[joint["parent"]].add(label)
    return root
