// Poses and projections as 16 numbers in row-major order, as sent by the server.

export const identity = () => [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];

export function multiply(a, b) {
  const c = new Array(16);
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 4; j++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[4 * i + k] * b[4 * k + j];
      c[4 * i + j] = sum;
    }
  }
  return c;
}

export const translation = ([x, y, z]) => [1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, z, 0, 0, 0, 1];

export const scaling = ([x, y, z]) => [x, 0, 0, 0, 0, y, 0, 0, 0, 0, z, 0, 0, 0, 0, 1];

// Rotation by an angle about an axis through the origin (Rodrigues).
export function rotation(axis, angle) {
  const [x, y, z] = normalized(axis);
  const c = Math.cos(angle), s = Math.sin(angle), v = 1 - c;
  return [
    v * x * x + c, v * x * y - s * z, v * x * z + s * y, 0,
    v * x * y + s * z, v * y * y + c, v * y * z - s * x, 0,
    v * x * z - s * y, v * y * z + s * x, v * z * z + c, 0,
    0, 0, 0, 1];
}

// The nine numbers of a rotation matrix as a pose.
export const turned = (r) => [r[0], r[1], r[2], 0, r[3], r[4], r[5], 0, r[6], r[7], r[8], 0, 0, 0, 0, 1];

export const origin = (m) => [m[3], m[7], m[11]];

export const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const plus = (a, b, scale = 1) => [a[0] + scale * b[0], a[1] + scale * b[1], a[2] + scale * b[2]];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a) => Math.sqrt(dot(a, a));
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

export function normalized(a) {
  const n = length(a);
  return n > 0 ? a.map((v) => v / n) : [0, 0, 1];
}

// A pose at the origin `a` whose z axis points from `a` to `b`.
export function along(a, b) {
  const z = normalized(minus(b, a));
  const x = normalized(cross(Math.abs(z[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0], z));
  const y = cross(z, x);
  return [x[0], y[0], z[0], a[0], x[1], y[1], z[1], a[1], x[2], y[2], z[2], a[2], 0, 0, 0, 1];
}

export function perspective(fieldOfView, aspect, near, far) {
  const f = 1 / Math.tan(fieldOfView / 2);
  return [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), 2 * far * near / (near - far), 0, 0, -1, 0];
}

export function lookAt(eye, target) {
  const back = normalized(minus(eye, target));
  const right = normalized(cross([0, 0, 1], back));
  const up = cross(back, right);
  return [
    ...right, -dot(right, eye),
    ...up, -dot(up, eye),
    ...back, -dot(back, eye),
    0, 0, 0, 1];
}
