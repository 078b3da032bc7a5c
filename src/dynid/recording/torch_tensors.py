"""Reader of tensors saved by PyTorch, without PyTorch: a zip archive of one pickle and the bytes of each tensor.

The pickle is never unpickled, because that could run arbitrary code. Its instructions are interpreted here, and only
those that build dictionaries, lists and tensors are allowed.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import open_file
from dynid.recording.arrays import Arrays
from dynid.recording.source import Values
from dynid.recording.unpacking import Measure

MAX_PICKLE_BYTES = 1 << 20  # size of the description of the tensors; that of a log is below a thousand
MAX_NESTED_TABLES = 8  # depth of dictionaries in dictionaries
_MOST_INSTRUCTIONS = 200_000  # of the pickle; a tensor takes about 25
_LONGEST_NAME = 1000  # characters
_MOST_ENTRIES = 10_000  # of all tables; a pickle can refer to one table many times
_TORCH_TYPES = {"DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2", "LongStorage": "<i8",
                "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1",
                "BoolStorage": "?"}
_REBUILD_TENSOR = ("torch._utils", "_rebuild_tensor_v2")
_ORDERED_TABLE = ("collections", "OrderedDict")
LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # start of files written by PyTorch before version 1.6
SAVE_REMEDY = "save the log as CSV, or with numpy.savez(FILE, time=..., position=..., torque=...)"


@dataclass(frozen=True)
class _Storage:
    """The bytes of one or several tensors: name of the member in the archive, and type of its numbers."""

    member: str
    dtype: str


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage: offset, shape and strides in numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Name:
    """A function or class named in the pickle. It is compared with a list of known names and never imported."""

    module: str
    name: str


def legacy_words(start: bytes) -> str:
    """Return a remark for an error message on a file from an old version of PyTorch, by its first bytes; or ""."""
    return " that PyTorch wrote in its format before version 1.6" if start.startswith(LEGACY_START[:len(start)]) else ""


def is_torch_archive(path: Path) -> bool:
    """Whether a zip archive contains the description that torch.save writes."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def open_torch(path: Path) -> Arrays:
    """Return the tensors of a dictionary written by torch.save, by key; nested keys are joined by dots."""
    measure = Measure(path)
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            pickled = next(name for name in names if name.endswith("/data.pkl") or name == "data.pkl")
            root = pickled.removesuffix("data.pkl")
            if archive.getinfo(pickled).file_size > MAX_PICKLE_BYTES:
                raise RecordingError(f"{path}: the description of its tensors is larger than that of any "
                                     f"log", SAVE_REMEDY)
            order = f"{root}byteorder"
            if order in names and _content(archive, order, measure).strip() != b"little":
                raise RecordingError(f"{path}: was written on a big-endian machine, which is not read", SAVE_REMEDY)
            described = _interpreted(_content(archive, pickled, measure), path)
            tensors = dict(_named(described, path))
            if not tensors:
                raise RecordingError(f"{path}: contains no tensor", SAVE_REMEDY)
            members = {tensor.storage.member for tensor in tensors.values()}
            missing = sorted(members - {name.removeprefix(f"{root}data/") for name in names})
            if missing:
                raise RecordingError(f"{path}: has no data of tensor storage '{missing[0][:40]}'; the file is damaged",
                                     "copy it again from where it was recorded")
            held = {name: _content(archive, f"{root}data/{name}", measure) for name in sorted(members)}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as problem:
        raise RecordingError(f"{path}: the archive is damaged and cannot be read: {problem}",
                             "copy it again from where it was recorded") from None
    return Arrays(path, {name: _array(tensor, held[tensor.storage.member], name, path, measure)
                         for name, tensor in tensors.items()})


def _content(archive: zipfile.ZipFile, name: str, measure: Measure) -> bytes:
    """Return the unpacked bytes of an archive member; their number is limited while unpacking."""
    parts = []
    with archive.open(name) as file:
        while part := file.read(1 << 20):
            measure.add(len(part))
            parts.append(part)
    return b"".join(parts)


def _array(tensor: _Tensor, content: bytes, name: str, path: Path, measure: Measure) -> Values:
    """Return the numbers of a tensor from the bytes of its storage; several tensors can be views of one storage, so
    each copy is counted before it is made."""
    dtype = np.dtype(tensor.storage.dtype)
    numbers = np.frombuffer(content, dtype=dtype, count=len(content) // dtype.itemsize)
    last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True))
    count = math.prod(tensor.shape)
    inside = count <= len(numbers) and (not count or last < len(numbers))
    if min((tensor.offset, *tensor.shape, *tensor.strides)) < 0 or not inside:
        raise RecordingError(f"{path}: tensor '{name[:40]}' of shape {tensor.shape} lies outside of its data; the file "
                             "is damaged", "copy it again from where it was recorded")
    kind = np.dtype(float) if dtype.kind == "f" else dtype
    measure.add(count * kind.itemsize)
    if not count:
        return np.zeros(tensor.shape, kind)
    view = np.lib.stride_tricks.as_strided(numbers[tensor.offset:], tensor.shape,
                                           [step * dtype.itemsize for step in tensor.strides])
    return view.astype(kind)


def _named(described: Any, path: Path) -> Iterator[tuple[str, _Tensor]]:
    """Yield the tensors of nested tables with their names."""
    remaining, entries = [("", described, 0)], 0
    while remaining:
        name, value, depth = remaining.pop()
        if isinstance(value, _Tensor):
            yield name or "values", value
        elif isinstance(value, dict):
            entries += len(value)
            if depth > MAX_NESTED_TABLES or entries > _MOST_ENTRIES or len(name) > _LONGEST_NAME:
                raise RecordingError(f"{path}: has tables nested more than {MAX_NESTED_TABLES} deep, more than "
                                     f"{_MOST_ENTRIES} entries or very long names, which no log has", SAVE_REMEDY)
            remaining += [(f"{name}.{key}" if name else key, inner, depth + 1)
                          for key, inner in reversed(value.items()) if isinstance(key, str)]


def _interpreted(pickled: bytes, path: Path) -> Any:
    """Return the object described by a pickle, if it consists of tables, lists, numbers, strings and tensors."""
    import pickletools
    machine = _PickleMachine(path)
    try:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(io.BytesIO(pickled))):
            if count > _MOST_INSTRUCTIONS:
                raise RecordingError(f"{path}: the description of its tensors has more than {_MOST_INSTRUCTIONS} "
                                     "instructions, more than that of any log", SAVE_REMEDY)
            if instruction.name == "STOP":
                return machine.stack.pop()
            machine.do(instruction.name, argument)
    except (ValueError, IndexError, KeyError, TypeError, UnicodeDecodeError, AttributeError) as problem:
        raise RecordingError(f"{path}: the description of its tensors is damaged: {problem}", SAVE_REMEDY) from None
    raise RecordingError(f"{path}: the description of its tensors is cut off", SAVE_REMEDY)


def _text(value: Any) -> str:
    """Return a name in the pickle; anything else could be nested, and its text of any length."""
    if not isinstance(value, str):
        raise ValueError("a name of the description is not a text")
    return value


class _PickleMachine:
    """Interpreter with stack and memory for the few pickle instructions that torch.save uses for tables of tensors.

    Attributes:
        path: the file, for messages.
        stack: values that are being assembled.
        marks: lengths of the stack at the marks that are not used yet, the last one innermost.
        memory: values that the pickle refers to again, by number.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def do(self, name: str, argument: Any) -> None:
        """Execute one instruction; raise an error if it is not a known one."""
        if name in ("PROTO", "FRAME"):
            return
        if name == "MARK":
            self.marks.append(len(self.stack))
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memory[len(self.memory) if argument is None else argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memory[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            self.stack[-count:] = [tuple(self.stack[-count:])]
        elif name == "TUPLE":
            self.stack.append(tuple(self._since_mark()))
        elif name in ("SETITEM", "SETITEMS"):
            items = self._since_mark() if name == "SETITEMS" else [self.stack.pop() for _ in range(2)][::-1]
            table = self.stack[-1]
            if not isinstance(table, dict):
                raise ValueError("a table is expected")
            if not all(isinstance(key, str | int | float) for key in items[::2]):
                raise ValueError("the key of a table is neither a word nor a number")  # hash of tuples recurses
            table.update(zip(items[::2], items[1::2], strict=True))
        elif name in ("APPEND", "APPENDS"):
            items = self._since_mark() if name == "APPENDS" else [self.stack.pop()]
            if not isinstance(self.stack[-1], list):
                raise ValueError("a list is expected")
            self.stack[-1].extend(items)
        elif name == "GLOBAL":
            self.stack.append(_Name(*argument.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            word, module = self.stack.pop(), self.stack.pop()
            self.stack.append(_Name(_text(module), _text(word)))
        elif name == "BINPERSID":
            self.stack.append(self._storage(self.stack.pop()))
        elif name == "REDUCE":
            arguments, function = self.stack.pop(), self.stack.pop()
            self.stack.append(self._made(function, arguments))
        else:
            raise RecordingError(f"{self.path}: contains more than tables of tensors (pickle instruction {name}), "
                                 "which is not read, because it could run a program", SAVE_REMEDY)

    def _since_mark(self) -> list[Any]:
        place = self.marks.pop()
        found = self.stack[place:]
        del self.stack[place:]
        return found

    def _storage(self, identity: Any) -> _Storage:
        """Return the storage that a persistent id ("storage", type, member, device, count) describes."""
        kind, member = identity[1], identity[2]
        dtype = _TORCH_TYPES.get(kind.name) if isinstance(kind, _Name) and kind.module == "torch" else None
        if identity[0] != "storage" or dtype is None:
            raise RecordingError(f"{self.path}: contains tensors of a type that is not read", SAVE_REMEDY)
        return _Storage(_text(member), dtype)

    def _made(self, function: Any, arguments: Any) -> Any:
        if isinstance(function, _Name) and (function.module, function.name) == _ORDERED_TABLE and arguments == ():
            return {}
        if not isinstance(function, _Name) or (function.module, function.name) != _REBUILD_TENSOR:
            called = f"{function.module}.{function.name}" if isinstance(function, _Name) else "an unknown function"
            raise RecordingError(f"{self.path}: asks for a call of {called[:80]}, which is not made, because it could "
                                 "run a program", SAVE_REMEDY)
        storage, offset, shape, strides = arguments[:4]
        numbers = [offset, *shape, *strides]
        if not isinstance(storage, _Storage) or not all(type(one) is int for one in numbers) \
                or len(shape) != len(strides) or len(shape) > 3:
            raise ValueError("a tensor of the file has no valid shape")
        return _Tensor(storage, offset, tuple(shape), tuple(strides))


_CONSTANTS: Mapping[str, Callable[[], Any]] = {
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "NONE": lambda: None,
    "NEWTRUE": lambda: True, "NEWFALSE": lambda: False}
_LITERALS = {"BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
