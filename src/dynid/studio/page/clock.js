// Clock: the one time cursor that the scene and every plot share.

import { emit } from "./store.js";

export const clock = {
  time: 0, start: 0, stop: 0, speed: 1, playing: false, last: 0,

  // A new stretch of time, as a log or a motion is opened; the cursor stays where it was if it can.
  span(start, stop) {
    this.start = start;
    this.stop = stop;
    this.seek(this.time >= start && this.time <= stop ? this.time : start);
  },

  seek(time) {
    this.time = Math.min(Math.max(time, this.start), this.stop);
    emit("time", this.time);
  },

  play(now = !this.playing) {
    this.playing = now && this.stop > this.start;
    if (this.playing) {
      if (this.time >= this.stop) this.seek(this.start);
      this.last = performance.now();
      requestAnimationFrame((at) => this.tick(at));
    }
    emit("playing", this.playing);
  },

  tick(at) {
    if (!this.playing) return;
    const next = this.time + Math.max(at - this.last, 0) / 1000 * this.speed;
    this.last = at;
    this.seek(next);
    if (next >= this.stop) {
      this.play(false);
      return;
    }
    requestAnimationFrame((later) => this.tick(later));
  },
};
