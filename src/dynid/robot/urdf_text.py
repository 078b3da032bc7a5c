"""XML of URDF and MJCF files: safe parsing without external files, gear ratios, and edits that keep all other bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from xml.etree.ElementTree import Element, ParseError
from xml.parsers import expat
from xml.parsers.expat import ErrorString

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from numpy.typing import ArrayLike

from dynid.errors import RobotError
from dynid.files import read_small

# Attributes of the sizes of shapes in a URDF; a box has one of three numbers.
SHAPE_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"),
               "capsule": ("radius", "length")}
MUJOCO_INFINITY = 1e10  # MuJoCo's largest number, which means no limit
_SIMPLE_TRANSMISSION = "simpletransmission"
_XML_ATTRIBUTE = rb"""[^\s=<>/]+\s*=\s*(?:"[^"]*"|'[^']*')"""
_START_TAG = re.compile(rb"<[^\s/>]+(?:\s+" + _XML_ATTRIBUTE + rb")*\s*/?>")
_ATTRIBUTE = re.compile(rb"""([^\s=<>/]+)\s*=\s*("[^"]*"|'[^']*')""")


def parse_urdf(source: str | Path) -> tuple[Element, str, str, str | bytes]:
    """Parse a URDF file or text without macros; the result is that of `parse_xml`."""
    root, file, stem, data = parse_xml(source, "URDF")
    if root.tag != "robot":
        raise RobotError(f"{file} has <{root.tag}> as its root element; a URDF has <robot>", code="wrong-root-element")
    _refuse_xacro(root, file)
    return root, file, stem, data


def parse_xml(source: str | Path, kind: str) -> tuple[Element, str, str, str | bytes]:
    """Parse an XML file or text; return its root element, its name in messages, a default robot name, and its text.

    kind: name of the file format in messages.
    """
    data: str | bytes
    if isinstance(source, str) and source.lstrip().startswith("<"):
        data, file, stem = source, f"{kind} text", "robot"
    else:
        path = Path(source)
        file, stem = f"{kind} '{path.name}'", path.stem
        try:
            data = read_small(path)
        except FileNotFoundError:
            raise RobotError(f"{kind} file '{path}' does not exist", code="no-such-file") from None
        except OSError as problem:
            raise RobotError(f"{kind} file '{path}' cannot be read: {problem.strerror}",
                             code="unreadable-file") from None
    try:
        root: Element = fromstring(data.lstrip() if isinstance(data, str) else data, forbid_dtd=True,
                                   forbid_entities=True, forbid_external=True)
    except DefusedXmlException:
        raise RobotError(f"{file} has a DTD, entities or external references, which a robot description does not need; "
                         "such a file is refused, because it could read other files or fill the memory of this machine",
                         code="xml-with-entities") from None
    except ParseError as problem:
        line, column = problem.position
        if "unbound prefix" in str(problem) and b"<xacro:" in (data.encode() if isinstance(data, str) else data):
            raise RobotError(f"{file} contains unexpanded xacro macros; run xacro on it first and give the "
                             "result", code="unexpanded-xacro") from None
        raise RobotError(f"{file} is not well-formed XML: {ErrorString(problem.code)} at line {line}, column "
                         f"{column + 1}", code="bad-xml") from None
    except (LookupError, ValueError) as problem:
        raise RobotError(f"{file} is not readable as XML: {problem}") from None
    return root, file, stem, data


def _refuse_xacro(root: Element, file: str) -> None:
    """Raise an error if a URDF still contains xacro macros."""
    for element in root.iter():
        tag = element.tag if isinstance(element.tag, str) else ""  # comments have none
        macro = "xacro}" in tag or tag.startswith("xacro:")
        left = [text for key, text in element.attrib.items() if "${" in text or ("$(" in text and key != "filename")]
        if macro or left:
            what = f"<xacro:{tag.rpartition('}')[2].removeprefix('xacro:')}>" if macro else f'"{left[0]}"'
            raise RobotError(f"{file} contains unexpanded xacro macros, such as {what}; run xacro on it first (xacro "
                             "robot.urdf.xacro > robot.urdf, or the package xacrodoc) and give the result",
                             code="unexpanded-xacro")


def reductions(root: Element, file: str) -> dict[str, float]:
    """Return motor turns per joint turn, by joint name, of every simple transmission in the file.

    ROS 1 writes <mechanicalReduction> in <actuator> or <joint>, ros2_control <mechanical_reduction> in <joint>. Joints
    of differentials and four-bar linkages have no ratio of their own and are omitted.
    """
    ratios: dict[str, float] = {}
    for transmission in root.iter("transmission"):
        kind = transmission.findtext("type") or transmission.findtext("plugin") or ""
        joints = transmission.findall("joint")
        if not kind.strip().lower().endswith(_SIMPLE_TRANSMISSION) or len(joints) != 1 or not joints[0].get("name"):
            continue
        name = str(joints[0].get("name"))
        text = next((item.text for place in (joints[0], *transmission.findall("actuator"))
                     for item in place if item.tag in ("mechanicalReduction", "mechanical_reduction")), None)
        if text is None:
            continue
        try:
            ratio = float(text)
        except ValueError:
            ratio = math.nan
        if not math.isfinite(ratio) or ratio == 0.0:
            raise RobotError(f"{file}: the mechanical reduction of joint '{name}' must be a number other than zero, "
                             f"got \"{text.strip()[:80]}\"")
        ratios[name] = ratio
    return ratios


Edit = tuple[int, int, bytes]  # bytes from, to, and their replacement


@dataclass(eq=False)
class XmlElement:
    """Byte offsets of an element: its start tag from `start` to `opened`, its end tag from `closed` to `end`."""

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
    """The bytes of an XML file (UTF-8), and methods that return edits of the file.

    before: text in front of the first element or declaration, white space or a byte order mark.
    """

    data: bytes
    newline: bytes
    before: str

    @classmethod
    def from_text(cls, text: str) -> Self:
        at = max(text.find("<"), 0)
        data = text[at:].encode()
        return cls(data, b"\r\n" if b"\r\n" in data else b"\n", text[:at])

    def root(self) -> XmlElement:
        """Return the root element with all elements inside it, with tags as in ElementTree."""
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
            element = path.pop()
            if self.empty(element):
                element.closed = element.end = element.opened
            else:
                element.closed = parser.CurrentByteIndex
                element.end = self.data.index(b">", element.closed) + 1

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
        """Yield the edits that set attributes of an element; new attributes are added at the end."""
        tag = self.data[element.start:element.opened]
        spans = {match[1].decode(): match.span(2) for match in _ATTRIBUTE.finditer(tag)}
        last = max((end for _, end in spans.values()), default=1 + len(element.tag))
        for key, value in values.items():
            if key in spans:
                yield element.start + spans[key][0] + 1, element.start + spans[key][1] - 1, value.encode()
        extra = "".join(f' {key}="{value}"' for key, value in values.items() if key not in spans)
        if extra:
            yield element.start + last, element.start + last, extra.encode()

    def without(self, element: XmlElement, names: Iterable[str]) -> Iterator[Edit]:
        """Yield the edits that remove attributes of an element, with the white space before them."""
        tag = self.data[element.start:element.opened]
        for match in _ATTRIBUTE.finditer(tag):
            if match[1].decode() in names:
                before = len(tag[:match.start()].rstrip())
                yield element.start + before, element.start + match.end(), b""

    def prepended(self, element: XmlElement, made: bytes) -> Edit:
        """Return the edit that adds text as the first child of an element."""
        if self.empty(element):
            return (element.opened - 2, element.opened,
                    b">" + made + self.space(element) + f"</{element.tag}>".encode())
        return element.opened, element.opened, made

    def appended(self, element: XmlElement, made: bytes) -> Edit:
        """Return the edit that adds text as the last child of an element."""
        if not element.children:
            return self.prepended(element, made)
        last = element.children[-1].end
        return last, last, made

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text of the file after some edits that do not overlap."""
        data = self.data
        for start, end, new in sorted(edits, reverse=True):
            data = data[:start] + new + data[end:]
        return self.before + data.decode()


def digits(*numbers: ArrayLike) -> str:
    """Return numbers as text with all their digits, zeros without a sign."""
    return " ".join(repr(float(x) + 0.0) for x in np.hstack(numbers))
