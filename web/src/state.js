// The question, as the controls hold it and as the address does: one keeps the other.

const kSwitches = ["recompute", "reproducible"];
const kFields = ["precision", "micro-batch", "seq", "hardware", "device-memory", "hosts",
  "inside-gb-per-s", "between-gb-per-s", "accumulate", "unit-blocks", "prefetch", "reshard",
  "bucket-mb", "algorithm"];
const kDefaults = { params: "8e9", ranks: "8", stage: "zero3" };
const kMostRanks = 1024;

const element = (id) => document.getElementById(id);

// Two digits: a slider's place is no measurement.
export function paramsOf(slider) {
  const value = 10 ** Number(slider);
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Math.round(value / step) * step;
}

export function ranksOf(slider) {
  return Math.min(kMostRanks, Math.max(1, Math.round(2 ** Number(slider))));
}

// Parameters for /api/plan, in a fixed order; what is left empty is the program's default.
export function questionOf() {
  const question = new URLSearchParams();
  const model = element("model").value;
  if (model === "") {
    question.set("params", element("params").dataset.value);
  } else {
    question.set("model", model);
  }
  question.set("ranks", element("ranks").dataset.value);
  for (const field of kFields) {
    const input = element(field);
    if (input.value !== "" && input.value !== input.dataset.initial) {
      question.set(field, input.value);
    }
  }
  for (const name of kSwitches) {
    if (element(name).checked) question.set(name, "true");
  }
  if (!element("overlap").checked) question.set("overlap", "off");
  return question;
}

function setSlider(id, place, value) {
  const slider = element(id);
  slider.value = place;
  slider.dataset.value = value;
}

// The address of this state: the question, and what is shown of its answer.
export function addressOf() {
  const address = questionOf();
  address.set("timeline", element("stage").value);
  return address;
}

// What the sliders mean where they stand now.
export function readSliders(moved) {
  if (moved === undefined || moved.id === "params") {
    element("params").dataset.value = String(paramsOf(element("params").value));
  }
  if (moved === undefined || moved.id === "ranks") {
    element("ranks").dataset.value = String(ranksOf(element("ranks").value));
  }
}

// Sets the controls to the address; a control that it does not name goes to its default.
export function restore(address) {
  const given = new URLSearchParams(address);
  const params = given.get("params") ?? kDefaults.params;
  const ranks = given.get("ranks") ?? kDefaults.ranks;
  const number = Number(params);
  setSlider("params", Number.isFinite(number) && number > 0 ? Math.log10(number) : 9.9, params);
  setSlider("ranks", Number(ranks) > 0 ? Math.log2(Number(ranks)) : 3, ranks);
  element("model").value = given.get("model") ?? "";
  element("stage").value = given.get("timeline") ?? kDefaults.stage;
  for (const field of kFields) {
    element(field).value = given.get(field) ?? element(field).dataset.initial;
  }
  for (const name of kSwitches) element(name).checked = given.has(name);
  element("overlap").checked = given.get("overlap") !== "off";
}

// The page's own first values are the program's defaults.
export function rememberInitialValues() {
  for (const field of kFields) {
    element(field).dataset.initial = element(field).value;
  }
}
