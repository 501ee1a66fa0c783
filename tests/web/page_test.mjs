// The planner's page in a browser: Debian's chromium, driven by playwright-core, against the program.
//   node --test page_test.mjs      with LOCKSTEP_PROGRAM, LOCKSTEP_NODE_MODULES and LOCKSTEP_SHOTS
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { kPatience, ServedPage } from "./served_page.mjs";

const served = new ServedPage();
let origin;
let page;

before(async () => {
  await served.start(["plan", "--web"]);
  origin = served.origin;
});

after(() => served.stop());

beforeEach(async () => {
  page = await served.open();
});

afterEach((context) => served.close(page, context));

// Until the page shows the answer to what its address says, details and all.
async function settled() {
  await page.waitForFunction(() => document.body.dataset.detailed === location.search.slice(1), null, kPatience);
}

async function open(question) {
  await page.goto(origin + "/" + question);
  await settled();
}

// Sets a control as a user's last movement would.
async function set(id, value) {
  await page.evaluate(([control, wanted]) => {
    const input = document.getElementById(control);
    if (input.type === "checkbox") input.checked = wanted;
    else input.value = wanted;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }, [id, value]);
  await settled();
}

const textOf = (selector) => page.textContent(selector);
const cells = (stage) => page.$$eval(`tr[data-stage="${stage}"] td`, (all) => all.map((cell) => cell.textContent));
const total = async (stage) => (await cells(stage))[5];
const smallestRanks = async (stage) => (await cells(stage)).at(-1);
const overs = () => page.$$eval('#bars rect[aria-label="over"]', (all) => all.length);

test("eight billion parameters on eight ranks need what the paper says", async () => {
  await open("?params=8e9&ranks=8&device-memory=80GB");
  assert.equal(await total("ddp"), "119.2");
  assert.equal(await total("zero1"), "41.0");
  assert.equal(await total("zero2"), "27.9");
  assert.equal(await total("zero3"), "14.9");
});

test("on 64 ranks zero3 needs 1.86 GiB, and moves half as much again as ddp", async () => {
  await open("?params=8e9&ranks=64");
  assert.equal(await total("zero3"), "1.86");
  const answer = await (await page.request.get(`${origin}/api/plan?params=8e9&ranks=64`)).json();
  const sent = (stage) => answer.stages.find((one) => one.stage === stage).sent;
  assert.equal(sent("zero3") / sent("ddp"), 1.5);
});

test("seventy billion parameters fit 80 GB from 14 ranks on", async () => {
  await open("?params=70e9&ranks=14&device-memory=80GB");
  assert.equal(await smallestRanks("zero3"), "14");
  assert.match(await textOf("#answer"), /smallest stage that fits is zero3/);
  await open("?params=70e9&ranks=13&device-memory=80GB");
  assert.match(await textOf("#answer"), /no stage fits/);
});

test("the first page has the line of 80 GB", async () => {
  await open("");
  assert.match(await textOf("#memory-note"), /80\.0 GB = 74\.5 GiB/);
});

test("a slider moves the text, the bars and the address", async () => {
  await open("?params=8e9&ranks=8&device-memory=80GB");
  const before = await total("zero3");
  await set("params", "10.5");
  assert.notEqual(await total("zero3"), before);
  assert.equal(await textOf("#params-text"), "32B");
  assert.match(page.url(), /params=32000000000/);
  await set("ranks", "6");
  assert.equal(await textOf("#ranks-text"), "64");
  assert.match(page.url(), /ranks=64/);
});

test("the address brings the state back", async () => {
  await open("?model=gpt2-774m&ranks=16&precision=f32&micro-batch=4&recompute=true&overlap=off&timeline=zero2");
  assert.equal(await page.inputValue("#model"), "gpt2-774m");
  assert.equal(await page.inputValue("#micro-batch"), "4");
  assert.equal(await page.isChecked("#recompute"), true);
  assert.equal(await page.isChecked("#overlap"), false);
  assert.equal(await textOf("#timeline-stage"), "zero2");
  const first = await total("zero2");
  await page.reload();
  await settled();
  assert.equal(await total("zero2"), first);
});

test("what crosses the line has a colour of its own", async () => {
  await open("?params=8e9&ranks=8&device-memory=80GB");
  assert.ok(await overs() > 0);
  assert.equal(await page.$eval('tr[data-stage="ddp"]', (row) => row.className), "over");
  await set("device-memory", "200GB");
  assert.equal(await overs(), 0);
  assert.doesNotMatch(await page.$eval('tr[data-stage="ddp"]', (row) => row.className), /over/);
});

test("the smallest stage follows the device", async () => {
  await open("?params=8e9&ranks=8&device-memory=200GB");
  assert.match(await textOf("#answer"), /smallest stage that fits is ddp/);
  await set("device-memory", "40GB");
  assert.match(await textOf("#answer"), /smallest stage that fits is zero2/);
  await set("device-memory", "20GB");
  assert.match(await textOf("#answer"), /smallest stage that fits is zero3/);
});

test("advice changes with the answer, and gives its reason", async () => {
  await open("?params=8e9&ranks=8&device-memory=80GB");
  const roomy = await textOf("#reasons");
  await set("device-memory", "15GB");
  const tight = await textOf("#reasons");
  assert.notEqual(roomy, tight);
  assert.ok(tight.length > 40);
});

test("model state only is said where activations are not known, and not where they are", async () => {
  await open("?params=8e9&ranks=8");
  assert.match(await textOf("#memory-note"), /Model state only; activations/);
  await set("model", "gpt2-124m");
  assert.doesNotMatch(await textOf("#memory-note"), /Model state only/);
  assert.notEqual((await cells("ddp"))[4], "0.00");
});

test("the keyboard reaches the sliders and moves them", async () => {
  await open("?params=8e9&ranks=8");
  await page.focus("#ranks");
  for (let i = 0; i < 40; ++i) await page.keyboard.press("ArrowRight");
  await settled();
  assert.notEqual(await textOf("#ranks-text"), "8");
  const reached = new Set();
  await page.focus("#model");
  for (let i = 0; i < 30; ++i) {
    reached.add(await page.evaluate(() => document.activeElement.id));
    await page.keyboard.press("Tab");
  }
  for (const id of ["model", "params", "ranks", "hardware", "stage", "prefetch", "overlap", "ring-play"]) {
    assert.ok(reached.has(id), `${id} by Tab`);
  }
});

test("a narrow screen shows all of it", async () => {
  await page.setViewportSize({ width: 360, height: 800 });
  await open("?params=8e9&ranks=8");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 360, `${width} px`);
});

test("dark and light follow the system", async () => {
  const ground = async (scheme) => {
    await page.emulateMedia({ colorScheme: scheme });
    return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  };
  await open("?params=8e9&ranks=8");
  assert.notEqual(await ground("light"), await ground("dark"));
  await page.emulateMedia({ colorScheme: "dark" });
});

test("every number is the program's: another answer shows", async () => {
  await page.route("**/api/plan?*", async (route) => {
    const reply = await route.fetch();
    const answer = await reply.json();
    answer.smallest_stage = "hybrid";
    answer.reasons = ["a reason made up by the test"];
    answer.stages[1].bytes.total = 12345 * 2 ** 30;
    await route.fulfill({ response: reply, json: answer });
  });
  await open("?params=8e9&ranks=8");
  assert.equal(await total("ddp"), "12345.0");
  assert.match(await textOf("#answer"), /smallest stage that fits is hybrid/);
  assert.equal(await textOf("#reasons"), "a reason made up by the test");
  await page.unrouteAll({ behavior: "wait" });
});

for (const [dial, values] of [["prefetch", ["0", "4"]], ["unit-blocks", ["1", "8"]], ["between-gb-per-s", ["10", "400"]]]) {
  test(`the timeline changes with ${dial}`, async () => {
    const seen = new Set();
    for (const value of values) {
      await open(`?params=8e9&ranks=64&timeline=zero3&${dial}=${value}`);
      seen.add(await page.$eval("#timeline", (chart) => chart.innerHTML));
    }
    assert.equal(seen.size, values.length);
  });
}

test("curves show every stage against ranks", async () => {
  await open("?params=8e9&ranks=8");
  for (const id of ["#memory-curve", "#time-curve"]) {
    assert.ok(await page.$$eval(`${id} path`, (paths) => paths.length) >= 5);
  }
});

test("the ring of four ranks takes six steps and sends 1.5 X", async () => {
  await open("?params=8e9&ranks=4");
  await page.click("#ring-play");
  await page.waitForFunction(() => document.getElementById("ring-text").textContent.startsWith("6 of 6"), null, kPatience);
  assert.match(await textOf("#ring-text"), /has sent 6\/4 of X/);
  const heights = await page.$$eval(".ring-held", (bars) => bars.map((bar) => bar.getAttribute("height")));
  assert.equal(heights.length, 16);
  assert.equal(new Set(heights).size, 1);
});

test("what is refused shows the program's line, and the next answer replaces it", async () => {
  await open("?params=8e9&ranks=8");
  await page.fill("#device-memory", "lots");
  await page.waitForFunction(() => document.getElementById("answer").classList.contains("refused"), null, kPatience);
  assert.match(await textOf("#answer"), /--device-memory: .*'lots'/);
  await set("device-memory", "80GB");
  assert.match(await textOf("#answer"), /smallest stage that fits/);
});
