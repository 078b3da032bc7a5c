"""dynid watch on a robot file that names no friction: it ends with the model that dynid identify chooses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from unnamed_friction import write_arm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_arm(tmp_path_factory.mktemp("arm"))


# Viscous and Coulomb friction and an offset at each joint, and the rotor of the last; uneven friction adds Fvd of
# the last joint.
@pytest.mark.parametrize(("log", "inertial", "friction"), [("log", 16, 9), ("uneven", 16, 10)])
def test_the_model_is_that_of_identify(dynid, folder: Path, log: str, inertial: int, friction: int) -> None:
    """Same parameters, a torque error below 1 %, and values within the intervals that are stated."""
    source = folder / f"{log}.csv"
    shown = dynid("watch", folder / "arm.toml", "--from", source, "--speed", 0, "--json")
    assert shown.code == 0, shown.err
    found = json.loads(shown.out)
    batch = json.loads(dynid("identify", folder / "arm.toml", source, "--method", "wls", "--no-simulation",
                             "--json").out)
    names = list(found["parameters"])
    assert names == list(batch["parameters"]) and len(names) == inertial + friction
    assert sum(name.startswith("F") for name in names) == friction
    assert ("Fvd3" in names) == (log == "uneven") and {f"F{kind}{j}" for kind in "vc" for j in (1, 2, 3)} <= set(names)
    assert found["relative_error"] < 1.0 and found["cutoff"] == batch["cutoff"]["chosen"]["cutoff"]
    codes = [one["code"] for one in found["events"]]
    assert set(codes) == {"friction-chosen", "source-ended"} and codes[-1] == "source-ended"
    off = []
    for name, one in found["parameters"].items():
        other = batch["parameters"][name]
        assert one.keys() == other.keys() and one["unit"] == other["unit"]
        assert one["expression"] == other["expression"]
        off.append(abs(one["value"] - other["value"]) / np.hypot(one["std"], other["std"]))
    assert max(off) < 4.0 and np.mean(np.array(off) < 2.0) > 0.9


def test_a_recorded_stream_goes_on_with_the_model_it_chose(dynid, folder: Path, tmp_path: Path) -> None:
    lines = (folder / "uneven.csv").read_text().splitlines(keepends=True)
    (tmp_path / "half.csv").write_text("".join(lines[:2600]))
    watch = ("watch", folder / "arm.toml", "--speed", 0, "--record", tmp_path / "record", "--json", "--from")
    half = json.loads(dynid(*watch, tmp_path / "half.csv").out)
    again = json.loads(dynid(*watch, folder / "uneven.csv").out)
    assert list(again["parameters"]) == list(half["parameters"]) and again["samples"] > half["samples"]
    assert again["relative_error"] < 1.0
    heads = (tmp_path / "record" / "history.csv").read_text().splitlines()
    assert len({line.count(",") for line in heads}) == 1 and all(name in heads[0] for name in again["parameters"])


def test_named_friction_is_not_chosen_but_the_cutoff_is_that_of_identify(dynid, folder: Path) -> None:
    shown = dynid("watch", folder / "arm.toml", "--friction", "viscous", "--from", folder / "log.csv", "--speed", 0,
                  "--json")
    found = json.loads(shown.out)
    assert [name for name in found["parameters"] if name.startswith("F")] == ["Fv1", "Fv2", "Fv3"]
    assert [one["code"] for one in found["events"]] == ["cutoff-chosen", "source-ended"]
    whole = dynid("identify", folder / "arm.toml", folder / "log.csv", "--friction", "viscous", "--json")
    assert found["cutoff"] == json.loads(whole.out)["cutoff"]["chosen"]["cutoff"]


def test_too_little_motion_says_that_nothing_was_chosen(dynid, folder: Path, tmp_path: Path) -> None:
    """A third of a second is too little to choose from: the usual friction stays, and an event says so."""
    lines = (folder / "log.csv").read_text().splitlines(keepends=True)
    (tmp_path / "short.csv").write_text("".join(lines[:66]))
    found = json.loads(dynid("watch", folder / "arm.toml", "--from", tmp_path / "short.csv", "--speed", 0,
                             "--json").out)
    assert [name for name in found["verdict"] if name.startswith("F")] == [
        f"F{kind}{j}" for j in (1, 2, 3) for kind in "vco"]
    assert [one["code"] for one in found["events"]] == ["friction-not-chosen", "source-ended"]
    assert "65 samples" in found["events"][0]["text"]
