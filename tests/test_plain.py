"""Plain data for JSON: fields and properties of dataclasses, and the schema of what they write."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.output_fields import output_schema
from dynid.plain import PlainFields


@dataclass(frozen=True)
class Circle(PlainFields, also=("area",), without=("seen",)):
    radius: float
    seen: tuple[int, ...] = ()

    @property
    def area(self) -> float:
        return 3.0 * self.radius ** 2


@dataclass(frozen=True)
class Drawn(PlainFields):
    circle: Circle
    name: str


def test_properties_are_written_beside_the_fields_and_left_out_fields_are_not() -> None:
    assert Drawn(Circle(2.0, (1, 2)), "big").to_dict() == {"circle": {"radius": 2.0, "area": 12.0}, "name": "big"}
    assert Circle(float("inf")).to_dict() == {"radius": None, "area": None}


def test_the_schema_has_what_is_written() -> None:
    schema = output_schema([Drawn], "a drawing")
    number = {"type": ["number", "null"]}
    assert schema["$defs"]["Circle"]["properties"] == {"radius": number, "area": number}
    assert list(schema["properties"]) == ["circle", "name"]
