"""dynid watch: every kind of source, faults in them, and a record that goes on after a kill."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from online.streams import arm, motion
from ports import free_port, wait_for_listener

ARM = ("arm3r", "--friction", "viscous,coulomb,offset")
KNOWN = ("--cutoff", "8", "--rate", "100", "--json")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 s of a small arm at 100 Hz as CSV."""
    model, rng = arm(), np.random.default_rng(0)
    theta = np.abs(rng.normal(size=len(model.parameters)))
    q, dq, ddq = motion(2000, 3)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + 0.2 * rng.normal(size=q.shape)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    head = ",".join(["t", *(f"q{j}" for j in (1, 2, 3)), *(f"tau{j}" for j in (1, 2, 3))])
    np.savetxt(path, np.column_stack([np.arange(2000) / 100.0, q, tau]), delimiter=",", header=head, comments="")
    return path


def test_a_log_is_replayed_and_recorded(dynid, log: Path, tmp_path: Path) -> None:
    shown = dynid("watch", *ARM, "--from", log, "--speed", 0, "--record", tmp_path / "record", *KNOWN)
    assert shown.code == 0
    found = json.loads(shown.out)
    assert found["samples"] > 350 and found["relative_error"] < 2.0 and found["restarts"] == []
    assert [one["code"] for one in found["events"]] == ["source-ended"]
    assert set(found["verdict"].values()) == {"identified"}
    batch = json.loads(dynid("identify", "arm3r", log, "--friction", "viscous,coulomb,offset", "--method", "rls",
                             "--no-simulation", "--json").out)
    for name, one in found["parameters"].items():
        assert abs(one["value"] - batch["parameters"][name]["value"]) < 6 * one["std"] + 1e-3
    assert {path.name for path in (tmp_path / "record").iterdir()} >= {"stream.npz", "history.csv"}
    shown = dynid("watch", *ARM, "--from", log, "--speed", 0, "--cutoff", 8, "--rate", 100)
    assert shown.code == 0 and "base parameters" in shown.out and "cut-off 8 Hz" in shown.out


def test_lines_from_standard_input(dynid, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = log.read_text().splitlines()
    rows = [[float(x) for x in line.split(",")] for line in lines[1:]]
    texts = [json.dumps({"t": row[0], "q": row[1:4], "tau": row[4:]}) for row in rows[1000:]]
    broken = ["1,2,3", "{\"t\": 1}", "9,a,b,c,d,e,f", "nan,1,1,1,1,1,1"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines[:1001], *broken, *texts])))
    found = json.loads(dynid("watch", *ARM, "--from", "-", *KNOWN).out)
    assert found["samples"] > 350 and found["relative_error"] < 2.0
    assert [one["code"] for one in found["events"]] == ["bad-line"] * 3 + ["not-finite", "source-ended"]


@pytest.mark.parametrize("method", ["rls", "riv"])
def test_rows_may_gain_and_lose_commanded_positions(dynid, log: Path, monkeypatch: pytest.MonkeyPatch,
                                                    method: str) -> None:
    """Method rls ignores commands, so its estimate does not depend on which rows have them; riv skips rows without."""
    rows = np.loadtxt(log, delimiter=",", skiprows=1)[:600].tolist()
    first = [row if method == "rls" else [*row, *row[1:4]] for row in rows]
    second = [[*row, *row[1:4]] if (k % 7 < 4 if method == "rls" else k % 100 != 50) else row
              for k, row in enumerate(rows)]
    found = []
    for stream in (first, second):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(",".join(map(repr, row)) for row in stream)))
        shown = dynid("watch", "arm3r", "--from", "-", "--method", method, "--rate", 100, "--json")
        assert shown.code == 0, shown.err
        found.append(json.loads(shown.out))
    if method == "rls":
        assert found[0] == found[1]
    else:
        assert found[1]["samples"] >= 0.9 * found[0]["samples"] > 0


def test_a_port_and_a_file_that_grows(dynid, log: Path, tmp_path: Path) -> None:
    lines = log.read_text().splitlines()[1:]
    port = free_port()
    grown = tmp_path / "grown.csv"
    grown.write_text("")

    def write(source: str) -> None:
        if source.startswith("udp:"):
            wait_for_listener(port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door, open(grown, "a") as file:
            for k in range(0, 2000, 20):
                door.sendto("\n".join(lines[k:k + 20]).encode(), ("127.0.0.1", port))
                file.write("\n".join(lines[k:k + 20]) + "\n" + lines[0][:3])  # half a line that is never ended
                file.flush()
                time.sleep(0.002)

    for source in (f"udp:{port}", f"tail:{grown}"):
        grown.write_text("")
        writer = threading.Thread(target=write, args=(source,))
        writer.start()
        found = json.loads(dynid("watch", *ARM, "--from", source, "--patience", 2, *KNOWN).out)
        writer.join()
        assert found["samples"] > 200 and found["relative_error"] < 3.0


def test_a_killed_watch_goes_on(dynid, log: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dynid", "watch", *ARM, "--from", str(log), "--speed", "8", "--every", "0.1",
               "--record", str(tmp_path / "record"), *KNOWN]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ})
    history, started = tmp_path / "record" / "history.csv", time.monotonic()
    while time.monotonic() - started < 60 and not (history.exists() and len(history.read_text().splitlines()) > 4):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open(history, "a") as file:
        file.write("1.0,2")  # as a kill in the middle of a line leaves it
    again = json.loads(dynid("watch", *ARM, "--from", log, "--speed", 0, "--record", tmp_path / "record", *KNOWN).out)
    whole = json.loads(dynid("watch", *ARM, "--from", log, "--speed", 0, *KNOWN).out)
    assert 0.8 * whole["samples"] < again["samples"] <= whole["samples"]
    for name, one in whole["parameters"].items():
        assert abs(one["value"] - again["parameters"][name]["value"]) < 2 * one["std"] + 1e-6
    widths = {line.count(",") for line in history.read_text().splitlines()}
    assert len(widths) == 1
    page = (tmp_path / "record" / "report.html").read_text()
    assert "Over time" in page and "Excitation over time" in page and "the source has ended" in page


@pytest.mark.parametrize(("arguments", "error"), [
    (["--from", "nothing.csv"], "no-such-file"), (["--from", "udp:x"], "wrong-source"),
    (["--from", "tail:none.csv"], "no-such-file"), (["--from", "-", "--method", "ols"], "unknown-method"),
    (["--from", "-", "--forgetting", "x"], "unknown-forgetting"), (["--from", "-", "--every", "0"], "out-of-range"),
    (["--from", "-", "--cutoff", "-3"], "out-of-range")])
def test_wrong_calls_end_in_a_sentence(dynid, arguments: list[str], error: str) -> None:
    shown = dynid("watch", *ARM, *arguments)
    assert shown.code == 2 and shown.error == error and "Traceback" not in shown.err


def test_a_prior_from_a_result_or_a_robot(dynid, log: Path, tmp_path: Path) -> None:
    assert dynid("identify", "arm3r", log, "--friction", "viscous,coulomb,offset", "--method", "wls", "-o",
                 tmp_path / "result").code == 0
    short = tmp_path / "short.csv"
    short.write_text("\n".join(log.read_text().splitlines()[:151]) + "\n")

    def deviations(*words: object) -> dict[str, float]:
        shown = dynid("watch", *ARM, "--from", short, "--speed", 0, *words, *KNOWN)
        assert shown.code == 0, shown.err
        found = json.loads(shown.out)["parameters"]
        return {name: np.inf if one["std"] is None else one["std"] for name, one in found.items()}

    alone, result = deviations(), deviations("--prior", tmp_path / "result")
    assert all(result[name] < alone[name] for name in alone)
    robot = deviations("--prior", "arm3r")
    assert any(robot[name] < 0.9 * alone[name] for name in alone)
    assert dynid("watch", *ARM, "--from", short, "--prior", "scara", *KNOWN).code != 0
