#include "parallel/collector.h"

#include <algorithm>
#include <utility>

namespace lockstep::parallel {
namespace {

// Buckets of leaves that travel or wait for the other ranks at a time: what those of a rank that is
// ahead may take before it waits too.
constexpr std::size_t kInFlight = 2;

}  // namespace

GradientCollector::GradientCollector(Device& device, Exchange& exchange,
                                     const std::vector<FlatParameter*>& parts,
                                     std::vector<Bucket> buckets, Overlap overlap, Firings firings)
    : device_(device),
      exchange_(exchange),
      parts_(parts),
      buckets_(std::move(buckets)),
      overlap_(overlap),
      firings_(firings),
      progress_(buckets_.size()) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (const std::size_t part : buckets_[b].parts) {
      for (std::size_t member = 0; member < parts_[part]->members(); ++member) {
        progress_[b].parameters.push_back(slots_.size());
        slots_.push_back({.place = {part, member}, .bucket = b});
      }
    }
  }
}

void GradientCollector::begin_step(LeafSum& sum, LeafOrder order) {
  sum_ = &sum;
  windows_ = nullptr;
  shards_ = nullptr;
  sum.begin(order);
  begin_step(order);
}

void GradientCollector::begin_step(GradientWindows& windows, ShardSums& shards, LeafOrder order) {
  sum_ = nullptr;
  windows_ = &windows;
  shards_ = &shards;
  begin_step(order);
}

void GradientCollector::begin_step(LeafOrder order) {
  order_ = order;
  started_ = 0;
  earlier_ = 0;
  first_complete_ = false;
  overlapped_ = false;
  leaf_ = 0;
  for (Slot& slot : slots_) {
    slot.arrived = false;
    slot.moved = false;
    slot.pending.reset();
  }
}

void GradientCollector::carry(std::size_t parameter) {
  Slot& slot = slots_.at(parameter);
  sum_->put(slot.place.part, slot.place.member, 0, /*first=*/true, take_gradient(slot));
  slot.arrived = true;
}

void GradientCollector::begin_leaf(std::int64_t leaf, std::optional<double> exchange_scale) {
  leaf_ = leaf;
  exchange_scale_ = exchange_scale;
  earlier_ += started_;
  started_ = 0;
  for (Slot& slot : slots_) {
    slot.firings = 0;
    slot.moved = false;
    slot.pending.reset();
  }
  for (Progress& bucket : progress_) {
    bucket.outstanding = bucket.parameters.size();
  }
}

void GradientCollector::on_gradient(std::size_t parameter) {
  Slot& slot = slots_.at(parameter);
  const bool was_added = takes_leaves_once() && slot.moved;
  if (slot.bucket < started_ || was_added) {
    throw UsageError(
        "parameter '" + name_of(slot) + "' received another gradient after its bucket ('" +
        buckets_[slot.bucket].name + (was_added ? "') was added" : "') was exchanged") +
        (windows_ != nullptr
             ? ": several backwards of a micro-batch each give it one, or a unit is recomputed "
               "more "
               "often than in the steps before; set overlap = false (--overlap off)"
             : ": it is used more often than in the steps before; set overlap = false "
               "(--overlap off)"));
  }
  ++slot.firings;
  at::Tensor gradient = take_gradient(slot);
  if (slot.pending.defined()) {
    gradient = slot.pending + gradient;  // as LibTorch adds into .grad
    slot.pending.reset();
  }
  if (moves_now(slot)) {
    move(slot, gradient);
  } else {
    slot.pending = gradient;
  }
  if (slot.firings == slot.expected) {
    --progress_[slot.bucket].outstanding;
  }
  const bool travels = windows_ != nullptr || exchange_scale_.has_value();
  const bool known = learned_ || (windows_ != nullptr && firings_ == Firings::once);
  if (travels && known && overlap_ == Overlap::on) {
    start_complete_buckets();
  }
  exchange_.progress();
  note_overlap();
}

// The tree takes each leaf once, so a gradient that may still grow waits; what travels leaf by leaf
// goes from where LibTorch left it.
bool GradientCollector::moves_now(const Slot& slot) const {
  if (windows_ != nullptr) {
    return false;
  }
  const bool complete = overlap_ == Overlap::on && slot.firings == slot.expected;
  const bool adds_in_parts = order_ == LeafOrder::running && firings_ == Firings::once;
  return adds_in_parts || (learned_ && complete);
}

// Nothing stays in .grad, where a backward after an exception would add to it.
at::Tensor GradientCollector::take_gradient(const Slot& slot) const {
  at::Tensor& gradient = tensor_of(slot).mutable_grad();
  if (gradient.layout() != torch::kStrided) {
    throw UsageError("parameter '" + name_of(slot) +
                     "' has a sparse gradient; flat gradients are dense: make the layer with "
                     "sparse(false)");
  }
  at::Tensor taken = gradient.detach().contiguous();
  gradient.reset();
  return taken;
}

void GradientCollector::move(Slot& slot, const at::Tensor& gradient) {
  sum_->put(slot.place.part, slot.place.member, leaf_, !slot.arrived, gradient);
  slot.moved = true;
  slot.arrived = true;
}

void GradientCollector::end_leaf() {
  if (windows_ != nullptr && !exchange_scale_) {
    start_remaining(std::nullopt);
  }
  for (Slot& slot : slots_) {
    if (windows_ == nullptr && slot.pending.defined()) {
      move(slot, std::exchange(slot.pending, at::Tensor()));
    } else if (windows_ == nullptr && order_ == LeafOrder::tree && !slot.moved) {
      sum_->put(slot.place.part, slot.place.member, leaf_, !slot.arrived,
                torch::zeros_like(tensor_of(slot)));  // the tree needs its zero
    }
    slot.expected = std::max(slot.expected, slot.firings);
  }
}

void GradientCollector::start_complete_buckets() {
  while (started_ < buckets_.size() && progress_[started_].outstanding == 0) {
    start(started_, exchange_scale_);
  }
}

void GradientCollector::start_remaining(std::optional<double> scale) {
  while (started_ < buckets_.size()) {
    start(started_, scale);
  }
}

void GradientCollector::start(std::size_t bucket, std::optional<double> scale) {
  LOCKSTEP_INVARIANT(bucket, ==, started_);
  FullBucket full = windows_ == nullptr ? summed(bucket) : leaf(bucket);
  full.name = buckets_[bucket].name;
  if (scale && *scale != 1.0) {
    full.scale = scale;
  }
  if (full.leaf) {
    full.leaf->last = scale.has_value();
    if (earlier_ + started_ >= kInFlight) {
      exchange_.wait_for(earlier_ + started_ - kInFlight);
    }
  }
  ++started_;
  exchange_.start(full);
}

// What the leaves here add up to.
FullBucket GradientCollector::summed(std::size_t bucket) {
  for (const std::size_t parameter : progress_[bucket].parameters) {
    const Slot& slot = slots_[parameter];
    if (!slot.arrived) {
      sum_->clear(slot.place.part, slot.place.member);
    }
  }
  FullBucket full;
  for (const std::size_t part : buckets_[bucket].parts) {
    const Dtype held = parts_[part]->dtype();
    const SymmetricSpan& span = sum_->span(part);
    full.parts.push_back({span, held == span.dtype ? std::nullopt : std::optional(held)});
  }
  return full;
}

// This leaf's gradients, which leave the collector.
FullBucket GradientCollector::leaf(std::size_t bucket) {
  FullBucket full;
  LeafOfBucket& leaf = full.leaf.emplace();
  leaf.windows = windows_;
  leaf.sums = shards_;
  leaf.number = leaf_;
  leaf.order = order_;
  for (const std::size_t part : buckets_[bucket].parts) {
    leaf.parts.push_back({.part = part, .members = {}});
  }
  std::size_t next = 0;
  for (const std::size_t parameter : progress_[bucket].parameters) {
    Slot& slot = slots_[parameter];
    while (leaf.parts[next].part != slot.place.part) {
      ++next;  // both go through the bucket's parts in order
    }
    slot.moved = true;
    slot.arrived = slot.arrived || slot.pending.defined();
    leaf.parts[next].members.push_back(std::exchange(slot.pending, at::Tensor()));
  }
  return full;
}

void GradientCollector::note_overlap() {
  const bool all_arrived = std::ranges::all_of(
      progress_, [](const Progress& bucket) { return bucket.outstanding == 0; });
  if (!first_complete_ && started_ > 0) {
    first_complete_ = exchange_.is_complete(earlier_);
    overlapped_ = first_complete_ && !all_arrived;
  }
}

void GradientCollector::finish(double scale) {
  start_remaining(scale);
  exchange_.finish();
  learned_ = true;
}

void GradientCollector::abandon() {
  exchange_.finish();
  for (Slot& slot : slots_) {
    slot.arrived = false;
    slot.pending.reset();
  }
}

const at::Tensor& GradientCollector::tensor_of(const Slot& slot) const {
  return parts_[slot.place.part]->member(slot.place.member).tensor;
}

const std::string& GradientCollector::name_of(const Slot& slot) const {
  return parts_[slot.place.part]->member(slot.place.member).name;
}

}  // namespace lockstep::parallel
