// The service as its operator sees it: asked anew every two seconds while the page is visible.
import { ask, bytes, element, replace, tokenForm } from "/web/common.js";

const PERIOD_MS = 2000;
const STATES = { healthy: "good", ready: "good", suspect: "warn", starting: "warn", closing: "warn", quarantined: "bad", faulted: "bad" };

// What the device tells of itself; a device without sensors tells nothing.
function sensors(device) {
  const all = [[device.temperature_c, "°C"], [device.power_w, "W"], [device.utilization_pct, "% busy"]];
  return all.filter(([value]) => value !== null).map(([value, unit]) => `${value} ${unit}`).join(" · ");
}

function stateOf(word) {
  return element("span", { className: STATES[word] || "" }, word);
}

function share(used, max, label) {
  const gauge = element("meter", { min: 0, max, low: max * 0.75, high: max * 0.9, optimum: 0, value: used });
  gauge.setAttribute("aria-label", label);
  return gauge;
}

function deviceCard(device) {
  const total = device.memory.total_bytes;
  const used = total - device.memory.free_bytes;
  return element("section", { className: "card" },
    element("h3", null, `${device.id} `, stateOf(device.state)),
    element("div", null, device.name),
    element("div", { className: "quiet" }, `compute ${device.compute_capability} · ${device.multiprocessors} multiprocessors`),
    element("div", null, `${bytes(used)} of ${bytes(total)} in use`),
    share(used, total, `memory of ${device.id} in use`),
    element("div", { className: "quiet" }, sensors(device)));
}

function number(value) {
  return element("td", { className: "number" }, String(value));
}

function sessionRow(session) {
  const state = element("td", null, stateOf(session.state));
  if (session.fault) {
    state.append(element("div", { className: "quiet" }, session.fault.detail));
  }
  return element("tr", null,
    element("td", null, element("code", null, session.id)), element("td", null, session.device), state,
    number(bytes(session.usage.memory_bytes)), number(session.usage.buffers), number(session.usage.modules), number(session.usage.launches),
    number(`${(session.usage.device_time_us / 1e6).toFixed(3)} s`), element("td", null, new Date(session.expires_at).toLocaleTimeString()));
}

function limitRow([name, limit]) {
  const shown = name.endsWith("_bytes") ? bytes : (n) => (n === null ? "unlimited" : n);
  return element("tr", null, element("td", null, element("code", null, name)), number(shown(limit.used)), number(shown(limit.max)),
    element("td", null, limit.max === null ? "–" : share(limit.used, limit.max, `${name} in use`)));
}

function empty(columns, words) {
  return element("tr", null, element("td", { colSpan: columns, className: "quiet" }, words));
}

function serviceList(version) {
  const rows = [["version", version.version], ["API", `${version.api.least} to ${version.api.most}`], ["compiler", version.compiler || "none"],
    ["backends", version.backends.map((b) => (b.driver ? `${b.name} (driver ${b.driver})` : b.name)).join(", ")]];
  return rows.flatMap(([term, text]) => [element("dt", { className: "quiet" }, term), element("dd", null, text)]);
}

async function readiness() {
  const answer = await fetch("/readyz", { cache: "no-store" });
  replace("state", element("span", { className: answer.ok ? "good" : "bad" }, answer.ok ? "ready" : "not ready"));
}

async function refresh() {
  try {
    await readiness();
    const [devices, sessions, limits, version] = await Promise.all(["/v1/devices", "/v1/sessions?limit=1000", "/v1/limits", "/version"].map(ask));
    replace("devices", ...devices.items.map(deviceCard));
    replace("sessions", ...(sessions.items.length ? sessions.items.map(sessionRow) : [empty(9, "none")]));
    replace("limits", ...Object.entries(limits.limits).filter(([, limit]) => limit.used !== null).map(limitRow));
    replace("service", ...serviceList(version));
    replace("trouble");
  } catch (trouble) {
    replace("trouble", trouble.message);
  }
}

async function run() {
  for (;;) {
    if (!document.hidden) {
      await refresh();
    }
    await new Promise((done) => setTimeout(done, PERIOD_MS));
  }
}

tokenForm(refresh);
run();
