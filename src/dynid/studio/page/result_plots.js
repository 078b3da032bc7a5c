// Plots of a result: torques with residuals, friction with its band, parameters with bands.

import { color, faint } from "./plot.js";

const line = (x, y, name, i, given = {}) => ({ x, y, name, type: "scatter", mode: "lines", line: { color: color(i), width: 1.3 }, ...given });

export function torqueCurves(log, joint, name) {
  return {
    data: [line(log.t, log.measured[joint], "measured", 7), line(log.t, log.predicted[joint], "model", 0), line(log.t, log.residual[joint], "residual", 1, { yaxis: "y2" })],
    layout: { xaxis: { title: { text: "s" }, anchor: "y2" }, yaxis: { title: { text: `${name}, N m or N` }, domain: [0.42, 1] }, yaxis2: { title: { text: "residual" }, domain: [0, 0.34] } } };
}

export function frictionCurves(one) {
  const back = [...one.dq].reverse();
  return {
    data: [
      one.low?.length ? { x: [...one.dq, ...back], y: [...one.high, ...[...one.low].reverse()], type: "scatter", mode: "lines", fill: "toself", fillcolor: faint(0), line: { width: 0 }, name: "two deviations", hoverinfo: "skip" } : null,
      one.points_dq?.length ? { x: one.points_dq, y: one.points_torque, type: "scatter", mode: "markers", marker: { size: 5, color: color(7) }, name: "log without the rest of the model, half of it within the bars",
        error_y: one.points_low ? { type: "data", symmetric: false, array: one.points_high.map((high, i) => high - one.points_torque[i]), arrayminus: one.points_low.map((low, i) => one.points_torque[i] - low), thickness: 1, width: 2, color: color(7) } : undefined } : null,
      line(one.dq, one.torque, "friction of the model", 0, { line: { color: color(0), width: 2.5 } })].filter(Boolean),
    layout: { xaxis: { title: { text: `velocity of ${one.joint}, rad/s or m/s` } }, yaxis: { title: { text: "N m or N" } }, hovermode: "closest" } };
}

// Each parameter divided by its value or two standard errors, so that all fit one axis: a bar that covers zero is not significant.
export function forest(parameters) {
  const shown = parameters.filter((one) => Number.isFinite(one.value) && one.std > 0);
  const scale = shown.map((one) => Math.max(Math.abs(one.value), 2 * one.std));
  const clear = shown.map((one) => Math.abs(one.value) > 2 * one.std);
  return {
    data: [{
      x: shown.map((one, i) => one.value / scale[i]), y: shown.map((one) => one.name), type: "scatter", mode: "markers", hovertext: shown.map((one) => `${one.name} = ${one.value} ± ${one.std} ${one.unit}<br>${one.meaning}`), hoverinfo: "text",
      marker: { color: clear.map((now) => (now ? color(0) : color(1))), size: 7 },
      error_x: { type: "data", array: shown.map((one, i) => 2 * one.std / scale[i]), color: color(7), thickness: 1.4, width: 3 } }],
    layout: { xaxis: { title: { text: "value ± two standard errors, normalised" }, range: [-2.2, 2.2] }, yaxis: { autorange: "reversed", tickfont: { size: 11 }, automargin: true, type: "category" }, hovermode: "closest", showlegend: false } };
}
