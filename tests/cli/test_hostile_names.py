"""Names from a stranger's robot file at the command line: nothing of them runs, and the terminal obeys none."""

from __future__ import annotations

import ast
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from dynid.cli.main import main

NAMES = ('"""+str(open("PWNED","w"))+"""', "*\\\n/ int evil; /*", "x\ntouch(`PWNED`)", "[/bold]", "[link=file:x]y",
         ":smile:", "</script><script>evil()</script>")


def write_robot(path: Path, name: str) -> None:
    """A pendulum with the name everywhere."""
    robot, link, joint = (quoteattr(name + end).replace("\n", "&#10;") for end in "rlj")
    path.write_text(f"""<robot name={robot}><link name="base"/><link name={link}><inertial><mass value="1"/>
        <origin xyz="0.1 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name={joint} type="revolute"><parent link="base"/><child link={link}/><axis xyz="0 1 0"/>
        <limit lower="-1" upper="1" velocity="2" effort="50"/></joint></robot>""", encoding="utf-8")


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


@pytest.mark.parametrize("name", NAMES)
def test_generated_files_of_all_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_robot(tmp_path / "evil.urdf", name)
    assert called("generate", "evil.urdf", "-o", "code", "--language",
                  "c,python,python-plain,julia,latex,cuda,jax,torch,rust") == 0
    texts = {path.name: path.read_text() for path in (tmp_path / "code").iterdir()}
    assert len(texts) == 10 and not (tmp_path / "PWNED").exists()
    for file, text in texts.items():
        if file.endswith(".py"):
            kinds = {type(node) for node in ast.parse(text).body}
            assert {ast.Expr, ast.Import, ast.FunctionDef} <= kinds
            assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.Assign}
            assert f"{name}j" in (ast.get_docstring(ast.parse(text), clean=False) or "")
    julia = next(text for file, text in texts.items() if file.endswith(".jl"))
    assert not any(line.startswith("touch") for line in julia.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_names_are_printed_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    write_robot(tmp_path / "evil.urdf", name)
    assert called("inspect", str(tmp_path / "evil.urdf")) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert "".join(f"{name}r:1joints".split()) in shown


def test_a_terminal_gets_no_commands_from_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm.toml").write_text('name = "a\\u001b[2Jb"\nconvention = "mdh"\n[[joint]]\nd = 0\n')
    called("inspect", str(tmp_path / "arm.toml"))
    called("inspect", str(tmp_path / "no\x1b[2J.toml"))
    out = capsys.readouterr()
    assert "\x1b[2J" not in out.out + out.err and "\\x1b[2J" in out.err
