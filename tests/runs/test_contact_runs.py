"""Contacts in whole runs: an earlier result and a log at the command line, files, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pushed_arm import push, recording

from dynid.cli.main import main
from dynid.recording.write import write_csv
from dynid.runs import RunSettings, run
from dynid.runs.results import save

QUICK = {"robot": "kuka-iiwa14", "method": "wls", "model": {"friction": ["viscous", "coulomb", "offset"]},
         "prepare": {"cutoff": 8.0}, "simulation": {"run": False}}


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A log of free motion with its result, one with a push, one in which nothing moves, one of another robot."""
    folder = tmp_path_factory.mktemp("contact")
    free = recording(1)
    pushed = recording(2, [push("link6", (0.0, 40.0, 0.0), 5.0, 6.0, (0.0, 0.0, 4.0))])
    six = replace(free, q=free.q[:, :6], tau=free.tau[:, :6], joints=tuple(f"a{k}" for k in range(6)))
    logs = {"free": free, "pushed": pushed, "still": replace(free, q=np.full_like(free.q, 0.3)), "six": six}
    for name, log in logs.items():
        write_csv(log, folder / f"{name}.csv")
    found = run(RunSettings.from_values({**QUICK, "logs": [str(folder / "free.csv")]}))
    save(found, folder / "out", report=False)
    bare = found.estimate.with_covariance(np.zeros_like(found.estimate.covariance))
    save(replace(found, estimate=bare), folder / "bare", report=False)
    return folder


def called(capfd, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    out, err = capfd.readouterr()
    return int(left.value.code or 0), out, err


def test_a_push_on_an_earlier_result(desk, tmp_path, capfd):
    code, out, _ = called(capfd, "contact", desk / "out", desk / "pushed.csv", "--frame", "link7", "-o", tmp_path / "c",
                          "--json")
    said = json.loads(out)
    assert code == 0 and said["frame"] == "link7" and said["false_alarms_an_hour"] == 1.0
    one, = said["logs"][0]["contacts"]
    assert one["link"] == "link6" and one["is"] == "contact-push"
    assert one["start"] == pytest.approx(5.0, abs=0.03) and one["stop"] == pytest.approx(6.0, abs=0.05)
    assert np.all(np.abs(np.array(one["link_wrench"]) - [0, 40, 0, 0, 0, 4]) < 3.0 * np.array(one["link_std"]))
    series = np.loadtxt(said["outputs"]["wrench"], delimiter=",", skiprows=1)
    assert series.shape[1] == 15 and set(np.unique(series[:, -1])) == {0.0, 1.0}
    page = Path(said["outputs"]["report"]).read_text()
    assert all(f'id="{name}"' in page for name in ("touched", "forces", "arrow"))
    assert "scatter3d" in page and "http://" not in page.split("<script")[0]
    code, _, err = called(capfd, "contact", desk / "out", desk / "pushed.csv", "-o", tmp_path / "c")
    assert code == 2 and "exists already" in err
    code, out, _ = called(capfd, "contact", desk / "out", desk / "pushed.csv", "--method", "inverse", "--window",
                          "0.05")
    assert code == 0 and "link6" in out and "a push" in out


def test_nothing_touches_free_motion(desk, capfd):
    code, out, _ = called(capfd, "contact", desk / "out", desk / "free.csv")
    assert code == 0 and "no contact detected" in " ".join(out.split())


@pytest.mark.parametrize("arguments, code, sentence", [
    (["pushed.csv", "--frame", "hand"], 2, "no frame 'hand'"),
    (["pushed.csv", "--axes", "hand"], 2, "no frame 'hand'"),
    (["six.csv"], 2, "six.csv"),
    (["pushed.csv", "--free", "still.csv"], 1, "no joint moves"),
    (["pushed.csv", "--method", "guess"], 2, "there are momentum, inverse"),
    (["pushed.csv", "--prior", "100"], 2, "--prior takes two standard deviations"),
    (["nowhere.csv"], 2, "no log"),
])
def test_what_cannot_be_is_one_sentence(desk, capfd, arguments, code, sentence):
    paths = [str(desk / one) if one.endswith(".csv") else one for one in arguments]
    found, _, err = called(capfd, "contact", desk / "out", *paths)
    assert found == code and sentence in err and "Traceback" not in err


def test_a_result_without_covariance_or_without_its_logs(desk, capfd):
    code, _, err = called(capfd, "contact", desk / "bare", desk / "pushed.csv")
    assert code == 2 and "has no covariance" in err
    free = desk / "free.csv"
    free.rename(desk / "gone.csv")
    code, _, err = called(capfd, "contact", desk / "out", desk / "pushed.csv")
    (desk / "gone.csv").rename(free)
    assert code == 2 and "--free" in err
