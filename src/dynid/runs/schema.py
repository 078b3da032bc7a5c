"""The JSON schema of a run file, for editors and other programs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from dynid.recording.mapping import Mapping
from dynid.recording.preparation import Preparation
from dynid.runs.settings import RunSettings
from dynid.version import __version__

_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def run_file_schema() -> dict[str, Any]:
    """Return the schema of a run file (JSON Schema, draft 2020-12), generated from the models that read it.

    [log] and [prepare] have the keys of `Mapping` and `Preparation`; a [[logs]] table also has those of [log].
    """
    schema = RunSettings.model_json_schema(ref_template="#/$defs/{model}")
    definitions = schema.setdefault("$defs", {})
    for name, kind in (("log", Mapping), ("prepare", Preparation)):
        schema["properties"][name] = _definition(kind, definitions)
    entry, mapping = definitions["LogSettings"], definitions["Mapping"]
    entry["properties"] = {**mapping["properties"], **entry["properties"]}
    entry["additionalProperties"] = False
    return {"$schema": _SCHEMA_DIALECT, **schema, "title": f"Run file of dynid {__version__}"}


def _definition(kind: type[BaseModel], definitions: dict[str, Any]) -> dict[str, str]:
    """Add the schema of a model to the definitions, and return a reference to it."""
    own = kind.model_json_schema(ref_template="#/$defs/{model}")
    definitions |= own.pop("$defs", {})
    own.pop("required", None)  # the [log] table may give what a [[logs]] table omits
    definitions[kind.__name__] = own
    return {"$ref": f"#/$defs/{kind.__name__}"}
