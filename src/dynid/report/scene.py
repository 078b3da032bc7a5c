"""Traces and layout of plotly's 3-D figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.report.figure import GREY, INK, LIGHT, numbers


def coordinates(points: Array, digits: int = 5) -> dict[str, list[float | None]]:
    """Return points (points, 3) as the coordinate lists x, y and z of a Plotly trace."""
    return {name: numbers(points[:, k], digits) for k, name in enumerate("xyz")}


def lines(points: Array, name: str, color: str, width: float, **options: Any) -> dict[str, Any]:
    """Return lines through points (points, 3), interrupted at rows of nan."""
    return {"type": "scatter3d", "mode": "lines", **coordinates(points), "name": name,
            "line": {"color": color, "width": width}, "hoverinfo": "skip", **options}


def links(points: Array) -> dict[str, Any]:
    """Return a plotly trace of a robot's links."""
    return lines(points, "links", GREY, 9)


def joints(frames: Array, labels: Sequence[str]) -> dict[str, Any]:
    """Return a dot at every joint frame (dof, 4, 4), with its label on hover."""
    return {"type": "scatter3d", "mode": "markers", **coordinates(frames[:, :3, 3]), "name": "joints",
            "marker": {"size": 5, "color": INK}, "text": list(labels), "hovertemplate": "%{text}<extra></extra>"}


def mesh(points: Array, triangles: Ints, name: str, color: str, opacity: float, **options: Any) -> dict[str, Any]:
    """Return a surface of triangles (faces, 3) between points (points, 3)."""
    return {"type": "mesh3d", **coordinates(points, 4), **dict(zip("ijk", triangles.T.tolist(), strict=True)),
            "name": name, "color": color, "opacity": opacity, **options}


def layout(low: Array, high: Array, least: float) -> dict[str, Any]:
    """Return a scene around a box from corner low to high (3,) with equal scales; half sides are at least `least`."""
    middle, half = 0.5 * (low + high), np.maximum(0.55 * (high - low), least)
    ratio, ranges = 1.1 * half / half.max(), np.round(np.column_stack([middle - half, middle + half]), 4).tolist()
    side = {"backgroundcolor": "#f7f8fa", "gridcolor": "#dfe3e8", "zerolinecolor": LIGHT, "showbackground": True}
    axes = {f"{name}axis": {**side, "title": {"text": f"{name}, m"}, "range": reach}
            for name, reach in zip("xyz", ranges, strict=True)}
    return {**axes, "aspectmode": "manual", "aspectratio": dict(zip("xyz", numbers(ratio, 4), strict=True)),
            "camera": {"eye": {"x": 1.5, "y": 1.2, "z": 0.6}, "center": {"x": 0, "y": 0, "z": -0.12}}}
