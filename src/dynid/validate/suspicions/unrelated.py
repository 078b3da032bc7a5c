"""Torques and positions that do not belong together: of different logs, or shifted in time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dynid.findings import Finding
from dynid.order_statistics import median
from dynid.validate.hypotheses.trial import fold_logs, mean_log_share, try_out
from dynid.validate.suspicions.case import Case, suspect
from dynid.validate.thresholds import UNRELATED_SHARE

SAME_LENGTH = 0.9  # of the longer log: torques of a log that is shorter cannot have been taken for its own


def is_unrelated(case: Case) -> bool:
    """Whether one set of parameters does not explain most of the torque variance of most joints in cross-validation."""
    trial = case.trial
    moving = np.array([not case.at_rest(j) for j in range(case.problem.model.dof)]) & (trial.power > 0)
    if not case.problem.data or not moving.any():
        return False
    # Shares are of each torque's variation about its mean; rows of the fit are some of the log's.
    torques = [np.concatenate(case.torques(int(j))) for j in np.flatnonzero(moving)]
    about_mean = [float(np.var(tau)) / max(float(np.mean(tau ** 2)), 1e-300) for tau in torques]
    variation = trial.power[moving] * np.asarray(about_mean)
    return float(median(trial.typical[moving] / np.maximum(variation, 1e-300))) > UNRELATED_SHARE


def torques_exchanged(case: Case) -> Finding | None:
    """Return a finding on torques that are exchanged with those of another given log, or None.

    The motion of the other log explains them far better.
    """
    logs = [*case.problem.data, *(log for other in case.validations for log in other.samples)]
    for one in case.problem.data:
        for other in logs:
            rows = min(len(one), len(other))
            if other is one or rows < SAME_LENGTH * max(len(one), len(other)):
                continue
            mixed = replace(one.select([(0, rows)]), tau=other.select([(0, rows)]).tau)
            own = try_out(fold_logs(case.problem.model, (mixed,), case.problem.base, case.problem.threads))
            if mean_log_share(own) < mean_log_share(case.trial) + math.log(UNRELATED_SHARE):
                return suspect(
                    "torques-exchanged", "torques exchanged", one.source,
                    f"the torques of {one.source} and {other.source} are exchanged: the motion of the first explains "
                    "the torques of the second; give each log its own torque file", severity="fatal",
                    logs=[one.source, other.source])
    return None


def unrelated_torques(case: Case) -> Finding:
    """Return a finding on torques that the motion of the log does not explain: they belong to another log."""
    return torques_exchanged(case) or suspect(
        "torques-unrelated", "torques unrelated", "all logs",
        "torques and positions do not belong together: no joint's equations explain its torque, whatever column, sign, "
        "unit, delay or direction of gravity is assumed; check that positions and torques are of the same log and "
        "start at the same time", severity="fatal", logs=[log.source for log in case.problem.data])
