"""Storage of the whole state of a stream, to resume from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import load_arrays
from dynid.errors import ModelError, RecordingError
from dynid.estimate.recursive.forgetting import from_table
from dynid.files import write_whole
from dynid.model import LinearModel, robot_model
from dynid.online.feed import FeedOptions
from dynid.online.online import Online
from dynid.regression import BaseParameters
from dynid.regression.known import Known, Prior


def save(online: Online, path: str | Path) -> None:
    """Write the stream to an .npz file atomically."""
    base = online.base
    arrays = {"names": np.array(base.parameters.names), "independent": base.independent, "matrix": base.matrix,
              "facts": np.array(json.dumps(online.facts())), **online.arrays()}
    with write_whole(Path(path), "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: str | Path, model: LinearModel) -> Online:
    """Return a stream from an .npz file, for its model."""
    try:
        arrays = load_arrays(path)
        facts, names = json.loads(str(arrays["facts"])), tuple(map(str, arrays["names"]))
        if names == model.parameters.names:
            return _restored(model, facts, arrays)
    except (OSError, KeyError, ValueError, EOFError, TypeError, IndexError):
        raise RecordingError(f"{path} is not a saved stream") from None
    raise ModelError(f"{path} belongs to another model: it has {len(names)} parameters, this one "
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
                    base=base, feeding=FeedOptions(**facts["feeding"]))
    online.restore(facts, arrays)
    online.about = dict(facts.get("about", {}))
    return online


def saved_about(path: str | Path) -> dict[str, Any]:
    """Return the description of a saved stream (`Online.about`)."""
    try:
        return dict(json.loads(str(load_arrays(path)["facts"])).get("about", {}))
    except (OSError, KeyError, ValueError, EOFError, TypeError):
        raise RecordingError(f"{path} is not a saved stream") from None
