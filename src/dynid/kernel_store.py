"""Compiled kernels that are loaded without numba.

Importing numba and loading the kernels of its cache takes longer than identifying a robot. The first call of a kernel
therefore stores its machine code as an object file next to numba's cache, and later processes load that file with LLVM
only. Numba is imported only if no stored file fits, or for types of arguments or results that cannot be stored.

A file fits if its kernel has the same sources, argument types, processor and versions of numba and LLVM. The code in a
file calls only functions of the C library. Both conditions are checked before a file is loaded.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import json
import os
import struct
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.kernel_cache import VARIABLE, cache_folder, compile_lock, forgive_unkept_kernels, note_unkept_kernel
from dynid.kernel_code import (
    CURVE_WRAPPER,
    FIRST_ARGUMENT,
    HEADER_OF_NUMBA,
    declared,
    loaded_libraries,
    loader,
    make_independent,
    need_numba,
    processor,
)

SUFFIX = ".kernel"
_SOURCES_OF_CALLED_FUNCTIONS = ("dynamics", "model", "simulation")  # folders of functions that kernels call
# Struct formats of stored kernels' results, in the first 16 bytes of a packed call.
_RESULT_FORMATS = {"none": "", "bool": "?", "int64": "q", "float64": "d", "UniTuple(int64 x 2)": "2q"}
_STATUS_OK = (0, -2)  # numba's status codes of functions that return, with and without a value
# Calls of one kernel after which numba's own call, some 20 us faster, is used: if numba is loaded already, and if it is
# not, which takes half a second.
_CALLS_UNTIL_NUMBA, _CALLS_UNTIL_NUMBA_IS_LOADED = 2_000, 100_000

_lock = threading.RLock()  # only one thread at a time loads a kernel
_hooks: list[Callable[[], object]] = []
_is_numba_ready = False


class Kernel:
    """A function that is compiled by numba when it is first called, or loaded from the file of an earlier compilation.

    Attributes:
        py_func: The function in Python.
        targetoptions: Options of `numba.njit`, under the name by which numba finds `inline` in a called kernel.
        is_storable: Whether to try to store the machine code. Code that needs numba to run is not storable, and the
            attempt takes as long as half a compilation.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], is_storable: bool = True) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.targetoptions, self.is_storable = function, options, is_storable
        self._runs: dict[tuple[Any, ...], Callable[[list[Any], tuple[Any, ...]], Any]] = {}
        self._calls, self._is_left_to_numba = 0, False

    @cached_property
    def dispatcher(self) -> Any:
        """Return the kernel as a function that numba compiled itself."""
        return load_numba().njit(**self.targetoptions)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        """Return the numba type of this kernel, which numba needs if another kernel calls it."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        if self._is_left_to_numba:
            return self.dispatcher(*arguments)
        self._calls += 1
        if self._calls > (_CALLS_UNTIL_NUMBA if _is_numba_ready else _CALLS_UNTIL_NUMBA_IS_LOADED):
            self._is_left_to_numba = True
            self._compile_by_numba(arguments)
        words: list[Any] = []
        try:
            kinds = tuple([_flatten(words, argument) for argument in arguments])
        except TypeError:
            self._is_left_to_numba = True
            self._compile_by_numba(arguments)
            return self.dispatcher(*arguments)
        run = self._runs.get(kinds)
        if run is None:
            with _lock:
                run = self._runs.get(kinds) or self._first_run(kinds, words, arguments)
                self._runs[kinds] = run
        return run(words, arguments)

    def bound(self, *arguments: Any) -> Callable[..., Any]:
        """Return a function of the remaining integer arguments that calls the kernel with the given first arguments.

        The given arrays are flattened once, which takes longer than a call, and must not be resized.
        """
        flat: list[Any] = []
        kinds = tuple([_flatten(flat, argument) for argument in arguments])
        packed: list[Callable[..., Any]] = []

        def call(*last: int) -> Any:
            if not packed:
                run = self._runs.get((*kinds, *("int",) * len(last)))
                if not isinstance(run, _PackedCall):
                    return self(*arguments, *last)
                packed.append(run.bound(flat, arguments, len(last)))
            return packed[0](*last)

        return call

    def _first_run(self, kinds: tuple[Any, ...], words: list[Any], arguments: tuple[Any, ...]) -> Any:
        """Return the compiled function for given argument types: from a file, or compiled by numba and stored."""
        file = _file(self.py_func, kinds) if self.is_storable and os.name == "posix" else None
        found = _read(file, self._key) if file else None
        if file and found is None:
            types = tuple(map(load_numba().typeof, arguments))
            with compile_lock(file.name):
                found = _read(file, self._key) or _compile(file, self._key, self.dispatcher, types)
        if found and found[0]:
            return _PackedCall(self, *found, words)
        self._compile_by_numba(arguments)
        self._is_left_to_numba = not self.is_storable
        return lambda words, arguments: self.dispatcher(*arguments)

    def _compile_by_numba(self, arguments: tuple[Any, ...]) -> None:
        """Let numba compile the kernel for these arguments, or load it from its cache, one process at a time."""
        with compile_lock(self.py_func.__name__):
            self.dispatcher.compile(tuple(map(self.dispatcher.typeof_pyval, arguments)))

    @cached_property
    def _key(self) -> str:
        return _key(self.py_func)


class _PackedCall:
    """Stored code of a kernel, called with one pointer to a block of its result, error and flattened arguments."""

    def __init__(self, kernel: Kernel, address: int, result: str, words: list[Any]) -> None:
        self.kernel, self.format = kernel, _RESULT_FORMATS[result]
        self.block = struct.Struct(f"{FIRST_ARGUMENT}q" + "".join("d" if isinstance(word, float) else "q"
                                                                   for word in words))
        self.code = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)

    def __call__(self, words: list[Any], arguments: tuple[Any, ...]) -> Any:
        block = bytearray(self.block.size)
        self.block.pack_into(block, 0, 0, 0, 0, *words)
        if self.code(ctypes.addressof(ctypes.c_char.from_buffer(block))) not in _STATUS_OK:
            return self.kernel.dispatcher(*arguments)  # raises the error of the kernel
        return self._result(block)

    def bound(self, words: list[Any], arguments: tuple[Any, ...], count: int) -> Callable[..., Any]:
        """Return a function of the last `count` kernel arguments, which are integers; not thread-safe."""
        block = bytearray(self.block.size)
        self.block.pack_into(block, 0, 0, 0, 0, *words, *(0,) * count)
        address = ctypes.addressof(ctypes.c_char.from_buffer(block))
        put, start, code = struct.Struct(f"{count}q").pack_into, self.block.size - 8 * count, self.code

        def call(*last: int) -> Any:
            put(block, start, *last)
            if code(address) not in _STATUS_OK:
                return self.kernel.dispatcher(*arguments, *last)
            return self._result(block)

        return call

    def _result(self, block: bytearray) -> Any:
        if not self.format:
            return None
        found = struct.unpack_from(self.format, block)
        return found if len(found) > 1 else found[0]


def njit(*, is_storable: bool = True, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like `numba.njit`, without loading numba: the decorated function is a `Kernel`."""
    return lambda function: Kernel(function, options, is_storable)


def curve_address(function: Callable[..., Any], signature: str, options: dict[str, Any]) -> int | None:
    """Return the address of a compiled function f(q, dq, values) -> torque from an earlier process.

    Args:
        function: The function that `numba.cfunc` would compile.
        signature: Types of the function in numba's notation.
        options: Options of `numba.cfunc`.

    Returns:
        The address, or None if numba has to compile; the code is then stored for later processes.
    """
    if os.name != "posix" or not function.__module__.startswith("dynid.") or function.__closure__:
        return None  # the code of a user's function may depend on data that are not in the key
    with _lock:
        file = _file(function, (signature,))
        found = _read(file, _key(function))
        if found is None:
            numba = load_numba()
            types = numba.core.sigutils.normalize_signature(signature)[0]
            with compile_lock(file.name):
                found = _read(file, _key(function)) or _compile(
                    file, _key(function), numba.njit(**options)(function), types, CURVE_WRAPPER)
        return found[0] or None


def load_numba() -> Any:
    """Import numba and call the functions of `when_numba_is_loaded`."""
    global _is_numba_ready
    with _lock:
        import numba

        if not _is_numba_ready:
            _is_numba_ready = True
            forgive_unkept_kernels()
            for hook in _hooks:
                hook()
        return numba


def when_numba_is_loaded(hook: Callable[[], object]) -> Callable[[], object]:
    """Register a function that is called when numba is loaded, or at once if numba is loaded already (decorator)."""
    with _lock:
        if "numba" in sys.modules:
            load_numba()
            hook()
        else:
            _hooks.append(hook)
    return hook


def _flatten(words: list[Any], value: Any) -> Any:
    """Append to `words` the numbers by which numba passes an argument, and return the kind of the argument.

    Raises:
        TypeError: Arguments of this kind are not supported and are passed to numba.
    """
    if type(value) is np.ndarray:
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        is_writeable = flags.writeable
        # Reading the address from the buffer is five times faster than `value.ctypes`, but needs such arrays.
        has_buffer = layout == "C" and is_writeable and value.size and value.dtype.kind in "bfiu"
        address = ctypes.addressof(ctypes.c_char.from_buffer(value.data)) if has_buffer else value.ctypes.data
        words += (0, 0, value.size, value.itemsize, address, *value.shape, *value.strides)
        return value.dtype.str, value.ndim, layout, is_writeable, flags.aligned
    if isinstance(value, tuple):
        return type(value).__name__, *[_flatten(words, item) for item in value]
    for kind in (bool, int, float):
        if type(value) is kind or (kind is not bool and type(value) is (np.int64 if kind is int else np.float64)):
            words.append(kind(value))
            return kind.__name__
    raise TypeError


def _key(function: Callable[..., Any]) -> str:
    """Return a text that identifies all that the machine code of a function depends on, except argument types."""
    own = os.stat(function.__code__.co_filename)
    return f"{own.st_size} {own.st_mtime_ns} {function.__code__.co_firstlineno} {_common_key()}"


def _file(function: Callable[..., Any], kinds: tuple[Any, ...]) -> Path:
    """Return the path of the stored machine code of a function for given argument types."""
    name = hashlib.sha256(repr((kinds, processor())).encode()).hexdigest()[:16]
    return Path(cache_folder(), f"{function.__module__}.{function.__name__}-{name}{SUFFIX}")


def _read(file: Path, key: str) -> tuple[int, str] | None:
    """Return address and result type of the machine code in a file; None if the file is damaged or its key differs."""
    try:
        head, _, code = file.read_bytes().partition(b"\n")
        facts = json.loads(head)
        if facts["key"] != key or facts["digest"] != hashlib.sha256(code).hexdigest():
            return None
    except (OSError, ValueError, KeyError):
        return None
    return _load(facts, code)


def _load(facts: dict[str, Any], code: bytes) -> tuple[int, str] | None:
    """Return the address of machine code and the type of its result; None if the code calls a missing function."""
    if not code:
        return 0, facts["result"]
    if not all(hasattr(loaded_libraries(), name) for name in facts["calls"]):
        return None
    import llvmlite.binding as llvm

    engine = loader()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine.get_function_address(facts["symbol"]), facts["result"]


def _compile(file: Path, key: str, dispatcher: Any, types: tuple[Any, ...], wrapper: str = "") -> tuple[int, str]:
    """Return address and result type of a compiled function; address 0 if only numba itself can run the function."""
    try:
        return _compiled_alone(file, key, dispatcher, types, wrapper)
    except (AttributeError, ImportError):
        return 0, ""


def _compiled_alone(file: Path, key: str, dispatcher: Any, types: tuple[Any, ...], wrapper: str) -> tuple[int, str]:
    """Compile a function for given types, write its machine code to a file, and return address and result type.

    Numba would also compile a Python interface and its own machine code, which doubles the time. Interface and machine
    code of numba are compiled only if they are used.

    Args:
        file: The file to write; a full disk leaves none.
        key: See `_key`.
        dispatcher: Numba's form of the function, with its options.
        types: Numba's types of the arguments.
        wrapper: LLVM code of a function {name} that calls {symbol}, whose address is returned; a packed call if empty.

    Returns:
        The address, 0 if the code needs numba to run, and the type of the result in numba's notation.
    """
    from numba.core import dispatcher as dispatchers
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime import nrtdynmod

    def without_wrappers(_: Any, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    compiler: Any = dispatchers
    # Compiler that ends with LLVM code, without wrappers.
    lowering_alone: Any = type("LoweringAlone", (compiler._FunctionCompiler,), {"_customize_flags": without_wrappers})
    with global_compiler_lock:
        compiled = lowering_alone(dispatcher.py_func, dispatcher.targetdescr, dispatcher.targetoptions,
                                  dispatcher.locals, dispatcher._compiler.pipeline_class).compile(types, None)
        library = compiled.library
        optimize, library._optimize_final_module = library._optimize_final_module, lambda: None
        library._finalize_final_module = lambda: None  # it would emit machine code
        library.finalize()
        inner, symbol, calls = compiled.fndesc.llvm_func_name, file.stem, declared(library._final_module)
        facts = {"key": key, "symbol": symbol, "result": str(compiled.signature.return_type), "calls": calls}
        if (facts["result"] not in _RESULT_FORMATS or str(nrtdynmod._meminfo_struct_type) != HEADER_OF_NUMBA
                or need_numba(calls)):
            return _stored(file, facts, b"")
        optimize()
    module, machine = library._final_module, library.codegen._tm
    make_independent(module, machine, inner, symbol, wrapper)
    facts["calls"] = declared(module)
    return _stored(file, facts, machine.emit_object(module)
                   if all(hasattr(loaded_libraries(), name) for name in facts["calls"]) else b"")


def _stored(file: Path, facts: dict[str, Any], code: bytes) -> tuple[int, str]:
    """Write machine code to a file, or a note that there is none, and return its address and the type of its result."""
    facts["digest"] = hashlib.sha256(code).hexdigest()
    _write(file, json.dumps(facts).encode() + b"\n" + code)
    return _load(facts, code) or (0, facts["result"])


def _write(file: Path, contents: bytes) -> None:
    """Write a file atomically; on a full disk the user gets a note instead of an error."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:  # on the same disk, and always deleted
            part = Path(folder, file.name)
            part.write_bytes(contents)
            os.replace(part, file)
    except OSError as problem:
        note_unkept_kernel(problem)


@lru_cache(maxsize=1)
def _common_key() -> str:
    """Return a digest of what the code of all kernels depends on: versions, numba's settings and called functions."""
    facts: list[object] = [sys.version, sorted((name, value) for name, value in os.environ.items()
                                               if name.startswith("NUMBA_") and name != VARIABLE)]
    for own in ("kernel_store.py", "kernel_code.py"):  # format of stored code
        found_own = os.stat(Path(__file__).with_name(own))
        facts.append((found_own.st_size, found_own.st_mtime_ns))
    for package in ("numba", "llvmlite"):
        found = importlib.util.find_spec(package)
        assert found is not None and found.origin is not None
        facts.append(Path(found.origin).with_name("_version.py").read_text(encoding="utf-8"))
    for folder in _SOURCES_OF_CALLED_FUNCTIONS:
        with os.scandir(Path(__file__).with_name(folder)) as entries:
            facts.extend(sorted((entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries
                                if entry.name.endswith(".py")))
    return hashlib.sha256(repr(facts).encode()).hexdigest()
