"""Methods of dataclasses that are compiled at their first use."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from types import FunctionType
from typing import Any
from unittest import mock

import pytest

from dynid.cli import lazy_dataclasses

pytestmark = pytest.mark.skipif(not hasattr(dataclasses, "_create_fn"),
                                reason="this Python compiles all methods of a class at once")


def defined() -> dict[str, type[Any]]:
    """Some dataclasses, defined in the way of the moment."""
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: float
        y: float = 2.0
        tags: list[str] = dataclasses.field(default_factory=list, compare=False, repr=False)

    @dataclasses.dataclass(frozen=True)
    class Placed(Point):
        """A point with a name."""

        name: str = ""

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name or "origin")

    @dataclasses.dataclass(order=True, slots=True)
    class Slotted:
        x: int
        inner: Any = None

    return {"Point": Point, "Placed": Placed, "Slotted": Slotted}


@pytest.fixture
def lazy() -> dict[str, type[Any]]:
    with mock.patch.object(dataclasses, "_create_fn", getattr(dataclasses, "_create_fn")):  # noqa: B009
        lazy_dataclasses.compile_methods_at_first_use()
        lazy_dataclasses.compile_methods_at_first_use()  # a second call changes nothing
        return defined()


def test_methods_are_compiled_when_they_are_used(lazy: dict[str, type[Any]]) -> None:
    placed = lazy["Placed"]  # with a docstring: the other one is made from the signature of `__init__`
    assert not isinstance(vars(placed)["__init__"], FunctionType)
    assert not isinstance(vars(placed)["__eq__"], FunctionType)
    assert placed(1.0) == placed(1.0)
    assert isinstance(vars(placed)["__init__"], FunctionType)
    assert isinstance(vars(placed)["__eq__"], FunctionType)
    assert not isinstance(vars(placed)["__hash__"], FunctionType)


def test_classes_behave_as_those_of_the_standard_library(lazy: dict[str, type[Any]]) -> None:
    for name, plain in defined().items():
        one = lazy[name]
        assert inspect.signature(one) == inspect.signature(plain)
        assert one.__doc__ == plain.__doc__
        a, b = one(3), plain(3)
        assert repr(a) == repr(b)
        assert dataclasses.asdict(a) == dataclasses.asdict(b)
        assert dataclasses.replace(a, x=4) != a == copy.copy(a)
        for method in ("__init__", "__repr__", "__eq__"):
            assert getattr(one, method).__qualname__ == getattr(plain, method).__qualname__
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            one()
    a, b = lazy["Placed"](1.0, name="a"), lazy["Placed"](1.0, name="a")
    assert hash(a) == hash(b) and len({a, b}) == 1 and a != lazy["Point"](1.0)
    for change in (lambda: setattr(a, "x", 2.0), lambda: delattr(a, "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    slotted = lazy["Slotted"]
    assert slotted(1) < slotted(2) and slotted.__hash__ is None
    ring = slotted(1)
    ring.inner = ring
    assert repr(ring).endswith("Slotted(x=1, inner=...)")


def test_results_can_be_sent_to_other_processes() -> None:
    """The classes of a command's process and of a plain one read each other's pickles."""
    made = ("from dynid.cli.lazy_dataclasses import compile_methods_at_first_use as lazily; lazily(); "
            "import pickle, sys; from dynid.findings import Note; "
            "sys.stdout.buffer.write(pickle.dumps(Note('a-code', 'a sentence')))")
    from dynid.findings import Note

    found = subprocess.run([sys.executable, "-c", made], check=True, capture_output=True).stdout
    assert pickle.loads(found) == Note("a-code", "a sentence")
