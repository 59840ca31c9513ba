// The last minutes as lines, by session and, for an operator, by caller: load, memory, launches. Only what was seen while the page is open.
import { ask, bytes, element, replace } from "/web/common.js";

const SPAN_MS = 5 * 60 * 1000;
const WIDTH = 300, HEIGHT = 80;
const COLOURS = 8; // of style.css
const LINES_MAX = 8;
const template = document.createElement("template");
template.innerHTML = "<svg></svg>";
const SVG = template.content.firstChild.namespaceURI;
const percent = (value) => `${(100 * value).toFixed(0)} %`;
const CHARTS = [
  { title: "load: device time per second", of: (use) => use.device_time_us / 1e6, rate: true, say: percent },
  { title: "memory", of: (use) => use.memory_bytes, rate: false, say: bytes },
  { title: "launches per second", of: (use) => use.launches, rate: true, say: (value) => value.toFixed(1) },
];

const history = { sessions: new Map(), callers: new Map() };
let operator = true; // until the service says no

function take(lines, now, items) {
  for (const [name, use] of items) {
    lines.set(name, [...(lines.get(name) || []), { at: now, use }]);
  }
  for (const [name, samples] of lines) {
    const kept = samples.filter((sample) => now - sample.at <= SPAN_MS);
    kept.length ? lines.set(name, kept) : lines.delete(name);
  }
}

// [[time, value], …]; of a counter what it gained per second, and nothing where it began anew.
function values(samples, chart) {
  if (!chart.rate) {
    return samples.map(({ at, use }) => [at, chart.of(use)]);
  }
  return samples.slice(1).map(({ at, use }, i) => {
    const before = samples[i];
    return [at, Math.max(0, chart.of(use) - chart.of(before.use)) / Math.max(0.001, (at - before.at) / 1000)];
  });
}

function drawn(name, attributes) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function picture(lines, most, now, label) {
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, class: "timeline" });
  lines.forEach(({ points }, i) => {
    const place = points.map(([at, value]) => `${(WIDTH * (1 - (now - at) / SPAN_MS)).toFixed(1)},${(HEIGHT - 2 - (HEIGHT - 4) * (value / most)).toFixed(1)}`);
    svg.append(drawn("polyline", { points: place.join(" "), class: `line line${i % COLOURS}` }));
  });
  return svg;
}

function panel(chart, of, now, what) {
  const all = [...of].map(([name, samples]) => ({ name, points: values(samples, chart) })).filter(({ points }) => points.length);
  const last = ({ points }) => points[points.length - 1][1];
  const lines = all.sort((a, b) => last(b) - last(a)).slice(0, LINES_MAX);
  const most = Math.max(0, ...lines.flatMap(({ points }) => points.map(([, value]) => value)));
  return element("section", { className: "card" },
    element("h3", null, `${chart.title}, by ${what}`),
    picture(lines, most || 1, now, `${chart.title} by ${what}, at most ${chart.say(most)}`),
    element("div", { className: "quiet" }, `at most ${chart.say(most)}`),
    element("ul", { className: "legend" }, ...lines.map((line, i) => element("li", { className: `key line${i % COLOURS}` }, `${line.name}: ${chart.say(last(line))}`))));
}

async function asked() {
  if (operator) {
    try {
      return await ask("/v1/admin/sessions");
    } catch (refused) {
      if (!/^(401|403) /.test(refused.message)) {
        throw refused;
      }
      operator = false;
    }
  }
  return ask("/v1/sessions?limit=1000");
}

// With another token another one may be asking.
export function forgetTimelines() {
  operator = true;
  history.sessions.clear();
  history.callers.clear();
}

export async function showTimelines() {
  const told = await asked();
  const now = Date.now();
  take(history.sessions, now, told.items.map((one) => [one.caller ? `${one.id} of ${one.caller}` : one.id,
    { ...one.usage, launches: one.usage.launches_finished }]));
  take(history.callers, now, (told.callers || []).map((one) => [one.name, one]));
  const rows = [["session", history.sessions], ["caller", history.callers]].filter(([, lines]) => lines.size);
  replace("timelines", ...rows.flatMap(([what, lines]) => CHARTS.map((chart) => panel(chart, lines, now, what))));
}
