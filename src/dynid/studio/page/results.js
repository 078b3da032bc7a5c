// Results: the one that steps 5 and 6 look at, with its curves read once.

import { get, resultPath } from "./api.js";
import { percent } from "./dom.js";
import { emit, store } from "./store.js";

const kept = new Map();

export const results = {
  id: null,

  // Those that have curves, newest first.
  get all() { return (store.state?.results || []).filter((one) => ["run", "compare"].includes(one.kind)); },
  get chosen() { return this.all.find((one) => one.id === this.id) || this.all[0] || null; },

  choose(id) {
    this.id = id;
    emit("result", this.chosen);
  },

  curves(id) {
    if (!kept.has(id)) {
      kept.set(id, get(resultPath(id, "curves.json")).catch((problem) => {
        kept.delete(id);
        throw problem;
      }));
    }
    return kept.get(id);
  },
};

// What a result is called in legends and heads of tables: its method and when it was made.
export function labelOf(id) {
  const one = results.all.find((other) => other.id === id);
  return one ? `${one.method}, ${new Date(one.created).toLocaleTimeString()}` : id;
}

// A result in a select box: what it is, how good, and when it was made.
export function choices() {
  return results.all.map((one) => [one.id, [one.kind === "compare" ? `comparison (${one.method} first)` : one.method, Number.isFinite(one.relative_error) ? `fit error ${percent(one.relative_error)}` : null,
    new Date(one.created).toLocaleTimeString()].filter(Boolean).join(", ")]);
}
