"""Online estimation of parameters, payload or contacts as a job: from a log, UDP datagrams or a growing file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from dynid.arrays import Array
from dynid.contacts import ExternalWrench
from dynid.contacts.external_wrench import WrenchRows
from dynid.dynamics import frame_pose
from dynid.errors import DynidError, ModelError
from dynid.estimate import Estimate
from dynid.online import FeedOptions, Online
from dynid.online.sources import Block, datagrams, growing, replayed
from dynid.payloads import LivePayload
from dynid.progress import Progress
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.runs.live_model import LiveModel, LiveOptions, with_unmeasured
from dynid.runs.loading import read_logs
from dynid.runs.models import make_robot
from dynid.runs.settings import RunSettings
from dynid.runs.watching import live_payload, look_at
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import chosen_log
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.robot import tree_positions
from dynid.studio.tasks.settings import run_settings
from dynid.studio.tasks.use import loaded
from dynid.studio.voice import ProgressChannel

_MIN_LOOK_INTERVAL, _LOOK_INTERVAL_RATIO = 0.1, 3.0  # s between updates, and ratio to the time of one
_SILENCE_TIMEOUT = 15.0  # s after which a silent source has ended
_SPEED_RANGE = (0.0, 1000.0)  # speed of a replay relative to real time; 0: as fast as possible
_PORT_RANGE = (1024, 65535)
WATCHES = ("parameters", "payload", "contact")
_ROWS_FOR_LINK = 50  # rows from which the touched link is estimated


def live_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Follow a source until it ends or the job is stopped, and report the estimate at intervals."""
    source = str(params.get("source") or "log:0")
    settings = run_settings(bounds, logs=source.startswith("log:"))
    with bounds.trusting(settings.robot):
        robot = make_robot(settings)
    log = _log(source, params, settings, robot, bounds)
    stream = watcher(params, settings if log is None else with_unmeasured(settings, log), robot, bounds)
    blocks = _blocks(source, robot, bounds, stream) if log is None else replayed(log, _speed(params))
    length = None if log is None else log.duration
    say, due, first, last, q = Progress(voice.progress), 0.0, None, 0.0, None
    say(f"listening to {source}", 0.0)
    for block in blocks:
        if len(block.t):
            stream.feed(*block)
            first, last, q = block.t[0] if first is None else first, float(block.t[-1]), block.q[-1]
        if q is not None and time.monotonic() >= due:
            began = time.monotonic()
            voice.say("look", look=_look(stream, robot, last, q))
            due = time.monotonic() + max(_MIN_LOOK_INTERVAL, _LOOK_INTERVAL_RATIO * (time.monotonic() - began))
            voice.progress(f"{stream.samples} samples, t = {last:.2f} s",
                           None if length is None or first is None else min(1.0, (last - float(first)) / length))
    stream.finish()
    if q is None:
        raise DynidError(f"no sample from {source} for {_SILENCE_TIMEOUT:g} s", "start the sender, then try again",
                         where="source")
    end = _look(stream, robot, last, q)
    voice.say("look", look=end)
    return {"sentence": f"the source has ended after {stream.samples} samples", "data": end}


def _log(source: str, params: Mapping[str, Any], settings: RunSettings, robot: Robot,
         bounds: Confinement) -> Recording | None:
    """Return the log that a source names; None for another source."""
    kind, _, name = source.partition(":")
    if kind != "log":
        return None
    chosen = chosen_log({"log": int(name) if name.isdigit() else -1, "role": params.get("role")}, settings)
    with bounds.trusting(settings.robot, *chosen.files):
        (recording,) = read_logs([chosen], settings, robot)
    return recording


def _speed(params: Mapping[str, Any]) -> float:
    """Return the requested speed of a replay relative to real time."""
    speed = params.get("speed", 1.0)
    if isinstance(speed, bool) or not (isinstance(speed, int | float) and _SPEED_RANGE[0] <= speed <= _SPEED_RANGE[1]):
        raise DynidError(f"speed must be a number from {_SPEED_RANGE[0]:g} to {_SPEED_RANGE[1]:g}", where="speed")
    return float(speed)


def _blocks(source: str, robot: Robot, bounds: Confinement, stream: StreamWatcher) -> Iterator[Block]:
    """Return blocks of samples from the source of a stream that is no log."""
    kind, _, name = source.partition(":")
    if kind == "udp":
        if not name.isdigit() or not _PORT_RANGE[0] <= int(name) <= _PORT_RANGE[1]:
            raise DynidError(f"a UDP port must be a number from {_PORT_RANGE[0]} to {_PORT_RANGE[1]}", where="source")
        return datagrams(int(name), robot.dof, stream.complain, _SILENCE_TIMEOUT)
    if kind == "tail":
        path = bounds.folder / bounds.uploaded(name, "file", "source")
        return growing(path, robot.dof, stream.complain, _SILENCE_TIMEOUT)
    raise DynidError("a source must be log:NUMBER, udp:PORT or tail:FILE", where="source")


def _look(stream: StreamWatcher, robot: Robot, t: float, q: Array) -> dict[str, Any]:
    """Return the current estimate of a live stream as plain data."""
    try:
        tree = plain(tree_positions(robot, q[None])[0], 6)
    except DynidError:
        tree = None
    return {"t": t, "q": plain(q, 6), "q_tree": tree, "samples": stream.samples, "parameters": None, "payload": None,
            "contact": None, "relative_error": None, "events": stream.events[-20:], **stream.look()}


def watcher(params: Mapping[str, Any], settings: RunSettings, robot: Robot, bounds: Confinement) -> StreamWatcher:
    """Return the estimator of a live stream: parameters, payload or contacts."""
    watch = params.get("watch") or "parameters"
    if watch not in WATCHES:
        raise DynidError(f"a live stream estimates one of {', '.join(WATCHES)}", where="watch")
    result = loaded(params, bounds) if params.get("result") or watch != "parameters" else None
    if result is not None and result[0].model.dof != robot.dof:
        raise DynidError("the selected result belongs to a robot with other joints than the selected robot; choose a "
                         "result of this robot", where="result")
    if watch == "parameters" or result is None:
        return ParameterWatcher(_live(params, settings, robot, None if result is None else result[0]))
    estimate, own = result
    frame = params.get("frame") or None
    if watch == "payload":
        named = {} if "unmeasured" not in settings.log else {"unmeasured": settings.log["unmeasured"]}
        return LoadWatcher(live_payload(estimate, own.model_copy(update={"log": {**own.log, **named}}), frame,
                                        _feeding(own)))
    with bounds.trusting(own.robot):
        free = list(read_logs(own.unloaded, own, robot))
    try:
        return Touch(ExternalWrench(estimate, frame, free=free))
    except ModelError:  # a model without momentum form, such as one with load friction
        return Touch(ExternalWrench(estimate, frame, free=free, method="inverse"))


def _live(params: Mapping[str, Any], settings: RunSettings, robot: Robot, prior: Estimate | None) -> LiveModel:
    """Return the recursive estimator for the run's model, or for a result, whose estimate is then the prior."""
    return LiveModel(settings, robot, LiveOptions(str(params.get("method") or "rls"), feeding=_feeding(settings),
                                                  prior=prior))


def _feeding(settings: RunSettings) -> FeedOptions:
    """Return the options of the filter of a stream, with the cut-off of a run if that is a number."""
    cutoff = settings.prepare.get("cutoff")
    return FeedOptions(float(cutoff) if isinstance(cutoff, int | float) else None)


Stream = TypeVar("Stream", LiveModel, LivePayload)


class _Fed(Generic[Stream]):
    """Common part of the watchers of `Online` and `LivePayload`: feeding samples and reporting problems."""

    def __init__(self, stream: Stream) -> None:
        self._fed: Stream = stream

    @property
    def _stream(self) -> Online | LivePayload:
        return self._fed.online if isinstance(self._fed, LiveModel) else self._fed

    @property
    def samples(self) -> int:
        return self._stream.samples

    @property
    def events(self) -> list[dict[str, Any]]:
        return [one.to_dict() for one in self._stream.events]

    def feed(self, t: Array, q: Array, tau: Array, reference: Array | None = None) -> None:
        self._fed.feed(t, q, tau, reference)

    def finish(self) -> None:
        self._fed.finish()

    def complain(self, text: str) -> None:
        self._stream.remark("bad-line", text)


class ParameterWatcher(_Fed[LiveModel]):
    """Estimator of the base parameters, with standard errors, while the robot moves."""

    def look(self) -> dict[str, Any]:
        """Return the present estimate of the base parameters; empty before there is an estimate."""
        online = self._fed.online
        estimate = look_at(online).estimate
        if estimate is None:
            return {}
        status = {one.name: one.status for one in online.verdict()}
        return {"relative_error": plain(estimate.diagnostics.relative_error),
                "parameters": [{"name": name, "unit": unit, "value": plain(value), "std": plain(std),
                                "status": status.get(name)}
                               for name, unit, value, std in zip(estimate.names, estimate.base.units, estimate.values,
                                                                 estimate.std, strict=True)]}


class LoadWatcher(_Fed[LivePayload]):
    """Estimator of the payload at a frame of the robot."""

    def look(self) -> dict[str, Any]:
        """Return mass and centre of mass of the payload, physically consistent; empty before the robot moved."""
        if not self._fed.samples:
            return {}
        found = self._fed.estimate(consistent=True)
        return {"relative_error": plain(found.relative_error),
                "payload": {"frame": found.frame, "mass": plain(found.mass if found.identified[9] else None),
                            "mass_std": plain(found.mass_std),
                            "centre": plain(found.centre), "centre_std": plain(found.centre_std)}}


class Touch:
    """Estimator of contacts with the robot: the touched link and the force."""

    def __init__(self, outside: ExternalWrench) -> None:
        self._outside = outside
        self._rows: WrenchRows | None = None
        self._said: list[dict[str, Any]] = []
        self.samples = 0

    @property
    def events(self) -> list[dict[str, Any]]:
        return [*self._said, *({"code": "sample", "text": text} for text in self._outside.events)]

    def feed(self, t: Array, q: Array, tau: Array, reference: Array | None = None) -> None:
        self.samples += len(t)
        rows = self._outside.feed(t, q, tau)
        self._rows = rows if len(rows) else self._rows

    def finish(self) -> None:
        """End the stream; contact detection buffers no samples."""

    def complain(self, text: str) -> None:
        self._said.append({"code": "bad-line", "text": text})

    def look(self) -> dict[str, Any]:
        """Return the contact at the link that is most probably touched; its force in base axes, N."""
        rows = self._rows
        if rows is None or not len(rows):
            return {}
        recent = rows.rows(slice(-_ROWS_FOR_LINK, None))
        active = bool(recent.touched[-1])
        if not active:
            return {"contact": {"active": False, "link": None, "point": None, "force": None, "force_std": None}}
        felt = recent.rows(np.flatnonzero(recent.touched))
        share = self._outside.link_probabilities(felt)
        link = self._outside.robot.body_names[int(np.argmax(share))]
        wrench, covariance = self._outside.at_frame(felt.rows(slice(-1, None)), link)
        place = frame_pose(self._outside.robot, link, felt.torques.q[-1:])[0]
        return {"contact": {"active": True, "link": link, "probability": plain(share.max()),
                            "point": plain(place[:3, 3]), "force": plain(wrench[0, :3]),
                            "force_std": plain(np.sqrt(np.diagonal(covariance[0])[:3]))}}


# An estimator that takes the samples of a stream, with its present state for the page.
StreamWatcher = ParameterWatcher | LoadWatcher | Touch
