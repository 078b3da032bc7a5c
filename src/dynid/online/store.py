"""Storage of the state of an online estimation in a file or a folder, from which the estimation can resume.

stream.npz contains the whole state and is replaced atomically. history.csv has one line per update with time, samples
and the estimate with its standard errors. The history restarts when another model is chosen. An incomplete last line
is dropped when the file is opened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, RecordingError
from dynid.estimate.estimate import Estimate
from dynid.estimate.recursive.forgetting import from_table
from dynid.files import MAX_SAVED_BYTES, load_arrays, read_file, write_whole, writing
from dynid.model import LinearModel, robot_model
from dynid.online.feed import FeedOptions
from dynid.online.online import Online
from dynid.regression import BaseParameters
from dynid.regression.known import Known, Prior

STATE, HISTORY = "stream.npz", "history.csv"


def save(online: Online, path: str | Path) -> None:
    """Write the state of an online estimation to an .npz file atomically."""
    base = online.base
    arrays = {"names": np.array(base.parameters.names), "independent": base.independent, "matrix": base.matrix,
              "facts": np.array(json.dumps(online.facts())), **online.arrays()}
    with write_whole(Path(path), "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: str | Path, model: LinearModel) -> Online:
    """Return an online estimation from an .npz file that `save` wrote for the given model."""
    try:
        arrays = load_arrays(path)
        facts, names = json.loads(str(arrays["facts"])), tuple(map(str, arrays["names"]))
        if names == model.parameters.names:
            return _restored(model, facts, arrays)
    except (OSError, KeyError, ValueError, EOFError, TypeError, IndexError):
        raise RecordingError(f"{path} is not a saved stream; give a file that `Online.save` wrote") from None
    raise ModelError(f"{path} belongs to another model, with {len(names)} parameters; the given model has "
                     f"{len(model.parameters)}")


def _restored(model: LinearModel, facts: dict[str, Any], arrays: dict[str, Any]) -> Online:
    own = robot_model(model)
    if facts.get("learned") and own is not None:
        model = own.with_learned(facts["learned"])
    base = BaseParameters(model.parameters, arrays["independent"], arrays["matrix"], facts["known"])
    known = {str(name): Known(*map(float, one))
             for name, one in zip(arrays["prior_names"], arrays["prior_known"], strict=True)}
    prior = Prior(arrays["prior_matrix"], arrays["prior_values"], known)
    online = Online(model, facts["method"], prior=prior if len(prior.values) else None,
                    forgetting=from_table(facts["forgetting"]), slow=facts["slow"], robust=facts["robust"],
                    adds=facts["adds"], noise="learn" if facts["learn"] else 1.0 / arrays["scale"],
                    wanted=facts["wanted"], limits={name: (low, high) for name, (low, high) in facts["limits"].items()},
                    base=base, feeding=FeedOptions(**facts["feeding"]), unmeasured=facts.get("unmeasured", ()))
    online.restore(facts, arrays)
    online.about = dict(facts.get("about", {}))
    return online


class Record:
    """Folder with the state and the history of an online estimation; the folder is created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def resume(self, model: LinearModel) -> Online | None:
        """Return the online estimation that is stored in the folder; None if nothing is stored."""
        path = self.folder / STATE
        return Online.load(path, model) if path.exists() else None

    @property
    def about(self) -> dict[str, Any] | None:
        """Return the description of the stored estimation (`Online.about`); None if nothing is stored."""
        path = self.folder / STATE
        try:
            return dict(json.loads(str(load_arrays(path)["facts"])).get("about", {})) if path.exists() else None
        except (OSError, KeyError, ValueError, EOFError, TypeError):
            raise RecordingError(f"{path} is not a saved stream; give the folder of `dynid watch --record`") from None

    def write(self, online: Online, estimate: Estimate | None) -> None:
        """Write the state of an online estimation, and a line of the history if there is an estimate."""
        if estimate is not None:
            self._line(online, estimate)
        online.save(self.folder / STATE)

    def _line(self, online: Online, estimate: Estimate) -> None:
        path, names = self.folder / HISTORY, estimate.names
        head = ",".join(["t", "samples", "restarts", *names, *(f"std {name}" for name in names)]) + "\n"
        with writing(path):
            content = read_file(path, MAX_SAVED_BYTES) if path.exists() else b""
            whole = content[:content.rfind(b"\n") + 1]  # a kill may have left an incomplete line, also of the header
            if not whole.startswith(head.encode()):  # no header yet, or that of another model
                whole = head.encode()
            if whole != content:
                with write_whole(path, "wb") as file:
                    file.write(whole)
            numbers = [online.last_stamp, online.samples, len(online.restarts), *estimate.values, *estimate.std]
            with open(path, "a", encoding="utf-8") as file:
                file.write(",".join(f"{x:.9g}" for x in numbers) + "\n")


def read_history(folder: Path) -> tuple[list[str], Array]:
    """Return the column names and the rows (updates, columns) of the history that `Record` writes in a folder."""
    path = Path(folder) / HISTORY
    try:
        text = read_file(path, MAX_SAVED_BYTES).decode("utf-8")
        head, *lines = text.split("\n")[:-1]  # a last line without line end is incomplete
    except (OSError, ValueError):
        raise RecordingError(f"{folder} has no readable {HISTORY}; give the folder of `dynid watch --record`") from None
    names = head.split(",")
    rows = [[float(x) for x in line.split(",")] for line in lines if line.count(",") == len(names) - 1]
    return names, np.array(rows).reshape(-1, len(names))
