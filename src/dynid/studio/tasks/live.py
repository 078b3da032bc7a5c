"""Online identification as a job: from a replayed log, datagrams or a growing file, with regular updates of the
page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.online.sources import Block, datagrams, growing, replayed
from dynid.progress import Progress
from dynid.robot import Robot
from dynid.runs.loading import read_logs
from dynid.runs.models import make_robot
from dynid.runs.settings import RunSettings
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.log import chosen_log
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.robot import tree_positions
from dynid.studio.tasks.settings import run_settings
from dynid.studio.tasks.watchers import StreamWatcher, watcher
from dynid.studio.voice import ProgressChannel

_MIN_LOOK_INTERVAL, _LOOK_INTERVAL_RATIO = 0.1, 3.0  # s between two looks at least, and in times that one takes
_SILENCE_TIMEOUT = 15.0  # s after which a silent source has ended
_SPEED_RANGE = (0.0, 1000.0)  # of a log that is replayed, in its own pace; 0: as fast as possible
_PORT_RANGE = (1024, 65535)


def live_job(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Follow a source until it ends or the job is stopped, and report the estimate at intervals."""
    source = str(params.get("source") or "log:0")
    settings = run_settings(bounds, logs=source.startswith("log:"))
    with bounds.trusting(settings.robot):
        robot = make_robot(settings)
    stream = watcher(params, settings, robot, bounds)
    blocks, length = _blocks(source, params, settings, robot, bounds, stream)
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


def _blocks(source: str, params: Mapping[str, Any], settings: RunSettings, robot: Robot, bounds: Confinement,
            stream: StreamWatcher) -> tuple[Iterator[Block], float | None]:
    """Return blocks of samples from the source of a stream, and its duration, s, if known."""
    kind, _, name = source.partition(":")
    if kind == "log":
        speed = params.get("speed", 1.0)
        if isinstance(speed, bool) or not (isinstance(speed, int | float)
                                           and _SPEED_RANGE[0] <= speed <= _SPEED_RANGE[1]):
            raise DynidError(f"speed must be a number from {_SPEED_RANGE[0]:g} to {_SPEED_RANGE[1]:g}", where="speed")
        chosen = chosen_log({"log": int(name) if name.isdigit() else -1, "role": params.get("role")}, settings)
        with bounds.trusting(settings.robot, *chosen.files):
            (recording,) = read_logs([chosen], settings, robot)
        return replayed(recording, float(speed)), recording.duration
    if kind == "udp":
        if not name.isdigit() or not _PORT_RANGE[0] <= int(name) <= _PORT_RANGE[1]:
            raise DynidError(f"a UDP port must be a number from {_PORT_RANGE[0]} to {_PORT_RANGE[1]}", where="source")
        return datagrams(int(name), robot.dof, stream.complain, _SILENCE_TIMEOUT), None
    if kind == "tail":
        path = (bounds.files / name.removeprefix("files/")).resolve()
        if not path.is_relative_to(bounds.files) or not path.is_file():
            raise DynidError(f"there is no file '{name[:80]}' in the studio's folder", "put it there, or upload it",
                             where="source")
        return growing(path, robot.dof, stream.complain, _SILENCE_TIMEOUT), None
    raise DynidError("a source must be log:NUMBER, udp:PORT or tail:FILE", where="source")


def _look(stream: StreamWatcher, robot: Robot, t: float, q: Array) -> dict[str, Any]:
    """Return the current estimate of a live stream as plain data."""
    try:
        tree = plain(tree_positions(robot, q[None])[0], 6)
    except DynidError:
        tree = None
    return {"t": t, "q": plain(q, 6), "q_tree": tree, "samples": stream.samples, "parameters": None, "payload": None,
            "contact": None, "relative_error": None, "events": stream.events[-20:], **stream.look()}
