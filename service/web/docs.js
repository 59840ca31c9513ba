// The OpenAPI document as a page, with a form to send each operation.
import { ask, authorization, element, replace, tokenForm } from "/web/common.js";

const METHODS = ["get", "put", "post", "patch", "delete"];
const SHOWN_BYTES_MAX = 20000;

let contract = null;

function resolve(node) {
  while (node && node.$ref) {
    node = node.$ref.slice(2).split("/").reduce((at, part) => at[part], contract);
  }
  return node;
}

function schemaName(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : "";
}

function typeOf(schema) {
  const name = schemaName(schema);
  if (name) {
    return element("a", { href: `#schema-${name}` }, name);
  }
  const type = schema.type || (schema.enum ? "one of" : "any");
  return document.createTextNode([].concat(type).join(" or "));
}

// Bounds and other constraints as text.
function boundsOf(schema) {
  const words = [];
  if (schema.enum) words.push(schema.enum.map((v) => JSON.stringify(v)).join(", "));
  if (schema.minimum !== undefined || schema.maximum !== undefined) words.push(`${schema.minimum ?? "−∞"} to ${schema.maximum ?? "∞"}`);
  if (schema.maxLength !== undefined) words.push(`at most ${schema.maxLength} characters`);
  if (schema.maxItems !== undefined) words.push(`at most ${schema.maxItems} items`);
  if (schema.default !== undefined) words.push(`default ${JSON.stringify(schema.default)}`);
  return words.join("; ");
}

function parameterRow(parameter) {
  return element("tr", null, element("td", null, element("code", null, parameter.name)), element("td", null, parameter.in),
    element("td", null, parameter.description || "", element("div", { className: "quiet" }, boundsOf(resolve(parameter.schema)))));
}

function exampleOf(parameter) {
  const schema = resolve(parameter.schema);
  return parameter.required ? parameter.example ?? (schema.examples || [""])[0] : "";
}

function bodyOf(operation) {
  const content = resolve(operation.requestBody || {}).content || {};
  const json = content["application/json"];
  const example = json && json.examples ? Object.values(json.examples)[0].value : undefined;
  return { content, example: example === undefined ? "" : JSON.stringify(example, null, 2) };
}

function field(id, label, control) {
  return [element("label", { htmlFor: id }, label), Object.assign(control, { id })];
}

async function shown(answer) {
  const type = answer.headers.get("Content-Type") || "";
  if (type === "application/octet-stream" || type.includes("vnd.gpurest.batch")) {
    return `${(await answer.arrayBuffer()).byteLength} bytes`;
  }
  const text = await answer.text();
  try {
    return JSON.stringify(JSON.parse(text), null, 2).slice(0, SHOWN_BYTES_MAX);
  } catch {
    return text.slice(0, SHOWN_BYTES_MAX);
  }
}

async function send(method, path, values, form, output) {
  const query = new URLSearchParams();
  const headers = { ...authorization() };
  for (const [parameter, control] of values) {
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(control.value));
    else if (control.value && parameter.in === "query") query.set(parameter.name, control.value);
    else if (control.value) headers[parameter.name] = control.value;
  }
  const body = form.body && form.body.value ? form.body.value : undefined;
  if (body !== undefined) headers["Content-Type"] = form.type.value;
  const started = performance.now();
  const answer = await fetch(path + (query.size ? `?${query}` : ""), { method: method.toUpperCase(), headers, body });
  const lines = [`${answer.status} ${answer.statusText} · ${(performance.now() - started).toFixed(1)} ms`];
  answer.headers.forEach((value, name) => lines.push(`${name}: ${value}`));
  output.textContent = `${lines.join("\n")}\n\n${await shown(answer)}`;
}

function tryForm(method, path, operation, parameters) {
  const id = operation.operationId;
  const output = element("pre", { hidden: true, tabIndex: 0 });
  const values = parameters.map((p) => [p, element("input", { value: exampleOf(p), size: 40 })]);
  const { content, example } = bodyOf(operation);
  const controls = values.flatMap(([p, control]) => field(`${id}-${p.in}-${p.name}`, `${p.name} (${p.in})`, control));
  const form = {};
  if (Object.keys(content).length) {
    form.type = element("select", null, ...Object.keys(content).map((t) => element("option", null, t)));
    form.body = element("textarea", { value: example, spellcheck: false });
    controls.push(...field(`${id}-type`, "Content-Type", form.type), ...field(`${id}-body`, "Body", form.body));
  }
  const made = element("form", { id: `try-${id}` }, ...controls, element("p", null, element("button", { type: "submit" }, "Send")), output);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.hidden = false;
    output.textContent = "…";
    await send(method, path, values, form, output).catch((trouble) => { output.textContent = String(trouble); });
  });
  return made;
}

function answerRows(operation) {
  return Object.entries(operation.responses).map(([status, response]) => {
    const types = Object.entries(resolve(response).content || {}).filter(([, c]) => c.schema && schemaName(c.schema) !== "Problem");
    return element("tr", null, element("td", null, element("strong", { className: status < "400" ? "good" : "warn" }, status)),
      element("td", null, resolve(response).description), element("td", null, ...types.map(([, c]) => typeOf(c.schema))));
  });
}

function operationView(method, path, operation) {
  const parameters = (operation.parameters || []).map(resolve);
  const inside = element("div", null, element("p", null, operation.description || ""));
  if (operation["x-scopes"]) inside.append(element("p", { className: "quiet" }, `scopes: ${operation["x-scopes"].join(", ")}`));
  if (parameters.length) inside.append(element("table", null, element("tbody", null, ...parameters.map(parameterRow))));
  inside.append(element("table", null, element("tbody", null, ...answerRows(operation))));
  inside.append(element("details", null, element("summary", null, "Try it"), element("div", null, tryForm(method, path, operation, parameters))));
  return element("details", { id: operation.operationId },
    element("summary", null, element("span", { className: "verb" }, method.toUpperCase()), element("code", null, path), ` ${operation.summary}`), inside);
}

function schemaView([name, schema]) {
  const members = Object.entries(schema.properties || {}).map(([member, inner]) => {
    const one = inner.anyOf && inner.anyOf.length === 2 && inner.anyOf[1].type === "null" ? inner.anyOf[0] : inner;
    return element("tr", null, element("td", null, element("code", null, member), (schema.required || []).includes(member) ? " *" : ""),
      element("td", null, typeOf(one)), element("td", null, one.description || "", element("div", { className: "quiet" }, boundsOf(one))));
  });
  return element("details", { id: `schema-${name}` }, element("summary", null, element("code", null, name)),
    element("div", null, element("p", null, schema.description || ""), members.length ? element("table", null, element("tbody", null, ...members))
      : element("pre", null, JSON.stringify(schema, null, 2))));
}

function tagView(tag) {
  const found = Object.entries(contract.paths).flatMap(([path, item]) => METHODS.filter((m) => item[m] && item[m].tags.includes(tag.name))
    .map((m) => operationView(m, path, item[m])));
  return found.length ? [element("h2", null, tag.name), element("p", { className: "quiet" }, tag.description), ...found] : [];
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}

async function load() {
  try {
    contract = await ask("/openapi.json");
    replace("trouble");
    replace("about", ...contract.info.description.trim().split("\n\n").map((text) => element("p", null, text.replaceAll(/[`*]/g, ""))));
    replace("operations", ...contract.tags.flatMap(tagView));
    replace("schemas", ...Object.entries(contract.components.schemas).map(schemaView));
    openTarget();
  } catch (trouble) {
    replace("trouble", trouble.message);
  }
}

tokenForm(load);
window.addEventListener("hashchange", openTarget);
load();
