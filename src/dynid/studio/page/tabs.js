// Tabs by the ARIA pattern: arrow keys move between them, and only the selected one is in the tab order.

import { el } from "./dom.js";

export class Tabs {
  constructor(list, steps, opened) {
    this.opened = opened;
    this.steps = steps;
    list.replaceChildren(...steps.map((step, i) => el("button", {
      type: "button", role: "tab", id: `tab-${step.name}`, "aria-controls": `panel-${step.name}`, click: () => this.open(step.name),
    }, el("span", { class: "number", text: `${i + 1}`, "aria-hidden": "true" }), el("span", { text: step.title }))));
    list.addEventListener("keydown", (event) => this.key(event));
    addEventListener("popstate", () => this.restore());
    addEventListener("resize", () => this.reveal());
  }

  get current() { return this.steps.findIndex((step) => step.name === this.name); }

  // An opened step is an entry of the browser's history, so that Back returns to the previous step.
  open(name, focus = false) {
    const known = location.hash === `#${name}`;
    if (!known) history[this.name ? "pushState" : "replaceState"](null, "", `#${name}`);
    this.show(name, focus);
  }

  // Show the step of the address, or the first one.
  restore() {
    const named = location.hash.slice(1);
    this.show(this.steps.some((step) => step.name === named) ? named : this.steps[0].name);
  }

  show(name, focus = false) {
    const another = this.name !== name;
    this.name = name;
    for (const step of this.steps) {
      const tab = document.getElementById(`tab-${step.name}`), chosen = step.name === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      document.getElementById(`panel-${step.name}`).hidden = !chosen;
      if (chosen) this.reveal();
      if (chosen && focus) tab.focus();
    }
    this.opened(name);
    if (another) document.getElementById("steps").scrollTop = 0;
  }

  // Scroll a narrow bar to the selected tab.
  reveal() {
    document.getElementById(`tab-${this.name}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  key(event) {
    const last = this.steps.length - 1;
    const to = { ArrowRight: this.current === last ? 0 : this.current + 1, ArrowLeft: this.current === 0 ? last : this.current - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.open(this.steps[to].name, true);
  }
}
