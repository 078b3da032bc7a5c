// View: a small WebGL 2 view of solid shapes and lines with one light; it draws on request, at most once per frame.

import { cross, identity, lookAt, minus, multiply, normalized, perspective } from "./matrix.js";

const VERTEX = `#version 300 es
in vec3 point; in vec3 normal;
uniform mat4 pose; uniform mat4 picture; uniform mat3 facing;
out vec3 where; out vec3 away;
void main() {
  vec4 p = vec4(point, 1.0);
  where = (pose * p).xyz;
  away = facing * normal;
  gl_Position = picture * p;
}`;

// A mesh without normals gets those of its faces, from the screen-space derivatives of the position.
const FRAGMENT = `#version 300 es
precision highp float;
in vec3 where; in vec3 away;
uniform vec4 color; uniform vec3 eye; uniform int kind;
out vec4 shade;
void main() {
  if (kind == 0) { shade = vec4(color.rgb * color.a, color.a); return; }
  vec3 n = normalize(kind == 2 ? cross(dFdx(where), dFdy(where)) : away);
  vec3 to = normalize(eye - where);
  if (dot(n, to) < 0.0) n = -n;
  float lamp = max(dot(n, normalize(to + vec3(0.15, -0.1, 0.4))), 0.0);
  float shine = pow(lamp, 24.0) * 0.18;
  vec3 lit = color.rgb * (0.46 + 0.1 * n.z + 0.5 * lamp) + shine;
  shade = vec4(lit * color.a, color.a);
}`;

function program(gl) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.bindAttribLocation(made, 0, "point");
  gl.bindAttribLocation(made, 1, "normal");
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(made));
  return made;
}

// Normal matrix of a pose that rotates and scales points: the cofactors of its upper left 3 x 3 block.
function normalsOf(m) {
  const a = [m[0], m[1], m[2]], b = [m[4], m[5], m[6]], c = [m[8], m[9], m[10]];
  return [...cross(b, c), ...cross(c, a), ...cross(a, b)];
}

export class View {
  // things(): returns the list of {shape, pose, color, on} to draw, called for every frame.
  constructor(canvas, things) {
    this.canvas = canvas;
    this.things = things;
    // Antialiasing is too slow for software rendering.
    this.gl = canvas.getContext("webgl2", { antialias: true, failIfMajorPerformanceCaveat: true }) || canvas.getContext("webgl2", { antialias: false });
    this.turn = 0.9;
    this.tilt = 0.35;
    this.distance = 2.5;
    this.target = [0, 0, 0.4];
    this.size = 1;
    this.asked = false;
    this.sharpness = 1;
    this.rendered = () => {};
    if (!this.gl) return;
    this.program = program(this.gl);
    this.places = Object.fromEntries(["pose", "picture", "facing", "color", "eye", "kind"]
      .map((name) => [name, this.gl.getUniformLocation(this.program, name)]));
    new ResizeObserver(() => this.draw()).observe(canvas);
    this.follow();
  }

  get works() { return Boolean(this.gl); }

  // Upload a shape to the graphics card once; the returned handle is used in things.
  load({ points, normals, triangles, lines }) {
    const gl = this.gl;
    if (!gl) return null;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    const attribute = (place, numbers) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(numbers), gl.STATIC_DRAW);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
    };
    attribute(0, points);
    if (normals) attribute(1, normals);
    if (triangles) {
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, new Uint32Array(triangles), gl.STATIC_DRAW);
    }
    gl.bindVertexArray(null);
    return { array, count: triangles ? triangles.length : points.length / 3, kind: lines ? 0 : normals ? 1 : 2 };
  }

  get eye() {
    const { turn, tilt, distance, target } = this;
    return [target[0] + distance * Math.cos(tilt) * Math.cos(turn),
      target[1] + distance * Math.cos(tilt) * Math.sin(turn), target[2] + distance * Math.sin(tilt)];
  }

  // Show a whole sphere of this radius (m) about a point, also in a narrow picture.
  frame(radius, target) {
    const shape = Math.min(this.canvas.clientWidth / Math.max(this.canvas.clientHeight, 1), 1) || 1;
    Object.assign(this, { size: radius, distance: 3.1 * radius / shape, target, turn: 0.9, tilt: 0.3 });
    this.draw();
  }

  draw() {
    if (this.asked || !this.gl) return;
    this.asked = true;
    const inMotion = performance.now() - (this.drawn ?? 0) < 25;
    requestAnimationFrame((now) => {
      this.asked = false;
      this.pace(now, inMotion);
      this.render();
      this.drawn = performance.now();
    });
  }

  // Slow frames of a continuous animation are drawn with fewer pixels, the last one with all.
  pace(now, inMotion) {
    const step = now - (this.began ?? 0);
    this.began = now;
    if (inMotion && step > 36) this.sharpness = Math.max(this.sharpness * 0.85, 0.4);
    else if (inMotion && step < 20) this.sharpness = Math.min(this.sharpness * 1.05, 1);
    clearTimeout(this.rest);
    if (this.sharpness < 1) {
      this.rest = setTimeout(() => {
        this.sharpness = 1;
        this.draw();
      }, 300);
    }
  }

  fit() {
    const { canvas } = this, scale = Math.min(window.devicePixelRatio || 1, 2) * this.sharpness;
    const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  }

  render() {
    const { gl, canvas, places, eye } = this;
    this.fit();
    if (!canvas.width || !canvas.height) return;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.enable(gl.DEPTH_TEST);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.program);
    const near = Math.max(this.distance - 4 * this.size, 0.01 * this.size);
    const lens = perspective(0.7, canvas.width / canvas.height, near, this.distance + 12 * this.size);
    this.camera = multiply(lens, lookAt(eye, this.target));
    gl.uniform3fv(places.eye, eye);
    const seen = this.things().filter((thing) => thing.shape && thing.on !== false);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
    for (const thing of seen) if (thing.color[3] >= 1) this.drawOne(thing);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthMask(false);
    for (const thing of seen) if (thing.color[3] < 1) this.drawOne(thing);
    gl.depthMask(true);
    this.rendered();
  }

  // Place of a point in the picture, px from its upper left corner; null before the first frame or behind the eye.
  place([x, y, z]) {
    if (!this.camera) return null;
    const [u, v, , w] = [0, 4, 8, 12].map((row) => this.camera[row] * x + this.camera[row + 1] * y + this.camera[row + 2] * z + this.camera[row + 3]);
    return w > 0 ? [(0.5 + 0.5 * u / w) * this.canvas.clientWidth, (0.5 - 0.5 * v / w) * this.canvas.clientHeight] : null;
  }

  drawOne({ shape, pose = identity(), color }) {
    const { gl, places } = this;
    gl.uniformMatrix4fv(places.pose, true, pose);
    gl.uniformMatrix4fv(places.picture, true, multiply(this.camera, pose));
    gl.uniformMatrix3fv(places.facing, true, normalsOf(pose));
    gl.uniform4fv(places.color, color);
    gl.uniform1i(places.kind, shape.kind);
    gl.bindVertexArray(shape.array);
    if (shape.kind === 0) gl.drawArrays(gl.LINES, 0, shape.count);
    else gl.drawElements(gl.TRIANGLES, shape.count, gl.UNSIGNED_INT, 0);
    gl.bindVertexArray(null);
  }

  // Mouse, touch and keys rotate, shift and zoom the view.
  follow() {
    const { canvas } = this;
    const held = new Map();
    canvas.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, [event.clientX, event.clientY]);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return;
      const dx = event.clientX - before[0], dy = event.clientY - before[1];
      if (held.size === 2) {
        const other = [...held].find(([id]) => id !== event.pointerId)[1];
        const span = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
        this.zoom(span(before) / Math.max(span([event.clientX, event.clientY]), 1));
      } else if (event.shiftKey || event.buttons === 2) this.shift(dx, dy);
      else this.orbit(-dx * 0.008, dy * 0.008);
      held.set(event.pointerId, [event.clientX, event.clientY]);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.001));
    }, { passive: false });
    const keys = {
      ArrowLeft: () => this.orbit(-0.1, 0), ArrowRight: () => this.orbit(0.1, 0), ArrowUp: () => this.orbit(0, 0.1),
      ArrowDown: () => this.orbit(0, -0.1), "+": () => this.zoom(0.9), "=": () => this.zoom(0.9), "-": () => this.zoom(1.1),
    };
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }

  orbit(turn, tilt) {
    this.turn += turn;
    this.tilt = Math.min(Math.max(this.tilt + tilt, -1.5), 1.5);
    this.draw();
  }

  zoom(factor) {
    this.distance = Math.min(Math.max(this.distance * factor, 0.2 * this.size), 12 * this.size);
    this.draw();
  }

  shift(dx, dy) {
    const back = normalized(minus(this.eye, this.target)), step = this.distance / Math.max(this.canvas.clientHeight, 1);
    const right = normalized([-back[1], back[0], 0]);
    this.target = this.target.map((v, i) => v - right[i] * dx * step + (i === 2 ? dy * step : 0));
    this.draw();
  }
}
