// Step 6, Use: the verdict in words, the report, output files, and the run file and command that repeat the result.

import { job, resultPath } from "./api.js";
import { button, checkboxes, el, field, fill, keep, select } from "./dom.js";
import { labelOf, shortName } from "./files.js";
import { attempt } from "./problems.js";
import { choices, results } from "./results.js";
import { on, running, store } from "./store.js";
import { group, panel } from "./step.js";
import { verdictOf } from "./verdict.js";

const FILES = {
  "report.html": ["Report", "all plots and findings in one file"], "robot.urdf": ["URDF", "the robot with the identified values"], "robot.xml": ["MJCF", "the same for MuJoCo"],
  "parameters.toml": ["Parameters", "values and standard errors"], "results.json": ["Results as JSON", "everything, for programs"], "run.toml": ["Run file", "how this result was made"],
};
const LANGUAGES = ["c", "python", "julia"];

export class UseStep {
  constructor() {
    this.languages = new Set(["c"]);
    this.root = panel("use", "Use", "The verdict, files for simulators and controllers, the report, and the run file and command that repeat this result without the page.");
    this.choice = el("div", { class: "fields" });
    this.empty = el("p", { class: "hint", text: "There is no result yet. Create one in step 4." });
    this.root.append(this.choice, this.empty);
    this.verdict = group(this.root, "Verdict");
    this.files = group(this.root, "Downloads");
    this.code = group(this.root, "Code for a controller");
    this.load = group(this.root, "Payload values for a controller");
    this.repeat = group(this.root, "Repeat without the studio");
    this.report = group(this.root, "Report");
    on("state", () => this.update());
    on("result", () => this.update());
    on("job", () => this.enable());
  }

  enable() {
    for (const one of this.root.querySelectorAll("[data-job]")) one.disabled = running();
  }

  update() {
    const { state } = store;
    if (!state) return;
    const chosen = results.chosen;
    this.empty.hidden = Boolean(chosen);
    for (const part of [this.verdict, this.files, this.code, this.load, this.report]) part.parentElement.hidden = !chosen;
    keep(this.choice, [choices(), chosen?.id], () => (chosen ? field("Result", select(choices(), chosen.id, (id) => results.choose(id)), { wide: true }) : []));
    keep(this.repeat, [state.run_toml, state.command], () => this.repeated(state));
    if (!chosen) return;
    keep(this.files, [chosen.id, chosen.files, this.extra(chosen)], () => this.downloads(chosen));
    keep(this.code, [chosen.id], () => this.codes(chosen));
    keep(this.load, [chosen.id, state.settings.logs], () => this.payload(chosen, state));
    if (!this.root.hidden) this.showVerdict(chosen);
    this.enable();
  }

  async showVerdict(chosen) {
    if (this.shownId === chosen.id) return;
    this.shownId = chosen.id;
    const curves = await attempt(this.root, () => results.curves(chosen.id));
    if (!curves || this.shownId !== chosen.id) return;
    fill(this.verdict, verdictOf(curves.verdict));
    const source = resultPath(chosen.id, "report.html");
    fill(this.report, el("p", {}, el("a", { href: source, target: "_blank", rel: "noopener", text: "Open the report in a new tab" })),
      el("iframe", { src: source, title: `Report of ${chosen.id}`, sandbox: "allow-scripts", loading: "lazy" }));
  }

  // Results derived from this one: code and payload values.
  extra(chosen) {
    return store.state.results.filter((one) => ["code", "payload"].includes(one.kind) && (!one.of || one.of === chosen.id));
  }

  downloads(chosen) {
    const link = (id, name) => el("li", {}, el("a", { href: resultPath(id, name), download: name.split("/").pop() }, FILES[name]?.[0] || name, el("small", { text: FILES[name]?.[1] || id })));
    const known = Object.keys(FILES).filter((name) => chosen.files.includes(name));
    const others = chosen.files.filter((name) => !known.includes(name));
    const made = this.extra(chosen).flatMap((one) => one.files.map((name) => link(one.id, name)));
    return [el("ul", { class: "downloads" }, known.map((name) => link(chosen.id, name)), made),
      el("details", {}, el("summary", { text: "Other files" }), el("ul", { class: "downloads" }, others.map((name) => link(chosen.id, name))))];
  }

  codes(chosen) {
    return [checkboxes("Languages", LANGUAGES, this.languages, { label: (name) => (name === "c" ? "C" : name) }), el("div", { class: "row" }, button("Write code", () => attempt(this.root, () => job("code", { result: chosen.id, languages: [...this.languages] })), { "data-job": "code" }),
    el("p", { class: "hint", text: "Inverse dynamics and related functions, without dependencies. The files appear under Downloads." }))];
  }

  payload(chosen, state) {
    const logs = state.settings.logs.map((log, i) => [i, shortName(labelOf(log))]);
    const log = select(logs, 0, () => {});
    return [el("div", { class: "fields" }, field("Log with the load", log, { hint: "a log of the same robot with a load" })),
      el("div", { class: "row" }, button("Estimate the load", () => attempt(this.root, () => job("payload", { result: chosen.id, log: Number(log.value), frame: null })), { "data-job": "payload" }))];
  }

  repeated(state) {
    const copied = el("span", { role: "status", class: "hint" });
    const copy = (what, text) => button(`Copy ${what}`, async () => {
      await navigator.clipboard.writeText(text);
      copied.textContent = `Copied the ${what}.`;
    }, { class: "small" });
    return [el("p", { class: "hint", text: "Save the run file in the folder of your robot and logs, then run the command. It gives the same numbers." }),
      el("pre", { tabIndex: 0, role: "region", "aria-label": "Run file", id: "run-toml", text: state.run_toml }), el("pre", { tabIndex: 0, role: "region", "aria-label": "Command", id: "command", text: state.command }),
      el("div", { class: "row" }, copy("run file", state.run_toml), copy("command", state.command), copied)];
  }

  opened() {
    this.update();
  }
}
