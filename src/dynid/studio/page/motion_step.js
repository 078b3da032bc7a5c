// Step 2, Motion: limits, the search with its condition number, and the motion to play and download.

import { get, job, resultPath } from "./api.js";
import { button, el, field, fill, keep, number, percent, select, table, unitOf } from "./dom.js";
import { dropPlace } from "./files.js";
import { Plot, color } from "./plot.js";
import { attempt } from "./problems.js";
import { trackOf } from "./stage.js";
import { freeJoints, on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";

export class MotionStep {
  constructor(stage) {
    this.stage = stage;
    this.root = panel("motion", "Motion", "The accuracy of the parameters depends on the recorded motion. dynid optimises an exciting motion within the limits of your robot. "
      + "If you already have a log, continue with step 3.");
    this.form = el("div", { class: "fields" });
    const add = (name, label, control, hint) => {
      this.form.append(field(label, control, { hint, where: `motion.${name}` }));
      return control;
    };
    const input = (name, label, value, step, hint) => add(name, label, el("input", { type: "number", value, step, min: 0 }), hint);
    this.duration = input("duration", "Length of the motion, s", 10, "any", "one period; the motion is repeated");
    this.harmonics = input("harmonics", "Harmonics", 5, 1, "more harmonics, more freedom");
    this.seconds = input("seconds", "Time for the search, s", 20, "any", "a longer search finds better motions");
    this.seed = input("seed", "Seed", 0, 1, "another seed gives another motion");
    this.family = add("family", "Trajectory family", select(["fourier"], "fourier", () => {}));
    this.criterion = add("criterion", "Optimisation criterion", select([["", "default"]], "", () => {}));
    this.friction = add("friction", "Friction terms to excite", select([["viscous,coulomb", "viscous, Coulomb"], ["viscous,coulomb,offset", "viscous, Coulomb, offset"], ["", "none"]], "viscous,coulomb", () => {}));
    const text = (name, label, hint) => add(name, label, el("input", { type: "text" }), hint);
    this.standing = text("standing", "Standing feet", "frames of the feet that stand still, separated by commas");
    this.sole = text("sole", "Size of the soles, m", "length, width; empty for feet that are points");
    this.limits = el("div");
    this.start = button("Optimise a motion", () => attempt(this.root, () => this.search()), { class: "main" });
    this.root.append(this.form, this.limits, el("div", { class: "row" }, this.start));
    this.live = group(this.root, "Search");
    this.curve = new Plot("Condition number over the time of the search", { timed: false, height: 220 });
    this.words = el("p", { role: "status" });
    this.standardErrors = el("div");
    this.live.append(this.words, this.curve.root, this.standardErrors);
    this.live.parentElement.hidden = true;
    this.found = group(this.root, "Motion");
    this.found.parentElement.hidden = true;
    this.positions = new Plot("Positions of the motion over time", { height: 260 });
    on("state", () => this.update());
    on("robot", () => this.showFeet());
    this.showFeet();
    on("catalogue", ({ criteria, motions }) => {
      this.criterion.append(...criteria.map((name) => el("option", { value: name, text: name })));
      this.family.append(...motions.filter((name) => name !== "fourier").map((name) => el("option", { value: name, text: name })));
    });
    on("job", (now) => this.showJob(now));
    on("ended", (now) => now.kind === "motion" && now.result && this.openResult(now.result));
  }

  get results() { return (store.state?.results || []).filter((result) => result.kind === "motion"); }

  update() {
    this.start.disabled = !store.state.settings.robot || running();
    const files = store.state.files.filter((file) => file.role === "limits").map((file) => file.name);
    keep(this.limits, files, () => {
      const chosen = select([["", "those of the robot's file"], ...files.map((name) => [name, name])], this.limitsFile || "", (name) => { this.limitsFile = name; });
      return [field("Limits", chosen, { hint: "positions, velocities, accelerations, efforts", where: "motion.limits" }), dropPlace(this.root, "Custom limits", { role: "limits", accept: ".toml", multiple: false,
        hint: "A TOML file with limits that replace those of the robot file.", sent: ([file]) => { this.limitsFile = file.name; } })];
    });
  }

  showFeet() {
    for (const control of [this.standing, this.sole]) control.parentElement.hidden = !store.robot?.free_base;
    this.standing.value = (store.robot?.feet || []).join(", ");
  }

  search() {
    const feet = store.robot?.free_base ? { standing: this.standing.value, sole: this.sole.value } : {};
    const friction = this.friction.value.split(",").filter(Boolean);
    return job("motion", { duration: Number(this.duration.value), harmonics: Number(this.harmonics.value), seconds: Number(this.seconds.value),
      seed: Number(this.seed.value), criterion: this.criterion.value || null, friction, family: this.family.value, limits: this.limitsFile || null, ...feet });
  }

  showJob(now) {
    this.start.disabled = !store.state?.settings.robot || now.state === "running";
    if (now.kind !== "motion" || !now.data) return;
    const { condition, history = [], standard_errors: standardErrors = [] } = now.data;
    this.live.parentElement.hidden = false;
    this.words.textContent = `Condition number ${number(condition)}${now.state === "running" ? ", search running…" : "."}`;
    this.curve.show(() => ({
      data: [{ x: history.map((point) => point[0]), y: history.map((point) => point[1]), type: "scatter", mode: "lines+markers", line: { shape: "hv", color: color(0) }, marker: { size: 4 } }],
      layout: { xaxis: { title: { text: "search time, s" }, rangemode: "tozero" }, yaxis: { title: { text: "condition number" }, type: "log" }, showlegend: false } }));
    const worst = [...standardErrors].sort((a, b) => (b.relative ?? -1) - (a.relative ?? -1)).slice(0, 12);
    keep(this.standardErrors, worst, () => (worst.length ? [el("h4", { text: "Expected standard errors, the largest first" }),
      table("Expected standard errors", ["parameter", "± standard error", "relative to nominal"], worst.map((one) => [one.name, `${number(one.std, 2)} ${one.unit}`, percent(one.relative)]))] : []));
  }

  async openResult(id) {
    const motion = await attempt(this.root, () => get(resultPath(id, "motion.json")));
    if (!motion) return;
    this.found.parentElement.hidden = false;
    fill(this.found, el("div", { class: "row" }, button("Play", () => {
      this.play(motion);
      this.stage.playNow();
    }, { class: "main" }), el("a", { href: resultPath(id, "motion.csv"), download: "motion.csv", text: "Download motion.csv" }),
    el("a", { href: resultPath(id, "report.html"), target: "_blank", rel: "noopener", text: "Report" })), this.positions.root,
    motion.notes.length ? note(motion.notes) : null,
    el("pre", { tabIndex: 0, role: "region", "aria-label": "Command for the same search", text: motion.command }),
    note("Run motion.csv on the robot, record positions and torques, and upload the log in step 3.", "good"));
    this.positions.show(() => ({
      data: motion.q.map((q, i) => ({ x: motion.t, y: q, type: "scatter", mode: "lines", name: motion.joints[i], line: { color: color(i), width: 1.5 } })),
      layout: { xaxis: { title: { text: "time, s" } }, yaxis: { title: { text: `position, ${[...new Set(freeJoints().map((joint) => unitOf(joint.kind).position))].join(" or ")}` } } } }));
    this.play(motion);
  }

  play(motion) {
    this.stage.setTrack(trackOf("The motion found", motion));
  }

  opened() {
    const newest = this.results[0];
    if (newest && this.found.parentElement.hidden) this.openResult(newest.id);
  }
}
