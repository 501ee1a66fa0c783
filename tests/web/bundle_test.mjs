// web/page.js, which the build compiles in, is what scripts/page makes of web/src/ today.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const source = process.env.LOCKSTEP_SOURCE;

test("the bundle is that of the sources", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-test-"));
  try {
    execFileSync(join(source, "scripts/page"), [join(folder, "page.js")]);
    assert.equal(readFileSync(join(folder, "page.js"), "utf8") === readFileSync(join(source, "web/page.js"), "utf8"), true,
      "web/page.js is older than web/src: run scripts/page");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("nothing in the page names another machine", () => {
  for (const name of ["index.html", "dash.html", "page.css"]) {
    assert.doesNotMatch(readFileSync(join(source, "web", name), "utf8"), /https?:/, name);
  }
});
