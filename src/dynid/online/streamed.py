"""Common interface of the estimators that process a stream of raw samples."""

from __future__ import annotations

import math

from dynid.online.events import StreamEvent
from dynid.online.feed import Feed


class Streamed:
    """Base class of estimators that process raw samples with a `Feed`."""

    _feed: Feed

    @property
    def delay(self) -> float:
        """Delay of the estimate relative to the raw samples, s; nan while the filter is unknown."""
        return self._feed.delay

    @property
    def filter(self) -> tuple[float, float]:
        """Rate to which samples are resampled, and cut-off of the low-pass filter, Hz; zero before their choice."""
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
        """Events of the stream: problems of the samples, and remarks on the source."""
        return tuple(self._feed.stamps.events.last)

    def finish(self) -> int:
        """End the stream and return the number of completed rows. The filter of a short stream is chosen from its few
        samples."""
        return self._feed.finish()

    def remark(self, code: str, text: str) -> None:
        """Add a remark on the source to `events`, at the last time stamp."""
        self._feed.stamps.events.add(self.last_stamp if math.isfinite(self.last_stamp) else -1.0, code, text)

    def take_events(self, other: Streamed) -> None:
        """Continue with the events of another stream, whose samples are processed again here."""
        self._feed.stamps.events = other._feed.stamps.events
