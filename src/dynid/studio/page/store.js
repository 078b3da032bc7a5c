// Store: this page's copy of the run file on the server, the robot, the job, and listeners to changes.

import { Problem, get, put, task } from "./api.js";

const listeners = new Map();

export const store = { state: null, catalogue: null, robot: null, robotProblem: null, job: null, connected: true, uploads: 0, logIsUsable: false };

export function on(name, listener) {
  if (!listeners.has(name)) listeners.set(name, []);
  listeners.get(name).push(listener);
}

export function emit(name, value) {
  for (const listener of listeners.get(name) || []) listener(value);
}

function take(state) {
  if (store.state && state.revision < store.state.revision) return;
  state.results.sort((a, b) => (a.created === b.created ? (a.id < b.id ? 1 : -1) : a.created < b.created ? 1 : -1));
  store.state = state;
  if (state.job) takeJob(state.job);
  else if (running()) takeJob({ ...store.job, state: "failed", error: { sentence: "the server was restarted, so this job ended.", hint: "Start it again." } });
  emit("state", state);
  loadRobot();
}

export function takeJob(job) {
  const before = store.job;
  store.job = job;
  emit("job", job);
  const ended = job.state !== "running" && (before?.id !== job.id || before.state === "running");
  if (ended && before) emit("ended", job);
}

// Joints that are moved independently, in the order of all logs and results.
export const freeJoints = () => (store.robot?.joints || []).filter((joint) => joint.free !== null);

export const running = () => store.job?.state === "running";

export async function refresh() {
  take(await get("/api/state"));
}

// Changes are made one after the other; if another tab was faster, the change is applied to the newer state.
let queue = Promise.resolve();

export function change(edit) {
  const next = queue.then(async () => {
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const settings = structuredClone(store.state.settings);
      edit(settings);
      try {
        take(await put("/api/run", { revision: store.state.revision, settings }));
        return;
      } catch (problem) {
        if (!(problem instanceof Problem) || problem.status !== 409) throw problem;
        await refresh();
      }
    }
    throw new Problem(409, { sentence: "Another tab keeps changing the run; close it and try again." });
  });
  queue = next.catch(() => {});
  return next;
}

// The robot is requested again only if its file or a mesh has changed.
let robotKey = null;

async function loadRobot() {
  const { settings, files } = store.state;
  const key = JSON.stringify([settings.robot, files.filter((file) => ["robot", "mesh"].includes(file.role)), settings.gravity, settings.only, settings.lock, store.uploads]);
  if (key === robotKey) return;
  robotKey = key;
  if (!settings.robot) {
    Object.assign(store, { robot: null, robotProblem: null });
    emit("robot", null);
    return;
  }
  emit("robot-loading", settings.robot);
  try {
    const robot = await task("robot");
    if (key !== robotKey) return;
    Object.assign(store, { robot, robotProblem: null });
  } catch (problem) {
    if (key !== robotKey) return;
    Object.assign(store, { robot: null, robotProblem: problem });
  }
  emit("robot", store.robot);
}

// Server-sent events. After a lost connection the page retries until the server answers, then reads the state again.
const RECONNECT_MS = 1000; // between two attempts: a restarted server is found within about a second

export function listen() {
  const events = new EventSource("/api/events");
  const connected = (now) => {
    if (now === store.connected) return;
    store.connected = now;
    emit("connected", now);
  };
  events.addEventListener("open", () => {
    if (!store.connected && store.robotProblem) robotKey = null; // it may have failed without a server
    connected(true);
    refresh().catch(() => {});
  });
  events.addEventListener("error", () => {
    connected(false);
    events.close();
    setTimeout(reconnect, RECONNECT_MS);
  });
  let asked = null;
  events.addEventListener("state", () => {
    clearTimeout(asked);
    asked = setTimeout(() => refresh().catch(() => {}), 60);
  });
  events.addEventListener("worker", (event) => emit("worker", JSON.parse(event.data)));
  events.addEventListener("job", (event) => takeJob(JSON.parse(event.data)));
  events.addEventListener("look", (event) => emit("look", JSON.parse(event.data)));
}

async function reconnect() {
  try {
    await get("/api/state");
  } catch (problem) {
    if (problem.status === 403) emit("locked-out", problem);
    else setTimeout(reconnect, RECONNECT_MS);
    return;
  }
  listen();
}
