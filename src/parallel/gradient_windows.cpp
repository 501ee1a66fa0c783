#include "parallel/gradient_windows.h"

#include <algorithm>

namespace lockstep::parallel {
namespace {

std::int64_t bytes_of(const FlatParameter& part) {
  return part.layout().size() * size_of(part.dtype());  // a multiple of 64 elements
}

}  // namespace

GradientWindows::GradientWindows(Device& device, Group& group, Exchange& exchange,
                                 const std::vector<FlatParameter*>& parts,
                                 const std::vector<Bucket>& buckets)
    : device_(device), exchange_(exchange), parts_(parts.begin(), parts.end()) {
  std::int64_t largest = 0;
  std::vector<std::int64_t> offsets(parts.size());
  for (const Bucket& bucket : buckets) {
    std::int64_t bytes = 0;
    for (const std::size_t part : bucket.parts) {
      offsets[part] = bytes;
      bytes += bytes_of(*parts[part]);
    }
    largest = std::max(largest, bytes);
  }
  memory_ = group.allocate_symmetric(static_cast<std::int64_t>(kWindows) * largest, "gradients");
  for (std::size_t window = 0; window < kWindows; ++window) {
    std::vector<SymmetricSpan>& spans = spans_.emplace_back();
    for (std::size_t part = 0; part < parts.size(); ++part) {
      spans.push_back(memory_.span(static_cast<std::int64_t>(window) * largest + offsets[part],
                                   parts[part]->layout().size(), parts[part]->dtype()));
    }
  }
}

void GradientWindows::begin_step() {
  travelled_ = 0;
  open_.reset();
}

bool GradientWindows::try_open(std::size_t bucket) {
  if (!open_ && (travelled_ < kWindows || exchange_.is_complete(travelled_ - kWindows))) {
    open_ = bucket;
  }
  return open_ == bucket;
}

void GradientWindows::open(std::size_t bucket) {
  if (!open_ && travelled_ >= kWindows) {
    exchange_.wait_for(travelled_ - kWindows);
  }
  open_ = bucket;
}

void GradientWindows::close() {
  ++travelled_;
  open_.reset();
}

void GradientWindows::put(std::size_t part, std::size_t member, std::int64_t, bool,
                          const at::Tensor& gradient) {
  if (gradient.numel() > 0) {
    const std::int64_t begin = parts_.at(part)->layout().member(member).begin;
    device_.convert(values_from(part, begin), gradient);
  }
  clear_from(part, member, gradient.numel());
}

void GradientWindows::clear(std::size_t part, std::size_t member) { clear_from(part, member, 0); }

// Up to the next member: another bucket's gradients lay here before.
void GradientWindows::clear_from(std::size_t part, std::size_t member, std::int64_t element) {
  const FlatLayout& layout = parts_.at(part)->layout();
  const std::int64_t begin = layout.member(member).begin + element;
  const std::int64_t end =
      member + 1 < layout.members() ? layout.member(member + 1).begin : layout.size();
  device_.clear(values_from(part, begin), end - begin);
}

const SymmetricSpan& GradientWindows::span(std::size_t part) const {
  return spans_[window()].at(part);
}

optim::Vector GradientWindows::values_from(std::size_t part, std::int64_t element) const {
  const SymmetricSpan& whole = span(part);
  return optim::Vector{whole.data(), whole.dtype}.from(element);
}

}  // namespace lockstep::parallel
