"""A robot and a preset for dynid; terms, methods and report sections are in modules of their own."""

from pathlib import Path

from dynid.recording.presets import Preset

RECORDER = Preset("example-recorder", "the recorder of this example",
                  {"time": "t_ms", "time_unit": "ms", "position": "angle_{i}", "unit": "deg", "torque": "tau_{i}"},
                  columns=("t_ms", "angle_0", "tau_0"), source="this package")


def robot_path() -> Path:
    """The robot file of this package."""
    return Path(__file__).parent / "example-arm.toml"
