"""`dynid excite --actuator`: command files that the recorders play, and a plan in words."""

from __future__ import annotations

import json

import numpy as np

from dynid.excitation import read_trajectory

PENDULUM = ("pendulum", "--actuator", "voltage", "--gain", "kp=8,32", "--gain", "gain=0.166", "--gain", "vin=7.4",
            "--mass", "0.1,0.5", "--length", "0.15", "--friction", "m1", "--duration", "15", "--part", "5",
            "--rate", "50")


def test_a_pendulum(dynid, tmp_path):
    folder = tmp_path / "plan"
    found = json.loads(dynid("excite", *PENDULUM, "-o", str(folder), "--json").out)
    files = sorted(folder.glob("*.csv"))
    assert len(files) == len(found["parts"]) == 3 and (folder / "plan.md").is_file()
    for file, part in zip(files, found["parts"], strict=True):
        motion = read_trajectory(file, ("joint",))
        assert motion.rate == 50 and np.abs(motion.q).max() <= 1.5
        assert part["load"].replace(" ", "_") in file.name and part["gains"]["kp"] in (8, 32)
    assert {one["name"] for one in found["parameters"]} >= {"armature of joint", "kt of joint", "delay"}
    shown = dynid("excite", *PENDULUM, "-o", str(folder), "--force")
    assert shown.code == 0 and "plan.md" in shown.out and "armature of joint" in shown.out


def test_wrong_calls(dynid, tmp_path):
    for more, error in ((("--actuator", "voltage"), "wrong-pendulum"), (("--actuator", "magic"), "unknown-law"),
                        ((), "conflicting-options"), (("--actuator", "voltage", "--gain", "kp"), "not-a-number")):
        found = dynid("excite", "pendulum", *more, "--gain", "kp=8", *(() if error == "wrong-pendulum" else (
            "--mass", "0.1", "--length", "0.1")), "-o", str(tmp_path / "plan"))
        assert found.code == 2 and found.error == error and "Traceback" not in found.err
    found = dynid("excite", *PENDULUM, "-o", str(tmp_path / "plan.csv"))
    assert found.code == 2 and found.error == "output-is-folder"
