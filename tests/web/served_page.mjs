// A page that the program serves, in a browser: Debian's chromium, driven by playwright-core.
//   with LOCKSTEP_PROGRAM, LOCKSTEP_NODE_MODULES and LOCKSTEP_SHOTS
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.LOCKSTEP_NODE_MODULES + "/");
const { chromium } = require("playwright-core");

export const kPatience = { timeout: 60_000 };

export class ServedPage {
  #browser;
  #strangers;

  // Starts `lockstep` with these words, and the browser.
  async start(words) {
    mkdirSync(process.env.LOCKSTEP_SHOTS, { recursive: true });
    this.server = spawn(process.env.LOCKSTEP_PROGRAM, words, { stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise((resolve, reject) => {
      let text = "";
      this.server.stdout.on("data", (data) => {
        text += data;
        if (text.includes("\n")) resolve(text.split("\n")[0]);
      });
      this.server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    this.origin = new URL(line).origin;
    this.#browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  }

  async stop() {
    await this.#browser?.close();
    this.server?.kill();
  }

  // A tab of its own, which notes what should not be asked for.
  async open() {
    const page = await this.#browser.newPage({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce" });
    page.setDefaultTimeout(kPatience.timeout);
    this.#strangers = [];
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(this.origin + "/") && !url.startsWith("data:")) this.#strangers.push(url);
    });
    page.on("pageerror", (error) => this.#strangers.push(String(error)));
    return page;
  }

  // Keeps a picture of it under the test's name.
  async close(page, context, prefix = "") {
    const name = prefix + context.name.replaceAll(/[^a-z0-9]+/gi, "-");
    await page.screenshot({ path: `${process.env.LOCKSTEP_SHOTS}/${name}.png`, fullPage: true });
    await page.close();
    assert.deepEqual(this.#strangers, [], "requests that left the machine, or errors of the page");
  }
}
