// On a narrow screen the scene is hidden until requested, so that each step begins at the top.

import { button } from "./dom.js";

export function collapseScene() {
  const stage = document.getElementById("stage");
  const toggle = button("", () => show(toggle.getAttribute("aria-expanded") !== "true"), { class: "small", id: "hide-scene", "aria-controls": "picture layers" });
  const show = (now) => {
    toggle.setAttribute("aria-expanded", String(now));
    toggle.textContent = now ? "Hide the robot" : "Show the robot";
    stage.classList.toggle("collapsed", !now);
  };
  stage.prepend(toggle);
  show(false);
}
