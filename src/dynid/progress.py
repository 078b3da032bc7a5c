"""Progress: what is going on now, in a few words, and which share of the whole is done."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str], None]  # says in a few words what is going on now
Say = Callable[[str, float], None]  # the same, with the share of the whole that is done, 0 to 1


def prefixed(tell: Tell, prefix: str) -> Tell:
    """A `Tell` whose sentences start with some words."""
    return lambda sentence: tell(f"{prefix}{sentence}")


class Progress:
    """A `Tell` with shares of completion: progress("folding", 0.4), or progress("folding") for an unchanged share.

    The reported share never decreases, so that a progress bar only grows.
    """

    def __init__(self, say: Say, start: float = 0.0, stop: float = 1.0, last: list[float] | None = None) -> None:
        self._say, self._start, self._stop = say, start, stop
        self._last = [0.0] if last is None else last  # one for all parts of a whole

    @staticmethod
    def of(tell: Tell) -> Progress:
        """A progress itself, or one that gives its sentences to a function of a sentence alone."""
        return tell if isinstance(tell, Progress) else Progress(lambda sentence, share: tell(sentence))

    def __call__(self, sentence: str, share: float | None = None) -> None:
        """Say what is going on. share: of this part that is done, 0 to 1."""
        if share is not None:
            inside = self._start + (self._stop - self._start) * min(max(share, 0.0), 1.0)
            self._last[0] = max(self._last[0], inside)
        self._say(sentence, self._last[0])

    def part(self, start: float, stop: float) -> Progress:
        """The progress of a part that lasts from one share of this one to another."""
        width = self._stop - self._start
        return Progress(self._say, self._start + start * width, self._start + stop * width, self._last)
