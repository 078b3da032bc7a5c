"""`dynid presets`: what is listed is what a run file can name."""

from __future__ import annotations

import json

from dynid.recording.presets import PRESETS


def test_presets_are_listed(dynid):
    plain = dynid("presets")
    assert plain.code == 0 and all(name in plain.out for name in PRESETS)
    found = json.loads(dynid("presets", "--json").out)["presets"]
    assert set(found) == set(PRESETS) and found["libfranka"]["settings"]["time_unit"] == "ms"
    assert all(one["source"] for one in found.values())
