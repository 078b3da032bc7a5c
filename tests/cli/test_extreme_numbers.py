"""Numbers that parse and that no machine has are refused in one sentence, or do no harm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.result_folder import MANIFEST, write_manifest

pytestmark = [pytest.mark.filterwarnings("error::RuntimeWarning"),  # numpy's, which a user would see on stderr
              pytest.mark.filterwarnings("error::numpy.exceptions.RankWarning")]
QUICK = ("--method", "wls", "--friction", "viscous", "--no-simulation")
LOOP = """convention = "tree"
[[joint]]
name = "crank"
link = "a"
[[joint]]
name = "pin"
link = "b"
parent = "a"
xyz = [0.2, 0, 0]
follows = true
[[joint]]
name = "rocker"
link = "c"
xyz = [0.5, 0, 0]
follows = true
[[closure]]
name = "loop"
kind = []
first = {link = "b", xyz = [0.5, 0, 0]}
second = {link = "c", xyz = [0.4, 0, 0]}
"""
DH = """name = "two"
convention = "dh"
[[joint]]
alpha = nan
a = 0.4
d = 0.0
[[joint]]
alpha = 0.0
a = 0.4
d = 0.0
"""


def motion() -> Recording:
    """Ten seconds of arm3r at 100 Hz with noise."""
    model = Model(Robot.builtin("arm3r"))
    t, w = np.arange(1000) / 100, 2 * np.pi * np.array([0.3, 0.5, 0.7])
    q, dq = np.sin(w * t[:, None]), w * np.cos(w * t[:, None])
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, -w**2 * q)
    noise = np.random.default_rng(3).normal(0.0, 0.01, tau.shape)
    return Recording(t, q, tau + noise, joints=model.robot.joint_names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of arm3r, the same with time in ms and in us, with torques of 1e-320, streams with one absurd stamp, a
    motion, mappings, tables, robots, and a result."""
    from dynid.cli.main import main

    folder = tmp_path_factory.mktemp("extreme")
    log = motion()
    write_csv(log, folder / "log.csv")
    lines = (folder / "log.csv").read_text().splitlines()
    for name, scale in (("ms", 1e3), ("us", 1e6)):
        rows = [f"{float(line.split(',', 1)[0]) * scale!r},{line.split(',', 1)[1]}" for line in lines[1:]]
        (folder / f"{name}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    tiny = [",".join([*line.split(",")[:-1], "1e-320"]) for line in lines[1:]]
    (folder / "tiny.csv").write_text("\n".join([lines[0], *tiny]) + "\n")
    samples = [",".join(map(repr, [t, *q, *tau])) for t, q, tau in
               zip(log.t.tolist(), log.q.tolist(), log.tau.tolist(), strict=True)]
    for name, stamp in (("far", "1e18"), ("endless", "1e308"), ("later", "1e9")):
        (folder / f"{name}.txt").write_text("\n".join([*samples[:300], f"{stamp},{samples[300].split(',', 1)[1]}",
                                                       *samples[301:]]) + "\n")
    bare = "\n".join([line.split(",", 1)[1] for line in lines]) + "\n"
    (folder / "bare.csv").write_text(bare)
    (folder / "slow.toml").write_text("[log]\nrate = 1e-300\n")
    (folder / "position.toml").write_text('robot = "arm3r"\nlogs = ["log.csv"]\nmethod = "wls"\n'
                                          "[log]\nposition = nan\n")
    (folder / "dh.toml").write_text(DH)
    (folder / "loop.toml").write_text(LOOP)
    (folder / "large.csv").write_text("XX1 + 1e400*M2,3\n")
    targets = [lines[0] + ",T1,T2,T3,C1,C2,C3",
               *(f"{line},{','.join(line.split(',')[-3:])},1e-300,1e-300,1e-300" for line in lines[1:])]
    (folder / "targets.csv").write_text("\n".join(targets) + "\n")
    (folder / "targets.toml").write_text(
        '[log]\ntime = "time"\nposition = "position_{joint}"\ncurrent = "torque_{joint}"\ndrive_gain = "from-log"\n'
        'target_torque = ["T1", "T2", "T3"]\ntarget_current = ["C1", "C2", "C3"]\n')
    (folder / "fleet.toml").write_text(
        'robot = "arm3r"\n[model]\nfriction = ["viscous"]\n'
        + "".join(f'[[robots]]\nname = "{name}"\nlogs = ["{name}.csv"]\n' for name in ("log", "tiny", "again")))
    write_csv(motion(), folder / "again.csv")
    for arguments in (("identify", "arm3r", folder / "log.csv", *QUICK, "-o", folder / "result"),
                      ("motion", "arm3r", "sines", "-o", folder / "motion.csv", "--duration", "5")):
        with pytest.raises(SystemExit) as left:
            main([str(one) for one in arguments])
        assert not left.value.code, arguments
    return folder


def damaged(folder: Path, name: str, **arrays: object) -> None:
    """The result with other arrays in its estimate, and a manifest that fits."""
    import shutil

    shutil.copytree(folder / "result", folder / name, dirs_exist_ok=True)
    with np.load(folder / "result" / "estimate.npz") as file:
        kept = {key: file[key] for key in file.files}
    np.savez_compressed(folder / name / "estimate.npz", **{**kept, **arrays})
    (folder / name / MANIFEST).unlink()
    write_manifest(folder / name)


REFUSED = {
    "ms-as-s": ("identify", "arm3r", "ms.csv", *QUICK), "us-as-s": ("identify", "arm3r", "us.csv", *QUICK),
    "us-as-s, payload": ("payload", "result", "us.csv"),
    "rate-tiny": ("identify", "arm3r", "bare.csv", "--mapping", "slow.toml", *QUICK),
    "preset-list": ("identify", "arm3r", "log.csv", "--set", "log.preset=[1]", *QUICK),
    "position-nan": ("identify", "position.toml", "-o", "out"), "dh-nan": ("inspect", "dh.toml"),
    "loop-kind": ("inspect", "loop.toml"),
    "known": ("identify", "arm3r", "log.csv", *QUICK, "--known", "MX3=1+-1e-308"),
    "known-inf": ("identify", "arm3r", "log.csv", *QUICK, "--known", "MX3=1+-inf"),
    "motion-duration": ("motion", "arm3r", "sines", "--duration=inf", "-o", "m.csv"),
    "motion-long": ("motion", "arm3r", "sines", "--duration=1e300", "-o", "m.csv"),
    "motion-rows": ("motion", "arm3r", "sines", "--duration=20", "--rate=9e6", "-o", "m.csv"),
    "simulate-bandwidth": ("simulate", "arm3r", "--trajectory", "motion.csv", "--bandwidth=1e308", "-o", "s.csv"),
    "simulate-rate": ("simulate", "arm3r", "--trajectory", "motion.csv", "--rate=1e7", "-o", "s.csv"),
    "excite-rate": ("excite", "arm3r", "--rate=1e9", "--rounds=1", "--budget=1", "-o", "e.csv"),
    "extract-seed": ("extract", "result", "--seed=-1"),
    "extract-large": ("extract", "arm3r", "--base", "large.csv"),
    "contact-window": ("contact", "result", "log.csv", "--window=1e308"),
    "contact-alarms": ("contact", "result", "log.csv", "--alarms=1e-308"),
    "contact-nan": ("contact", "result", "log.csv", "--alarms=nan"),
    "prior-matrix": ("identify", "arm3r", "log.csv", *QUICK, "--prior", "empty-matrix"),
    "prior-values": ("identify", "arm3r", "log.csv", *QUICK, "--prior", "empty-values"),
    "prior-covariance": ("identify", "arm3r", "log.csv", *QUICK, "--prior", "empty-covariance"),
    "decimate": ("identify", "arm3r", "log.csv", "--set", "prepare.decimate=100000"),
    "blocks": ("identify", "arm3r", "log.csv", "--set", "blocks=1000"),
}
HARMLESS = {
    "gains": ("gains", "arm3r", "targets.csv", "--mapping", "targets.toml", "--json"),
    "fleet": ("fleet", "fleet.toml", "--workers", "1", "--json"),
    "known-exact": ("identify", "arm3r", "log.csv", *QUICK, "--known", "MX3=1+-1e-90", "--json"),
    "slow-but-said": ("identify", "arm3r", "ms.csv", *QUICK, "--set", "log.time_unit=s", "--json"),
    "watch-stamp": ("watch", "arm3r", "--from", "tail:far.txt", "--patience", "0.2", "--json"),
    "watch-inf": ("watch", "arm3r", "--from", "tail:endless.txt", "--patience", "0.2", "--json"),
    "watch-later": ("watch", "arm3r", "--from", "tail:later.txt", "--patience", "0.2", "--json"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_numbers_that_no_machine_has_are_refused(dynid, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    if name.startswith("prior-"):
        which = name.removeprefix("prior-")
        damaged(folder, f"empty-{which}", **{which: np.zeros((0, 0) if which != "values" else 0)})
    found = dynid(*REFUSED[name])
    assert found.code in (1, 2) and found.err.count("Error: ") == 1, found
    assert found.err.splitlines()[-1].startswith("Error: ") and "Traceback" not in found.err
    assert "Warning" not in found.err, found.err


@pytest.mark.parametrize("name", HARMLESS)
def test_numbers_that_can_be_dealt_with_do_no_harm(dynid, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    found = dynid(*HARMLESS[name])
    assert found.code in (0, 1, 2) and found.err.count("\n") <= 1, found
    assert "Traceback" not in found.err and "Warning" not in found.err, found
    if found.code == 0:
        assert json.loads(found.out)


def test_time_in_milliseconds_is_named_with_what_to_type(dynid, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "--set log.time_unit=ms" in dynid("identify", "arm3r", "ms.csv", *QUICK).err
    found = dynid("identify", "arm3r", "ms.csv", *QUICK, "--set", "log.time_unit=ms", "--json")
    assert found.code == 0 and json.loads(found.out)["relative_error"] < 5
