// The charts of memory and time, with Observable Plot.
import * as Plot from "@observablehq/plot";

import { count, duration, gb, gib } from "./format.js";

export const kParts = ["parameters", "gradients", "optimizer", "transient", "activations"];
// Okabe and Ito's palette: told apart without red and green.
export const kPartColours = ["#0072b2", "#e69f00", "#56b4e9", "#999999", "#009e73"];
export const kStageColours = { single: "#888888", ddp: "#d55e00", zero1: "#e69f00", zero2: "#009e73",
  zero3: "#0072b2", hybrid: "#cc79a7" };
const kOver = "#c4161c";
const kMeasure = 2 ** 30;

export function widthOf(place) {
  return Math.max(280, Math.min(place.clientWidth || 320, 1100));
}

function show(place, chart) {
  place.replaceChildren(chart);
}

// Pieces of each stage's bar from the left; what lies beyond the line is a piece of its own.
export function piecesOf(stages, limit) {
  const pieces = [];
  for (const { stage, bytes } of stages) {
    let begin = 0;
    for (const part of kParts) {
      const end = begin + bytes[part];
      const cut = Math.min(Math.max(limit, begin), end);
      if (cut > begin) pieces.push({ stage, part, begin, end: cut, over: false });
      if (end > cut) pieces.push({ stage, part, begin: cut, end, over: true });
      begin = end;
    }
  }
  return pieces;
}

export function drawBars(place, answer) {
  const limit = answer.device_memory;
  const pieces = piecesOf(answer.stages, limit);
  const in_gib = (bytes) => bytes / kMeasure;
  show(place, Plot.plot({
    width: widthOf(place),
    height: 60 + 34 * answer.stages.length,
    marginLeft: 60,
    marginRight: 70,
    x: { label: "GiB per rank", grid: true, domain: [0, in_gib(Math.max(limit, ...answer.stages.map((s) => s.bytes.total)))] },
    y: { label: null, domain: answer.stages.map((s) => s.stage) },
    color: { domain: kParts, range: kPartColours, legend: true },
    ariaLabel: "Memory of one rank by stage and category",
    marks: [
      Plot.barX(pieces.filter((p) => !p.over), { y: "stage", x1: (p) => in_gib(p.begin), x2: (p) => in_gib(p.end), fill: "part" }),
      Plot.barX(pieces.filter((p) => p.over), { y: "stage", x1: (p) => in_gib(p.begin), x2: (p) => in_gib(p.end), fill: kOver, fillOpacity: 0.75, ariaLabel: () => "over" }),
      Plot.ruleX([in_gib(limit)], { stroke: "currentColor", strokeDasharray: "4 3", strokeWidth: 2 }),
      Plot.text(answer.stages, { y: "stage", x: (s) => in_gib(s.bytes.total), text: (s) => gib(s.bytes.total), textAnchor: "start", dx: 4, fill: "currentColor" }),
    ],
  }));
}

function curvePoints(curves, value) {
  return curves.flatMap(({ stage, points }) => points
    .filter((point) => value(point) !== null && value(point) > 0)
    .map((point) => ({ stage, ranks: point.ranks, value: value(point) })));
}

function drawCurves(place, answer, { value, label, rule, text }) {
  const points = curvePoints(answer.curves, value);
  const stages = answer.curves.map((curve) => curve.stage);
  show(place, Plot.plot({
    width: Math.min(widthOf(place), 560),
    height: 300,
    marginLeft: 55,
    x: { type: "log", base: 2, label: "ranks", tickFormat: (v) => count(v), ticks: 6 },
    y: { type: "log", label, grid: true, tickFormat: text, ticks: 5 },
    color: { domain: stages, range: stages.map((stage) => kStageColours[stage]), legend: true },
    ariaLabel: `${label} against ranks, by stage`,
    marks: [
      ...(rule ? [Plot.ruleY([rule], { strokeDasharray: "4 3" })] : []),
      Plot.ruleX([answer.ranks], { stroke: "currentColor", strokeOpacity: 0.4 }),
      Plot.line(points, { x: "ranks", y: "value", stroke: "stage", strokeWidth: 2 }),
    ],
  }));
}

export function drawMemoryCurve(place, answer) {
  drawCurves(place, answer, { value: (p) => p.total / kMeasure, label: "GiB per rank",
    rule: answer.device_memory / kMeasure, text: (v) => `${+v.toPrecision(3)}` });
}

export function drawTimeCurve(place, answer) {
  drawCurves(place, answer, { value: (p) => p.step_ms, label: "time of a step", text: duration });
}

const kLaneNames = { compute: "computing", inside: "links inside", between: "links between" };

export function drawTimeline(place, answer) {
  const spans = answer.timeline;
  const lanes = ["compute", "inside", "between"].filter((lane) => spans.some((s) => s.lane === lane));
  const kinds = [...new Set(spans.map((span) => span.kind))];
  show(place, Plot.plot({
    width: widthOf(place),
    height: 70 + 46 * lanes.length,
    marginLeft: 95,
    x: { label: "ms", grid: true },
    y: { label: null, domain: lanes, tickFormat: (lane) => kLaneNames[lane] },
    color: { domain: kinds, scheme: "Observable10", legend: true },
    ariaLabel: "What computes and what travels in one step",
    marks: [
      Plot.barX(spans, { y: "lane", x1: "begin_ms", x2: "end_ms", fill: "kind", insetLeft: 0.4, insetRight: 0.4, inset: 3,
        title: (s) => `${s.kind} ${s.part}, ${duration(s.end_ms - s.begin_ms)}` }),
    ],
  }));
}

export function memoryNote(answer) {
  const known = answer.parts_known
    ? "Activations of one micro-batch, logits and loss are counted."
    : "Model state only; activations, and units and buckets in flight, come on top: choose a preset to count them.";
  return `The line is ${gb(answer.device_memory)} GB = ${gib(answer.device_memory)} GiB. ${known}`;
}
