// Step 5, Compare: torques and residuals with the robot at the cursor, friction, parameters with bands, comparison of methods.

import { job } from "./api.js";
import { clock } from "./clock.js";
import { button, checkboxes, el, facts, field, fill, keep, number, percent, select, table, unitOf } from "./dom.js";
import { shortName } from "./files.js";
import { parameterTable, pairTable } from "./parameters.js";
import { FOREST_ROW_PX, forest, frictionCurves, torqueCurves } from "./result_plots.js";
import { Plot } from "./plot.js";
import { attempt } from "./problems.js";
import { choices, labelOf, results } from "./results.js";
import { trackOf } from "./stage.js";
import { freeJoints, on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";
import { verdictOf } from "./verdict.js";

const USUAL = ["ols", "wls", "pc-wls", "ridge", "pc-ridge"];

export class CompareStep {
  constructor(stage) {
    this.stage = stage;
    this.joint = 0;
    this.log = 0;
    this.wanted = new Set(["wls", "pc-wls", "pc-ridge"]);
    this.root = panel("compare", "Compare", "Verdict, measured and predicted torques, friction and parameters. A second result can be overlaid.");
    this.choice = el("div", { class: "fields" });
    this.root.append(this.choice);
    this.empty = el("p", { class: "hint", text: "There is no result yet. Create one in step 4." });
    this.root.append(this.empty);
    this.verdict = group(this.root, "Verdict");
    this.torques = group(this.root, "Torques and residuals");
    this.torquePlot = new Plot("Measured and predicted torque, and residual, over time", { height: 420, clicked: (time) => this.atResidual(time) });
    this.where = el("p", { role: "status", class: "hint", text: "Click on a residual to show the posture in which it occurred. Drag to zoom, Shift and drag to pan, double-click to show all." });
    this.errors = el("div");
    this.pick = el("div", { class: "fields" });
    this.torques.append(this.pick, this.torquePlot.root, this.where, this.errors);
    this.friction = group(this.root, "Friction over velocity");
    this.frictionPlot = new Plot("Friction torque over velocity with its band", { timed: false, height: 300 });
    this.friction.append(this.frictionPlot.root);
    this.parameters = group(this.root, "Parameters with standard errors");
    this.forestPlot = new Plot("Parameters with bands of two standard errors", { timed: false, height: 360 });
    this.numbers = el("div");
    this.parameters.append(el("div", { class: "tall", tabIndex: 0, role: "region", "aria-label": "Plot of all parameters" }, this.forestPlot.root), this.numbers);
    this.cross = group(this.root, "Cross-validation");
    this.methods = group(this.root, "Comparison of methods");
    this.methodTable = el("div");
    this.picks = el("div");
    this.start = button("Compare", () => attempt(this.root, () => job("compare", { methods: [...this.wanted] })));
    this.methods.append(this.methodTable, this.picks, el("div", { class: "row" }, this.start));
    on("state", () => this.update());
    on("catalogue", () => this.update());
    on("result", () => this.open());
    on("job", () => { this.start.disabled = !this.ready || running(); });
    on("ended", (now) => ["run", "compare"].includes(now.kind) && now.state === "done" && results.choose(now.result));
  }

  // Units of the chosen joint; results of earlier versions do not state them.
  get units() { return this.curves.units?.[this.joint] || unitOf(freeJoints()[this.joint]?.kind); }

  get ready() { return Boolean(store.state?.settings.robot && store.state.settings.logs.length); }

  get parts() { return [this.verdict, this.torques, this.friction, this.parameters, this.cross].map((part) => part.parentElement); }

  update() {
    if (!store.state) return;
    this.start.disabled = !this.ready || running();
    const all = choices();
    this.empty.hidden = all.length > 0;
    this.showChoice();
    if (store.catalogue) {
      const names = store.catalogue.methods.map((one) => one.name).filter((name) => name !== "auto");
      keep(this.picks, names, () => [checkboxes("Methods", names.filter((name) => USUAL.includes(name)), this.wanted),
        el("details", {}, el("summary", { text: "More methods" }), checkboxes("More methods", names.filter((name) => !USUAL.includes(name)), this.wanted))]);
    }
    if (!this.root.hidden) this.open();
  }

  showChoice() {
    const all = choices(), chosen = results.chosen;
    keep(this.choice, [all, chosen?.id], () => (!chosen ? [] : [
      field("Result", select(all, chosen.id, (id) => results.choose(id)), { wide: true }),
    ]));
    keep(this.pick, [all, chosen?.id, this.curves?.logs.map((log) => log.name), this.names, this.joint, this.log, this.otherId], () => (!chosen ? [] : [
      all.length > 1 ? field("Overlay with", select([["", "none"], ...all.filter(([id]) => id !== chosen.id)], this.otherId || "", (id) => this.overlay(id)), { wide: true }) : null,
      this.curves?.logs.length ? field("Log", select(this.curves.logs.map((log, i) => [i, `${shortName(log.name)}${log.role === "validation" ? " (validation)" : ""}`]), this.log, (i) => {
        this.log = Number(i);
        this.draw();
      }), {}) : null,
      this.names?.length ? field("Joint", select(this.names.map((name, i) => [i, name]), this.joint, (i) => {
        this.joint = Number(i);
        this.draw();
      }), {}) : null].filter(Boolean)));
  }

  async open() {
    const chosen = results.chosen;
    for (const part of this.parts) part.hidden = !chosen;
    if (!chosen || this.root.hidden) return;
    if (this.shownId === chosen.id) {
      this.replay();
      return;
    }
    const curves = await attempt(this.root, () => results.curves(chosen.id));
    if (!curves || results.chosen?.id !== chosen.id) return;
    this.shownId = chosen.id;
    if (this.otherId === chosen.id) [this.otherId, this.other] = [null, null];
    this.curves = curves;
    this.log = 0;
    this.names = curves.joints;
    this.joint = Math.min(this.joint, this.names.length - 1);
    this.draw();
    this.replay();
  }

  // Overlay a second result.
  async overlay(id) {
    const curves = id ? await attempt(this.root, () => results.curves(id)) : null;
    [this.otherId, this.other] = [curves ? id : null, curves];
    this.draw();
  }

  // Data of the second result for the same log and joint, if it has them.
  get beside() {
    if (!this.other) return { label: null, log: null, friction: null };
    const log = this.curves.logs[this.log], name = this.names[this.joint], other = this.other.joints.indexOf(name) === this.joint ? this.other : { logs: [], friction: [] };
    return { label: labelOf(this.otherId), log: other.logs.find((one) => one.name === log?.name && one.role === log.role) || null,
      friction: (other.friction || []).find((one) => one.joint === name && one.dq.length) || null };
  }

  // The robot moves as in the log whose residuals are shown.
  replay() {
    const log = this.curves?.logs[this.log];
    if (!log) return;
    log.track ||= trackOf(`As in ${shortName(log.name)}`, log);
    if (this.stage.track !== log.track) this.stage.setTrack(log.track);
  }

  draw() {
    this.showChoice();
    const { curves, joint, beside } = this, log = curves.logs[this.log];
    const first = labelOf(results.chosen.id);
    fill(this.verdict, verdictOf(curves.verdict), this.other ? [el("h4", { text: `Overlaid: ${beside.label}` }), ...verdictOf(this.other.verdict).slice(0, 1)] : null);
    this.replay();
    if (log) {
      this.torquePlot.show(() => torqueCurves(log, joint, this.names[joint], this.units.torque, beside.log && { log: beside.log, label: beside.label }));
      const rows = [...this.names.map((name, i) => [name, percent(log.per_joint?.[i]), percent(beside.log?.per_joint?.[i])]), ["all joints", percent(log.relative_error), percent(beside.log?.relative_error)]];
      fill(this.errors, table("Relative error of each joint", beside.log ? ["joint", first, beside.label] : ["joint", "error"], beside.log ? rows : rows.map((row) => row.slice(0, 2))),
        this.other && !beside.log ? note("The second result does not use this log, so only its parameters are compared.") : null);
    }
    const friction = (curves.friction || []).filter((one) => one.dq.length);
    this.friction.parentElement.hidden = !friction.length;
    const own = friction.find((one) => one.joint === this.names[joint]) || friction[0];
    if (own) this.frictionPlot.show(() => frictionCurves(own, this.units, beside.friction && { one: beside.friction, label: beside.label }));
    this.parameters.parentElement.hidden = !curves.parameters?.length;
    if (curves.parameters?.length) {
      this.forestPlot.show(() => forest(curves.parameters), 90 + FOREST_ROW_PX * curves.parameters.length);
      fill(this.numbers, this.other ? pairTable(curves.parameters, this.other.parameters, [first, beside.label]) : parameterTable(curves.parameters),
        el("p", { class: "hint", text: "Hover over a name for its meaning and unit. The glossary of the documentation explains all symbols." }));
    }
    this.showCross(curves.cross);
    this.showMethods(curves.methods);
  }

  showCross(cross) {
    this.cross.parentElement.hidden = !cross;
    if (cross) fill(this.cross, facts([["cross-validation error", percent(cross.mean)], ["standard deviation between blocks", percent(cross.spread)]]));
  }

  showMethods(methods) {
    if (!methods?.length) {
      fill(this.methodTable, el("p", { class: "hint", text: "Select methods and compare them on the same logs: prediction of unseen data, and physical consistency." }));
      return;
    }
    const judged = methods.map((one) => one.validation_error ?? one.cross_error ?? one.relative_error);
    const best = judged.indexOf(Math.min(...judged.filter(Number.isFinite)));
    const made = table("Comparison of methods", ["method", "error", "validation error", "cross-validation error", "physically consistent", "time, s", "notes"], methods.map((one) => [one.name, percent(one.relative_error),
      percent(one.validation_error), percent(one.cross_error), one.consistent === null ? "–" : one.consistent ? "yes" : "no", number(one.seconds, 2), [one.notes].flat().filter(Boolean).join(" ")]));
    made.querySelectorAll("tbody tr")[best]?.classList.add("best");
    fill(this.methodTable, made, note(`${methods[best]?.name} predicts unseen data best.`, "good"));
  }

  atResidual(time) {
    clock.play(false);
    const log = this.curves.logs[this.log];
    const i = nearest(log.t, time);
    const at = log.residual[this.joint]?.[i];
    this.where.textContent = `At ${number(time, 5)} s: ${this.names[this.joint]} has a residual of ${number(at, 3)} ${this.units.torque}, measured ${number(log.measured[this.joint][i], 3)} ${this.units.torque}. The scene shows the posture at that time.`;
  }

  opened() {
    this.update();
  }
}

function nearest(times, time) {
  let best = 0;
  times.forEach((t, i) => {
    if (Math.abs(t - time) < Math.abs(times[best] - time)) best = i;
  });
  return best;
}
