// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The page holds the numbers as JSON and draws them itself, as SVG.
#include "Report.h"

#include <algorithm>
#include <cmath>

namespace pgkp::rt {

using Json = nlohmann::ordered_json;

/// Keys that the timeline shows; the others would be thinner than a line.
static constexpr size_t kMaxTimelineKeys = 300;

static double rounded(double value) { return std::round(value * 1e4) / 1e4; }

static Json toJson(const RunReport &run) {
  Json out;
  out["policy"] = run.policy;
  out["metrics"] = run.metrics;
  const Series &series = *run.series;
  out["end"] = rounded(series.end);
  out["bin"] = series.binSeconds;
  for (double lost : series.lost)
    out["lost"].push_back(rounded(lost));
  out["calibration"] = Json::array();
  for (const Series::Bin &bin : series.calibration)
    if (bin.total > 0)
      out["calibration"].push_back(
          {rounded(bin.forecast / static_cast<double>(bin.total)),
           rounded(static_cast<double>(bin.used) /
                   static_cast<double>(bin.total)),
           bin.total});
  out["keys"] = Json::array();
  for (size_t i = 0; i < std::min(series.keys.size(), kMaxTimelineKeys); ++i) {
    const Series::Key &key = series.keys[i];
    out["keys"].push_back({key.name, rounded(key.jobStart), rounded(key.ready),
                           rounded(key.firstUse), key.speculative, key.uses});
  }
  out["left_out"] =
      series.keys.size() - std::min(series.keys.size(), kMaxTimelineKeys);
  return out;
}

/// JSON inside a script element: nothing in it may end the element.
static std::string escaped(const std::string &json) {
  std::string out;
  for (char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

static std::string escapedText(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

static constexpr std::string_view kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>pgkp-replay</title><style>
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#667;--line:#d5d9de;--s0:#1667b7;--s1:#c4501b;--s2:#2b8a4b;--s3:#8544b0;--s4:#a6761d;--s5:#c02d72;--s6:#3a8f9e;--s7:#6b7280}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--dim:#9aa3ad;--line:#343a41;--s0:#6fb1f2;--s1:#f39a6c;--s2:#73cf92;--s3:#c79bea;--s4:#dcb560;--s5:#f183b4;--s6:#79cbd9;--s7:#a8b0ba}}
body{margin:0 auto;max-width:70rem;padding:1.5rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2rem 0 .3rem}p{color:var(--dim);margin:.2rem 0 .6rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}th:first-child,td:first-child{text-align:left}
svg{width:100%;height:auto;display:block}svg text{fill:var(--dim);font-size:12px}.axis{stroke:var(--line);stroke-width:1}
select{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);padding:.2rem .4rem}.legend span{margin-right:1.2rem;white-space:nowrap}
</style></head><body>
)html";

static constexpr std::string_view kScript = R"html(<script>
"use strict";
const runs = JSON.parse(document.getElementById("data").textContent);
const color = i => `var(--s${i % 8})`;
const get = (o, path) => path.split("/").reduce((v, k) => v == null ? null : v[k], o);
const show = (v, d) => typeof v === "number" ? v.toFixed(d) : "-";
const el = (tag, text) => { const e = document.createElement(tag); if (text !== undefined) e.textContent = text; return e; };
const svgEl = (tag, attrs, text) => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const k in attrs) e.setAttribute(k, attrs[k]); if (text !== undefined) e.textContent = text; return e; };
const W = 1000, L = 60, R = 12, T = 10, B = 32;
function chart(id, height, xMax, yMax, xName, yName) {
  const svg = svgEl("svg", {viewBox: `0 0 ${W} ${height}`, role: "img"});
  const x = v => L + v / (xMax || 1) * (W - L - R), y = v => height - B - v / (yMax || 1) * (height - T - B);
  for (let i = 0; i <= 4; ++i) {
    svg.append(svgEl("line", {class: "axis", x1: L, x2: W - R, y1: y(yMax * i / 4), y2: y(yMax * i / 4)}),
      svgEl("text", {x: L - 6, y: y(yMax * i / 4) + 4, "text-anchor": "end"}, yName ? +(yMax * i / 4).toPrecision(3) : ""),
      svgEl("text", {x: x(xMax * i / 4), y: height - B + 16, "text-anchor": i == 4 ? "end" : "middle"}, +(xMax * i / 4).toPrecision(3) + (i == 4 ? " " + xName : "")));
  }
  if (yName) svg.append(svgEl("text", {x: L + 4, y: T + 10}, yName));
  document.getElementById(id).append(svg);
  return {svg, x, y};
}
function legend(id) {
  const p = el("p"); p.className = "legend";
  runs.forEach((r, i) => { const s = el("span", "\u25cf " + r.policy); s.style.color = color(i); p.append(s); });
  document.getElementById(id).append(p);
}
const columns = [["hit rate", "preparation/hit_rate", 3], ["lost s", "lost/total_s", 3], ["waited s", "lost/wait_s", 3],
  ["slow s", "lost/slow_s", 3], ["gap closed", "gap_closed", 3], ["jobs", "compile/jobs", 0], ["compile s", "compile/cpu_s", 1],
  ["wasted s", "compile/wasted_cpu_s", 1], ["completion s", "completion_s", 1], ["first-use recall", "prediction/first_use_recall", 3],
  ["calibration error", "prediction/ece", 3], ["next key", "prediction/next_accuracy", 3]];
const t = el("table"), head = el("tr"); head.append(el("th", "policy"));
columns.forEach(c => head.append(el("th", c[0]))); t.append(head);
runs.forEach((r, i) => { const row = el("tr"), name = el("td", "\u25cf " + r.policy); name.style.color = color(i); row.append(name);
  columns.forEach(c => row.append(el("td", show(get(r.metrics, c[1]), c[2])))); t.append(row); });
document.getElementById("policies").append(t);
const end = Math.max(...runs.map(r => r.end)), most = Math.max(1e-9, ...runs.map(r => r.lost[r.lost.length - 1]));
const lost = chart("lost", 280, end, most, "s", "lost s");
runs.forEach((r, i) => lost.svg.append(svgEl("polyline", {fill: "none", stroke: color(i), "stroke-width": 2,
  points: r.lost.map((v, n) => `${lost.x((n + 1) * r.bin).toFixed(1)},${lost.y(v).toFixed(1)}`).join(" ")})));
legend("lost");
const cal = chart("calibration", 340, 1, 1, "forecast of F(10 s)", "share that came true");
cal.svg.append(svgEl("line", {class: "axis", x1: cal.x(0), y1: cal.y(0), x2: cal.x(1), y2: cal.y(1), "stroke-dasharray": "4 4"}));
runs.forEach((r, i) => { if (!r.calibration.length) return;
  cal.svg.append(svgEl("polyline", {fill: "none", stroke: color(i), "stroke-width": 1.5, points: r.calibration.map(c => `${cal.x(c[0])},${cal.y(c[1])}`).join(" ")}));
  r.calibration.forEach(c => { const dot = svgEl("circle", {cx: cal.x(c[0]), cy: cal.y(c[1]), r: Math.min(9, 2 + Math.log10(c[2])), fill: color(i)});
    dot.append(svgEl("title", {}, `${r.policy}: ${c[2]} forecasts of ${c[0]}, ${c[1]} came true`)); cal.svg.append(dot); }); });
legend("calibration");
const cpuMax = Math.max(1e-9, ...runs.map(r => get(r.metrics, "compile/cpu_s") || 0));
const waste = svgEl("svg", {viewBox: `0 0 ${W} ${runs.length * 26 + 30}`});
runs.forEach((r, i) => { const all = get(r.metrics, "compile/cpu_s") || 0, bad = get(r.metrics, "compile/wasted_cpu_s") || 0;
  const w = v => v / cpuMax * (W - 330);
  waste.append(svgEl("text", {x: 130, y: i * 26 + 18, "text-anchor": "end"}, r.policy),
    svgEl("rect", {x: 140, y: i * 26 + 4, width: w(all - bad), height: 18, fill: color(i)}),
    svgEl("rect", {x: 140 + w(all - bad), y: i * 26 + 4, width: w(bad), height: 18, fill: color(i), opacity: .35}),
    svgEl("text", {x: 148 + w(all), y: i * 26 + 18}, `${show(all, 1)} s, ${show(bad, 1)} s wasted`)); });
document.getElementById("waste").append(waste);
const choice = document.getElementById("choice"), place = document.getElementById("timeline");
runs.forEach((r, i) => { const o = el("option", r.policy); o.value = i; choice.append(o); });
function timeline() {
  const r = runs[choice.value], h = Math.max(3, Math.min(14, 900 / Math.max(1, r.keys.length))), c = color(+choice.value);
  place.replaceChildren();
  const {svg, x} = chart("timeline", r.keys.length * h + T + B, r.end, 1, "s", "");
  r.keys.forEach((k, n) => { const y = T + n * h, g = svgEl("g", {}); 
    if (k[1] >= 0) g.append(svgEl("rect", {x: x(k[1]), y: y + h * .2, width: Math.max(1, x(k[2] >= 0 ? k[2] : r.end) - x(k[1])), height: h * .6, fill: c, opacity: k[4] ? .45 : .8}));
    if (k[2] >= 0) g.append(svgEl("rect", {x: x(k[2]) - 1, y, width: 2, height: h, fill: c}));
    if (k[3] >= 0) g.append(svgEl("circle", {cx: x(k[3]), cy: y + h / 2, r: Math.max(1.5, h * .3), fill: k[2] >= 0 && k[2] <= k[3] ? "var(--s2)" : "var(--s1)"}));
    g.append(svgEl("title", {}, `${k[0]}: job ${show(k[1], 2)} s, ready ${show(k[2], 2)} s, first use ${show(k[3], 2)} s, ${k[5]} uses`));
    svg.append(g); });
  if (r.left_out) place.append(el("p", `${r.left_out} more keys are not drawn.`));
}
choice.addEventListener("change", timeline);
choice.value = Math.max(0, runs.findIndex(r => r.policy === "predictive"));
timeline();
document.body.dataset.drawn = String(runs.length);
</script></body></html>
)html";

std::string toHtml(const std::vector<RunReport> &runs,
                   const std::string &title) {
  Json data = Json::array();
  for (const RunReport &run : runs)
    if (run.series)
      data.push_back(toJson(run));
  std::string out(kHead);
  out += fmt::format(
      R"html(<h1>{}</h1>
<h2>Policies side by side</h2><p>One run each, with the same seed: the same stage costs and the same requests under every policy.</p><div id="policies" class="wide"></div>
<h2>Lost time over time</h2><p>Waiting for variants, and kernel time above the best variant's.</p><div id="lost"></div>
<h2>Preparation against first use</h2><p>A row is a key: its job (pale: before any use), when it was ready, its first use (green: it was ready). <select id="choice" aria-label="policy"></select></p><div id="timeline"></div>
<h2>Calibration</h2><p>Forecasts of a use within 10 s, and how often they came true; a dot's size is their number.</p><div id="calibration"></div>
<h2>Compile time and waste</h2><p>Processor seconds; pale: of jobs whose variant was never used.</p><div id="waste"></div>
)html",
      escapedText(title));
  out += "<script type=\"application/json\" id=\"data\">";
  out += escaped(data.dump(-1, ' ', false, Json::error_handler_t::replace));
  out += "</script>\n";
  out += kScript;
  return out;
}

} // namespace pgkp::rt
