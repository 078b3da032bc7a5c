// Step 4, Run: model terms, method and start of an identification.

import { job } from "./api.js";
import { button, checkbox, el, field, keep, percent, select, table } from "./dom.js";
import { attempt, showFailure } from "./problems.js";
import { change, on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";

export class RunStep {
  constructor(open) {
    this.open = open;
    this.root = panel("run", "Run", "The defaults suit most robots: friction terms chosen per joint, and the method with the best cross-validation error.");
    this.choices = group(this.root, "Settings");
    this.start = button("Identify", () => attempt(this.root, () => job("run", {})), { class: "main" });
    this.missing = el("p", { class: "hint" });
    this.root.append(el("div", { class: "row" }, this.start, this.missing));
    this.results = group(this.root, "Results");
    on("state", () => this.update());
    on("catalogue", () => this.update());
    on("job", () => this.enable());
    on("ended", (now) => now.kind === "run" && now.state === "failed" && showFailure(this.root, now, "The run failed."));
  }

  edit(make) {
    return attempt(this.root, () => change(make));
  }

  enable() {
    const settings = store.state?.settings;
    if (!settings) return;
    const wanting = !settings.robot ? "Select a robot in step 1." : !settings.logs.length ? "Add a log in step 3." : "";
    this.start.disabled = Boolean(wanting) || running();
    this.missing.textContent = wanting || (running() ? "A job is running; use Stop above to end it." : "");
  }

  update() {
    const { state, catalogue } = store;
    if (!state || !catalogue) return;
    this.enable();
    const { settings } = state;
    keep(this.choices, [settings.model, settings.method, settings.prepare, settings.gravity, settings.validate_on, settings.simulation, catalogue.methods?.length], () => this.controls(settings, catalogue));
    const runs = state.results.filter((result) => result.kind === "run" || result.kind === "compare" || !result.kind);
    this.results.parentElement.hidden = !runs.length;
    keep(this.results, runs, () => this.resultTable(runs));
  }

  controls({ model, method, prepare, gravity, simulation }, catalogue) {
    const kinds = catalogue.friction.map((kind) => (typeof kind === "string" ? { name: kind, summary: "" } : kind));
    const mode = !model.friction.length || model.friction[0] === "auto" ? "auto" : model.friction[0] === "none" ? "none" : "chosen";
    const methods = catalogue.methods.map((one) => one.name);
    const cutoff = el("input", { type: "number", min: 0, step: "any", value: prepare.cutoff ?? "", placeholder: "from the data",
      change: () => this.edit((settings) => {
        if (cutoff.value === "") delete settings.prepare.cutoff;
        else settings.prepare.cutoff = Number(cutoff.value);
      }) });
    return [el("div", { class: "fields" },
      field("Method", select(methods, method, (now) => this.edit((settings) => { settings.method = now; })), { where: "method", hint: catalogue.methods.find((one) => one.name === method)?.summary }),
      field("Low-pass cut-off, Hz", cutoff, { where: "prepare.cutoff" }),
      field("Gravity", select([["own", "from the robot file"], ["estimate", "estimate its direction"]], gravity === "estimate" ? "estimate" : "own", (now) => this.edit((settings) => {
        settings.gravity = now === "estimate" ? "estimate" : null;
      })), { where: "gravity" }),
      field("Friction", select([["auto", "auto"], ["none", "none"], ["chosen", "select terms…"]], mode, (now) => this.edit((settings) => {
        settings.model.friction = now === "chosen" ? ["viscous", "coulomb"] : [now];
      })), { where: "model.friction", hint: mode === "auto" ? "chosen per joint from the logs" : null })),
    mode === "chosen" ? el("fieldset", { class: "bar", "data-where": "model.friction" }, el("legend", { class: "quiet", text: "Friction terms" }), kinds.map((kind) => {
      const box = checkbox(kind.name, model.friction.includes(kind.name), (now) => this.edit((settings) => {
        settings.model.friction = kinds.map((one) => one.name).filter((name) => (name === kind.name ? now : model.friction.includes(name)));
      }));
      box.title = kind.summary || "";
      return box;
    })) : null,
    el("div", { class: "row" },
      checkbox("Rotor inertias", model.rotor, (now) => this.edit((settings) => { settings.model.rotor = now; })),
      checkbox("Validate by simulation", simulation?.run !== false, (now) => this.edit((settings) => { settings.simulation.run = now; })))];
  }

  resultTable(runs) {
    return [note("Open a result in step 5 to compare it, or in step 6 to use it.", "good"),
      table("Results", ["result", "method", "fit error", "made", ""], runs.map((one) => [one.id, one.method || "comparison", percent(one.relative_error), new Date(one.created).toLocaleString(),
        button("Look", () => this.open("compare", one.id), { class: "small", "aria-label": `Look at ${one.id}`, "data-focus": `look ${one.id}` })]))];
  }

  opened() {
    this.update();
  }
}
