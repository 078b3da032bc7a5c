// Step 8, Actuators: servos and legs without torque sensors, from positions and commands alone.

import { get, job, resultPath } from "./api.js";
import { button, checkboxes, el, field, fill, keep, number, select, table, typeset } from "./dom.js";
import { dropPlace, fileList } from "./files.js";
import { Plot, color } from "./plot.js";
import { attempt, showFailure } from "./problems.js";
import { on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";

const PENDULUM = "pendulum";
const PARTS = [["mass", "Mass at the end, kg"], ["length", "Length to the mass, m"], ["arm_mass", "Mass of the rod, kg"]];
const FILES = { "report.html": "Report", "actuators.json": "Results as JSON", "posterior.json": "Values and covariance, for dynid export" };

const textBox = (given = {}) => el("input", { type: "text", ...given });
const listOf = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);
const numberOf = (text) => (text.trim() === "" ? null : Number(text));

export class ActuatorStep {
  constructor() {
    this.root = panel("actuators", "Actuators", "Drives without torque sensors: armature, friction, delay and drive parameters from measured and commanded positions. This step needs neither torques nor the steps before it.");
    this.also = new Set();
    this.robot = select([[PENDULUM, "one servo with a pendulum"], ["robot", "the robot of step 1"]], PENDULUM, () => this.showParts());
    this.parts = Object.fromEntries(PARTS.map(([name, label]) => [name, textBox({ inputMode: "decimal", "aria-label": label })]));
    this.pendulum = el("div", { class: "fields" }, PARTS.map(([name, label]) => field(label, this.parts[name], { where: `actuators.${name}`, hint: name === "arm_mass" ? "0 if it is left empty" : null })));
    this.law = select(["pd"], "pd", () => this.showGains());
    this.friction = select([["auto", "auto"]], "auto", () => {});
    this.delay = textBox({ inputMode: "decimal", placeholder: "estimated" });
    this.position = textBox({ placeholder: "guessed" });
    this.command = textBox({ placeholder: "guessed" });
    this.unit = select([["", "rad"], ["deg", "degrees"]], "", () => {});
    this.gains = el("div", { class: "fields" });
    this.others = el("div");
    this.list = el("div");
    group(this.root, "Moved part").append(el("div", { class: "fields" }, field("What the drives move", this.robot, { where: "robot", wide: true })), this.pendulum);
    group(this.root, "Logs").append(dropPlace(this.root, "Logs with positions and commands", { role: "actuators", hint: "CSV, NPZ, Parquet, or JSON of BAM. All logs in the list are used.", sent: () => {} }), this.list,
      el("div", { class: "fields" }, field("Position columns", this.position, { where: "actuators.position", hint: "names, one for each joint, separated by commas" }),
        field("Command columns", this.command, { where: "actuators.command", hint: "commanded positions, in the same order" }), field("Unit of the positions", this.unit, { where: "actuators.unit" })));
    group(this.root, "Drive").append(el("div", { class: "fields" }, field("Drive law", this.law, { where: "actuators.law" }), field("Friction model", this.friction, { where: "actuators.friction" }),
      field("Delay of the commands, s", this.delay, { where: "actuators.delay" })), this.gains, this.others);
    this.start = button("Identify the actuators", () => attempt(this.root, () => job("actuators", this.request())), { class: "main" });
    this.missing = el("p", { class: "hint" });
    this.root.append(el("div", { class: "row" }, this.start, this.missing));
    this.found = group(this.root, "Result");
    this.found.parentElement.hidden = true;
    this.plot = new Plot("Measured and simulated positions over time", { height: 380 });
    on("state", () => this.update());
    on("catalogue", (found) => this.take(found));
    on("job", () => this.enable());
    on("ended", (now) => {
      if (now.kind !== "actuators") return;
      if (now.result) this.openResult(now.result);
      else if (now.state === "failed") showFailure(this.root, now, "The identification failed.");
    });
  }

  get logs() { return (store.state?.files || []).filter((file) => file.role === "actuators").map((file) => file.name); }

  // Drive laws with their parameters, friction models, and further parameters that dynid offers.
  take({ laws, friction_models: models, also }) {
    this.laws = laws;
    this.law.replaceChildren(el("option", { value: "", text: "as BAM's log states" }), ...laws.map((one) => el("option", { value: one.name, text: one.name, selected: one.name === "pd" })));
    this.friction.append(...models.map((one) => el("option", { value: one.name, text: `${one.name.toUpperCase()}: ${one.summary}` })));
    this.further = also;
    this.showGains();
    this.showParts();
  }

  showParts() {
    this.pendulum.hidden = this.robot.value !== PENDULUM;
    this.enable();
  }

  showGains() {
    const law = this.laws?.find((one) => one.name === this.law.value);
    const own = (law?.parameters || []).map((one) => one.name), offered = (this.further || []).filter((name) => !name.endsWith("_limit") || own.includes(name)); // a limit belongs to a law
    this.also = new Set([...this.also].filter((name) => offered.includes(name)));
    fill(this.others, checkboxes("Estimate also", offered, this.also, { label: (name) => name.replaceAll("_", " "), quiet: false }));
    this.inputs = Object.fromEntries((law?.parameters || []).map((one) => [one.name, textBox({ placeholder: one.estimated ? "estimated" : "default" })]));
    fill(this.gains, law ? el("p", { class: "hint wide", text: law.summary }) : [], (law?.parameters || []).map((one) => field(`${one.name}${one.unit ? `, ${typeset(one.unit)}` : ""}`, this.inputs[one.name], { where: `actuators.gains.${one.name}` })));
  }

  request() {
    const gains = Object.fromEntries(Object.entries(this.inputs || {}).filter(([, input]) => input.value.trim() !== "").map(([name, input]) => {
      const values = listOf(input.value).map(Number);
      return [name, values.length > 1 ? values : values[0]];
    }));
    return { robot: this.robot.value, logs: this.logs, law: this.law.value || null, friction: this.friction.value, delay: numberOf(this.delay.value), gains, also: [...this.also],
      position: listOf(this.position.value), command: listOf(this.command.value), unit: this.unit.value || null, ...Object.fromEntries(PARTS.map(([name]) => [name, numberOf(this.parts[name].value)])) };
  }

  enable() {
    const { state } = store;
    if (!state) return;
    const wanting = this.robot.value !== PENDULUM && !state.settings.robot ? "Select a robot in step 1." : !this.logs.length ? "Upload a log." : "";
    this.start.disabled = Boolean(wanting) || running();
    this.missing.textContent = wanting || (running() ? "A job is running; use Stop above to end it." : "");
  }

  update() {
    this.enable();
    keep(this.list, store.state.files.filter((file) => file.role === "actuators"), () => fileList(this.root, ["actuators"]) || []);
  }

  async openResult(id) {
    const found = await attempt(this.root, () => get(resultPath(id, "curves.json")));
    if (!found) return;
    this.found.parentElement.hidden = false;
    const joint = select(found.joints.map((name, i) => [i, name]), 0, () => this.draw(found, log.value, joint.value));
    const log = select(found.curves.map((one, i) => [i, one.name]), 0, () => this.draw(found, log.value, joint.value));
    const shown = found.parameters.filter((one) => !one.given);
    fill(this.found, note(`${found.usable ? "" : "Not usable: "}Simulated positions have a mean error of ${number(1e3 * found.simulation.mean_error, 3)} mrad, the delayed command plus an offset ${number(1e3 * found.simulation.delayed_command.mean_error, 3)} mrad. Drive law ${found.law}, friction model ${found.friction.toUpperCase()}.`, found.usable ? "good" : "bad"),
      found.findings.map((one) => note(typeset(one.text))),
      table("Parameters with 95 % intervals", ["joint", "parameter", "value", "95 % interval"], shown.map((one) => [one.joint, `${one.name}${one.unit ? `, ${typeset(one.unit)}` : ""}`, number(one.value),
        one.interval ? `${number(one.interval[0])} to ${number(one.interval[1])}` : "not determined"])),
      el("div", { class: "fields" }, field("Joint", joint), field("Log", log)), this.plot.root,
      found.friction_models.length ? table("Friction models, compared on parts left out of the fit", ["model", "", "error, mrad", ""], found.friction_models.map((one) => [one.model.toUpperCase(), one.title, number(1e3 * one.error, 3), one.chosen ? "chosen" : ""])) : null,
      el("ul", {}, found.notes.map((one) => el("li", { text: typeset(one.text) }))),
      el("ul", { class: "downloads" }, Object.entries(FILES).map(([name, text]) => el("li", {}, el("a", { href: resultPath(id, name), download: name, text })))),
      el("pre", { tabIndex: 0, role: "region", "aria-label": "Command for the same estimate", text: found.command }));
    this.draw(found, 0, 0);
  }

  draw(found, log, joint) {
    const one = found.curves[log], residual = one.measured[joint].map((value, i) => 1e3 * (value - one.simulated[joint][i]));
    const line = (y, name, i, more = {}) => ({ x: one.t, y, name, type: "scatter", mode: "lines", line: { color: color(i), width: 1.3, dash: more.dash }, ...more.own });
    this.plot.show(() => ({
      data: [...(one.command ? [line(one.command[joint], "command", 7, { dash: "dot" })] : []), line(one.measured[joint], "measured", 0), line(one.simulated[joint], "simulated", 1, { dash: "dash" }), line(residual, "measured minus simulated", 2, { own: { yaxis: "y2" } })],
      layout: { xaxis: { title: { text: "time, s" }, anchor: "y2" }, yaxis: { title: { text: `${found.joints[joint]}, rad` }, domain: [0.42, 1] }, yaxis2: { title: { text: "error, mrad" }, domain: [0, 0.34] } } }));
  }

  opened() {
    const newest = (store.state?.results || []).find((one) => one.kind === "actuators");
    if (newest && this.found.parentElement.hidden) this.openResult(newest.id);
  }
}
