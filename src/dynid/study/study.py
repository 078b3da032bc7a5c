"""Settings of a study, as one TOML file or as Python arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from dynid.runs import ModelSettings
from dynid.runs.arguments import source_kind
from dynid.runs.settings import SettingsFile, moved_path

NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Each = NotNegative | tuple[NotNegative, ...]  # one number, or one per joint


class Noise(BaseModel):
    """The [noise] table. Resolution and standard deviations are one number or one per joint.

    Attributes:
        encoder: resolution, rad or m per count, 0 for none; each repetition starts at another fraction of a count.
        position: standard deviation of white noise inside the loop, rad or m.
        torque: standard deviation of white noise, N m or N; None: a hundredth of each joint's effective torque.
        factors: noise levels; each factor multiplies the encoder resolution and both standard deviations.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")

    encoder: Each = 5e-5
    position: Each = 0.0
    torque: Each | None = None
    factors: tuple[NotNegative, ...] = Field(default=(1.0,), min_length=1)


class Contestant(BaseModel):
    """One of the [[methods]]: a method with its options and its own preparation.

    Attributes:
        name, options: name of the method, and its options.
        label: its name in tables; default: the name of the method.
        starts: initial values, for methods with an option `start`: "regular", "nominal", "wls", ..., or a number s. For
            a number, every link and every other parameter has its true value times e^x, with normal x of standard
            deviation s. Each start is a separate contestant. Default: the start of the method.
        prepare: options in addition to the study's own [prepare] table.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")

    name: str
    label: str = ""
    options: dict[str, Any] = Field(default_factory=dict)
    starts: tuple[str | NotNegative, ...] = ()
    prepare: dict[str, Any] = Field(default_factory=dict)


class Study(SettingsFile):
    """Settings of a study. Paths are relative to the file that contains them.

    Attributes:
        robot: a URDF, a robot TOML or a built-in name, with values for all its parameters.
        methods: names of methods, or [[methods]] tables, see `Contestant`.
        repetitions, seed: logs per noise level, and seed of all random numbers.
        duration: length of a log, s.
        rate: rate of controller and log, Hz.
        motion: "random": the best conditioned of 20 random Fourier series inside the robot's limits of position,
            velocity and acceleration; "designed": an exciting motion.
        harmonics: number of harmonics of either motion.
        values: true values of parameters by name, in place of those of the robot file.
        model: the [model] table, as in run files.
        noise: the [noise] table.
        controller: the [controller] table; by default poles at 10 Hz, or slower for a slow rate.
        prepare: the [prepare] table, from logs to samples.
    """

    file_kind: ClassVar[str] = "study"

    robot: str
    methods: tuple[Contestant, ...] = Field(default=("wls", "iv"), min_length=1, validate_default=True)
    repetitions: int = Field(default=100, ge=2, le=1_000_000)
    seed: int = Field(default=0, ge=0)
    duration: Positive = 10.0
    rate: Positive = 1000.0
    motion: Literal["random", "designed"] = "random"
    harmonics: int = Field(default=5, ge=1, le=50)
    values: dict[str, float] = Field(default_factory=dict)
    model: ModelSettings = Field(default_factory=ModelSettings)
    noise: Noise = Field(default_factory=Noise)
    controller: dict[str, Any] | None = None
    prepare: dict[str, Any] = Field(default_factory=dict)

    @field_validator("methods", mode="before")
    @classmethod
    def _tables(cls, methods: Any) -> Any:
        if isinstance(methods, str) or not isinstance(methods, list | tuple):
            raise ValueError("'methods' of a study must be a list of method names or of [[methods]] tables")
        return tuple({"name": one} if isinstance(one, str) else one for one in methods)

    @model_validator(mode="after")
    def _different(self) -> Study:
        labels = [one.label or one.name for one in self.methods]
        twice = [label for label in labels if labels.count(label) > 1]
        if twice:
            raise ValueError(f"two methods have the name '{twice[0]}'; give each its own label")
        return self

    def moved(self, origin: Path, target: Path) -> Self:
        """Return the study with its robot's path converted from relative to `origin` to relative to `target`."""
        if not os.path.exists(origin / self.robot):
            return self
        return self.model_copy(update={"robot": moved_path(self.robot, origin, target)})

    def changed(self, **values: Any) -> Study:
        """Return a copy with some settings changed and checked again."""
        return Study.from_values({**self.model_dump(), **values})


def study_settings(source: str, changes: Mapping[str, Any] | None = None) -> Study:
    """Return a study from its file, or the default study of a robot; changes: settings to override, or None."""
    study = Study.load(source) if source_kind(source) == "settings" else Study.from_values({"robot": source})
    return study.changed(**{key: value for key, value in (changes or {}).items() if value is not None})
