"""Online estimation of a payload on a stream, based on an earlier result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynid.errors import DynidError
from dynid.online import FeedOptions
from dynid.online.events import StreamEvent
from dynid.output_fields import output_fields
from dynid.payloads import LivePayload, PayloadEstimate
from dynid.plain import finite
from dynid.recording.mapping import per_joint
from dynid.runs.arguments import WINDOW
from dynid.runs.models import make_robot
from dynid.runs.results import load
from dynid.runs.settings import RunSettings
from dynid.runs.watching import WatchOptions, follow


@dataclass(frozen=True, eq=False)
class PayloadLook:
    """State of an online payload estimate: the last stamp (s), the live object, and the physically consistent
    payload; None before the first row in motion."""

    t: float
    live: LivePayload
    payload: PayloadEstimate | None

    @output_fields(frame=str, t=float | None, samples=int, left_out=int, delay_s=float | None, rate=float | None,
                   cutoff=float | None, restarts=list[Any], events=list[StreamEvent], payload=PayloadEstimate | None)
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        rate, cutoff = self.live.filter
        return {"frame": self.live.frame, "t": finite(self.t), "samples": self.live.samples,
                "left_out": self.live.left_out, "delay_s": finite(self.live.delay), "rate": rate, "cutoff": cutoff,
                "restarts": list(self.live.restarts), "events": [one.to_dict() for one in self.live.events],
                "payload": None if self.payload is None else self.payload.to_dict()}


def watch_payload(result: str, frame: str, log: dict[str, Any], options: WatchOptions,
                  show: Callable[[PayloadLook], None]) -> PayloadLook:
    """Process a source until it ends, show the state from time to time, and return the last one.

    result: folder of an earlier result without the load; log: a [log] table that overrides that of the result. The
    default cut-off is that of the result's preparation, if it has one.
    """
    if options.record is not None or options.prior is not None:
        raise DynidError("--record and --prior apply to the estimation of parameters, not of a payload")
    estimate, settings = load(result, trust=options.trust)
    rules = log or {key: value for key, value in settings.log.items() if key not in WINDOW}
    settings = RunSettings.of(settings.model_dump() | {"log": rules}, result, trust=options.trust)
    robot = make_robot(settings)
    own = settings.prepare.get("cutoff")
    cutoff = options.cutoff or (float(own) if isinstance(own, int | float) else None)
    stated = settings.log.get("gain_deviation")
    if isinstance(stated, dict):
        stated = per_joint(stated, robot.joint_names, robot.dof, "gain_deviation", "[log]")
    live = LivePayload(estimate, frame or None, gain_deviation=stated,
                       feeding=FeedOptions(cutoff, options.rate, equations=options.equations))
    follow(live, settings, options, robot, lambda: show(look_at_payload(live)))
    return look_at_payload(live)


def look_at_payload(live: LivePayload) -> PayloadLook:
    """Return the present state of an online payload estimate."""
    return PayloadLook(live.last_stamp, live, live.estimate(consistent=True) if live.samples else None)

