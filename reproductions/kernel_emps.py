"""Equations without accelerations by polynomial kernels, at 20 settings on EMPS and 8 on TX40 (Lomakin, s. III-IV)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.cutoff_choice import choose_cutoff
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.validate import reconstruct
from reproductions._data import data, log

PUBLISHED = {"M1": (95.1089, 1.0), "Fv1": (203.5034, 2.0), "Fc1": (20.3935, 2.0)}  # and percent that is allowed
WINDOWS, ORDERS, EXPONENTS = (0.02, 0.05, 0.1, 0.15, 0.2), (0, 1), (3.0, 5.0)
LENGTHS, DEGREES = (11, 21, 51, 101, 151, 201), (2, 3, 4)  # of Savitzky-Golay, samples at 1 kHz
TX40_WINDOWS, TX40_YARDSTICK, TX40_LIMIT = (0.02, 0.05, 0.1, 0.2), 10.0, 4.95  # s, Hz, percent
KINDS = ("torque", "kernel", "power", "energy")


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    result = {"emps": _emps(progress), "tx40": _tx40(progress)}
    checks = {}
    for name, (_, limit) in PUBLISHED.items():
        worst = result["emps"]["worst_off_percent"][name]
        checks[f"{name} within {limit:g} % of the published value at all 20 settings: {worst:.2f} %"] = worst <= limit
    kernel, savitzky = result["emps"]["spread_percent"]["kernel"], result["emps"]["spread_percent"]["savitzky_golay"]
    checks["M1, Fv1 and Fc1 vary less than with Savitzky-Golay at 18 settings"] = all(
        kernel[name] < savitzky[name] for name in PUBLISHED)
    worst = max(result["tx40"]["kernel"].values())
    checks[f"TX40's torques are met to {TX40_LIMIT} % or better at 8 settings: {worst:.2f} %"] = worst <= TX40_LIMIT
    return {**result, "checks": checks}


def _emps(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("emps")
    recording = log("emps", robot, "DATA_EMPS.mat")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    progress("EMPS: 20 kernels")
    kernel = {f"T {1e3 * window:g} ms, N {order}, alpha {exponent:g}": _values(model, prepare(
        recording, equations="kernel", kernel_window=window, kernel_order=order, kernel_alpha=exponent,
        kernel_beta=exponent)) for window, order, exponent in itertools.product(WINDOWS, ORDERS, EXPONENTS)}
    progress("EMPS: 18 filters of Savitzky-Golay")
    # As the document has it: the motion is filtered, torques are as measured.
    savitzky = {f"{length} samples, degree {degree}": _values(model, prepare(
        recording, method="savitzky-golay", window=length / 1000.0, order=degree, torque_cutoff="none"))
        for length, degree in itertools.product(LENGTHS, DEGREES)}
    progress("EMPS: the other equations at the window that blocks left out choose")
    off = {name: max(100.0 * abs(one[name] / published - 1.0) for one in kernel.values())
           for name, (published, _) in PUBLISHED.items()}
    return {"published": {name: value for name, (value, _) in PUBLISHED.items()}, "kernel": kernel,
            "savitzky_golay": savitzky, "worst_off_percent": off,
            "spread_percent": {"kernel": _spread(kernel), "savitzky_golay": _spread(savitzky)},
            "equations": {kind: _chosen(model, recording, kind) for kind in KINDS}}


def _tx40(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.from_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    recording = log("tx40", robot)
    wrist = {"kind": "coupled-wrist", "joints": [5, 6]}
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset"), extra=[wrist]))
    yardstick = prepare(recording, cutoff=TX40_YARDSTICK)
    progress("TX40: 8 kernels")
    kernel = {f"T {1e3 * window:g} ms, N {order}": reconstruct(_fit(model, prepare(
        recording, equations="kernel", kernel_window=window, kernel_order=order)), yardstick).relative_error
        for window, order in itertools.product(TX40_WINDOWS, ORDERS)}
    progress("TX40: the default and the other equations")
    every = {kind: _chosen(model, recording, kind, yardstick) for kind in KINDS}
    return {"yardstick_hz": TX40_YARDSTICK, "default": every["torque"]["relative_error"], "kernel": kernel,
            "equations": every}


def _fit(model: Model, samples: Samples) -> Estimate:
    return identify(Problem.from_model(model, samples), method="wls")


def _values(model: Model, samples: Samples) -> dict[str, float]:
    found = _fit(model, samples)
    return {name: float(value) for name, value in zip(found.names, found.values, strict=True) if name in PUBLISHED}


def _chosen(model: Model, recording: Recording, kind: str, yardstick: Samples | None = None) -> dict[str, Any]:
    """Return values, standard errors and torque error of wls at the cut-off that cross-validation chooses."""
    from dynid.recording.preparation import Preparation

    choice = choose_cutoff(model, recording, Preparation.from_settings({"equations": kind}))
    samples = choice.prepare(recording)
    found = _fit(model, samples)
    error = reconstruct(found, samples if yardstick is None else yardstick).relative_error
    return {"cutoff": choice.cutoff, "relative_error": error, "condition": found.diagnostics.condition,
            "values": dict(zip(found.names, found.values.tolist(), strict=True)),
            "deviations": dict(zip(found.names, found.std.tolist(), strict=True))}


def _spread(settings: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the range of each parameter over the settings, percent of the published value."""
    return {name: float(100.0 * np.ptp([one[name] for one in settings.values()]) / published)
            for name, (published, _) in PUBLISHED.items()}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    emps, tx40 = result["emps"], result["tx40"]
    rows = [("", *PUBLISHED, "TX40 torques, %")]
    rows.append(("published", *(f"{value:.4f}" for value in emps["published"].values()), ""))
    rows.append(("kernel, worst of 20, off %", *(f"{x:.2f}" for x in emps["worst_off_percent"].values()), ""))
    rows.append(("kernel, spread, %", *(f"{x:.2f}" for x in emps["spread_percent"]["kernel"].values()),
                 f"{min(tx40['kernel'].values()):.2f} to {max(tx40['kernel'].values()):.2f}"))
    rows.append(("Savitzky-Golay, spread of 18, %",
                 *(f"{x:.2f}" for x in emps["spread_percent"]["savitzky_golay"].values()), ""))
    for kind in KINDS:
        one = emps["equations"][kind]
        rows.append((f"{kind}, cut-off by blocks left out", *(
            f"{one['values'][name]:.3f} +- {one['deviations'][name]:.3f}" for name in PUBLISHED),
            f"{tx40['equations'][kind]['relative_error']:.2f}"))
    return rows
