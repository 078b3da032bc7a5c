// The verdict of a result: its grade and three lines first, then the findings.

import { el, typeset } from "./dom.js";
import { onPage } from "./problems.js";
import { note } from "./step.js";

const GRADES = { good: "good", fair: "", poor: "bad" };

export function verdictOf({ grade, lines, sentences }) {
  const list = (some) => el("ul", { class: "plain" }, some.map((one) => el("li", {}, el("strong", { text: `${one.hint}: ` }), typeset(onPage(one.text)))));
  const [facts, doubts] = [sentences.filter((one) => one.severity === "info"), sentences.filter((one) => one.severity !== "info")];
  const head = note(typeset(lines[0]), GRADES[grade]);
  head.classList.add("headline");
  return [head, ...lines.slice(1).map((text) => el("p", { text: typeset(text) })), doubts.length ? list(doubts) : null,
    facts.length ? el("details", {}, el("summary", { text: `More findings (${facts.length})` }), list(facts)) : null].filter(Boolean);
}
