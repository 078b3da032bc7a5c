"""Equations as MathML, which browsers draw by themselves: no script, no fonts, no network."""

from __future__ import annotations

from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


def equation(node: nodes.Node, display: str) -> str:
    """An equation as a MathML element, with its LaTeX as the text that is read aloud or copied."""
    latex = node.astext()
    try:
        made: str = convert(latex, display=display)
    except Exception:  # whatever a converter of text may raise
        LOGGER.warning("this equation cannot be read: %s", latex, location=node)
        return f"<code>{escape(latex)}</code>"
    return made.replace("<math ", f'<math alttext="{escape(latex)}" ', 1)


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{equation(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math equation"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({escape(str(node["number"]))})</span>')
    self.body.append(equation(node, "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
