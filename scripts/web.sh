# What builds the planner's page (esbuild, the chart library) and drives it in tests
# (playwright-core), in .deps/npm, as web/package-lock.json pins it. Sourced after common.sh.
# shellcheck shell=bash

page_tools="$deps/npm"

set_up_page_tools() {
  local lock="$lockstep_root/web/package-lock.json"
  if cmp -s "$lock" "$page_tools/complete.json"; then
    return
  fi
  rm -rf "$page_tools"
  mkdir -p "$page_tools"
  cp "$lockstep_root/web/package.json" "$lock" "$page_tools" || fail "cannot write to $page_tools"
  step "Fetching what builds and drives the planner's page" "$deps/npm.log" \
    npm ci --prefix "$page_tools" --ignore-scripts --no-audit --no-fund
  cp "$lock" "$page_tools/complete.json" || fail "cannot write to $page_tools"
}
