// Collects the gradients that backward produces: moves each from .grad into its bucket, and starts
// a bucket's exchange when its last gradient is there.
#pragma once

#include "parallel/bucket.h"
#include "parallel/device.h"
#include "parallel/exchange.h"
#include "parallel/flat_parameter.h"
#include "parallel/gradient_windows.h"
#include "parallel/leaf_sum.h"

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::parallel {

enum class Overlap : std::uint8_t { off, on };

// How often a parameter's gradient comes in one leaf's backward: once, as LibTorch adds up its uses
// first, or several times, since units that are recomputed run backwards of their own. Then the
// parts are added as LibTorch would have, and nothing travels early before a step has shown how
// many there are.
enum class Firings : std::uint8_t { once, several };

class GradientCollector {
 public:
  // All references must outlive the collector. Parameters are numbered through parts and members in
  // order.
  GradientCollector(Device& device, Exchange& exchange, const std::vector<FlatParameter*>& parts,
                    std::vector<Bucket> buckets, Overlap overlap, Firings firings = Firings::once);

  // A step: begin_step, then per leaf begin_leaf … end_leaf, then exchange. Discards what was
  // collected before.
  // Leaves add up here (local first), and the last one's backward exchanges the sum.
  void begin_step(LeafSum& sum, LeafOrder order);
  // Every leaf's backward exchanges it (across first); `shards` add them up. A parameter is taken
  // to fire once in a backward until a leaf has shown more. LibTorch's gradients are kept until
  // they travel; all of a bucket waits while two before it do.
  void begin_step(GradientWindows& windows, ShardSums& shards, LeafOrder order);
  // Counts what an earlier step left in the parameter's .grad as the first of this step's sum.
  void carry(std::size_t parameter);
  // `scale` is given for the last leaf, whose backward ends in the mean: 1/M, or 1.
  void begin_leaf(std::int64_t leaf, std::optional<double> exchange_scale);
  // LibTorch has accumulated into the parameter's .grad.
  void on_gradient(std::size_t parameter);
  void end_leaf();
  // Starts what no hook has started, waits for all.
  void finish(double scale);
  // Waits for what was started and forgets the step: after an exception in backward.
  void abandon();

  // Did a gradient of this parameter arrive in this step?
  bool arrived(std::size_t parameter) const { return slots_.at(parameter).arrived; }
  std::size_t parameters() const { return slots_.size(); }
  std::size_t buckets() const { return buckets_.size(); }
  // In the last step: was the first bucket complete before the last gradient arrived?
  bool overlapped() const { return overlapped_; }
  // Collectives of this step.
  std::int64_t started() const { return static_cast<std::int64_t>(earlier_ + started_); }

 private:
  struct Slot {
    Place place;
    std::size_t bucket;
    std::int64_t firings = 0;   // in this leaf
    std::int64_t expected = 1;  // most firings seen in one leaf
    bool moved = false;         // in this leaf
    bool arrived = false;       // in this step
    at::Tensor pending = {};    // this leaf's gradient, while it waits
  };
  struct Progress {
    std::vector<std::size_t> parameters;
    std::size_t outstanding = 0;
  };

  void begin_step(LeafOrder order);
  bool takes_leaves_once() const { return windows_ != nullptr || order_ == LeafOrder::tree; }
  const at::Tensor& tensor_of(const Slot& slot) const;
  const std::string& name_of(const Slot& slot) const;
  bool moves_now(const Slot& slot) const;
  at::Tensor take_gradient(const Slot& slot) const;
  void move(Slot& slot, const at::Tensor& gradient);
  FullBucket summed(std::size_t bucket);
  FullBucket leaf(std::size_t bucket);
  void start_complete_buckets();
  void start_remaining(std::optional<double> scale);
  void start(std::size_t bucket, std::optional<double> scale);
  void note_overlap();

  Device& device_;
  Exchange& exchange_;
  const std::vector<FlatParameter*>& parts_;
  std::vector<Bucket> buckets_;
  Overlap overlap_;
  Firings firings_;
  LeafOrder order_ = LeafOrder::running;
  LeafSum* sum_ = nullptr;              // where leaves add up here
  GradientWindows* windows_ = nullptr;  // through which they travel one by one
  ShardSums* shards_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<Progress> progress_;  // per bucket
  std::int64_t leaf_ = 0;
  std::optional<double> exchange_scale_;
  std::size_t started_ = 0;  // buckets of this leaf
  std::size_t earlier_ = 0;  // of leaves before it
  bool learned_ = false;     // a step has shown how often each parameter fires
  bool first_complete_ = false;
  bool overlapped_ = false;
};

}  // namespace lockstep::parallel
