"""What the figures draw, against closed forms."""

from __future__ import annotations

import html
import json
import re
import struct
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from robots import random_inertia

from dynid.arrays import true_ranges
from dynid.consistency import Consistency, nearest
from dynid.regression.residual_series import Residuals
from dynid.report import ReportData
from dynid.report.figure import (
    Figure,
    log_axis,
    numbers,
    packed,
    script_json,
    significant,
    text,
    thinned_rows,
    tick_text,
    with_breaks,
)
from dynid.report.pages.identification import (
    IDENTIFICATION,
    consistency,
    covariance,
    expressions,
    logs,
    parameters,
    residuals,
    simulation,
    skeleton,
    torques,
)
from dynid.report.rendering import render
from dynid.report.words import SLIDING, TURNING, number, percent, seconds, typeset, whole
from dynid.robot import inertia as ten
from dynid.validate import ResimulatedLog, free_fall


@given(st.integers(1, 3000), st.integers(1, 3), st.integers(16, 400), st.integers(0, 10))
def test_thinned_lines_reach_what_the_whole_line_reaches(count: int, width: int, most: int, seed: int) -> None:
    signals = np.random.default_rng(seed).normal(size=(count, width))
    rows = thinned_rows(signals, most)
    assert len(rows) <= most and np.all(np.diff(rows) > 0) and rows[0] == 0 and rows[-1] == count - 1
    assert np.array_equal(signals[rows].max(axis=0), signals.max(axis=0))
    assert np.array_equal(signals[rows].min(axis=0), signals.min(axis=0))


def test_a_gap_in_time_breaks_the_line() -> None:
    t = np.array([0.0, 0.1, 0.2, 5.0, 5.1])
    time, signal = with_breaks(t, np.array([0, 2, 4]), 1.0, np.arange(5.0))
    assert time.tolist() == [0.0, 0.2, 5.1, 5.1]
    assert signal[:2].tolist() == [0.0, 2.0] and np.isnan(signal[2]) and signal[3] == 4.0


def test_runs() -> None:
    assert true_ranges(np.array([True, False, True, True, False])).tolist() == [[0, 1], [2, 4]]
    assert true_ranges(np.zeros(3, dtype=bool)).tolist() == []


def test_long_lines_are_written_as_numbers_of_four_bytes() -> None:
    values = [1.5, -2.0, np.nan, 24.995]
    found = json.loads(script_json({"x": packed(np.repeat(values, 2)[::2])}))["x"]
    assert found["dtype"] == "f4"
    assert struct.unpack("<4f", b64decode(found["bdata"])) == pytest.approx(values, rel=1e-7, nan_ok=True)


def test_torque_figures_keep_the_peaks(lwr: ReportData) -> None:
    shown = torques.gather(lwr)
    assert [pane["kind"] for pane in shown["panes"]] == ["identified from", "validation"]
    part = lwr.reconstruction.series[0]
    for j, figure in enumerate(shown["panes"][0]["figures"]):
        measured, predicted = (trace["y"] for trace in figure.data if trace["name"] in ("low-passed", "predicted"))
        assert len(measured) == len(figure.data[1]["x"]) <= torques.MOST_POINTS
        for drawn, all_of_it in ((measured, part.measured[:, j]), (predicted, part.predicted[:, j])):
            top = np.abs(all_of_it).max()
            assert max(drawn) == pytest.approx(all_of_it.max(), abs=1e-4 * top)
            assert min(drawn) == pytest.approx(all_of_it.min(), abs=1e-4 * top)


def test_the_torque_as_measured_stands_behind(emps: ReportData, scara: ReportData) -> None:
    for report in (emps, scara):  # decimated
        [samples] = report.reconstruction.samples
        for j, figure in enumerate(torques.gather(report)["panes"][0]["figures"]):
            raw, raw_line = figure.data[0]["y"], figure.data[0]["line"]
            assert [trace["name"] for trace in figure.data[:3]] == ["raw", "low-passed", "predicted"]
            assert raw_line["width"] < 1 and len(raw) <= torques.MOST_POINTS
            assert max(raw) == pytest.approx(samples.tau[:, j].max(), rel=2e-3)
            assert min(raw) == pytest.approx(samples.tau[:, j].min(), rel=2e-3)


def windowed(count: int = 9000, width: int = 1500) -> ResimulatedLog:
    """A sine, and a simulation that leaves it as the square of the time since its window began."""
    t = np.arange(count) / 1000.0
    q = np.sin(t)[:, None]
    windows = np.array([[k, k + width] for k in range(0, count, width)])
    since = np.concatenate([t[a:b] - t[a] for a, b in windows])
    tau = np.zeros_like(q)
    simulated = q + 0.1 * since[:, None] ** 2
    return ResimulatedLog("torque-driven", t, q, simulated, tau, tau, windows, ("slide",), len(windows))


@pytest.mark.parametrize("points", [600, 3000])
def test_simulated_positions_restart_where_their_windows_do(points: int) -> None:
    log = windowed()
    measured, simulated, starts = simulation.position_figure(log, 0, "slide", SLIDING, points).data
    assert max(len(one["x"]) for one in (measured, simulated)) <= points + 3 * len(log.windows)
    assert starts["x"] == pytest.approx(log.t[log.windows[:, 0]].tolist())
    assert starts["y"] == pytest.approx(np.sin(starts["x"]), abs=1e-4)
    breaks = [k for k, y in enumerate(simulated["y"]) if y is None]
    assert [simulated["x"][k + 1] for k in breaks] == pytest.approx(starts["x"][1:])  # a window begins after each break
    # No line runs across a border: the last point before it has drifted off, the first after it has not.
    drift = np.array([np.nan if y is None else y for y in simulated["y"]]) - np.sin(simulated["x"])
    assert drift[np.array(breaks) - 1] == pytest.approx(0.1 * 1.499 ** 2, abs=1e-3)
    assert drift[np.array(breaks) + 1] == pytest.approx(0.0, abs=1e-4)


def test_a_simulation_that_runs_away_leaves_the_picture() -> None:
    log = windowed()
    away = replace(log, simulated_q=log.q + 1e6 * (log.simulated_q - log.q))
    low, high = simulation.position_figure(away, 0, "slide", SLIDING, 600).layout["yaxis"]["range"]
    assert low < -1.0 and 1.0 < high < 2.0


def test_spectrum_of_a_sine_holds_its_power() -> None:
    rate, count = 200.0, 2048
    t = np.arange(count) / rate
    residual = 3.0 * np.sin(2 * np.pi * 20.3125 * t)
    part = Residuals(t, 10.0 + residual[:, None], np.full((count, 1), 10.0), np.ones((count, 1), dtype=bool), rate, "x")
    figure = residuals.spectrum_figure(part, 0, TURNING, 30.0)
    f, power = np.array(figure.data[1]["x"]), np.array(figure.data[1]["y"])
    assert f[np.argmax(power)] == pytest.approx(20.3125, abs=rate / 256)
    assert np.sum(power) * (f[1] - f[0]) == pytest.approx(4.5, rel=0.02)  # A^2 / 2
    assert figure.data[2]["x"] == [30.0, 30.0]


def test_histogram_is_a_density() -> None:
    used = np.random.default_rng(0).normal(size=5000)
    figure = residuals.histogram_figure(used, TURNING)
    bars, normal = figure.data
    assert np.sum(bars["y"]) * bars["width"] == pytest.approx(1.0, rel=1e-3)
    assert max(normal["y"]) == pytest.approx(1 / np.sqrt(2 * np.pi), rel=0.05)


def test_axis_of_values_is_a_symmetric_logarithm() -> None:
    values = np.array([-100.0, -1.0, 0.0, 1.0, 10.0, 100.0])
    places = parameters.symmetric_log(values, 1e-6)
    assert places[2] == 0.0 and places[0] == -places[5] and np.all(np.diff(places) > 0)
    assert places[5] - places[4] == pytest.approx(1.0, abs=1e-9)  # a decade each, far from zero
    ticks = parameters.symmetric_log_ticks(values, 0.1)
    assert 0.0 in ticks and ticks.max() == 100.0 and ticks.min() == -100.0


def test_values_on_the_chart_are_those_of_the_estimate(lwr: ReportData) -> None:
    shown = parameters.gather(lwr)
    own = shown["chart"].data[0]
    linear = parameters.linear_part(lwr.estimate.values)
    back = 2 * linear * np.sinh(np.array(own["y"]) * np.log(10.0))
    assert np.allclose(back, lwr.estimate.values[lwr.estimate.identified], rtol=2e-3, atol=1e-3 * linear)
    up = 2 * linear * np.sinh((np.array(own["y"]) + np.array(own["error_y"]["array"])) * np.log(10.0))
    assert np.allclose(up, lwr.estimate.values + 2 * lwr.estimate.std, rtol=5e-3, atol=1e-2 * linear)


def test_other_methods_stand_beside_in_deviations(lwr: ReportData) -> None:
    other = lwr.others[0]
    rows = parameters.gather(lwr)["rows"]
    for k, row in enumerate(rows):
        expected = (other.values[k] - lwr.estimate.values[k]) / np.hypot(other.std[k], lwr.estimate.std[k])
        assert row["others"][0]["z_score"] == pytest.approx(expected, rel=1e-9)


def test_correlation_is_that_of_numpy() -> None:
    draws = np.random.default_rng(1).normal(size=(4, 50)) * np.array([[1.0], [10.0], [0.1], [2.0]])
    draws[1] += 5 * draws[0]
    assert np.allclose(covariance.correlation(np.cov(draws)), np.corrcoef(draws), atol=1e-12)


def test_expressions_say_what_the_base_says(lwr: ReportData) -> None:
    base = lwr.estimate.base
    shown = expressions.gather(lwr)
    for row in shown["grouped"]:
        coefficients = base.coefficients()[row["name"]]
        said = {term["name"]: (-1 if term["sign"] == "\u2212" else 1) * float(term["factor"] or 1.0)
                for term in row["terms"]}
        assert said == pytest.approx(coefficients, rel=1e-5)
    counted = len(shown["grouped"]) + len(shown["alone"])
    assert counted == len(base) == shown["count"]


def test_bodies_that_can_exist_are_not_red() -> None:
    rng = np.random.default_rng(3)
    bodies = [random_inertia(rng) for _ in range(20)]
    assert all(map(ten.can_exist, bodies))
    for body in bodies:
        wrong = body.copy()
        wrong[9] = -wrong[9]
        assert not ten.can_exist(wrong)
        wrong = body.copy()
        wrong[0] += 10 * wrong[:6].max()  # one moment larger than the other two together
        assert not ten.can_exist(wrong)


def test_skeleton_has_equal_axes_and_an_ellipsoid_a_link(lwr: ReportData) -> None:
    figure = skeleton.gather(lwr)["figure"]
    scene = figure.layout["scene"]
    lengths = np.array([np.ptp(scene[f"{name}axis"]["range"]) for name in "xyz"])
    ratio = np.array([scene["aspectratio"][name] for name in "xyz"])
    assert np.allclose(ratio / lengths, ratio[0] / lengths[0], rtol=1e-2)
    names = [trace["name"] for trace in figure.data if trace["type"] == "mesh3d" and "visible" not in trace]
    assert len(names) == 7


def test_pieces_of_one_log_are_one_log(emps: ReportData) -> None:
    piece = emps.logs[0]
    shown = logs.gather(replace(emps, samples=(piece, piece)))
    assert len(shown["logs"]) == 1 and shown["logs"][0]["rows"] == 2 * len(piece)
    low, high = shown["logs"][0]["ranges"][0]["ranges"][0]
    assert (low, high) == (piece.q.min(), piece.q.max())


def test_cut_off_is_drawn_where_it_was_chosen(lwr: ReportData) -> None:
    chosen = lwr.logs[0].settings["cutoff"]
    figure = logs.gather(lwr)["logs"][0]["spectrum"]
    assert [trace["x"] for trace in figure.data if trace["name"] == "cut-off"] == [[chosen, chosen]]


def test_numbers_for_figures() -> None:
    assert numbers([1.23456789, -0.000012, np.nan, np.inf], 5) == [1.2346, -0.0, None, None]
    assert numbers([0.0, 0.0]) == [0.0, 0.0] and numbers([]) == []
    assert numbers([1e-300, 2e-310]) is not None
    assert significant([123456.0, 1.23456e-9, np.nan], 3) == [123000.0, 1.23e-9, None]


@given(st.text(max_size=30))
def test_no_text_leaves_its_script(name: str) -> None:
    said = str(script_json({"a": name}))
    assert not re.search(r"[<>&\u2028\u2029]", said)
    assert json.loads(said) == {"a": name}
    assert "<" not in text(name) and ">" not in text(name) and "%{" not in text(name)


def test_labels_of_a_logarithmic_axis() -> None:
    few, many = log_axis("f", 0.4, 12.0), log_axis("f", 1e-6, 30.0)
    assert [x for x in few["tickvals"] if 0.4 <= x <= 12.0] == [0.5, 1.0, 2.0, 5.0, 10.0]
    assert [float(x) for x in few["ticktext"]] == few["tickvals"]
    assert many["tickvals"] == pytest.approx([10.0 ** k for k in range(-6, 3)], rel=1e-12)
    assert many["ticktext"][:2] == ["10<sup>\u22126</sup>", "10<sup>\u22125</sup>"] and many["ticktext"][-1] == "100"
    assert log_axis("f", 1e-24, 1.0)["tickvals"] == pytest.approx([10.0 ** k for k in range(-24, 1, 3)], rel=1e-12)
    assert tick_text(-2e-4) == "\u22122\u00b710<sup>\u22124</sup>" and tick_text(0.0) == "0"


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Figure([{"y": [float("nan")]}], {}, "bad").__html__()


def test_words() -> None:
    assert number(0.00001234) == "1.234e-5" and number(None) == "\u2013" and number(float("inf")) == "\u2013"
    assert percent(1.6234) == "1.62\u00a0%" and percent(123.4) == "123\u00a0%" and percent(1e6) == "> 1000\u00a0%"
    assert percent(-2e3) == "< \u22121000\u00a0%"
    assert typeset("M1 = 1 +- 0.1 kg m^2") == "M1 = 1 \u00b1 0.1 kg m²"
    assert whole(1234567) == "1\u202f234\u202f567" and seconds(0.25) == "250 ms" and seconds(300.0) == "5 min"


def test_decimated_data_say_so(emps: ReportData) -> None:
    log = logs.gather(emps)["logs"][0]
    assert log["decimated"] == 4 and log["regression_rate"] == pytest.approx(log["rate"] / 4)
    figures = residuals.gather(emps)["joints"][0]["figures"]
    spectra = [figure for figure in figures if figure.label.startswith("Spectra")]
    # The low-pass of the decimation stands at 0.8 of the Nyquist frequency after it.
    assert [trace["x"][0] for trace in spectra[0].data if trace["name"] == "cut-off"] == pytest.approx([0.8 * 25.0])


def test_physics_is_shown_as_it_was_found(lwr: ReportData) -> None:
    found = lwr.physics
    assert found is not None
    shown = consistency.gather(lwr)  # the estimate of this report is the robot's file, which cannot exist
    page = html.unescape(render(replace(IDENTIFICATION, sections=(consistency.SECTION,)), lwr))
    assert found.violations and all(f'<li class="poor">{typeset(one.message)}</li>' in page for one in found.violations)
    for link in found.links:
        row = re.search(rf"<tr><td>{link.name}</td>.*?</tr>", page, re.S)[0]
        worst = max((one.amount for one in link.violations), default=None)
        assert ("✓ yes" if worst is None else f"✗ no, by<br>{number(worst, 2)} ") in row
        assert all(typeset(one.message) in row for one in link.violations)
    assert f">{percent(100.0 * found.positive_share)}</span>" in page
    assert shown is not None and found.forces is not None and len(shown["forces"]) == 7
    for j, figure in enumerate(shown["forces"]):
        drawn = np.array([trace["y"] for trace in figure.data])
        exact = found.forces.forces[:, :, j]
        assert drawn.max() == pytest.approx(exact.max(), rel=1e-2) and drawn.shape[0] == 2
    assert consistency.gather(replace(lwr, physics=None)) is None


def test_energy_is_drawn_from_its_lowest_point(lwr: ReportData) -> None:
    assert lwr.estimate.theta is not None
    model = lwr.estimate.model
    theta = nearest(Consistency(model.parameters, margin=1e-5), lwr.estimate.theta).theta
    fall = free_fall(model, theta, seconds=2.0)
    potential, kinetic, both = (np.array(trace["y"]) for trace in consistency.energy_figure(fall).data)
    np.testing.assert_allclose(both, potential + kinetic, atol=2e-3 * both.max())
    assert potential.min() >= 0.0 and np.all(np.diff(both) <= 1e-3 * both.max())
