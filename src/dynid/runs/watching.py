"""Online identification of a robot or its payload, with periodic output, a record to resume from, and a page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError, NotPossibleError
from dynid.estimate import Estimate
from dynid.model import complete
from dynid.online import FeedOptions, Online
from dynid.online.events import StreamEvent
from dynid.online.sources import Block, Losses, datagrams, growing, read_lines, replayed
from dynid.online.store import Record, read_history
from dynid.output_fields import map_of, output_fields
from dynid.payloads import LivePayload, PayloadEstimate
from dynid.plain import finite, plain
from dynid.recording import Recording
from dynid.recording.mapping import per_joint
from dynid.report import write_page
from dynid.report.pages.stream import STREAM, Shown, StreamData
from dynid.robot import Robot
from dynid.runs.arguments import settings_for_other_logs
from dynid.runs.live_model import CHOSEN, LiveModel, LiveOptions, prior_from, with_unmeasured
from dynid.runs.loading import read_logs
from dynid.runs.models import make_robot
from dynid.runs.results import PARAMETER, load, parameter_facts
from dynid.runs.settings import RunSettings

PAGE = "report.html"


@dataclass(frozen=True)
class WatchOptions:
    """Options of `watch`.

    Attributes:
        source: a log, "-" for standard input, "udp:PORT" or "udp:HOST:PORT", or "tail:FILE" for a file that grows.
        method, forgetting, cutoff, rate: options of `dynid.Online` and its preparation.
        speed: playback speed of a log relative to real time, 0 for the highest possible speed.
        every: time between two outputs, s.
        patience: time without data after which the source is considered ended, s.
        record: folder to write to and to resume from.
        prior: folder of a result, or a robot's file or built-in name, as prior knowledge.
        equations: "torque" or "kernel".
        trust: whether Python files that results name as their models may be run.
        limits: for mrls, "loose", "normal", "tight" or a bounds file.
    """

    source: str
    method: str = "rls"
    forgetting: str | None = None
    cutoff: float | None = None
    rate: float | None = None
    speed: float = 1.0
    every: float = 0.5
    patience: float = 10.0
    record: Path | None = None
    prior: str | None = None
    equations: str = "torque"
    trust: bool = False
    limits: str | None = None


@dataclass(frozen=True, eq=False)
class Look:
    """State of a stream of samples.

    Attributes:
        t: last time stamp, s.
        online: the recursive estimator.
        estimate: its present estimate; None before the first row.
        innovation: RMS of the last innovations of each joint (dof,), in units of the noise.
        losses: samples that a UDP source lost, or None.
    """

    t: float
    online: Online
    estimate: Estimate | None
    innovation: np.ndarray
    losses: Losses | None = None


def watch_settings(robot: str, model: dict[str, Any], log: dict[str, Any], logs: list[str],
                   known: dict[str, Any] | None = None) -> RunSettings:
    """Return the settings of a run that define robot, model, known parameters and the reading of logs."""
    return RunSettings.from_values({"robot": robot, "logs": logs or ["-"], "model": model, "log": log,
                                    "known": known or {}}, robot)


def watch(settings: RunSettings, options: WatchOptions, show: Callable[[Look], None]) -> tuple[Robot, Look]:
    """Process a source until it ends, show the state periodically, and return the last state."""
    robot = make_robot(settings)
    record = None if options.record is None else Record(options.record)
    log = log_of_source(settings, options, robot)
    live = _live(settings if log is None else with_unmeasured(settings, log), robot, options, record)

    def look() -> Look:
        now = look_at(live.online)
        if record is not None:
            record.write(live.online, now.estimate)
        return now

    losses = Losses()
    try:
        follow(live, log, options, robot, lambda: show(look()), losses)
    finally:
        last = replace(look(), losses=losses)
    if options.record is not None and last.estimate is not None:
        write_stream_page(options.record, live.online, robot.name)
    return robot, last


def _live(settings: RunSettings, robot: Robot, options: WatchOptions, record: Record | None) -> LiveModel:
    """Return the stream of a `watch`, new or restored from its record."""
    stream = LiveOptions(options.method, options.forgetting,
                         FeedOptions(options.cutoff, options.rate, equations=options.equations),
                         prior_from(options.prior, options.trust), options.limits)
    if record is None:
        return LiveModel(settings, robot, stream)
    about = record.about
    return LiveModel(settings, robot, stream, record.resume, None if about is None else about.get(CHOSEN))


def log_of_source(settings: RunSettings, options: WatchOptions, robot: Robot) -> Recording | None:
    """Return the log that a source names; None for standard input, UDP and a file that grows."""
    if options.source == "-" or options.source.startswith(("udp:", "tail:")):
        return None
    (recording,) = read_logs([options.source], settings, robot)
    return recording


def follow(stream: LiveModel | LivePayload, log: Recording | None, options: WatchOptions, robot: Robot,
           look: Callable[[], None], losses: Losses | None = None) -> None:
    """Feed a stream from its source, or from a log, until it ends, with periodic output. losses: counter of lost UDP
    samples."""
    losses = Losses() if losses is None else losses
    if options.speed < 0.0 or options.every <= 0.0 or options.patience <= 0.0:
        raise DynidError("--speed must not be negative, and --every and --patience must be "
                         "positive", code="out-of-range")
    due = time.monotonic() + options.every
    after = stream.last_stamp
    for block in (_blocks(options, robot, stream, losses) if log is None else
                  replayed(log, options.speed, -np.inf if np.isnan(after) else after)):
        if len(block.t):
            stream.feed(*block)
        if time.monotonic() >= due:
            look()
            due = time.monotonic() + options.every
    stream.finish()
    if losses.sentence:
        stream.remark("lost-samples", losses.sentence)
    stream.remark("source-ended", "the source has ended")


def _blocks(options: WatchOptions, robot: Robot, stream: LiveModel | LivePayload, losses: Losses) -> Iterator[Block]:
    """Yield blocks of samples from the source of a stream that is no log."""
    source, dof = options.source, robot.dof

    def complain(text: str) -> None:
        stream.remark("bad-line", text)

    if source == "-":
        return read_lines(sys.stdin, dof, complain)
    if source.startswith("udp:"):
        host, _, port = source.removeprefix("udp:").rpartition(":")
        if not port.isdigit():
            raise DynidError(f"a UDP source is udp:PORT or udp:HOST:PORT, got '{source}'", code="wrong-source")
        return datagrams(int(port), dof, complain, options.patience, host or "127.0.0.1", options.rate, losses)
    return growing(Path(source.removeprefix("tail:")), dof, complain, options.patience)


def look_at(online: Online) -> Look:
    """Return the present state of an online estimate."""
    try:
        estimate = online.estimate() if online.samples else None
    except NotPossibleError:
        estimate = None
    last = online.innovations()[-100:]
    counted = np.maximum((last != 0.0).sum(axis=0), 1)
    return Look(online.last_stamp, online, estimate, np.sqrt((last ** 2).sum(axis=0) / counted))


@output_fields(optional=("udp",), method=str, samples=int, left_out=int, t=float | None, delay_s=float | None,
               rate=float | None, cutoff=float | None, restarts=list[Any], events=list[StreamEvent],
               verdict=dict[str, str], parameters=map_of(PARAMETER), relative_error=float | None, udp=Losses)
def look_facts(look: Look) -> dict[str, Any]:
    """Return the state of a stream as plain data for JSON."""
    online, estimate = look.online, look.estimate
    facts: dict[str, Any] = {
        "method": online.method, **_stream_facts(online, look.t),
        "verdict": {one.name: one.status for one in online.verdict()}, "parameters": {}, "relative_error": None}
    if look.losses is not None and look.losses.buffer:
        facts["udp"] = look.losses.to_dict()
    if estimate is not None:
        facts["relative_error"] = finite(estimate.diagnostics.relative_error)
        facts["parameters"] = parameter_facts(estimate)
    return facts


def _stream_facts(stream: Online | LivePayload, t: float) -> dict[str, Any]:
    """Return the facts that online estimates of parameters and of payloads share; t: last time stamp, s."""
    rate, cutoff = stream.filter
    return plain({"samples": stream.samples, "left_out": stream.left_out, "t": t, "delay_s": stream.delay, "rate": rate,
                  "cutoff": cutoff, "restarts": stream.restarts, "events": stream.events})


def write_stream_page(folder: Path, online: Online, robot: str) -> Path | None:
    """Write the page of a recorded stream into its folder; return None if its history is too short."""
    names, rows = read_history(folder)
    if len(rows) < 2:
        return None
    b = len(online.base)
    restarts = [float(rows[k, 0]) for k in np.flatnonzero(np.diff(rows[:, 2]) > 0) + 1]
    changes = tuple(Shown(float(np.interp(change.sample, rows[:, 1], rows[:, 0])), change.sample, change.cause, tuple(
        (str(one), one.evidence, 100.0 * one.explained) for one in change.explanations)) for change in online.changes())
    data = StreamData(f"{robot}: live estimation", online.method, online.samples, rows[:, 0], rows[:, 3:3 + b],
                      rows[:, 3 + b:3 + 2 * b], tuple(names[3:3 + b]), online.base.units, tuple(restarts), changes,
                      tuple((one.t, one.text) for one in online.events))
    return write_page(STREAM, data, Path(folder) / PAGE)


@dataclass(frozen=True, eq=False)
class PayloadLook:
    """State of an online payload estimate: the last time stamp (s), the live object, and the physically consistent
    payload; None before the first row in motion."""

    t: float
    live: LivePayload
    payload: PayloadEstimate | None

    @output_fields(frame=str, t=float | None, samples=int, left_out=int, delay_s=float | None, rate=float | None,
                   cutoff=float | None, restarts=list[Any], events=list[StreamEvent], payload=PayloadEstimate | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the state of the payload estimate as plain data for JSON."""
        return {"frame": self.live.frame, **_stream_facts(self.live, self.t), "payload": plain(self.payload)}


def watch_payload(result: str, frame: str, log: dict[str, Any], options: WatchOptions,
                  show: Callable[[PayloadLook], None]) -> PayloadLook:
    """Process a source until it ends, show the state periodically, and return the last state.

    result: folder of an earlier result without the load; log: a [log] table that overrides that of the result. The
    default cut-off is that of the result's preparation, if it has one.
    """
    if options.record is not None or options.prior is not None:
        raise DynidError("--record and --prior apply to the estimation of parameters, not of a payload", "remove them")
    estimate, settings = load(result, trust=options.trust)
    settings = settings_for_other_logs(settings, {"log": log}, result)
    robot = make_robot(settings)
    own = settings.prepare.get("cutoff")
    cutoff = options.cutoff or (float(own) if isinstance(own, int | float) else None)
    source = log_of_source(settings, options, robot)
    live = live_payload(estimate, settings if source is None else with_unmeasured(settings, source), frame or None,
                        FeedOptions(cutoff, options.rate, equations=options.equations))
    follow(live, source, options, robot, lambda: show(look_at_payload(live)))
    return look_at_payload(live)


def live_payload(estimate: Estimate, settings: RunSettings, frame: str | None, feeding: FeedOptions) -> LivePayload:
    """Return the online estimator of a payload, with the drive gains' accuracy and the unmeasured joints of the [log]
    table."""
    names = complete(estimate.model).joint_names
    stated = settings.log.get("gain_std")
    if isinstance(stated, dict):
        stated = per_joint(stated, names, len(names), "gain_std", "[log]")
    return LivePayload(estimate, frame, gain_std=stated, feeding=feeding,
                       unmeasured=settings.log.get("unmeasured", ()))


def look_at_payload(live: LivePayload) -> PayloadLook:
    """Return the present state of an online payload estimate."""
    return PayloadLook(live.last_stamp, live, live.estimate(consistent=True) if live.samples else None)
