"""From data to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dynid.files import write_whole
from dynid.report import words
from dynid.report.compiled import CompiledTemplates
from dynid.report.data import ReportData
from dynid.report.figure import CONFIG, LAYOUT, script_json
from dynid.report.sections import SECTIONS
from dynid.version import __version__


def render(data: ReportData) -> str:
    """The whole report as the text of one HTML file; nothing in it asks for anything outside."""
    return page("page.html", data, ((section.name, section.title, section.gather) for section in SECTIONS))


def page(template: str, data: Any,
         sections: Iterable[tuple[str, str, Callable[[Any], Mapping[str, Any] | None]]]) -> str:
    """A page of sections: the name of each, also of its template, its title, and what gathers its content from data."""
    shown = []
    for name, title, gather in sections:
        found = gather(data)
        if found is not None:
            body = _environment().get_template(f"{name}.html").render(data=data, **found)
            shown.append({"name": name, "title": title, "body": Markup(body)})
    return _environment().get_template(template).render(
        data=data, sections=shown, plotly=Markup(_plotly()), layout=script_json(LAYOUT), config=script_json(CONFIG),
        version=__version__, today=date.today().isoformat())


def write_report(data: ReportData, path: str | Path) -> Path:
    """Write the report to a file, whole or not at all."""
    path = Path(path)
    text = render(data)
    with write_whole(path) as file:
        file.write(text)
    return path


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(loader=PackageLoader("dynid.report"), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, bytecode_cache=CompiledTemplates())
    environment.filters.update(number=words.number, percent=words.percent, whole=words.whole, seconds=words.seconds,
                               file_name=words.file_name, typeset=words.typeset)
    return environment


@lru_cache(maxsize=1)
def _plotly() -> str:
    """Plotly's JavaScript; the package ships one bundle, the whole of it."""
    from plotly.offline import get_plotlyjs
    return str(get_plotlyjs())
