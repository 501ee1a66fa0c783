# Hosts on one machine, by name: a network and a UTS namespace each, cables to one bridge, which has
# a network namespace of its own. Sourced.
# shellcheck shell=bash

# Everything is named after this, so that `down` finds all of it and nothing else.
prefix=lockstep
bridge=$prefix-bridge

address_of() { printf '10.77.0.%s' "$1"; }

hosts_there() { ip netns list 2>/dev/null | grep -oE "^$prefix([0-9]+|-bridge)\b" || true; }

require_rights() {
  if [ "$(id -u)" -ne 0 ]; then
    printf '%s: needs root to make network namespaces\n' "$0" >&2
    exit 1
  fi
  local program
  for program in ip tc; do
    command -v "$program" >/dev/null || {
      printf '%s: %s is missing; install iproute2\n' "$0" "$program" >&2
      exit 1
    }
  done
}
