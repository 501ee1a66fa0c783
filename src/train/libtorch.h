// The LibTorch that this program runs with.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace lockstep::train {

// {"version", "path", "kernels"}: the release, the shared library that is loaded, and the
// instructions that its kernels use ("AVX512").
nlohmann::ordered_json describe_libtorch();

}  // namespace lockstep::train
