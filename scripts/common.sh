# What the project's scripts share: messages, steps with a log, where things are. Sourced.
# shellcheck shell=bash

lockstep_root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
deps="$lockstep_root/.deps"

say() { printf '%s\n' "$*"; }

# One line on standard error, then exit 1.
fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Prints how far a step is, every 20 s, until its script is gone. Waits in a builtin: a `sleep`
# would outlive the step.
tick() {
  local log="$1" started="$SECONDS" never
  exec {never}<> <(:)
  while ! read -r -t 20 -u "$never" && kill -0 "$$" 2>/dev/null; do
    say "  $((SECONDS - started)) s: $(tail -n 1 "$log" | cut -c -80)"
  done
}

# step LABEL LOG COMMAND…: runs a command with its output in LOG; shows the log's end if it fails.
step() {
  local label="$1" log="$2" started="$SECONDS" status=0
  shift 2
  mkdir -p "$(dirname "$log")"
  : >"$log"
  say "$label"
  tick "$log" &
  local ticker=$!
  "$@" >"$log" 2>&1 || status=$?
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null
  if [ "$status" -ne 0 ]; then
    tail -n 30 "$log" >&2
    fail "$label: failed with status $status; the whole output is in $log"
  fi
  if [ $((SECONDS - started)) -ge 5 ]; then
    say "  done in $((SECONDS - started)) s"
  fi
}

# The build folder of a preset of CMakePresets.json.
build_folder() {
  if [ "$1" = release ]; then
    printf '%s' "$lockstep_root/build"
  else
    printf '%s' "$lockstep_root/build-$1"
  fi
}

# build PRESET: configures and compiles one preset; quick when nothing changed.
build() {
  local folder
  folder="$(build_folder "$1")"
  cd "$lockstep_root" || exit 1
  step "Configuring $1" "$folder/configure.log" \
    cmake --preset "$1" "-DLIBTORCH=${LIBTORCH:-}"
  step "Compiling $1 (the first time takes minutes)" "$folder/build.log" cmake --build "$folder"
}
