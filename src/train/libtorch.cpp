#include "train/libtorch.h"

#include <ATen/Version.h>
#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <dlfcn.h>

namespace lockstep::train {

nlohmann::ordered_json describe_libtorch() {
  Dl_info library{};
  const bool found = ::dladdr(reinterpret_cast<const void*>(&at::show_config), &library) != 0;
  return {{"version", TORCH_VERSION},
          {"path", found ? library.dli_fname : "unknown"},
          {"kernels", at::get_cpu_capability()}};
}

}  // namespace lockstep::train
