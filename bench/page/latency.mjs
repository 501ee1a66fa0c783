// How long the planner's page takes from a slider's movement to the new text, over 50 movements.
//   LOCKSTEP_NODE_MODULES=.deps/npm/node_modules node bench/page/latency.mjs build/lockstep
// Verifies each time that the text is the new question's, then prints median, least and most.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(process.env.LOCKSTEP_NODE_MODULES + "/");
const { chromium } = require("playwright-core");
const kMovements = 50;

const server = spawn(process.argv[2], ["plan", "--web", "--params", "8e9"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve) => server.stdout.once("data", (data) => resolve(String(data).split("\n")[0])));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
await page.goto(address);
await page.waitForFunction(() => document.body.dataset.detailed);
const times = [];
for (let i = 0; i < kMovements; ++i) {
  const ranks = 2 + i;
  times.push(await page.evaluate((wanted) => new Promise((resolve, reject) => {
    const text = document.getElementById("ranks-text");
    const begun = performance.now();
    const watch = new MutationObserver(() => {
      if (text.textContent === String(wanted)) {
        watch.disconnect();
        resolve(performance.now() - begun);
      }
    });
    watch.observe(text, { childList: true });
    setTimeout(() => reject(new Error(`no new text in 10 s for ${wanted} ranks`)), 10_000);
    const slider = document.getElementById("ranks");
    slider.value = String(Math.log2(wanted));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  }), ranks));
  await page.waitForTimeout(150);
}
times.sort((a, b) => a - b);
const middle = (times[kMovements / 2 - 1] + times[kMovements / 2]) / 2;
console.log(`${kMovements} movements: median ${middle.toFixed(1)} ms, least ${times[0].toFixed(1)}, most ${times.at(-1).toFixed(1)}`);
await browser.close();
server.kill();
