"""An XML file as bytes: positions of its elements, and edits that change nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

Edit = tuple[int, int, bytes]  # bytes from, to, and their replacement

_VALUE = rb"""[^\s=<>/]+\s*=\s*(?:"[^"]*"|'[^']*')"""
_START_TAG = re.compile(rb"<[^\s/>]+(?:\s+" + _VALUE + rb")*\s*/?>")
_ATTRIBUTE = re.compile(rb"""([^\s=<>/]+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(eq=False)
class XmlElement:
    """Position of an element: its start tag from `start` to `opened`, its end tag from `closed` to `end`."""

    tag: str
    attributes: dict[str, str]
    start: int
    opened: int
    closed: int = 0
    end: int = 0
    children: list[XmlElement] = field(default_factory=list)

    def all(self, tag: str) -> list[XmlElement]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> XmlElement | None:
        return next(iter(self.all(tag)), None)


@dataclass(frozen=True)
class XmlPage:
    """The bytes of an XML file (UTF-8), and functions that write numbers into it."""

    data: bytes
    newline: bytes

    def root(self) -> XmlElement:
        """The root with all elements, with tags as ElementTree names them."""
        parser = expat.ParserCreate("utf-8", namespace_separator="}")
        outside = XmlElement("", {}, 0, 0)
        path = [outside]

        def start(tag: str, attributes: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            shape = _START_TAG.match(self.data, at)
            assert shape is not None  # expat has just read it
            path[-1].children.append(XmlElement(tag, attributes, at, shape.end()))
            path.append(path[-1].children[-1])

        def end(tag: str) -> None:
            one = path.pop()
            if self.empty(one):
                one.closed = one.end = one.opened
            else:
                one.closed = parser.CurrentByteIndex
                one.end = self.data.index(b">", one.closed) + 1

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.Parse(self.data, True)
        return outside.children[0]

    def empty(self, element: XmlElement) -> bool:
        """Return whether an element is written as <tag/>."""
        return self.data[:element.opened].endswith(b"/>")

    def space(self, element: XmlElement) -> bytes:
        """Return the line break and indentation before an element, empty if it does not start a line."""
        line = self.data.rfind(b"\n", 0, element.start)
        indent = self.data[line + 1:element.start]
        return self.newline + indent if line >= 0 and not indent.strip() else b""

    def set(self, element: XmlElement, values: Mapping[str, str]) -> Iterator[Edit]:
        """Set attributes to new values; new attributes are added at the end."""
        tag = self.data[element.start:element.opened]
        found = {one[1].decode(): one.span(2) for one in _ATTRIBUTE.finditer(tag)}
        last = max((end for _, end in found.values()), default=1 + len(element.tag))
        for key, value in values.items():
            if key in found:
                yield element.start + found[key][0] + 1, element.start + found[key][1] - 1, value.encode()
        extra = "".join(f' {key}="{value}"' for key, value in values.items() if key not in found)
        if extra:
            yield element.start + last, element.start + last, extra.encode()

    def without(self, element: XmlElement, names: Iterable[str]) -> Iterator[Edit]:
        """Yield the edits that remove attributes, with the white space before them."""
        tag = self.data[element.start:element.opened]
        for one in _ATTRIBUTE.finditer(tag):
            if one[1].decode() in names:
                before = len(tag[:one.start()].rstrip())
                yield element.start + before, element.start + one.end(), b""

    def appended(self, element: XmlElement, made: bytes) -> Edit:
        """Return the edit that adds text as the last child of an element, on its own line if the other children have
        one."""
        outer = self.space(element)
        if self.empty(element):
            return element.opened - 2, element.opened, b">" + made + outer + f"</{element.tag}>".encode()
        last = element.children[-1].end if element.children else element.opened
        return last, last, made

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """Return the bytes after some edits that do not overlap."""
        data = self.data
        for start, end, new in sorted(edits, reverse=True):
            data = data[:start] + new + data[end:]
        return data
