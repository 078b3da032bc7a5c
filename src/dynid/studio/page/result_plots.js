// Plots of a result, optionally with a second one: torques with residuals, friction with its band, parameters.

import { color, faint } from "./plot.js";

const line = (x, y, name, i, given = {}) => ({ x, y, name, type: "scatter", mode: "lines", line: { color: color(i), width: 1.3, dash: given.dash }, ...given.more });

// other: {log, label} of a second result on the same log, or null.
export function torqueCurves(log, joint, name, unit, other) {
  const beside = other ? [line(other.log.t, other.log.predicted[joint], other.label, 3, { dash: "dash" }),
    line(other.log.t, other.log.residual[joint], `residual, ${other.label}`, 2, { dash: "dash", more: { yaxis: "y2" } })] : [];
  return {
    data: [line(log.t, log.measured[joint], "measured", 7), line(log.t, log.predicted[joint], "model", 0), line(log.t, log.residual[joint], "residual", 1, { more: { yaxis: "y2" } }), ...beside],
    layout: { xaxis: { title: { text: "time, s" }, anchor: "y2" }, yaxis: { title: { text: `${name}, ${unit}` }, domain: [0.42, 1] }, yaxis2: { title: { text: `residual, ${unit}` }, domain: [0, 0.34] } } };
}

// other: {one, label} of a second result, or null.
export function frictionCurves(one, units, other) {
  const back = [...one.dq].reverse();
  return {
    data: [
      one.low?.length ? { x: [...one.dq, ...back], y: [...one.high, ...[...one.low].reverse()], type: "scatter", mode: "lines", fill: "toself", fillcolor: faint(0), line: { width: 0 }, name: "two standard errors", hoverinfo: "skip" } : null,
      one.points_dq?.length ? { x: one.points_dq, y: one.points_torque, type: "scatter", mode: "markers", marker: { size: 5, color: color(7) }, name: "measured (bars: middle 50 %)",
        error_y: one.points_low ? { type: "data", symmetric: false, array: one.points_high.map((high, i) => high - one.points_torque[i]), arrayminus: one.points_low.map((low, i) => one.points_torque[i] - low), thickness: 1, width: 2, color: color(7) } : undefined } : null,
      { ...line(one.dq, one.torque, "model", 0), line: { color: color(0), width: 2.5 } },
      other ? line(other.one.dq, other.one.torque, other.label, 3, { dash: "dash" }) : null].filter(Boolean),
    layout: { xaxis: { title: { text: `velocity of ${one.joint}, ${units.velocity}` } }, yaxis: { title: { text: `friction, ${units.torque}` } }, hovermode: "closest" } };
}

export const FOREST_ROW_PX = 16; // height of a parameter's row, so that its name fits next to the axis

// Each parameter divided by its value or two standard errors, so that all fit one axis: a bar that includes zero is not significant.
export function forest(parameters) {
  const shown = parameters.filter((one) => Number.isFinite(one.value) && one.std > 0);
  const scale = shown.map((one) => Math.max(Math.abs(one.value), 2 * one.std));
  const clear = shown.map((one) => Math.abs(one.value) > 2 * one.std);
  return {
    data: [{
      x: shown.map((one, i) => one.value / scale[i]), y: shown.map((_, i) => i), type: "scatter", mode: "markers", hovertext: shown.map((one) => `${one.name} = ${one.value} ± ${one.std} ${one.unit}<br>${one.meaning}`), hoverinfo: "text",
      marker: { color: clear.map((now) => (now ? color(0) : color(1))), size: 7 },
      error_x: { type: "data", array: shown.map((one, i) => 2 * one.std / scale[i]), color: color(7), thickness: 1.4, width: 3 } }],
    layout: { xaxis: { title: { text: "value ± two standard errors, normalised" }, range: [-2.2, 2.2] },
      yaxis: { range: [shown.length - 0.4, -0.6], tickmode: "array", tickvals: shown.map((_, i) => i), ticktext: shown.map((one) => one.name), tickfont: { size: 11 }, automargin: true, zeroline: false }, hovermode: "closest", showlegend: false } };
}
