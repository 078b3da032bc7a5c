// Surfaces and lines of unit size: {points, normals, triangles} or {points, lines}.

// A surface of revolution about z from a profile of [radius, z, normal radius, normal z].
function revolved(profile, segments) {
  const points = [], normals = [], triangles = [];
  for (const [r, z, nr, nz] of profile) {
    for (let k = 0; k <= segments; k++) {
      const c = Math.cos(2 * Math.PI * k / segments), s = Math.sin(2 * Math.PI * k / segments);
      points.push(r * c, r * s, z);
      normals.push(nr * c, nr * s, nz);
    }
  }
  const ring = segments + 1;
  for (let i = 0; i + 1 < profile.length; i++) {
    for (let k = 0; k < segments; k++) {
      const a = i * ring + k, b = a + ring;
      triangles.push(a, a + 1, b, b, a + 1, b + 1);
    }
  }
  return { points, normals, triangles };
}

// The upper or lower quarter circle of a profile, radius r, centre at z.
function arc(r, z, from, to, steps = 8) {
  const profile = [];
  for (let i = 0; i <= steps; i++) {
    const angle = from + (to - from) * i / steps;
    profile.push([r * Math.cos(angle), z + r * Math.sin(angle), Math.cos(angle), Math.sin(angle)]);
  }
  return profile;
}

export const sphere = () => revolved(arc(1, 0, -Math.PI / 2, Math.PI / 2, 16), 24);

// Radius 1, from z = -1/2 to 1/2, closed.
export const cylinder = () => revolved([[0, -0.5, 0, -1], [1, -0.5, 0, -1], [1, -0.5, 1, 0], [1, 0.5, 1, 0], [1, 0.5, 0, 1], [0, 0.5, 0, 1]], 24);

// A capsule along z about the origin, built for its radius and length, because scaling would distort its caps.
export function capsule(radius, length) {
  return revolved([...arc(radius, -length / 2, -Math.PI / 2, 0), ...arc(radius, length / 2, 0, Math.PI / 2)], 20);
}

// An arrow along z from 0 to 1.
export const arrow = () => revolved([[0, 0, 0, -1], [0.03, 0, 0, -1], [0.03, 0, 1, 0], [0.03, 0.78, 1, 0], [0.09, 0.78, 0, -1], [0.09, 0.78, 0.9, 0.4], [0, 1, 0.9, 0.4]], 16);

// Edges of length 1 about the origin.
export function box() {
  const points = [], normals = [], triangles = [];
  for (let axis = 0; axis < 3; axis++) {
    for (const side of [-1, 1]) {
      const first = points.length / 3;
      for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
        const p = [0, 0, 0], n = [0, 0, 0];
        p[axis] = side / 2;
        p[(axis + 1) % 3] = side * a / 2;
        p[(axis + 2) % 3] = b / 2;
        n[axis] = side;
        points.push(...p);
        normals.push(...n);
      }
      triangles.push(first, first + 1, first + 2, first, first + 2, first + 3);
    }
  }
  return { points, normals, triangles };
}

// Edges of a cube of length 1 about the origin.
export function edges() {
  const points = [];
  for (let axis = 0; axis < 3; axis++) {
    for (const [a, b] of [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) {
      for (const end of [-0.5, 0.5]) points.push(...[0, 1, 2].map((i) => (i === axis ? end : i === (axis + 1) % 3 ? a : b)));
    }
  }
  return { points, lines: true };
}

// Squares on the floor, `count` lines each way and `step` apart.
export function grid(count, step) {
  const points = [], reach = (count - 1) / 2 * step;
  for (let i = 0; i < count; i++) {
    const at = -reach + i * step;
    points.push(-reach, at, 0, reach, at, 0, at, -reach, 0, at, reach, 0);
  }
  return { points, lines: true };
}

// Decode an uploaded mesh from its binary form: uint32 points, uint32 triangles, float32 xyz..., uint32 ijk...
export function uploaded(buffer) {
  const [points, triangles] = new Uint32Array(buffer, 0, 2);
  return {
    points: new Float32Array(buffer, 8, 3 * points),
    normals: null,
    triangles: new Uint32Array(buffer, 8 + 12 * points, 3 * triangles),
  };
}
