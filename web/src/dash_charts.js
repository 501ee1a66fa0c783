// The charts of runs over each other, with Observable Plot.
import * as Plot from "@observablehq/plot";

import { kParts, kPartColours, widthOf } from "./charts.js";
import { digits, gib } from "./format.js";

// Okabe and Ito's palette, then again from the front.
const kRunColours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888"];
const kMostPoints = 500;

export function colourOf(number) {
  return kRunColours[number % kRunColours.length];
}

// At most kMostPoints of a series: each the mean of as many neighbours.
export function thinned(points) {
  const width = Math.ceil(points.length / kMostPoints);
  if (width <= 1) return points;
  const means = [];
  for (let begin = 0; begin < points.length; begin += width) {
    const group = points.slice(begin, begin + width);
    const mean = (of) => group.reduce((sum, point) => sum + of(point), 0) / group.length;
    means.push({ ...group[0], step: mean((p) => p.step), value: mean((p) => p.value) });
  }
  return means;
}

function seriesOf(run, name) {
  return run.points.filter((point) => Number.isFinite(point[name]))
    .map((point) => ({ run: run.name, step: point.step, value: point[name] }));
}

export function drawLines(place, runs, { tag, dots, log, label }) {
  const lines = runs.flatMap((run) => thinned(seriesOf(run, tag)));
  const marks = dots ? runs.flatMap((run) => seriesOf(run, dots)) : [];
  const positive = [...lines, ...marks].filter((point) => !log || point.value > 0);
  if (positive.length === 0) {
    place.replaceChildren("nothing yet");
    return;
  }
  place.replaceChildren(Plot.plot({
    width: widthOf(place),
    height: 260,
    marginLeft: 55,
    x: { label: "step", tickFormat: digits },
    y: { type: log ? "log" : "linear", grid: true, label: null, tickFormat: digits, ticks: 5, nice: true },
    color: { domain: runs.map((run) => run.name), range: runs.map((run) => run.colour) },
    ariaLabel: label,
    marks: [
      Plot.line(lines.filter((p) => !log || p.value > 0), { x: "step", y: "value", z: "run", stroke: "run", strokeWidth: 1.5 }),
      Plot.dot(marks.filter((p) => !log || p.value > 0), { x: "step", y: "value", stroke: "run", fill: "run", r: 3,
        title: (p) => `${p.run}: validation ${digits(p.value)} at step ${p.step}` }),
    ],
  }));
}

export function drawMemory(place, runs) {
  const bars = runs.flatMap((run) => kParts.filter((part) => run.memory[part] > 0)
    .map((part) => ({ run: run.name, part, bytes: run.memory[part] })));
  if (bars.length === 0) {
    place.replaceChildren("nothing yet");
    return;
  }
  const total = (name) => bars.filter((bar) => bar.run === name).reduce((sum, bar) => sum + bar.bytes, 0);
  place.replaceChildren(Plot.plot({
    width: widthOf(place),
    height: 60 + 34 * runs.length,
    marginLeft: 90,
    marginRight: 60,
    x: { label: "GiB", grid: true },
    y: { label: null, domain: runs.map((run) => run.name) },
    color: { domain: kParts, range: kPartColours, legend: true },
    ariaLabel: "Memory of rank 0 by run and category",
    marks: [
      Plot.barX(bars, { y: "run", x: (bar) => bar.bytes / 2 ** 30, fill: "part" }),
      Plot.text(runs.filter((run) => total(run.name) > 0), { y: "name", x: (run) => total(run.name) / 2 ** 30,
        text: (run) => gib(total(run.name)), textAnchor: "start", dx: 4, fill: "currentColor" }),
    ],
  }));
}
