"""Command lines of every command with extreme options and damaged files, each from a seed, and what is wrong with what
they do."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fuzz.mutations import extreme_numbers, mutated_arrays, mutated_text

from dynid.cli.main import main
from dynid.runs.result_folder import MANIFEST, write_manifest

# Values of options that parse, or nearly do.
STRANGE = ("0", "-1", "1e-308", "1e308", "-1e308", "1e-320", "1e18", "1e9", "1e-9", "nan", "inf", "-inf", "1e400", "",
           "x", "[]", "[1]", "{}", "true", "1,2", "1+-1e-308", "1+-1e308", "3.5", "99999999999999999999", "0.1", "2",
           "é", "\u202e1", "%s{0}")
QUICK = ("--method", "wls", "--friction", "viscous", "--no-simulation")


@dataclass(frozen=True)
class Family:
    """A command that is tried.

    Attributes:
        call: Arguments as they stand.
        options: Options that may be added, each with good values; a strange one may take their place.
        files: Text files among the inputs that may be damaged.
        weight: How often it is tried beside others.
        plain: Where the JSON of a success has the error that must be a number.
    """

    call: tuple[str, ...]
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    weight: float = 1.0
    plain: str = ""


WINDOW = {"--start": ("0.5",), "--stop": ("5",)}
SETTINGS = tuple(f"{name}=" for name in (
    "prepare.cutoff", "prepare.rate", "prepare.gap", "prepare.slow", "prepare.order", "prepare.thin",
    "prepare.decimate", "prepare.stages",
    "prepare.border", "prepare.torque_cutoff", "prepare.window", "prepare.velocity_delay",
    "prepare.saturation", "prepare.kernel_window", "log.rate", "log.preset", "log.time_unit", "log.unit", "log.start",
    "log.stop", "log.torque_scale", "log.ratio", "log.offset", "log.skip", "log.episode", "log.sign", "log.delimiter",
    "gravity", "blocks", "stream_rows", "known.Fv1", "lock.elbow", "options.strength", "essential.threshold",
    "simulation.horizon", "fixed_inertias", "only", "model.terms", "model.friction", "validate_on", "payloads.x.mass"))
IDENTIFY = {"--set": SETTINGS, "--known": ("Fv1=0.3", "M2=1+-0.1", "MX2="), "--cutoff": ("8",), **WINDOW,
            "--lock": ("elbow=",), "--mapping": ("mapping.toml",)}
FAMILIES = {
    "identify": Family(("identify", "arm.urdf", "log.csv", *QUICK, "--json"), IDENTIFY, ("log.csv", "mapping.toml"),
                       4.0, "relative_error"),
    "run": Family(("identify", "run.toml", "--json"), {"--set": SETTINGS}, ("run.toml", "arm.urdf"), 3.0,
                  "relative_error"),
    "prior": Family(("identify", "arm.urdf", "log.csv", *QUICK, "--friction", "viscous,coulomb", "--prior", "result",
                     "--json"), {"--known": ("Fv1=0.3",)}, ("result",), 2.0, "relative_error"),
    "rtde": Family(("identify", "arm.urdf", "rtde.csv", *QUICK, "--set", "log.preset=ur-rtde-torque", "--json"),
                   IDENTIFY, ("rtde.csv",), 1.0, "relative_error"),
    "franka": Family(("identify", "arm.urdf", "franka.csv", *QUICK, "--set", "log.preset=libfranka", "--json"),
                     IDENTIFY, ("franka.csv",), 1.0, "relative_error"),
    "panda": Family(("identify", "arm.urdf", "panda.npz", *QUICK, "--set", "log.preset=panda-py", "--json"),
                    IDENTIFY, ("panda.npz",), 1.0, "relative_error"),
    "inspect-loop": Family(("inspect", "loop.toml", "--json"), {}, ("loop.toml",), 2.0),
    "inspect-dh": Family(("inspect", "dh.toml", "--json"), {"--lock": ("joint1=",)}, ("dh.toml",), 2.0),
    "inspect-mjcf": Family(("inspect", "two.xml", "--json"), {}, ("two.xml",), 1.0),
    "inspect-urdf": Family(("inspect", "arm.urdf", "--json"), {}, ("arm.urdf",), 1.0),
    "inspect-xacro": Family(("inspect", "two.xacro", "--json"), {}, ("two.xacro",), 0.5),
    "contact": Family(("contact", "result", "other.csv", "--json"),
                      {"--window": ("0.1",), "--alarms": ("1",), "--prior": ("100,20", "1,"), "--method": ("inverse",),
                       "--frame": ("lower",), **WINDOW}, ("other.csv", "result"), 1.5),
    "payload": Family(("payload", "result", "other.csv", "--json"),
                      {"--mass": ("0.5", "0.5+-0.1"), "--gain-std": ("0.1",), "--method": ("residual", "difference"),
                       "--frame": ("lower",), **WINDOW}, ("other.csv", "result"), 1.5),
    "bounds": Family(("extract", "result", "--bounds", "bounds.toml", "--runs", "1", "--evaluations", "200", "--json"),
                     {"--seed": ("1",), "--form": ("penalty",), "--loss": ("partial",)}, ("bounds.toml",), 1.5),
    "table": Family(("extract", "arm.urdf", "--base", "table.csv", "--runs", "1", "--evaluations", "200", "--json"),
                    {"--bounds": ("loose",), "--seed": ("1",)}, ("table.csv",), 1.5),
    "gains": Family(("gains", "arm.urdf", "targets.csv", "--mapping", "targets.toml", "--friction", "viscous",
                     "--cutoff", "8", "--json"), {"--cutoff": ("9",)}, ("targets.csv", "targets.toml"), 1.5),
    "load": Family(("gains", "arm.urdf", "log.csv", "--loaded", "other.csv", "--mass", "1", "--centre", "0.1,0,0",
                    "--cutoff", "8", "--json"), {"--mass": ("1+-0.1",), "--centre": ("0,0,0.1",),
                                                 "--inertia": ("0.1,0,0,0.1,0,0.1",)}, ("other.csv",), 0.7),
    "simulate": Family(("simulate", "arm.urdf", "--trajectory", "motion.csv", "-o", "made.csv", "--force", "--json",
                        "--rate", "200"),
                       {"--bandwidth": ("40",), "--damping": ("1",), "--encoder": ("1e-4",),
                        "--position-noise": ("1e-5",), "--torque-noise": ("0.1",), "--torque-snr": ("30",),
                        "--rate": ("300",), "--stiffness": ("1e4",), "--motor-inertia": ("0.1",),
                        "--controller": ("pd", "poles", "impedance")},
                       ("motion.csv",), 1.5),
    "motion": Family(("motion", "arm.urdf", "sines", "-o", "made2.csv", "--duration", "2", "--force", "--json"),
                     {"--duration": ("3",), "--rate": ("50",), "--noise": ("0.1",), "--margin": ("0.1",),
                      "--home": ("0,0",), "--limits": ("limits.toml",), "--points": ("3",)}, ("limits.toml",), 1.5),
    "through": Family(("motion", "arm.urdf", "through", "--through", "postures.csv", "-o", "made2.csv", "--force",
                       "--json"), {"--limits": ("limits.toml",)}, ("postures.csv", "limits.toml"), 0.7),
    "excite": Family(("excite", "arm.urdf", "-o", "made3.csv", "--rounds", "1", "--budget", "0.2", "--harmonics", "2",
                      "--friction", "viscous", "--force", "--json"),
                     {"--duration": ("5",), "--rate": ("50",), "--noise": ("0.1",), "--limits": ("limits.toml",)},
                     ("limits.toml", "arm.urdf"), 0.2),
    "generate": Family(("generate", "arm.urdf", "-o", "code", "--language", "python", "--what", "inverse_dynamics",
                        "--force", "--json"), {"--name": ("arm",), "--batch": ("4",), "--lock": ("elbow=",)},
                       ("arm.urdf",), 0.5),
    "validate": Family(("validate", "result", "other.csv", "--no-simulation", "--json"),
                       {"--mapping": ("mapping.toml",), **WINDOW}, ("other.csv", "mapping.toml", "result"), 1.5),
    "check": Family(("check", "result", "--json"), {}, ("result",), 1.5),
    "compare": Family(("compare", "kept", "result", "--json"), {}, ("result",), 1.0),
    "methods": Family(("compare", "run.toml", "--methods", "ols,wls", "--json"), {"--set": SETTINGS}, ("run.toml",),
                      0.7),
    "fleet": Family(("fleet", "fleet.toml", "--workers", "1", "--json"), {}, ("fleet.toml", "other.csv"), 0.4),
    "watch-file": Family(("watch", "arm.urdf", "--from", "log.csv", "--speed", "0", "--json"),
                         {"--cutoff": ("8",), "--rate": ("100",), "--every": ("1",), "--forgetting": ("none", "0.99"),
                          "--friction": ("viscous",), "--equations": ("kernel",), "--method": ("cls",)},
                         ("log.csv",), 1.0),
    "watch-stdin": Family(("watch", "arm.urdf", "--from", "-", "--json"),
                          {"--cutoff": ("8",), "--rate": ("100",), "--forgetting": ("0.99",), "--record": ("state",),
                           "--equations": ("kernel",), "--friction": ("viscous",)}, ("stream.csv",), 1.5),
    "watch-udp": Family(("watch", "arm.urdf", "--from", "udp:PORT", "--patience", "0.15", "--json"),
                        {"--cutoff": ("8",), "--rate": ("100",), "--equations": ("kernel",)}, ("stream.csv",), 0.5),
    "watch-payload": Family(("watch", "result", "--payload", "lower", "--from", "other.csv", "--speed", "0", "--json"),
                            {"--cutoff": ("8",), "--rate": ("100",)}, ("other.csv", "result"), 0.7),
}


def family_of(rng: np.random.Generator) -> str:
    """The name of a family."""
    weights = np.array([one.weight for one in FAMILIES.values()])
    return str(rng.choice(list(FAMILIES), p=weights / weights.sum()))


def command_case(name: str, rng: np.random.Generator, inputs: Path, place: Path) -> str:
    """Run one command line of a family in `place`, a copy of the inputs; what is wrong with what it does."""
    family = FAMILIES[name]
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(inputs, place)
    # Either a file is damaged, or options are strange, or both: two faults at once often hide each other.
    which = rng.random()
    if family.files and which < 0.65:
        _damage(place, str(rng.choice(family.files)), rng)
    arguments = list(family.call)
    for _ in range(int(rng.integers(1, 3)) if family.options and which > 0.5 else 0):
        option = str(rng.choice(list(family.options)))
        value = str(rng.choice(family.options[option]))
        if value.endswith(("=", ",")):
            value += str(rng.choice(STRANGE))
        elif rng.random() < 0.8:
            value = str(rng.choice(STRANGE))
        arguments += [f"{option}={value}"]
    given = (place / "stream.csv").read_bytes() if name == "watch-stdin" else b""
    with _sending(place, arguments) if name == "watch-udp" else contextlib.nullcontext():
        return wrong_of(arguments, given, place, family)


def undamaged(name: str, inputs: Path, place: Path) -> str:
    """Run the command line of a family as it stands; what is wrong, which a sentence is too."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(inputs, place)
    family, arguments = FAMILIES[name], list(FAMILIES[name].call)
    given = (place / "stream.csv").read_bytes() if name == "watch-stdin" else b""
    with _sending(place, arguments) if name == "watch-udp" else contextlib.nullcontext():
        return wrong_of(arguments, given, place, family, refusals=False)


def _damage(place: Path, name: str, rng: np.random.Generator) -> None:
    """Damage one input, or one file of a result, whose manifest then mostly fits again."""
    path = place / name
    folder = path if path.is_dir() else None
    if folder is not None:
        path = folder / str(rng.choice(sorted(one.name for one in folder.iterdir() if one.name != MANIFEST)))
    if path.suffix == ".npz":
        path.write_bytes(mutated_arrays(path.read_bytes(), rng))
    else:
        change: Callable[[bytes, np.random.Generator], bytes] = extreme_numbers if rng.random() < 0.6 else mutated_text
        path.write_bytes(change(path.read_bytes(), rng))
    if folder is not None and rng.random() < 0.9:
        (folder / MANIFEST).unlink()
        write_manifest(folder)


def wrong_of(arguments: list[str], given: bytes, place: Path, family: Family, refusals: bool = True) -> str:
    """What is wrong with what a command line does, with its last words; empty where nothing is. refusals: whether it
    may end in a sentence."""
    out, err, code = io.StringIO(), io.StringIO(), None
    said, before = " ".join(arguments), os.getcwd()
    os.chdir(place)
    kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given), encoding="utf-8", errors="replace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("always")
            for kind in (ResourceWarning, DeprecationWarning):  # which a user does not see either
                warnings.simplefilter("ignore", kind)
            warnings.showwarning = lambda message, kind, file, line, *_: print(
                f"{file}:{line}: {kind.__name__}: {message}", file=err)
            main(arguments)
    except SystemExit as left:
        code = left.code
    except BaseException:  # a MemoryError or an interrupt is a traceback for a user too
        return f"{said}: {traceback.format_exc()}"
    finally:
        sys.stdin = kept
        os.chdir(before)
    words = err.getvalue()
    if "Warning: " in words:
        return f"{said}: warns: {words[:2000]}"
    if code in (1, 2) and refusals:
        lines = [line for line in words.splitlines() if line.startswith("Error: ")]
        fine = len(lines) == 1 and words.rstrip("\n").endswith(lines[0]) and len(lines[0]) < 3000
        fine = fine or (code == 1 and out.getvalue().startswith("{"))  # a check that found something, in JSON
        return "" if fine else f"{said}: no single sentence: {words!r}"
    return f"{said}: ended with {code}: {words}" if code else _success(said, out.getvalue(), family.plain)


def _success(said: str, text: str, plain: str) -> str:
    """What is wrong with the JSON of a success: it is none, or has numbers that are not finite."""
    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} in JSON")

    try:
        found = json.loads(text, parse_constant=refuse)
    except ValueError as problem:
        return f"{said}: {problem}: {text[:500]}"
    if plain and not (isinstance(found.get(plain), float) and np.isfinite(found[plain])):
        return f"{said}: a success with {plain} = {found.get(plain)}"
    return ""


@contextlib.contextmanager
def _sending(place: Path, arguments: list[str]):
    """Put a free port into the arguments, and send the stream's lines there, several to a datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments[arguments.index("udp:PORT")] = f"udp:{port}"
    content, stop = (place / "stream.csv").read_bytes(), threading.Event()

    def send() -> None:
        time.sleep(0.05)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
            for k in range(0, len(content), 4000):
                if stop.is_set():
                    return
                with contextlib.suppress(OSError):  # nobody listens
                    door.sendto(content[k:k + 4000], ("127.0.0.1", port))
                time.sleep(0.001)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
