"""An estimate as a table of plain text."""

from __future__ import annotations

import numpy as np

from dynid.estimate.estimate import Estimate


def summary(estimate: Estimate) -> str:
    """Names, values, deviations and expressions, with the fit's numbers on top."""
    facts = estimate.diagnostics
    lines = [f"{estimate.method}: {len(estimate.values)} base parameters, rank {facts.get('rank', '?')}, "
             f"relative error {facts.get('relative_error', float('nan')):.2f} %"]
    width = max(len(name) for name in estimate.names)
    lines += ["", f"{'':{width}}  {'value':>12}  {'deviation':>11}  {'relative':>8}  expression"]
    for name, value, std, relative, known, expression in zip(
            estimate.names, estimate.values, estimate.std, estimate.relative_std, estimate.identified,
            estimate.base.expressions, strict=True):
        if not known:
            lines.append(f"{name:{width}}  {'not excited':>12}  {'':>11}  {'':>8}  {expression}")
            continue
        share = f"{relative:.1f} %" if np.isfinite(relative) and relative < 1e4 else "-"
        lines.append(f"{name:{width}}  {value:>12.5g}  {std:>11.3g}  {share:>8}  {expression}")
    return "\n".join(lines)
