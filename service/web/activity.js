// Workers, queues, latencies and recent problems, from the service's metrics and log. Each needs a scope; without it the section says so, and
// the rest of the page works.
import { authorization, element, replace, token } from "/web/common.js";

const WINDOW_MS = 60000;
const LOG_LINES = 10;
const WATCHING = new Set(["/metrics", "/readyz", "/livez", "/v1/changes", "/v1/admin/logs", "/v1/devices", "/v1/sessions", "/v1/limits"]);

const LATENCIES = [
  ["requests", "http_server_request_duration_seconds", (labels) => !(labels.method === "GET" && WATCHING.has(labels.route))],
  ["launches, from acceptance to start", "gpurest_launch_queue_seconds", () => true],
  ["launches, on the device", "gpurest_launch_exec_seconds", () => true],
  ["compilations", "gpurest_compile_seconds", () => true],
  ["worker starts", "gpurest_worker_start_seconds", () => true],
];

// Parses the Prometheus text format to [{name, labels, value}].
export function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const parts = line.match(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/);
    if (parts) {
      const labels = Object.fromEntries([...(parts[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]));
      samples.push({ name: parts[1], labels, value: Number(parts[3]) });
    }
  }
  return samples;
}

// Upper bounds of buckets, ascending, each with the number of values at or below it.
function buckets(samples, family, wanted) {
  const sums = new Map();
  for (const { name, labels, value } of samples) {
    if (name === `${family}_bucket` && wanted(labels)) {
      const end = labels.le === "+Inf" ? Infinity : Number(labels.le);
      sums.set(end, (sums.get(end) || 0) + value);
    }
  }
  return [...sums].sort(([a], [b]) => a - b);
}

function less(now, before) {
  const old = new Map(before);
  return now.map(([end, count]) => [end, count - (old.get(end) || 0)]);
}

// The smallest bucket bound with at least this share of the values at or below it. The exact percentile is at most this bound.
function within(counts, share) {
  const all = counts.length ? counts[counts.length - 1][1] : 0;
  const found = counts.find(([, count]) => all && count >= all * share);
  return found ? found[0] : null;
}

function duration(seconds) {
  if (seconds === null) {
    return "–";
  }
  if (seconds === Infinity) {
    return "longer";
  }
  const [factor, unit] = seconds < 1e-3 ? [1e6, "µs"] : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `≤ ${Number((seconds * factor).toPrecision(3))} ${unit}`;
}

function number(text) {
  return element("td", { className: "number" }, String(text));
}

function latencyRow([words, family, wanted], now, before) {
  const all = buckets(now, family, wanted);
  const recent = less(all, buckets(before, family, wanted));
  const count = (list) => (list.length ? list[list.length - 1][1] : 0);
  return element("tr", null, element("td", null, words), number(count(recent)), ...[0.5, 0.95, 0.99].map((p) => number(duration(within(recent, p)))),
    number(count(all)));
}

function problemRows(now, before) {
  const old = new Map(before.filter(({ name }) => name === "gpurest_problems_total").map(({ labels, value }) => [labels.code, value]));
  return now.filter(({ name, value }) => name === "gpurest_problems_total" && value > 0)
    .sort((a, b) => b.value - (old.get(b.labels.code) || 0) - a.value + (old.get(a.labels.code) || 0) || b.value - a.value)
    .map(({ labels, value }) => element("tr", null, element("td", null, element("code", null, labels.code)),
      number(value - (old.get(labels.code) || 0)), number(value)));
}

function workerList(now) {
  const of = (name) => now.filter((sample) => sample.name === name);
  const workers = of("gpurest_workers").map(({ labels, value }) => `${value} ${labels.state} on ${labels.device}`);
  const replaced = of("gpurest_worker_restarts_total").filter(({ value }) => value).map(({ labels, value }) => `${value} ${labels.reason}`);
  const launches = of("gpurest_launches_total").map(({ labels, value }) => `${value} ${labels.outcome}`);
  const active = of("http_server_active_requests").reduce((sum, { value }) => sum + value, 0);
  const rows = [["workers", workers.join(", ")], ["replaced", replaced.join(", ") || "none"], ["launches", launches.join(", ")],
    ["requests in progress", `${active}, including that of this page`]];
  return rows.flatMap(([term, text]) => [element("dt", { className: "quiet" }, term), element("dd", null, text)]);
}

const refused = new Set(); // paths for which the token lacks the scope are requested once, because rejections count as problems

async function text(path) {
  const asked = `${token()} ${path}`;
  if (refused.has(asked)) {
    return null;
  }
  const answer = await fetch(path, { headers: authorization(), cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) {
    refused.add(asked);
  }
  return answer.ok ? answer.text() : null;
}

let snapshots = []; // [time, samples], the oldest at most WINDOW_MS old

function row(columns, words) {
  return element("tr", null, element("td", { colSpan: columns, className: "quiet" }, words));
}

async function showMetrics() {
  const answer = await text("/metrics");
  const now = answer === null ? [] : parse(answer);
  snapshots = [...snapshots.filter(([time]) => performance.now() - time < WINDOW_MS), [performance.now(), now]];
  const before = snapshots[0][1];
  const rows = problemRows(now, before);
  replace("activity", ...(answer === null ? [element("dd", { className: "quiet" }, "needs the scope metrics")] : workerList(now)));
  replace("latencies", ...(answer === null ? [row(6, "–")] : LATENCIES.map((latency) => latencyRow(latency, now, before))));
  replace("problems", ...(rows.length ? rows : [row(3, answer === null ? "–" : "none")]));
}

async function showLog() {
  const lines = await text(`/v1/admin/logs?level=warn&lines=${LOG_LINES}`);
  replace("log", lines === null ? "needs the scope admin" : lines.trim() || "none");
}

export async function showActivity() {
  await Promise.all([showMetrics(), showLog()]);
}
