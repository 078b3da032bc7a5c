"""Figures of payload-live: the mass of a constant and of a changing load over time."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing, Panel, PlotCurve

LARGEST_SHOWN = 30.0  # kg, of the curves that are drawn
TRUE = {"M_L": (4.092, "mass, kg"), "MZ_L": (0.69, "first moment, kg m")}


def figures(result: dict[str, Any]) -> list[Drawing]:
    series = dict(result["figure_4_3"])
    t = series.pop("t")
    few = sum(x <= 20.0 for x in t)
    panels = tuple(Panel(what, "time, s", label, (
        PlotCurve("true", (0.0, 20.0), (value, value), role="true"),
        *(PlotCurve(name, t[:few], one[what][:few]) for name, one in series.items())))
        for what, (value, label) in TRUE.items())
    tasks, trips = [], []
    for name, ways in result["tasks"].items():
        tasks.append(Panel(name, "time, s", "mass, kg", (
            _load([(x, one["mass"]) for one in ways for x in (one["t"][0], one["t"][-1])]),
            PlotCurve("ten numbers of the load", [x for one in ways for x in one["t"]],
                      [y for one in ways for y in one["history"]]))))
    seed, task = next(iter(result["experiences"].items()))
    true = _load([(x, mass) for k, mass in enumerate(task["loads"]) for x in task["at"][k:k + 2]])
    for way in ("once a sample", "once a joint"):
        trips.append(Panel(f"task {seed}, the factor acts {way}", "time, s", "mass, kg", (
            true, *(PlotCurve(name, one["t"], one["mass"]) for name, one in task[way].items()
                    if one["largest"] < LARGEST_SHOWN))))
    trips.append(Panel(f"task {seed}, speed of joint 4", "time, s", "speed, rad/s", (
        PlotCurve("joint 4", task["speed"]["t"], task["speed"]["joint 4"]),)))
    return [Drawing("A constant load", "figure 4.3: mass and first moment of the cylinder from 64 base parameters that "
                    "are estimated at once rise quickly and then approach the truth; by three equations of joint 4 "
                    "(E1) sooner than by six (E2), sooner still with larger variances (F), and with forgetting (G) "
                    "they vary more.", panels),
            Drawing("A load that changes", "figure 4.6: the mass while a box is loaded with 2 kg, 0.5 kg and emptied "
                    "at two work-stations, Ex-1 to Ex-5; the larger the factor, the more reluctant the estimate, and "
                    "Ex-1 takes a round trip. Curves above 30 kg, those of Ex-4, are left out.", tuple(trips)),
            Drawing("Ten numbers of the load alone", "the same task, by what dynid does; the document has no figure of "
                    "it.", tuple(tasks))]


def _load(steps: list[tuple[float, float]]) -> PlotCurve:
    return PlotCurve("true", [x for x, _ in steps], [y for _, y in steps], role="true")
