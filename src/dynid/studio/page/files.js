// Files: selection and drag and drop; files are sent one after the other, with the sent share.

import { Problem, remove, filePath, upload } from "./api.js";
import { button, bytes, el } from "./dom.js";
import { refresh, store } from "./store.js";
import { attempt } from "./problems.js";

const ROBOT = /\.(urdf|xml|mjcf|toml|xacro)$/i, MESH = /\.(stl|obj|dae)$/i;

// Display name of a file of the workspace, and of a log of a run.
export const shortName = (name) => name.replace(/^files\//, "");
export const labelOf = (log) => (typeof log === "string" ? log : Array.isArray(log) ? log.join(", ") : log.name || [log.file].flat().join(", "));

// The most likely role of a file that was dropped without one.
export function roleOf(name, otherwise) {
  return MESH.test(name) ? "mesh" : otherwise === "limits" ? otherwise : ROBOT.test(name) ? "robot" : otherwise;
}

// Why a file is refused in a drop area; null if it is accepted.
function misplaced(name, role) {
  if (role === "robot" && !MESH.test(name) && !ROBOT.test(name)) return `${name} is not a robot file (URDF, MJCF, TOML). If it is a log, upload it in step 3.`;
  if (["log", "validation", "actuators"].includes(role) && (ROBOT.test(name) || MESH.test(name))) return `${name} is not a log. Upload robot files and meshes in step 1.`;
  return null;
}

// A drop area with a file input for keyboards and screen readers. sent(files): called when all files are uploaded.
export function dropPlace(panel, label, { accept = "", multiple = true, role, hint = "", sent }) {
  const told = el("p", { class: "hint", role: "status", text: hint });
  const input = el("input", { type: "file", accept, multiple, id: `upload-${role}`, "data-focus": `upload-${role}`,
    change: () => take([...input.files]).then(() => { input.value = ""; }) });
  const place = el("div", { class: "drop" }, el("label", { htmlFor: input.id, text: label }), input, told);

  async function take(files) {
    const done = [];
    await attempt(panel, async () => {
      for (const [i, file] of files.entries()) {
        const wrong = misplaced(file.name, role);
        if (wrong) throw new Problem(0, { sentence: wrong });
        const as = roleOf(file.name, role), name = (as === "mesh" && file.webkitRelativePath) || file.name;
        told.textContent = `Sending ${name} (${i + 1} of ${files.length})`;
        done.push((await upload(file, name, as, (share) => {
          if (share !== null) told.textContent = `Sending ${name}: ${Math.round(100 * share)} %`;
        })).file);
      }
      if (done.some((file) => ["robot", "mesh"].includes(file.role))) store.uploads += 1; // the robot is read again
      await refresh();
      told.textContent = done.length === 1 ? `${done[0].name} uploaded.` : `${done.length} files uploaded.`;
      const remark = await sent(done);
      if (remark) told.textContent = remark;
    });
    if (done.length < files.length) told.textContent = hint;
  }

  for (const name of ["dragover", "dragenter"]) {
    place.addEventListener(name, (event) => {
      event.preventDefault();
      place.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) place.addEventListener(name, () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  return place;
}

// The files of a role, each with a button that removes it.
export function fileList(panel, roles, gone) {
  const files = store.state.files.filter((file) => roles.includes(file.role));
  if (!files.length) return null;
  return el("ul", { class: "files" }, files.map((file) => el("li", {},
    el("a", { href: filePath(file.name), download: "", text: file.name }), ` ${bytes(file.bytes)} `,
    button("Remove", () => attempt(panel, async () => {
      await gone?.(file.name);
      await remove(filePath(file.name));
      await refresh();
    }), { class: "small", "aria-label": `Remove ${file.name}`, "data-focus": `remove ${file.name}` }))));
}
