"""HTML representations of results in notebooks: a headline, a table and sentences.

Colours are those of the surrounding page, which suits light and dark themes. All text is escaped, since names of robots
and joints come from files.
"""

from __future__ import annotations

from collections.abc import Sequence

MARKUP = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}  # without the `html` module, which loads in 5 ms
_CODES_IN_HTML = {**MARKUP, ord('"'): "&quot;", ord("'"): "&#x27;"}
_BORDER_STYLE = "1px solid rgba(128, 128, 128, 0.4)"
_BOX_STYLE = (f"border: {_BORDER_STYLE}; border-radius: 6px; padding: 0.5em 0.8em; max-width: 60em; color: inherit; "
              "overflow-x: auto")
_CELL_STYLE = "text-align: {side}; padding: 0.1em 0.7em 0.1em 0; background: none; color: inherit; white-space: nowrap"


def html_text(text: str, *, quotes: bool = True) -> str:
    """Return the text for HTML; quotes: whether quotation marks become codes too, which attributes need."""
    return text.translate(_CODES_IN_HTML if quotes else MARKUP)


def card(title: str, *parts: str) -> str:
    """Return an HTML box with a headline (plain text) and the given parts, which are HTML already."""
    return f'<div style="{_BOX_STYLE}"><div style="font-weight: 600">{html_text(title)}</div>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """Return sentences as an HTML paragraph."""
    return f'<div style="margin: 0.3em 0">{html_text(text)}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """Return a table that scrolls if it is long; words: indices of text columns, the others are numbers."""
    sides = ["left" if k in words else "right" for k in range(len(header))]
    head = _row("th", header, sides)
    body = "".join(_row("td", row, sides) for row in rows)
    style = "border-collapse: collapse; margin: 0.3em 0; color: inherit; font: inherit"
    return (f'<div style="max-height: 26em; overflow: auto"><table style="{style}">'
            f'<thead style="border-bottom: {_BORDER_STYLE}">{head}</thead><tbody>{body}</tbody></table></div>')


def listed(items: Sequence[tuple[str, str]], folded: str = "") -> str:
    """Return sentences as a list, each after a word in bold; folded: title of a collapsed list."""
    if not items:
        return ""
    lines = "".join(f"<li><b>{html_text(word)}</b> {html_text(text)}</li>" for word, text in items)
    whole = f'<ul style="margin: 0.3em 0; padding-left: 1.4em">{lines}</ul>'
    return f"<details><summary>{html_text(folded)}</summary>{whole}</details>" if folded else whole


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    inside = "".join(f'<{tag} style="{_CELL_STYLE.format(side=side)}">{html_text(cell)}</{tag}>'
                     for cell, side in zip(cells, sides, strict=True))
    return f"<tr>{inside}</tr>"
