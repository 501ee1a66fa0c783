# Where LibTorch comes from: LIBTORCH=, CMAKE_PREFIX_PATH, else the pinned wheel in .deps/venv.
# Sourced after common.sh.
# shellcheck shell=bash

torch_pin="torch==2.13.0"
venv="$deps/venv"
# Holds the pin that the environment was made for; another pin makes a new one.
venv_stamp="$venv/lockstep-complete"

has_torch_config() {
  [ -f "$1/share/cmake/Torch/TorchConfig.cmake" ] || [ -f "$1/Torch/TorchConfig.cmake" ] ||
    [ -f "$1/lib/cmake/Torch/TorchConfig.cmake" ]
}

# The first folder of CMAKE_PREFIX_PATH that holds LibTorch, or nothing.
torch_in_prefix_path() {
  local folder folders
  IFS=':;' read -r -a folders <<<"${CMAKE_PREFIX_PATH:-}"
  for folder in "${folders[@]}"; do
    if [ -n "$folder" ] && has_torch_config "$folder"; then
      printf '%s' "$folder"
      return
    fi
  done
}

# The user's own LibTorch, or nothing; a LIBTORCH= without LibTorch ends the script.
own_libtorch() {
  if [ -n "${LIBTORCH:-}" ]; then
    has_torch_config "$LIBTORCH" ||
      fail "LIBTORCH=$LIBTORCH: expected share/cmake/Torch/TorchConfig.cmake in it, found none;" \
        "name the folder of an unpacked LibTorch or of an installed 'torch' package"
    printf '%s' "$LIBTORCH"
    return
  fi
  torch_in_prefix_path
}

# wheel_folder ENVIRONMENT: its installed torch package, or nothing.
wheel_folder() {
  local found
  for found in "$1"/lib/python3*/site-packages/torch; do
    if [ -d "$found" ]; then
      printf '%s' "$found"
      return
    fi
  done
}

# is_cuda_build TORCH_FOLDER: its CMake files would ask for the CUDA toolkit.
is_cuda_build() {
  [ -e "$1/lib/libtorch_cuda.so" ] || grep -qsE "^cuda.*=.*['\"][0-9]" "$1/version.py"
}

# A Python 3.10 or newer that runs and can make virtual environments, 3.11 first.
usable_python() {
  local name
  for name in python3.11 python3; do
    if "$name" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' \
      >/dev/null 2>&1; then
      command -v "$name"
      return
    fi
  done
}

# refuse_cuda_wheel ENVIRONMENT
refuse_cuda_wheel() {
  local torch
  torch="$(wheel_folder "$1")"
  [ -n "$torch" ] || fail "pip installed $torch_pin, but $1 holds no torch; see $deps/torch.log"
  if is_cuda_build "$torch"; then
    fail "pip brought a CUDA build of $torch_pin, whose CMake files ask for the CUDA toolkit:" \
      "set LIBTORCH=/path/to/a/CPU/build and run this again"
  fi
}

# install_wheel ACCEPT: ACCEPT is called with the new environment and ends the script if it won't do.
# Made beside the environment in use and renamed when complete: a set-up cut short leaves nothing
# that looks finished, and nobody who compiles against the old one loses it meanwhile.
install_wheel() {
  local python accept="$1" partial="$deps/venv.partial"
  python="$(usable_python)"
  [ -n "$python" ] || fail "no Python 3.10 or newer with ensurepip: install python3 and python3-venv"
  mkdir -p "$deps"
  rm -rf "$partial" "$deps/venv.old"
  step "Making a Python environment in .deps" "$deps/venv.log" "$python" -m venv "$partial"
  step "Installing $torch_pin into it" "$deps/torch.log" \
    "$partial/bin/python" -m pip install --disable-pip-version-check "$torch_pin"
  "$accept" "$partial"
  printf '%s\n' "$torch_pin" >"$partial/lockstep-complete"
  if [ -e "$venv" ]; then
    mv "$venv" "$deps/venv.old" || fail "cannot move $venv aside"
  fi
  mv "$partial" "$venv" || fail "cannot move $partial to $venv"
  rm -rf "$deps/venv.old"
}

has_pinned_wheel() {
  [ "$(cat "$venv_stamp" 2>/dev/null)" = "$torch_pin" ]
}

set_up_libtorch() {
  local own
  own="$(own_libtorch)" || exit 1
  if [ -n "$own" ]; then
    say "LibTorch: $own"
  else
    has_pinned_wheel || install_wheel refuse_cuda_wheel
  fi
}

# The Python that tests compare with: the wheel (any build of it, when the compiled code uses a
# LibTorch of the user's own) and the packages of requirements-tests.txt.
set_up_test_python() {
  local requirements="$lockstep_root/scripts/requirements-tests.txt" stamp="$venv/lockstep-tests"
  has_pinned_wheel || install_wheel true
  if cmp -s "$requirements" "$stamp"; then
    return
  fi
  step "Installing the Python packages that tests compare with" "$deps/tests.log" \
    "$venv/bin/python" -m pip install --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" "$stamp" || fail "cannot write $stamp"
}
