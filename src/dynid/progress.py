"""Progress of a computation: a short description of the present step, and the completed share."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[str], None]  # receives a short description of the present step
Say = Callable[[str, float], None]  # the same with the completed share, 0 to 1


def silent(sentence: str) -> None:
    """Report nothing."""


def prefixed(progress: ProgressCallback, prefix: str) -> ProgressCallback:
    """Return a `ProgressCallback` whose sentences start with a prefix."""
    return lambda sentence: progress(f"{prefix}{sentence}")


class Progress:
    """A progress callback: progress("reading logs", 0.4) reports the present step and the completed share, by default
    the last reported share. The reported share never decreases, so that a progress bar only grows."""

    def __init__(self, say: Say, start: float = 0.0, stop: float = 1.0, last: list[float] | None = None) -> None:
        self._say, self._start, self._stop = say, start, stop
        self._last = [0.0] if last is None else last  # shared by all parts of a whole

    @staticmethod
    def from_callback(progress: ProgressCallback) -> Progress:
        """Return the given `Progress`, or one that passes its sentences to the given function."""
        return progress if isinstance(progress, Progress) else Progress(lambda sentence, share: progress(sentence))

    def __call__(self, sentence: str, share: float | None = None) -> None:
        """Report the present step in a sentence; share: completed share of this part of the computation, 0 to 1."""
        if share is not None:
            inside = self._start + (self._stop - self._start) * min(max(share, 0.0), 1.0)
            self._last[0] = max(self._last[0], inside)
        self._say(sentence, self._last[0])

    def part(self, start: float, stop: float) -> Progress:
        """Return the progress callback of a part of the computation, from the share `start` to the share `stop`."""
        width = self._stop - self._start
        return Progress(self._say, self._start + start * width, self._start + stop * width, self._last)
