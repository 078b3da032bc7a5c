"""The directive `{api}`: signature, docstring, fields and methods of public names, which are its lines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from docutils import nodes
from pydantic import BaseModel
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SECTION = re.compile(r"(Args|Attributes|Returns|Raises|Yields):\n")


def signature_of(thing: Callable[..., Any]) -> str:
    """Arguments with their types and defaults, as a caller writes them; those of settings stand in the text."""
    if inspect.isclass(thing) and (issubclass(thing, BaseModel) or issubclass(thing, Exception)):
        return "(**settings)" if issubclass(thing, BaseModel) else "(message)"
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    given = [one for name, one in found.parameters.items() if name not in ("self", "cls")]
    back = "" if inspect.isclass(thing) or found.return_annotation in ("None", found.empty) else (
        f" -> {found.return_annotation}")
    return f"({', '.join(_arguments(given))}){back}"


def _arguments(given: Sequence[inspect.Parameter]) -> list[str]:
    """As a signature has them: name, type, default; defaults that are made anew for each are three points."""
    found, keyword = [], False
    for one in given:
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        if one.kind == one.KEYWORD_ONLY and not keyword:
            found.append("*")
        keyword = keyword or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        default = "" if one.default is one.empty else " = " + re.sub(r"<.*>", "...", repr(one.default))
        found.append(f"{stars}{one.name}{kind}{default}")
    return found


def inline(text: str) -> list[nodes.Node]:
    """Words, with `code` between backticks, single or double."""
    parts = re.split(r"``([^`]+)``|`([^`]+)`", " ".join(text.split()))
    found: list[nodes.Node] = []
    for k, part in enumerate(parts):
        if part:
            found.append(nodes.Text(part) if k % 3 == 0 else nodes.literal(part, part))
    return found


def fields_of(text: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """A paragraph cut at "name: " or "one, two: " of the given names; what comes before them has no name."""
    known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    if not known:
        return [("", text)]
    one = rf"(?:{known})(?: \([^()]*\))?"
    parts = re.split(rf"(?:(?<=^)|(?<=[.;)] )|(?<=[.;)]\n))({one}(?:,\s+{one})*):\s+", text)
    return [item for item in [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)] if any(item)]


def blocks(text: str) -> list[str]:
    """Paragraphs of a docstring; an indented one, or one of an example, is kept as it stands."""
    return [block for block in re.split(r"\n[ \t]*\n", text) if block.strip()]


def described(text: str, names: Iterable[str]) -> list[nodes.Node]:
    """A docstring as nodes: paragraphs, code, and a list of the names that it explains."""
    found: list[nodes.Node] = []
    for block in blocks(text):
        if block.lstrip().startswith(">>>") or block.startswith("    "):
            code = inspect.cleandoc(block)
            found.append(nodes.literal_block(code, code, language="pycon" if ">>>" in code else "none"))
            continue
        heading = SECTION.match(block)
        if heading is not None:
            found.append(nodes.paragraph("", "", nodes.strong(heading[1], heading[1])))
        for name, words in items_of(block[heading.end():]) if heading is not None else fields_of(block, names):
            if not name:
                found.append(nodes.paragraph("", "", *inline(words)))
                continue
            if not found or not isinstance(found[-1], nodes.definition_list):
                found.append(nodes.definition_list(classes=["fields"]))
            term = nodes.term("", "", nodes.literal(name, name))
            body = nodes.definition("", nodes.paragraph("", "", *inline(words)))
            found[-1].append(nodes.definition_list_item("", term, body))
    return found


def items_of(text: str) -> list[tuple[str, str]]:
    """Items of a section such as "Args:", which begin with "name: " and continue on lines that are indented deeper; a
    text without such a beginning has no name."""
    lines = inspect.cleandoc(text).splitlines()
    found: list[tuple[str, str]] = []
    for line in lines:
        item = re.match(r"([A-Za-z_*][\w.*]*(?:, [A-Za-z_*][\w.*]*)*): +(.*)", line)
        if item is not None:
            found.append((item[1], item[2]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        else:
            found.append(("", line))
    return found


def methods_of(thing: type) -> list[tuple[str, Any, bool]]:
    """Name, function and whether it is read like a value, of what a class defines itself and explains."""
    found = []
    for name, value in list(vars(thing).items()):  # reading a value may add others
        function = getattr(value, "__func__", getattr(value, "fget", None) or getattr(value, "func", None) or value)
        own = inspect.isfunction(function) and function.__module__.startswith("dynid")  # not those that pydantic adds
        if not name.startswith("_") and own and function.__doc__:
            found.append((name, function, not (inspect.isfunction(value) or hasattr(value, "__func__"))))
    return found


class Api(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        import dynid

        found: list[nodes.Node] = []
        for name in " ".join(self.content).split():
            found += self.entry(name, attrgetter(name)(dynid))
        return found

    def entry(self, name: str, thing: Any) -> list[nodes.Node]:
        """A name and, of a class, its methods inside: signatures first, then each one's text."""
        kind = "class" if inspect.isclass(thing) else "function"
        inside = methods_of(thing) if kind == "class" else []
        lines = [f"````{{py:{kind}}} dynid.{name}{signature_of(thing)}"]
        for method, function, value in inside:
            kind, call = ("attribute", "") if value else ("method", signature_of(function))
            lines += [f"```{{py:{kind}}} {method}{call}", "```"]
        made = self.parse_text_to_nodes("\n".join([*lines, "````"]))
        bodies = [node for one in made for node in one.findall(addnodes.desc_content)]
        for body, (_, function, _) in zip(bodies[1:], inside, strict=True):
            body += described(inspect.cleandoc(function.__doc__), self.names(function))
        bodies[0].children[:0] = described(inspect.getdoc(thing) or "", self.names(thing))
        for one in bodies[0].children:
            one.parent = bodies[0]
        return made

    @staticmethod
    def names(thing: Any) -> list[str]:
        """Of arguments and fields, which its docstring may explain."""
        own = list(getattr(thing, "model_fields", {})) if inspect.isclass(thing) else []
        try:
            return own or [one for one in inspect.signature(thing).parameters if one != "self"]
        except (TypeError, ValueError):
            return own


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
