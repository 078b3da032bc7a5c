// Step 1, Robot: a file or a built-in robot, its joints to move by hand, and the links that are not physically consistent.

import { filePath, post, remove, task } from "./api.js";
import { button, el, facts, field, fill, keep, number, select, table } from "./dom.js";
import { dropPlace, fileList, shortName } from "./files.js";
import { attempt } from "./problems.js";
import { change, freeJoints, on, refresh, store } from "./store.js";
import { group, note, panel } from "./step.js";

const DEGREES = 180 / Math.PI;

export class RobotStep {
  constructor(stage) {
    this.stage = stage;
    this.root = panel("robot", "Robot", "Upload a URDF, an MJCF or a robot table (with meshes, if you want to see them), or select a built-in robot. "
      + "Move its joints and check that it looks and moves like yours.");
    this.choice = el("div", { class: "fields" });
    this.root.append(dropPlace(this.root, "Robot file and meshes", {
      role: "robot", accept: ".urdf,.xml,.mjcf,.toml,.stl,.obj,.dae", hint: "Drop files here: URDF, MJCF, TOML; STL, OBJ, DAE.",
      sent: async (files) => {
        const robot = files.find((file) => file.role === "robot");
        if (robot) await this.take(robot.name);
      } }), this.choice);
    this.example = group(this.root, "No files at hand?", el("p", { class: "hint", text: "Simulated logs of a Franka Panda: one to identify from and one to validate on. No file is needed; continue with step 4." }),
      button("Try an example", () => this.tryExample(), { id: "example" }));
    this.files = group(this.root, "Files");
    this.found = group(this.root, "Robot model");
    this.joints = group(this.root, "Joints");
    this.links = group(this.root, "Links");
    on("state", () => this.showChoice());
    on("catalogue", () => this.showChoice());
    on("robot", () => this.showRobot());
    on("robot-loading", () => {
      this.found.shownKey = null;
      fill(this.found, el("p", { class: "hint", role: "status", text: "Reading the robot…" }));
    });
    on("robot", () => this.showChoice());
    on("posed", (positions) => this.follow(positions));
  }

  // A file becomes the robot only if it can be read; otherwise it is deleted.
  async take(name) {
    try {
      await task("robot", { candidate: name });
    } catch (problem) {
      if (name !== shortName(store.state.settings.robot)) {
        await remove(filePath(name));
        await refresh();
      }
      throw Object.assign(problem, { message: `${name} is not used as the robot: ${problem.message}`, where: null });
    }
    await change((settings) => { settings.robot = name; });
  }

  async tryExample() {
    const tried = this.root.querySelector("#example");
    Object.assign(tried, { disabled: true, textContent: "Simulating the logs…" });
    await attempt(this.root, async () => {
      await post("/api/example");
      await refresh();
    });
    Object.assign(tried, { disabled: false, textContent: "Try an example" });
  }

  showChoice() {
    const { state, catalogue } = store;
    if (!state) return;
    const own = state.files.filter((file) => file.role === "robot").map((file) => file.name);
    const builtin = catalogue?.robots || [];
    const chosen = shortName(state.settings.robot);
    const others = chosen && !own.includes(chosen) && !builtin.includes(chosen) ? [chosen] : [];
    keep(this.choice, [own, builtin, chosen], () => field("Robot", select([["", "choose…"], ...[...others, ...own].map((name) => [name, name]),
      ...builtin.map((name) => [name, `${name} (built in)`])], chosen,
    (name) => attempt(this.root, () => change((settings) => { settings.robot = name; }))), { where: "robot" }));
    this.example.parentElement.hidden = Boolean(state.settings.robot || state.settings.logs.length);
    const list = fileList(this.root, ["robot", "mesh"], (name) => (name === shortName(store.state.settings.robot) ? change((settings) => { settings.robot = ""; }) : null));
    this.files.parentElement.hidden = !list;
    keep(this.files, state.files, () => list || []);
  }

  showRobot() {
    const { robot, robotProblem } = store;
    for (const part of [this.joints, this.links]) part.parentElement.hidden = !robot;
    this.found.parentElement.hidden = !robot && !robotProblem;
    this.sliders = [];
    if (robotProblem) {
      fill(this.found, note([robotProblem.message, robotProblem.hint].filter(Boolean), "bad"));
      return;
    }
    if (!robot) return;
    fill(this.found, this.summary(robot));
    fill(this.joints, this.jointSliders(robot));
    fill(this.links, this.linkTable(robot));
  }

  summary(robot) {
    const wrong = robot.bodies.filter((body) => body.problems.length);
    const missing = robot.visuals.filter((visual) => visual.problem);
    const mass = robot.bodies.reduce((sum, body) => sum + (body.mass || 0), 0);
    return [
      facts([["moving joints", robot.free_base ? `${robot.dof - 6} and a free base` : robot.dof], ["links", robot.bodies.length], ["mass of all links", `${number(mass, 3)} kg`],
        ["gravity, m/s²", robot.gravity.map((v) => number(v, 3)).join(", ")]]),
      wrong.length ? note([`${wrong.length === 1 ? "One link of this file is" : `${wrong.length} links of this file are`} not physically consistent: red in the scene, with the reason below. `
        + "Identification does not need these values; simulators do."], "bad") : note("Every link of this file is physically consistent.", "good"),
      robot.warnings.length ? note(robot.warnings) : null,
      missing.length ? note([...new Set(missing.map((visual) => visual.problem))].slice(0, 8)) : null];
  }

  jointSliders(robot) {
    const rows = freeJoints().map((joint) => {
      const straight = joint.kind === "prismatic", unit = straight ? "m" : "°", scale = straight ? 1 : DEGREES;
      const low = joint.lower ?? (straight ? -1 : -Math.PI), high = joint.upper ?? (straight ? 1 : Math.PI);
      const reading = el("output");
      const slider = el("input", { type: "range", min: low, max: high, step: (high - low) / 400, value: 0, id: `joint-${joint.free}`, "data-focus": `joint-${joint.free}`,
        input: () => this.moved(), focus: () => this.stage.arm?.choose(robot.joints.indexOf(joint)), blur: () => this.stage.arm?.choose(null) });
      const limits = joint.lower === null || joint.upper === null ? "no limits" : `${number(low * scale, 3)} to ${number(high * scale, 3)} ${unit}`;
      this.sliders.push({ joint, slider, tell: (value) => {
        const text = `${number(value * scale, 3)} ${unit}`;
        reading.textContent = `${text}  (${limits})`;
        slider.setAttribute("aria-valuetext", text);
      } });
      return el("div", { class: "joint" }, el("label", { htmlFor: slider.id, text: joint.name }), slider, reading);
    });
    queueMicrotask(() => this.stage.arm && this.follow(this.stage.arm.positions));
    return [el("div", { class: "joints" }, rows), button("Reset", () => {
      this.stage.setTrack(null);
      this.stage.pose(robot.home);
    }, { class: "small" })];
  }

  moved() {
    if (this.stage.track) this.stage.setTrack(null);
    const q = new Array(store.robot.dof).fill(0);
    for (const { joint, slider } of this.sliders) q[joint.free] = Number(slider.value);
    this.stage.pose(q);
  }

  // Sliders follow every motion of the robot.
  follow(positions) {
    if (!store.robot || this.root.hidden) return;
    for (const { joint, slider, tell } of this.sliders || []) {
      const value = positions[store.robot.joints.indexOf(joint)];
      if (document.activeElement !== slider) slider.value = value;
      tell(value);
    }
  }

  opened() {
    if (this.stage.arm) this.follow(this.stage.arm.positions);
  }

  linkTable(robot) {
    const made = table("Links with mass, centre of mass and problems", ["link", "mass, kg", "centre of mass, m", "problem"],
      robot.bodies.map((body) => [body.name, number(body.mass), body.centre ? body.centre.map((v) => number(v, 3)).join(", ") : "–", body.problems.join(" ") || "none"]));
    robot.bodies.forEach((body, i) => made.querySelectorAll("tbody tr")[i].classList.toggle("bad", body.problems.length > 0));
    return [made, el("p", { class: "hint", text: "Inertia ellipsoids (below the scene) show each link as the ellipsoid of equal mass and inertia: its position and size should match those of the link." })];
  }
}
