"""`dynid watch`: online estimation of a robot's parameters or payload while it moves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.options import LogAssignments, LogMapping, Trust, words
from dynid.cli.output import Json, console, print_json, table
from dynid.errors import DynidError

if TYPE_CHECKING:
    from dynid.runs.watching import Look, PayloadLook, WatchOptions


def command(
    robot: Annotated[str, typer.Argument(metavar="ROBOT", show_default=False,
                                         help="A URDF, an MJCF, a robot TOML file (DH or MDH) or the name of a "
                                              "built-in robot; with --payload a result folder.")],
    source: Annotated[str, typer.Option("--from", metavar="SOURCE", show_default=False,
                                        help="A log to replay; - for standard input (CSV or JSON lines: t, q, tau, and "
                                             "reference for riv and civ); udp:PORT; or tail:FILE for a file that "
                                             "grows.")],
    method: Annotated[str, typer.Option(help="Method: rls, cls, s-rls or mrls; riv or civ where the source has "
                                             "commanded positions.")] = "rls",
    forgetting: Annotated[str | None, typer.Option(
        help="How old data lose weight: prior, none, evidence, directional:0.999, a factor, vector:0.9995,1=0.999 (by "
             "joint or parameter), ... Default: prior; none for riv, civ and s-rls.", show_default=False)] = None,
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction terms at every joint (viscous, coulomb, offset, ...), or "
                                               "none. Default: those of the robot's file, or chosen per joint.")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="Identify reflected rotor inertias too.")] = False,
    known: Annotated[list[str] | None, typer.Option("--known", metavar="NAME=VALUE[+-STD]", show_default=False,
                                                    help="Known standard parameter, such as M3=1.2 or "
                                                         "Ia1=0.1+-0.01; may be repeated.")] = None,
    prior: Annotated[str | None, typer.Option(metavar="RESULT", show_default=False,
                                              help="Initial estimate: a result folder, or a robot file or built-in "
                                                   "name, whose values are assumed to be accurate to 30 %.")] = None,
    mapping: LogMapping = None,
    assignments: LogAssignments = None,
    cutoff: Annotated[float | None, typer.Option(help="Low-pass cut-off, Hz. Default: from the first seconds.",
                                                 show_default=False)] = None,
    rate: Annotated[float | None, typer.Option(help="Sampling rate, Hz. Default: from the time stamps.",
                                               show_default=False)] = None,
    equations: Annotated[str, typer.Option(help="Equations: torque, or kernel (without accelerations, "
                                                "with less delay).")] = "torque",
    speed: Annotated[float, typer.Option(help="Replay speed of a log relative to real time; 0 for no waiting.")] = 1.0,
    every: Annotated[float, typer.Option(help="Seconds between two updates of the display.")] = 0.5,
    patience: Annotated[float, typer.Option(help="Seconds without a sample after which the stream ends.")] = 10.0,
    record: Annotated[Path | None, typer.Option(metavar="FOLDER", show_default=False,
                                                help="Folder for the state and history of the stream; an earlier "
                                                     "record there is continued.")] = None,
    payload: Annotated[str | None, typer.Option(metavar="FRAME", show_default=False,
                                                help="Estimate the payload on this frame instead of the robot's "
                                                     "parameters. The robot was identified without payload.")] = None,
    limits: Annotated[str | None, typer.Option(metavar="WIDTH", show_default=False,
                                               help="With --method mrls: limits of the parameters from the robot's "
                                                    "file (loose, normal or tight), or a bounds file.")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Show a robot's parameters, their standard errors and torque errors, or its payload, while it moves."""
    from dynid.runs.arguments import known_table, log_changes, log_table
    from dynid.runs.watching import WatchOptions, look_facts, watch, watch_settings

    if limits is not None and method != "mrls":
        raise DynidError(f"--limits applies to --method mrls, not to '{method}'", code="conflicting-options")
    if payload is not None:
        if friction or rotor or known or method != "rls" or forgetting is not None:
            raise DynidError("with --payload the model is that of the result: --method, --forgetting, --friction, "
                             "--rotor and --known do not apply; remove them", code="conflicting-options")
        _payload(robot, payload, log_table(mapping) | log_changes(assignments or []), WatchOptions(
            source, cutoff=cutoff, rate=rate, speed=speed, every=every, patience=patience, record=record, prior=prior,
            equations=equations, trust=trust), json)
        return
    settings = watch_settings(robot, {"friction": list(words(friction)), "rotor": rotor},
                              log_table(mapping) | log_changes(assignments or []), [], known_table(known or []))
    options = WatchOptions(source, method, forgetting, cutoff, rate, speed, every, patience, record, prior,
                           equations, trust, limits)
    with _screen(_view, json) as show:
        _, last = watch(settings, options, show)
    if json:
        print_json(look_facts(last))
    else:
        console().print(_view(last))


def _payload(result: str, frame: str, log: dict[str, Any], options: WatchOptions, json: bool) -> None:
    from dynid.runs.watching import watch_payload

    with _screen(_view_payload, json) as show:
        last = watch_payload(result, frame, log, options, show)
    if json:
        print_json(last.to_dict())
    else:
        console().print(_view_payload(last))


@contextmanager
def _screen(view: Callable[[Any], Any], json: bool) -> Iterator[Callable[[Any], None]]:
    """Yield a function that shows the present state of a stream, formatted by `view`, in place of the previous state.

    The function shows nothing if stdout is not a terminal, or if the output is JSON.
    """
    if json or not sys.stdout.isatty():
        yield lambda look: None
        return
    from rich.live import Live

    with Live(console=console(), auto_refresh=False) as screen:
        yield lambda look: screen.update(view(look), refresh=True)


def _view_payload(look: PayloadLook) -> Any:
    """Return the view of a live payload: number of rows so far, load with its standard errors, and problems."""
    from rich.console import Group

    from dynid.cli.tables import payload_errors, payload_table

    live, body = look.live, look.payload
    parts: list[Any] = [f"payload on {live.frame}, t = {look.t:.2f} s, {live.samples} rows, {live.left_out} not used, "
                        f"changes: {len(live.restarts)}", *(f"- {one.text}" for one in live.events[-5:])]
    if body is not None:
        parts += [payload_table(body), payload_errors(body), *(f"- {finding.text}" for finding in body.findings)]
    return Group(*parts)


def _view(look: Look) -> Any:
    """Return the view of a stream: number of rows so far, parameters, torque errors, and problems."""
    from rich.console import Group

    online, estimate = look.online, look.estimate
    rate, cutoff = online.filter
    words_ = [f"{online.method}, t = {look.t:.2f} s, {online.samples} rows, {online.left_out} not used",
              f"grid {rate:g} Hz, cut-off {cutoff:g} Hz, {online.delay:.2f} s delay" if rate and cutoff
              else "determining rate and cut-off" if online.has_moved else "waiting for the robot to move"]
    parts: list[Any] = ["; ".join(words_), *(f"- {one.text}" for one in online.events[-5:])]
    if estimate is not None:  # the longest table is last, because a small terminal cuts it off
        errors = estimate.diagnostics.relative_error_per_joint
        parts.append(table(["joint", "relative error, %", "last innovations"], [
            (joint, f"{error:.2f}", f"{size:.2f}") for joint, error, size in zip(
                estimate.diagnostics.joints, errors, look.innovation, strict=True)],
            numbers=["relative error, %", "last innovations"]))
        status = {one.name: one for one in online.verdict()}
        rows = [(name, f"{value:.5g}", f"{std:.2g}" if 0.0 < std < float("inf") else "-",
                 f"{share:.1f} %" if share < 1000.0 else "-", "well determined" if well else "poorly determined"
                 if status[name].status == "identified" else str(status[name]).partition(": ")[2])
                for name, value, std, share, well in zip(estimate.names, estimate.values, estimate.std,
                                                         estimate.relative_std, estimate.well_determined, strict=True)]
        head = ["name", "value", "standard error", "relative", "status"]
        parts.append(table(head, rows, numbers=head[1:4], title=f"{len(rows)} base parameters"))
    return Group(*parts)
