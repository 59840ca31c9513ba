// The operator's view of the service. An event stream names the resources that changed, and the page requests those again; without a stream it
// requests all of them every few seconds. Only while the page is visible.
import { showActivity } from "/web/activity.js";
import { forgetTimelines, showTimelines } from "/web/timelines.js";
import { ask, authorization, bytes, element, replace, tokenForm } from "/web/common.js";

const PERIOD_MS = 2000;
const ROUND_MS = 500;
const STATES = { healthy: "good", ready: "good", suspect: "warn", hot: "warn", overheated: "bad", resetting: "warn", lost: "bad", starting: "warn", closing: "warn", hibernated: "warn", quarantined: "bad", faulted: "bad" };

// The device's sensor readings; a device without sensors has none.
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

function domainOf(session) {
  const domain = session.fault_domain;
  return domain ? element("td", null, element("code", null, domain.name), domain.shared_server ? " (MPS)" : "") : element("td", null, "–");
}

function sessionRow(session) {
  const state = element("td", null, stateOf(session.state));
  if (session.fault) {
    state.append(element("div", { className: "quiet" }, session.fault.detail));
  }
  return element("tr", null,
    element("td", null, element("code", null, session.id)), element("td", null, session.device), state, domainOf(session),
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
  const rows = [...(version.node ? [["node", version.node]] : []), ["version", version.version], ["API", `${version.api.least} to ${version.api.most}`], ["compiler", version.compiler || "none"],
    ["backends", version.backends.map((b) => (b.driver ? `${b.name} (driver ${b.driver})` : b.name)).join(", ")]];
  return rows.flatMap(([term, text]) => [element("dt", { className: "quiet" }, term), element("dd", null, text)]);
}

// ---- requests, by the names of the events that announce changes; activity has no event ----

async function readiness() {
  const answer = await fetch("/readyz", { cache: "no-store" });
  replace("state", element("span", { className: answer.ok ? "good" : "bad" }, answer.ok ? "ready" : "not ready"));
}

async function showService() {
  await readiness();
  const version = await ask("/version");
  const title = version.node ? `gpurest · ${version.node}` : "gpurest";
  document.title = title;
  replace("title", title);
  replace("service", ...serviceList(version));
}

async function showDevices() {
  replace("devices", ...(await ask("/v1/devices")).items.map(deviceCard));
}

async function showSessions() {
  const [sessions, limits] = await Promise.all(["/v1/sessions?limit=1000", "/v1/limits"].map(ask));
  replace("sessions", ...(sessions.items.length ? sessions.items.map(sessionRow) : [empty(10, "none")]));
  replace("limits", ...Object.entries(limits.limits).filter(([, limit]) => limit.used !== null).map(limitRow));
}

const SHOW = { service: showService, devices: showDevices, sessions: showSessions, activity: showActivity, timelines: showTimelines };

async function show(parts) {
  try {
    await Promise.all(parts.map((part) => SHOW[part]()));
    replace("trouble");
  } catch (trouble) {
    replace("trouble", trouble.message);
  }
}

// ---- schedule ----

const stale = new Set();
let showing = false;

// One round at a time, and at most one per ROUND_MS, because a busy session changes constantly.
async function showStale(part) {
  stale.add(part);
  if (showing) {
    return;
  }
  showing = true;
  while (stale.size && !document.hidden) {
    const parts = [...stale];
    stale.clear();
    await show(parts);
    await pause(ROUND_MS);
  }
  showing = false;
}

function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

function mark(way) {
  document.body.dataset.updates = way;
}

// Follows /v1/changes until it ends. True if the stream existed.
async function follow(stop) {
  const answer = await fetch("/v1/changes", { headers: { Accept: "text/event-stream", ...authorization() }, cache: "no-store", signal: stop });
  if (!answer.ok || !answer.body) {
    return false;
  }
  const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  mark("stream");
  for (;;) {
    const { value, done } = await lines.read();
    if (done) {
      return true;
    }
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const [, name] of blocks.map((block) => block.match(/^event: (\w+)$/m)).filter(Boolean)) {
      if (name in SHOW) {
        showStale(name);
      }
    }
  }
}

// A hidden page does not follow changes.
async function followWhileVisible() {
  const stop = new AbortController();
  const onHide = () => document.hidden && stop.abort();
  document.addEventListener("visibilitychange", onHide);
  try {
    return await follow(stop.signal);
  } catch (trouble) {
    return false;
  } finally {
    document.removeEventListener("visibilitychange", onHide);
  }
}

// Sensors and metrics have no events, so the page polls them. Without a stream it polls everything at the same rate.
async function sense() {
  for (;;) {
    await pause(PERIOD_MS);
    if (!document.hidden && document.body.dataset.updates === "stream") {
      showStale("devices");
      showStale("activity");
      showStale("timelines");
    }
  }
}

async function run() {
  for (;;) {
    if (!document.hidden) {
      const followed = await followWhileVisible();
      mark("poll");
      if (!followed) {
        await show(Object.keys(SHOW));
      }
    }
    await pause(PERIOD_MS);
  }
}

tokenForm(() => {
  forgetTimelines();
  show(Object.keys(SHOW));
});
sense();
run();
