// The bundles that the build compiles in are what scripts/page makes of web/src/ today.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const source = process.env.LOCKSTEP_SOURCE;

test("the bundles are those of the sources", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-test-"));
  try {
    execFileSync(join(source, "scripts/page"), [folder]);
    for (const name of ["page.js", "dash.js"]) {
      assert.equal(readFileSync(join(folder, name), "utf8") === readFileSync(join(source, "web", name), "utf8"), true,
        `web/${name} is older than web/src: run scripts/page`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("nothing in the page names another machine", () => {
  for (const name of ["index.html", "dash.html", "page.css"]) {
    assert.doesNotMatch(readFileSync(join(source, "web", name), "utf8"), /https?:/, name);
  }
});
