"""Errors of the studio as JSON that the page shows."""

from __future__ import annotations

from typing import Any

from dynid.errors import DynidError


class Refusal(DynidError):
    """A refused request: HTTP status, message, hint, and the setting that the refusal concerns (`where`)."""

    def __init__(self, status: int, sentence: str, *, hint: str | None = None, where: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.hint, self.where = status, hint, where

    @staticmethod
    def from_error(said: dict[str, Any]) -> Refusal:
        """Return the error of a worker as a refusal with an HTTP status, which is 500 for an unexpected error."""
        return Refusal(500 if said.get("internal") else 422, str(said["sentence"]), hint=said.get("hint"),
                       where=said.get("where"))

    def to_dict(self) -> dict[str, Any]:
        """Return the error without its status, as jobs store it."""
        return {"sentence": str(self), "hint": self.hint, "where": self.where}
