// Requests to the server. Every write has the header of the studio; every refusal becomes a Problem with the server's message.

export class Problem extends Error {
  constructor(status, { sentence, hint = null, where = null }, body = null) {
    super(sentence);
    Object.assign(this, { status, hint, where, body });
  }
}

async function answer(response) {
  const text = await response.text();
  let body = null;
  try {
    body = text ? JSON.parse(text) : null;
  } catch {
    body = null;
  }
  if (response.ok) return body;
  const error = body?.error || { sentence: `The server answered ${response.status}.`, hint: "Open the address printed by dynid studio again." };
  throw new Problem(response.status, error, body);
}

async function send(method, path, body, given = {}, signal = undefined) {
  const request = { method, headers: { "X-Dynid": "studio", ...given }, cache: "no-store", signal };
  if (body !== undefined) request.body = body;
  let response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new Problem(0, { sentence: "The studio's server does not answer.", hint: "Is `dynid studio` still running?" });
  }
  return answer(response);
}

const json = (value) => [JSON.stringify(value), { "Content-Type": "application/json" }];

export const get = (path) => send("GET", path);
export const put = (path, value) => send("PUT", path, ...json(value));
export const post = (path, value = {}, signal = undefined) => send("POST", path, ...json(value), signal);
export const remove = (path) => send("DELETE", path);
export const task = (name, value = {}, signal = undefined) => post(`/api/tasks/${name}`, value, signal);
export const job = (kind, value = {}) => post(`/api/jobs/${kind}`, value);
export const stop = () => remove("/api/jobs/current");
export const stopReading = () => remove("/api/tasks/current");
export const resultPath = (id, name) => `/api/results/${encodeURIComponent(id)}/${name.split("/").map(encodeURIComponent).join("/")}`;
export const filePath = (name) => `/api/files/${name.split("/").map(encodeURIComponent).join("/")}`;

// Send a file and report the sent share.
export function upload(file, name, role, tell) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/files?${new URLSearchParams({ name, role })}`);
    request.setRequestHeader("X-Dynid", "studio");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => tell(event.lengthComputable ? event.loaded / event.total : null));
    request.addEventListener("load", () => {
      answer(new Response(request.responseText, { status: request.status })).then(resolve, reject);
    });
    request.addEventListener("error", () => reject(new Problem(0, {
      sentence: `${name} could not be sent.`, hint: "Is `dynid studio` still running, and is the file still there?" })));
    request.send(file);
  });
}

export async function mesh(id) {
  const response = await fetch(`/api/meshes/${encodeURIComponent(id)}`);
  if (!response.ok) throw new Problem(response.status, { sentence: `The mesh ${id} could not be loaded.` });
  return response.arrayBuffer();
}
