// Plot: curves by plotly in the page's colours, with the common time cursor, which a click moves.

import { clock } from "./clock.js";
import { el } from "./dom.js";
import { on } from "./store.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const LIGHT_COLORS = ["#1f5fbf", "#b3470e", "#2a7a35", "#8b2fa0", "#a8144a", "#0c7a80", "#6b5b10", "#555a66"];
const DARK_COLORS = ["#7ab0ff", "#ff9d5c", "#7fd18a", "#d79bf0", "#ff86ad", "#5fd0d6", "#dcc65a", "#b9c0cc"];

export const color = (i) => (DARK.matches ? DARK_COLORS : LIGHT_COLORS)[i % 8];
export const faint = (i, alpha = "33") => color(i) + alpha;

let loading = null;

// plotly.js has 5 MB, so it is loaded for the first plot.
export function plotly() {
  loading ||= new Promise((resolve, reject) => {
    const script = el("script", { src: "/plotly.js", load: () => resolve(window.Plotly), error: () => reject(new Error("plotly.js could not be loaded")) });
    document.head.append(script);
  });
  return loading;
}

function layoutOf(given) {
  const ink = DARK.matches ? "#d7dce4" : "#2b3340", lines = DARK.matches ? "#3a4352" : "#dde2e9";
  const axis = (own) => ({ gridcolor: lines, zerolinecolor: DARK.matches ? "#5b6678" : "#b9c1cc", linecolor: lines, automargin: true, ...own });
  const axes = Object.fromEntries(Object.entries(given).filter(([name]) => /^[xy]axis/.test(name)).map(([name, own]) => [name, axis(own)]));
  return {
    margin: { l: 56, r: 12, t: 8, b: 36 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: ink }, hovermode: "x", dragmode: "zoom",
    hoverlabel: { font: { size: 11 } }, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, xaxis: axis({}), yaxis: axis({}), ...given, ...axes,
  };
}

export class Plot {
  // timed: whether the x axis is the clock's time. clicked(x, point): called on a click, in addition to moving the cursor.
  constructor(label, { timed = true, height = 260, clicked = null } = {}) {
    this.timed = timed;
    this.clicked = clicked;
    this.area = el("div", { class: "area" });
    this.cursor = el("div", { class: "cursor", hidden: true });
    this.root = el("figure", { class: "plot", role: "group", "aria-label": label }, this.area, this.cursor);
    this.root.style.height = `${height}px`;
    this.shown = null;
    this.busy = Promise.resolve();
    new ResizeObserver(() => this.resize()).observe(this.root);
    DARK.addEventListener("change", () => this.again?.());
    if (timed) {
      on("time", () => this.follow());
      on("time-view", () => this.look());
    }
  }

  // make(): {data, layout}; called again when colours change.
  show(make, height = null) {
    if (height) this.root.style.height = `${height}px`;
    this.again = () => {
      this.busy = this.busy.then(() => this.render(make)).catch((problem) => { this.area.textContent = problem.message; });
      return this.busy;
    };
    return this.again();
  }

  async render(make) {
    const Plotly = await plotly();
    const { data, layout } = make();
    if (this.timed) layout.xaxis = { ...layout.xaxis, ...(clock.view ? { range: [...clock.view] } : { autorange: true }) };
    await Plotly.react(this.area, data, layoutOf(layout || {}), { displaylogo: false, displayModeBar: false, showTips: false });
    if (!this.shown) {
      this.area.on("plotly_click", ({ points }) => this.click(points[0]));
      this.area.on("plotly_afterplot", () => this.follow());
      if (this.timed) this.area.on("plotly_relayout", (now) => this.looked(now));
    }
    this.shown = Plotly;
    this.resize();
    this.follow();
  }

  // After zooming or shifting by hand, all plots over time follow.
  looked(now) {
    if (now["xaxis.autorange"]) clock.look(null);
    else if ("xaxis.range[0]" in now) clock.look([now["xaxis.range[0]"], now["xaxis.range[1]"]]);
  }

  look() {
    const axis = this.area._fullLayout?.xaxis;
    if (!this.shown || !axis) return;
    const { view } = clock;
    if (view ? axis.range[0] === view[0] && axis.range[1] === view[1] : axis.autorange) return;
    // The array form distinguishes this change from one by hand.
    this.shown.relayout(this.area, view ? { "xaxis.range": [...view], "xaxis.autorange": false } : { "xaxis.range": null, "xaxis.autorange": true });
  }

  click(point) {
    if (this.timed) clock.seek(point.x);
    if (this.clicked) this.clicked(point.x, point);
  }

  resize() {
    if (!this.shown || !this.root.clientWidth) return;
    const { clientWidth, clientHeight } = this.root;
    this.follow();
    if (this.width === clientWidth && this.high === clientHeight) return;
    this.width = clientWidth;
    this.high = clientHeight;
    this.shown.relayout(this.area, { width: clientWidth, height: clientHeight });
  }

  // The cursor is a separate element, so that moving it does not redraw the curves.
  follow() {
    const axis = this.area._fullLayout?.xaxis, size = this.area._fullLayout?._size;
    if (!this.timed || !axis || !size || !this.root.clientWidth) return;
    const [low, high] = axis.range;
    this.cursor.hidden = clock.time < low || clock.time > high || clock.stop <= clock.start;
    this.cursor.style.transform = `translateX(${axis._offset + axis.l2p(clock.time)}px)`;
    this.cursor.style.top = `${size.t}px`;
    this.cursor.style.height = `${size.h}px`;
  }
}

// Time intervals as shaded boxes over the whole height.
export function shaded(marks) {
  const hue = { gap: "#8a8f98", saturation: "#d6451c", slow: "#3b7ddd", dropped: "#8a8f98", stuck: "#b3470e" };
  return marks.map((mark) => ({
    type: "rect", xref: "x", yref: "paper", x0: mark.start, x1: mark.stop, y0: 0, y1: 1, layer: "below",
    fillcolor: hue[mark.kind] || "#8a8f98", opacity: mark.kind === "slow" ? 0.12 : 0.25, line: { width: 0 },
  }));
}
