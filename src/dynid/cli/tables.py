"""Sentences and tables that commands print."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli.output import console, print_outputs, table
from dynid.cli.screen import MAX_FINDINGS_PRINTED, Screen
from dynid.recording.log_files import short_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from dynid.datasets import LogFacts
    from dynid.estimate import Essential, Estimate, FrictionChoice
    from dynid.estimate.export import WrittenFile
    from dynid.payloads import PayloadEstimate
    from dynid.runs import Run
    from dynid.runs.demonstration import Demo
    from dynid.runs.validation import ValidatedResult
    from dynid.study import StudyResult
    from dynid.validate import Reconstruction, SimulationCheck

_SHOWN_JOINTS = 8  # joints that fit on one screen
_MAX_LOG_COLUMNS = 4  # logs above which errors are listed in rows instead of columns
# Notes on result files that are also shown on the screen: those that contain one of these texts.
NOTES_ON_SCREEN = ("is not written",)
# First words of notes on the equations of a free base that are also shown on the screen.
EQUATION_NOTES_ON_SCREEN = ("equations ", "forces on the feet are not used")
OPEN_LOOP_GOOD = 10.0  # percent of the motion: largest drift at which simulations without a controller are useful

# -- a run and its validation ------------------------------------------------------------------------
def print_run(result: Run, written: Mapping[str, str], full: bool = False, notes: Sequence[str] = (),
              file: WrittenFile | None = None) -> None:
    """Print verdict, errors, main findings and file paths on one screen; with `full` print everything. file: torque
    errors of the written robot file."""
    errors = [] if file is None else [f"{file.sentence}."]
    if full:
        _print_whole_run(result, written, [*errors, *notes])
        return
    from dynid.runs.logs import found_logs_sentence

    to, verdict = Screen(console()), result.verdict
    for line in (*verdict.summary.lines, *_coupling_sentences(result.friction)):
        to.print(line)
    if result.essential is not None:
        to.print(_essential_sentence(result.essential))
    others = [one for one in result.validations if one.total.relative_error is not None]
    worst = [max(others, key=lambda one: one.relative_error)] if others else []
    of_all = f", worst of {len(others)}" if len(others) > 1 else ""
    to.print(
        error_table(
            {"fit": result.reconstruction}
            | {f"{short_name(one.source, (other.source for other in others))}{of_all}": one for one in worst},
            most=_SHOWN_JOINTS,
        )
    )
    used = [log.source for log in result.logs if log.role == "identification"]
    found_logs = found_logs_sentence(result.settings, used, [log.source for log in result.left_out])
    dropped = [*([f"Note: {found_logs}."] if found_logs else ()),
               *(f"Note: {log.sentence}." for log in result.logs if log.dropped),
               *_reading_notes(result), *(f"Note: {note}." for note in dict.fromkeys(result.notes)
                 if result.robot.has_free_base and note.startswith(EQUATION_NOTES_ON_SCREEN))]
    usable = verdict.grade != "not usable"  # otherwise the causes come first
    tail = [*dropped, *(_better_motion(result, written) if usable else ()), *_result_path_lines(written),
            *errors, *(f"  {note}." for note in notes if any(text in note for text in NOTES_ON_SCREEN))]
    below = to.height(tail)
    found = _finding_lines(result)
    shown = to.print_what_fits(found, below + 1, most=MAX_FINDINGS_PRINTED)
    if len(found) > shown:
        more = len(found) - shown
        to.print(f"  {more} more finding{'s' * (more > 1)}: {_more(written)}")
    to.print_what_fits(_simulation_sentences(result.simulations) if usable else (), below, most=1)
    to.print_if_it_fits(parameter_table(result.estimate), below)
    for line in tail:
        to.print(line)


def _reading_notes(result: Run) -> list[str]:
    """Return the notes on logs whose columns or units may be wrong; equal notes are listed once, with the first log."""
    from dynid.recording.check import WRONG_SPEED_UNIT
    from dynid.recording.layout import NOT_REQUESTED

    texts = (NOT_REQUESTED, "not used, because robot", "differ from those of the robot", WRONG_SPEED_UNIT,
             "repeat the previous time stamp")
    first = {note: log.source for log in reversed(result.logs) for note in log.notes
             if any(text in note for text in texts)}
    return [f"Note: {source}: {note}." for note, source in first.items()]


def _coupling_sentences(choice: FrictionChoice | None) -> list[str]:
    """Return a sentence on each motor that was found to be coupled to two joints."""
    from dynid.model import CoupledWrist

    if choice is None:
        return []
    sentences = []
    for term in choice.tables:
        if term["kind"] != CoupledWrist.kind:
            continue
        other, own = term["joints"]
        gains = [f"{worth.gain:.0f}" for name in (other, own) for one in choice.joints if one.joint == name
                 for worth in one.taken if worth.term == CoupledWrist.kind]
        sentences.append(f"Found: the motor of {own} also turns with {other} (this reduces the cross-validation errors "
                         f"of {other} and {own} by {' and '.join(gains)} %).")
    return sentences


def _finding_lines(result: Run) -> list[Group]:
    """Return the lines of each finding, the most important first, with its consequences and options to add."""
    from rich.console import Group

    from dynid.cli.plain_console import to_copy
    from dynid.runs.remedies import remedy
    from dynid.validate.grade import grouped

    lines = []
    for finding, consequences in grouped([one for one in result.verdict.findings if one.kind == "problem"]):
        parts: list[str | Text] = [f"- {finding.text}"]
        if options := remedy(finding, result):
            parts.append(to_copy(f"  Add to the command: {options}"))
        if consequences:
            titles = ", ".join(dict.fromkeys(one.title for one in consequences))
            parts.append(f"  It also explains: {titles}.")
        lines.append(Group(*parts))
    return lines


def _print_whole_run(result: Run, written: Mapping[str, str], notes: Sequence[str]) -> None:
    to = console()
    for line in (*result.verdict.summary.lines, *_coupling_sentences(result.friction)):
        to.print(line, markup=False)
    to.print()
    to.print(parameter_table(result.estimate))
    if result.essential is not None:
        to.print(_essential_sentence(result.essential), markup=False)
    if result.friction is not None:
        to.print(f"Friction terms chosen by cross-validation over {result.friction.blocks} blocks of "
                 "time (in brackets: share of the joint's error that a term removes):", markup=False)
        for one in result.friction.joints:
            to.print(f"- {one}", markup=False)
    names = [one.source for one in result.validations]
    others = {f"validation on {short_name(one.source, names)}": one for one in result.validations}
    fits = {"fit": result.reconstruction, **others}
    to.print((error_table if len(fits) < _MAX_LOG_COLUMNS else log_table)(fits))
    print_simulations(result.simulations)
    print_dropped(result.logs)
    for finding_lines in _finding_lines(result):
        to.print(finding_lines, markup=False)
    for finding in result.verdict.findings:
        if finding.kind != "problem":
            to.print(f"- {finding.text}", markup=False)
    for note in result.estimate.notes:
        to.print(f"Note: {note.text}.", markup=False)
    for said in (*result.notes, *notes):
        to.print(f"Note: {said}", markup=False)
    print_outputs(written)


def _essential_sentence(found: Essential) -> str:
    """Return a sentence with the removed parameters, and the torque errors before and after their removal."""
    unseen = "" if found.unseen is None else (f"; on unseen blocks of time {found.unseen[1]:.3g} instead of "
                                              f"{found.unseen[0]:.3g} %")
    names = ", ".join(one.name for one in found.removed) or "nothing"
    return (f"Removed by rule '{found.criterion}': {names}. Relative error {found.error_after:.3g} instead of "
            f"{found.error_before:.3g} %{unseen}.")


def parameter_table(estimate: Estimate) -> Table:
    """Return the table of base parameters with their standard errors."""
    from dynid.estimate.summary_text import rows as summary_rows

    head = ["name", "value", "standard error", "relative", "is"]
    return table(head, summary_rows(estimate), numbers=head[1:4], title=f"{len(estimate.names)} base parameters")


def _better_motion(result: Run, written: Mapping[str, str]) -> list[str | Text]:
    """Return the command that designs a better motion, if some parameters need one."""
    from dynid.cli.plain_console import to_copy
    from dynid.runs.remedies import improve_command
    from dynid.validate.conclusion import ONE_WAY

    if not result.verdict.excitation.missing:
        return []
    if result.robot.has_free_base:  # no motion is designed for a free base
        return [f"Another motion would determine more parameters well (listed {_more(written)})."]
    folder = Path(written["parameters"]).parent if written else Path("RESULT")
    one_way = [f"- {one.text}" for one in result.verdict.findings if one.code == ONE_WAY[0]]
    return [*one_way,
            f"Design a motion that determines more parameters well (listed {_more(written)}):",
            to_copy(f"  {improve_command(result.settings.robot, folder)}")]


def _more(written: Mapping[str, str]) -> str:
    return f"in {Path(written['report']).name}" if "report" in written else "with --full"


def _result_path_lines(written: Mapping[str, str]) -> list[str]:
    """Return the line that lists the written result files, or the line that states how to write them."""
    if not written:
        return ["Nothing was written: add -o FOLDER to save parameters and report, --full to print all of them."]
    names = ", ".join(Path(path).name for path in written.values())
    return [f"Results in {Path(written['parameters']).parent}: {names}"]


def print_validation(found: ValidatedResult) -> None:
    """Print the torque and simulation errors of an earlier result on other logs."""
    names = [fit.source for fit in found.fits]
    console().print((error_table if len(found.fits) < _MAX_LOG_COLUMNS else log_table)(
        {short_name(fit.source, names): fit for fit in found.fits}))
    for fit in found.fits:
        console().print(f"{short_name(fit.source, names)}: {fit.counted.text}", markup=False)
    if any(fit.moving.total.rows for fit in found.fits):
        console().print("moving and raw: all rows in which a joint moves, with low-passed and with measured "
                        "torques", markup=False)
    print_simulations(found.simulations)
    print_dropped(found.logs)
    for finding in found.findings:
        console().print(f"- {finding.text}", markup=False)


def print_dropped(logs: Sequence[LogFacts]) -> None:
    """Print how many rows of the logs could not be used."""
    for log in logs:
        if log.dropped:
            console().print(f"Note: {log.sentence}.", markup=False)


def error_table(fits: Mapping[str, Reconstruction], most: int | None = None) -> Table:
    """Return a table of relative torque errors by joint, for each set of predicted torques: of the rows of the fit, of
    all moving rows, and of unfiltered torques; with `most`, only of the joints with the largest errors."""
    first = next(iter(fits.values()))
    joints = list(range(len(first.joints)))
    if most is not None and len(joints) > most:
        joints = sorted(sorted(joints, key=lambda j: -(first.joints[j].relative_error or 0.0))[:most])
    head, cells = ["torque error, %"], [["all", *(first.joints[j].name for j in joints)]]
    for name, one in fits.items():
        head.append(name)
        cells.append([_percent(one.total.relative_error, 2), *(_percent(one.joints[j].relative_error) for j in joints)])
        moving = [one.moving.total, *(one.moving.joints[j] for j in joints)]
        if one.moving.total.rows:  # not defined for equations without contact forces
            head += ["moving rows", "raw torque"]
            cells += [[_percent(fit.low_passed) for fit in moving], [_percent(fit.raw) for fit in moving]]
    rows = list(zip(*cells, strict=True))
    if len(joints) < len(first.joints):
        rows.append((f"and {len(first.joints) - len(joints)} more", *[""] * (len(head) - 1)))
    return table(head, rows, numbers=head[1:])


def log_table(fits: Mapping[str, Reconstruction]) -> Table:
    """Return a table of the relative errors of many logs, one row per log, with the worst joint."""
    head, rows = ["torque error, %", "kept rows", "moving rows", "raw torque", "worst joint"], []
    for name, one in fits.items():
        worst = max(one.joints, key=lambda fit: fit.relative_error or 0.0)
        rows.append((name, _percent(one.total.relative_error, 2), _percent(one.moving.total.low_passed),
                     _percent(one.moving.total.raw), f"{worst.name} {_percent(worst.relative_error)}"))
    return table(head, rows, numbers=head[1:4])


def print_simulations(checks: Sequence[SimulationCheck]) -> None:
    """Print the errors of simulated positions in percent of each joint's motion, and failed simulations."""
    to = console()
    done = [(one, one.log) for one in checks if one.log is not None]
    names = {one.source: short_name(one.source, [other.source for other in checks]) for one in checks}
    if done:
        columns = {}
        for one, log in done:
            name = f"{names[one.source]}, " + (f"{one.horizon:g} s" if one.horizon else "closed loop")
            columns[name] = [*map(_short, (log.total_error, *log.position_error))]
            if one.mode == "closed-loop":
                columns[f"{name}: torque"] = [*map(_short, (log.torque_error, *log.torque_error_per_joint))]
        rows = list(zip(["all", *done[0][1].joints], *columns.values(), strict=True))
        to.print(table(["simulated position, %", *columns], rows, numbers=list(columns)))
    said = [f"{len(log.windows)} of {log.possible} windows of {names[one.source]} were simulated"
            for one, log in done if len(log.windows) < log.possible and not one.reason]
    said += [note.text for one in checks for note in one.notes] + [one.reason.text for one in checks if one.reason]
    for sentence in dict.fromkeys(said):
        to.print(f"Simulation: {sentence}.", markup=False)


def _simulation_sentences(checks: Sequence[SimulationCheck]) -> list[str]:
    """Return one sentence per simulation: the position error, or why there is none."""
    said = []
    for one in checks:
        if one.reason is not None:
            said.append(f"Simulation: {one.reason.text}.")
        elif one.log is not None:
            said.append(simulation_sentence(one.log.total_error, one.horizon))
    return list(dict.fromkeys(said))


def simulation_sentence(error: float, horizon: float | None) -> str:
    """Return a sentence on a simulation's position error; simulation integrates a small torque error twice."""
    size = _short(error)
    if not horizon:
        return f"Closed-loop simulation follows the log with an error of {size} % of the motion."
    if error <= OPEN_LOOP_GOOD:
        return (f"Open-loop simulation drifts by {size} % of the motion within {horizon:g} s: suitable for "
                "feed-forward and for simulation.")
    return (f"Open-loop simulation drifts by {size} % of the motion within {horizon:g} s: suitable for feed-forward, "
            "not for simulation without a controller. This does not contradict a small torque error: without feedback "
            "the error is integrated twice.")


def _percent(error: float | None, digits: int = 1) -> str:
    """Format a relative error; a dash for a joint without torque."""
    return "-" if error is None else f"{error:.{digits}f}"


def _short(error: float) -> str:
    """Format a number with three digits; a dash for nan, which a joint at rest has."""
    return "-" if error != error else f"{error:.3g}" if error < 1000 else f"{error:.0f}"


# -- several methods ---------------------------------------------------------------------------------
def print_comparison(facts: Mapping[str, Any]) -> None:
    """Print a comparison of methods: errors, and every base parameter."""
    names = list(facts["methods"])
    head = ["method", "fit, %", "raw, %", "validation, %", "simulated position, %", "consistent", "s"]
    rows = [(name, f"{one['relative_error']:.2f}", _percent(one["moving"]["raw"], 2),
             ", ".join(f"{x:.2f}" for x in one["validation"]) or "-",
             ", ".join(map(_simulated, one["simulation"])) or "-",
             "-" if one["consistent"] is None else "yes" if one["consistent"] else "no", f"{one['elapsed_s']:.2f}")
            for name, one in facts["methods"].items()]
    console().print(table(head, rows, numbers=["fit, %", "raw, %", "s"]))
    console().print(f"fit: {facts['counted_text']}; raw: all moving rows, torques as measured", markup=False)
    for name, reason in facts["failed"].items():
        console().print(f"{name} gave no estimate: {reason}", markup=False)
    console().print(table(["base parameter", *names], [(name, *(_with_deviation(values[method]) for method in names))
                                                       for name, values in facts["parameters"].items()], numbers=names))


def _with_deviation(one: Mapping[str, Any]) -> str:
    return f"{one['value']:.5g}" + (f" ± {one['std']:.1g}" if one["std"] is not None else "")


def _simulated(check: Mapping[str, Any]) -> str:
    """Return the position error of a simulated log as text, with the simulated share of the log if below 100 %."""
    if check["position_error"] is None:
        return "not possible" if not check["windows"] else "-"
    part = f" (reached {100 * check['reached']:.0f} %)" if check["reached"] < 1 else ""
    return f"{check['position_error']:.2f}{part}"


def print_study(result: StudyResult, repetitions: int) -> None:
    """Print bias, standard deviation and failures of every method on simulated logs; repetitions: logs per level."""
    from dynid.study.result import UNBIASED

    to = console()
    (head, *rows), (head_parameters, *parameters) = result.runs_table(), result.parameters_table()
    to.print(table(head, rows, numbers=head[1:], title=f"{result.robot}, {repetitions} logs per noise level"))
    to.print(table(head_parameters, parameters, numbers=head_parameters[2:]))
    to.print(f"unbiased: bias below {UNBIASED:g} of the standard deviation; for an unbiased method and {repetitions} "
             f"logs this holds for {100 * result.unbiased_by_chance:.0f} % of the parameters", markup=False)
    for one in result.scores:
        for sentence in list(dict.fromkeys(text for _, text in one.failures))[:3]:
            to.print(f"{one.label}, noise x {one.factor:g}: {sentence}", markup=False)


def print_demo(found: Demo, facts: Mapping[str, Any]) -> None:
    """Print the results of the demonstration next to the true values, and a next command; facts: from `demo_facts`."""
    from dynid.cli.plain_console import to_copy
    from dynid.runs.arguments import command_line
    from dynid.runs.demonstration import LOGS

    to, run = console(), found.compared.run
    to.print(f"Simulated a {run.robot.name} for {run.samples[0].t[-1]:.0f} s with sensor noise; identified "
             f"{len(found.truth)} parameters and tested them on another motion.", markup=False)
    head = ["method", "torque error, %", "parameter error, %", "physically consistent"]
    to.print(table(head, [(name if one["method"] == name else f"{name} ({one['method']})",
                           f"{one['validation'][0]:.3f}", f"{facts['parameter_error'][name]:.2f}",
                           "yes" if one["consistent"] else "not enforced")
                          for name, one in facts["methods"].items()], numbers=head[1:3]))
    to.print(run.verdict.summary.lines[0], markup=False)
    to.print(f"Report with pictures: {found.written['report']}", markup=False)
    to.print(f"Robot file: {found.written['robot']}", markup=False)
    to.print("Next, identify from a robot file and a log, here those of the demonstration, in place of your own:")
    taken = (f"out{number or ''}" for number in count())
    output = next(name for name in taken if not Path(name).exists())
    to.print(to_copy(command_line("identify", found.written["robot"], str(found.folder / LOGS[0]), "-o", output)))


def payload_table(body: PayloadEstimate, title: str | None = None) -> Table:
    """Return the table of a payload: mass, centre of mass and inertia with standard errors and 95 % intervals."""
    head = ["", "value", "standard error", "95 %"]
    rows = [(f"{name}, {unit}", *("-" if x != x else f"{x:.4g}" for x in (value, std)), f"{low:.4g} to {high:.4g}")
            for name, unit, value, std, low, high in body.rows()]
    return table(head, rows, numbers=head[1:], title=title)


def payload_errors(body: PayloadEstimate) -> str:
    """Return a sentence with the relative torque errors without and with a payload."""
    return f"Torque error: {body.unloaded_error:.3g} % without the payload, {body.relative_error:.3g} % with it."
