// The page of `lockstep dash` in a browser: Debian's chromium, driven by playwright-core, against the
// program.
//   node --test dash_test.mjs      with LOCKSTEP_PROGRAM, LOCKSTEP_NODE_MODULES and LOCKSTEP_SHOTS,
//                                  and LOCKSTEP_TRAINS=1 where the program can train
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { kPatience, ServedPage } from "./served_page.mjs";

const served = new ServedPage();
let folder;
let page;

function line(step, loss) {
  return JSON.stringify({ step, "train/loss": loss, "train/grad_norm": 1 + 1 / (step + 1), "perf/step_ms": 10,
    "perf/tokens_per_s": 5000 + step, "perf/mfu": 0.31, "comm/exposed_ms": 0.5 }) + "\n";
}

function makeRun(name, { model, losses, validation }) {
  const run = join(folder, name);
  mkdirSync(run);
  writeFileSync(join(run, "config.toml"), `model = "${model}"\nstage = "zero2"\nranks = 2\nsteps = 100\n`);
  const memory = JSON.stringify({ step: losses.length - 1, "memory/parameters": 2 ** 30, "memory/gradients": 2 ** 29,
    "memory/optimizer": 2 ** 29, "memory/transient_peak": 0, "memory/activations_peak": 2 ** 30 }) + "\n";
  writeFileSync(join(run, "metrics.jsonl"), losses.map((loss, step) => line(step, loss)).join("") + memory +
    (validation ? JSON.stringify({ step: losses.length, "eval/loss": validation }) + "\n" : ""));
  return run;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "lockstep-test-"));
  makeRun("first", { model: "gpt2-tiny", losses: [5, 4, 3, 2.5], validation: 2.75 });
  makeRun("second", { model: "llama-tiny", losses: [6, 5.5], validation: null });
  await served.start(["dash", folder]);
});

after(async () => {
  await served.stop();
  rmSync(folder, { recursive: true });
});

beforeEach(async () => {
  page = await served.open();
  await page.goto(served.origin + "/");
  await page.waitForFunction(() => document.body.dataset.turns !== undefined, null, kPatience);
});

afterEach((context) => served.close(page, context, "dash-"));

const cellOf = (run, of) => page.textContent(`tr[data-run="${run}"] [data-of="${of}"]`);
const linesIn = (chart) => page.$$eval(`#${chart} [aria-label="line"] path`, (all) => all.length);

// Until the cell says so: the page asks once a second.
async function says(run, of, text) {
  await page.waitForFunction(([name, cell, wanted]) =>
    document.querySelector(`tr[data-run="${name}"] [data-of="${cell}"]`)?.textContent === wanted, [run, of, text], kPatience);
}

test("runs lie over each other with their last figures", async () => {
  assert.match(await page.textContent("#answer"), /^[23] runs, 0 running\.$/);
  assert.equal(await cellOf("first", "loss"), "2.5");
  assert.equal(await cellOf("first", "step"), "4 of 100");
  assert.equal(await cellOf("second", "state"), "stopped");
  assert.equal(await linesIn("loss"), 2);
  assert.equal(await page.$$eval('#loss [aria-label="dot"] circle', (all) => all.length), 1);
  assert.match(await page.textContent("#memory"), /3\.00/);
});

test("what a run writes shows without a reload, and steps done again replace the first ones", async () => {
  appendFileSync(join(folder, "second", "metrics.jsonl"), line(2, 4.25));
  await says("second", "loss", "4.25");
  await says("second", "step", "3 of 100");
  writeFileSync(join(folder, "second", "metrics.jsonl"), line(0, 6) + line(1, 3.75));
  await says("second", "loss", "3.75");
  await says("second", "step", "2 of 100");
});

test("a run that begins later appears", async () => {
  makeRun("third", { model: "gpt2-tiny", losses: [1.5], validation: null });
  await says("third", "loss", "1.5");
});

test("a run that is not ticked leaves the charts", async () => {
  const before_ = await linesIn("speed");
  await page.focus('tr[data-run="first"] input');
  await page.keyboard.press("Space");
  await page.waitForFunction((lines) => document.querySelectorAll('#speed [aria-label="line"] path').length === lines, before_ - 1, kPatience);
  assert.equal(await page.evaluate(() => document.activeElement.closest("tr").dataset.run), "first");
});

test("it fits 360 pixels and follows the dark scheme", async () => {
  await page.setViewportSize({ width: 360, height: 800 });
  await page.waitForTimeout(400);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 360);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await ground(), light);
});

test("a run that trains is seen running, with its ranks, and then ended",
  { skip: process.env.LOCKSTEP_TRAINS !== "1" && "this build has no lockstep-train" }, async () => {
    const run = join(folder, "trained");
    const training = spawn(process.env.LOCKSTEP_PROGRAM, ["train", "--ranks", "2", "--model", "gpt2-tiny", "--seq", "32",
      "--steps", "150", "--run", run], { stdio: "ignore", cwd: process.env.LOCKSTEP_SOURCE });
    const ended = new Promise((resolve) => training.on("exit", resolve));
    await says("trained", "state", "running");
    await page.waitForSelector('#ranks [data-run="trained"] li', kPatience);
    assert.match(await page.textContent('#ranks [data-run="trained"]'), /rank 1: /);
    assert.equal(await ended, 0);
    await says("trained", "state", "ended");
    await says("trained", "step", "150 of 150");
  });

test("when the program ends the page says so and keeps what it has", async () => {
  served.server.kill();
  await page.waitForFunction(() => document.getElementById("answer").textContent.startsWith("No answer"), null, kPatience);
  assert.equal(await cellOf("first", "loss"), "2.5");
});
