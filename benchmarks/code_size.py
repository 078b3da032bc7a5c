"""Generated C of a 7-joint arm: code size and stack of each function with the compiler of this machine.

The code is that of the LWR IV+ with its values as constants, compiled by gcc -O2 without vector instructions, as on a
microcontroller. Sizes on another processor are of the same order of magnitude.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynid.errors import NotPossibleError
from dynid.robot import Robot
from dynid.symbolic import Program, generate

FUNCTIONS = ["gravity", "inertia", "coriolis", "inverse_dynamics", "forward_dynamics"]
FLAGS = ["-std=c99", "-O2", "-U__SSE2__", "-fno-asynchronous-unwind-tables", "-fstack-usage"]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NotPossibleError("this benchmark compiles C with gcc, which is not installed", "install gcc")
    version = subprocess.run([compiler, "-dumpfullversion"], check=True, capture_output=True, text=True).stdout.strip()
    robot = Robot.builtin("kuka-lwr4")
    fixed = generate(robot, FUNCTIONS, parameters="fixed", name="arm")
    base = generate(robot, ["online"], name="arm")
    result: dict[str, Any] = {"robot": robot.name, "gcc": version, "flags": FLAGS, "functions": {}}
    with tempfile.TemporaryDirectory() as name:
        for real in ("double", "float"):
            progress(f"compiling in {real}")
            for program, functions in ((fixed, FUNCTIONS), (base, ["regressor", "online_update", "online_solve"])):
                (Path(name) / "arm.h").write_text(program.c(real))
                for one in functions:
                    found = result["functions"].setdefault(one, {})
                    found[real] = _measured(compiler, Path(name), program, one, real)
    count = len(base.numbers)
    result["online_state"] = {real: size * ((count + 1) * (count + 2) // 2 + 1)
                              for real, size in (("double", 8), ("float", 4))}
    return result


def _measured(compiler: str, folder: Path, program: Program, name: str, real: str) -> dict[str, int]:
    """Bytes of code and of stack of one function with all that it calls of the header."""
    head = re.search(rf"static inline (\w+) arm_{name}\(([^)]*)\)", program.c(real))
    assert head is not None
    arguments = ", ".join(re.sub(r"\[.*", "", one).split()[-1].lstrip("*") for one in head[2].split(","))
    before = "" if head[1] == "void" else "return "
    (folder / "one.c").write_text(f'#include "arm.h"\n{head[1]} one({head[2]});\n{head[1]} one({head[2]})\n'
                                  f"{{ {before}arm_{name}({arguments}); }}\n")
    subprocess.run([compiler, *FLAGS, "-c", "one.c"], cwd=folder, check=True, capture_output=True)
    sections = subprocess.run(["size", "-A", "one.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
    code = sum(int(size) for size in re.findall(r"^\.(?:text|rodata)\S*\s+(\d+)", sections, re.MULTILINE))
    stack = sum(int(line.split("\t")[1]) for line in (folder / "one.su").read_text().splitlines())
    return {"code": code, "stack": stack}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("function", "double: code, B", "stack, B", "float: code, B", "stack, B")]
    rows += [(name, *(str(found[real][what]) for real in ("double", "float") for what in ("code", "stack")))
             for name, found in result["functions"].items()]
    return rows
