// Columns: the signal and joint of each column of a log, and the sign of each joint.

import { el, field, select } from "./dom.js";

const SIGNALS = { position: "Position", velocity: "Velocity", torque: "Torque", current: "Current" };

// The present value of a setting and its origin: the user's own, else a preset's, else a guess.
function now({ given, guessed }, key) {
  if (given[key] !== undefined) return { value: given[key], from: "given" };
  return guessed[key] ? guessed[key] : { value: null, from: null };
}

const mark = (from) => (from === "guessed" ? "guessed" : from === "preset" ? "from the preset" : null);

// The column names of a pattern, range or list, one per joint; null for a single array or if unknown.
export function perJoint(value, joints) {
  if (Array.isArray(value)) return value.map(String);
  if (typeof value === "string" && value.includes("{i}")) return joints.map((_, i) => value.replace("{i}", i + 1));
  if (typeof value === "string" && value.includes("{joint}")) return joints.map((name) => value.replace("{joint}", name));
  return null;
}

// Store the guessed signals when one of them is set by hand, because a named signal ends the guessing of the others.
function settle(log, guessed) {
  for (const key of ["time", ...Object.keys(SIGNALS)]) {
    if (log[key] === undefined && !log.preset && guessed[key]?.value !== undefined && guessed[key].value !== null) log[key] = guessed[key].value;
  }
}

// Signals with one choice each: time, torque or current, and arrays with all joints.
export function signalChoices(context) {
  const { columns, shapes, joints, guessed, edit } = context;
  const time = now(context, "time");
  const made = [field("Time", select([["", "none"], ...columns], Array.isArray(time.value) ? time.value[0] : time.value ?? "", (name) => edit(({ log }) => {
    settle(log, guessed);
    if (name) log.time = name;
    else delete log.time;
  })), { where: "log.time", note: mark(time.from) })];
  for (const [key, label] of Object.entries(SIGNALS)) {
    const { value, from } = now(context, key);
    const whole = typeof value === "string" && !perJoint(value, joints);
    if (!whole && !(shapes && value === null && key !== "current")) continue;
    made.push(field(`${label}, all joints`, select([["", "none"], ...columns], value ?? "", (name) => edit(({ log }) => {
      settle(log, guessed);
      if (name) log[key] = name;
      else delete log[key];
    })), { where: `log.${key}`, note: mark(from) }));
  }
  const load = now(context, "current").value === null ? "torque" : "current";
  made.push(field("Effort is a", select([["torque", "torque or force"], ["current", "current"]], load, (kind) => edit(({ log }) => {
    settle(log, guessed);
    const other = kind === "torque" ? "current" : "torque";
    log[kind] = log[other] ?? log[kind];
    delete log[other];
    if (kind === "current") log.drive_gain ??= 1;
    else delete log.drive_gain;
  })), { where: "log.effort" }));
  if (load === "current") made.push(gainField(context));
  return made;
}

function gainField({ given, edit }) {
  const gain = el("input", { type: "text", value: [given.drive_gain ?? ""].flat().join(", "), change: () => edit(({ log }) => {
    const numbers = gain.value.split(/[\s,;]+/).filter(Boolean).map(Number);
    log.drive_gain = numbers.every(Number.isFinite) && numbers.length ? (numbers.length === 1 ? numbers[0] : numbers) : gain.value;
  }) });
  return field("Torque per unit of current", gain, { where: "log.drive_gain", hint: "one value, or one per joint, N m per A" });
}

// Positions and torques are required; if they are unknown, the user has to choose them.
function unknown(context, key) {
  const empty = (name) => now(context, name).value === null;
  return !context.shapes && empty(key) && (key === "position" || (key === "torque" && empty("current")));
}

// One row per joint: a select box for each signal with one column per joint, and toggles of the signs.
export function columnTable(context) {
  const { columns, joints, edit, guessed } = context;
  if (!joints.length) return [];
  const signals = Object.keys(SIGNALS).filter((key) => perJoint(now(context, key).value, joints)?.length || unknown(context, key));
  const chosen = Object.fromEntries(signals.map((key) => [key, perJoint(now(context, key).value, joints) || []]));
  const cell = (key, i) => {
    const options = [...new Set([...columns, ...(chosen[key][i] && !columns.includes(chosen[key][i]) ? [chosen[key][i]] : [])])];
    return select([["", "choose…"], ...options], chosen[key][i] ?? "", (name) => edit(({ log }) => {
      settle(log, guessed);
      const list = joints.map((_, j) => chosen[key][j] ?? columns[0]);
      list[i] = name;
      log[key] = list;
    }), { "aria-label": `${SIGNALS[key]} of ${joints[i]}`, "data-focus": `${key} ${i}` });
  };
  const head = signals.map((key) => {
    const told = mark(now(context, key).from);
    return el("th", { scope: "col", text: SIGNALS[key] }, told ? el("span", { class: "mark", text: told }) : null);
  });
  const titles = { ...SIGNALS, sign: "Direction", torque_sign: "Torque sign" };
  const problems = [...signals, "sign", "torque_sign"].map((key) => el("div", { "data-where": `log.${key}`, "data-label": titles[key] }, el("p", { class: "problem", hidden: true })));
  return [...problems, el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Columns and signs of each joint" }, el("table", {},
    el("caption", { class: "quiet", text: "Columns and signs of each joint" }),
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "Joint" }), head, el("th", { scope: "col", text: titles.sign }), el("th", { scope: "col", text: titles.torque_sign }))),
    el("tbody", {}, joints.map((name, i) => el("tr", {}, el("th", { scope: "row", text: name }), signals.map((key) => el("td", { "data-column": key }, cell(key, i))),
      el("td", {}, signToggle(context, "sign", i, "reversed", "as in the file")), el("td", {}, signToggle(context, "torque_sign", i, "reversed", "as in the file"))))))),
  el("p", { class: "hint", text: "If a joint replays in the wrong direction, reverse its direction. If the torques at rest have the wrong sign for gravity, reverse the torque sign." })];
}

function signs(value, joints) {
  if (Array.isArray(value)) return joints.map((_, i) => value[i] ?? 1);
  if (value && typeof value === "object") return joints.map((name) => value[name] ?? 1);
  return joints.map(() => value ?? 1);
}

function signToggle(context, key, i, turned, straight) {
  const { joints, edit } = context, { value } = now(context, key), list = signs(value, joints);
  const wrong = list[i] < 0;
  return el("button", { type: "button", class: "small", "aria-pressed": String(wrong), "aria-label": `${key === "sign" ? "Direction" : "Torque sign"} of ${joints[i]}: ${wrong ? turned : straight}`,
    "data-focus": `${key} ${i}`, text: wrong ? "−" : "+", click: () => edit(({ log }) => {
      list[i] = -list[i];
      if (list.every((one) => one > 0)) delete log[key];
      else log[key] = list;
    }) });
}
