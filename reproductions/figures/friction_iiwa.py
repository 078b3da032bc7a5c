"""Figures of friction-iiwa: friction of each joint over its speed, and errors of the models."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing
from reproductions.figures.panels import bars, by_joint

JOINTS = [f"joint {j}" for j in range(1, 8)]


def figures(result: dict[str, Any]) -> list[Drawing]:
    curves = dict(result["curves"])
    speeds = curves.pop("speeds")
    errors = tuple(bars(JOINTS, {name: both[k] for name, both in result["errors"].items()},
                        {name: both[k] for name, both in result["published"].items()}, f"motion {k + 1}",
                        "relative error, %", logarithmic=True) for k in (0, 1))
    return [Drawing("Friction over speed, without offset", "figure 2.6: the external torque of one-joint motions, and "
                    "of model B, over time; friction falls at slow and rises at fast motion.",
                    by_joint(speeds, curves, "speed, rad/s", "friction, N m")),
            Drawing("Errors of torques", "table 2.10: model A, all at once, is slightly better than model B, one joint "
                    "at a time, and both are worst in joints 6 and 7.", errors)]
