"""Texts for users are in standard terms: no private words in messages, help, reports, studio and documentation."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from documentation import DOCS, ROOT
from readability import sentences
from source_nodes import source_nodes
from stable_names import stable_names

import dynid
from dynid import controllers, literature, terms, trajectories
from dynid.cli.main import COMMANDS
from dynid.cli.methods import RECOMMENDED
from dynid.estimate import methods
from dynid.model import FlexibleModel, Model, RigidBodies
from dynid.model.parameters import SYMBOLS
from dynid.model.registry import KINDS
from dynid.robot import Robot

SOURCE = ROOT / "src" / "dynid"

# A private word as a pattern, and the standard term to write.
PRIVATE = {
    r"can(not)? exist": "physically consistent",
    r"(?<![Ss]tandard )\bdeviations?\b(?![\[|])": "standard deviation, or standard error of a parameter",
    r"hardly[ -]known": "poorly determined",
    r"(told|tell|tells) (\w+ ){0,3}apart": "distinguished",
    r"blocks? (of time )?(that (was|were) )?left out|left-out blocks?": "cross-validation",
    r"\b(is|are|be) met to\b|\bmissed by\b": "the error is",
    r"\bpull(s|ed)? (\w+ )?to(ward)?\b|\bleans? on\b": "regularised toward",
    r"\bstands? (in|for|at|twice|under|beside|elsewhere|there)\b": "is, is listed",
    r"\bthe folds?\b|\bfolded\b": "the compressed regression",
    r"joints? that follows?\b": "dependent joint",
    r"\bbent\b": "deflected",
    r"\bby way\b|\bby together\b": "method, jointly",
    r"friction would push": "friction would add energy",
    r"\bcoloured\b": "autocorrelated",
    r"\bsuspicious\b": "warning",
    r"(file|log|mapping)s? (says?|tells?)\b": "states, specifies",
    r"what a robot's file": "the nominal model",
    r"\b(a|an|one) (row|line|box|pane|file|number|value|column|entry|set) an? (?!time)\w+\b": "one row per sample",
    r"\bone a (joint|robot|core|axis)\b": "one per joint",
    r"\bwhoever\b": "any user, any process",
    r"\bwhat is left\b": "the residual, the remainder",
    r"\b(is|are|was|were) told\b|\bnot told\b|\buntold\b": "given, specified",
    r"\bjudged\b": "compared, tested",
    r"\bhangs? on\b": "is attached to, depends on",
    r"\bhangs? together\b": "is correlated",
    r"\bstands? behind\b": "follows, comes after",
    r"\bbelow zero\b": "negative",
    r"\b(turning|sliding) joints?\b": "revolute, prismatic joint",
    r"\bsay --\w+": "add the option",
}

# Texts in which a pattern is right: the rest of the sentence gives the word its ordinary meaning.
RIGHT = (
    "standard deviation", "standard error",
)


def visible(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Texts of a Python module with their lines: string literals of two words or more that are no docstrings."""
    skip = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    skip.update(id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
                if part is not node)
    for node in nodes:
        if isinstance(node, ast.JoinedStr) and id(node) not in skip:
            text = "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            text = node.value
        else:
            continue
        if len(text.split()) > 1:
            yield node.lineno, text


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a Markdown page outside its code."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def page(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a template or of the studio's page, without tags, placeholders and comments."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.lstrip().startswith(("//", "*", "/*", "{#")):
            texts = re.sub(r"<[^>]*>|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", " ", line) if path.suffix == ".html" else \
                " ".join(re.findall(r'"([^"]* [^"]*)"|`([^`]* [^`]*)`', line) and
                         [a or b for a, b in re.findall(r'"([^"]* [^"]*)"|`([^`]* [^`]*)`', line)])
            yield number, re.sub(r"\$\{[^}]*\}", " ", texts)


def found(texts: Iterable[tuple[int, str]], path: Path) -> list[str]:
    right = re.compile("|".join(rf"\b{re.escape(words)}s?\b" for words in RIGHT))
    plain = [(line, text, right.sub("", text)) for line, text in texts]
    whole = "\n\n".join(one for _, _, one in plain)  # most patterns are nowhere in a file
    near = {pattern: better for pattern, better in PRIVATE.items() if re.search(pattern, whole)}
    return [f"{path.relative_to(ROOT)}:{line}: write '{better}' in {text[:100]!r}"
            for line, text, one in plain for pattern, better in near.items() if re.search(pattern, one)]


def test_messages_and_help_have_no_private_words():
    assert [one for module in parsed() for one in found(module.messages, module.path)] == []


def docstrings_in(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings of every module, class and function, private ones too, without code, examples and argument names."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").split(">>>")[0]
            yield getattr(node, "lineno", 1), re.sub(r"``?[^`]*``?|\"[^\"]*\"|\b[\w, ]+(\([^)]*\))?:(?= )", "", text)


def arguments_in(nodes: list[ast.AST]) -> Iterator[tuple[int, str, set[str]]]:
    """Functions with their lines, their names and those of their arguments."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield node.lineno, node.name, {one.arg for one in given}


class Texts(NamedTuple):
    """Texts of a module with their lines, and the arguments of its functions."""

    path: Path
    messages: list[tuple[int, str]]
    docstrings: list[tuple[int, str]]
    arguments: list[tuple[int, str, set[str]]]


@cache
def parsed() -> list[Texts]:
    """Every module, parsed and walked once."""
    return [Texts(path, list(visible(nodes)), list(docstrings_in(nodes)), list(arguments_in(nodes)))
            for path, nodes in source_nodes(SOURCE)]


def test_docstrings_have_no_private_words():
    texts = [(f"{module.path.relative_to(ROOT)}:{line}", re.sub("|".join(RIGHT), "", " ".join(text.split())))
             for module in parsed() for line, text in module.docstrings]
    assert len(texts) > 4000
    assert [f"{name}: write '{better}' for {found_[0]!r}" for name, text in texts for pattern, better in PRIVATE.items()
            if (found_ := re.search(pattern, text))] == []


# A private word in a name that users type or read (option, key, code, argument, attribute), and the term instead.
PRIVATE_NAMES = {
    "way": "method", "apart": "difference, z_score, significant", "judged": "compared", "behind": "excess_error",
    "deviation": "std, standard_error", "deviations": "std, standard_errors", "pull": "penalty", "held": "fixed",
    "coloured": "autocorrelated", "told": "given, determined", "tell": "progress",
}
RIGHT_NAMES = ("one-way", "pull_back")  # a joint that moves one way; the pullback of a linear map


def names_and_arguments() -> Iterator[str]:
    """Names that programs rely on, and public attributes, methods and arguments of everything public."""
    yield from stable_names()
    for name, thing in public_names():
        members = [(name, thing)]
        if inspect.isclass(thing):
            members += [(f"{name}.{key}", getattr(thing, key, None))
                        for key in {*dir(thing), *getattr(thing, "__annotations__", ())} if not key.startswith("_")]
        for key, value in members:
            yield key
            if inspect.isroutine(value) or inspect.isclass(value):
                with suppress(ValueError, TypeError):
                    yield from (f"{key}({one})" for one in inspect.signature(value).parameters)


def private_parts(name: str) -> set[str]:
    for right in RIGHT_NAMES:
        name = name.replace(right, "")
    return set(re.split(r"[^a-z]+", name)) & set(PRIVATE_NAMES)


def test_public_names_have_no_private_words():
    names = set(names_and_arguments())
    assert len(names) > 4000
    assert [f"{name}: use {PRIVATE_NAMES[word]}" for name in sorted(names) for word in private_parts(name)] == []


def test_arguments_have_no_private_words():
    """Every argument of a function without an underscore; `tell` in no argument at all."""
    assert [f"{module.path.relative_to(ROOT)}:{line}: {word}" for module in parsed()
            for line, name, given in module.arguments
            for word in (PRIVATE_NAMES if not name.startswith("_") else ("tell",)) if word in given] == []


@pytest.mark.parametrize(("name", "wrong"), [("command payload --way", True), ("json a.told_apart", True),
                                             ("finding one-way-joint", False), ("dynid.Model.pull_back", False)])
def test_the_check_finds_private_words_in_names(name, wrong):
    assert bool(private_parts(name)) == wrong


def test_help_of_every_command_has_no_private_words():
    """The docstring of a command is its help."""
    for name in COMMANDS:
        text = " ".join((import_module(f"dynid.cli.{name}").command.__doc__ or "").split())
        assert text, name
        assert [pattern for pattern in PRIVATE if re.search(pattern, text)] == [], name


def public_names() -> Iterator[tuple[str, object]]:
    """Every public name with what it is: of dynid itself and of the namespaces for terms, controllers and so on."""
    for name in dynid._MODULES:
        yield f"dynid.{name}", getattr(dynid, name)
    for space in (terms, controllers, trajectories, literature):
        for name in space.__all__:
            yield f"{space.__name__}.{name}", getattr(space, name)


def docstrings() -> Iterator[tuple[str, str]]:
    """Docstrings of public names, and of the public methods of public classes, without code and examples."""
    for name, thing in public_names():
        members = [(name, thing)]
        if inspect.isclass(thing):
            members += [(f"{name}.{key}", value) for key, value in vars(thing).items() if not key.startswith("_")
                        and (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))]
        for key, value in members:
            text = inspect.getdoc(value) or ""
            yield key, re.sub(r"(?m)`[^`]*`|\"[^\"]*\"|^ +[\w, ]+:", "", text.split(">>>")[0])


def test_docstrings_of_public_names_have_no_private_words():
    texts = list(docstrings())
    assert len(texts) > 300
    assert [f"{name}: write '{better}'" for name, text in texts for pattern, better in PRIVATE.items()
            if re.search(pattern, re.sub("|".join(RIGHT), "", " ".join(text.split())))] == []


def test_reports_and_the_studio_have_no_private_words():
    pages = [*SOURCE.rglob("*.html"), *SOURCE.rglob("*.js")]
    assert len(pages) > 50
    assert [one for path in sorted(pages) for one in found(page(path), path)] == []


def test_the_documentation_has_no_private_words():
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    assert [one for path in sorted(pages) for one in found(prose(path), path)] == []


def test_labels_of_figures_have_no_private_words():
    scripts = list(source_nodes(DOCS / "figures"))
    assert len(scripts) > 5
    assert [one for path, nodes in scripts for one in found(visible(nodes), path)] == []


def test_no_line_of_the_documentation_is_dropped_as_a_comment():
    """A line that begins with a percent sign is a comment of MyST, so a sentence that continues there loses words."""
    assert [f"{path.relative_to(ROOT)}:{line}" for path in sorted(DOCS.rglob("*.md")) for line, text in prose(path)
            if text.lstrip().startswith("%")] == []


# A sentence of the documentation names its subject, so that it can be understood when it is read alone.
WITHOUT_SUBJECT = re.compile(
    r"(\*\*)?((It|They|Its|Their|Otherwise|So|Thus)\b|(This|That|These|Those|Such|Both|Each|One|None) "
    r"(is|are|was|were|has|have|had|need|does|do|can|cannot|must|may|make|give|take|show|print|happen|appl|work)(s|ies|y)?\b)")


def test_sentences_of_the_documentation_name_their_subject():
    texts = [(place, text) for place, text in sentences() if not place.startswith("CHANGELOG")]
    assert len(texts) > 2000
    assert [f"{place}: name the subject of {text[:100]!r}" for place, text in texts
            if WITHOUT_SUBJECT.match(text)] == []


@pytest.mark.parametrize("text, wrong", [("It prints 70 and 43.", True), ("They are slow.", True),
                                         ("Otherwise a mapping names them.", True), ("These are counts.", True),
                                         ("This page identifies a robot.", False), ("The example prints 70.", False)])
def test_the_check_finds_sentences_without_a_subject(text, wrong):
    assert bool(WITHOUT_SUBJECT.match(text)) == wrong


@pytest.mark.parametrize("text", ["a body that cannot exist", "3 deviations", "met to", "torques are met to 1 %",
                                  "one a joint", "as the log says"])
def test_the_check_finds_private_words(text):
    tree = ast.parse(f'"""Doc: deviations."""\nraise ValueError("{text}")\n')
    hits = [pattern for _, one in visible(list(ast.walk(tree))) for pattern in PRIVATE if re.search(pattern, one)]
    assert bool(hits) == (text != "met to")


def test_every_symbol_of_a_parameter_is_in_the_glossary():
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8")
    for symbol, words in SYMBOLS.items():
        assert re.search(rf"^\| `{symbol}` \| `{symbol}[\d_]+` \| {re.escape(words.replace('{k}', 'k'))} \|", glossary,
                         re.MULTILINE), symbol
    robot = Robot.load("ur10")
    terms = [KINDS[kind](joint=1, **({} if kind.endswith("spring") and kind != "gas-spring" else
                                     {"base": 0.2, "link": 0.1}))
             for kind in ("spring", "polynomial-spring", "gas-spring", "counterbalance")]
    terms += [term() for kind, term in KINDS.items() if term.__module__.startswith("dynid.")
              and kind not in ("spring", "polynomial-spring", "gas-spring", "counterbalance", "payload", "motor-side")]
    items = [item for term in terms for item in term.parameters(robot)]
    items += FlexibleModel(Model(robot, [RigidBodies()]), skew=True).parameters.items
    for item in items:
        stem = re.sub(r"\d*_$", "", item.symbol)
        assert f"| `{stem}`" in glossary or f"`{item.symbol}`" in glossary, item.symbol
        assert item.meaning.endswith(f", {item.part}") and not item.meaning.startswith(("friction,", "parameter,"))


def test_recommended_methods_are_registered_and_explained():
    assert set(RECOMMENDED) <= set(methods()) and len(RECOMMENDED) <= 12
    advice = (DOCS / "howto" / "method.md").read_text(encoding="utf-8")
    assert [name for name in RECOMMENDED if f"`{name}`" not in advice] == []
