"""Estimators for a live stream: the robot's parameters, its payload, or contacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array
from dynid.contacts import ExternalWrench
from dynid.contacts.external_wrench import WrenchRows
from dynid.dynamics import frame_pose
from dynid.errors import DynidError, ModelError
from dynid.estimate import Estimate
from dynid.online import FeedOptions, Online
from dynid.payloads import LivePayload
from dynid.robot import Robot
from dynid.runs.live_model import LiveModel, LiveOptions
from dynid.runs.loading import read_logs
from dynid.runs.settings import RunSettings
from dynid.runs.watching import look_at
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.use import loaded

WATCHES = ("parameters", "payload", "contact")
_ROWS_FOR_LINK = 50  # rows that tell which link is touched


class StreamWatcher(Protocol):
    """An estimator that takes samples, and its present state for the page."""

    @property
    def samples(self) -> int: ...

    @property
    def events(self) -> list[dict[str, Any]]: ...

    def feed(self, t: Array, q: Array, tau: Array, reference: Array | None = None) -> None: ...

    def finish(self) -> None: ...

    def complain(self, text: str) -> None: ...

    def look(self) -> dict[str, Any]: ...


def watcher(params: Mapping[str, Any], settings: RunSettings, robot: Robot, bounds: Confinement) -> StreamWatcher:
    """Return the requested estimator."""
    watch = params.get("watch") or "parameters"
    if watch not in WATCHES:
        raise DynidError(f"a stream is watched for {', '.join(WATCHES)}", where="watch")
    result = loaded(params, bounds) if params.get("result") or watch != "parameters" else None
    if result is not None and result[0].model.dof != robot.dof:
        raise DynidError("the result belongs to a robot with other joints than the selected one", where="result")
    if watch == "parameters" or result is None:
        return ParameterWatcher(_live(params, settings, robot, None if result is None else result[0]))
    estimate, own = result
    frame = params.get("frame") or None
    if watch == "payload":
        cutoff = own.prepare.get("cutoff")
        return LoadWatcher(LivePayload(estimate, frame, feeding=FeedOptions(
            float(cutoff) if isinstance(cutoff, int | float) else None)))
    with bounds.trusting(own.robot):
        free = list(read_logs(own.unloaded, own, robot))
    try:
        return Touch(ExternalWrench(estimate, frame, free=free))
    except ModelError:  # a model without momentum, such as one with friction from load
        return Touch(ExternalWrench(estimate, frame, free=free, way="inverse"))


def _live(params: Mapping[str, Any], settings: RunSettings, robot: Robot, prior: Estimate | None) -> LiveModel:
    """Return the recursive estimator for the run's model, or for a result, whose estimate is then the prior."""
    cutoff = settings.prepare.get("cutoff")
    feeding = FeedOptions(float(cutoff) if isinstance(cutoff, int | float) else None)
    return LiveModel(settings, robot, LiveOptions(str(params.get("method") or "rls"), feeding=feeding, prior=prior))


class _Fed:
    """Common part of `Online` and `LivePayload`: feeding samples, and reporting problems."""

    def __init__(self, stream: LiveModel | LivePayload) -> None:
        self._fed = stream

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


class ParameterWatcher(_Fed):
    """Base parameters with standard errors while the robot moves."""

    def __init__(self, live: LiveModel) -> None:
        super().__init__(live)
        self._live = live

    def look(self) -> dict[str, Any]:
        """Return the present estimate, or None before there is one."""
        online = self._live.online
        estimate = look_at(online).estimate
        if estimate is None:
            return {}
        status = {one.name: one.status for one in online.verdict()}
        return {"relative_error": plain(estimate.diagnostics.relative_error),
                "parameters": [{"name": name, "unit": unit, "value": plain(value), "std": plain(std),
                                "status": status.get(name)}
                               for name, unit, value, std in zip(estimate.names, estimate.base.units, estimate.values,
                                                                 estimate.std, strict=True)]}


class LoadWatcher(_Fed):
    """Payload at a frame of the robot."""

    def __init__(self, live: LivePayload) -> None:
        super().__init__(live)
        self._live = live

    def look(self) -> dict[str, Any]:
        """Return mass and centre of a physically consistent body; None before the robot moved."""
        if not self._live.samples:
            return {}
        found = self._live.estimate(consistent=True)
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
        """Do nothing: no samples are buffered."""

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
