// Progress: the running job with share, message and Stop, above any step; and how the last one ended.

import { stop } from "./api.js";
import { button, el } from "./dom.js";
import { onPage } from "./problems.js";
import { on } from "./store.js";

const KINDS = { run: "Identification", compare: "Comparison of methods", motion: "Search for a motion", live: "Live", payload: "Payload", code: "Code", actuators: "Actuators" };

export function progress(opened) {
  const root = document.getElementById("progress");
  const sentence = el("p", { class: "sentence" });
  const spoken = el("p", { class: "quiet", role: "status", "aria-live": "polite" });
  const bar = el("progress", { max: 1, "aria-label": "Share done" });
  const share = el("span", { class: "share" });
  const end = button("Stop", async () => {
    end.disabled = true;
    try {
      await stop();
    } catch (problem) {
      sentence.textContent = problem.message;
    }
    end.disabled = false;
  }, { class: "stop" });
  const look = button("", () => opened(look.dataset.step), { class: "small" });
  let closed = null, shown = null;
  const close = button("Close", () => {
    closed = shown;
    root.hidden = true;
  }, { class: "small" });
  root.append(sentence, spoken, bar, share, end, look, close);

  let last = 0;
  on("job", (job) => {
    const busy = job.state === "running";
    shown = job.id;
    root.hidden = job.id === closed;
    root.dataset.state = job.state;
    root.dataset.grade = job.grade || "good";
    sentence.textContent = words(job);
    // Screen readers get one message every two seconds, and the end.
    if (!busy || Date.now() - last > 2000) {
      spoken.textContent = words(job);
      last = Date.now();
    }
    bar.hidden = !busy;
    end.hidden = !busy;
    share.hidden = !busy;
    if (typeof job.share === "number") bar.value = job.share;
    else bar.removeAttribute("value");
    share.textContent = typeof job.share === "number" ? `${Math.round(100 * job.share)} %` : "";
    const step = busy ? null : { run: "compare", compare: "compare", motion: "motion", payload: "use", code: "use", actuators: "actuators" }[job.kind];
    look.hidden = job.state !== "done" || !step;
    if (step) {
      look.dataset.step = step;
      look.textContent = "Show the result";
    }
    close.hidden = busy;
  });
}

function words(job) {
  const kind = KINDS[job.kind] || job.kind, options = document.getElementById(`panel-${job.kind}`)?.dataset.options;
  if (job.state === "running") return job.sentence ? `${kind}: ${job.sentence}` : `${kind} is running`;
  // Only the first sentence of a verdict, which states whether the model is good.
  if (job.state === "done") return `${kind}: ${onPage(job.sentence.split(/\.\s/)[0].replace(/\.$/, ""), options)}. (${Math.round(10 * job.seconds) / 10} s)`;
  if (job.state === "stopped") return `${kind}: stopped.`;
  return onPage(`${kind}: ${job.error?.sentence || "failed."}${job.error?.hint ? ` ${job.error.hint}` : ""}`, options);
}
