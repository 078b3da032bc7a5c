"""Save and load an estimate: values, covariance and diagnostics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, save_arrays
from dynid.errors import ModelError
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.iterations import Iteration, StepMotion
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.files import load_arrays, write_whole
from dynid.findings import Note
from dynid.model import LinearModel, complete
from dynid.plain import finite
from dynid.regression import BaseParameters
from dynid.version import __version__

_NUMBER_FIELDS = ("number", "change", "step", "simulated_relative_error")
ESTIMATE_FORMAT = 1  # version of the file format; it increases if earlier versions of dynid cannot read new files
_MAX_SIZES = {"matrix": 1e12, "values": 1e12, "theta": 1e12, "covariance": 1e30}  # SI units; beyond, squares overflow


def save(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate to an .npz file atomically."""
    found = estimate.uncertainty
    facts = {"dynid": __version__, "format": ESTIMATE_FORMAT, "method": estimate.method,
             "known": dict(estimate.base.known), "diagnostics": dict(estimate.diagnostics),
             "uncertainty": {"cov_type": found.cov_type, "notes": found.notes, "facts": dict(found.facts)},
             "provenance": dict(estimate.provenance),
             "shape": _shape(estimate.model), "learned": getattr(estimate.model, "learned", {})}
    arrays: dict[str, Any] = {
        "names": np.array(estimate.base.parameters.names), "independent": estimate.base.independent,
        "matrix": estimate.base.matrix, "values": estimate.values, "covariance": found.covariance,
        "identified": estimate.identified, "freedom": np.array(found.degrees_of_freedom),
        "facts": np.array(json.dumps(facts, default=_plain)), **packed(estimate.iterations)}
    if estimate.theta is not None:
        arrays["theta"] = estimate.theta
    with write_whole(Path(path), "wb") as file:
        save_arrays(file, arrays)


def load(path: str | Path, model: LinearModel) -> Estimate:
    """Read an estimate from an .npz file for its model; estimated shapes and data-dependent fields of terms are set in
    the model. An error is raised for a file of a later format (code "later-format")."""
    try:
        arrays = load_arrays(path)
        facts, names = json.loads(str(arrays["facts"])), tuple(map(str, arrays["names"]))
        if facts.get("format", ESTIMATE_FORMAT) > ESTIMATE_FORMAT:
            raise ModelError(f"{path} was written by dynid {facts.get('dynid')} in a format that dynid {__version__} "
                             "cannot read", "install that version or a later one", code="later-format")
        own, diagnostics = facts["uncertainty"], Diagnostics.from_facts(facts["diagnostics"])
        known = Uncertainty(arrays["covariance"], own["cov_type"], float(arrays["freedom"]),
                            tuple(map(Note.from_plain, own["notes"])), own["facts"])
    except (OSError, KeyError, ValueError, EOFError, TypeError, AttributeError):  # various errors of damaged files
        raise ModelError(f"{path} is not a saved estimate; give a file that `Estimate.save` or `dynid identify -o` "
                         "wrote", code="not-an-estimate") from None
    if names != model.parameters.names:
        raise ModelError(f"{path} belongs to another model: it has {len(names)} parameters, the given model has "
                         f"{len(model.parameters)}", code="another-model")
    shaped: Any = model
    if facts["shape"]:
        shaped = shaped.with_shape(np.array(list(facts["shape"].values())))
    if facts.get("learned"):
        shaped = shaped.with_learned(facts["learned"])
    _check_shapes(arrays, len(names), path)
    base = BaseParameters(model.parameters, arrays["independent"], arrays["matrix"], facts["known"])
    return Estimate(facts["method"], shaped, base, arrays["values"], arrays["identified"], OnDemand.known(known),
                    arrays.get("theta"), diagnostics=diagnostics, provenance=facts["provenance"],
                    iterations=unpacked(arrays))


def _check_shapes(arrays: Mapping[str, Any], parameters: int, path: str | Path) -> None:
    """Raise an error if arrays of a file have inconsistent shapes or implausible numbers."""
    independent = arrays.get("independent", np.zeros(0))
    base = len(independent) if np.ndim(independent) == 1 else 0
    shapes = {"independent": (base,), "matrix": (base, parameters), "values": (base,), "covariance": (base, base),
              "identified": (base,), "freedom": (), "theta": (parameters,)}
    kinds = {"independent": "iu", "identified": "b"}
    for name, shape in shapes.items():
        if name == "theta" and name not in arrays:
            continue
        array = np.asarray(arrays.get(name, ""))
        if array.shape != shape or array.dtype.kind not in kinds.get(name, "fiu"):
            raise ModelError(f"{path} is damaged: '{name}' has shape {array.shape} and type {array.dtype}, expected "
                             f"{shape}")
        if name not in ("freedom", "covariance") and not np.isfinite(array).all():
            raise ModelError(f"{path} is damaged: '{name}' contains a value that is not finite")
        if name in _MAX_SIZES and not np.all(np.abs(np.where(np.isinf(array), 0.0, array)) <= _MAX_SIZES[name]):
            raise ModelError(f"{path} is damaged: '{name}' contains a value that is not plausible for a robot")
    if not base or independent.min() < 0 or independent.max() >= parameters:
        raise ModelError(f"{path} is damaged: 'independent' does not match the parameters of the model")


def _shape(model: Any) -> dict[str, float]:
    """Return shape parameters of a model by name, if it has any."""
    names = complete(model).shape_names
    return {name: float(value) for name, value in zip(names, model.shape, strict=True)} if names else {}


def _plain(value: Any) -> Any:
    """Return numpy numbers and arrays as plain numbers and lists, and notes as mappings."""
    if isinstance(value, Note):
        return value.to_dict()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def packed(iterations: Sequence[Iteration]) -> dict[str, Any]:
    """Return the iterations of a method as arrays for a file: scalars (steps, 4), values and standard errors (steps,
    base), torque errors (steps, dof), motions and their errors (motions, 7, dof). Unknown values are nan."""
    if not iterations:
        return {}
    base, moving = len(iterations[0].values), [(k, step.motion) for k, step in enumerate(iterations) if step.motion]
    numbers = [[np.nan if (x := getattr(step, name)) is None else x for name in _NUMBER_FIELDS] for step in iterations]
    arrays: dict[str, Any] = {
        "iteration_numbers": np.array(numbers, dtype=float),
        "iteration_values": np.array([step.values for step in iterations]),
        "iteration_std": np.array([np.full(base, np.nan) if step.std is None else step.std for step in iterations]),
        "iteration_errors": np.array([step.relative_error_per_joint for step in iterations])}
    if moving:
        first = moving[0][1]
        arrays |= {"motion_steps": np.array([k for k, _ in moving]), "motion_t": first.t,
                   "motion_measured": first.measured.astype(np.float32),
                   "motion_q": np.array([motion.q for _, motion in moving], dtype=np.float32),
                   "motion_errors": np.array([_errors(motion) for _, motion in moving]),
                   "motion_tracking": np.array([motion.tracking_error for _, motion in moving])}
    return arrays


def unpacked(arrays: Mapping[str, Any]) -> tuple[Iteration, ...]:
    """Return the iterations of a method from the arrays of `packed`; empty if the file has none."""
    if "iteration_values" not in arrays:
        return ()
    motions: dict[int, StepMotion] = {}
    for k, step in enumerate(arrays.get("motion_steps", ())):
        errors = arrays["motion_errors"][k]
        motions[int(step)] = StepMotion(arrays["motion_t"], arrays["motion_measured"].astype(float),
                                        arrays["motion_q"][k].astype(float), errors[:3], _known(errors[3:6]),
                                        _known(errors[6]), float(arrays["motion_tracking"][k]))
    found = []
    for k, (numbers, values, std, errors) in enumerate(zip(*(arrays[f"iteration_{name}"] for name in (
            "numbers", "values", "std", "errors")), strict=True)):
        change, step, left = map(finite, numbers[1:])
        found.append(Iteration(values, errors, float(numbers[0]), _known(std), change, step, left, motions.get(k)))
    return tuple(found)


def _errors(motion: StepMotion) -> Array:
    unknown = np.full_like(motion.errors, np.nan)
    away = unknown if motion.from_reference is None else motion.from_reference
    return np.vstack([motion.errors, away, unknown[:1] if motion.torque_error is None else motion.torque_error])


def _known(array: Array) -> Array | None:
    return None if np.isnan(array).all() else array
