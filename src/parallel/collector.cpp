#include "parallel/collector.h"

#include <algorithm>
#include <utility>

namespace lockstep::parallel {

GradientCollector::GradientCollector(Device& device, Exchange& exchange,
                                     const std::vector<FlatParameter*>& parts,
                                     std::vector<Bucket> buckets, Overlap overlap)
    : device_(device),
      exchange_(exchange),
      parts_(parts),
      buckets_(std::move(buckets)),
      overlap_(overlap),
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

void GradientCollector::begin_step(GradientMemory& gradients, LeafSum& sum, LeafOrder order) {
  gradients_ = &gradients;
  sum_ = &sum;
  order_ = order;
  sum.begin(order);
  started_ = 0;
  first_complete_ = false;
  overlapped_ = false;
  for (Slot& slot : slots_) {
    slot.arrived = false;
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
  const bool closed_in_tree = order_ == LeafOrder::tree && slot.moved;
  if (slot.bucket < started_ || closed_in_tree) {
    throw UsageError(
        "parameter '" + name_of(slot) + "' received another gradient after its bucket ('" +
        buckets_[slot.bucket].name + (closed_in_tree ? "') was added" : "') was exchanged") +
        ": it is used more often than in the steps before; set overlap = false "
        "(--overlap off)");
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
  if (exchange_scale_ && learned_ && overlap_ == Overlap::on) {
    start_complete_buckets();
  }
  exchange_.progress();
  note_overlap();
}

// The tree takes each leaf once, so a gradient that may still grow waits.
bool GradientCollector::moves_now(const Slot& slot) const {
  return order_ == LeafOrder::running ||
         (learned_ && overlap_ == Overlap::on && slot.firings == slot.expected);
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
  if (order_ == LeafOrder::tree) {
    move_remaining();
  }
  for (Slot& slot : slots_) {
    slot.expected = std::max(slot.expected, slot.firings);
  }
}

void GradientCollector::move_remaining() {
  for (Slot& slot : slots_) {
    if (slot.moved) {
      continue;
    }
    if (slot.pending.defined()) {
      move(slot, std::exchange(slot.pending, at::Tensor()));
    } else {  // absent from this leaf: the tree needs its zero
      sum_->put(slot.place.part, slot.place.member, leaf_, !slot.arrived,
                torch::zeros_like(tensor_of(slot)));
    }
  }
}

void GradientCollector::start_complete_buckets() {
  while (started_ < buckets_.size() && progress_[started_].outstanding == 0) {
    start(started_, *exchange_scale_);
  }
}

void GradientCollector::start(std::size_t bucket, double scale) {
  LOCKSTEP_INVARIANT(bucket, ==, started_);
  FullBucket full;
  full.name = buckets_[bucket].name;
  for (const std::size_t part : buckets_[bucket].parts) {
    const Dtype held = parts_[part]->dtype();
    const SymmetricSpan& span = gradients_->span(part);
    full.parts.push_back({span, held == span.dtype ? std::nullopt : std::optional(held)});
  }
  if (scale != 1.0) {
    full.scale = scale;
  }
  for (const std::size_t parameter : progress_[bucket].parameters) {
    const Slot& slot = slots_[parameter];
    if (!slot.arrived) {
      sum_->clear(slot.place.part, slot.place.member);
    }
  }
  ++started_;
  exchange_.start(full);
}

void GradientCollector::note_overlap() {
  const bool all_arrived = std::ranges::all_of(
      progress_, [](const Progress& bucket) { return bucket.outstanding == 0; });
  if (!first_complete_ && started_ > 0) {
    first_complete_ = exchange_.is_complete(0);
    overlapped_ = first_complete_ && !all_arrived;
  }
}

void GradientCollector::finish(double scale) {
  while (started_ < buckets_.size()) {
    start(started_, scale);
  }
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
