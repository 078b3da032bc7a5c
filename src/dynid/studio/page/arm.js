// Arm: shapes of the robot from the server's data, and the pose of each body for given joint positions.

import { along, identity, length, minus, multiply, origin, plus, rotation, scaling, translation, turned } from "./matrix.js";
import * as shapes from "./shapes.js";

const LINK = [0.55, 0.62, 0.72, 1], JOINT = [0.2, 0.42, 0.75, 1], WRONG = [0.85, 0.12, 0.12, 1];
const AXES = [[0.85, 0.2, 0.2, 1], [0.15, 0.6, 0.25, 1], [0.2, 0.4, 0.9, 1]];
const ELLIPSOID = [0.95, 0.6, 0.1, 0.45], WRONG_ELLIPSOID = [0.9, 0.1, 0.1, 0.6], CHOSEN = [0.98, 0.75, 0.15, 1];

// Poses of all bodies (tree order) for one row of tree joint positions.
export function bodyPoses(robot, positions) {
  const poses = [];
  robot.joints.forEach((joint, j) => {
    const parent = joint.parent < 0 ? identity() : poses[joint.parent];
    const move = joint.kind === "prismatic" ? translation(joint.axis.map((v) => v * positions[j])) : rotation(joint.axis, positions[j]);
    poses.push(multiply(multiply(multiply(parent, joint.before), move), joint.after));
  });
  return poses;
}

// Tree joint positions of free coordinates, for robots without closed chains.
export function treePositions(robot, q) {
  return robot.joints.map((joint) => (joint.free === null ? 0 : q[joint.free] || 0));
}

// The root link of a free base follows five virtual bodies.
const ROOT = 5;

export class Arm {
  constructor(robot, view, meshOf) {
    this.robot = robot;
    this.view = view;
    this.parts = [];
    this.shown = { visuals: true, skeleton: false, ellipsoids: false, frames: false };
    this.arrows = [];
    this.ghost = null;
    this.chosen = null;
    const made = new Map();
    this.shape = (name, make) => {
      if (!made.has(name)) made.set(name, view.load(make()));
      return made.get(name);
    };
    this.size = robot.size > 0 ? robot.size : 1;
    this.wrong = new Set(robot.bodies.filter((body) => body.problems.length).map((body) => body.joint));
    this.addVisuals(meshOf);
    // Visuals of only a few links do not show a robot.
    const dressed = new Set(this.parts.map((part) => part.body));
    if (robot.bodies.filter((body) => dressed.has(body.joint)).length < robot.bodies.length / 2) this.shown.skeleton = true;
    this.addSkeleton();
    this.addEllipsoids();
    this.addFrames();
    this.move(treePositions(robot, robot.joints.map(() => 0)));
  }

  add(kind, body, shape, pose, color) {
    this.parts.push({ kind, body, shape, local: pose, pose, color });
  }

  addVisuals(meshOf) {
    for (const visual of this.robot.visuals) {
      if (visual.problem) continue;
      const [a, b, c] = visual.size;
      const unit = (name, size) => [this.shape(name, shapes[name]), multiply(visual.pose, scaling(size))];
      const color = [...visual.color.slice(0, 3), 1];
      if (visual.kind === "mesh") {
        const local = multiply(visual.pose, scaling([a ?? 1, b ?? 1, c ?? 1]));
        const part = { kind: "visuals", body: visual.body, shape: null, local, pose: local, color };
        this.parts.push(part);
        meshOf(visual.mesh).then((buffer) => {
          part.shape = this.shape(visual.mesh, () => shapes.uploaded(buffer));
          this.view.draw();
        }).catch(() => { part.kind = "missing"; });
        continue;
      }
      const [shape, pose] = visual.kind === "box" ? unit("box", [a, b, c]) : visual.kind === "sphere" ? unit("sphere", [a, a, a])
        : visual.kind === "ellipsoid" ? unit("sphere", [a, b, c]) : visual.kind === "cylinder" ? unit("cylinder", [a, a, b])
          : [this.shape(`capsule ${a} ${b}`, () => shapes.capsule(a, b)), visual.pose];
      this.add("visuals", visual.body, shape, pose, color);
    }
  }

  // Links as rods between joints and joints as drums, for a robot without visuals.
  addSkeleton() {
    const thick = 0.016 * this.size;
    const rest = this.robot.joints.map((joint) => joint.before);
    const rod = (body, from, to) => {
      const far = length(minus(to, from));
      if (far < 1e-6) return;
      const middle = translation([0, 0, far / 2]);
      this.add("skeleton", body, this.shape(`capsule ${far}`, () => shapes.capsule(thick, far)), multiply(along(from, to), middle), LINK);
    };
    this.robot.joints.forEach((joint, j) => {
      if (this.robot.free_base && j <= ROOT) return; // a free base has no joint to draw
      const axis = joint.axis;
      // The drum is fixed in the joint's own frame, before the constant pose that follows the motion.
      const drum = multiply(along([0, 0, 0], axis), scaling([1.9 * thick, 1.9 * thick, 5 * thick]));
      this.add("skeleton", j, this.shape("cylinder", shapes.cylinder), multiply(inverse(joint.after), drum), JOINT);
      rod(joint.parent, joint.parent < 0 ? [0, 0, 0] : origin(inverse(this.robot.joints[joint.parent].after)), origin(rest[j]));
    });
    for (const body of this.robot.bodies) {
      const children = this.robot.joints.some((joint) => joint.parent === body.joint);
      // The last link of a chain reaches to its farthest named frame, such as a tool or a foot.
      const ends = this.robot.frames.filter((frame) => frame.body === body.joint).map((frame) => origin(frame.pose)).sort((a, b) => length(b) - length(a));
      const end = ends.length && length(ends[0]) > 1e-6 ? ends[0] : body.centre;
      if (!children && body.joint >= 0 && end) rod(body.joint, origin(inverse(this.robot.joints[body.joint].after)), end);
    }
  }

  addEllipsoids() {
    for (const body of this.robot.bodies) {
      const at = body.centre ? multiply(translation(body.centre), turned(body.inertia_axes)) : identity();
      const known = body.centre && body.semi_axes.every((v) => Number.isFinite(v) && v > 0);
      const size = known ? body.semi_axes : [0.04 * this.size, 0.04 * this.size, 0.04 * this.size];
      const color = body.problems.length ? WRONG_ELLIPSOID : ELLIPSOID;
      if (known || body.problems.length) this.add("ellipsoids", body.joint, this.shape("sphere", shapes.sphere), multiply(at, scaling(size)), color);
    }
  }

  addFrames() {
    const long = 0.1 * this.size, thin = 0.006 * this.size;
    const triad = (body, pose) => AXES.forEach((color, axis) => {
      const size = [0, 1, 2].map((i) => (i === axis ? long : thin));
      const middle = [0, 1, 2].map((i) => (i === axis ? long / 2 : 0));
      this.add("frames", body, this.shape("box", shapes.box), multiply(multiply(pose, translation(middle)), scaling(size)), color);
    });
    triad(-1, identity());
    this.robot.joints.forEach((_, j) => (this.robot.free_base && j < ROOT ? null : triad(j, identity())));
  }

  move(positions) {
    this.positions = positions;
    this.poses = bodyPoses(this.robot, positions);
    for (const part of this.parts) part.pose = part.body < 0 ? part.local : multiply(this.poses[part.body], part.local);
    this.view.draw();
  }

  // Position of the root link of a free base; null for a fixed base.
  rootPlace() {
    return this.robot.free_base ? origin(this.poses[ROOT]) : null;
  }

  // The sphere {radius, centre} around the robot in its present posture.
  ball() {
    const points = [...(this.robot.free_base ? [] : [[0, 0, 0]]), ...(this.ghost?.poses || []).map(origin), ...this.poses.slice(this.robot.free_base ? ROOT : 0).map(origin), ...this.parts.filter((part) => part.kind === "visuals" || part.kind === "ellipsoids").map((part) => origin(part.pose))];
    const low = [0, 1, 2].map((i) => Math.min(...points.map((point) => point[i]))), high = [0, 1, 2].map((i) => Math.max(...points.map((point) => point[i])));
    return { radius: Math.max(length(minus(high, low)) / 2, 0.15 * this.size) + 0.1 * this.size, centre: low.map((v, i) => (v + high[i]) / 2) };
  }

  // Show a second posture, transparent; null shows none.
  haunt(positions, color) {
    this.ghost = positions && { poses: bodyPoses(this.robot, positions), color };
    this.view.draw();
  }

  choose(joint) {
    this.chosen = joint;
    this.view.draw();
  }

  // Arrows of forces, each {point, vector} in the base frame, m.
  point(arrows) {
    this.arrows = arrows.filter(({ vector }) => length(vector) > 1e-9).map(({ point, vector, color }) => {
      const far = length(vector);
      const pose = multiply(along(point, plus(point, vector)), scaling([far, far, far]));
      return { shape: this.shape("arrow", shapes.arrow), pose, color: color || WRONG };
    });
    this.view.draw();
  }

  colored(part) {
    if (part.kind === "ellipsoids" || part.kind === "frames") return part.color;
    if (part.body >= 0 && this.wrong.has(part.body)) return WRONG;
    if (part.body >= 0 && part.body === this.chosen) return CHOSEN;
    return part.color;
  }

  things() {
    const through = this.shown.ellipsoids || this.shown.frames;
    const seen = this.parts.filter((part) => this.shown[part.kind]);
    const drawn = seen.map((part) => {
      const color = this.colored(part);
      // Links are transparent if ellipsoids or frames inside them are shown.
      const clear = through && (part.kind === "visuals" || part.kind === "skeleton");
      return { shape: part.shape, pose: part.pose, color: clear ? [...color.slice(0, 3), 0.35] : color };
    });
    const ghost = this.ghost ? seen.filter((part) => part.body >= 0 && (part.kind === "visuals" || part.kind === "skeleton"))
      .map((part) => ({ shape: part.shape, pose: multiply(this.ghost.poses[part.body], part.local), color: this.ghost.color })) : [];
    return [...drawn, ...this.arrows, ...ghost];
  }
}

// The inverse of a rigid pose.
function inverse(m) {
  const r = [m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10]], p = origin(m);
  const t = [0, 3, 6].map((i) => -(r[i] * p[0] + r[i + 1] * p[1] + r[i + 2] * p[2]));
  return [r[0], r[1], r[2], t[0], r[3], r[4], r[5], t[1], r[6], r[7], r[8], t[2], 0, 0, 0, 1];
}
