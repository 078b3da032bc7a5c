"""Events of a stream, each with a stable code, a time and a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dynid.output_fields import output_fields

MAX_EVENTS_KEPT = 1000  # the latest events, because a stream may have an event at every sample


@dataclass(frozen=True)
class StreamEvent:
    """An event in a stream.

    Attributes:
        t: time stamp, s.
        code: gap, pause, repeated-stamp, backward-stamp, clock-restarted, not-finite, stuck-encoder, bad-line,
            lost-samples or source-ended; payload-changed of a live payload; friction-chosen, friction-not-chosen,
            cutoff-chosen, cutoff-not-chosen or model-changed of a watch.
        text: a sentence on the event.
    """

    t: float
    code: str
    text: str

    @output_fields(t=float, code=str, text=str)
    def to_dict(self) -> dict[str, Any]:
        return {"t": self.t, "code": self.code, "text": self.text}


@dataclass
class Events:
    """The last events, and the number of events of each code."""

    last: list[StreamEvent] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, t: float, code: str, text: str) -> None:
        self.last = [*self.last[-MAX_EVENTS_KEPT + 1:], StreamEvent(t, code, text)]
        self.counts[code] = self.counts.get(code, 0) + 1
