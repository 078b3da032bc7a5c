// Results: the one that steps 5 and 6 show, with its curves read once.

import { get, resultPath } from "./api.js";
import { percent } from "./dom.js";
import { emit, store } from "./store.js";

const kept = new Map();

export const results = {
  id: null,

  // Results with curves, newest first.
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

// Name of a result in legends and table headers: its method and time of creation.
export function labelOf(id) {
  const one = results.all.find((other) => other.id === id);
  return one ? `${one.method}, ${new Date(one.created).toLocaleTimeString()}` : id;
}

// Entry of a result in a select box: kind, error and time of creation.
export function choices() {
  return results.all.map((one) => [one.id, [one.kind === "compare" ? `comparison (${one.method} first)` : one.method, Number.isFinite(one.relative_error) ? `fit error ${percent(one.relative_error)}` : null,
    new Date(one.created).toLocaleTimeString()].filter(Boolean).join(", ")]);
}
