"""Result of a study: bias, standard deviation, coverage, time and failures of every contestant at every noise level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from dynid.arrays import Array, Bools, Ints
from dynid.output_fields import array_of, output_fields, record
from dynid.study.bench import Bench
from dynid.study.study import Study
from dynid.study.task import Outcome, TaskEstimate

INTERVAL = 1.959963984540054  # standard deviations on each side of a 95 % interval of a normal distribution
UNBIASED, BIASED = 0.3, 1.0  # |bias| / standard deviation: unbiased below the first, biased above the second
GROUPS = ("inertial", "friction")


@dataclass(frozen=True, eq=False)
class Score:
    """Results of one contestant at one noise level.

    Attributes:
        label, method, start: name in tables, method, and initial values of the contestant.
        factor: noise level.
        truth: (base,), true base parameters.
        values, std, identified: (converged, base), estimates, standard errors and masks of identified parameters, from
            the logs with an estimate.
        seconds: (converged,), computing time, s.
        torque_error: (converged,), percent, error of the predicted torques along the motion.
        failures: repetitions without an estimate, with the message of each.
    """

    label: str
    method: str
    start: str | float | None
    factor: float
    truth: Array
    values: Array
    std: Array
    identified: Bools
    seconds: Array
    torque_error: Array
    failures: tuple[tuple[int, str], ...]

    @property
    def converged(self) -> float:
        """Share of the repetitions with an estimate."""
        return len(self.values) / (len(self.values) + len(self.failures))

    @property
    def counts(self) -> Ints:
        """Number of logs in which each parameter was identified (base,)."""
        return self.identified.sum(axis=0)

    @property
    def known(self) -> Bools:
        """Mask (base,) of the parameters identified in at least two logs, which is needed for a standard deviation."""
        return self.counts >= 2

    @property
    def bias(self) -> Array:
        """Mean error (base,) of each parameter over the logs; zero if it was identified in fewer than two logs."""
        return self._mean(self.values - self.truth)

    @property
    def spread(self) -> Array:
        """Standard deviation over the logs (base,); zero if not identified in two logs."""
        off = self.values - self.truth - self.bias
        return np.sqrt(self._mean(off ** 2) * self.counts / np.maximum(self.counts - 1, 1))

    @property
    def stated(self) -> Array:
        """Standard error (base,) that the method states, RMS over the logs; zero if it was identified in fewer than two
        logs."""
        return np.sqrt(self._mean(np.where(self.identified, self.std, 0.0) ** 2))

    @property
    def coverage(self) -> Array:
        """Share (base,) of the logs whose 95 % interval contains the true value; zero if the parameter was identified
        in fewer than two logs."""
        return self._mean((np.abs(self.values - self.truth) <= INTERVAL * self.std).astype(float))

    @property
    def bias_over_spread(self) -> Array:
        """Absolute bias over the standard deviation (base,)."""
        return np.abs(self.bias) / np.maximum(self.spread, 1e-300)

    def group(self, members: Bools) -> dict[str, float] | None:
        """Return a summary of the parameters in the mask `members` (base,); None if none was identified in two logs."""
        chosen = members & self.known
        if not chosen.any():
            return None
        ratio, stated = self.bias_over_spread[chosen], self.stated[chosen]
        return {"parameters": int(members.sum()), "known": int(chosen.sum()),
                "bias_over_spread": float(np.median(ratio)), "unbiased_share": float(np.mean(ratio < UNBIASED)),
                "biased_share": float(np.mean(ratio > BIASED)), "coverage": float(np.mean(self.coverage[chosen])),
                "lowest_coverage": float(np.min(self.coverage[chosen])),
                "spread_over_stated": float(np.median(self.spread[chosen] / np.maximum(stated, 1e-300)))}

    def _mean(self, x: Array) -> Array:
        total = np.where(self.identified, x, 0.0).sum(axis=0)
        return np.where(self.known, total / np.maximum(self.counts, 1), 0.0)


_STUDIED_PARAMETER = record("StudiedParameter", name=str, unit=str, truth=float, inertial=bool, bias=float | None,
                            spread=float | None, stated=float | None, coverage=float | None)
_GROUP_FIELDS: dict[str, Any] = dict.fromkeys(GROUPS, dict[str, Any])
_STUDY_SCORE = record("StudyScore", label=str, method=str, start=str | None, noise=float, converged=float,
                      failures=dict[str, int], seconds=float | None, torque_error=float | None,
                      parameters=array_of(_STUDIED_PARAMETER), **_GROUP_FIELDS)


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Result of a study.

    Attributes:
        study, robot: settings of the study, and name of the robot.
        names, units, truth: names, units and true values of the base parameters, (base,) each.
        inertial: (base,), mask of the parameters of links and rotors. Other parameters, such as friction, are reported
            separately, because their columns contain the sign of a noisy velocity.
        scores: results of each contestant at each noise level.
    """

    study: Study
    robot: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    truth: Array
    inertial: Bools
    scores: tuple[Score, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(one.label for one in self.scores))

    def members(self, group: str) -> Bools:
        """Return the mask (base,) of the base parameters in a group, "inertial" or "friction"."""
        return self.inertial if group == "inertial" else ~self.inertial

    def score(self, label: str, factor: float | None = None) -> Score:
        """Return the score of a method at a noise level, by default the first level."""
        wanted = self.study.noise.factors[0] if factor is None else factor
        return next(one for one in self.scores if one.label == label and one.factor == wanted)

    @output_fields(robot=str, seed=int, repetitions=int, factors=list[float], scores=array_of(_STUDY_SCORE))
    def to_dict(self) -> dict[str, Any]:
        """Return the result of the study as plain data for JSON; only the times differ from run to run."""
        return {"robot": self.robot, "seed": self.study.seed, "repetitions": self.study.repetitions,
                "factors": list(self.study.noise.factors), "scores": [self._score(one) for one in self.scores]}

    def _score(self, one: Score) -> dict[str, Any]:
        some = len(one.values) > 0
        columns = zip(self.names, self.units, self.truth, one.bias, one.spread, one.stated, one.coverage, self.inertial,
                      one.known, strict=True)
        sentences = [sentence for _, sentence in one.failures]
        return {
            "label": one.label, "method": one.method, "start": one.start, "noise": one.factor,
            "converged": one.converged, "failures": {s: sentences.count(s) for s in dict.fromkeys(sentences)},
            "seconds": float(np.median(one.seconds)) if some else None,
            "torque_error": float(np.median(one.torque_error)) if some else None,
            **{group: one.group(self.members(group)) for group in GROUPS},
            "parameters": [{"name": name, "unit": unit, "truth": float(truth), "inertial": bool(inertial),
                            "bias": float(bias) if known else None, "spread": float(spread) if known else None,
                            "stated": float(stated) if known else None, "coverage": float(held) if known else None}
                           for name, unit, truth, bias, spread, stated, held, inertial, known in columns]}

    @property
    def unbiased_by_chance(self) -> float:
        """Return the expected share of parameters that appear unbiased for a method without bias.

        The reason is that the mean error has a standard error of spread / sqrt(logs).
        """
        logs = self.study.repetitions
        return float(2.0 * stdtr(logs - 1, UNBIASED * np.sqrt(logs)) - 1.0) if logs > 1 else 0.0

    def runs_table(self) -> list[tuple[str, ...]]:
        """Return a table with its header: convergence, torque error and time of each method, as medians over the
        logs."""
        rows: list[tuple[str, ...]] = [("method", "noise", "converged", "torque error", "time")]
        for one in self.scores:
            some = len(one.values) > 0
            rows.append((one.label, f"x {one.factor:g}", f"{100 * one.converged:.0f} %",
                         f"{np.median(one.torque_error):.2g} %" if some else "-",
                         f"{np.median(one.seconds):.2f} s" if some else "-"))
        return rows

    def parameters_table(self) -> list[tuple[str, ...]]:
        """Return a table, its header first: bias relative to the standard deviation, share of unbiased parameters, and
        coverage of each method, for inertial parameters and for friction."""
        rows: list[tuple[str, ...]] = [("parameters", "method", "noise", "bias / spread", "unbiased", "coverage")]
        for name in GROUPS:
            for one in self.scores:
                found = one.group(self.members(name))
                cells = ["-", "-", "-"] if found is None else [
                    f"{found['bias_over_spread']:.2f}", f"{100 * found['unbiased_share']:.0f} %",
                    f"{100 * found['coverage']:.0f} %"]
                rows.append((name, one.label, f"x {one.factor:g}", *cells))
        return rows


def gather(study: Study, bench: Bench, outcomes: Sequence[Outcome]) -> StudyResult:
    """Return the outcomes of all tasks, ordered by noise level, as scores."""
    truth, b = bench.truth, len(bench.base)
    size = float(np.linalg.norm(bench.factor @ truth))
    scores = []
    for level, factor in enumerate(study.noise.factors):
        part = outcomes[level * study.repetitions:(level + 1) * study.repetitions]
        for k, entry in enumerate(bench.entries):
            results = [outcome[k] for outcome in part]
            good = [one for one in results if isinstance(one, TaskEstimate)]
            values = np.array([one.values for one in good]).reshape(-1, b)
            scores.append(Score(
                entry.label, entry.method, entry.start, factor, truth, values,
                np.array([one.std for one in good]).reshape(-1, b),
                np.array([one.identified for one in good], dtype=bool).reshape(-1, b),
                np.array([one.seconds for one in good]),
                100.0 * np.linalg.norm((values - truth) @ bench.factor.T, axis=1) / max(size, 1e-300),
                tuple((r, one) for r, one in enumerate(results) if isinstance(one, str))))
    owners = [bench.base.parameters.items[int(k)] for k in bench.base.independent]
    inertial = np.array([one.body is not None or one.unit in ("kg m^2", "kg") for one in owners], dtype=bool)
    return StudyResult(study, bench.model.robot.name, tuple(bench.base.names), tuple(one.unit for one in owners), truth,
                       inertial, tuple(scores))
