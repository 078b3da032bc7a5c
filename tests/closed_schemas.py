"""Outputs of commands against their schemas, with no key beyond the declared ones."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from dynid.cli.schema import command_schema


def closed(schema: Any) -> Any:
    """The schema with no key beyond the declared ones: an object without declared keys stays open."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if found.get("properties") and "type" in found:
        found["additionalProperties"] = False
    return found


def check_output(command: str, text: str) -> None:
    """Raise where what a command printed with --json is not what its schema states."""
    jsonschema.validate(json.loads(text), closed(command_schema(command)))
