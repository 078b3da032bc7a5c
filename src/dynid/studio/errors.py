"""What goes wrong in the studio, as the JSON that a page shows where it belongs."""

from __future__ import annotations

from typing import Any

from dynid.errors import DynidError


class Refusal(DynidError):
    """A request that is not carried out: status of the answer, the sentence, a hint, and what it is about."""

    def __init__(self, status: int, sentence: str, *, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.hint, self.where = status, hint, where

    @staticmethod
    def of(said: dict[str, Any], status: int = 422) -> Refusal:
        """From the error that a worker reports; one that it could not put into words is the server's own fault."""
        return Refusal(500 if said.get("internal") else status, str(said["sentence"]), hint=said.get("hint"),
                       where=said.get("where"))

    def to_dict(self) -> dict[str, Any]:
        """The error alone, as jobs carry it."""
        return {"sentence": str(self), "hint": self.hint, "where": self.where}
