// Step 2, Motion: safety and limits, the search with its condition number, and the motion to play and download.

import { get, job, Problem, resultPath } from "./api.js";
import { clock } from "./clock.js";
import { button, checkbox, el, field, fill, keep, number, percent, select, table, unitOf } from "./dom.js";
import { dropPlace } from "./files.js";
import { Plot, color } from "./plot.js";
import { attempt, onPage, showFailure } from "./problems.js";
import { trackOf } from "./stage.js";
import { freeJoints, on, running, store } from "./store.js";
import { group, note, panel } from "./step.js";

export class MotionStep {
  constructor(stage) {
    this.stage = stage;
    this.root = panel("motion", "Motion", "The accuracy of the parameters depends on the recorded motion. dynid optimises an exciting motion within the limits of your robot. "
      + "If you already have a log, continue with step 3.");
    this.root.dataset.options = "motion"; // advice on an option of the command line names the field of this step
    this.buildSafety();
    this.form = el("div", { class: "fields" });
    group(this.root, "Motion to search for", this.form);
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
    this.start = button("Optimise a motion", () => attempt(this.root, () => this.search()), { class: "main" });
    this.root.append(el("div", { class: "row" }, this.start));
    this.found = group(this.root, "Motion");
    this.found.parentElement.hidden = true;
    this.live = group(this.root, "Search");
    this.curve = new Plot("Condition number over the time of the search", { timed: false, height: 220 });
    this.words = el("p", { role: "status" });
    this.standardErrors = el("div");
    this.live.append(this.words, this.curve.root, this.standardErrors);
    this.live.parentElement.hidden = true;
    this.positions = new Plot("Positions of the motion over time", { height: 260 });
    on("state", () => this.update());
    on("robot", () => this.showFeet());
    this.showFeet();
    on("catalogue", ({ criteria, motions }) => {
      this.criterion.append(...criteria.map((name) => el("option", { value: name, text: name })));
      this.family.append(...motions.filter((name) => name !== "fourier").map((name) => el("option", { value: name, text: name })));
    });
    on("job", (now) => this.showJob(now));
    on("ended", async (now) => {
      if (now.kind !== "motion") return;
      if (now.state === "failed") showFailure(this.root, now, "The search failed.");
      if (!now.result) return;
      await this.openResult(now.result);
      this.found.parentElement.scrollIntoView({ block: "start" });
    });
  }

  // What keeps the motion safe, as at the command line: each field has the name of an option there.
  buildSafety() {
    const fields = el("div", { class: "fields" });
    this.safety = {};
    const add = (name, label, control, hint, wide = false) => {
      fields.append(field(label, control, { hint, where: `motion.${name}`, wide }));
      this.safety[name] = control;
      return control;
    };
    const input = (name, label, placeholder, hint, given = {}) => add(name, label, el("input", { type: "number", step: "any", placeholder, ...given }), hint);
    const text = (name, label, hint, wide = false) => add(name, label, el("input", { type: "text", autocomplete: "off" }), hint, wide);
    const room = [input("floor", "Height of the floor, m", "not checked", "above the origin of the base; all links stay above it"),
      text("box", "Box around all links, m", "base frame, two corners: x1, y1, z1, x2, y2, z2", true)];
    this.safety.box.placeholder = "not checked";
    input("radius", "Radius of the links, m", "5 % of the reach", "of links without readable collision shapes", { min: 0 });
    input("speed", "Largest speed, share of the joints' top speeds", "0.6", "above 0, at most 1", { min: 0, max: 1 });
    input("margin", "Margin to the limits, share", "0.05", "of the robot's ranges, velocities and torques", { min: 0, max: 0.49 });
    text("gravity", "Gravity in the base frame, m/s²", "of a base that is tilted or hangs; it turns the floor, too");
    text("home", "Posture at the start and the end, rad or m", "one number per joint, separated by commas", true);
    this.standing = text("standing", "Standing feet", "frames of the feet that stand still, separated by commas");
    const feet = [this.standing, text("sole", "Size of the soles, m", "length, width; empty for feet that are points"),
      input("friction_cone", "Friction coefficient of the ground", "0.6", null, { min: 0 }),
      input("support_margin", "Margin to the support polygon, m", "0.02", "of the centre of pressure", { min: 0 }),
      input("sway", "Largest displacement of the base, m", "0.1", "along each axis", { min: 0 }),
      input("tilt", "Largest rotation of the base, rad", "0.3", "about each axis", { min: 0 })];
    this.forFeet = feet.map((control) => control.parentElement);
    this.forRoom = room.map((control) => control.parentElement);
    const full = checkbox("Use the whole joint ranges", false, () => {}, { "data-focus": "full range" });
    this.fullRange = full.querySelector("input");
    fields.append(el("div", { class: "field wide", "data-where": "motion.full_range", "data-label": "Use the whole joint ranges" }, full,
      el("p", { class: "hint", text: "also if collisions are not fully checked or a radius is assumed; otherwise half of each range around the start" })));
    for (const control of room) control.addEventListener("change", () => this.preview());
    this.limits = el("div", { class: "group-body" });
    group(this.root, "Safety", fields, this.limits);
  }

  // Floor and box of the form in the scene, before a search. The server checks their numbers.
  preview() {
    const corners = this.safety.box.value.split(",").map(Number), isBox = corners.length === 6 && corners.every(Number.isFinite) && this.safety.box.value.trim();
    const lower = isBox ? corners.slice(0, 3) : [null, null, null], upper = isBox ? corners.slice(3) : [null, null, null];
    const floor = this.safety.floor.value === "" ? null : Number(this.safety.floor.value);
    if (floor !== null) lower[2] = Math.max(floor, lower[2] ?? floor);
    this.stage.surround({ lower, upper, walls: [], obstacles: [], lowest: null });
  }

  // Values of the safety fields that are shown, null for an empty one; text that is no number is refused.
  readSafety() {
    const shown = Object.entries(this.safety).filter(([, control]) => !control.parentElement.hidden);
    return Object.fromEntries(shown.map(([name, control]) => {
      if (control.validity.badInput) throw new Problem(422, { sentence: `${onPage(`--${name.replaceAll("_", "-")}`, "motion")} is not a number.`, where: `motion.${name}` });
      const value = control.value.trim();
      return [name, value === "" ? null : control.type === "number" ? Number(value) : value];
    }));
  }

  get results() { return (store.state?.results || []).filter((result) => result.kind === "motion"); }

  update() {
    this.start.disabled = !store.state.settings.robot || running();
    const files = store.state.files.filter((file) => file.role === "limits").map((file) => file.name);
    keep(this.limits, files, () => {
      const chosen = select([["", "those of the robot's file"], ...files.map((name) => [name, name])], this.limitsFile || "", (name) => { this.limitsFile = name; });
      return [field("Limits", chosen, { hint: "of joints; a limits file can also have a floor, a box, walls and obstacles", where: "motion.limits" }), dropPlace(this.root, "Custom limits", { role: "limits", accept: ".toml", multiple: false,
        hint: "A TOML file with limits that replace those of the robot file.", sent: ([file]) => { this.limitsFile = file.name; } })];
    });
  }

  showFeet() {
    for (const place of this.forFeet) place.hidden = !store.robot?.free_base;
    for (const place of this.forRoom) place.hidden = Boolean(store.robot?.free_base); // the feet are on the floor
    this.standing.value = (store.robot?.feet || []).join(", ");
  }

  search() {
    const friction = this.friction.value.split(",").filter(Boolean);
    return job("motion", { duration: Number(this.duration.value), harmonics: Number(this.harmonics.value), seconds: Number(this.seconds.value),
      seed: Number(this.seed.value), criterion: this.criterion.value || null, friction, family: this.family.value, limits: this.limitsFile || null, full_range: this.fullRange.checked, ...this.readSafety() });
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
    const warnings = motion.warnings ?? this.results.find((one) => one.id === id).warnings; // a result of an earlier version
    const checked = (motion.sentences || []).filter((text) => !warnings.includes(text));
    const lowest = motion.surroundings?.lowest;
    const offer = el("span"), next = el("div");
    const allow = (allowed) => {
      const words = "Download motion.csv", path = resultPath(id, "motion.csv");
      fill(offer, allowed ? el("a", { href: warnings.length ? `${path}?confirmed=yes` : path, download: "motion.csv", text: words }) : button(words, () => {}, { disabled: true, title: "confirm the warnings first" }));
      fill(next, allowed ? note("Run motion.csv on the robot, record positions and torques, and upload the log in step 3.", warnings.length ? "" : "good") : []);
    };
    allow(!warnings.length);
    fill(this.found, checked.length ? el("p", { class: "headline", text: checked.map((text) => onPage(text, "motion")).join(" ") }) : null,
    warnings.length ? el("fieldset", { class: "note", "data-where": "motion.confirmed" }, el("legend", { class: "quiet", text: "Warnings about this motion" }),
      warnings.map((text, i) => el("p", { class: i ? "" : "headline", text: onPage(text, "motion") })), checkbox("I have read this and let the robot run the motion nevertheless", false, allow)) : null,
    el("div", { class: "row" }, button("Play", () => {
      this.play(motion);
      this.stage.playNow();
    }, { class: "main" }), lowest ? button("Go to the lowest posture", () => this.goToLowest(motion)) : null, offer,
    el("a", { href: resultPath(id, "report.html"), target: "_blank", rel: "noopener", text: "Report" })), next,
    this.positions.root, motion.notes.length ? el("ul", { class: "remarks" }, motion.notes.map((text) => el("li", { text: onPage(text, "motion") }))) : null,
    el("details", { open: true }, el("summary", { text: "The same search without the studio" }), el("pre", { tabIndex: 0, role: "region", "aria-label": "Command for the same search", text: motion.command })));
    this.positions.show(() => ({
      data: motion.q.map((q, i) => ({ x: motion.t, y: q, type: "scatter", mode: "lines", name: motion.joints[i], line: { color: color(i), width: 1.5 } })),
      layout: { xaxis: { title: { text: "time, s" } }, yaxis: { title: { text: `position, ${[...new Set(freeJoints().map((joint) => unitOf(joint.kind).position))].join(" or ")}` } } } }));
    this.play(motion);
  }

  play(motion) {
    this.stage.setTrack(trackOf("The motion found", motion));
    if (this.stage.arm) this.stage.frame();
  }

  goToLowest(motion) {
    if (this.stage.track?.around !== motion.surroundings) this.play(motion);
    clock.play(false);
    clock.seek(motion.surroundings.lowest.time);
  }

  opened() {
    const newest = this.results[0];
    if (newest && this.found.parentElement.hidden) this.openResult(newest.id);
  }
}
