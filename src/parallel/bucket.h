// Which flat parameters travel together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::parallel {

// The flat parameters of one bucket, as indices into the list of all flat parameters.
struct Bucket {
  std::string name;
  std::vector<std::size_t> parts;
};

}  // namespace lockstep::parallel
