// Where gradients lie while their buckets travel (zero2): a bucket takes one of two windows of
// symmetric memory, in turn, and leaves it when all ranks have read it.
#pragma once

#include "parallel/bucket.h"
#include "parallel/device.h"
#include "parallel/exchange.h"
#include "parallel/flat_parameter.h"
#include "parallel/leaf_target.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::parallel {

class GradientWindows final : public LeafTarget {
 public:
  static constexpr std::size_t kWindows = 2;

  // Collective. All references must outlive the windows.
  GradientWindows(Device& device, Group& group, Exchange& exchange,
                  const std::vector<FlatParameter*>& parts, const std::vector<Bucket>& buckets);

  // Nothing travels any more.
  void begin_step();
  // Gives the next bucket that travels its window, if that is free now; every bucket of a leaf
  // comes in order.
  bool try_open(std::size_t bucket);
  // The same, waiting for it.
  void open(std::size_t bucket);
  // The open bucket is full: its exchange starts now.
  void close();

  // Of the open bucket.
  void put(std::size_t part, std::size_t member, std::int64_t leaf, bool first,
           const at::Tensor& gradient) override;
  void clear(std::size_t part, std::size_t member) override;
  const SymmetricSpan& span(std::size_t part) const override;

  std::size_t parts() const { return parts_.size(); }
  std::int64_t bytes() const { return memory_.bytes(); }

 private:
  optim::Vector values_from(std::size_t part, std::int64_t element) const;
  void clear_from(std::size_t part, std::size_t member, std::int64_t element);
  std::size_t window() const { return travelled_ % kWindows; }

  Device& device_;
  Exchange& exchange_;
  std::vector<const FlatParameter*> parts_;
  SymmetricMemory memory_;
  std::vector<std::vector<SymmetricSpan>> spans_;  // [window][part]
  std::size_t travelled_ = 0;                      // buckets of this step, all leaves
  std::optional<std::size_t> open_;
};

}  // namespace lockstep::parallel
