"""An MJCF with the files that it includes in place of their <include> elements."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

from dynid.errors import RobotError
from dynid.robot.urdf_text import parse_xml

_ROOTS = ("mujoco", "mujocoinclude")
MAX_INCLUDED_FILES = 200  # files
MAX_XML_DEPTH = 200  # elements inside each other, as `mjcf_text` reads them


def with_included(root: Element, file: str, folder: Path) -> Element:
    """Return the element tree with every <include> replaced by the file that it names. `folder` is the folder of the
    model."""
    _expand(root, file, folder, folder, set(), 1)
    return root


def _expand(element: Element, file: str, folder: Path, top: Path, seen: set[Path], depth: int) -> None:
    if depth > MAX_XML_DEPTH:
        return  # `MjcfText` says so
    for place, child in reversed(list(enumerate(element))):
        if child.tag != "include":
            _expand(child, file, folder, top, seen, depth + 1)
            continue
        inner, name, home = _included(child, file, folder, top, seen)
        _expand(inner, name, home, top, seen, depth)
        element[place:place + 1] = list(inner)


def _included(element: Element, file: str, folder: Path, top: Path, seen: set[Path]) -> tuple[Element, str, Path]:
    """Return the root element of an included file, its name in messages, and its folder."""
    name = element.get("file", "")
    choices = [base / name for base in (folder, top)]
    try:
        path = next((one for one in choices if one.is_file()), choices[0]).resolve()
    except (OSError, ValueError):
        raise RobotError(f"{file}: <include> names '{name[:60]}', which is not a valid file name") from None
    if not name or not path.is_relative_to(top.resolve()):
        raise RobotError(f"{file}: <include> names '{name}', which is not inside the folder of the model; copy it "
                         "there")
    if path in seen or len(seen) >= MAX_INCLUDED_FILES:
        raise RobotError(f"{file}: <include> names '{name}', which is included already")
    seen.add(path)
    root, called, _, _ = parse_xml(path, "MJCF")
    if root.tag not in _ROOTS:
        raise RobotError(f"{called} has <{root.tag}> as its root element; an included file has <mujocoinclude> or "
                         "<mujoco>")
    return root, called, path.parent
