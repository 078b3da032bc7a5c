"""Bias and coverage of iv and wls on a hundred unfiltered logs of a virtual TX40 with encoder steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynid.study import Study, run_study
from dynid.study.result import GROUPS

# About 2^17 counts a turn and half a count of noise, at 1 kHz: second differences of the positions are off by 71
# rad/s^2, the motion's own accelerations are about 4. Dry friction that is smooth over 0.1 rad/s has no jump for noise
# to hide; with the hard sign of the other study the joints stick at every reversal, the wrist's for long.
OWN_STUDY = True  # no document prints it
STUDY: dict[str, Any] = {
    "robot": "staubli-tx40", "repetitions": 100, "duration": 8.0, "rate": 1000.0, "seed": 0,
    "model": {"rotor": True, "friction": ["viscous"],
              "terms": [{"kind": "coulomb", "sign": {"kind": "tanh", "width": 0.1}}]},
    "noise": {"encoder": 5e-5, "position": 2.5e-5, "torque": [0.5, 0.5, 0.3, 0.1, 0.1, 0.05]},
    "prepare": {"method": "none", "torque_cutoff": "none", "slow": 0.0},
    "methods": ["iv", "wls"],
}
HARD = {**STUDY, "model": {"rotor": True, "friction": ["viscous", "coulomb"]}}
CASES = {"smooth sign": STUDY, "hard sign": HARD}
IN_ALL = {"cases": ("hard sign",)}  # the smaller study of `--all`: fewer logs would not tell a bias from their spread


def run(progress: Callable[[str], None], cases: Sequence[str] = tuple(CASES)) -> dict[str, Any]:
    found = {}
    for name, settings in CASES.items():
        if name not in cases:
            continue
        found[name] = run_study(Study.from_values(settings), progress=lambda done, of, name=name: progress(
            f"{name}, {done} of {of} logs"))
    facts = {name: {one["label"]: {key: one[key] for key in ("converged", "torque_error", "seconds", *GROUPS)}
                    for one in result.to_dict()["scores"]} for name, result in found.items()}
    # The mean of a hundred errors has a deviation of a tenth of their spread: 0.3 is three of those.
    checks = {}
    for name, scores in facts.items():
        iv, wls = scores["iv"], scores["wls"]
        inertial = iv["inertial"] or {"unbiased_share": 0.0, "coverage": 0.0}
        biased = wls["inertial"]["biased_share"]
        checks |= {
            f"{name}: iv settles in every log, {100 * iv['converged']:.0f} %": iv["converged"] == 1.0,
            f"{name}: iv without bias in {100 * inertial['unbiased_share']:.1f} % of the inertial parameters, at least "
            "95": inertial["unbiased_share"] >= 0.95,
            f"{name}: unfiltered wls biased by more than its spread in {100 * biased:.0f} % of them, at least half":
                biased > 0.5,
            f"{name}: iv's 95 % intervals hold the truth of inertial parameters in {100 * inertial['coverage']:.1f} %, "
            "between 90 and 98": 0.90 <= inertial["coverage"] <= 0.98,
        }
    return {"scores": facts, "study": Study.from_values(STUDY).as_toml(),
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("friction", "method", "parameters", "bias / spread", "unbiased", "biased", "coverage")]
    for case, methods in result["scores"].items():
        for name, one in methods.items():
            for group in GROUPS:
                found = one[group]
                words = ("-",) * 4 if found is None else (
                    f"{found['bias_over_spread']:.2f}", f"{100 * found['unbiased_share']:.0f} %",
                    f"{100 * found['biased_share']:.0f} %", f"{100 * found['coverage']:.1f} %")
                rows.append((case, name, group, *words))
    return rows
