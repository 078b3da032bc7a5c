"""Recursive identification of a robot's parameters while it moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.datasets.identifiable import BoundModel, DataFacts, bind_to_data
from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, identify
from dynid.estimate.recursive.forgetting import DEFAULT, Forgetting, to_table
from dynid.estimate.recursive.result import Limits, standard_limits
from dynid.estimate.recursive.start import PriorLike
from dynid.estimate.recursive.stream import INSTRUMENTAL, Stream, StreamOptions
from dynid.model import LinearModel, complete, robot_model
from dynid.model.data_context import learned_fields
from dynid.model.term_capabilities import capabilities, term_name
from dynid.online.causal import TimedRows
from dynid.online.change_explanations import Change, changes
from dynid.online.feed import Feed, FeedOptions
from dynid.online.motion_rows import (
    OneSample,
    RowEntries,
    checked_motion,
    fed_samples,
    measured_joints,
    without_unmeasured,
)
from dynid.online.streamed import Streamed
from dynid.online.verdict import ParameterVerdict, verdicts
from dynid.regression import BaseParameters
from dynid.regression.base import dry_columns
from dynid.regression.equations import Layout
from dynid.robot import Robot
from dynid.robot.free_base import refuse_free_base
from dynid.threads import one_blas_thread, pool

_SAMPLES_AT_ONCE = 512  # samples whose rows are computed at once
# rad/s or m/s below which a joint is at rest, and number of consecutive samples after which the robot is at rest
_REST_SPEED, _SAMPLES_UNTIL_REST = 0.01, 25
# Entries of `DataContext` that only a log provides to a term with memory.
_QUANTITIES_OF_LOGS = {"times": "the first and the last time of the data", "temperatures": "logged temperatures",
                       "estimate": "the torques of an earlier estimate along the data"}
Motion = tuple[ArrayLike, ArrayLike, ArrayLike]


class Online(Streamed):
    """Identify the parameters of a model recursively from a stream of samples.

        online = Online(model, prior=estimate)      # or no prior at all
        for q, dq, ddq, tau in robot:               # one sample, or blocks of them
            online.update(q, dq, ddq, tau)
        online.estimate().summary()

    Args:
        model: model to identify.
        method: "rls", "cls", "s-rls" (the same estimate, joint after joint), "s-rls-b", "line-by-line", "riv", "civ" or
            "mrls".
        prior: an earlier `Estimate`; standard parameters by name with value and standard deviation; or (values,
            standard deviations) of the base parameters.
        forgetting: a class of `dynid.online`, its name, or a factor. Default: restart toward the prior when the
            innovations change; methods with instruments and sequential ones forget nothing.
        noise: standard deviation of the torque noise, one number or one per joint. Default: learnt from the data
            whenever their number doubles and at every `estimate`. With 1.0 all joints have the same weight, as in the
            literature.
        slow: speed below which the row of a joint is left out, rad/s or m/s. Default: none, but with dry friction,
            samples of a robot at rest (all speeds below 0.01 for 25 samples) are left out.
        adds: smallest information that a row must add (x P x' in units of the noise) to be used, for a row x and the
            covariance P. In steady motion, the n-th sample adds about b / n, with b base parameters.
        robust: standard deviations beyond which a row has a lower weight; 0 for never.
        wanted: parameters that mrls estimates.
        limits: limits of mrls, by name of a standard parameter; or "loose", "normal" or "tight" around the values of
            the robot file, or a bounds file.
        base: base parameters, if they were computed before, alone or with the prior of known values.
        feeding: options of the filter by which `feed` prepares raw samples.
        unmeasured: names of joints whose torque is not measured; their numbers in `tau` are not used.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> online = dynid.Online(model)
    >>> for row in zip(q, dq, ddq, tau):
    ...     online.update(*row)
    >>> online.estimate().names[:2]
    ('YY1R', 'XX2R')
    """

    def __init__(self, model: LinearModel, method: str = "rls", *, prior: PriorLike | None = None,
                 forgetting: Forgetting | str | float | None = DEFAULT, noise: ArrayLike | str = "learn",
                 slow: float | None = None, adds: float = 0.0, robust: float = 0.0, wanted: float | None = None,
                 limits: Limits = None, base: BaseParameters | BoundModel | None = None,
                 feeding: FeedOptions | None = None, unmeasured: Sequence[str] = ()) -> None:
        if isinstance(robot := getattr(model, "robot", None), Robot):
            refuse_free_base(robot, "estimation from a stream")
        for name, value in (("slow", slow), ("adds", adds), ("robust", robust)):
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise ModelError(f"{name} must be a finite number that is not negative, got {value}")
        _refuse_terms_of_logs(model)
        self.model, self.slow = model, None if slow is None else float(slow)
        self.about: dict[str, Any] = {}  # plain data that `save` stores, such as how the model was chosen
        self.left_out = 0  # samples of a robot at rest, or with only slow joints
        self._stood = 0  # consecutive samples at rest
        self._complete = complete(model)
        self.unmeasured = tuple(unmeasured)
        self._all = measured_joints(self._complete.joint_names, self.unmeasured)
        # Values by name are known values; other priors are rows on the base parameters that remain.
        known, rows = (prior, None) if isinstance(prior, Mapping) else (None, prior)
        facts = DataFacts(tuple(np.flatnonzero(~self._all[0]).tolist()))
        whole = base if isinstance(base, BoundModel) else bind_to_data(model, facts, known, base=base)
        options = StreamOptions(rows, forgetting, noise, float(robust), float(adds), wanted,
                                standard_limits(model, limits), whole.prior)
        self._stream = Stream(whole.base, lambda own: Layout.from_model(model, own), self._complete.joint_names, method,
                              options)
        feeding = FeedOptions() if feeding is None else feeding
        self._entries = RowEntries(self.layout, feeding.equations)
        self._feed = Feed(self._complete.joint_names, self._entries, self._take, feeding, self._slow_when_fed)

    # -- properties ---------------------------------------------------------------------------------
    @property
    def method(self) -> str:
        return self._stream.method

    @property
    def base(self) -> BaseParameters:
        """The base parameters that are estimated."""
        return self._stream.base

    @property
    def layout(self) -> Layout:
        return self._stream.layout

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of all arrays."""
        return self._complete.joint_names

    @property
    def samples(self) -> int:
        """Number of samples so far."""
        return self._stream.recursion.done

    @property
    def restarts(self) -> tuple[int, ...]:
        """Numbers of samples after which earlier data were discarded, because the robot had changed."""
        return tuple(self._stream.recursion.restarts)

    def __repr__(self) -> str:
        return (f"<Online by {self.method}: {self.samples} samples, {len(self.base)} base parameters, forgetting "
                f"{self._stream.recursion.forgetting.name}>")

    # -- data ------------------------------------------------------------------------------------
    def update(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike, reference: Motion | None = None, *,
               history: bool = False) -> Array | None:
        """Update with one sample (dof,) or a block (samples, dof): positions, velocities, accelerations and torques.

        reference: positions, velocities and accelerations of the reference, for riv and civ. history: return the
        estimate after each sample (samples, base). An invalid block raises an error and changes nothing.
        """
        one = self._one
        if one is not None and reference is None and not history and one.take(q, dq, ddq, tau):
            counts = self._keep_one(one.velocities)
            if counts is not None:
                self._stream.add(one.rows, counts)
            return None
        motion = checked_motion(self.joint_names, q, dq, ddq, self._measured(tau))
        along = None if reference is None or self.method not in INSTRUMENTAL \
            else checked_motion(self.joint_names, *reference, motion[3], of="reference ")
        memory = self._entries.memory.along(*motion[:2])
        reference_memory = None if along is None else self._entries.reference_memory.along(*along[:2])
        keep = self._keep(motion[1])
        used = np.flatnonzero(keep.any(axis=1))
        self.left_out += len(keep) - len(used)
        before = self.values if history else np.zeros(0)
        found = np.empty((len(used), len(self.base))) if history else None
        for start in range(0, len(used), _SAMPLES_AT_ONCE):
            rows, part = used[start:start + _SAMPLES_AT_ONCE], slice(start, start + _SAMPLES_AT_ONCE)
            self._stream.add(self._rows(motion, memory, rows), keep[rows],
                             None if along is None else self._rows(along, reference_memory, rows),
                             None if found is None else found[part])
        if found is None or len(used) == len(keep):
            return found
        return np.vstack([before, found])[np.searchsorted(used, np.arange(len(keep)), side="right")]

    def _rows(self, motion: Sequence[Array], memory: Array | None, rows: Ints) -> Array:
        """Return the equations (layout.rows, m) of some rows of a motion with the states of its terms with memory."""
        return self._entries.torques(*(x[rows] for x in motion), memory=None if memory is None else memory[rows])

    def _keep(self, dq: Array) -> Bools:
        """Return a mask (m, dof) of the used equations: those of joints with measured torque that move fast enough."""
        if self.slow is not None:
            return (np.abs(dq) >= self.slow) & self._all
        keep = np.repeat(self._all, len(dq), axis=0)
        if self._dry:
            still = np.abs(dq).max(axis=1) < _REST_SPEED
            # Number of samples at rest before each sample, including those of earlier blocks.
            last = np.maximum.accumulate(np.where(still, -1, np.arange(len(dq))))
            stood = np.where(last < 0, self._stood + 1 + np.arange(len(dq)), np.arange(len(dq)) - last)
            keep[still & (stood > _SAMPLES_UNTIL_REST)] = False
            self._stood = int(stood[-1]) if len(dq) and still[-1] else 0
        return keep

    def _keep_one(self, dq: Array) -> Bools | None:
        """Return a mask (1, dof) of the used equations of a sample with velocities dq (dof,), or None for none."""
        if self.slow is not None:
            keep = (np.abs(dq) >= self.slow).reshape(1, -1) & self._all if self.slow > 0.0 else self._all
            self.left_out += not keep.any()
            return keep if keep.any() else None
        if self._dry and abs(dq[0]) < _REST_SPEED and float(np.abs(dq).max()) < _REST_SPEED:
            self._stood += 1
            self.left_out += self._stood > _SAMPLES_UNTIL_REST
            return None if self._stood > _SAMPLES_UNTIL_REST else self._all
        self._stood = 0
        return self._all

    @cached_property
    def _dry(self) -> bool:
        """Whether the model has friction that depends on the sign of a velocity."""
        return bool(dry_columns(self.model, self.base).any())

    @cached_property
    def _one(self) -> OneSample | None:
        """Fast computation of the rows of one sample; None if the model does not support it."""
        model = self._complete.robot_model
        if model is None or self.base.known:
            return None
        return OneSample.from_model(model, self.layout, self._entries.torque_rows)

    # -- raw data --------------------------------------------------------------------------------
    @one_blas_thread()
    def feed(self, t: ArrayLike, q: ArrayLike, tau: ArrayLike, reference: ArrayLike | None = None) -> int:
        """Update the estimate with raw positions and torques and their time stamps (s), one sample or a block.

        Irregular stamps, gaps, repetitions and invalid numbers are handled and listed in `events`. Rate and cut-off are
        chosen from the first four to ten seconds unless `feeding` gives them.

        Args:
            t: Time stamps (s).
            q: Positions (rad or m), (dof,) or (samples, dof).
            tau: Torques (N m or N), shaped as q.
            reference: Commanded positions, shaped as q, which riv and civ need and other methods ignore. Commanded
                positions pass the filter of the measured positions. A sample without commanded positions is skipped
                once earlier samples had them.

        Returns:
            The number of completed regression rows. Each row belongs to a time `delay` seconds before the last sample.
        """
        if self.method not in INSTRUMENTAL:
            reference = None
        elif reference is None:
            if not self._feed.has_samples:
                raise ModelError(f"method '{self.method}' needs the commanded positions of every sample: "
                                 "feed(t, q, tau, reference); in a log map their columns (`--set log.reference=[...]`),"
                                 f" in a line of text add \"reference\", or {self.model.dof} numbers after the torques",
                                 code="no-reference")
            reference = np.full(np.shape(q), np.nan)
        return self._feed.push(*fed_samples(t, q, self._measured(tau), self.model.dof, reference))

    def _take(self, rows: TimedRows) -> None:
        keep = rows.keep & self._all
        used = keep.any(axis=1)
        self.left_out += int(np.sum(~used))
        if used.any():
            own, entries = self.layout.rows, rows.entries[:, used]
            self._stream.add(np.ascontiguousarray(entries[:own]), np.ascontiguousarray(keep[used]),
                             entries[own:] if len(entries) > own else None)

    def _measured(self, tau: ArrayLike) -> ArrayLike:
        """Return torques (dof,) or (samples, dof) with zeros for joints without measured torque."""
        return without_unmeasured(tau, self._all) if self.unmeasured else tau

    @property
    def _slow_when_fed(self) -> float | None:
        """Speed below which a joint's row from `feed` is not used, rad/s or m/s; None for 1 % of its top speed."""
        return self.slow if self.slow is not None or self._dry else 0.0

    # -- results ------------------------------------------------------------------------------------
    @property
    def values(self) -> Array:
        """The current estimate of the base parameters (base,)."""
        return self._stream.values

    def estimate(self) -> Estimate:
        """Return the estimate with its covariance, diagnostics and provenance."""
        return self._stream.estimate().with_provenance(samples=self.samples, restarts=list(self.restarts))

    def consistent(self, method: str = "pc-wls", **options: Any) -> Future[Estimate]:
        """Return the physically consistent robot that fits the stream best, by a method whose name begins with `pc-`.

        The robot is computed in a separate thread while samples continue to arrive; `result()` waits for the
        computation.
        """
        if self.method in INSTRUMENTAL:
            raise ModelError(f"method '{self.method}' uses instrumental variables; a physically consistent robot "
                             "needs method 'rls'")
        known = Problem(self.model, self._stream.recursion.regression(), nominal=self.model.parameters.nominal)
        return pool(1, "dynid-online").submit(identify, known, method=method, **options)

    def verdict(self) -> tuple[ParameterVerdict, ...]:
        """Return for each base parameter whether the motion determines it, or with which others it is confounded."""
        return verdicts(self._stream)

    def changes(self) -> tuple[Change, ...]:
        """Return the changes at the last restarts with their most likely explanations: load, friction, a drive gain,
        or a contact. Some seconds of later data are needed."""
        return () if self.method in INSTRUMENTAL else changes(self._stream.recursion)

    def predict(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Return torques (samples, dof) along a motion with the current estimate."""
        return self._complete.inverse_dynamics(self.base.expand(self.values), q, dq, ddq)

    def residual(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike) -> Array:
        """Return measured minus predicted torques (samples, dof) of the current estimate."""
        return np.asarray(tau, dtype=float) - self.predict(q, dq, ddq)

    def innovations(self) -> Array:
        """Return the last innovations (samples, dof), oldest first: prediction errors of the torques in units of their
        standard deviation. Rows that were not used are zero."""
        return self._stream.recursion.innovations()

    # -- files -----------------------------------------------------------------------------------
    def save(self, path: str | Path) -> None:
        """Write the whole state of the stream to an .npz file atomically; `load` resumes from the file."""
        from dynid.online.store import save
        save(self, path)

    @staticmethod
    def load(path: str | Path, model: LinearModel) -> Online:
        """Return a stream from a file that `save` wrote, for its model."""
        from dynid.online.store import load
        return load(path, model)

    def facts(self) -> dict[str, Any]:
        """Return options and counts as plain data, which `save` writes in addition to the arrays."""
        options, recursion = self._stream.options, self._stream.recursion
        return {"method": self.method, "forgetting": to_table(recursion.forgetting), "slow": self.slow,
                "robust": options.robust, "adds": options.adds, "wanted": options.wanted, "learn": recursion.learn,
                "limits": {name: list(pair) for name, pair in options.limits.items()}, "known": dict(self.base.known),
                "left_out": self.left_out, "stood": self._stood, "last_stamp": self.last_stamp,
                "outside": recursion.outside is not None, "about": self.about,
                "learned": getattr(self.model, "learned", {}), "unmeasured": list(self.unmeasured),
                "feeding": self._feed.facts()}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays of the stream's state, which `save` writes."""
        return {**self._stream.arrays(), **self._entries.arrays()}

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Restore the state of a saved estimation with the same options, from the results of `facts` and `arrays`."""
        self._stream.restore(arrays)
        self._entries.restore(arrays)
        if not facts["outside"]:  # a prior estimate counts as data
            self._stream.recursion.outside = None
        self.left_out, self._stood = int(facts["left_out"]), int(facts["stood"])
        self._feed.stamps.last_stamp = float(facts["last_stamp"])


def _refuse_terms_of_logs(model: LinearModel) -> None:
    """Raise an error for a term whose memory is computed from quantities that a stream does not contain."""
    own = robot_model(model)
    for term in () if own is None else own.terms:
        needs = set(learned_fields(term).values()) & _QUANTITIES_OF_LOGS.keys()
        if needs and capabilities(term).history is not None:
            raise ModelError(f"the term '{term_name(term)}' depends on {_QUANTITIES_OF_LOGS[needs.pop()]}, which a "
                             "stream of positions and torques does not contain",
                             "remove the term, or record the stream and identify from the log with `dynid identify`",
                             "term-needs-log")
