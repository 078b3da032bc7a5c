"""Draw docstrings, messages and sentences of the documentation at random, to judge each of them without its context.

    python tests/readability.py --seed 7 --count 40

The reader is a control engineer who has not seen dynid. A text passes if its meaning is clear from the text alone.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dynid"

# A full stop behind these does not end a sentence: initials of authors, equations, sections, figures.
ABBREVIATION = re.compile(r"(?:\b[A-Z]|\b(?:eq|(?<!\d )s|app|fig|vol|p|pp|no|al|cf))\.$")


def docstrings() -> Iterator[tuple[str, str]]:
    """Every docstring in the source, private ones too, as (place and name, text)."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                if text:
                    yield f"{_place(path, getattr(node, 'lineno', 1))} {getattr(node, 'name', 'module')}", text


def messages() -> Iterator[tuple[str, str]]:
    """Every text of five words or more of an exception (reason and advice together), a finding, a note or a help."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else node
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if isinstance(node, ast.Raise):
                parts = [_text(one) for one in call.args]
            elif name in ("sentence", "suspect", "Note"):
                parts = sorted((_text(one) for one in call.args), key=len)[-1:]
            else:
                parts = [_text(one.value) for one in call.keywords if one.arg == "help"]
            text = "; ".join(part.strip() for part in parts if part)
            if len(re.findall(r"[A-Za-z]{2,}", text)) > 4:
                yield _place(path, node.lineno), text


def sentences() -> Iterator[tuple[str, str]]:
    """Every sentence of the pages of the documentation, without tables, headings and code."""
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]):
        for line, text in _paragraphs(path):
            parts: list[str] = []
            for part in re.split(r"(?<=[.!?:])\s+(?=[A-Z`\[*(]|dynid )", text):
                if parts and (ABBREVIATION.search(parts[-1]) or parts[-1].endswith(":")):
                    parts[-1] += f" {part}"
                else:
                    parts.append(part)
            yield from ((_place(path, line), part) for part in parts if len(part.split()) > 4)


def _paragraphs(path: Path) -> Iterator[tuple[int, str]]:
    """Paragraphs and list items of a page with their first lines."""
    words: list[str] = []
    start, fenced = 0, False
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        text = line.strip()
        fence = text.startswith("```") or text.count("$$") == 1  # of code, or of an equation over several lines
        ends = fence or not text or text.startswith("$$") or text.startswith(("#", "|", ":::", "![", ">", "<"))
        item = re.match(r"([-*]|\d+\.) +", text)
        if (ends or item) and words:
            yield start, " ".join(words)
            words = []
        fenced ^= fence
        if not (ends or fenced or (line.startswith("    ") and not words)):
            start = start if words else number
            words.append(text[item.end():] if item else text)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
                   for part in getattr(node, "values", ()) if isinstance(part, ast.Constant | ast.FormattedValue))


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


KINDS = {"docstrings": docstrings, "messages": messages, "sentences": sentences}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--kind", choices=KINDS, action="append", help="draw only this kind of text")
    given = parser.parse_args()
    for name in given.kind or KINDS:
        texts = list(KINDS[name]())
        print(f"\n## {given.count} of {len(texts)} {name}, seed {given.seed}\n")
        drawn = random.Random(f"{name} {given.seed}").sample(texts, min(given.count, len(texts)))
        print(*(f"- [{place}] {text}" for place, text in drawn), sep="\n")


if __name__ == "__main__":
    main()
