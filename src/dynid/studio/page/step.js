// Common parts of all steps: a panel with a heading, an introduction and an area for problems.

import { el } from "./dom.js";
import { onPage } from "./problems.js";

export function panel(name, title, lead) {
  const root = el("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabIndex: 0, hidden: true },
    el("h2", { text: title }), el("p", { class: "lead", text: lead }), el("div", { class: "alert", role: "alert" }));
  document.getElementById("panels").append(root);
  return root;
}

// A part of a step with its own heading.
export function group(root, title, ...children) {
  const body = el("div", { class: "group-body" }, ...children);
  const made = el("section", { class: "group", "aria-label": title }, el("h3", { text: title }), body);
  root.append(made);
  return body;
}

// A remark of one or several sentences; advice for the command line is given in the words of the page.
export function note(text, kind = "", options = null) {
  return el("div", { class: `note ${kind}` }, [text].flat().map((one) => el("p", { text: onPage(one, options) })));
}
