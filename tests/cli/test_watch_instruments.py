"""dynid watch by instrumental variables: commanded positions from a log, lines of text and a file that grows."""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from online.streams import commanded
from ports import free_port, wait_for_listener

RATE, CUTOFF = 200.0, 20.0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stream as a CSV file with commanded positions."""
    data, t, reference = commanded(2000, rate=RATE)
    path = tmp_path_factory.mktemp("log") / "log.csv"
    head = ",".join(["t", *(f"{name}{j}" for name in ("q", "tau", "q_ref") for j in (1, 2, 3))])
    np.savetxt(path, np.column_stack([t, data.q, data.tau, reference]), delimiter=",", header=head, comments="")
    return path


def test_watch_by_civ_from_a_log_lines_and_a_growing_file(dynid, written: Path, monkeypatch: pytest.MonkeyPatch
                                                          ) -> None:
    call = ("watch", "arm3r", "--friction", "viscous,coulomb,offset", "--method", "civ", "--cutoff", CUTOFF, "--rate",
            RATE, "--json")
    log = written.parent / "log.toml"
    log.write_text('[log]\nreference = ["q_ref1", "q_ref2", "q_ref3"]\n')
    shown = [dynid(*call, "--from", written, "--speed", 0, "--mapping", log)]
    monkeypatch.setattr(sys, "stdin", io.StringIO(written.read_text()))
    shown.append(dynid(*call, "--from", "-"))
    shown.append(dynid(*call, "--from", f"tail:{written}", "--patience", 0.3))
    assert [one.code for one in shown] == [0, 0, 0], shown[0].err
    found = [json.loads(one.out) for one in shown]
    assert all(one["method"] == "civ" and one["samples"] > 400 for one in found)
    values = [np.array([one["value"] for one in result["parameters"].values()]) for result in found]
    assert np.allclose(values[1], values[0], rtol=1e-6, atol=1e-9) and np.array_equal(values[1], values[2])
    plain = "\n".join(",".join(line.split(",")[:7]) for line in written.read_text().splitlines())
    monkeypatch.setattr(sys, "stdin", io.StringIO(plain))
    refused = dynid(*call, "--from", "-")
    assert refused.code != 0 and refused.error == "no-reference"


def test_watch_by_civ_and_riv_from_a_port(dynid, written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets of CSV lines with commanded positions after the torques give what the same lines of text give."""
    text = "\n".join(written.read_text().splitlines()[:1201])
    lines = text.splitlines()[1:]
    call = ("watch", "arm3r", "--friction", "viscous,coulomb,offset", "--cutoff", CUTOFF, "--rate", RATE, "--json")
    for method in ("civ", "riv"):
        port = free_port()

        def send(to: int = port) -> None:
            wait_for_listener(to)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
                for k in range(0, len(lines), 20):
                    door.sendto("\n".join(lines[k:k + 20]).encode(), ("127.0.0.1", to))
                    time.sleep(0.002)

        sender = threading.Thread(target=send)
        sender.start()
        live = dynid(*call, "--method", method, "--from", f"udp:{port}", "--patience", 2)
        sender.join()
        assert live.code == 0, live.err
        found = json.loads(live.out)
        assert found["method"] == method and found["samples"] > 200
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        read = json.loads(dynid(*call, "--method", method, "--from", "-").out)["parameters"]
        assert all(abs(one["value"] - read[name]["value"]) <= 2.0 * read[name]["std"] + 1e-9
                   for name, one in found["parameters"].items())


def test_watch_by_civ_chooses_friction_where_none_is_named(dynid, written: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.toml"
    log.write_text('[log]\nreference = ["q_ref1", "q_ref2", "q_ref3"]\n')
    shown = dynid("watch", "arm3r", "--method", "civ", "--from", written, "--speed", 0, "--mapping", log, "--rate",
                  RATE, "--record", tmp_path / "record", "--json")
    found = json.loads(shown.out)
    assert shown.code == 0 and found["samples"] > 100
    assert "friction-chosen" in [one["code"] for one in found["events"]]


def test_factors_by_joint_in_a_run_and_live(dynid, written: Path) -> None:
    friction = ("--friction", "viscous,coulomb,offset")
    text = "vector:0.9995,1=0.999"
    live = dynid("watch", "arm3r", *friction, "--from", written, "--speed", 0, "--cutoff", CUTOFF, "--rate", RATE,
                 "--forgetting", text, "--json")
    assert live.code == 0 and json.loads(live.out)["samples"] > 400
    call = ("identify", "arm3r", written, *friction, "--method", "rls", "--no-simulation", "--json", "--set",
            "prepare.cutoff=20")
    faded, plain = (dynid(*call, *more) for more in (("--set", f'options.forgetting="{text}"'), ()))
    assert faded.code == 0, faded.err
    values = [{name: one["value"] for name, one in json.loads(shown.out)["parameters"].items()}
              for shown in (faded, plain)]
    assert any(abs(values[0][name] - values[1][name]) > 1e-6 for name in values[0])
    refused = dynid(*call, "--set", 'options.forgetting="vector:0.9995,9=0.999"')
    assert refused.code != 0 and refused.error == "unknown-forgetting-name"


def test_limits_of_mrls_in_a_run_and_live(dynid, written: Path) -> None:
    friction = ("--friction", "viscous,coulomb,offset", "--json")
    run = ("identify", "arm3r", written, *friction, "--method", "mrls", "--no-simulation")
    shown = dynid(*run, "--set", 'options.limits="tight"')
    assert shown.code == 0, shown.err
    live = dynid("watch", "arm3r", *friction, "--from", written, "--speed", 0, "--method", "mrls", "--limits", "tight",
                 "--cutoff", CUTOFF, "--rate", RATE)
    assert live.code == 0, live.err
    free = json.loads(dynid(*run).out)["parameters"]
    for found in (json.loads(shown.out)["parameters"], json.loads(live.out)["parameters"]):
        assert any(abs(one["value"]) < 0.9 * abs(free[name]["value"]) for name, one in found.items())
    refused = dynid("watch", "arm3r", *friction, "--from", written, "--limits", "tight")
    assert refused.code != 0 and refused.error == "conflicting-options"
