// The studio's page: scene and steps for one run file on the server.

import { ActuatorStep } from "./actuator_step.js";
import { task } from "./api.js";
import { CompareStep } from "./compare_step.js";
import { LiveStep } from "./live_step.js";
import { LogStep } from "./log_step.js";
import { MotionStep } from "./motion_step.js";
import { progress } from "./progress.js";
import { results } from "./results.js";
import { RobotStep } from "./robot_step.js";
import { RunStep } from "./run_step.js";
import { Stage } from "./stage.js";
import { collapseScene } from "./narrow.js";
import { emit, listen, on, refresh, store } from "./store.js";
import { Tabs } from "./tabs.js";
import { UseStep } from "./use_step.js";

const STEPS = [["robot", "Robot"], ["motion", "Motion"], ["log", "Log"], ["run", "Run"], ["compare", "Compare"], ["use", "Use"], ["live", "Live"], ["actuators", "Actuators"]];

const stage = new Stage();
const open = (name, result = null) => {
  if (result) results.choose(result);
  tabs.open(name, true);
};
const steps = { robot: new RobotStep(stage), motion: new MotionStep(stage), log: new LogStep(stage), run: new RunStep(open),
  compare: new CompareStep(stage), use: new UseStep(), live: new LiveStep(stage), actuators: new ActuatorStep() };
const tabs = new Tabs(document.getElementById("tabs"), STEPS.map(([name, title]) => ({ name, title })), (name) => steps[name].opened());

// Tabs show which steps are complete.
function markDone() {
  const { settings, results: all } = store.state;
  const done = { robot: Boolean(settings.robot && store.robot), log: settings.logs.length > 0 && store.logIsUsable, motion: all.some((one) => one.kind === "motion" && !one.warnings.length), run: all.some((one) => one.kind === "run"),
    compare: all.some((one) => one.kind === "compare"), actuators: all.some((one) => one.kind === "actuators") };
  for (const [name] of STEPS) document.getElementById(`tab-${name}`).classList.toggle("done", Boolean(done[name]));
}

on("state", (state) => {
  document.getElementById("workspace").textContent = state.workspace || "";
  markDone();
});
on("ended", () => refresh().catch(() => {}));
for (const name of ["robot", "log"]) on(name, () => store.state && markDone());
on("connected", (now) => {
  document.getElementById("offline").hidden = now;
});
on("locked-out", () => {
  document.getElementById("offline").textContent = "The server was restarted and does not know this browser. Open the address that `dynid studio` printed; all files and results are kept in its folder.";
});

on("worker", ({ ready, sentence }) => {
  document.getElementById("worker").textContent = ready ? "" : `${sentence}…`;
});

progress(open);
collapseScene();
tabs.restore();

// Files dropped outside a drop area must not make the browser leave the page.
for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());

try {
  await refresh();
  document.documentElement.dataset.ready = "yes";
  listen();
  store.catalogue = await task("catalogue");
  emit("catalogue", store.catalogue);
} catch (problem) {
  document.getElementById("connection").textContent = problem.message;
}
