"""Generated code with names from a stranger's file: the names stay inside comments and strings, in every language."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hostile import EXAMPLES, HARMLESS, names, renamed
from hypothesis import example, given, settings

from dynid.model import Model, Payload, RigidBodies, Viscous
from dynid.robot import Robot
from dynid.symbolic import Program, generate
from dynid.symbolic.languages import python

ARM = Robot.builtin("arm3r").only(["joint1", "joint2"])
HOSTILE = tuple((f"{one}r", f"{one}b", f"{one}j", f"{one}l", f"{one}f") for one in EXAMPLES)
FUNCTIONS = ["gravity", "jacobian"]


@cache
def program_of(given_names: tuple[str, ...], mode: str = "base") -> Program:
    """A small program in which every kind of name is."""
    robot = renamed(ARM, given_names)
    model = Model(robot, (RigidBodies(), Viscous(), Payload(given_names[4], label=given_names[4])))
    values = np.linspace(0.1, 1.0, len(model.parameters))
    made = generate(model, FUNCTIONS, parameters=mode, frame=given_names[4], name="arm", values=values)
    return replace(made, provenance=f"Made of the file {given_names[0]}.")


def hostile(count: int = 20) -> Any:
    """The test over generated names, those of the known attacks first."""
    def wrap(test: Any) -> Any:
        test = given(names(5))(test)
        for one in HOSTILE:
            test = example(one)(test)
        return settings(max_examples=count, deadline=None)(test)

    return wrap


class Texts(ast.NodeTransformer):
    """Takes all texts out of a tree and keeps them."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            self.found.append(node.value)
            return ast.Constant("")
        return node


def tree(text: str) -> tuple[str, list[str]]:
    """The syntax tree of a Python module without its texts, and the texts."""
    texts = Texts()
    return ast.dump(texts.visit(ast.parse(text))), texts.found


@hostile()
def test_python_has_the_same_tree_and_runs(given_names: tuple[str, ...]) -> None:
    for mode in ("base", "full"):
        for plain in (False, True):
            program, harmless = program_of(given_names, mode), program_of(HARMLESS, mode)
            found, texts = tree(program.python(plain))
            assert found == tree(harmless.python(plain))[0]
            assert given_names[0] in texts[0] and given_names[2] in texts[0]  # the docstring has the names' own value
            assert list(program.parameter_names) == texts[1:1 + len(program.parameter_names)]
            space: dict[str, Any] = {}
            exec(program.python(plain), space)  # its tree was just found to be that of the harmless one
            q, p = [0.3, -0.4], list(np.linspace(0.5, 1.5, len(program.numbers)))
            expected = harmless("gravity", q=q, p=p)
            np.testing.assert_array_equal(np.ravel(space["gravity"](q, p)), expected)


def test_what_dynid_runs_itself_holds_no_foreign_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []

    def kept(source: str, *more: str) -> Any:
        sources.extend([source, *more])
        return compile(source, *more)

    monkeypatch.setattr(python, "compile", kept, raising=False)
    made = program_of.__wrapped__  # a program compiles each function once
    for given_names in (HARMLESS, *HOSTILE):
        made(given_names).c()  # whose self-test needs values
        made(given_names)("gravity", q=[0.1, 0.2], p=np.ones(len(program_of(given_names).numbers)))
    assert len(sources) == 3 * 2 * (1 + len(HOSTILE)) and len(set(sources)) == 3
    assert not any(HARMLESS[k] in source for source in set(sources) for k in range(1, 5))


def code_of_c(text: str) -> str:
    """C without comments and the contents of strings, by the phases of translation: trigraphs, joined lines."""
    text = text.replace("??/", "\\")
    text = re.sub(r"\\[ \t]*\n", "", text)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda hit: '""' if hit[0][0] == '"' else " ", text,
                  flags=re.DOTALL)


@hostile()
def test_no_name_leaves_the_comments_and_strings_of_c(given_names: tuple[str, ...]) -> None:
    for mode in ("base", "full", "fixed"):
        texts = [program_of(one, mode).c() for one in (given_names, HARMLESS)]
        codes = [re.sub(r"(p_names\[\d+\])\[\d+\]", r"\1[]", code_of_c(text)) for text in texts]
        assert "".join(codes[0].split()) == "".join(codes[1].split())


@hostile(3)
def test_gcc_takes_c_with_hostile_names(given_names: tuple[str, ...]) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here")
    for mode in ("base", "full"):
        program = program_of(given_names, mode)
        flags = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-const-variable",
                 "-Wno-trigraphs", "-Werror", "-x", "c", "-"]
        subprocess.run([compiler, "-fsyntax-only", *flags], input=program.c().encode(), check=True, capture_output=True)


def code_of_julia(text: str) -> str:
    """Julia without comments and the contents of strings; raises where a string holds an interpolation."""
    assert not set("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x00") & set(text)

    def token(hit: re.Match[str]) -> str:
        if hit[0][0] == "#":
            assert not hit[0].startswith("#=")  # which would be a comment of many lines
            return ""
        assert not re.search(r"(?<!\\)(?:\\\\)*\$", hit[0])
        return '""'

    return re.sub(r'"(?:\\.|[^"\\\n])*"|#[^\n]*', token, text)


@hostile(8)
def test_no_name_leaves_the_comments_and_strings_of_code_for_accelerators(given_names: tuple[str, ...]) -> None:
    for mode in ("base", "fixed"):
        program, harmless = program_of(given_names, mode), program_of(HARMLESS, mode)
        for found, expected in ((program.jax(), harmless.jax()), (program.torch(), harmless.torch()),
                                (program.cuda_loader(), harmless.cuda_loader())):
            assert tree(found)[0] == tree(expected)[0]
        codes = [re.sub(r"(p_names\[\d+\])\[\d+\]", r"\1[]", code_of_c(one.cuda())) for one in (program, harmless)]
        assert "".join(codes[0].split()) == "".join(codes[1].split())
        rust = [re.sub(r'"(?:\\.|[^"\\\n])*"|//[^\n]*', '""', one.rust()) for one in (program, harmless)]
        assert rust[0] == rust[1]


@hostile()
def test_no_name_leaves_the_comments_and_strings_of_julia(given_names: tuple[str, ...]) -> None:
    for mode in ("base", "full", "fixed"):
        found, expected = (code_of_julia(program_of(one, mode).julia()) for one in (given_names, HARMLESS))
        assert found == expected and found.count('"') % 2 == 0


@hostile(5)
def test_latex_holds_no_names(given_names: tuple[str, ...]) -> None:
    assert program_of(given_names).latex() == program_of(HARMLESS).latex()


@hostile(5)
def test_files_and_functions_are_called_by_an_identifier(given_names: tuple[str, ...]) -> None:
    model = Model(renamed(ARM, given_names), (RigidBodies(),))
    texts = [generate(model, ["gravity"]).c(), generate(model, ["gravity"]).julia()]
    called = re.search(r"static inline void (\w+)_gravity\(", texts[0])
    assert called is not None and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", called[1])
    assert re.search(r"^module [A-Z]\w*$", texts[1], re.MULTILINE) or called[1].startswith("_")
