"""Mutation testing of the core algebra: change one operator or number at a time, and check whether a test fails.

    python tests/mutants.py --count 40 --seed 1      a sample of all mutants, one after the other
    python tests/mutants.py --list                   how many there are by module

A mutant is killed when a test of its module fails, or hangs. Those that survive are printed with their line: either a
test is missing, or the change makes no difference (a tolerance, a faster branch, a message).
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dynid"
# Modules, and the tests that should notice a change in them.
TARGETS: dict[str, tuple[str, ...]] = {
    **{f"regression/{name}.py": ("regression/test_base.py", "regression/test_fold.py", "regression/test_residuals.py",
                                 "regression/test_without_each.py", "estimate/test_known.py")
       for name in ("base", "combination", "compression", "correlation", "equations", "factor", "known", "projected",
                    "regression", "residuals")},
    **{f"estimate/{name}.py": ("estimate/test_uncertainty.py", "estimate/test_least_squares.py",
                               "estimate/test_moderated_variances.py", "estimate/test_intervals.py")
       for name in ("covariance", "uncertainty")},
    **{f"consistency/{name}.py": ("consistency/test_consistency_set.py", "consistency/test_feasibility.py",
                                  "consistency/test_fit.py", "consistency/test_sdpa.py")
       for name in ("barrier", "blocks", "central", "consistency", "feasibility", "fit", "interior", "limits", "newton",
                    "prior", "program")},
}
SWAPS: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
                           ast.MatMult: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
                           ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And}
SECONDS = 300.0  # of CPU and waiting that the tests of one mutant may take


@dataclass(frozen=True)
class Mutant:
    """A changed module: the node of its tree that is changed, its line, and the change in words."""

    module: str
    place: int
    line: int
    change: str

    def text(self) -> str:
        """The source of the changed module."""
        tree = ast.parse((SOURCE / self.module).read_text(encoding="utf-8"))
        _changed(next(node for k, node in enumerate(ast.walk(tree)) if k == self.place))
        return ast.unparse(tree)


def mutants(module: str) -> Iterator[Mutant]:
    """Yield every module with one operator swapped, one condition negated or one number changed."""
    for place, node in enumerate(ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8")))):
        change = _changed(copy.copy(node))
        if change:
            yield Mutant(module, place, node.lineno, change)  # type: ignore[attr-defined]


def _changed(node: ast.AST) -> str:
    """Change a node in place, and say how; nothing for nodes that stay."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        if isinstance(node, ast.BinOp) and any(isinstance(side, ast.Constant | ast.JoinedStr) and not isinstance(
                getattr(side, "value", ""), int | float) for side in (node.left, node.right)):
            return ""  # words
        new = SWAPS[type(node.op)]()
        said = f"{type(node.op).__name__} -> {type(new).__name__}"
        node.op = new  # type: ignore[assignment]
        return said
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        new = SWAPS[type(node.ops[0])]()
        said = f"{type(node.ops[0]).__name__} -> {type(new).__name__}"
        node.ops = [new]  # type: ignore[list-item]
        return said
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
        return "-x -> x"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        old = node.value
        node.value = old + 1 if isinstance(old, int) else 2.0 * old if old else 1.0
        return f"{old!r} -> {node.value!r}"
    if isinstance(node, ast.If):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return "if negated"
    return ""


def is_killed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails with the mutant in a copy of the source."""
    place = folder / "dynid" / mutant.module
    before = place.read_bytes(), place.stat()
    place.write_text(mutant.text(), encoding="utf-8")
    tests = [str(ROOT / "tests" / one) for one in TARGETS[mutant.module]]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow",
                               *tests], cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False)
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_bytes(before[0])
        os.utime(place, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))  # compiled kernels stay valid


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the module's name")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args(arguments)
    every = [one for module in TARGETS if given.only in module for one in mutants(module)]
    if given.list:
        for module in TARGETS:
            print(f"{sum(one.module == module for one in every):5} {module}")
        return 0
    chosen = random.Random(given.seed).sample(every, min(given.count, len(every)))
    survived = []
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(SOURCE, Path(name, "dynid"))  # with times, so that compiled kernels are found
        for one in chosen:
            start = time.monotonic()
            killed = is_killed(one, Path(name))
            survived += [] if killed else [one]
            print(f"{'killed  ' if killed else 'SURVIVED'} {one.module}:{one.line} {one.change} "
                  f"({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants killed; {len(every)} there are")
    return 0


if __name__ == "__main__":
    sys.exit(main())
