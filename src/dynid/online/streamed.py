"""Common interface of consumers of a stream."""

from __future__ import annotations

import math

from dynid.online.events import StreamEvent
from dynid.online.feed import Feed


class Streamed:
    """Base class of consumers of raw samples by a `Feed`."""

    _feed: Feed

    @property
    def delay(self) -> float:
        """Delay of the rows that `feed` makes from raw samples, s; nan while the filter is unknown."""
        return self._feed.delay

    @property
    def filter(self) -> tuple[float, float]:
        """Rate of the grid and cut-off of `feed`, Hz; zero while they are not known."""
        return self._feed.rate, self._feed.cutoff

    @property
    def has_moved(self) -> bool:
        """Whether a motion has begun; before that no rate, cut-off or model is chosen."""
        return self._feed.has_moved

    @property
    def last_stamp(self) -> float:
        """The last time stamp that was fed, s; nan before the first."""
        return self._feed.stamps.last_stamp

    @property
    def events(self) -> tuple[StreamEvent, ...]:
        """Events: problems of the samples, and remarks on them."""
        return tuple(self._feed.stamps.events.last)

    def finish(self) -> int:
        """End the stream and return the number of completed rows; the filter of a short stream is chosen from its few
        data."""
        return self._feed.finish()

    def remark(self, code: str, text: str) -> None:
        """Add a remark on the source to `events`, at the last time stamp."""
        self._feed.stamps.events.add(self.last_stamp if math.isfinite(self.last_stamp) else -1.0, code, text)

    def take_events(self, other: Streamed) -> None:
        """Continue with the events of another stream, whose samples are processed again here."""
        self._feed.stamps.events = other._feed.stamps.events
