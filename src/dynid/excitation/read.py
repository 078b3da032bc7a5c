"""Read a motion that `write_trajectory` wrote, as a reference for a controller."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.simulation import Reference

_EVEN = 1e-3  # share of a period by which time stamps may be off


def read_trajectory(path: str | Path, joints: Sequence[str]) -> Reference:
    """From .csv (t, q_NAME .., and dq_NAME .., ddq_NAME .. where given) or .npz (t, q, dq, ddq, joints), in the order
    of `joints`, at its own rate."""
    path = Path(path)
    readers = {".csv": _csv, ".npz": _npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DynidError(f"{path} should end in {' or '.join(readers)}, as `dynid excite` writes motions")
    try:
        t, parts = reader(path, tuple(joints))
    except OSError as problem:
        raise DynidError(f"cannot read the motion {path}: {problem.strerror or problem}") from None
    if len(t) < 3 or not np.isfinite(t).all():
        raise DynidError(f"the motion {path} needs at least three rows with a finite time, got {len(t)}")
    period = (t[-1] - t[0]) / (len(t) - 1)
    if not period > 0 or np.abs(t - t[0] - period * np.arange(len(t))).max() > _EVEN * period:
        raise DynidError(f"the rows of {path} are not evenly spaced in time; write the motion at a fixed rate")
    for name, values in parts.items():
        if not np.isfinite(values).all():
            row, j = np.argwhere(~np.isfinite(values))[0]
            raise DynidError(f"{path}: {name} of joint '{joints[j]}' is not a finite number in row {row + 1}")
    return Reference.of(parts["q"], parts.get("dq"), parts.get("ddq"), rate=1.0 / period)


def _csv(path: Path, joints: tuple[str, ...]) -> tuple[Array, dict[str, Array]]:
    with path.open(encoding="utf-8") as file:
        try:
            head = file.readline().strip().split(",")
            rows = np.loadtxt(file, delimiter=",", ndmin=2)
        except (ValueError, UnicodeDecodeError) as problem:
            raise DynidError(f"{path} is not a motion: {problem}") from None
    if "t" not in head or rows.shape[1] != len(head):
        raise DynidError(f"{path} is not a motion: its first line should be t, q_NAME.., dq_NAME.., ddq_NAME..")
    parts = {}
    for kind in ("q", "dq", "ddq"):
        names = [f"{kind}_{joint}" for joint in joints]
        missing = [name for name in names if name not in head]
        if missing and (kind == "q" or len(missing) < len(names)):
            raise DynidError(f"{path} has no column '{missing[0]}' for that joint of the robot; it has "
                             f"{', '.join(name for name in head if name.startswith(f'{kind}_')) or ', '.join(head)}")
        if not missing:
            parts[kind] = np.ascontiguousarray(rows[:, [head.index(name) for name in names]])
    return rows[:, head.index("t")], parts


def _npz(path: Path, joints: tuple[str, ...]) -> tuple[Array, dict[str, Array]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            names = tuple(map(str, file["joints"]))
            t, parts = np.asarray(file["t"], dtype=float), {kind: np.asarray(file[kind], dtype=float)
                                                            for kind in ("q", "dq", "ddq") if kind in file.files}
            position = parts["q"]
    except (KeyError, ValueError, zipfile.BadZipFile, EOFError):
        raise DynidError(f"{path} is not a motion: it should hold t, q, dq, ddq and joints") from None
    missing = [name for name in joints if name not in names]
    if missing:
        raise DynidError(f"{path} has no joint '{missing[0]}' of the robot; it has {', '.join(names)}")
    if t.ndim != 1 or position.shape != (len(t), len(names)):
        raise DynidError(f"{path} is not a motion: q has shape {position.shape} for {len(t)} times and {len(names)} "
                         "joints")
    order = [names.index(name) for name in joints]
    return t, {kind: np.ascontiguousarray(values[:, order]) for kind, values in parts.items()}
