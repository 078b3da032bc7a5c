"""What every command prints with --json has the form that `dynid schema COMMAND` states, and no key beyond it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from closed_schemas import check_output
from fuzz import inputs
from fuzz.commands import FAMILIES

from dynid.cli.main import COMMANDS
from dynid.cli.schema import FORMS, command_schema
from dynid.runs.identification import run
from dynid.runs.results import save
from dynid.runs.settings import ModelSettings, RunSettings

MOTOR = ("--actuator", "voltage", "--gain", "kp=8,32", "--gain", "gain=0.166", "--gain", "limit=0.97", "--gain",
         "vin=7.4", "--mass", "0.2,0.5", "--length", "0.15", "--arm-mass", "0.02", "--friction", "m1", "--duration",
         "20")
# The commands of the fuzz tests and further ones, in the folder of their inputs; `result` is a result there.
CALLS: dict[str, tuple[str, ...]] = {
    **{name: one.call for name, one in FAMILIES.items() if not name.startswith(("watch-", "inspect-xacro"))},
    **{name: FAMILIES[name].call for name in ("watch-file", "watch-payload")},
    "experiment": ("excite", "pendulum", *MOTOR, "-o", "servo", "--json"),
    "check-robot": ("check", "kuka-lwr4", "--json"),
    "inspect-log": ("inspect", "arm.urdf", "--log", "log.csv", "--json"),
    "identify-written": ("identify", "arm.urdf", "log.csv", "--method", "pc-wls", "--friction", "viscous,coulomb",
                         "--no-simulation", "-o", "written", "--json"),
    "export": ("export", "consistent", "-o", "simulator", "--for", "mjcf", "--json"),
    "payload-written": ("payload", "result", "other.csv", "--mass", "0.5+-0.01", "-o", "load", "--json"),
    **{name: (name, "--json") for name in ("robots", "methods", "presets", "plugins", "version", "bench", "reproduce")},
}
SLOW: dict[str, tuple[str, ...]] = {
    "demo": ("demo", "--json"),
    "warmup": ("warmup", "--json"),
    "identify-default": ("identify", "arm.urdf", "log.csv", "--json"),
    "identify-iv": ("identify", "arm.urdf", "log.csv", "--method", "iv", "--friction", "viscous,coulomb", "--json"),
    "essential": ("identify", "arm.urdf", "log.csv", "--set", "essential.threshold=5", "--method", "wls", "--json"),
    "draws": ("export", "consistent", "-o", "drawn", "--for", "mjcf", "--draws", "3", "--json"),
    "rounds": ("excite", "arm.urdf", "-o", "rounds", "--improve", "result", "--repeat", "1", "--record", "virtual",
               "--rounds", "1", "--duration", "8", "--json"),
    "study": ("compare", "arm3r", "--monte-carlo", "--methods", "wls", "--repetitions", "2", "--workers", "1",
              "--json"),
    "script": ("bench", "code-size", "--json"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    inputs.written(folder)
    settings = RunSettings(robot=str(folder / "arm.urdf"), logs=(str(folder / "log.csv"),), method="pc-wls",
                           model=ModelSettings(friction=("viscous",)), simulation={"run": False})
    save(run(settings), folder / "consistent", report=False)
    return folder


def check(dynid, call: tuple[str, ...]) -> None:
    found = dynid(*call)
    assert found.out.startswith("{"), found.err
    check_output(call[0], found.out)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_output_has_the_keys_and_types_of_its_schema(dynid, place, monkeypatch, call):
    monkeypatch.chdir(place)
    check(dynid, call)


@pytest.mark.slow
@pytest.mark.parametrize("call", SLOW.values(), ids=SLOW)
def test_a_slow_output_has_the_keys_and_types_of_its_schema(dynid, place, monkeypatch, call):
    monkeypatch.chdir(place)
    check(dynid, call)


def test_every_command_that_prints_json_has_a_schema_and_a_call():
    """`ros2` is called in tests/cli/test_ros2.py and `actuators` in tests/cli/test_actuator_logs.py."""
    import typer

    from dynid.cli.main import app
    group = typer.main.get_command(app)
    printing = {name for name in COMMANDS
                if any("--json" in one.opts for one in group.get_command(None, name).params)}
    assert printing == set(FORMS)
    assert printing - {call[0] for call in (*CALLS.values(), *SLOW.values())} == {"ros2", "actuators"}


@pytest.mark.parametrize("name", FORMS)
def test_a_schema_is_valid_and_printed(dynid, name):
    found = dynid("schema", name)
    jsonschema.Draft202012Validator.check_schema(json.loads(found.out))
    assert found.code == 0 and json.loads(found.out) == command_schema(name)


def test_an_unknown_schema_is_a_sentence(dynid):
    found = dynid("schema", "identiffy")
    assert found.code == 2 and found.error == "unknown-name"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all plain values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key)


@pytest.mark.parametrize("name", ["check", "simulate", "gains"])
def test_a_value_of_a_wrong_type_or_a_missing_key_is_refused(dynid, place, monkeypatch, name):
    monkeypatch.chdir(place)
    good, schema = json.loads(dynid(*CALLS[name]).out), command_schema(name)
    jsonschema.validate(good, schema)
    for path in leaves(good):
        bad = copy.deepcopy(good)
        inner = bad
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = {"wrong": "type"}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)
    for key in good:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({other: value for other, value in good.items() if other != key}, schema)
