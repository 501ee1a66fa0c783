// The planner's page: controls ask the program, its answer is shown. No arithmetic of the plan here.
import { drawBars, drawMemoryCurve, drawTimeCurve, drawTimeline, memoryNote } from "./charts.js";
import { count, duration, gib, percent } from "./format.js";
import { drawRing, ringText, shownRanks } from "./ring.js";
import { addressOf, questionOf, readSliders, rememberInitialValues, restore } from "./state.js";

const element = (id) => document.getElementById(id);

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

function row(cells, kind) {
  const made = document.createElement("tr");
  for (const [text, name] of cells) {
    const cell = document.createElement(kind);
    cell.textContent = text;
    if (name) cell.className = name;
    made.append(cell);
  }
  return made;
}

function fillStages(answer) {
  const head = row([["stage"], ["parameters"], ["gradients"], ["optimizer"], ["in flight"], ["activations"],
    ["GiB per rank"], ["sent per step, GB"], ["step"], ["exposed"], ["efficiency"], ["smallest ranks"]], "th");
  const rows = answer.stages.map((stage) => {
    const { bytes } = stage;
    const made = row([[""], [gib(bytes.parameters)], [gib(bytes.gradients)], [gib(bytes.optimizer)], [gib(bytes.transient)],
      [gib(bytes.activations)], [gib(bytes.total), "total"], [(stage.sent / 1e9).toPrecision(3)], [duration(stage.step_ms)],
      [duration(stage.exposed_ms)], [percent(stage.efficiency)], [stage.smallest_ranks ?? "none"]], "td");
    const name = document.createElement("th");
    name.scope = "row";
    name.textContent = stage.stage;
    made.firstChild.replaceWith(name);
    made.dataset.stage = stage.stage;
    made.classList.toggle("over", !stage.fits);
    made.classList.toggle("smallest", stage.stage === answer.smallest_stage);
    return made;
  });
  element("stages").replaceChildren(head, ...rows);
}

function headline(answer) {
  const what = `${count(answer.parameters)} parameters on ${answer.ranks} rank${answer.ranks === 1 ? "" : "s"}`;
  if (answer.smallest_stage === null) return `${what}: no stage fits.`;
  return `${what}: the smallest stage that fits is ${answer.smallest_stage}` +
    (answer.advised && answer.advised !== answer.smallest_stage ? `; use ${answer.advised}.` : ".");
}

function showText(answer) {
  element("answer").textContent = headline(answer);
  element("answer").classList.remove("refused");
  element("params-text").textContent = count(answer.parameters);
  element("ranks-text").textContent = String(answer.ranks);
  element("memory-note").textContent = memoryNote(answer);
  fillStages(answer);
  element("reasons").replaceChildren(...answer.reasons.map((reason) => {
    const item = document.createElement("li");
    item.textContent = reason;
    return item;
  }));
}

function showDetails(answer) {
  drawMemoryCurve(element("memory-curve"), answer);
  drawTimeCurve(element("time-curve"), answer);
  const stage = element("stage").value;
  const of = answer.stages.find((one) => one.stage === stage);
  element("timeline-stage").textContent = stage;
  drawTimeline(element("timeline"), answer);
  element("timeline-note").textContent = of && of.step_ms !== null
    ? `${duration(of.step_ms)}: ${duration(of.compute_ms)} computing, ${duration(of.exposed_ms)} waiting for what travels.`
    : "";
  setRing(answer.ranks);
}

let ring = { ranks: 0, timer: 0 };

function showRing() {
  const step = Number(element("ring-step").value);
  drawRing(element("ring"), step, ring.ranks);
  element("ring-text").textContent = ringText(step, ring.ranks);
}

function setRing(ranks) {
  const shown = shownRanks(ranks);
  if (shown === ring.ranks) return;
  ring.ranks = shown;
  element("ring-step").max = String(2 * (shown - 1));
  element("ring-step").value = "0";
  showRing();
}

function playRing() {
  const slider = element("ring-step");
  clearInterval(ring.timer);
  if (slider.value === slider.max) slider.value = "0";
  ring.timer = setInterval(() => {
    slider.value = String(Number(slider.value) + 1);
    showRing();
    if (slider.value === slider.max) clearInterval(ring.timer);
  }, matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 600);
}

// At most one question is on its way, and the newest one is always asked: an answer that has been
// overtaken is shown until its successor comes.
let asking = false;
let askAgain = false;
let later = 0;

async function answerTo(question) {
  const answer = await (await fetch("api/plan?" + question)).json();
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

function refuse(error) {
  element("answer").textContent = error.message;
  element("answer").classList.add("refused");
}

// Curves and the timeline take the program longer: they follow when the controls rest.
async function askDetails() {
  const address = addressOf().toString();
  try {
    const answer = await answerTo(address + "&curves=true");
    if (address === addressOf().toString()) {
      showDetails(answer);
      document.body.dataset.detailed = address;
    }
  } catch (error) {
    refuse(error);
  }
}

async function ask() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  askAgain = false;
  const question = questionOf().toString();
  history.replaceState(null, "", "?" + addressOf());
  element("json").href = "api/plan?" + question;
  try {
    const answer = await answerTo(question);
    showText(answer);
    drawBars(element("bars"), answer);
    clearTimeout(later);
    later = setTimeout(askDetails, 80);
  } catch (error) {
    refuse(error);
  }
  document.body.dataset.shown = question;
  asking = false;
  if (askAgain) ask();
}

export async function begin() {
  const choices = await (await fetch("api/choices")).json();
  fill(element("model"), [["", "a number of parameters"], ...choices.models.map((name) => [name, name])]);
  fill(element("hardware"), choices.hardware.map(({ name, description }) => [name, `${name}: ${description}`]));
  fill(element("stage"), choices.stages.map((name) => [name, name]));
  element("hardware").value = "h100";
  rememberInitialValues();
  restore(location.search);
  if (location.search === "") element("device-memory").value = "80GB";
  element("question").addEventListener("input", (event) => {
    readSliders(event.target);
    if (event.target.id === "params") element("model").value = "";
    ask();
  });
  element("question").addEventListener("submit", (event) => event.preventDefault());
  element("ring-step").addEventListener("input", showRing);
  element("ring-play").addEventListener("click", playRing);
  addEventListener("popstate", () => {
    restore(location.search);
    ask();
  });
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(ask, 150);
  });
  ask();
}
