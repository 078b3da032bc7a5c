"""Build the documentation: docs/*.md and the docstrings of the public names, to site/*.html.

Plain HTML without scripts or network. A link to a page or heading that is not there stops the build.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from jinja2 import Environment
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE = Path(__file__).resolve().parent
SITE = HERE.parent / "site"
# In reading order: tutorial first, then concepts, then reference. The last two are made from the code.
PAGES = ["index", "tutorial", "concepts", "robots", "terms", "flexible", "logs", "methods", "kernels", "online",
         "payload", "contact", "fleet", "consistency", "extraction", "results", "excitation", "simulation", "code",
         "reproductions", "commands", "reference"]


def command_page() -> str:
    """The help of every command, as it prints."""
    from typer.testing import CliRunner

    from dynid.cli.main import COMMANDS, app

    parts = ["# Commands\n\nExit codes: 0 done, 1 the data or the model do not allow it, 2 the call was wrong. "
             "With `--json` a command prints one JSON object on stdout and nothing else.\n"]
    for name in COMMANDS:
        shown = CliRunner().invoke(app, [name, "--help"], prog_name="dynid", env={"TERM": "dumb", "COLUMNS": "100"})
        parts.append(f"## dynid {name}\n\n```text\n{shown.stdout.strip()}\n```\n")
    return "\n".join(parts)


def reference_page() -> str:
    """Signature and docstring of every public name."""
    import dynid

    parts = ["# Reference\n\nThese names are `dynid.NAME`. Arrays are `(samples, joints)`, units SI.\n"]
    for name in sorted(dynid.__all__, key=str.lower):
        thing = getattr(dynid, name)
        if not callable(thing):
            continue
        parts.append(f"## {name}\n\n```python\n{name}{_signature(thing)}\n```\n")
        parts.append(f"```text\n{inspect.getdoc(thing)}\n```\n")
        if inspect.isclass(thing):
            for method, function in vars(thing).items():
                function = getattr(function, "__func__", getattr(function, "fget", None) or function)
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                    about = inspect.cleandoc(function.__doc__).replace("\n", "\n  ")
                    parts.append(f"- `{method}{_signature(function)}`: {about}\n")
    return "\n".join(parts)


def _signature(thing: Callable[..., object]) -> str:
    try:
        return str(inspect.signature(thing)).replace("'", "")
    except (TypeError, ValueError):
        return ""


def slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def render(markdown: str) -> tuple[str, str, set[str]]:
    """HTML, title, and the anchors of the headings."""
    reader = MarkdownIt("commonmark", {"highlight": colour}).enable("table")
    tokens = reader.parse(markdown)
    title, anchors = "", set()
    for here, following in pairwise(tokens):
        if here.type == "heading_open":
            here.attrSet("id", slug(following.content))
            anchors.add(slug(following.content))
            title = title or following.content
        for link in (t for t in following.children or [] if t.type == "link_open"):
            _to_html(link)
    return reader.renderer.render(tokens, reader.options, {}), title, anchors


def _to_html(link: Token) -> None:
    target = str(link.attrGet("href"))
    if "://" not in target:
        link.attrSet("href", re.sub(r"\.md(?=#|$)", ".html", target))


def colour(code: str, language: str, _: object) -> str:
    try:
        return highlight(code, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    except ClassNotFound:
        return ""


def broken_links(pages: dict[str, str], anchors: dict[str, set[str]]) -> list[str]:
    """One sentence for each link that leads nowhere."""
    wrong = []
    for name, html in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', html):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            page = path.removesuffix(".html") if path else name
            if path and not path.endswith(".html"):
                if not (HERE / path).exists():
                    wrong.append(f"{name}: there is no file '{path}'")
            elif page not in pages:
                wrong.append(f"{name}: there is no page '{target}'")
            elif anchor and anchor not in anchors[page]:
                wrong.append(f"{name}: there is no heading '{target}'")
    return wrong


def main() -> None:
    """Write site/."""
    made = {"commands": command_page, "reference": reference_page}
    shown = {name: render(made[name]() if name in made else (HERE / f"{name}.md").read_text(encoding="utf-8"))
             for name in PAGES}
    wrong = broken_links({name: html for name, (html, _, _) in shown.items()},
                         {name: anchors for name, (_, _, anchors) in shown.items()})
    if wrong:
        sys.exit("\n".join(wrong))
    template = Environment(autoescape=True).from_string((HERE / "page.html").read_text(encoding="utf-8"))
    style = (HERE / "style.css").read_text(encoding="utf-8") + HtmlFormatter().get_style_defs("pre")
    titles = {name: title for name, (_, title, _) in shown.items()}
    shutil.rmtree(SITE, ignore_errors=True)
    SITE.mkdir()
    for name, (html, title, _) in shown.items():
        page = template.render(body=html, title=title, name=name, titles=titles, style=style)
        (SITE / f"{name}.html").write_text(page, encoding="utf-8")
    if (HERE / "images").exists():
        shutil.copytree(HERE / "images", SITE / "images")
    print(f"{len(shown)} pages in site/; open site/index.html")


if __name__ == "__main__":
    main()
