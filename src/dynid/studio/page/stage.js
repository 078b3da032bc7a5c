// Stage: the scene with its layers, the track that is played, and the playback bar.

import { mesh, task } from "./api.js";
import { Arm, treePositions } from "./arm.js";
import { clock } from "./clock.js";
import { button, checkbox, el, fill, select } from "./dom.js";
import { along, length, minus, multiply, plus, scaling, translation } from "./matrix.js";
import { box, capsule, cylinder, edges, grid, sphere } from "./shapes.js";
import { emit, on } from "./store.js";
import { View } from "./view.js";

const LAYERS = { visuals: "Visuals", skeleton: "Skeleton", ellipsoids: "Inertia ellipsoids", frames: "Frames" };
const FLOOR = [0.5, 0.55, 0.62, 0.4], ROOM = [0.1, 0.5, 0.9, 0.03], ROOM_FLOOR = [0.1, 0.5, 0.9, 0.14], ROOM_EDGE = [0.1, 0.5, 0.9, 0.6], OBSTACLE = [0.75, 0.3, 0.1, 0.6];
const LOWEST = [0.9, 0.45, 0.05, 1], LOWEST_POSTURE = [0.9, 0.5, 0.1, 0.28];
const ROOM_REACH = 1.5; // sizes of the robot, beyond which sides of its surroundings are not drawn

export class Stage {
  constructor() {
    this.arm = null;
    this.track = null;
    const canvas = document.getElementById("view");
    this.around = null;
    this.room = [];
    this.view = new View(canvas, () => [this.floor, ...(this.arm ? this.arm.things() : []), ...this.room]);
    this.view.rendered = () => this.placeLabel();
    this.label = document.getElementById("lowest");
    if (this.view.works) this.shapes = Object.fromEntries(Object.entries({ box, edges, cylinder, sphere }).map(([name, make]) => [name, this.view.load(make())]));
    this.floor = this.view.works ? { shape: this.view.load(grid(21, 1)), pose: scaling([0.25, 0.25, 1]), color: FLOOR } : {};
    if (!this.view.works) document.getElementById("empty").textContent = "This browser does not support 3-D (WebGL 2 is disabled); everything else works.";
    this.caption = document.getElementById("caption");
    this.buildTransport();
    on("robot", (robot) => this.setRobot(robot));
    on("robot-loading", () => this.view.works && this.sayEmpty("Reading the robot…"));
    on("time", () => this.followClock());
  }

  sayEmpty(text) {
    document.getElementById("empty").textContent = text;
  }

  setRobot(robot) {
    if (this.view.works) this.sayEmpty("Choose a robot in step 1; it appears here.");
    document.getElementById("empty").hidden = Boolean(robot) && this.view.works;
    this.setTrack(null);
    if (!robot || !this.view.works) {
      this.arm = null;
      this.view.draw();
      this.buildLayers();
      return;
    }
    const shown = this.arm?.robot.name === robot.name ? this.arm.shown : null;
    this.arm = new Arm(robot, this.view, mesh);
    if (shown) this.arm.shown = shown;
    this.placeFloor();
    this.pose(robot.home);
    this.frame();
    this.buildLayers();
  }

  buildLayers() {
    const root = document.getElementById("layers");
    const legend = root.querySelector("legend");
    const present = this.arm ? Object.entries(LAYERS).filter(([kind]) => this.arm.parts.some((part) => part.kind === kind)) : [];
    root.hidden = !present.length;
    fill(root, legend, present.map(([kind, text]) => checkbox(text, this.arm.shown[kind], (now) => {
      this.arm.shown[kind] = now;
      this.view.draw();
    })), button("Reset view", () => this.frame(), { class: "small" }));
  }

  frame() {
    const { radius, centre } = this.arm.ball();
    this.view.frame(radius, centre);
  }

  // Free coordinates set by hand; for a closed chain the server computes the dependent joints.
  async pose(q) {
    const { robot } = this.arm;
    if (!robot.closed) this.place(treePositions(robot, q));
    else {
      this.wanted = q;
      if (this.asking) return;
      this.asking = true;
      try {
        while (this.wanted) {
          const now = this.wanted;
          this.wanted = null;
          this.place((await task("pose", { q: now })).q_tree);
        }
      } catch (problem) {
        this.say(problem.message);
      } finally {
        this.asking = false;
      }
    }
  }

  place(positions) {
    if (!this.arm || positions.length !== this.arm.robot.joints.length) return;
    const before = this.arm.rootPlace();
    this.arm.move(positions);
    if (before) this.goAlong(before);
    emit("posed", positions);
  }

  // The view follows a moving base, and the floor in whole squares.
  goAlong(before) {
    const now = this.arm.rootPlace();
    this.view.target = this.view.target.map((v, i) => v + now[i] - before[i]);
    this.placeFloor(now);
  }

  // The grid is at the floor if its height is given, or else in the base plane.
  placeFloor([x, y] = [0, 0]) {
    const square = 0.25 * this.arm.size, near = (v) => square * Math.round(v / square);
    this.floor.pose = multiply(translation([near(x), near(y), this.around?.lower[2] ?? 0]), scaling([square, square, 1]));
  }

  // Floor, box, walls and obstacles {lower, upper, walls, obstacles, lowest}, m, null for an open side, and the lowest
  // posture of a motion; null shows none.
  surround(around) {
    this.around = around;
    this.room = [];
    this.label.hidden = true;
    if (!this.arm) return;
    this.placeFloor();
    const { lowest } = around || {};
    this.arm.haunt(lowest?.q_tree ?? null, LOWEST_POSTURE);
    if (around) this.room = [...this.sides(around), ...this.solids(around), ...(lowest ? this.plumb(lowest) : [])];
    this.label.textContent = lowest?.words || "";
    this.view.draw();
    emit("surrounded", this.room);
  }

  sides({ lower, upper, walls }) {
    const reach = ROOM_REACH * this.arm.size, thin = 1e-3 * this.arm.size;
    const low = lower.map((v) => Math.max(v ?? -reach, -2 * reach)), high = upper.map((v) => Math.min(v ?? reach, 2 * reach));
    const drawn = [], add = (pose, color) => drawn.push({ shape: this.shapes.box, pose, color }, { shape: this.shapes.edges, pose, color: ROOM_EDGE });
    for (const axis of [0, 1, 2]) {
      for (const [bounds, color] of [[lower, axis === 2 ? ROOM_FLOOR : ROOM], [upper, ROOM]]) {
        if (bounds[axis] === null) continue;
        add(multiply(translation(low.map((v, i) => (i === axis ? bounds[i] : (v + high[i]) / 2))), scaling(low.map((v, i) => (i === axis ? thin : high[i] - v)))), color);
      }
    }
    for (const { normal, offset } of walls) {
      const foot = normal.map((v) => v * offset);
      add(multiply(along(foot, plus(foot, normal)), scaling([2 * reach, 2 * reach, thin])), ROOM);
    }
    return drawn;
  }

  solids({ obstacles }) {
    return obstacles.map(({ a, b, radius }) => {
      const far = length(minus(b, a));
      if (far < 1e-9) return { shape: this.shapes.sphere, pose: multiply(translation(a), scaling([radius, radius, radius])), color: OBSTACLE };
      return { shape: this.arm.shape(`capsule ${radius} ${far}`, () => capsule(radius, far)), pose: multiply(along(a, b), translation([0, 0, far / 2])), color: OBSTACLE };
    });
  }

  // A ball at the lowest point and a line from there to the plane that its height refers to.
  plumb({ point, foot }) {
    const ball = 0.018 * this.arm.size, thin = 0.004 * this.arm.size, far = length(minus(foot, point));
    return [{ shape: this.shapes.sphere, pose: multiply(translation(point), scaling([ball, ball, ball])), color: LOWEST },
      ...(far < 1e-6 ? [] : [{ shape: this.shapes.cylinder, pose: multiply(multiply(along(point, foot), translation([0, 0, far / 2])), scaling([thin, thin, far])), color: LOWEST }])];
  }

  placeLabel() {
    const place = this.around?.lowest && this.view.place(this.around.lowest.point);
    this.label.hidden = !place;
    if (!place) return;
    const { clientWidth, clientHeight } = this.view.canvas, half = this.label.offsetWidth / 2;
    this.label.style.left = `${Math.min(Math.max(place[0], half), clientWidth - half)}px`;
    this.label.style.top = `${Math.min(Math.max(place[1], 0), clientHeight - 2.2 * this.label.offsetHeight)}px`;
  }

  say(text) {
    this.caption.textContent = text;
  }

  // Set the track to play: {label, times, rows of tree joint positions}; null stops and keeps the present posture.
  setTrack(track) {
    this.track = track?.times.length > 1 ? track : null;
    this.surround(this.track?.around ?? null);
    clock.play(false);
    if (this.track) clock.span(track.times[0], track.times.at(-1));
    else clock.span(0, 0);
    this.say(this.track ? this.track.label : "");
    this.transport.hidden = !this.track;
  }

  // Go to the start and play.
  playNow() {
    clock.seek(clock.start);
    clock.play(true);
  }

  followClock() {
    this.slider.max = clock.stop;
    this.slider.min = clock.start;
    this.slider.step = Math.max((clock.stop - clock.start) / 2000, 1e-6);
    this.slider.value = clock.time;
    this.slider.setAttribute("aria-valuetext", `${clock.time.toFixed(2)} seconds`);
    this.reading.textContent = `${clock.time.toFixed(2)} / ${clock.stop.toFixed(1)} s`;
    if (!this.track || !this.arm) return;
    this.place(between(this.track.times, this.track.rows, clock.time));
  }

  buildTransport() {
    this.transport = document.getElementById("transport");
    const play = button("Play", () => clock.play(), { class: "play" });
    this.slider = el("input", { type: "range", min: 0, max: 0, "aria-label": "Time cursor", input: () => {
      clock.play(false);
      clock.seek(Number(this.slider.value));
    } });
    this.reading = el("span", { class: "reading" });
    const speed = select([0.1, 0.25, 0.5, 1, 2, 5].map((v) => [v, `${v} ×`]), 1, (value) => { clock.speed = Number(value); }, { "aria-label": "Speed" });
    const zoom = (text, label, act) => button(text, act, { class: "small", "aria-label": label, title: label });
    fill(this.transport, play, this.slider, this.reading, speed, el("span", { class: "zoom", role: "group", "aria-label": "Time axis of the plots" },
      zoom("\u2212", "Zoom out in all plots over time", () => clock.zoom(2)), zoom("+", "Zoom in at the cursor, in all plots over time", () => clock.zoom(0.5)),
      zoom("\u25c2", "Earlier", () => clock.pan(-0.5)), zoom("\u25b8", "Later", () => clock.pan(0.5)), zoom("All", "Show the whole time", () => clock.look(null))));
    this.transport.hidden = true;
    on("playing", (now) => {
      play.textContent = now ? "Pause" : "Play";
    });
  }
}

// The track of a log or a motion; empty if a closed chain does not close.
export const trackOf = (label, { t_replay: times, q_tree: rows, surroundings: around }) => ({ label, times: times || [], rows: rows || [], around });

// Interpolate between two rows of a track by time.
export function between(times, rows, time) {
  let low = 0, high = times.length - 1;
  while (high - low > 1) {
    const half = (low + high) >> 1;
    if (times[half] <= time) low = half;
    else high = half;
  }
  const step = times[high] - times[low], share = step > 0 ? Math.min(Math.max((time - times[low]) / step, 0), 1) : 0;
  return rows[low].map((value, i) => value + share * (rows[high][i] - value));
}
