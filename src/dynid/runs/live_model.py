"""Online estimate whose model and cut-off are chosen from the stream as far as they are not specified.

The rules are those of `dynid identify`. If friction is not specified, the stream starts with viscous and Coulomb
friction and an offset. The choice is made after ten seconds, forty seconds, and so on, and at the end of the source, on
an `Excerpt` of the stream. If the model or the cut-off changes, the estimate is computed again from the excerpt. After
a change of the robot a new excerpt begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.datasets import Dataset
from dynid.datasets.identifiable import BoundModel, DataFacts, bind_to_data
from dynid.errors import DynidError
from dynid.estimate import Estimate, Problem
from dynid.estimate.recursive.forgetting import DEFAULT
from dynid.estimate.recursive.start import PriorLike, prior_of_file
from dynid.estimate.recursive.stream import INSTRUMENTAL
from dynid.model import LinearModel, complete
from dynid.model.completion import depends_on_data
from dynid.online import FeedOptions, Online
from dynid.online.excerpt import STRETCH_SECONDS, Excerpt
from dynid.online.motion_rows import fed_samples, measured_joints, without_unmeasured
from dynid.recording import Recording
from dynid.regression import BaseParameters
from dynid.robot import Robot
from dynid.runs.choices import choose
from dynid.runs.models import AUTO, first_model, make_model, make_robot, names_friction
from dynid.runs.results import load
from dynid.runs.settings import ModelSettings, RunSettings

CAUSE_SECONDS = 5.0  # s: data after a change from which its cause is found: several motions of an arm
FIRST_CHOICE, NEXT_CHOICE = 10.0, 4.0  # s: time of the first choice of friction, and factor to the next
CHOSEN = "model"  # key of the [model] table in the state of a stream


@dataclass(frozen=True, eq=False)
class StreamChoice:
    """Choices of a run on a recording.

    Attributes:
        settings: settings of the run, with the chosen friction in the [model] table.
        whole: the model with its data-dependent fields, its base parameters and the prior of known values.
        cutoff: cut-off frequency, Hz.
        text: how friction was chosen, or why it was not; empty if it was specified.
    """

    settings: RunSettings
    whole: BoundModel
    cutoff: float | None = None
    text: str = ""


def choose_as_run(settings: RunSettings, robot: Robot, recording: Recording) -> StreamChoice:
    """Choose cut-off and friction by the rules of `dynid identify`, for a recording."""
    chosen = choose(settings, robot, Dataset.from_recordings(recording))
    problem = Problem.from_model(make_model(chosen.settings, chosen.robot), chosen.dataset, known=settings.known,
                                 blocks=1)
    text = " ".join(chosen.notes) if chosen.friction is None else \
        f"friction is chosen from the data: {chosen.friction.text}"
    return StreamChoice(chosen.settings, BoundModel(problem.model, problem.base, problem.regression.prior),
                        problem.data[0].settings.get("cutoff"), text)


@dataclass(frozen=True)
class LiveOptions:
    """Options of the online estimate.

    Attributes:
        method: A recursive method, see `Online`.
        forgetting: A form of forgetting, see `Online`; None for the default of the method.
        feeding: How raw samples are prepared.
        prior: Prior knowledge: an estimate, or a robot's file or built-in name.
        limits: For mrls: "loose", "normal", "tight" or a bounds file.
    """

    method: str = "rls"
    forgetting: str | None = None
    feeding: FeedOptions = field(default_factory=FeedOptions)
    prior: Estimate | str | None = None
    limits: str | None = None


class LiveModel:
    """A stream of raw samples and its recursive estimate, `online`, with an automatically chosen model.

    An earlier estimate as the prior provides its model if the run names no friction.
    """

    def __init__(self, settings: RunSettings, robot: Robot, options: LiveOptions,
                 resume: Callable[[LinearModel], Online | None] = lambda model: None,
                 earlier: dict[str, Any] | None = None) -> None:
        """Create the stream.

        Args:
            settings: Settings of the run; the [model] and [prepare] tables, `known` and the unmeasured joints of the
                [log] table are used.
            robot: The robot of the settings.
            options: Options of the estimate.
            resume: Function that returns the recorded stream of a model, to continue it; None to start a new stream.
            earlier: The [model] table of that stream; a stream that is continued keeps its model.
        """
        feeding = options.feeding
        given = {"cutoff": feeding.cutoff, "rate": feeding.rate,
                 "equations": None if feeding.equations == "torque" else feeding.equations}
        self.settings = settings.model_copy(update={
            "prepare": {**settings.prepare, **{key: value for key, value in given.items() if value is not None}}})
        if earlier is not None:
            self.settings = settings.model_copy(update={"model": ModelSettings.model_validate(earlier)})
        self.robot, self.options = robot, options
        self._is_unnamed = is_unnamed = AUTO in self.settings.model.friction or not names_friction(self.settings, robot)
        known = options.prior.model if is_unnamed and isinstance(options.prior, Estimate) else None
        model = first_model(self.settings, robot) if known is None else known
        self._measured = measured_joints(complete(model).joint_names, settings.log.get("unmeasured", ()))
        facts = DataFacts(tuple(np.flatnonzero(~self._measured[0]).tolist()))
        self._chosen = StreamChoice(self.settings, bind_to_data(model, facts, settings.known))
        found = resume(model)
        self.online = self._new(self._chosen, feeding) if found is None else found
        is_open = is_unnamed or self.settings.prepare.get("cutoff") is None or depends_on_data(model)
        self._excerpt = Excerpt(complete(model).joint_names) if is_open and known is None and found is None else None
        self._due, self._done = FIRST_CHOICE, 0.0
        # Number of restarts that have an event, and time stamp (s) of a restart that has none yet.
        self._named, self._changed_at = len(self.online.restarts), float("nan")

    @property
    def last_stamp(self) -> float:
        return self.online.last_stamp

    def feed(self, t: ArrayLike, q: ArrayLike, tau: ArrayLike, reference: ArrayLike | None = None) -> int:
        """Update the estimate with raw samples, see `Online.feed`."""
        tau = without_unmeasured(tau, self._measured)
        rows, excerpt = self.online.feed(t, q, tau, reference), self._excerpt
        self._name_changes(CAUSE_SECONDS)
        if excerpt is not None:
            if not self.online.has_moved and excerpt.seconds > STRETCH_SECONDS:
                excerpt = self._excerpt = Excerpt(excerpt.joints)  # the model is not chosen from a robot at rest
            has_commands = self.online.method in INSTRUMENTAL  # other methods ignore commands, which some rows may lack
            if reference is not None or not has_commands:
                excerpt.add(*fed_samples(t, q, tau, self.robot.dof, reference if has_commands else None))
            if excerpt.seconds >= self._due:
                self._due = NEXT_CHOICE * excerpt.seconds
                self._choose()
        return rows

    def finish(self) -> int:
        """Choose the model from the whole stream after the source has ended; return the number of new rows."""
        rows = self.online.finish()
        self._name_changes(0.0)
        if self._excerpt is not None and self._excerpt.seconds > self._done:
            self._choose()
            rows += self.online.finish()
        return rows

    def remark(self, code: str, text: str) -> None:
        self.online.remark(code, text)

    def _name_changes(self, seconds: float) -> None:
        """Add an event with the likely cause of a restart, once `seconds` of later data are available."""
        count, now = len(self.online.restarts), self.online.last_stamp
        if count == self._named:
            return
        if math.isnan(self._changed_at):
            self._changed_at = now
        if 0.0 <= now - self._changed_at < seconds:
            return
        causes = [change.cause for change in self.online.changes()[self._named - count:]]
        for cause in causes or ["something else"]:
            self.remark("model-changed", f"the robot changed at about {self._changed_at:.1f} s; the likely cause is "
                                         f"{cause}; the estimate restarts from there")
        if self._excerpt is not None:  # the present model is kept until enough data of the changed robot are available
            self._excerpt.begin_at(self._changed_at)
            self._due = max(FIRST_CHOICE, self._done)
        self._named, self._changed_at = count, float("nan")

    def _new(self, choice: StreamChoice, feeding: FeedOptions) -> Online:
        prior: PriorLike | None = None
        if self.options.prior is not None:
            prior = prior_rows(self.options.prior, choice.settings, choice.whole.base)
        given = self.options.forgetting
        names = complete(choice.whole.model).joint_names
        online = Online(choice.whole.model, self.options.method, forgetting=DEFAULT if given is None else given,
                        base=choice.whole, prior=prior, feeding=feeding, limits=self.options.limits,
                        unmeasured=[name for name, yes in zip(names, self._measured[0], strict=True) if not yes])
        online.about[CHOSEN] = choice.settings.model.model_dump(mode="json")
        return online

    def _choose(self) -> None:
        """Choose model and cut-off from the excerpt, and restart the estimate if they have changed."""
        excerpt = self._excerpt
        assert excerpt is not None
        self._done = excerpt.seconds
        recording = excerpt.recording()
        try:
            found = choose_as_run(self.settings, self.robot, replace(recording, unmeasured=self.online.unmeasured))
        except DynidError as problem:
            what = "friction" if self._is_unnamed else "cutoff"
            self.remark(f"{what}-not-chosen", f"{what.replace('cut', 'the cut-')} could not be chosen from "
                                              f"{excerpt.seconds:.0f} s of the stream: {problem}")
            return
        if self._is_present(found, exactly=excerpt.is_whole):
            return
        self._chosen = found
        self._restart(found, excerpt)
        chosen = found.text or "the cut-off is chosen from the data"
        self.remark("friction-chosen" if found.text else "cutoff-chosen", f"{chosen}; the estimate is computed again "
                    f"from the last {excerpt.seconds:.0f} s"
                    + ("" if found.cutoff is None else f", cut-off {found.cutoff:g} Hz"))

    def _is_present(self, found: StreamChoice, *, exactly: bool) -> bool:
        """Return whether a choice gives the present model and cut-off. exactly: including data-dependent fields."""
        learned, before = (getattr(one.whole.model, "learned", {}) for one in (found, self._chosen))
        return (found.settings.model == self._chosen.settings.model and found.cutoff in (None, self.online.filter[1])
                and (learned == before or (bool(before) and not exactly)))

    def _restart(self, found: StreamChoice, excerpt: Excerpt) -> None:
        """Create a new estimate of the chosen model from the excerpt, keeping the events."""
        (rate, _), old, given = self.online.filter, self.online, self.options.feeding
        feeding = replace(given, cutoff=found.cutoff or given.cutoff, rate=given.rate or rate or None)
        self.online = self._new(found, feeding)
        for block in excerpt.blocks():
            self.online.feed(*block)
        self.online.take_events(old)
        self._named, self._changed_at = len(self.online.restarts), float("nan")


def with_unmeasured(settings: RunSettings, recording: Recording) -> RunSettings:
    """Return the settings of a stream with the unmeasured joints of the log that is replayed."""
    return settings.model_copy(update={"log": {**settings.log, "unmeasured": list(recording.unmeasured)}})


def prior_rows(source: Estimate | str, settings: RunSettings, base: BaseParameters) -> PriorLike:
    """Return the prior: an estimate, or the values of a robot file with relative standard deviations."""
    if isinstance(source, Estimate):
        return source
    other = settings.model_copy(update={"robot": source})
    return prior_of_file(base, first_model(other, make_robot(other)).parameters)


def prior_from(source: str | None, trust: bool = False) -> Estimate | str | None:
    """Return the prior that a command names: the estimate of a result folder, or a robot's file or built-in name.

    trust: whether a Python file that the result names may be run.
    """
    return load(source, trust=trust)[0] if source is not None and Path(source).is_dir() else source
