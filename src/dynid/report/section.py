"""Sections of a page, and a page as an ordered list of sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from dynid.errors import DynidError


class Titled(Protocol):
    """Protocol of the data of a page, which have a title."""

    @property
    def title(self) -> str: ...


Data = TypeVar("Data", bound=Titled)


@dataclass(frozen=True)
class Section(Generic[Data]):
    """One part of a page.

    Attributes:
        name: its anchor in the page (`#name`).
        title: heading.
        gather: returns the values for its template by name, or None to omit the section.
        template: Jinja text; empty for dynid's own, whose template is the file report/pages/PAGE/NAME.html.
    """

    name: str
    title: str
    gather: Callable[[Data], Mapping[str, Any] | None]
    template: str = ""


@dataclass(frozen=True)
class Page(Generic[Data]):
    """A page: `name` is the folder of its templates in `report/pages`, `subtitle` the line below the headline."""

    name: str
    subtitle: Callable[[Data], str]
    sections: tuple[Section[Data], ...]

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(section.name for section in self.sections).items() if count > 1]
        if twice:
            raise DynidError(f"page '{self.name}' has two sections named '{twice[0]}'; give one of them another name")


@dataclass(frozen=True)
class Card:
    """A key number: its name, its value and a short explanation."""

    title: str
    value: str
    words: str
