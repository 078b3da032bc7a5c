(function () {
  "use strict";
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const mixed = (base, own) => {
    const out = Object.assign({}, base);
    for (const key of Object.keys(own)) {
      const both = out[key] && typeof out[key] === "object" && !Array.isArray(out[key]) && !Array.isArray(own[key]);
      out[key] = both ? mixed(out[key], own[key]) : own[key];
    }
    return out;
  };

  // Plots are drawn when they come near the window, and the others when the browser is idle.
  const waiting = new Set(all(".figure"));
  const visible = (element) => element.offsetParent !== null;
  function draw(element) {
    if (!waiting.delete(element)) return;
    const source = element.querySelector("script");
    const own = JSON.parse(source.textContent);
    source.remove();
    // Buttons over a plot appear with the mouse; on touch screens they would only cover it.
    const hover = window.matchMedia("(hover: hover)").matches;
    const drawn = Plotly.newPlot(element, own.data, mixed(LAYOUT, own.layout), Object.assign({}, CONFIG, { displayModeBar: hover && "hover" }));
    if (own.frames) drawn.then(() => Plotly.addFrames(element, own.frames));
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "600px" });
  all(".figure").forEach((element) => near.observe(element));
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 60));
  (function rest() {
    const next = Array.from(waiting).find(visible);
    if (next) idle(() => { draw(next); rest(); }, { timeout: 400 });
  })();
  window.addEventListener("beforeprint", () => Array.from(waiting).filter(visible).forEach(draw));
  const refit = (root) => all(".js-plotly-plot", root).filter(visible).forEach((plot) => Plotly.Plots.resize(plot));

  // Tabs: buttons above panes.
  all(".tabs").forEach((bar) => {
    const buttons = all("button", bar);
    const panes = buttons.map((button) => document.getElementById(button.getAttribute("aria-controls")));
    const show = (k) => {
      buttons.forEach((button, i) => button.setAttribute("aria-selected", String(i === k)));
      panes.forEach((pane, i) => { pane.hidden = i !== k; });
      all(".figure", panes[k]).forEach(draw);
      refit(panes[k]);
    };
    buttons.forEach((button, k) => {
      button.addEventListener("click", () => show(k));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const to = (k + step + buttons.length) % buttons.length;
        show(to);
        buttons[to].focus();
      });
    });
  });

  // Toggle a plot between normal and full width.
  all(".wide").forEach((button) => button.addEventListener("click", () => {
    const cell = button.closest(".cell");
    button.textContent = cell.classList.toggle("full") ? "narrower" : "wider";
    refit(cell);
  }));

  // A click on a header sorts a table by data-v of the cells, or by their text; cells without a number are last.
  all("table.sortable").forEach((table) => {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      const sort = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v === "" ? null : Number(cell.dataset.v);
        };
        const rows = Array.from(body.rows).map((row) => [key(row), row]);
        rows.sort(([a], [b]) => {
          if (a === null || b === null) return (a === null) - (b === null);
          const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
          return down ? -order : order;
        });
        rows.forEach(([, row]) => body.appendChild(row));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    });
  });

  // Every name of a parameter in tables, lists and findings shows its meaning and unit on hover.
  const hints = new Map(Object.entries(JSON.parse(document.getElementById("hints")?.dataset.hints || "{}")));
  const explain = (node) => {
    const parts = node.textContent.split(/([A-Za-z]+[0-9]+(?:_[0-9]+)?R?)/);
    if (!parts.some((part) => hints.has(part))) return;
    node.replaceWith(...parts.map((part) => (hints.has(part) ? Object.assign(document.createElement("abbr"), { textContent: part, title: hints.get(part) }) : part)));
  };
  if (hints.size) {
    all(".mono, .finding-group li").forEach((element) => {
      const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), nodes = [];
      while (walk.nextNode()) if (!walk.currentNode.parentElement.closest("abbr, code")) nodes.push(walk.currentNode);
      nodes.forEach(explain);
    });
  }

  all(".copy").forEach((button) => button.addEventListener("click", () => {
    const block = button.parentElement.querySelector("pre"), range = document.createRange();
    range.selectNodeContents(block);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    if (navigator.clipboard) navigator.clipboard.writeText(block.textContent).then(done, () => document.execCommand("copy") && done());
    else if (document.execCommand("copy")) done();
  }));

  // The table of contents marks the visible section.
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(() => {
    const now = all("main > section").filter((s) => s.getBoundingClientRect().top < window.innerHeight / 3).pop();
    links.forEach((link, name) => link.classList.toggle("here", Boolean(now) && name === now.id));
  }, { threshold: [0, 0.05, 0.25, 0.5, 0.75, 1] });
  all("main > section").forEach((section) => seen.observe(section));
})();
