"""Damage of all kinds: to bytes, to numbers and words of a text, to shapes and types of arrays."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.originals import ARRAYS, array_file

_TOKEN = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?|[A-Za-z_]{2,}")
_STRANGE = [b"nan", b"-inf", b"1e308", b"-1e308", b"1e-320", b"9" * 400, b"99999999999999999999", b"-1", b"0", b"",
            b"true", b"[]", b"{}", b'"x"', b"'", b'"', b"\x00", b"\xff\xfe", "\u202e\u0663".encode(),
            "é".encode("latin-1"), b"1_000", b"0x10", b"1,5", b"1979-05-27T07:32:00Z", b"x" * 5000,
            b"pi/0", b"[[[[", b"&lt;", b"../../x", b"%s{0}", b"[" * 3000, b"1e999"]
_BINARY = ("npz", "packed.npz", "npy", "mat", "h5", "parquet")
_TEXT = ("csv", "tsv", "csv.gz", "urdf", "robot.toml", "run.toml", "result/run.toml", "result/parameters.toml",
         "result/manifest.json")


# Numbers that parse: beyond what a machine has, at the border of what doubles hold, and none.
_EXTREME = [b"1e308", b"-1e308", b"1e-320", b"1e-300", b"1e18", b"1e9", b"-1e9", b"1e100", b"0", b"-1", b"1e-12",
            b"nan", b"inf", b"-0.0", b"1e5", b"123456789"]
_NUMBER = re.compile(rb"(?<![A-Za-z_0-9.])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


def extreme_numbers(content: bytes, rng: np.random.Generator) -> bytes:
    """A text with one to three of its numbers, or a whole column of a table, made extreme."""
    lines = content.split(b"\n")
    if len(lines) > 50 and b"," in lines[len(lines) // 2] and rng.random() < 0.4:
        column, value = int(rng.integers(lines[len(lines) // 2].count(b",") + 1)), _one(_EXTREME, rng)
        rows = [line.split(b",") for line in lines]
        for row in rows[1:]:
            row[column:column + 1] = [value] if len(row) > column else []
        return b"\n".join(map(b",".join, rows))
    for _ in range(int(rng.integers(1, 4))):
        found = list(_NUMBER.finditer(content))
        if found:
            one = found[int(rng.integers(len(found)))]
            content = content[:one.start()] + _one(_EXTREME, rng) + content[one.end():]
    return content


def mutated_text(content: bytes, rng: np.random.Generator) -> bytes:
    """A text damaged in one to three ways."""
    for _ in range(int(rng.integers(1, 4))):
        content = _text_damage(content, rng) if rng.random() < 0.8 else _byte_damage(content, rng)
    return content


def mutated_arrays(content: bytes, rng: np.random.Generator) -> bytes:
    """An .npz file with one of its arrays changed in shape, type or numbers, or left out, or with damaged bytes."""
    if rng.random() < 0.15:
        return _byte_damage(content, rng)
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    name = str(rng.choice(list(arrays)))
    one, way = np.array(arrays[name]), int(rng.integers(0, 8))
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[name] = one[:0] if one.ndim else np.zeros(0)
    elif way == 2:
        arrays[name] = np.zeros((0, 0))
    elif way == 3 and one.ndim:
        arrays[name] = one[:-1]
    elif way == 4 and one.dtype.kind == "U" and one.ndim == 0:
        arrays[name] = np.array(extreme_numbers(str(one).encode(), rng).decode("utf-8", "replace"))
    elif way == 5:
        arrays[name] = one.astype("U3") if rng.random() < 0.5 else one[..., None]
    elif one.dtype.kind in "fiu" and one.size:
        with np.errstate(all="ignore"):
            one.flat[int(rng.integers(one.size))] = np.array(
                rng.choice([np.nan, np.inf, 1e308, -1e300, 5e-324, 0.0, -1.0, 1e18])).astype(one.dtype)
        arrays[name] = one
    to = io.BytesIO()
    np.savez(to, **arrays)
    return to.getvalue()


def _one(values: list[bytes], rng: np.random.Generator) -> bytes:
    return values[int(rng.integers(len(values)))]


def mutated(kind: str, content: bytes, rng: np.random.Generator, folder: Path) -> bytes:
    """The content of a file of some kind, damaged in one to four ways."""
    if kind in _BINARY and rng.random() < 0.4:
        content = _strange_arrays(kind, rng, folder) or content
        if rng.random() < 0.7:
            return content
    for _ in range(int(rng.integers(1, 5))):
        if kind in _TEXT and rng.random() < 0.75:
            packed = kind == "csv.gz"
            try:
                content = _text_damage(gzip.decompress(content) if packed else content, rng)
                content = gzip.compress(content) if packed else content
            except (OSError, EOFError, zlib.error):  # damaged by the step before
                pass
        else:
            content = _byte_damage(content, rng)
    return content


def _byte_damage(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return bytes(rng.integers(0, 256, 20, dtype=np.uint8))
    start, stop = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    way = int(rng.integers(0, 7))
    if way == 0:
        return content[:stop]
    if way == 1:  # bytes anywhere
        data = np.frombuffer(content, np.uint8).copy()
        where = rng.integers(0, len(data), int(rng.integers(1, 9)))
        data[where] = rng.choice([0, 1, 127, 128, 255, int(rng.integers(256))], len(where))
        return data.tobytes()
    if way == 2:  # bits in the head, where sizes and types stand
        data = np.frombuffer(content, np.uint8).copy()
        where = rng.integers(0, min(len(data), 300), 3)
        data[where] ^= (1 << rng.integers(0, 8, 3)).astype(np.uint8)
        return data.tobytes()
    if way == 3:  # or in the foot, where directories stand
        data = np.frombuffer(content, np.uint8).copy()
        where = len(data) - 1 - rng.integers(0, min(len(data), 300), 3)
        data[where] ^= (1 << rng.integers(0, 8, 3)).astype(np.uint8)
        return data.tobytes()
    if way == 4:
        return content[:start] + bytes(min(stop - start, 500)) + content[start + min(stop - start, 500):]
    if way == 5:
        return content[:start] + content[stop:]
    return content[:stop] + content[start:]


def _text_damage(content: bytes, rng: np.random.Generator) -> bytes:
    way = int(rng.integers(0, 6))
    lines = content.splitlines(keepends=True)
    if way <= 2 and (tokens := list(_TOKEN.finditer(content))):
        one = tokens[int(rng.integers(len(tokens)))]
        return content[:one.start()] + _STRANGE[int(rng.integers(len(_STRANGE)))] + content[one.end():]
    if way == 3 and lines:
        del lines[int(rng.integers(len(lines)))]
    elif way == 4 and lines:
        lines.insert(int(rng.integers(len(lines))), lines[int(rng.integers(len(lines)))])
    elif lines:
        here, there = rng.integers(0, len(lines), 2)
        lines[here], lines[there] = lines[there], lines[here]
    return b"".join(lines)


def _strange_arrays(kind: str, rng: np.random.Generator, folder: Path) -> bytes | None:
    """The file with arrays of other shapes, types and numbers; None where the format cannot hold them."""
    arrays: dict[str, Any] = dict(ARRAYS)
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(list(arrays)))
        one = np.atleast_1d(arrays[name])
        way = int(rng.integers(0, 10))
        if way == 0:
            arrays[name] = one.T if one.ndim == 2 else one[:, None, None]
        elif way == 1:
            arrays[name] = one[:int(rng.integers(0, 4))]
        elif way == 2 and one.dtype.kind == "f" and one.size:
            one = one.copy()
            one.flat[int(rng.integers(one.size))] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e300, 5e-324])
            arrays[name] = one
        elif way == 3 and one.dtype.kind == "f":
            kinds = ("i1", "u8", "f2", "f4", "c16", "?", "S5", "U3", "M8[ns]", ">f8")
            with np.errstate(all="ignore"):
                arrays[name] = one.astype("i8").astype("M8[ns]") if (to := str(rng.choice(kinds))) == "M8[ns]" \
                    else one.astype(to)
        elif way == 4:
            del arrays[name]
        elif way == 5:
            arrays[str(rng.choice(["", "q", "torque", "joints", "ü", "time2", "x/y", "q#1"]))] = one
        elif way == 6:
            arrays[name] = np.float64(rng.choice([0.0, np.nan, 1e308]))
        elif way == 7:
            arrays[name] = np.zeros((0, 2)) if one.ndim == 2 else np.zeros(0)
        elif way == 8:
            arrays["joints"] = rng.choice([np.array(["a", "a"]), np.array(["é", ""])])
        else:
            arrays[name] = one[::-1]
    try:
        return array_file(kind, arrays, folder)
    except Exception:  # each format has its own ways to say no
        return None
