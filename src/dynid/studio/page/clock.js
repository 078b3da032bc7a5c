// Clock: the time cursor that the scene and all plots share.

import { emit } from "./store.js";

export const clock = {
  time: 0, start: 0, stop: 0, speed: 1, playing: false, last: 0,

  view: null, // [start, stop] of all plots over time; null for the whole period

  look(view) {
    this.view = view;
    emit("time-view", view);
  },

  // Zoom all plots over time by a factor about the cursor, or shift them by a share of the visible period.
  zoom(factor) {
    const [low, high] = this.view || [this.start, this.stop];
    const middle = this.time >= low && this.time <= high ? this.time : (low + high) / 2;
    this.within(middle - (middle - low) * factor, middle + (high - middle) * factor);
  },

  pan(share) {
    const [low, high] = this.view || [this.start, this.stop], step = share * (high - low);
    const kept = Math.max(Math.min(step, this.stop - high), this.start - low);
    this.within(low + kept, high + kept);
  },

  within(low, high) {
    const [start, stop] = [Math.max(low, this.start), Math.min(high, this.stop)];
    this.look(start <= this.start && stop >= this.stop ? null : [start, stop]);
  },

  // Set the period of a newly opened log or motion; the cursor stays if it is inside.
  span(start, stop) {
    const other = start !== this.start || stop !== this.stop;
    this.start = start;
    this.stop = stop;
    if (other) this.look(null);
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
