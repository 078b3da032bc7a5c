"""3R arm (Simionato, tables 5.2 and A.6): full parameters out of base values by annealing, by loss and bounds.

The document leaves its random numbers open, so the conclusion is held, not the digits: the partial loss gives inertias
that cannot exist, the full loss robots that can, and links whose centres of mass are off carry other forces by tens to
hundreds of newtons while all torques are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _simionato import published_bounds

from dynid.consistency import Box, Consistency
from dynid.consistency.literature import extract
from dynid.model import Model
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.validate import wrench_comparison

# Table 5.2: what was wrong with each set; p_9 and p_12 come from loose bounds.
PUBLISHED = {"normal, partial": "inertia of links 1, 3", "normal, full": "feasible",
             "tight, partial": "inertia of link 1", "tight, full": "feasible",
             "loose, partial": "inertia of links 1, 2, 3; centres of links 1, 3", "loose, full": "centre of link 2"}
MASS = (4.5, 6.5)  # kg: the whole arm, 5.5 kg, known to a kilogram
STARTS = 4  # further sets from loose bounds alone, without limits on centres or mass


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    model = Model(Robot.builtin("arm3r"))
    base = base_parameters(model)
    theta = model.parameters.vector(model.parameters.nominal)
    beta = base.reduce(theta)
    consistency = Consistency(model.parameters)
    normal = published_bounds("arm3r", "normal")
    # The links' own contours: what a centre of mass must stay inside.
    boxes = {body: Box(low[1:4], high[1:4])
             for body, low, high in zip(consistency.bodies, normal.low, normal.high, strict=True)}
    judge = Consistency(model.parameters, margin=0.0, centres=boxes)
    sets: dict[str, np.ndarray] = {"true": theta}
    distance: dict[str, float] = {}
    for name in PUBLISHED:
        progress(f"annealing: {name} loss")
        width, loss = name.split(", ")
        full = loss == "full"
        found = extract(consistency, base, beta, published_bounds("arm3r", width), full=full, centres=boxes,
                        mass=MASS if full else None, runs=2, iterations=5, evaluations=3000)
        sets[name], distance[name] = found.theta, found.distance / float(np.linalg.norm(beta))
    loose = published_bounds("arm3r", "loose")
    for seed in range(STARTS):
        progress(f"annealing: loose bounds alone, start {seed + 1} of {STARTS}")
        found = extract(consistency, base, beta, loose, full=False, runs=1, iterations=4, evaluations=2000, seed=seed)
        name = f"loose alone, {seed + 1}"
        sets[name], distance[name] = found.theta, found.distance / float(np.linalg.norm(beta))
    wrong = {name: judge.violations(values) for name, values in sets.items()}
    wrenches = wrench_comparison(model, sets, _motion())
    force = {name: float(wrenches.apart(name, "true").max()) for name in sets}
    off = [name for name in distance if distance[name] < 1e-3 and any(v.kind == "centre-of-mass" for v in wrong[name])]
    kinds = {name: {v.kind for v in found} for name, found in wrong.items()}
    inertia = {"not-positive-definite", "triangle"}
    worst = max(force[name] for name in off)
    same = all(distance[name] < 1e-3 for name in ("normal, partial", "normal, full", "tight, partial", "tight, full"))
    return {
        "violations": {name: [violation.message for violation in found] for name, found in wrong.items()},
        "relative_distance": distance, "force_difference": force, "published": PUBLISHED,
        "checks": {sentence: bool(holds) for sentence, holds in {
            "normal and tight bounds: every set gives the base values to 0.1 %": same,
            "the partial loss gives inertias that are not positive definite, with normal and with loose bounds":
                all("not-positive-definite" in kinds[name] for name in ("normal, partial", "loose, partial")),
            "the partial loss gives inertias that cannot exist with tight bounds too":
                bool(kinds["tight, partial"] & inertia),
            "the full loss gives sets that can exist, with normal and with tight bounds":
                not wrong["normal, full"] and not wrong["tight, full"],
            "loose bounds and the partial loss put centres of mass outside their links": bool(off),
            f"such sets carry forces that are off by tens to hundreds of newtons: {worst:.0f} N":
                50.0 <= worst <= 500.0,
            f"the full loss with tight bounds stays within 10 N of the true forces: {force['tight, full']:.1f} N":
                force["tight, full"] < 10.0,
        }.items()}}


def _motion() -> Samples:
    """Velocities A sin(2 pi t / T) for ten seconds (eq. 5.2)."""
    t = np.arange(0.0, 10.0, 0.02)[:, None]
    size, pulsation = np.array([0.8, 0.6, 0.7]), 2.0 * np.pi / np.array([10.0, 5.0, 4.0])
    q = size / pulsation * (1.0 - np.cos(pulsation * t))
    dq, ddq = size * np.sin(pulsation * t), size * pulsation * np.cos(pulsation * t)
    return Samples.of(q, dq, ddq, np.zeros_like(q), rate=50.0)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("bounds, loss", "published", "ours", "off from base values", "forces off, N")]
    for name, distance in result["relative_distance"].items():
        found = result["violations"][name]
        rows.append((name, result["published"].get(name, ""), "feasible" if not found else _short(found),
                     f"{distance:.1e}", f"{result['force_difference'][name]:.1f}"))
    return rows


def _short(messages: list[str]) -> str:
    """'inertia of link1, link2; centre of link3'."""
    said = []
    for word, start in (("inertia", ("the inertia", "link '")), ("centre", ("the centre",))):
        links = [message.split("'")[1] for message in messages if message.startswith(start)]
        if links:
            said.append(f"{word} of {', '.join(links)}")
    return "; ".join(said)
