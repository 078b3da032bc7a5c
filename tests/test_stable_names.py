"""What other programs rely on changes only together with the stored list and a line in CHANGELOG.md."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from stable_names import STORED, stable_names

from dynid.runs.schema import run_file_schema

EXAMPLE = Path(__file__).parents[1] / "docs" / "example" / "run.toml"


def test_names_are_those_of_the_stored_list() -> None:
    stored, found = set(STORED.read_text(encoding="utf-8").split("\n")) - {""}, set(stable_names())
    assert found == stored, (
        f"gone: {sorted(stored - found)}; new: {sorted(found - stored)}. Write a line in CHANGELOG.md that says so, "
        "then run python tests/stable_names.py")


def test_the_list_has_every_kind_of_name() -> None:
    names = stable_names()
    for one in ("command identify --method", "run-file log.position", "run-file logs.file", "run-file model.friction",
                "json identify relative_error", "json Finding.code",
                "finding residuals-autocorrelated", "python dynid.identify", "python dynid.terms.Coulomb"):
        assert one in names


def test_the_schema_accepts_the_example_and_is_valid() -> None:
    schema = json.loads(json.dumps(run_file_schema(), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(tomllib.loads(EXAMPLE.read_text(encoding="utf-8")), schema)


@pytest.mark.parametrize("change", [{"methood": "wls"}, {"log": {"positions": "q"}}, {"blocks": 0},
                                    {"logs": [{"file": "a.csv", "unitt": "deg"}]}])
def test_the_schema_refuses_what_a_run_refuses(change: dict[str, object]) -> None:
    settings = {**tomllib.loads(EXAMPLE.read_text(encoding="utf-8")), **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(settings, run_file_schema())
