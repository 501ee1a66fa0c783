#include "parallel/mean_gradient.h"

#include <utility>

namespace lockstep::parallel {

MeanGradient::MeanGradient(Device& device, Group& group, const FlatModel& model, Exchange& exchange)
    : device_(device), group_(group), model_(model), exchange_(exchange) {}

void MeanGradient::hold(GradientWidth width) {
  const bool complete = memory_ && memory_->parts() == model_.parts().size();
  if (complete && (width == GradientWidth::leaf || memory_->width() == width)) {
    return;
  }
  const bool was_wide = memory_ && memory_->width() == GradientWidth::accumulating;
  sum_.reset();
  memory_.reset();
  memory_ = std::make_unique<GradientMemory>(group_, model_.parts(),
                                             was_wide ? GradientWidth::accumulating : width);
  sum_ = std::make_unique<LeafSum>(device_, model_.parts(), *memory_);
}

void MeanGradient::publish(std::vector<bool> arrived) {
  arrived_ = std::move(arrived);
  decision_ = decide(group_, exchange_.squares(), arrived_);
  for (std::size_t i = 0; i < model_.tensors().size(); ++i) {
    model_.tensors()[i].mutable_grad() = decision_.present[i] ? view(i) : at::Tensor();
  }
  versions_.clear();
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    versions_.push_back(memory_->version(part));
  }
}

double MeanGradient::norm() {
  if (was_touched()) {
    recount_squares();
  }
  return decision_.norm;
}

bool MeanGradient::was_touched() const {
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    if (memory_->version(part) != versions_[part]) {
      return true;
    }
  }
  return false;
}

void MeanGradient::recount_squares() {
  exchange_.squares() = {};
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    const SymmetricSpan& span = memory_->span(part);
    const Range range = exchange_.counts_squares_of(span.count);
    const auto* bytes = static_cast<const std::byte*>(span.data());
    device_.add_squares(exchange_.squares(),
                        {bytes + range.begin * size_of(span.dtype), span.dtype}, range.size());
  }
  device_.host_follows_compute();
  publish(arrived_);
}

void MeanGradient::scale(float factor) {
  for (std::size_t part = 0; part < model_.parts().size(); ++part) {
    const SymmetricSpan& span = memory_->span(part);
    device_.scale({span.data(), span.dtype}, factor, std::nullopt, span.count);
  }
}

std::vector<Update> MeanGradient::updates() {
  std::vector<Update> updates;
  for (std::size_t i = 0; i < model_.tensors().size(); ++i) {
    const at::Tensor& tensor = model_.tensors()[i];
    const bool has_gradient = tensor.requires_grad() && tensor.grad().defined();
    if (!has_gradient || tensor.numel() == 0) {
      continue;
    }
    adopt_replaced(i);
    const auto [part, member] = model_.place(i);
    const optim::Vector gradient = memory_->values(part, member);
    updates.push_back({.parameter = i,
                       .count = tensor.numel(),
                       .values = model_.parts()[part]->values(member),
                       .master = model_.parts()[part]->master(member),
                       .gradient = {gradient.data, gradient.dtype}});
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

const at::Tensor& MeanGradient::view(std::size_t parameter) const {
  const auto [part, member] = model_.place(parameter);
  return memory_->view(part, member);
}

void MeanGradient::clear_grads() {
  for (const at::Tensor& tensor : model_.tensors()) {
    tensor.mutable_grad().reset();
  }
}

}  // namespace lockstep::parallel
