"""Escaping of foreign text in generated files, with one function per language.

Names of robots, joints, links, frames and files come from untrusted files. Every generator passes them through the
function of its language, so that they cannot end the comment, the string or the element that contains them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dynid.html_tables import MARKUP

# Characters without a UTF-8 form, in Python names of files whose names are not UTF-8.
_SURROGATES = "[\ud800-\udfff]"
_NOT_IN_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # compiled at first use, which takes 5 ms
_REPLACEMENT = "\ufffd"
_CODES_IN_XML = {**MARKUP, **{ord(c): f"&#{ord(c)};" for c in '\t\n\r"'}}  # an attribute would lose these or end there
_STRING_ESCAPES = {'"': '\\"', "\\": "\\\\"}


def comment(text: str) -> str:
    """Return the text for a one-line comment; line breaks, control and invisible characters become codes."""
    return _escaped(text, {})


def terminal_text(text: str) -> str:
    """Return the text without control characters for terminals, except line breaks and narrow spaces."""
    return _escaped(text, {c: c for c in "\n\u00a0\u202f"})


def python_text(text: str) -> str:
    """Return the text escaped for the inside of a Python string in one or three double quotes."""
    return _escaped(text, _STRING_ESCAPES)


def c_comment(text: str) -> str:
    """Return the text for the inside of a C comment, on one line.

    Backslashes and the trigraph `??/`, which also means a backslash, are escaped, because they would join lines and
    hide the end of a comment.
    """
    text = _escaped(text, {"\\": "\\x5c"}).replace("??", "?\\x3f")
    return re.sub(r"(?<=\*)/|/(?=\*)", r"\\x2f", text)


def c_string(text: str) -> str:
    """Return a C string literal with the text in UTF-8."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
             for byte in _encodable(text).encode())
    return f'"{"".join(plain)}"'


def julia_text(text: str) -> str:
    """Return the text for the inside of a Julia string in double quotes."""
    return _escaped(_encodable(text), {**_STRING_ESCAPES, "$": "\\$"}, shortest="u")


def rust_string(text: str) -> str:
    """Return the text as a Rust string literal."""
    plain = (c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\u{{{ord(c):x}}}"
             for c in _encodable(text))
    return f'"{"".join(plain)}"'


def toml_string(text: str) -> str:
    """Return the text as a TOML basic string."""
    return f'"{_escaped(_encodable(text), _STRING_ESCAPES, shortest="u")}"'


def yaml_string(text: str) -> str:
    """Return a quoted YAML scalar, in double quotes if the text needs codes."""
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return f'"{_escaped(_encodable(text), _STRING_ESCAPES)}"'


def csv_line(cells: Iterable[str]) -> str:
    """Return a line of a CSV file; unlike the csv module, a cell with a carriage return is quoted."""
    return ",".join('"' + one.replace('"', '""') + '"' if set(one) & set('",\r\n') else one for one in cells) + "\n"


def xml_attribute(text: str) -> str:
    """Return the text as a quoted XML attribute; a character that XML does not allow becomes U+FFFD."""
    known = text if text.isascii() and text.isprintable() else re.sub(_NOT_IN_XML, _REPLACEMENT, text)
    return f'"{known.translate(_CODES_IN_XML)}"'


def xml_text(text: str) -> str:
    """Return the text for the inside of an XML element."""
    return xml_attribute(text)[1:-1]


def _encodable(text: str) -> str:
    return text if text.isprintable() else re.sub(_SURROGATES, _REPLACEMENT, text)


def _escaped(text: str, special: Mapping[str, str], shortest: str = "x") -> str:
    """Return the text with special characters replaced, and others that are not printable as hexadecimal codes.

    shortest: the shortest form, of two ("x"), four ("u") or eight digits.
    """
    return "".join(special[c] if c in special else c if c.isprintable() else _code(ord(c), shortest) for c in text)


def _code(number: int, shortest: str) -> str:
    if number < 0x100 and shortest == "x":
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
