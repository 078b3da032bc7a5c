"""`dynid presets`: list of the recorders with known log formats."""

from __future__ import annotations

from typing import Any

from dynid.cli.output import Json, console, print_json, table
from dynid.output_fields import map_of, record

_LISTED_PRESET = record("ListedPreset", recorder=str, settings=dict[str, Any], guessed=bool, minds=list[str],
                        source=str, refusal=str | None)
OUTPUT = record("Presets", presets=map_of(_LISTED_PRESET))


def command(json: Json = False) -> None:
    """List the presets for log formats, notes on their use, and where their column names are documented."""
    from dynid.recording.presets import known_presets

    if json:
        print_json({"presets": {name: {"recorder": one.recorder, "settings": dict(one.settings),
                                       "guessed": bool(one.columns), "minds": list(one.minds), "source": one.source,
                                       "refusal": one.refusal} for name, one in known_presets().items()}})
        return
    console().print(table(["preset", "logs of", "notes"], [
        (name, one.recorder, "; ".join(one.minds) if one.refusal is None else f"refused: {one.refusal}")
        for name, one in known_presets().items()]))
    console().print('Use a preset with --set log.preset=libfranka, or preset = "libfranka" under [log] in a run file. '
                    "Other settings of [log] take precedence over the preset.",
                    markup=False)
