#include "parallel/mean_gradient.h"

#include <utility>

namespace lockstep::parallel {
namespace {

bool suffices(GradientWidth held, GradientWidth asked) {
  return held == asked || asked == GradientWidth::leaf;
}

}  // namespace

MeanGradient::MeanGradient(Device& device, Group& group, const FlatModel& model, Exchange& exchange,
                           GradientPlace rests_in)
    : device_(device), group_(group), model_(model), exchange_(exchange), rests_in_(rests_in) {}

void MeanGradient::hold(GradientPlace place, GradientWidth width) {
  place_ = place;
  place == GradientPlace::full ? hold_full(width) : hold_shards(width);
}

void MeanGradient::hold_full(GradientWidth width) {
  shards_.reset();
  const bool complete = memory_ && memory_->parts() == model_.parts().size();
  if (complete && suffices(memory_->width(), width)) {
    return;
  }
  const bool was_wide = memory_ && memory_->width() == GradientWidth::accumulating;
  sum_.reset();
  memory_.reset();
  memory_ = std::make_unique<GradientMemory>(group_, model_.parts(),
                                             was_wide ? GradientWidth::accumulating : width);
  sum_ = std::make_unique<LeafSum>(device_, model_.parts(), *memory_);
}

// The sums' width follows the step: a single leaf's mean goes straight to its shard.
void MeanGradient::hold_shards(GradientWidth width) {
  const bool complete = windows_ && windows_->parts() == model_.parts().size();
  if (!complete) {
    windows_.reset();
    windows_ = std::make_unique<GradientWindows>(device_, group_, model_.parts());
  }
  if (!complete || shards_->width() != width) {
    shards_.reset();
    shards_ = std::make_unique<ShardSums>(device_, model_.parts(), width);
  }
}

GradientWidth MeanGradient::width() const {
  return place_ == GradientPlace::full ? memory_->width() : shards_->width();
}

void MeanGradient::begin_step(GradientCollector& collector, LeafOrder order) {
  if (place_ == GradientPlace::full) {
    collector.begin_step(*sum_, order);
  } else {
    collector.begin_step(*windows_, *shards_, order);
  }
}

void MeanGradient::publish(std::vector<bool> arrived, std::optional<std::uint32_t> order) {
  arrived_ = std::move(arrived);
  decision_ = decide(group_, exchange_.squares(), arrived_, order);
  if (place_ == GradientPlace::full && rests_in_ == GradientPlace::shards) {
    settle_in_shards();
  }
  for (std::size_t i = 0; i < model_.tensors().size(); ++i) {
    const bool shows = place_ == GradientPlace::full && decision_.present[i];
    model_.tensors()[i].mutable_grad() = shows ? view(i) : at::Tensor();
  }
  versions_.clear();
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    versions_.push_back(version(part));
  }
}

// Leaves were summed in full on each rank; the exchange left the mean in this rank's elements. The
// other ranks have ended the exchange too, or they could not have decided.
void MeanGradient::settle_in_shards() {
  shards_ = std::make_unique<ShardSums>(device_, model_.parts(), memory_->width());
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    const Range kept = model_.parts()[part]->kept();
    const SymmetricSpan& full = memory_->span(part);
    const Span mean = full.subspan(kept.begin, kept.end).local();
    const Span shard = shards_->shard(part);
    device_.convert({shard.data, shard.dtype},
                    torch::from_blob(mean.data, {mean.count}, torch_dtype(mean.dtype)));
  }
  device_.host_follows_compute();
  sum_.reset();
  memory_.reset();
  place_ = GradientPlace::shards;
}

double MeanGradient::norm() {
  if (was_touched()) {
    recount_squares();
  }
  return decision_.norm;
}

std::uint32_t MeanGradient::version(std::size_t part) const {
  return place_ == GradientPlace::full ? memory_->version(part) : shards_->version(part);
}

bool MeanGradient::was_touched() const {
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    if (version(part) != versions_[part]) {
      return true;
    }
  }
  return false;
}

void MeanGradient::recount_squares() {
  exchange_.squares() = {};
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    const Range range = exchange_.counts_squares_of(model_.parts()[part]->layout().size());
    const optim::Vector values = values_from(part, range.begin);
    device_.add_squares(exchange_.squares(), {values.data, values.dtype}, range.size());
  }
  device_.host_follows_compute();
  publish(arrived_);
}

optim::Vector MeanGradient::values_from(std::size_t part, std::int64_t element) const {
  if (place_ == GradientPlace::shards) {
    return shards_->at(part, element);
  }
  const SymmetricSpan& span = memory_->span(part);
  return optim::Vector{span.data(), span.dtype}.from(element);
}

void MeanGradient::scale(float factor) {
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    const Span all =
        place_ == GradientPlace::full ? memory_->span(part).local() : shards_->shard(part);
    device_.scale({all.data, all.dtype}, factor, std::nullopt, all.count);
  }
}

std::vector<Update> MeanGradient::updates() {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < model_.tensors().size(); ++i) {
    const at::Tensor& tensor = model_.tensors()[i];
    const bool shown = place_ == GradientPlace::full;
    const bool has_gradient = shown ? tensor.grad().defined() : bool(decision_.present[i]);
    if (!tensor.requires_grad() || !has_gradient || tensor.numel() == 0) {
      continue;
    }
    if (shown) {
      adopt_replaced(i);
    }
    const auto [part, member] = model_.place(i);
    const FlatParameter& flat = *model_.parts()[part];
    const at::Tensor gradient = kept(i);
    updates.push_back({.parameter = i,
                       .count = gradient.numel(),
                       .values = flat.values(member),
                       .master = flat.master(member),
                       .gradient = {gradient.const_data_ptr(), dtype_of(gradient.scalar_type())}});
  }
  return updates;
}

// The update reads flat memory.
void MeanGradient::adopt_replaced(std::size_t parameter) {
  const at::Tensor& gradient = model_.tensors()[parameter].grad();
  if (gradient.const_data_ptr() != view(parameter).const_data_ptr()) {
    view(parameter).copy_(gradient);
  }
}

at::Tensor MeanGradient::kept(std::size_t parameter) const {
  const auto [part, member] = model_.place(parameter);
  if (place_ == GradientPlace::shards) {
    return shards_->kept(part, member);
  }
  const Range kept = model_.parts()[part]->kept(member);
  return view(parameter).view({-1}).narrow(0, kept.begin, kept.size());
}

const at::Tensor& MeanGradient::view(std::size_t parameter) const {
  const auto [part, member] = model_.place(parameter);
  return memory_->view(part, member);
}

void MeanGradient::clear_grads() {
  for (const at::Tensor& tensor : model_.tensors()) {
    tensor.mutable_grad().reset();
  }
}

std::int64_t MeanGradient::bytes() const {
  const std::int64_t full = memory_ ? memory_->bytes() + sum_->bytes() : 0;
  return full + (shards_ ? shards_->bytes() : 0);
}

}  // namespace lockstep::parallel
