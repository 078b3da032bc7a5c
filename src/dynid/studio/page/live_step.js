// Step 7, Live: online estimates from a replayed log or a stream.

import { job } from "./api.js";
import { button, el, facts, field, fill, keep, number, percent, select, table } from "./dom.js";
import { labelOf, shortName } from "./files.js";
import { Plot, color } from "./plot.js";
import { attempt } from "./problems.js";
import { on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";

const KEPT = 600;

export class LiveStep {
  constructor(stage) {
    this.stage = stage;
    this.root = panel("live", "Live", "Estimate while the robot moves: replay a log in real time, or receive samples on a UDP port or from a growing file.");
    this.port = el("input", { type: "number", min: 1024, max: 65535, value: 5005 });
    this.speed = el("input", { type: "number", min: 0.1, step: "any", value: 1 });
    this.watch = select([["parameters", "parameters"], ["payload", "a load on the flange"], ["contact", "contacts"]], "parameters", () => this.update());
    this.form = el("div", { class: "fields" });
    this.start = button("Start", () => attempt(this.root, () => this.begin()), { class: "main" });
    this.root.append(this.form, el("div", { class: "row" }, this.start));
    this.numbers = group(this.root, "Now");
    this.curve = new Plot("Error of the last seconds over time", { timed: false, height: 200 });
    this.events = group(this.root, "Events");
    for (const part of [this.numbers, this.events]) part.parentElement.hidden = true;
    on("state", () => this.update());
    on("job", () => this.enable());
    on("look", (look) => this.show(look));
    on("ended", (now) => now.kind === "live" && this.stage.arm?.point([]));
  }

  enable() {
    this.start.disabled = !store.state?.settings.robot || running();
  }

  update() {
    const { state } = store;
    if (!state) return;
    this.enable();
    const logs = state.settings.logs.map((log, i) => [`log:${i}`, `replay ${shortName(labelOf(log))}`]);
    const results = state.results.filter((result) => result.kind === "run" || !result.kind);
    keep(this.form, [logs, results.map((one) => one.id), this.watch.value, this.from], () => {
      const sources = [...logs, ["udp", "samples on a UDP port"], ...state.files.filter((file) => file.role === "log").map((file) => [`tail:${file.name}`, `${file.name} as it grows`])];
      const from = this.from ?? sources[0][0];
      this.sourceBox = select(sources, from, (now) => {
        this.from = now;
        this.update();
      });
      this.result = select([["", "the robot file"], ...results.map((one) => [one.id, `${one.id} (${one.method})`])], this.resultId ?? results[0]?.id ?? "", (now) => { this.resultId = now; });
      this.method = select(["rls", "riv", "cls"], "rls", () => {});
      return [field("Source of samples", this.sourceBox, { where: "source" }), field("Watch", this.watch, {}),
        this.watch.value === "parameters" ? field("Method", this.method, {}) : field("Model of the robot", this.result, { hint: "a result of step 4" }),
        from === "udp" ? field("Port", this.port, { hint: "local machine only" }) : from.startsWith("log:") ? field("Speed, times real time", this.speed, {}) : null].filter(Boolean);
    });
  }

  async begin() {
    this.past = { t: [], error: [] };
    this.told = [];
    this.stage.setTrack(null);
    fill(this.numbers);
    fill(this.events);
    const watch = this.watch.value;
    await job("live", { source: this.sourceBox.value === "udp" ? `udp:${this.port.value}` : this.sourceBox.value, speed: Number(this.speed.value), watch,
      method: this.method.value, result: watch === "parameters" ? null : this.result.value || null, frame: null });
  }

  show(look) {
    this.past ||= { t: [], error: [] };
    this.told ||= [];
    if (look.q_tree) this.stage.place(look.q_tree);
    this.stage.say(`Live, ${number(look.t, 5)} s`);
    this.numbers.parentElement.hidden = false;
    this.past.t.push(look.t);
    this.past.error.push(look.relative_error);
    if (this.past.t.length > KEPT) for (const list of Object.values(this.past)) list.shift();
    this.arrows(look.contact);
    if (this.root.hidden) return;
    if (!this.numbers.children.length) {
      this.head = el("div");
      this.body = el("div");
      fill(this.numbers, this.head, this.curve.root, this.body);
    }
    fill(this.head, facts(numbersOf(look)));
    if (Date.now() - (this.drawn || 0) > 400) this.draw(look);
    this.tell(look.events || []);
  }

  draw(look) {
    this.drawn = Date.now();
    const { t, error } = this.past;
    if (error.some((value) => value !== null)) {
      this.curve.show(() => ({ data: [{ x: [...t], y: [...error], type: "scatter", mode: "lines", line: { color: color(0) } }],
        layout: { xaxis: { title: { text: "time, s" } }, yaxis: { title: { text: "error, %" }, rangemode: "tozero" }, showlegend: false } }));
    }
    if (look.parameters) {
      fill(this.body, table("Parameters as estimated now", ["parameter", "value", "± standard error", "status"],
        look.parameters.map((one) => [one.name, number(one.value), number(one.std, 2), one.status])));
    }
  }

  // The force of a contact as an arrow that ends at its point of action; 100 N have a third of the robot's size.
  arrows(contact) {
    const { arm } = this.stage;
    if (!arm) return;
    if (!contact?.active || !contact.force || !contact.point) {
      arm.point([]);
      return;
    }
    const scale = arm.size / 300;
    const vector = contact.force.map((v) => v * scale);
    arm.point([{ point: contact.point.map((v, i) => v - vector[i]), vector }]);
  }

  tell(events) {
    const fresh = events.map((event) => event.text).filter((text) => !this.told.includes(text));
    if (!fresh.length) return;
    this.told.push(...fresh);
    this.events.parentElement.hidden = false;
    fill(this.events, el("ul", { class: "plain", role: "log" }, this.told.slice(-12).map((text) => el("li", {}, note(text)))));
  }

  opened() {
    this.update();
  }
}

function numbersOf(look) {
  const list = [["time", `${number(look.t, 5)} s`], ["samples", String(look.samples)], ["error", percent(look.relative_error)]];
  if (look.payload) {
    list.push(["load", `${number(look.payload.mass, 3)} ± ${number(look.payload.mass_std, 2)} kg`]);
    if (look.payload.centre) list.push(["its centre, mm", look.payload.centre.map((v) => number(1000 * v, 3)).join(", ")]);
  }
  if (look.contact) {
    list.push(["contact", look.contact.active ? `on ${look.contact.link || "the robot"}` : "none"]);
    if (look.contact.active && look.contact.force) list.push(["force", `${number(Math.hypot(...look.contact.force), 3)} N`]);
  }
  return list;
}
