// Parameter lists for tests of the planner.
#pragma once

#include "lockstep/plan.h"

#include <vector>

namespace lockstep::plan {

struct Gpt2Shape {
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t context = 1024;
  std::int64_t vocabulary = 50257;
};

// GPT-2 with a tied head: matrices and their biases held as `dtype`, norms in fp32.
inline std::vector<Parameter> gpt2(const Gpt2Shape& shape, Dtype dtype) {
  std::vector<Parameter> all;
  const auto add_norm = [&] { all.insert(all.end(), 2, {shape.width, Dtype::f32}); };
  const auto add_linear = [&](std::int64_t inputs, std::int64_t outputs) {
    all.push_back({inputs * outputs, dtype});
    all.push_back({outputs, dtype});
  };
  all.push_back({shape.vocabulary * shape.width, dtype});
  all.push_back({shape.context * shape.width, dtype});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    add_norm();
    add_linear(shape.width, 3 * shape.width);
    add_linear(shape.width, shape.width);
    add_norm();
    add_linear(shape.width, 4 * shape.width);
    add_linear(4 * shape.width, shape.width);
  }
  add_norm();
  return all;
}

}  // namespace lockstep::plan
