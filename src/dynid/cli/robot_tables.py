"""Output of `dynid inspect` and `dynid check`: a robot's tree, limits, parameters and consistency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynid.cli.output import console, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.tree import Tree

    from dynid.runs.consistency_check import Check


def print_log_signals(logs: Sequence[Mapping[str, Any]], to: Console) -> None:
    """Print the signals of a robot's logs."""
    for log in logs:
        to.print(f"{log['source']}: {log['rows']} rows, {log['seconds']:.4g} s", markup=False)
        for note in log["notes"]:
            to.print(f"  - {note}", markup=False)


def print_inspection(facts: Mapping[str, Any], to: Console) -> None:
    """Print the description of a robot that `inspect_robot` returns."""
    from dynid.runs.consistency_check import LIMITS, inertia_sentences

    parameters, base = facts["parameters"], facts["base_parameters"]
    to.print(f"{facts['robot']}: {facts['dof']} joints, "
             f"gravity ({', '.join(f'{g:g}' for g in facts['gravity'])}) m/s^2")
    to.print(f"from {facts['source']}", markup=False)
    for one in facts["mimic_joints"]:
        to.print(f"{one['name']} depends on {one['joint']}: {one['multiplier']:g} q + {one['offset']:g}", markup=False)
    for one in facts["closures"]:
        again = f", {one['repeated']} of its {one['equations']} equations repeat others" if one["repeated"] else ""
        to.print(f"closure {one['name']} ({one['kind']}) connects {one['first']} and "
                 f"{one['second']}{again}", markup=False)
    if facts["following_joints"]:
        to.print(f"dependent joints: {', '.join(facts['following_joints'])}", markup=False)
    own = [joint["name"] for joint in facts["joints"]]
    for role in ("measured", "driven"):
        if facts[f"{role}_joints"] != own:
            to.print(f"{role} joints: {', '.join(facts[f'{role}_joints'])}", markup=False)
    if facts["links_with_fixed_inertia"]:
        to.print(f"fixed inertias, not identified: {', '.join(facts['links_with_fixed_inertia'])}", markup=False)
    for name, position in facts["locked_joints"].items():
        to.print(f"{name} is locked at {position:g}", markup=False)
    for warning in facts["warnings"]:
        to.print(f"Note: {warning}", markup=False)
    to.print()
    to.print(_tree(facts))
    to.print()
    to.print(table(["", "joint", "kind", *LIMITS], [
        (i, joint["name"], joint["kind"], *("-" if joint[which] is None else f"{joint[which]:.4g}" for which in LIMITS))
        for i, joint in enumerate(facts["joints"], 1)
    ], numbers=["", *LIMITS], title="Limits in rad or m, s, N m or N"))
    to.print(table(["visible in the torques", "", "parameters"], [
        (how, len(names), " ".join(names))
        for seen, how in (("alone", "alone"), ("combined", "combined with others"), ("never", "never"))
        if (names := [one["name"] for one in parameters if one["seen"] == seen])
    ], numbers=[""], title=f"{len(parameters)} parameters"))
    to.print(table(["", "name", "is"], [(i, one["name"], one["expression"]) for i, one in enumerate(base, 1)],
                   numbers=[""], title=f"{len(base)} base parameters"))
    for sentence in inertia_sentences(facts):
        to.print(sentence, markup=False)


def _tree(facts: Mapping[str, Any]) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text(facts["base"]))
    branches = {facts["base"]: root}
    for joint in facts["joints"]:
        label = Text.assemble((f"{joint['name']} ", "cyan"), (f"({joint['kind']}) ", "dim"), joint["link"])
        branches[joint["link"]] = branches[joint["parent"]].add(label)
    return root


def print_check(found: Check) -> None:
    """Print whether a robot is physically consistent, and the violated conditions if it is not."""
    to, test = console(), found.feasibility
    if found.consistent:
        headline = "every body is physically consistent."
    elif {reason.kind for reason in found.reasons} == {"centre-of-mass"}:
        headline = "the inertias are physically consistent, but not at the given positions."
    elif not found.full:
        headline = "no robot has these base parameters. The nearest links with these parameters:"
    else:
        headline = "not physically consistent."
    to.print(f"{found.name}: {headline}", markup=False)
    for reason in found.reasons:
        to.print(f"- {reason.message}", markup=False)
    if test is not None and test.certificate is not None:
        to.print(f"The base parameters are {test.distance:.3g} (SI units) away from those of any physically consistent "
                 f"robot. The proof {'is verified' if test.certificate.verify() else 'could not be verified'} and is "
                 f"based on: {'; '.join(test.certificate.reasons)}.", markup=False)
    for remark in found.remarks:
        to.print(f"Note: {remark}.", markup=False)
