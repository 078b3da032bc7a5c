// Step 3, Log: assignment of columns to signals, with a replay of the log by the robot.

import { filePath, remove, stopReading, task } from "./api.js";
import { clock } from "./clock.js";
import { button, el, facts, field, fill, keep, number, select, table, unitOf } from "./dom.js";
import { dropPlace, fileList, labelOf, shortName } from "./files.js";
import { columnTable, signalChoices } from "./columns.js";
import { Plot, color, shaded } from "./plot.js";
import { attempt, clearProblems, onPage, showProblem } from "./problems.js";
import { trackOf } from "./stage.js";
import { change, emit, freeJoints, on, refresh, store } from "./store.js";
import { group, note, panel } from "./step.js";

const UNITS = [["", "guessed"], "rad", "deg", "m", "mm"], VELOCITY_UNITS = [...UNITS, "rpm"], TIME_UNITS = [["", "guessed"], "s", "ms", "us", "ns"];

export class LogStep {
  constructor(stage) {
    this.stage = stage;
    this.index = 0;
    this.role = "log";
    this.joint = "all";
    this.root = panel("log", "Log", "Upload logs of positions and torques or currents. dynid guesses the meaning of each column; check and correct it here. Replay the log and check that the robot moves as it did.");
    const took = (list) => async (files) => {
      const remarks = [], logs = files.filter((file) => file.role === list);
      for (const file of logs) {
        const used = this.entries.map(([, , log]) => shortName(labelOf(log)));
        if (used.includes(file.name)) {
          remarks.push(`${file.name} was replaced; it is used once.`);
          this.key = null;
        } else if (used.includes(file.same_as)) {
          remarks.push(`${file.name} has the same content as ${file.same_as}, which is in the run already, and was not added.`);
          await remove(filePath(file.name));
          await refresh();
        } else {
          await change((settings) => { settings[list === "log" ? "logs" : "validate_on"].push(file.name); });
          this.look(file.name);
        }
      }
      this.update();
      return remarks.join(" ");
    };
    this.root.append(
      dropPlace(this.root, "Logs to identify from", { role: "log", hint: "CSV, NPZ, MAT, HDF5, Parquet, ROS bag, MCAP. Drop files here.", sent: took("log") }),
      dropPlace(this.root, "Logs to validate on", { role: "validation", hint: "Recommended: a log that is not used for identification.", sent: took("validation") }));
    this.files = group(this.root, "Files");
    this.choice = group(this.root, "Log format");
    this.reading = el("p", { class: "hint", role: "status" });
    this.stop = button("Stop reading", () => attempt(this.root, stopReading), { class: "small stop", hidden: true });
    this.root.append(this.reading, this.stop);
    this.columns = group(this.root, "Columns, signs and units");
    this.settings = el("div", { class: "fields" });
    this.matrix = el("div");
    this.columns.append(this.settings, this.matrix);
    this.found = group(this.root, "Findings in the log");
    this.pictures = group(this.root, "Signals");
    this.jointBox = el("div", { class: "fields" });
    this.plot = new Plot("Positions, velocities and torques over time", { height: 520 });
    this.marks = el("div");
    this.pictures.append(this.jointBox, this.plot.root, this.marks);
    on("state", () => this.update());
    on("catalogue", () => this.update());
    on("robot", () => {
      this.key = null;
      this.update();
    });
    on("ended", () => this.again && this.load());
  }

  get entries() {
    const { settings } = store.state;
    return [...settings.logs.map((log, i) => ["log", i, log]), ...settings.validate_on.map((log, i) => ["validation", i, log])];
  }

  // Show a log by its name.
  look(name) {
    const found = this.entries.find(([, , log]) => shortName(labelOf(log)) === name);
    if (found) [this.role, this.index] = found;
    this.update();
  }

  edit(make) {
    return attempt(this.root, () => change(make));
  }

  update() {
    const { state } = store;
    if (!state) return;
    const list = fileList(this.root, ["log", "validation"], (name) => change((settings) => {
      for (const key of ["logs", "validate_on"]) settings[key] = settings[key].filter((log) => shortName(labelOf(log)) !== name);
    }));
    this.files.parentElement.hidden = !list;
    keep(this.files, state.files.filter((file) => ["log", "validation"].includes(file.role)), () => list || []);
    const { entries } = this;
    if (!entries.some(([role, i]) => role === this.role && i === this.index)) [this.role, this.index] = entries[0] || ["log", 0];
    this.showChoice();
    this.load();
  }

  // Logs on the server that are not in the run.
  unused(state) {
    const used = this.entries.map(([, , log]) => shortName(labelOf(log)));
    return state.files.filter((file) => file.role === "log" && !used.includes(file.name)).map((file) => file.name);
  }

  showChoice() {
    const { entries } = this, { state } = store, missing = this.unused(state);
    keep(this.choice, [entries, this.role, this.index, state.settings.log.preset, store.catalogue?.presets.length, missing, this.log?.preset_fits], () => this.choices(state, entries, missing));
    this.choice.parentElement.hidden = !entries.length && !missing.length;
  }

  choices(state, entries, missing) {
    const presets = (store.catalogue?.presets || []).filter((one) => !one.refusal);
    const fits = this.log?.preset_fits || [];
    return el("div", { class: "fields" },
      entries.length ? field("Log", select(entries.map(([role, i, log]) => [`${role} ${i}`, `${shortName(labelOf(log))}${role === "validation" ? " (validation)" : ""}`]), `${this.role} ${this.index}`, (value) => {
        const [role, i] = value.split(" ");
        [this.role, this.index] = [role, Number(i)];
        this.update();
      }), { where: "logs" }) : null,
      missing.map((name) => button(`Add ${name}`, () => this.edit((settings) => { settings.logs.push(name); }))),
      field("Recorder", select([["", "by column names"], ...presets.map((one) => [one.name, `${one.name}${fits.includes(one.name) ? " (fits)" : ""}`])], state.settings.log.preset || "",
        (name) => this.edit((settings) => { settings.log = name ? { preset: name } : {}; })), { where: "log.preset", hint: presets.find((one) => one.name === state.settings.log.preset)?.recorder || "a preset defines names, units and signs" }));
  }

  // The log is read again only if its settings have changed.
  async load() {
    const { state } = store;
    const entry = this.entries.find(([role, i]) => role === this.role && i === this.index);
    if (!entry) {
      for (const part of [this.columns, this.found, this.pictures]) part.parentElement.hidden = true;
      this.setUsable(false);
      return;
    }
    if (!store.robot) {
      this.reading.textContent = "Select a robot in step 1 first: the log is read with its joints.";
      return;
    }
    const key = JSON.stringify([this.role, entry[2], state.settings.log, state.settings.robot, state.files.length]);
    if (key === this.key && !this.again) {
      if (this.root.hidden) return;
      if (this.unseen) this.show();
      else this.replay();
      return;
    }
    this.key = key;
    this.again = false;
    this.reading.textContent = `Reading ${shortName(labelOf(entry[2]))}…`;
    this.stop.hidden = false;
    this.request?.abort(); // Requests with earlier settings end here: a browser sends only six at once, and Stop is a request too.
    const request = this.request = new AbortController();
    const about = { log: this.index, role: this.role }, { signal } = request;
    const [log, columns] = await Promise.allSettled([task("log", about, signal), task("columns", about, signal)]);
    if (key !== this.key || request !== this.request) return;
    this.reading.textContent = "";
    this.stop.hidden = true;
    clearProblems(this.root);
    this.offered = columns.value || log.value || { columns: [] };
    if (log.status === "rejected") {
      if (!("status" in log.reason)) throw log.reason;
      this.again = log.reason.status === 409;
      this.log = null;
      this.setUsable(false);
      for (const part of [this.found, this.pictures]) part.parentElement.hidden = true;
      this.showColumns();
      this.showChoice(); // now, because drawing the fields again later would remove the problem below them
      showProblem(this.root, log.reason);
      return;
    }
    this.log = log.value;
    this.setUsable(!this.log.standstill?.problem);
    this.unseen = this.root.hidden;
    if (!this.unseen) this.show();
  }

  setUsable(now) {
    store.logIsUsable = now;
    emit("log", now);
  }

  show() {
    this.unseen = false;
    for (const part of [this.columns, this.found, this.pictures]) part.parentElement.hidden = false;
    this.showChoice();
    this.showColumns();
    this.showFound();
    this.showPlots();
    this.replay(true);
  }

  joints() {
    return freeJoints().map((joint) => joint.name);
  }

  showColumns() {
    this.columns.parentElement.hidden = false;
    const guessed = this.log?.guessed || this.offered.guessed || {}, given = store.state.settings.log;
    const context = { columns: this.offered.columns || [], shapes: this.offered.shapes || null, joints: this.joints(), guessed, given, edit: (make) => this.edit(make) };
    keep(this.settings, [context.columns, guessed, given, "settings"], () => [...signalChoices(context), ...this.unitChoices(context)]);
    keep(this.matrix, [context.columns, guessed, given, context.joints], () => columnTable(context));
  }

  unitChoices({ guessed, given }) {
    const unit = (key, label, names) => {
      const from = given[key] !== undefined ? null : guessed[key]?.value ? `guessed: ${one(guessed[key].value)}` : null;
      return field(label, select(names, one(given[key] ?? ""), (value) => this.edit(({ log }) => {
        if (value) log[key] = value;
        else delete log[key];
      })), { where: `log.${key}`, note: from });
    };
    const ratio = el("input", { type: "text", value: given.ratio === undefined ? "" : [given.ratio].flat().join(", "), placeholder: "100, 100, 80 or robot", change: () => this.edit(({ log }) => {
      const text = ratio.value.trim(), numbers = text.split(/[\s,;]+/).map(Number);
      if (!text) delete log.ratio;
      else log.ratio = numbers.every(Number.isFinite) ? (numbers.length === 1 ? numbers[0] : numbers) : text;
    }) });
    const motor = given.side === "motor" || given.torque_side === "motor";
    return [unit("unit", "Unit of positions", UNITS), unit("velocity_unit", "Unit of velocities", VELOCITY_UNITS), unit("time_unit", "Unit of time", TIME_UNITS),
      field("Measured at", select([["joint", "the joints"], ["motor", "the motors (before the gears)"]], given.side || "joint", (value) => this.edit(({ log }) => {
        if (value === "motor") Object.assign(log, { side: "motor", ratio: log.ratio ?? 1 });
        else for (const key of ["side", "ratio"]) delete log[key];
      })), { where: "log.side" }),
      motor ? field("Gear ratios", ratio, { where: "log.ratio", hint: "one value, or one per joint; robot: those of the robot file" }) : null].filter(Boolean);
  }

  showFound() {
    const { log } = this;
    fill(this.found, el("p", { id: "shown-log" }, "Shown: ", el("strong", { text: shortName(log.name) }), this.role === "validation" ? " (validation)" : ""),
      facts([["rows", log.rows], ["length", `${number(log.seconds, 4)} s`], ["rate", `${number(log.rate, 4)} Hz`], ["signals", log.signals.join(", ")]]),
      log.standstill?.sentence ? note(log.standstill.sentence, log.standstill.problem ? "bad" : "good") : null,
      log.findings.length ? note(gathered(log.findings)) : null,
      log.notes.length ? el("details", {}, el("summary", { text: `Assumptions and preparation (${log.notes.length})` }), el("ul", { class: "plain" }, log.notes.map((text) => el("li", { class: "hint", text: onPage(text) })))) : null);
  }

  showPlots() {
    const { log } = this, names = plottedNames(log, this.joints());
    keep(this.jointBox, [names, this.joint], () => field("Joint", select([["all", "all"], ...names.map((name, i) => [i, name])], this.joint, (value) => {
      this.joint = value;
      this.showPlots();
    }), {}));
    const wanted = names.map((_, i) => i).filter((i) => this.joint === "all" || i === Number(this.joint));
    const marks = log.marks.filter((mark) => !mark.joint || wanted.some((i) => names[i] === mark.joint));
    this.plot.show(() => ({
      data: wanted.flatMap((i) => ["q", "dq", "tau"].map((signal, row) => log[signal]?.[i] && {
        x: log.t, y: log[signal][i], type: "scatter", mode: "lines", name: names[i], legendgroup: names[i], showlegend: row === 0, yaxis: row ? `y${row + 1}` : "y", line: { color: color(i), width: 1.2 } }).filter(Boolean)),
      layout: { shapes: shaded(marks), xaxis: { title: { text: "time, s" }, anchor: "y3" }, yaxis: { title: { text: axisTitle("position", wanted, log) }, domain: [0.7, 1] },
        yaxis2: { title: { text: axisTitle("velocity", wanted, log) }, domain: [0.36, 0.64] }, yaxis3: { title: { text: axisTitle("torque", wanted, log) }, domain: [0, 0.3] } } }));
    this.showMarks(marks);
  }

  showMarks(marks) {
    const shown = marks.slice(0, 30);
    fill(this.marks, shown.length ? table("Marks in the plots", ["what", "from, s", "to, s", "joint", ""], shown.map((mark) => [mark.sentence || mark.kind, number(mark.start, 5), number(mark.stop, 5), mark.joint || "all",
      button("Go there", () => clock.seek(mark.start), { class: "small", "aria-label": `Go to ${number(mark.start, 4)} s` })])) : el("p", { class: "hint", text: "No gaps, no saturation, no ignored rows." }));
  }

  replay(always = false) {
    const { log } = this;
    if (!log) return;
    if (this.root.hidden) return;
    log.track ||= trackOf(`Replaying ${shortName(log.name)}`, log);
    if (always || this.stage.track !== log.track) this.stage.setTrack(log.track);
  }

  opened() {
    this.update();
  }
}

const one = (value) => (Array.isArray(value) ? value[0] : typeof value === "object" && value !== null ? Object.values(value)[0] : value);

// Names of a log's curves: those of its own columns if a free base has more columns than the robot has joints.
function plottedNames(log, joints) {
  if (!store.robot?.free_base && joints.length === log.q.length) return joints;
  return log.joints.length === log.q.length ? log.joints : log.q.map((_, i) => `joint ${i + 1}`);
}

// Axis title of a signal with its units; columns of a free base precede the joints and have their own units.
function axisTitle(signal, curves, log) {
  const base = store.robot?.free_base ? 6 : 0, free = freeJoints().slice(base);
  const first = base ? log.q.length - free.length : 0;
  const units = new Set(curves.filter((i) => i >= first).map((i) => unitOf(free[i - first]?.kind)[signal]));
  return units.size ? `${signal}, ${[...units].join(" or ")}` : signal;
}

// The first finding of each kind, and the number of further ones.
function gathered(findings) {
  const kinds = Map.groupBy(findings, (one) => one.code);
  return [...kinds.values()].map((list) => (list.length > 1 ? `${list[0].text} (and ${list.length - 1} more like it, in the table below the plots)` : list[0].text));
}
