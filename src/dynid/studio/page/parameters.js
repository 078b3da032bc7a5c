// The table of parameters of one result, or of two for comparison.

import { el, number, percent, table } from "./dom.js";

// A unit is not broken across lines.
const unit = (one) => one.unit.replaceAll(" ", "\u00a0");

// A name whose meaning and unit are shown on hover and read by screen readers.
const named = (one) => el("abbr", { text: one.name, title: `${one.meaning}, ${one.unit}` });

export function parameterTable(parameters) {
  return table("Parameters", ["parameter", "meaning", "value", "unit", "± standard error", "relative", "status"],
    parameters.map((one) => [named(one), one.meaning, number(one.value), unit(one), number(one.std, 2), percent(one.relative), one.status]));
}

// The difference is divided by the standard error of the difference of independent estimates.
export function pairTable(first, second, labels) {
  const known = new Map(second.map((one) => [one.name, one])), names = new Set(first.map((one) => one.name));
  const value = (one) => (one ? `${number(one.value)} ± ${number(one.std, 2)}` : "–");
  const apart = (a, b) => (a && b ? number((b.value - a.value) / Math.hypot(a.std, b.std), 2) : "–");
  const rows = [...first.map((one) => [one, one, known.get(one.name)]), ...second.filter((one) => !names.has(one.name)).map((one) => [one, null, one])];
  return table("Parameters of two results", ["parameter", "meaning", labels[0], labels[1], "unit", "difference / standard error"],
    rows.map(([one, a, b]) => [named(one), one.meaning, value(a), value(b), unit(one), apart(a, b)]));
}
