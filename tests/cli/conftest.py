"""Run a command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from dynid.cli.main import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str
    error: str  # stable code of the error that ended the command, or nothing


@pytest.fixture
def dynid(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """dynid("inspect", "arm3r"): exit code, stdout and stderr, as a shell would see them 200 columns wide."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Outcome(int(left.value.code or 0), out, err, getattr(left.value.__context__, "code", ""))

    return call
