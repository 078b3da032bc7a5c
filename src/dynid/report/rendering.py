"""Rendering of a page as one HTML file that opens without network."""

from __future__ import annotations

import gzip
import sys
from datetime import date
from functools import lru_cache
from importlib.util import cache_from_source
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template, TemplateError, TemplateNotFound
from jinja2.bccache import Bucket, BytecodeCache
from markupsafe import Markup

from dynid.errors import DynidError
from dynid.files import write_whole
from dynid.report import words
from dynid.report.figure import CONFIG, LAYOUT, script_json
from dynid.report.section import Data, Page, Section
from dynid.version import __version__

_COMPRESSED_SCRIPT = Path(__file__).with_name("static") / "plotly.min.js.gz"


def render(page: Page[Data], data: Data) -> str:
    """Return the page as the text of one HTML file without external references."""
    shown = []
    for section in page.sections:
        values = section.gather(data)
        if values is not None:
            body = _template(page, section).render(data=data, **values)
            shown.append({"name": section.name, "title": section.title, "body": Markup(body)})
    has_figures = any('class="figure"' in section["body"] for section in shown)
    return _environment().get_template("page.html").render(
        data=data, subtitle=page.subtitle(data), sections=shown, layout=script_json(LAYOUT), config=script_json(CONFIG),
        plotly=Markup(plotly_script() if has_figures else ""), version=__version__, today=date.today().isoformat())


def write_page(page: Page[Data], data: Data, path: str | Path) -> Path:
    """Write a report page to an HTML file atomically."""
    path = Path(path)
    text = render(page, data)
    with write_whole(path) as file:
        file.write(text)
    return path


def rendered_section(section: Section[Data], data: Data) -> Section[Data]:
    """Return a plugin's section with its text rendered; if it fails, the section shows the reason."""
    try:
        values = section.gather(data)
        body = None if values is None else _environment().from_string(section.template).render(data=data, **values)
        return Section(section.name, section.title, lambda _: None if body is None else {"body": Markup(body)},
                       "{{ body }}")
    except Exception as problem:  # the code of another package may raise any exception
        reason = f"This section of a plugin failed: {type(problem).__name__}: {problem}"
        return Section(section.name, section.title, lambda _: {"reason": reason}, "<p>{{ reason }}</p>")


def _template(page: Page[Data], section: Section[Data]) -> Template:
    try:
        if section.template:
            return _environment().from_string(section.template)
        return _environment().get_template(f"{page.name}/{section.name}.html")
    except TemplateNotFound:
        raise DynidError(f"section '{section.name}' has no template; give its text as Section(template=...)") from None
    except TemplateError as error:
        raise DynidError(f"the template of section '{section.name}' is not a valid Jinja template: {error}") from None


@lru_cache(maxsize=1)
def _environment() -> Environment:
    loader = ChoiceLoader([PackageLoader("dynid.report"), PackageLoader("dynid.report", "pages")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True, bytecode_cache=CompiledTemplates())
    environment.filters.update(number=words.number, percent=words.percent, whole=words.whole, seconds=words.seconds,
                               file_name=words.file_name, typeset=words.typeset)
    return environment


@lru_cache(maxsize=1)
def plotly_script() -> str:
    """Return plotly's JavaScript with the trace types that dynid uses, see report/static/README.md."""
    return gzip.decompress(_COMPRESSED_SCRIPT.read_bytes()).decode()


class CompiledTemplates(BytecodeCache):
    """Cache with one file per template. A changed template is compiled again, because its checksum differs. Without
    write access to the folder nothing is cached."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            with _path(bucket).open("rb") as file:
                bucket.load_bytecode(file)
        except OSError:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        try:
            with write_whole(_path(bucket), "wb") as file:
                bucket.write_bytecode(file)
        except (DynidError, OSError):
            return


def _path(bucket: Bucket) -> Path:
    return Path(cache_from_source(__file__)).with_name(f"template-{bucket.key}.{sys.implementation.cache_tag}")
