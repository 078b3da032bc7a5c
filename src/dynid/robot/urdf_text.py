"""Safe parsing of the XML of a URDF or MJCF: no entities, no external references, no unexpanded macros."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError
from xml.parsers.expat import ErrorString

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from dynid.errors import RobotError
from dynid.files import read_small


def parse_urdf(source: str | Path) -> tuple[Element, str, str, str | bytes]:
    """Parse a file that must be a URDF without macros; see `parse_xml`."""
    root, file, stem, data = parse_xml(source, "URDF")
    if root.tag != "robot":
        raise RobotError(f"{file} has <{root.tag}> as its root element; a URDF has <robot>", code="wrong-root-element")
    _refuse_xacro(root, file)
    return root, file, stem, data


def parse_xml(source: str | Path, kind: str) -> tuple[Element, str, str, str | bytes]:
    """Return the root element, the name of the file in messages, a default name for the robot, and the unchanged text.

    kind: name of the format in messages.
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
                         f"it is refused because such files can read or exhaust this machine",
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
    """Raise an error if the file still contains macros."""
    for element in root.iter():
        tag = element.tag if isinstance(element.tag, str) else ""  # comments have none
        macro = "xacro}" in tag or tag.startswith("xacro:")
        left = [text for key, text in element.attrib.items() if "${" in text or ("$(" in text and key != "filename")]
        if macro or left:
            what = f"<xacro:{tag.rpartition('}')[2].removeprefix('xacro:')}>" if macro else f'"{left[0]}"'
            raise RobotError(f"{file} contains unexpanded xacro macros, such as {what}; run xacro on it first (xacro "
                             "robot.urdf.xacro > robot.urdf, or the package xacrodoc) and give the result",
                             code="unexpanded-xacro")
