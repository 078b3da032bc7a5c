"""Hostile files that are no damage of valid ones: links, devices, pipes, very wide tables, nested tensors, chains of
dependent joints, streams whose rows change, and absurd units. Files of others, to which links lead, stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fuzz.commands import FAMILIES, Family, wrong_of

from dynid.runs.result_folder import COMMIT, MANIFEST, write_manifest

_WAIT = 120  # s of a clock after which a case waits for something: a pipe, a device
_READING = ("identify", "prior", "inspect-loop", "inspect-dh", "inspect-mjcf", "inspect-urdf", "contact", "payload",
            "bounds", "table", "gains", "load", "validate", "check", "compare", "methods", "watch-file",
            "watch-payload", "simulate", "motion", "through", "generate")  # commands whose files are replaced
_LONG = "é" * 500


class Traps:
    """Cases in a copy of the inputs, beside a folder of somebody else that is compared after each case."""

    def __init__(self, inputs: Path, folder: Path) -> None:
        self._inputs, self._place, self._others = inputs, folder / "place", folder / "others"
        self._before: dict[str, tuple[object, ...]] = {}

    def case(self, rng: np.random.Generator) -> str:
        """Run one case; what is wrong with what happens."""
        if not self._before:
            self._make_others()
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._inputs, self._place)
        prepare = _KINDS[int(rng.integers(len(_KINDS)))]
        arguments, given = prepare(rng, self._place, self._others)
        files = _entries(self._place)
        signal.signal(signal.SIGALRM, _waits)
        signal.alarm(_WAIT)
        try:
            wrong = wrong_of(arguments, given, self._place, Family(()))
        finally:
            signal.alarm(0)
        said = f"{prepare.__name__.strip('_')}: {' '.join(arguments)}"
        changed = [name for name, facts in files.items() if _entries(self._place).get(name) != facts]
        if _entries(self._others) != self._before:
            self._before = {}
            wrong += " files of others were changed"
        elif changed and "-o" not in arguments:
            wrong += f" its own input was changed: {changed[:3]}"
        return f"{said}: {wrong}" if wrong else ""

    def _make_others(self) -> None:
        shutil.rmtree(self._others, ignore_errors=True)
        shutil.copytree(self._inputs, self._others)
        for path in self._others.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o640)
        self._before = _entries(self._others)


def _waits(*_: object) -> None:
    raise TimeoutError(f"the case waited for {_WAIT} s")


def _entries(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every entry below a folder: its mode, inode, time of change, and content."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        small = path.is_file() and not path.is_symlink() and facts.st_size < 1 << 24
        content = hashlib.sha256(path.read_bytes()).hexdigest() if small else ""
        found[path.relative_to(folder).as_posix()] = (facts.st_mode, facts.st_ino, facts.st_mtime_ns, content)
    return found


def _pick(rng: np.random.Generator, values):
    return values[int(rng.integers(len(values)))]


def _trap(rng: np.random.Generator, path: Path, others: Path) -> None:
    """Put something into the place of a file that is no regular file of its folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    way = int(rng.integers(12))
    if way == 0:
        os.mkfifo(path)
    elif way == 1:
        path.mkdir()
    elif way == 2:
        path.touch()
        os.truncate(path, 1 << int(rng.integers(31, 44)))
    elif way == 3:
        path.symlink_to(path.name)
    elif way == 4:
        with socket.socket(socket.AF_UNIX) as door:
            before = os.getcwd()
            os.chdir(path.parent)  # the name of a socket is short
            door.bind(path.name)
            os.chdir(before)
    else:
        target = _pick(rng, ("/dev/zero", "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/environ", "/proc/kmsg",
                             "/proc/self/mem", "nothing", str(others / path.name), str(others), str(others / "log.csv"),
                             "/"))
        path.symlink_to(target)


def _traps_in_files(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """One input of a command is a link, a pipe, a device, a folder, or much too large."""
    family = FAMILIES[_pick(rng, _READING)]
    files = [name for name in family.call if (place / name).exists()]
    path = place / _pick(rng, files or ["arm.urdf"])
    if path.is_dir() and rng.random() < 0.9:
        path = path / _pick(rng, sorted(one.name for one in path.iterdir()))
    _trap(rng, path, others)
    return list(family.call), b""


def _traps_in_results(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A result has the folder of an interrupted save, or a link of its name, or of the name of a file of the result."""
    result = place / "result"
    way = int(rng.integers(5))
    if way == 0:
        (result / COMMIT).symlink_to(others / "result")
    elif way == 1:
        shutil.copytree(place / "kept", result / COMMIT)
        _trap(rng, result / COMMIT / _pick(rng, sorted(one.name for one in (place / "kept").iterdir())), others)
    elif way == 2:
        shutil.copytree(place / "kept", result / COMMIT)
        table = json.loads((result / COMMIT / MANIFEST).read_text())
        table["files"][_pick(rng, ("../log.csv", str(others / "log.csv"), "..", MANIFEST, COMMIT, "x"))] = {
            "bytes": 1 << 40, "sha256": ""}
        (result / COMMIT / MANIFEST).write_text(json.dumps(table))
    elif way == 3:
        for name in (".dynid-new-x", ".dynid-commit"):
            (result / name).symlink_to(others / "result")
    else:
        (result / "run.toml").write_text((result / "run.toml").read_text().replace(
            "log.csv", _pick(rng, ("pipe.csv", "loop.csv"))))
        os.mkfifo(place / "pipe.csv")
        (place / "loop.csv").symlink_to("loop.csv")
        (result / MANIFEST).unlink()
        write_manifest(result)
    return list(FAMILIES[_pick(rng, ("check", "prior", "payload", "contact", "compare", "validate", "watch-payload"))
                         ].call), b""


def _names_of_devices(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A robot file, a run file or an MJCF names a device, a pipe or a file of others."""
    os.mkfifo(place / "pipe")
    name = _pick(rng, ("/dev/zero", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "pipe", ".", str(others), "",
                       str(others / "arm.urdf"), str(others / "log.csv"), "../" * 30 + "dev/zero", _LONG, "\\u0000"))
    way = int(rng.integers(4))
    if way == 0:
        (place / "z.toml").write_text(f'convention = "urdf"\nurdf = "{name}"\n')
        return ["inspect", "z.toml", "--json"], b""
    if way == 1:
        (place / "z.xml").write_text(f'<mujoco><include file="{name}"/></mujoco>'.replace("\\u0000", "&#1;"))
        return ["inspect", "z.xml", "--json"], b""
    key = _pick(rng, ("robot", "logs", "validate_on", "prior", "position"))
    value = f'"{name}"' if key in ("robot", "prior") else f'["{name}"]'
    text = (place / "run.toml").read_text()
    if key == "position":
        text = text.replace("[log]\n", f'[log]\nposition = {{file = "{name}", columns = "2-3"}}\n')
    else:
        text = f"{key} = {value}\n" + re.sub(rf"^{key} = .*\n", "", text, flags=re.MULTILINE)
    (place / "run.toml").write_text(text)
    return ["identify", "run.toml", "--json"], b""


def _wide_tables(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A log of very many columns, whose names may look like signals."""
    count = int(10 ** rng.uniform(2, 5.2))
    pattern = _pick(rng, ("{i}", "q{i}", "x{i}sec", "q1", "position_{i}", "c {i}", "", "position_shoulder", "é{i}"))
    names = [pattern.format(i=i) for i in range(count)]
    kind = _pick(rng, ("csv", "tsv", "json", "parquet", "npz", "npy", "list"))
    path = place / f"wide.{kind}"
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        rows = [mark.join(["%.3f" % (0.01 * row), *["1"] * count]) for row in range(int(rng.integers(0, 4)))]
        path.write_text("\n".join([mark.join(["time", *names]), *rows]) + "\n")
    elif kind == "json":
        path.write_text("[" + json.dumps({"time": 0.0, **dict.fromkeys(names, 1)}) + "]")
    elif kind == "npz":
        with zipfile.ZipFile(path, "w") as archive:
            for name in dict.fromkeys(names[:20_000]):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.ones(3))
    elif kind == "npy":
        np.save(path, np.ones((3, count)))
    else:
        path = path.with_suffix(".parquet")
        column = pa.array([[1.0, 2.0]] * 2 if kind == "list" else [1.0, 2.0])
        pq.write_table(pa.table([column] * min(count, 30_000), names=names[:30_000]), path)
    call = _pick(rng, (["inspect", "arm.urdf", "--log", path.name], ["identify", "arm.urdf", path.name],
                       ["validate", "result", path.name], ["watch", "arm.urdf", "--from", path.name, "--speed", "0"]))
    return [*call, "--json"], b""


def _nested_tensors(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A file of torch whose description nests tuples or tables, refers to one storage often, or has many instructions.
    """
    count = int(10 ** rng.uniform(1, 6))
    text = lambda value: b"X" + struct.pack("<I", len(value)) + value.encode()  # noqa: E731
    size = int(2 ** rng.uniform(4, 26))
    kind = _pick(rng, ("HalfStorage", "FloatStorage", "DoubleStorage", "ByteStorage", "BoolStorage"))
    storage = (b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text("0") + text("cpu") + b"K\x01tQ")
    tensor = (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00J" + struct.pack("<i", size) + b"\x85K"
              + bytes([int(rng.integers(3))]) + b"\x85\x89}tR")
    way = int(rng.integers(7))
    if way == 0:
        body = b"}" + _pick(rng, (b"N", b")", b"]", b"}")) + b"\x85" * count + b"K\x01s."
    elif way == 1:
        body = b"}(" + b"".join(text(f"q{k}") + tensor for k in range(min(count, 400))) + b"u."
    elif way == 2:
        body, inner = b"", tensor
        for level in range(int(rng.integers(2, 12))):
            body += inner + b"q" + bytes([level])
            inner = b"}(" + b"".join(text(f"k{k}" * int(rng.integers(1, 200))) + b"h" + bytes([level])
                                     for k in range(int(rng.integers(2, 60)))) + b"u"
        body += inner + b"."
    elif way == 3:
        body = _pick(rng, (b"(t", b"(", b"]a", b"}", b"(l", b")\x85\x86")) * min(count, 400_000) + b"."
    elif way == 4:
        nested = b")" + b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(60))
        body = nested + _pick(rng, (b"}h\x3bK\x01s.", b"h\x3bQ.", b"h\x3bR.", b"h\x3bh\x3b\x93.", b"}h\x3bQ."))
    elif way == 5:
        body = b"}" + text("q") + b"]" + b"q\x01" + b"h\x01a" * min(count, 1000) + b"s."
    else:
        body = b"}q\x00(" + text("a") + b"h\x00" + text("q") + tensor + b"u."
    with zipfile.ZipFile(place / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + body)
        archive.writestr("a/data/0", bytes(size * int(rng.integers(1, 3))))
    return ["inspect", "arm.urdf", "--log", "x.pt", "--json"], b""


def _mimic_chains(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A chain whose joints depend on others, also in a circle, on themselves, or on none."""
    count = int(10 ** rng.uniform(0.3, 2.3 if rng.random() < 0.1 else 1.7))
    master = _pick(rng, ("j1", "j1", "j1", "before", "self", "after", "none"))
    links = ['<link name="l0"/>']
    for i in range(1, count + 1):
        other = {"before": f"j{i - 1}", "self": f"j{i}", "after": f"j{i % count + 1}", "none": "x"}.get(master, "j1")
        mimic = f'<mimic joint="{other}" multiplier="{rng.normal():.3g}"/>' if i > 1 else ""
        links.append(f'<link name="l{i}"><inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" ixy="0" '
                     f'ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial></link><joint name="j{i}" type="revolute">'
                     f'<origin xyz="0.1 0 0"/><parent link="l{i - 1}"/><child link="l{i}"/><axis xyz="0 1 0"/>'
                     f'<limit lower="-1" upper="1" velocity="1" effort="9"/>{mimic}</joint>')
    (place / "chain.urdf").write_text(f'<robot name="chain">{"".join(links)}</robot>')
    call = _pick(rng, (["inspect", "chain.urdf"], ["check", "chain.urdf"],
                       ["generate", "chain.urdf", "-o", "code", "--language", "python", "--what", "inverse_dynamics"],
                       ["motion", "chain.urdf", "sines", "-o", "m.csv", "--duration", "2"],
                       ["identify", "chain.urdf", "log.csv"]))
    return [*call, "--json"], b""


def _changed_row(cells: list[bytes], way: int, width: int) -> list[bytes]:
    """The cells of a row of a stream, changed in one of six ways."""
    return ((cells + [b"1"] * 15)[:width], cells[::-1], [b"0.5", *cells[1:]], cells * 2, cells[:width],
            [b'{"t": ' + cells[0] + b', "q": [1' + b",1" * width + b'], "tau": [1,2]}'])[way]


def _changing_rows(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A stream whose rows get wider or narrower, or repeat their stamps."""
    lines = (place / "stream.csv").read_bytes().splitlines()
    for _ in range(int(rng.integers(1, 4))):
        begin, stop = sorted(rng.integers(0, len(lines), 2).tolist())
        width = int(rng.integers(0, 15))
        way = int(rng.integers(6))
        lines[begin:stop] = [b",".join(_changed_row(line.split(b","), way, width)) for line in lines[begin:stop]]
    content = b"\n".join(lines) + b"\n"
    more = _pick(rng, ([], ["--cutoff", "8"], ["--forgetting", "0.99"], ["--equations", "kernel"],
                       ["--friction", "viscous"]))
    if rng.random() < 0.5:
        return ["watch", "arm.urdf", "--from", "-", *more, "--json"], content
    return ["watch", "result", "--payload", "lower", "--from", "-", "--json"], content


def _absurd_units(rng: np.random.Generator, place: Path, others: Path) -> tuple[list[str], bytes]:
    """A robot or a log in other units: grams, millimetres, degrees, microseconds, and absurd factors."""
    factor = float(_pick(rng, (1e-6, 1e-3, 1e3, 1e6, 1e9, 57.3, -1.0, 1e30, 1e-30, 1e150)))
    if rng.random() < 0.5:
        attribute = _pick(rng, ("mass value", "i[xyz][xyz]", "xyz", "upper", "effort"))
        text = (place / "arm.urdf").read_text()
        (place / "arm.urdf").write_text(re.sub(
            rf'({attribute}=")([^"]*)"', lambda found: found[1] + " ".join(
                f"{factor * float(word):.9g}" for word in found[2].split()) + '"', text))
    else:
        head, *rows = (place / "log.csv").read_text().splitlines()
        table, column = np.array([row.split(",") for row in rows], dtype=float), int(rng.integers(head.count(",") + 1))
        table[:, column] *= factor
        np.savetxt(place / "log.csv", table, delimiter=",", header=head, comments="", fmt="%.12g")
    call = _pick(rng, (FAMILIES["identify"].call, ("check", "arm.urdf", "--json"), ("inspect", "arm.urdf", "--json"),
                       FAMILIES["watch-file"].call, FAMILIES["simulate"].call))
    return list(call), b""


_KINDS: tuple[Callable[[np.random.Generator, Path, Path], tuple[list[str], bytes]], ...] = (
    _traps_in_files, _traps_in_results, _names_of_devices, _wide_tables, _nested_tensors, _mimic_chains, _changing_rows,
    _absurd_units)
