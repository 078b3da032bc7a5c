"""Errors are asserted by their class, their stable code and the names in their message, so that wording can improve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dynid.errors import DynidError


@contextmanager
def refused(kind: type[DynidError], code: str, *names: str) -> Iterator[pytest.ExceptionInfo[DynidError]]:
    """The block raises an error of exactly this class and code, whose message holds all of these names or numbers."""
    with pytest.raises(kind) as found:
        yield found
    assert (type(found.value), found.value.code) == (kind, code)
    assert [name for name in names if name not in str(found.value)] == []
