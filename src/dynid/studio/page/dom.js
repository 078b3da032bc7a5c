// Elements of the page. Text from files and logs is inserted as text, never as markup.

let count = 0;

// An element: properties by name, `class`, `text`, aria-* and data-* as attributes, functions as listeners.
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "text") made.textContent = value;
    else if (name in made && !["list", "form"].includes(name)) made[name] = value;
    else made.setAttribute(name === "class" ? "class" : name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const unique = (stem) => `${stem}-${count += 1}`;

// Replace the content of an element; the focused element is found again by its data-focus.
export function fill(parent, ...children) {
  const focus = parent.contains(document.activeElement) ? document.activeElement.getAttribute("data-focus") : null;
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  if (focus) parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

// Replace the content only if it has changed, so that typing and focus are not interrupted by updates.
export function keep(parent, key, build) {
  const text = JSON.stringify(key);
  if (parent.shownKey === text) return false;
  parent.shownKey = text;
  fill(parent, build());
  return true;
}

// A labelled control. where: its setting, whose problems are shown below it.
export function field(label, control, { hint = null, where = null, note = null, wide = false } = {}) {
  control.id ||= unique("field");
  if (!control.getAttribute("data-focus")) control.setAttribute("data-focus", where || label);
  const told = [];
  const below = el("p", { class: "problem", id: `${control.id}-problem`, hidden: true });
  if (hint) told.push(`${control.id}-hint`);
  control.setAttribute("aria-describedby", [...told, below.id].join(" "));
  return el("div", { class: wide ? "field wide" : "field", "data-where": where },
    el("label", { htmlFor: control.id, text: label }, note ? el("span", { class: "mark", text: note }) : null),
    control,
    hint ? el("p", { class: "hint", id: `${control.id}-hint`, text: hint }) : null,
    below);
}

// A select box of [value, text] pairs or plain names.
export function select(choices, value, change, given = {}) {
  const made = el("select", { change: () => change(made.value), ...given });
  for (const choice of choices) {
    const [key, text] = Array.isArray(choice) ? choice : [choice, choice];
    made.append(el("option", { value: key, text, selected: String(key) === String(value ?? "") }));
  }
  return made;
}

export function checkbox(label, checked, change, given = {}) {
  const box = el("input", { type: "checkbox", checked, change: () => change(box.checked), "data-focus": given["data-focus"] || label, ...given });
  return el("label", { class: "check" }, box, el("span", { text: label }));
}

export function button(text, click, given = {}) {
  return el("button", { type: "button", text, click, "data-focus": text, ...given });
}

// A table with a caption for screen readers: header names, rows of texts or elements.
export function table(caption, head, rows, given = {}) {
  return el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    el("table", { class: head.length > 5 ? "broad" : "", ...given },
      el("caption", { class: "quiet", text: caption }),
      el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => {
        const tag = i === 0 ? "th" : "td", given = i === 0 ? { scope: "row" } : {};
        return cell instanceof Node ? el(tag, given, cell) : el(tag, { ...given, text: cell ?? "" });
      }))))));
}

// A list of named values.
export const facts = (pairs) => el("dl", { class: "numbers" }, pairs.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))));

// A group of checkboxes that add names to a set, or remove them.
export function checkboxes(legend, names, chosen, { label = (name) => name, quiet = true } = {}) {
  return el("fieldset", { class: "bar" }, el("legend", { class: quiet ? "quiet" : "", text: legend }),
    names.map((name) => checkbox(label(name), chosen.has(name), (now) => (now ? chosen.add(name) : chosen.delete(name)))));
}

// Format a number with four digits, without trailing zeros.
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(Math.max(digits - 2, 1)) : String(Number(value.toPrecision(digits)));
}

// Replace plain text by typographic signs, such as ± and ².
export const typeset = (text) => text.replaceAll("+-", "±").replaceAll("^2", "²").replaceAll("^3", "³");

// Units of a joint's motion and torque by its kind.
export function unitOf(kind) {
  return kind === "prismatic" ? { position: "m", velocity: "m/s", torque: "N" } : { position: "rad", velocity: "rad/s", torque: "N m" };
}

export const percent = (value) => (value === null || value === undefined || !Number.isFinite(value) ? "–" : `${number(value, 3)} %`);

export function bytes(size) {
  for (const unit of ["B", "kB", "MB"]) {
    if (size < 1000) return `${Number(size.toPrecision(3))} ${unit}`;
    size /= 1000;
  }
  return `${Number(size.toPrecision(3))} GB`;
}
