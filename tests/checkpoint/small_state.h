// A training state small enough to write out, saved without LibTorch: two arrays whose values hang
// on the step.
#pragma once

#include "checkpoint/publication.h"
#include "checkpoint/saved_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

class SmallState {
 public:
  explicit SmallState(std::int64_t step, std::int64_t count = 100) : step_(step) {
    weights_.resize(static_cast<std::size_t>(count));
    std::iota(weights_.begin(), weights_.end(), 1000.0f * static_cast<float>(step));
    moments_.assign(weights_.rbegin(), weights_.rend());
  }

  std::vector<StateArray> arrays() const {
    const auto count = static_cast<std::int64_t>(weights_.size());
    return {{"parameter", "w", Dtype::f32, {count / 2, 2}},
            {"exp_avg", "w", Dtype::f32, {count / 2, 2}}};
  }

  // What two ranks would write: each half of both arrays. Returns the step's path.
  std::string save(FileSystem& files, const std::string& folder, std::int64_t keep = 0) const {
    Publication publication(files, folder, step_);
    Manifest manifest;
    manifest.step = step_;
    manifest.optimizer = "adamw";
    manifest.arrays = arrays();
    const auto count = static_cast<std::int64_t>(weights_.size());
    for (const Range half : {Range{0, count / 2}, Range{count / 2, count}}) {
      manifest.files.push_back(
          write_share(files, unfinished_path(folder, step_),
                      "half-" + std::to_string(half.begin) + ".safetensors",
                      {piece("parameter", weights_, half), piece("exp_avg", moments_, half)}));
    }
    std::string path = publication.publish(manifest);
    if (keep > 0) {
      publication.keep_newest(keep);
    }
    return path;
  }

  // The step at `path` is whole and holds this state.
  void expect_saved(const std::string& path) const {
    const SavedStep step(path);
    step.verify();
    step.check_holds(arrays());
    const SavedArrays saved(step);
    EXPECT_EQ(floats(saved, arrays()[0]), weights_) << path;
    EXPECT_EQ(floats(saved, arrays()[1]), moments_) << path;
  }

 private:
  static NamedTensor piece(const char* slot, const std::vector<float>& values, Range part) {
    return {text_of(Piece{slot, "w", part}), Dtype::f32, {part.size()}, values.data() + part.begin};
  }
  static std::vector<float> floats(const SavedArrays& saved, const StateArray& array) {
    std::vector<float> values(static_cast<std::size_t>(array.count()));
    saved.read(array, {0, array.count()}, values.data());
    return values;
  }

  std::int64_t step_;
  std::vector<float> weights_;
  std::vector<float> moments_;
};

}  // namespace lockstep::checkpoint
