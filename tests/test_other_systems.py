"""What Windows and macOS lack is not needed: the parts of POSIX that are used have a way without them."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import POSIX_ONLY
from source_nodes import source_nodes

from dynid import files, kernel_store
from dynid.errors import DynidError
from dynid.runs import result_folder
from dynid.runs.result_folder import manifest, new_result

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "dynid").rglob("*.py"))
# Attributes of os and signal that Windows has not; each use stands behind hasattr, getattr or a test of the system.
MISSING = {"getuid", "geteuid", "getpgrp", "killpg", "fork", "setsid", "mkfifo", "posix_fallocate", "register_at_fork",
           "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGHUP"}
READING = {"open", "read_text", "write_text"}  # calls that may name an encoding
GUARDED = {  # module -> names that it uses behind a guard
    "kernel_cache.py": {"getuid"}, "files.py": {"posix_fallocate"}, "threads.py": {"register_at_fork",
                                                                                 "sched_getaffinity"},
    "workspace.py": {"geteuid"}, "worker.py": {"getpgrp", "killpg", "SIGKILL"},
    "worker_process.py": {"killpg", "SIGKILL"}, "server.py": {"getpgrp"}}


@pytest.fixture
def no_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)


class Module(NamedTuple):
    """Nodes of a source file that tests look at: imports at its top, attributes of names, and calls."""

    path: Path
    imports: list[ast.Import | ast.ImportFrom]
    attributes: list[ast.Attribute]
    calls: list[ast.Call]


@cache
def modules() -> list[Module]:
    """All source files, each parsed and walked once."""
    return [Module(path, [node for node in nodes[0].body if isinstance(node, ast.Import | ast.ImportFrom)],  # type: ignore[attr-defined]
                   [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in MISSING],
                   [node for node in nodes if isinstance(node, ast.Call) and (
                       getattr(node.func, "attr", getattr(node.func, "id", "")) in READING)])
            for path, nodes in source_nodes(ROOT / "src" / "dynid")]


def test_calls_that_windows_lacks_are_those_behind_a_guard():
    found: dict[str, set[str]] = {}
    for module in modules():
        for node in module.attributes:
            if isinstance(node.value, ast.Name) and node.value.id in ("os", "signal"):
                found.setdefault(module.path.name, set()).add(node.attr)
    assert found == GUARDED


def test_no_module_needs_posix_to_be_imported():
    for path, tops, *_ in modules():
        names = {alias.name for node in tops for alias in node.names} | {getattr(node, "module", "") for node in tops}
        assert not names & {"fcntl", "resource", "pwd", "grp", "termios", "tty"}, path


def test_texts_are_opened_with_their_encoding():
    """Windows takes its own code page otherwise."""
    assert sum(len(module.calls) for module in modules()) > 20  # the search finds calls
    for path, _, _, calls in modules():
        for node in calls:
            if getattr(node.func, "attr", "") in ("read_text", "write_text"):
                assert any(one.arg == "encoding" for one in node.keywords) or node.args, f"{path}:{node.lineno}"
            if getattr(node.func, "id", "") == "open":
                mode = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else "r"
                assert "b" in mode or any(one.arg == "encoding" for one in node.keywords), f"{path}:{node.lineno}"


def test_tests_that_need_posix_are_left_out_elsewhere():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^(import|from) (resource|fcntl)\b", text, flags=re.MULTILINE):
            name = path.relative_to(ROOT / "tests").as_posix()
            assert name in POSIX_ONLY or name.split("/")[0] in POSIX_ONLY, name


def test_a_result_is_written_and_replaced_without_locks_and_exchange(tmp_path, monkeypatch, no_fcntl):
    monkeypatch.setattr(result_folder, "_exchanged", lambda one, other: False)  # as on macOS and Windows
    monkeypatch.setattr(result_folder, "_sync_folder", lambda folder: None)  # Windows opens no folders
    for words in ("first", "second"):
        with new_result(tmp_path / "out", replace=True) as new:
            (new / "parameters.toml").write_text(words, encoding="utf-8")
    assert (tmp_path / "out" / "parameters.toml").read_text(encoding="utf-8") == "second"
    assert set(manifest(tmp_path / "out")) == {"parameters.toml"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_studio_claims_its_folder_without_locks(tmp_path, no_fcntl):
    from dynid.studio.workspace import MARKER, claim

    claim(tmp_path / "studio").close()
    assert (tmp_path / "studio" / MARKER).is_file()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(DynidError):
        claim(tmp_path / "full")


def test_a_secret_is_not_reused_where_owners_of_files_are_unknown(tmp_path, monkeypatch):
    from dynid.studio import workspace

    monkeypatch.delattr(os, "geteuid")
    assert not workspace._is_private(os.stat(tmp_path))


def test_a_worker_is_ended_without_process_groups(monkeypatch):
    from dynid.studio.worker_process import WorkerProcess

    monkeypatch.delattr(os, "killpg")

    async def ended() -> int | None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
        worker = WorkerProcess.__new__(WorkerProcess)
        worker._process = process
        await worker.stop()
        return process.returncode

    with ThreadPoolExecutor(1) as pool:  # tests that drive a browser leave an event loop in this thread
        assert pool.submit(lambda: asyncio.run(ended())).result() not in (None, 0)


def test_free_space_is_tried_without_fallocate(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")
    files.try_folder(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_kernels_are_left_to_numba_where_machine_code_is_not_kept(monkeypatch):
    """The store asks for the C library of the process, which Windows has not under that name."""
    monkeypatch.setattr(kernel_store, "loaded_libraries", lambda: pytest.fail("the store was used"))
    monkeypatch.setattr(kernel_store, "os", type("Windows", (), {"name": "nt"}))
    kernel = kernel_store.Kernel(lambda x: x + 1.0, {})
    assert kernel(2.0) == 3.0


def test_workers_are_spawned():
    from dynid.workers import processes

    assert 'get_context("spawn")' in Path(processes.__file__).read_text(encoding="utf-8")
    assert not [path for path in SOURCES if "get_context(\"fork\")" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("name", "is_file"), [("arm3r", False), ("arms/one", True), ("arm.urdf", True)])
def test_a_name_with_a_separator_is_a_path(name, is_file, tmp_path, monkeypatch):
    assert files.is_path(tmp_path, name) == is_file
    monkeypatch.setattr(files.os, "sep", "\\")
    monkeypatch.setattr(files.os, "altsep", "/")
    assert files.is_path(tmp_path, name) == is_file and files.is_path(tmp_path, "arms\\one")
