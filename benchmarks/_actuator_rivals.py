"""Other methods that identify actuators from positions and commands: CMA-ES on rollouts, and mujoco.sysid."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO

import cma
import numpy as np

from dynid.actuators.problem import ChainProblem
from dynid.arrays import Array
from dynid.recording import Recording

FIRST_SIGMA = 0.25  # of the box, as PACE starts: half of the way from the middle to a bound
MAX_RESTARTS = 9  # of one call, the largest number for which the package keeps its populations small
AS_GOOD = 1.01  # times the held-out error of dynid: a search that is as near has found an equal model
PACE_POPULATION = 4096  # simulations side by side in PACE's configuration
# Boxes of a joint, of the size that BAM and PACE use.
BOXES: Mapping[str, tuple[float, float]] = {
    "armature": (1e-4, 0.1), "viscous": (0.0, 2.0), "coulomb": (0.0, 2.0), "offset": (-1.0, 1.0),
    "stribeck": (0.0, 0.5), "stribeck_speed": (0.01, 3.0), "load": (0.0, 0.5), "stribeck_load": (0.0, 0.5),
    "resistance": (0.5, 5.0), "delay": (0.0, 0.05)}


@dataclass(frozen=True, eq=False)
class CmaFit:
    """Result of CMA-ES on one chain.

    Attributes:
        x: values (unknowns,) with the lowest cost.
        rollouts, cpu: simulations of all logs that were made, and their CPU time, s, without that of the judge.
        as_good_rollouts, as_good_cpu: the same until the held-out error of the best values was as low as that of
            dynid, which a user cannot know; None if it never was.
    """

    x: Array
    rollouts: int
    cpu: float
    as_good_rollouts: int | None
    as_good_cpu: float | None


class _AsGoodError(Exception):
    """Ends a search whose held-out error is as low as that of dynid."""


def fit_by_cma(problem: ChainProblem, rollouts: int, held_out: Callable[[Array], float], target: float, *,
               population: int | None = None, seed: int = 1) -> CmaFit:
    """Return the values with the lowest position error on the fitted logs that CMA-ES found.

    As in BAM, the cost is the mean absolute error and the whole budget is used: where a search has ended, another one
    starts (BIPOP). With a population, it is one search as in PACE: the cost is the mean squared error, and the search
    ends where its held-out error is as low as the target.

    Args:
        problem: the logs and unknowns; rollouts are those of the compiled simulation of dynid, the fastest at hand.
        rollouts: largest number of simulations of all logs.
        held_out: gives the error of values (unknowns,) on logs left out, mrad. Its time is not counted.
        target: held-out error of dynid, mrad.
        population: of one search; without, that of the package, with restarts.
        seed: of the random numbers.
    """
    low, high = np.array([BOXES[one.name] for one in problem.unknowns]).T
    start, judging, made = time.process_time(), 0.0, 0
    best, as_good = (np.inf, low), None
    power = 1 if population is None else 2

    def cost(unit: Array) -> float:
        nonlocal best, as_good, judging, made
        x = low + np.asarray(unit) * (high - low)
        residual = problem.residuals(x)
        found = 1e3 if residual is None else float(np.mean(np.abs(residual) ** power))
        made += 1
        if found < best[0]:
            best = found, x
            if as_good is None:
                since = time.process_time()
                is_good = held_out(x) <= AS_GOOD * target
                judging += time.process_time() - since
                if is_good:
                    as_good = made, since - start - judging
                if is_good and population is not None:
                    raise _AsGoodError
        return found

    options = {"bounds": [0.0, 1.0], "seed": seed, "verbose": -9, "tolfun": 0.0, "tolx": 1e-7}
    middle = np.full(len(low), 0.5)
    if population is None:
        while made < rollouts:  # the package ends after its own number of restarts
            cma.fmin(cost, middle, FIRST_SIGMA, {**options, "maxfevals": rollouts - made}, restarts=MAX_RESTARTS,
                     bipop=True)
    else:
        with suppress(_AsGoodError):
            cma.fmin(cost, middle, FIRST_SIGMA, {**options, "maxfevals": rollouts, "popsize": population})
    spent = time.process_time() - start - judging
    return CmaFit(best[1], made, spent, *(as_good or (None, None)))


def fit_by_mujoco(log: Recording, mass: float, length: float, gains: Mapping[str, float]) -> dict[str, float] | None:
    """Return armature, viscous and Coulomb friction of a pendulum with a PD law by mujoco.sysid, without delay.

    None where mujoco.sysid cannot be imported: it needs the extra `sysid` of MuJoCo.
    """
    import logging

    import mujoco
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        return None
    logging.getLogger().setLevel(logging.ERROR)
    assert log.reference is not None
    spec = mujoco.MjSpec.from_string(
        '<mujoco><option timestep="0.001" integrator="implicitfast"/><worldbody><body><joint name="j" type="hinge" '
        'axis="0 -1 0" armature="0.02" damping="0.1" frictionloss="0.1"/>'
        f'<inertial pos="0 0 {-length}" mass="{mass}" diaginertia="1e-9 1e-9 1e-9"/></body></worldbody><actuator>'
        f'<position name="a" joint="j" kp="{gains["kp"]}" kv="{gains["kd"]}"/></actuator>'
        '<sensor><jointpos name="q" joint="j"/></sensor></mujoco>')
    model = spec.compile()
    start = sysid.create_initial_state(model, log.q[0], np.zeros(1), np.zeros(0))
    parameters = sysid.ParameterDict()
    for name, own in (("armature", "armature"), ("viscous", "damping"), ("coulomb", "frictionloss")):
        def change(spec: mujoco.MjSpec, parameter: sysid.Parameter, own: str = own) -> None:
            setattr(spec.joint("j"), own, [parameter.value[0], 0.0, 0.0] if own == "damping" else parameter.value[0])

        parameters.add(sysid.Parameter(name, 0.05, *BOXES[name], modifier=change))
    held = np.arange(0.0, log.t[-1], 1e-3)
    command = log.reference[np.searchsorted(log.t, held + 1e-9, side="right") - 1]
    sequences = sysid.ModelSequences("pendulum", spec, "log", start, sysid.TimeSeries(held, command),
                                     sysid.TimeSeries.from_names(log.t, log.q, model))
    with redirect_stdout(StringIO()):  # it prints each iteration
        found, _ = sysid.optimize(parameters, sysid.build_residual_fn(models_sequences=[sequences]), verbose=False)
    return {name: float(found[name].value[0]) for name in ("armature", "viscous", "coulomb")}
