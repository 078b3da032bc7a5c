"""The page as a whole: complete, self-contained, finite, and safe with any name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.findings import Finding, Note
from dynid.report import SECTIONS, Figure, ReportData, Section, render, write_report
from dynid.report.pages.identification import IDENTIFICATION
from dynid.report.rendering import plotly_script
from dynid.robot import Robot
from dynid.validate import physics, simulation_checks

REPORTS = ("lwr", "emps", "scara", "still")


class Page(HTMLParser):
    """Elements with their attributes, the JSON of the figures, and the text a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.figures: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = "json" if dict(attrs).get("type") == "application/json" else tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "json":
            self.figures.append(json.loads(data, parse_constant=_refuse))
        elif not self._inside:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())

    def having(self, attribute: str) -> list[str]:
        return [found[attribute] or "" for _, found in self.elements if attribute in found]


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} in a figure")


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


@pytest.fixture(params=REPORTS)
def report(request: pytest.FixtureRequest) -> ReportData:
    return request.getfixturevalue(request.param)


def test_consequences_are_folded_under_their_cause(scara: ReportData) -> None:
    cause, *others = (Finding(code, "problem", "warning", f"The finding {code}.", code)
                      for code in ("torque-sign", "negative-friction", "low-r2", "joint-at-rest"))
    verdict = replace(scara.verdict, findings=(*others, cause))
    text = render(IDENTIFICATION, replace(scara, verdict=verdict, corrections={cause.text: "--set log.sign=-1"}))
    text = text[text.index('id="verdict"'):text.index('id="torques"')]
    places = [text.index(one) for one in (
        "finding torque-sign", "<code>--set log.sign=-1</code>", "It also explains 2 other findings", "finding low-r2",
        "</details>", "finding joint-at-rest")]
    assert places == sorted(places) and text.index("finding negative-friction") < places[4]


def test_every_report_is_complete_and_self_contained(report: ReportData) -> None:
    text = render(IDENTIFICATION, report)
    page = Page(text)
    ids = page.having("id")
    sections = [section.name for section in SECTIONS if section.name in ids]
    contents = [link.removeprefix("#") for link in page.having("href")]
    assert contents == sections and sections[0] == "verdict" and sections[-1] == "provenance"
    assert set(page.having("data-code")) == {finding.code for finding in report.verdict.findings
                                             if finding.kind != "identified" or report.verdict.grade != "not usable"}
    assert len(ids) == len(set(ids))
    # Nothing asks for anything outside: no source, no link, no style that loads, and a policy that forbids it.
    assert not page.having("src") and not any(tag in ("link", "iframe", "img", "object") for tag, _ in page.elements)
    assert text.count(plotly_script()) == 1
    own = text.replace(plotly_script(), "")
    assert not re.search(r"https?://|url\(|@import", own)
    assert "default-src 'none'" in own


def test_all_numbers_of_the_figures_are_finite(report: ReportData) -> None:
    page = Page(render(IDENTIFICATION, report))
    assert len(page.figures) > 5
    assert all(math.isfinite(x) for figure in page.figures for x in _numbers(figure))
    # Words for missing numbers never leak into the text either.
    assert not re.search(r"\b(nan|inf|None|undefined)\b", page.text)


def test_tabs_point_at_panes(report: ReportData) -> None:
    page = Page(render(IDENTIFICATION, report))
    assert set(page.having("aria-controls")) <= set(page.having("id"))


def test_axes_carry_titles(report: ReportData) -> None:
    for figure in Page(render(IDENTIFICATION, report)).figures:
        if figure["data"][0]["type"] == "heatmap":
            continue
        layout = figure["layout"].get("scene", figure["layout"])
        axes = [value for key, value in layout.items() if re.fullmatch(r"[xyz]axis\d?", key)]
        assert axes
        assert all(value["title"]["text"] for value in axes if value.get("visible", True))


def test_sections_of_a_seven_joint_arm(lwr: ReportData) -> None:
    page = Page(render(IDENTIFICATION, lwr))
    # Its rows are torques, it has all its parameters, was not extracted, took no steps, has no commanded positions and
    # a fixed base: sections of kernels, essential parameters, extraction, iterations, tracking and motion of the base
    # are tested in tests/runs/test_filtered_runs.py, test_essential_runs.py, test_step_runs.py, cli/test_extract.py and
    # report/test_base_motion.py.
    others = {"filtered_rows", "essential", "extraction", "iterations", "tracking", "base_motion"}
    assert {section.name for section in SECTIONS} - others <= set(page.having("id"))
    assert not others & set(page.having("id"))
    total, power = 0.0, 0.0
    for part in lwr.reconstruction.samples:  # the relative error again, from the model's own inverse dynamics
        hat = lwr.estimate.model.regressor(part.q, part.dq, part.ddq) @ lwr.estimate.base.expand(lwr.estimate.values)
        total += float(np.sum(np.where(part.keep, part.tau - hat, 0.0) ** 2))
        power += float(np.sum(np.where(part.keep, part.tau, 0.0) ** 2))
    assert f"relative error {100 * math.sqrt(total / power):.3g} % on the fitted data" in page.text
    assert lwr.command in page.text and 'robot = "test"' in page.text and "a note" in page.text
    assert [one.stiffness[0] for one in lwr.deflections] == pytest.approx([2000.0] * 7, rel=0.02)


def test_model_of_ones_own_has_no_robot_to_draw(scara: ReportData) -> None:
    page = Page(render(IDENTIFICATION, scara))
    assert "skeleton" not in page.having("id") and "torques" in page.having("id")
    assert "axis1" in page.text and "LMX2" in page.text


def test_sliding_joint_has_its_own_units(emps: ReportData) -> None:
    page = Page(render(IDENTIFICATION, emps))
    titles = {figure["layout"].get("yaxis", {}).get("title", {}).get("text") for figure in page.figures}
    assert {"force, N", "residual, N", "power density, N²/Hz", "power density, m²/Hz"} <= titles
    assert "m/s²" in page.text and "rad/s²" not in page.text


def test_simulations_with_and_without_feedback(emps: ReportData) -> None:
    driven, closed = emps.simulations
    assert driven.log is not None and closed.log is not None
    page = Page(render(IDENTIFICATION, emps))
    labels = [label for label in page.having("aria-label") if "simulated" in label]
    assert labels == ["Measured and simulated position of carriage over time",
                      "Measured and simulated force of carriage over time"]
    assert f"their error is {closed.log.torque_error:.3g} %" in page.text and "every 0.5 s" in page.text


def test_what_cannot_be_simulated_is_said_once(emps: ReportData) -> None:
    wrong = replace(emps.estimate, values=-emps.estimate.values)  # a mass below zero
    checks = simulation_checks(wrong, [((replace(emps.logs[0], source=f"log{k}.csv"),), None) for k in range(3)])
    said = Page(render(IDENTIFICATION, replace(emps, simulations=checks))).text
    assert {check.reason.code for check in checks if check.reason} == {"inertia-indefinite"}
    assert checks[0].reason is not None and said.count(checks[0].reason.text) == 1
    assert "log0.csv, under its own torques; log1.csv" in said
    assert "simulation" not in Page(render(IDENTIFICATION, replace(emps, simulations=()))).having("id")


def test_what_is_not_identified_is_named(still: ReportData) -> None:
    assert not still.estimate.identified.all()
    page = Page(render(IDENTIFICATION, still))
    names = [name for name, known in zip(still.estimate.names, still.estimate.identified, strict=True) if not known]
    rows = re.findall(r'<tr class="dim"><td class="mono"[^>]*>([^<]+)</td>', render(IDENTIFICATION, still))
    assert rows == names
    assert all(words in page.text for words in still.estimate.base.meanings)
    assert page.text.count("not identified") >= len(names)


def test_hostile_names_stay_text(lwr: ReportData) -> None:
    bad = '<script>alert("x")</script><img src=x onerror=alert(1)>%{y}</style>'
    robot = lwr.robot
    assert robot is not None
    joints = (replace(robot.joints[0], name=bad), *robot.joints[1:])
    bodies = (replace(robot.bodies[0], name=bad), *robot.bodies[1:])
    own = lwr.reconstruction
    fits = (replace(own.joints[0], name=bad), *own.joints[1:])
    parts = tuple(replace(part, source=f"logs/{bad}.csv", steps=(bad,)) for part in own.samples)
    series = tuple(replace(part, source=f"logs/{bad}.csv") for part in own.series)
    spectrum = {bad: next(iter(own.samples[0].spectrum.values()))}
    said = replace(lwr.verdict.summary, method=bad, reasons=(bad,))
    found = replace(lwr.verdict, summary=said, findings=(Finding(bad, "problem", "warning", bad, bad),))
    theirs = replace(robot, name=bad, joints=joints, bodies=bodies, source=bad)
    estimate = replace(lwr.estimate, method=bad, model=replace(lwr.estimate.model, robot=theirs))
    hostile = replace(lwr, title=bad, robot=theirs, estimate=estimate, verdict=found, notes=(bad,), command=bad,
                      settings=bad, problem={bad: bad}, physics=physics(estimate, lwr.logs[0]),
                      reconstruction=replace(own, joints=fits, samples=parts, series=series),
                      samples=tuple(replace(part, spectrum=spectrum) for part in parts))
    plain, page = Page(render(IDENTIFICATION, lwr)), Page(render(IDENTIFICATION, hostile))
    count = [tag for tag, _ in page.elements].count
    assert count("img") == 0 and not any(name.startswith("on") for _, found in page.elements for name in found)
    # As many scripts as figures, plotly and the page's own.
    assert count("script") == len(page.figures) + 2 and count("style") == 1
    assert len(page.figures) >= len(plain.figures) - 1
    assert bad in "".join(page.shown)
    # Plotly reads a little HTML in texts and %{...} in hover texts; a name is neither.
    assert not any("<script" in text or "<img" in text for figure in page.figures for text in _strings(figure))


def test_hostile_names_in_a_simulation_stay_text(emps: ReportData) -> None:
    bad = '<script>alert("x")</script><img src=x onerror=alert(1)>%{y}</style>'
    driven, closed = emps.simulations
    assert driven.log is not None
    hostile = (replace(driven, source=f"logs/{bad}.csv", reason=Note(bad, bad), log=replace(driven.log, joints=(bad,))),
               replace(closed, source=bad, log=None, reason=Note(bad, bad)))
    page = Page(render(IDENTIFICATION, replace(emps, simulations=hostile)))
    assert [tag for tag, _ in page.elements].count("img") == 0 and bad in "".join(page.shown)
    assert [tag for tag, _ in page.elements].count("script") == len(page.figures) + 2
    assert not any("<script" in text or "<img" in text for figure in page.figures for text in _strings(figure))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value


def test_without_other_data_there_is_less_to_show(emps: ReportData) -> None:
    bare = replace(emps, cross_validation=None, robot=None, command="", settings="", notes=(), seconds=None)
    page = Page(render(IDENTIFICATION, bare))
    assert "cross_validation" not in page.having("id") and "skeleton" not in page.having("id")
    assert "run.toml" not in page.text


def test_robot_without_inertias_is_drawn_all_the_same(emps: ReportData) -> None:
    robot = Robot.builtin("emps")
    bare = replace(robot, bodies=(replace(robot.bodies[0], inertia=None, parts=()),))
    assert "no inertias to draw" in Page(render(IDENTIFICATION, replace(emps, robot=bare))).text


def test_written_whole_or_not_at_all(emps: ReportData, tmp_path: Path) -> None:
    path = write_report(emps, tmp_path / "new" / "report.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    (tmp_path / "file").write_text("")
    with refused(DynidError, "cannot-write", "report.html"):
        write_report(emps, tmp_path / "file" / "report.html")


def test_the_same_data_give_the_same_page(scara: ReportData) -> None:
    assert render(IDENTIFICATION, scara) == render(IDENTIFICATION, scara)


def mean_figure(data: ReportData) -> dict[str, Any]:
    """Mean torque of every joint, for a section of one's own."""
    means = [float(part.mean()) for part in data.reconstruction.series[0].measured.T]
    return {"means": means, "figure": Figure([{"type": "bar", "x": list(data.joints), "y": means}], {}, "Mean torques")}


def test_a_section_of_ones_own_stands_in_the_report(emps: ReportData, tmp_path: Path) -> None:
    template = ('{% from "macros.html" import value %}<p>{{ data.title }}</p>'
                "<table>{{ value(means[0], 6) }}</table>{{ figure }}")
    own = Section("means", "Mean <torques>", mean_figure, template)
    text = write_report(emps, tmp_path / "report.html", (SECTIONS[0], own, *SECTIONS[1:])).read_text(encoding="utf-8")
    page, plain = Page(text), Page(render(IDENTIFICATION, emps))
    contents = [link.removeprefix("#") for link in page.having("href")]
    assert contents[:3] == ["verdict", "means", "torques"]
    assert len(page.figures) == len(plain.figures) + 1 and "Mean <torques>" in page.text
    mean = float(emps.reconstruction.series[0].measured.mean())
    assert f"{mean:.6g}" in page.text
    first = [figure["data"][0] for figure in page.figures]
    assert [trace["y"] for trace in first if trace["type"] == "bar" and "name" not in trace] == [[mean]]
    short = Page(write_report(emps, tmp_path / "short.html", [own]).read_text(encoding="utf-8"))
    assert short.having("href") == ["#means"]


@pytest.mark.parametrize(("own", "words"), [
    (Section("torques", "Again", lambda data: {}, "text"), ("bad-call", "'torques'")),
    (Section("means", "No template", lambda data: {}), ("bad-call", "template", "'means'")),
    (Section("means", "Broken", lambda data: {}, "{% if %}"), ("bad-call", "template", "'means'")),
])
def test_a_section_that_cannot_be_shown_is_refused(emps: ReportData, tmp_path: Path, own: Section[ReportData],
                                                   words: tuple[str, ...]) -> None:
    with refused(DynidError, *words):
        write_report(emps, tmp_path / "report.html", (*SECTIONS, own))
    assert not (tmp_path / "report.html").exists()
