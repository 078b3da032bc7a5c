"""JSON schemas of outputs, generated from the field types that each writer declares.

A function or method that returns plain data for JSON declares its fields:

    @output_fields(code=str, joints=list[str], choice=Choice | None)
    def to_dict(self) -> dict[str, Any]: ...

A type is `str`, `int`, `float`, `bool`, `None`, `Any`, a list, a `dict[str, ...]`, a union of these, a class whose
`to_dict` declares its fields, or a `record`. `own_fields` takes the types of the class's own dataclass fields, for
writers that return `plain(vars(self))`. A class may be given by name, as in `array_of("module:Class")`: its module is
then imported for the schema only, and not by every command.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_Writer = TypeVar("_Writer", bound=Callable[..., Any])
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


@dataclass(frozen=True)
class Declaration:
    """Declared fields of a writer.

    Attributes:
        bases: Classes or writers whose fields are included.
        own: Whether the dataclass fields of the writer's class are included.
        without: Names of included fields to omit.
        optional: Names that an output may lack.
        fields: Types by name.
    """

    bases: tuple[Any, ...]
    own: bool
    without: frozenset[str]
    optional: frozenset[str]
    fields: Mapping[str, Any]


def output_fields(*bases: Any, own_fields: bool = False, without: Iterable[str] = (), optional: Iterable[str] = (),
                  **types_: Any) -> Callable[[_Writer], _Writer]:
    """Declare the fields of the object that a function returns, for the schema of the output.

    Args:
        bases: Classes or functions with a declaration, whose fields are included.
        own_fields: Whether the dataclass fields of the method's class are included, with numbers that may be null.
        without: Names of `bases` and own fields that the output lacks.
        optional: Names that are not always in the output.
        types_: Types by name. A trailing underscore of a name is dropped (`is_` for `is`).
    """
    named = {name.removesuffix("_"): kind for name, kind in types_.items()}
    declared = Declaration(bases, own_fields, frozenset(without), frozenset(optional), named)

    def mark(writer: _Writer) -> _Writer:
        setattr(writer, "declaration", declared)  # noqa: B010
        return writer
    return mark


def record(name: str, /, *bases: Any, optional: Iterable[str] = (), **types_: Any) -> Any:
    """Return a type for an object inside an output that no class writes; name: name of its definition in the schema."""
    @output_fields(*bases, optional=optional, **types_)
    def to_dict(self: Any) -> dict[str, Any]:
        return dict(vars(self))
    return type(name, (), {"to_dict": to_dict})


def array_of(kind: Any) -> Any:
    """Return the type of a list of records, which type checkers would refuse as `list[...]`."""
    return list[kind]


def map_of(kind: Any) -> Any:
    """Return the type of an object with any keys, whose values are records."""
    return dict[str, kind]


def output_schema(forms: Sequence[Any], title: str) -> dict[str, Any]:
    """Return the schema (JSON Schema, draft 2020-12) of an output that has one of several forms.

    Later versions may add keys, so an object may have more than the declared ones.
    """
    definitions: dict[str, Any] = {}
    made = [_object(one, definitions) for one in forms]
    head = made[0] if len(made) == 1 else {"anyOf": made}
    return {"$schema": DIALECT, "title": title, **head, "$defs": dict(sorted(definitions.items()))}


def _declaration(kind: Any) -> Declaration | None:
    return getattr(getattr(kind, "to_dict", kind), "declaration", None)


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    found, optional = _fields(kind)
    properties = {name: _schema(one, definitions) for name, one in found.items()}
    return {"type": "object", "properties": properties, "required": [name for name in found if name not in optional]}


def _fields(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the types of all fields by name, those of bases first, and the names of optional fields."""
    declared = _declaration(kind)
    found: dict[str, Any] = {}
    optional: set[str] = set()
    if declared is None:
        return _own_fields(kind), optional
    for base in declared.bases:
        theirs, missing = _fields(base)
        found |= theirs
        optional |= missing
    if declared.own:
        found |= _own_fields(kind)
    found = {name: one for name, one in found.items() if name not in declared.without} | dict(declared.fields)
    return found, optional | declared.optional


def _own_fields(kind: Any) -> dict[str, Any]:
    """Return the types of dataclass fields as `plain` writes them: a number that is not finite becomes null. The fields
    of `PlainFields` include the properties that it writes."""
    hints, without = get_type_hints(kind), getattr(kind, "not_written", ())
    own = {one.name: hints[one.name] for one in fields(kind) if one.name not in without}
    more = {name: get_type_hints(getattr(kind, name).fget)["return"] for name in getattr(kind, "also_written", ())}
    return {name: _nullable(one) for name, one in (own | more).items()}


def _nullable(kind: Any) -> Any:
    if kind is float:
        return float | None
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple):
        inner = [_nullable(one) for one in arguments if one is not Ellipsis]
        return array_of(_union(inner))
    if origin in (Union, types.UnionType):
        return _union([_nullable(one) for one in arguments])
    if origin in (dict, Mapping):
        return map_of(_nullable(arguments[1]))
    return kind


def _union(kinds: Sequence[Any]) -> Any:
    return Union[tuple(dict.fromkeys(kinds))] if kinds else Any  # noqa: UP007


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, str):
        module, _, name = kind.partition(":")
        kind = getattr(import_module(module), name)
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is None:
        kind = type(None)
    if kind is Any or kind is object:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin in (Union, types.UnionType):
        return _any_of([_schema(one, definitions) for one in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple):
        items = [_schema(one, definitions) for one in arguments if one is not Ellipsis]
        return {"type": "array", "items": _any_of(items)}
    if getattr(origin or kind, "__name__", "") == "ndarray":
        return {"type": "array"}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string"}
    if _declaration(kind) is None and not is_dataclass(kind):
        raise TypeError(f"{kind} declares no output fields")
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _object(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _any_of(choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the union of several schemas, with plain types in one list."""
    different = [one for k, one in enumerate(choices) if one not in choices[:k]]
    if len(different) == 1:
        return different[0]
    if all(list(one) == ["type"] for one in different):
        return {"type": [one["type"] for one in different]}
    return {"anyOf": different}
