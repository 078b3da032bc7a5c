// Problems: messages shown at the setting they concern, or above the step.

import { el } from "./dom.js";

export function clearProblems(panel) {
  for (const below of panel.querySelectorAll(".problem")) {
    below.hidden = true;
    below.textContent = "";
  }
  for (const control of panel.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  panel.querySelector(":scope > .alert")?.replaceChildren();
}

// The field of a setting such as log.torque, or the nearest one that contains it.
function placeOf(panel, where) {
  for (let name = where; name; name = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : "") {
    const found = panel.querySelector(`[data-where="${CSS.escape(name)}"]`);
    if (found) return found;
  }
  return null;
}

// Advice for the command line in the words of the page: a setting is named by the label of its field, and an option such
// as --full-range by that of the field motion.full_range if `options`, the step whose fields are options, is "motion".
export function onPage(text, options = null) {
  if (options) text = text.replace(/--([a-z][a-z-]+)(?: [A-Z][\w,.]*[\w.])?/g, (whole, name) => optionOnPage(options, name));
  const option = /(add |use |or )?--set (?:'([\w.]+)=([^']*)'|([\w.]+)=([^'\s;,)]*))/g;
  return text.replace(/, or \w+ = (?:"[^"]*"|\[[^\]]*\]) under \[\w+\]/g, "").replace(option, (whole, verb, quoted, list, setting, value = list) => {
    const place = placeOf(document, quoted || setting), label = place?.dataset.label || place?.querySelector("label")?.firstChild.textContent;
    if (!label) return whole;
    const isExample = /^$|[[{]|\.\.\.|^[A-Z]+(\.\w+)?$/.test(value), start = verb === "or " ? verb : "";
    if (verb) return start + (isExample ? `fill in “${label}”` : `set “${label}” to ${value}`);
    return isExample ? `“${label}”` : `“${label}”: ${value}`;
  });
}

function optionOnPage(step, name) {
  const place = document.querySelector(`[data-where="${step}.${name.replaceAll("-", "_")}"]`);
  const label = place?.dataset.label || place?.querySelector("label")?.firstChild.textContent;
  return label ? `“${label.split(",")[0]}”` : `the option ${name} of the command line`;
}

export function showProblem(panel, problem) {
  const text = onPage(problem.hint ? `${problem.message}${problem.message.endsWith(".") ? "" : ";"} ${problem.hint}` : problem.message, panel.dataset.options);
  const place = problem.where ? placeOf(panel, problem.where) : null;
  if (place) {
    const below = place.querySelector(".problem");
    below.hidden = false;
    below.textContent = text;
    for (const control of place.querySelectorAll("select, input")) control.setAttribute("aria-invalid", "true");
  }
  const box = panel.querySelector(":scope > .alert");
  box.replaceChildren(el("p", {}, el("strong", { text: place ? "See below: " : "" }), text));
}

// Show why a job of a step failed.
export function showFailure(panel, job, otherwise) {
  clearProblems(panel);
  showProblem(panel, { message: job.error?.sentence || otherwise, hint: job.error?.hint, where: job.error?.where });
}

// Run an action of a step; an error is shown in its panel.
export async function attempt(panel, action) {
  clearProblems(panel);
  try {
    return await action();
  } catch (problem) {
    if (!("status" in problem)) throw problem;
    showProblem(panel, problem);
    return null;
  }
}
