// The page of `lockstep dash`: asks the program what is new once a second, and shows it.
import { colourOf, drawLines, drawMemory } from "./dash_charts.js";
import { digits, percent } from "./format.js";

const kPause = 1000;  // ms between questions
const kMemoryTags = { parameters: "memory/parameters", gradients: "memory/gradients", optimizer: "memory/optimizer",
  transient: "memory/transient_peak", activations: "memory/activations_peak" };

const element = (id) => document.getElementById(id);
const runs = new Map();  // by folder, in the program's order
const hidden = new Set();

async function answerTo(question) {
  const answer = await (await fetch(question)).json();
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

// A run that goes on from a checkpoint does its later steps again.
function take(run, line) {
  if (!Number.isInteger(line.step)) return;
  const last = run.points.at(-1);
  if (last !== undefined && line.step < last.step) run.points = run.points.filter((point) => point.step < line.step);
  if (last !== undefined && line.step === last.step) Object.assign(last, line);
  else run.points.push(line);
  for (const [part, tag] of Object.entries(kMemoryTags)) {
    if (line[tag] !== undefined) run.memory[part] = line[tag];
  }
}

async function read(run) {
  for (let more = true; more;) {
    const piece = await answerTo(`api/metrics?run=${encodeURIComponent(run.folder)}&from=${run.next}`);
    if (piece.from < run.next) run.points = [];
    run.changed ||= piece.from < run.next || piece.lines.length > 0;
    run.next = piece.next;
    for (const line of piece.lines) take(run, line);
    more = piece.more;
  }
}

// The folders without what all of them begin with.
function nameRuns() {
  const paths = [...runs.keys()].map((folder) => folder.split("/").filter((part) => part !== ""));
  let common = 0;
  while (paths.length > 0 && paths.every((path) => path.length > common + 1 && path[common] === paths[0][common])) ++common;
  [...runs.values()].forEach((run, i) => {
    run.name = paths[i].slice(common).join("/");
    run.colour = colourOf(i);
  });
}

async function ask() {
  const answer = await answerTo("api/runs");
  const present = new Set(answer.runs.map((run) => run.run));
  let changed = false;
  for (const folder of runs.keys()) {
    if (!present.has(folder)) changed = runs.delete(folder);
  }
  for (const { run: folder, state, options, ranks } of answer.runs) {
    if (!runs.has(folder)) {
      runs.set(folder, { folder, next: 0, points: [], memory: {}, changed: true });
      changed = true;
    }
    const run = runs.get(folder);
    changed ||= run.state !== state || JSON.stringify(run.ranks) !== JSON.stringify(ranks);
    Object.assign(run, { state, options, ranks });
  }
  nameRuns();
  for (const run of runs.values()) {
    await read(run);
    changed ||= run.changed;
    run.changed = false;
  }
  return changed;
}

function cell(kind, text, label) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (label) made.dataset.of = label;
  return made;
}

function lastOf(run, tag) {
  return run.points.findLast((point) => Number.isFinite(point[tag]))?.[tag];
}

const shown = (value) => (value === undefined ? "–" : digits(value));

function rowOf(run) {
  const made = document.createElement("tr");
  made.dataset.run = run.name;
  const name = document.createElement("th");
  name.scope = "row";
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = !hidden.has(run.folder);
  box.style.accentColor = run.colour;
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(run.folder);
    else hidden.add(run.folder);
    draw();
  });
  label.append(box, run.name);
  name.append(label);
  const { model = "?", stage = "?", ranks = "?", steps = "?" } = run.options;
  const step = run.points.findLast((point) => point["train/loss"] !== undefined)?.step;
  const loss = run.points.findLast((point) => point["train/loss"] !== undefined)?.["train/loss"];
  made.append(name, cell("td", run.state, "state"), cell("td", `${model} ${stage} on ${ranks}`),
    cell("td", step === undefined ? "–" : `${step + 1} of ${steps}`, "step"),
    cell("td", loss === null ? "not finite" : shown(loss), "loss"), cell("td", shown(lastOf(run, "eval/loss"))),
    cell("td", shown(lastOf(run, "perf/tokens_per_s"))), cell("td", percent(lastOf(run, "perf/mfu"))),
    cell("td", shown(lastOf(run, "comm/exposed_ms"))));
  return made;
}

function rankLines(run) {
  const made = document.createElement("div");
  made.dataset.run = run.name;
  const list = document.createElement("ul");
  for (const { name, verdict, found, fix } of run.ranks) {
    const item = cell("li", `${name}: ${found}${fix ? ` — ${fix}` : ""}`);
    item.classList.toggle("bad", verdict !== "ok");
    list.append(item);
  }
  made.append(cell("h3", run.name), list);
  return made;
}

function draw() {
  const all = [...runs.values()];
  const chosen = all.filter((run) => !hidden.has(run.folder));
  const running = all.filter((run) => run.state === "running").length;
  element("answer").textContent = all.length === 0 ? "No run yet." :
    `${all.length} run${all.length === 1 ? "" : "s"}, ${running} running.`;
  element("answer").classList.remove("refused");
  const head = document.createElement("tr");
  for (const title of ["run", "", "model and stage", "step", "loss", "validation", "tokens/s", "MFU", "exposed ms"]) {
    head.append(cell("th", title));
  }
  const focused = document.activeElement?.closest("tr[data-run]")?.dataset.run;
  element("runs").replaceChildren(head, ...all.map(rowOf));
  if (focused) element("runs").querySelector(`tr[data-run="${CSS.escape(focused)}"] input`)?.focus();
  drawLines(element("loss"), chosen, { tag: "train/loss", dots: "eval/loss", log: false, label: "Loss against steps, by run" });
  drawLines(element("speed"), chosen, { tag: "perf/tokens_per_s", log: false, label: "Tokens per second against steps, by run" });
  drawLines(element("norm"), chosen, { tag: "train/grad_norm", log: true, label: "Gradient norm against steps, by run" });
  drawLines(element("exposed"), chosen, { tag: "comm/exposed_ms", log: false, label: "Exposed communication against steps, by run" });
  drawMemory(element("memory"), chosen);
  const unfinished = chosen.filter((run) => run.state !== "ended" && run.ranks.length > 0);
  element("ranks").parentElement.hidden = unfinished.length === 0;
  element("ranks").replaceChildren(...unfinished.map(rankLines));
}

function drawAnewWhenResized() {
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(draw, 150);
  });
}

async function next() {
  try {
    if (await ask() || document.body.dataset.turns === undefined) draw();
    document.body.dataset.turns = String(Number(document.body.dataset.turns ?? 0) + 1);
  } catch (error) {
    element("answer").textContent = `No answer from lockstep dash (${error.message}); what is shown is what it last said.`;
    element("answer").classList.add("refused");
  }
  setTimeout(next, kPause);
}

export function follow() {
  drawAnewWhenResized();
  next();
}
