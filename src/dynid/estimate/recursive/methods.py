"""Recursive identification methods, applied to logs: all samples are processed in the order of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dynid.errors import ModelError
from dynid.estimate.closed_loop.loop import Log
from dynid.estimate.covariance import LinearFit
from dynid.estimate.estimate import Estimate
from dynid.estimate.instruments.transfer import filtered_references, plain_references
from dynid.estimate.linear import solve
from dynid.estimate.problem import Problem, method
from dynid.estimate.recursive.result import standard_limits
from dynid.estimate.recursive.stream import Stream, StreamOptions
from dynid.recording import Samples
from dynid.regression import TorqueEquations
from dynid.regression.equations import Rows
from dynid.simulation import Reference

Start = Literal["zero", "nominal"]
References = Literal["reference", "transfer"]


@method("rls", "recursive least squares", needs={"data"})
def rls(problem: Problem, *, forgetting: float | str | None = None, prior_std: float | None = None,
        start: Start = "zero", noise: float | str = "learn", robust: float = 0.0) -> Estimate:
    """Return the recursive least-squares estimate; all joints' rows of a sample are added at once.

    See Ardiani, eq. 1.55 and 4.10.

    Args:
        problem: the identification problem.
        forgetting: a factor, or a name with numbers ("start-up:0.999").
        prior_std: initial standard deviation, the root of P's diagonal; without it there is no prior.
        start: initial values.
        noise: standard deviation of the torques, which sets the weights of the joints; by default estimated as in
            `wls`; 1 gives Ardiani's form.
        robust: standard deviations beyond which a row is down-weighted, 0 for never.
    """
    return _over_logs(problem, "rls", _options(problem, forgetting, prior_std, start, noise, robust))


@method("cls", "coupled recursive least squares, joint by joint in every sample", needs={"data"})
def cls(problem: Problem, *, forgetting: float | str | None = None, prior_std: float | None = None,
        start: Start = "zero", noise: float | str = "learn", robust: float = 0.0) -> Estimate:
    """Return the estimate by coupled recursive least squares, row by row from the last joint of each sample (Ardiani,
    eq. 3.13-3.14). The estimate equals that of `rls`, which has the same options."""
    return _over_logs(problem, "cls", _options(problem, forgetting, prior_std, start, noise, robust))


@method("s-rls", "sequential recursive least squares, all samples of a joint before the next", needs={"data"})
def s_rls(problem: Problem, *, prior_std: float | None = None, start: Start = "zero",
          noise: float | str = "learn") -> Estimate:
    """Return the estimate by sequential recursive least squares: all samples of the last joint, then of the previous
    joint, with P passed on (Ardiani, eq. 3.15-3.16). The estimate equals that of `rls`; the diagnostic
    `joint_estimates` (joints, base) has the estimates after each joint. Options: see `rls`."""
    return _over_logs(problem, "s-rls", _options(problem, None, prior_std, start, noise, 0.0))


@method("s-rls-b", "sequential recursive least squares, each joint updating only its own parameters",
        needs={"data", "joints", "rigid"}, depends_on={"order", "prior"})
def s_rls_b(problem: Problem, *, prior_std: float | None = None, start: Start = "zero") -> Estimate:
    """Return the estimate of a variant of `s-rls` in which a joint's rows update only its own parameters (Ardiani, s.
    3.4.4), for comparison. The standard errors are those of least squares. prior_std: see `rls`, by default 10."""
    return _over_logs(problem, "s-rls-b", _options(problem, None, prior_std, start, 1.0, 0.0))


@method("line-by-line", "least squares of each joint's own parameters, from the last joint to the first",
        needs={"data", "exact", "joints", "rigid"}, depends_on={"order"})
def by_lines(problem: Problem) -> Estimate:
    """Return each joint's own parameters from its own rows, with those of later joints taken as known.

    This method of de Wit and Aubin (1990) is for comparison. The standard errors are those of least squares.
    """
    return _over_logs(problem, "line-by-line", StreamOptions(forgetting=None, noise=1.0))


@method("mrls", "block-recursive least squares with a verdict for each parameter", needs={"data", "exact"},
        depends_on={"order"})
def mrls(problem: Problem, *, wanted: float | None = None, start: Start = "zero", limits: Any = None) -> Estimate:
    """Return least squares in the parameters that the data distinguish, with the others at their start.

    See Lomakin and Deutscher, fig. 1.

    Args:
        problem: the identification problem.
        wanted: required standard error of a parameter, in its unit; by default the value that alone explains the
            torque.
        start: values of the other parameters.
        limits: limits of standard parameters by name, converted to base parameters by interval arithmetic (s. VI); or
            "loose", "normal" or "tight" for those of the robot file; or a bounds file.
    """
    chosen = _options(problem, None, None if start == "zero" else 1.0, start, "learn", 0.0)
    return _over_logs(problem, "mrls", replace(chosen, wanted=wanted, limits=standard_limits(problem.model, limits)))


@method("riv", "recursive instrumental variables from references", needs={"data", "exact", "rigid", "torques"},
        depends_on={"order"})
def riv(problem: Problem, *, references: References = "reference", forgetting: float | str | None = None,
        prior_std: float | None = None, start: Start = "zero") -> Estimate:
    """Return the estimate by recursive instrumental variables: the regressor along the references (Ardiani, eq. 3.1).

    references: unchanged, or filtered by each joint's identified loop ("transfer", eq. 3.5-3.8). Other options are
    those of `rls`. An error is raised if the references are nearly uncorrelated with the motion.
    """
    return _with_references(problem, "riv", _options(problem, forgetting, prior_std, start, 1.0, 0.0), references)


@method("civ", "coupled recursive instrumental variables", needs={"data", "exact", "rigid", "torques"},
        depends_on={"order"})
def civ(problem: Problem, *, references: References = "reference", forgetting: float | str | None = None,
        prior_std: float | None = None, start: Start = "zero") -> Estimate:
    """Return the estimate of `riv`, computed row by row from the last joint (Ardiani, eq. 4.7-4.9)."""
    return _with_references(problem, "civ", _options(problem, forgetting, prior_std, start, 1.0, 0.0), references)


def _options(problem: Problem, forgetting: float | str | None, prior_std: float | None, start: Start,
             noise: float | str, robust: float) -> StreamOptions:
    """Return the options of a stream from those of a method; known values with a standard deviation become a prior."""
    if prior_std is not None and not prior_std > 0.0:
        raise ModelError(f"prior_std, the initial standard deviation, must be above zero, got {prior_std}")
    values = problem.base.reduce(problem.need_nominal("rls")) if start == "nominal" else np.zeros(len(problem.base))
    return StreamOptions(None if prior_std is None else (values, prior_std), forgetting, noise, robust,
                         known=problem.regression.prior)


def _over_logs(problem: Problem, name: str, options: StreamOptions) -> Estimate:
    """Return the estimate of a recursive method after all samples of all logs."""
    equations = problem.equations
    stream = Stream(problem.base, lambda base: equations.layout, equations.joints, name, options)
    whole: list[Rows] = []
    for piece in equations.pieces():
        rows = equations.rows(piece)
        if name in ("s-rls", "s-rls-b"):  # these methods need all samples at once
            whole.append(rows)
        else:
            stream.add(np.ascontiguousarray(rows.entries), np.ascontiguousarray(rows.keep))
    if whole:
        stream.add(np.hstack([rows.entries for rows in whole]), np.vstack([rows.keep for rows in whole]))
    plain = stream.recursion.forgetting.name == "none" and options.robust == 0.0 and name in ("rls", "cls", "s-rls")
    return _from_data(problem, stream) if plain else stream.estimate()


def _from_data(problem: Problem, stream: Stream) -> Estimate:
    """Return the current estimate without forgetting, with standard errors computed from the data."""
    recursion = stream.recursion
    recursion.settle_noise()
    regression = replace(problem.regression, prior=recursion.prior)
    solution = solve(regression, recursion.live())
    found = LinearFit.from_solution(replace(problem, regression=regression), solution,
                                    recursion.scale).estimate(stream.method)
    if not len(stream.joint_estimates):
        return found
    facts = {"joint_estimates": stream.joint_estimates.tolist()}
    return replace(found, diagnostics=found.diagnostics.with_facts(facts))


def _with_references(problem: Problem, name: str, options: StreamOptions, references: References) -> Estimate:
    """Return the instrumental-variable estimate from the rows of all logs, with instruments along their references."""
    logs = [_log(problem, k) for k in range(len(problem.data))]
    motions = plain_references(logs) if references == "reference" else filtered_references(logs)
    equations, along = problem.equations, TorqueEquations.from_model(problem.model, tuple(motions), problem.base)
    stream = Stream(problem.base, lambda base: equations.layout, equations.joints, name, options)
    for piece in equations.pieces():
        rows, instruments = equations.rows(piece), along.rows(piece)
        stream.add(np.ascontiguousarray(rows.entries), np.ascontiguousarray(rows.keep), instruments.entries)
    return stream.estimate()


def _log(problem: Problem, k: int) -> Log:
    samples: Samples = problem.data[k]
    recording: Any = problem.recordings[k] if problem.recordings else None
    if recording is None or recording.reference is None:
        raise ModelError(f"{samples.source} contains no reference, which instruments need; map its columns (--set "
                         "'log.reference=[...]'), or use 'rls'", code="no-reference")
    return Log(samples, Reference.from_recording(recording), False)

