"""Files are opened in one place: regular files only, at once, with their size counted while they are read."""

from __future__ import annotations

import ast
import io
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from refusals import refused

import dynid
from dynid.cli.main import main
from dynid.errors import DynidError, RecordingError, RobotError
from dynid.files import check_file, open_file, read_file, toml_file
from dynid.recording.log_reading import read
from dynid.robot import Robot
from dynid.robot.visual_shapes import read_mesh

SOURCE = Path(dynid.__file__).parent
METHODS = {"open", "read_text", "read_bytes"}  # of a path
FUNCTIONS = {"open", "loadmat", "load", "loadtxt", "genfromtxt", "fromfile", "memmap", "File", "ParquetFile", "OSFile",
             "read_table", "ZipFile", "copyfile", "copy", "copy2", "copytree", "Collada", "AnyReader", "cmp"}
LIBRARIES = {"np", "numpy", "os", "io", "gzip", "bz2", "lzma", "zipfile", "shutil", "filecmp", "h5py", "parquet",
             "pyarrow", "collada", "highlevel"}
NO_FILES = {"webbrowser", "archive", "Dataset", "distribution"}  # whose methods of these names open no file by its name
# Where a file is opened in another way: what it is, and why no file of a stranger is opened there.
ALLOWED = {
    "files.py": "the one place",
    "arrays.py on_disk": "the program's own temporary file",
    "arrays.py Spool": "the program's own temporary file",
    "datasets/log_folds.py _Items": "the store's method, which reads by read_file",
    "excitation/trajectories/trajectory_file.py _read_csv": "lines of a file that read_file read",
    "recording/tabular.py Text": "lines of an open file, or a method of the table",
    "kernel_store.py": "compiled kernels and sources of the installation, in a folder that only the user writes",
    "kernel_cache.py": "the lock of the folder of kernels",
    "cli/scripts.py": "scripts of the installation",
    "cli/main.py": "the null device",
    "report/rendering.py": "files of the installation and their cache",
    "robot/robot_files.py builtin": "a file of the installation",
    "report/pages/identification/provenance.py": "metadata of installed packages",
    "recording/rosbag.py Bag": "every file of the bag was checked just before by check_bag",
    "runs/result_folder.py _locked": "a folder, which is locked",
    "runs/result_folder.py _sync": "files that this process wrote",
    "runs/result_folder.py _sync_folder": "a folder, which is flushed",
    "runs/results.py _save_robot": "the URDF of the run, which was read before",
    "studio/server.py opener_file": "a new file",
    "studio/workspace.py": "marker and folders, opened without following links; new files",
}


def test_files_are_opened_in_one_place() -> None:
    found = {where for path in sorted(SOURCE.rglob("*.py")) for where in unchecked(path)}
    assert {where for where in found if where not in ALLOWED and where.split()[0] not in ALLOWED} == set()
    assert {one for one in ALLOWED if not any(one in (where, where.split()[0]) for where in found)} == set()


def unchecked(path: Path) -> Iterator[str]:
    """Module and outermost definition of each call that opens a file which `files.py` has not checked."""
    name = path.relative_to(SOURCE).as_posix()
    for outer in ast.parse(path.read_text(encoding="utf-8")).body:
        held = {handle for node in ast.walk(outer) for handle in handles(node)}
        for node in ast.walk(outer):
            if isinstance(node, ast.Call) and opens(node) and not is_checked(node, held):
                yield f"{name} {getattr(outer, 'name', '')}"


def handles(node: ast.AST) -> Iterator[str]:
    """The names that `open_file` is bound to."""
    if isinstance(node, ast.withitem) and calls(node.context_expr) and isinstance(node.optional_vars, ast.Name):
        yield node.optional_vars.id
    if isinstance(node, ast.Assign) and calls(node.value) and isinstance(node.targets[0], ast.Name):
        yield node.targets[0].id


def calls(node: ast.AST) -> bool:
    """Whether an expression has a call of `open_file`, `check_file` or `read_file`."""
    return any(isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
               and one.func.id in ("open_file", "open_text", "check_file", "read_file", "BytesIO")
               for one in ast.walk(node))


def opens(node: ast.Call) -> bool:
    """Whether a call opens a file by its name to read it."""
    mode = node.args[1] if len(node.args) > 1 else None
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) & set("wax"):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in ("open", "loadmat", "ZipFile")
    if not isinstance(node.func, ast.Attribute):
        return False
    receiver = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
    if node.func.attr in FUNCTIONS and receiver in LIBRARIES:
        return True
    return node.func.attr in METHODS and receiver not in NO_FILES


def is_checked(node: ast.Call, held: set[str]) -> bool:
    """Whether a call is given a name or an open file from `files.py`."""
    return bool(node.args) and (calls(node.args[0]) or (isinstance(node.args[0], ast.Name) and node.args[0].id in held))


@pytest.mark.parametrize("code", [
    "open(path)", "path.open('rb')", "Path(x).read_text()", "np.load(path)", "h5py.File(path, 'r')",
    "(folder / 'x').read_bytes()", "parquet.ParquetFile(path)", "zipfile.ZipFile(path)", "np.loadtxt(path)",
    "loadmat(path)", "os.open(path, os.O_RDONLY)", "gzip.open(path)", "shutil.copyfile(path, to)"])
def test_the_search_finds_each_way_to_open_a_file(code: str) -> None:
    call = ast.parse(code).body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert opens(call.value) and not is_checked(call.value, {"file"})


# -- what is no regular file ----------------------------------------------------------------------------------------
def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path)


MAKERS = [pipe, device, loop, Path.mkdir]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("call", [check_file, open_file, lambda path: read_file(path, 10)])
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], None], call: Callable) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError):
        call(tmp_path / "x")


def test_links_are_followed_or_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_file(tmp_path / "link") as file:
        assert file.read() == b"x"
    with pytest.raises(OSError, match="link"):
        open_file(tmp_path / "link", follow=False)


def test_a_size_is_counted_while_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_file(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="larger"):
        read_file(tmp_path / "x", 4)
    os.truncate(tmp_path / "x", 1 << 40)
    with pytest.raises(DynidError, match="larger than 32 MB"):
        toml_file(tmp_path / "x")


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["a.urdf", "a.toml", "a.xml", "a.csv", "a.npz", "a.npy", "a.parquet", "a.h5", "a.mat",
                                  "a.bag", "a.mcap", "a.pt", "a.json", "a.stl", "a.csv.gz"])
def test_every_reader_refuses_what_is_no_file(tmp_path: Path, make: Callable[[Path], None], name: str) -> None:
    path = tmp_path / name
    make(path)
    reader = Robot.load if path.suffix in (".urdf", ".toml", ".xml") else read_mesh if path.suffix == ".stl" else read
    with pytest.raises((RobotError, RecordingError)) as caught:
        reader(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("urdf", ["/dev/zero", "/dev/stdin", "pipe", "folder"])
def test_the_urdf_of_a_robot_file_is_a_file(tmp_path: Path, urdf: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "z.toml").write_text(f'convention = "urdf"\nurdf = "{urdf}"\n')
    read_end, write_end = os.pipe()
    kept = os.dup(0)
    os.dup2(read_end, 0)  # as of a studio's worker, whose requests come through a pipe
    try:
        with pytest.raises(RobotError, match="cannot be read: it is a"):
            Robot.load(tmp_path / "z.toml")
    finally:
        os.dup2(kept, 0)
        for handle in (kept, read_end, write_end):
            os.close(handle)


def test_an_included_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "part.xml")
    (tmp_path / "a.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    with refused(RobotError, "unreadable-file", "part.xml"):
        Robot.load(tmp_path / "a.xml")


def test_a_pipe_in_a_bag_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    (tmp_path / "bag" / "metadata.yaml").write_text("rosbag2_bagfile_information: {relative_file_paths: [a.db3]}\n")
    os.mkfifo(tmp_path / "bag" / "a.db3")
    with pytest.raises(RecordingError, match="a.db3: cannot be read as part of a bag, it is a pipe"):
        read(tmp_path / "bag")


@pytest.mark.parametrize("call", [
    ["inspect", "arm3r", "--log", "x"], ["identify", "arm3r", "x"], ["identify", "x"], ["check", "x"],
    ["watch", "arm3r", "--from", "x"], ["inspect", "x.toml"], ["simulate", "arm3r", "--trajectory", "x.csv"]])
@pytest.mark.parametrize("make", [pipe, device, loop])
def test_a_command_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str], call: list[str],
                                     make: Callable[[Path], None]) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path(next(word for word in call if word.startswith("x"))))
    with pytest.raises(SystemExit) as left:
        main(call)
    text = capsys.readouterr().err
    assert left.value.code in (1, 2) and text.startswith("Error: ") and text.count("\n") == 1, text


def test_an_archive_of_many_arrays_opens_one_file(tmp_path: Path) -> None:
    import numpy as np
    arrays = {f"a{i}": np.ones(3) for i in range(3000)}
    np.savez(tmp_path / "x.npz", time=np.arange(3.0), **arrays)
    before = len(os.listdir("/proc/self/fd"))
    from dynid.recording.arrays import open_npz
    found = open_npz(tmp_path / "x.npz")
    assert len(found.fields) == 3001 and len(os.listdir("/proc/self/fd")) <= before + 2
    assert zipfile.is_zipfile(io.BytesIO((tmp_path / "x.npz").read_bytes()))
