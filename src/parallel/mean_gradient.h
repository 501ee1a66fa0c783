// The gradient that a step ends with: the memory in which its leaves are summed, what the ranks
// decided on it, and how it shows in the parameters' .grad.
#pragma once

#include "lockstep/group.h"
#include "parallel/collector.h"
#include "parallel/decision.h"
#include "parallel/device.h"
#include "parallel/exchange.h"
#include "parallel/flat_model.h"
#include "parallel/gradient_memory.h"
#include "parallel/gradient_windows.h"
#include "parallel/leaf_sum.h"
#include "parallel/shard_sums.h"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace lockstep::parallel {

// One parameter that has a gradient now, with what updating it needs: of the elements that this
// rank keeps.
struct Update {
  std::size_t parameter;
  std::int64_t count;  // 0 where other ranks keep all of it
  optim::Vector values;
  float* master;  // nullptr where the values are in full precision themselves
  optim::ConstVector gradient;
};

// Where a step's gradients rest: in full on every rank, or in shards, travelling leaf by leaf.
enum class GradientPlace : std::uint8_t { full, shards };

class MeanGradient {
 public:
  // All references must outlive this. `rests_in`: where the mean ends wherever its leaves were
  // summed. Call hold() next.
  MeanGradient(Device& device, Group& group, const FlatModel& model, Exchange& exchange,
               GradientPlace rests_in);

  // What the next step needs. Collective where memory is missing: after the first call, when
  // accumulation asks for fp32 (going back would only move the same memory about), and when the
  // model got more parameters.
  void hold(GradientPlace place, GradientWidth width);
  GradientPlace place() const { return place_; }
  GradientWidth width() const;
  // Begins a step of leaves that the collector puts where they belong.
  void begin_step(GradientCollector& collector, LeafOrder order);

  // Collective, after an exchange: the ranks decide, and what any of them has appears in .grad,
  // where gradients rest in full. `arrived`: per parameter, did this rank have a gradient; `order`:
  // as for decide().
  void publish(std::vector<bool> arrived, std::optional<std::uint32_t> order = std::nullopt);
  const Decision& decision() const { return decision_; }
  // Collective when the program wrote to the gradients since: decides again. The norm over all
  // parameters.
  double norm();
  // Multiplies the gradients.
  void scale(float factor);

  // The parameters that have a gradient and are not frozen now. A .grad that the program replaced
  // is taken in.
  std::vector<Update> updates();
  // The mean gradient of a parameter, of the elements that this rank keeps: 1-D, a view.
  at::Tensor kept(std::size_t parameter) const;
  // Makes every .grad undefined.
  void clear_grads();

  std::int64_t bytes() const;
  std::int64_t transient_bytes() const { return windows_ ? windows_->bytes() : 0; }

 private:
  void hold_full(GradientWidth width);
  void hold_shards(GradientWidth width);
  void settle_in_shards();
  const at::Tensor& view(std::size_t parameter) const;
  std::uint32_t version(std::size_t part) const;
  bool was_touched() const;
  void recount_squares();
  void adopt_replaced(std::size_t parameter);
  // From an element of the flat parameter on that this rank holds the mean of.
  optim::Vector values_from(std::size_t part, std::int64_t element) const;

  Device& device_;
  Group& group_;
  const FlatModel& model_;
  Exchange& exchange_;
  GradientPlace rests_in_;
  GradientPlace place_ = GradientPlace::full;  // of the gradients now
  std::unique_ptr<GradientMemory> memory_;     // in full
  std::unique_ptr<LeafSum> sum_;
  std::unique_ptr<GradientWindows> windows_;  // in shards
  std::unique_ptr<ShardSums> shards_;
  std::vector<bool> arrived_;
  Decision decision_;
  std::vector<std::uint32_t> versions_;  // of the gradients when they were published, per part
};

}  // namespace lockstep::parallel
