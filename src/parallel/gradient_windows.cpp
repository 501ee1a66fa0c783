#include "parallel/gradient_windows.h"

#include "base/gradient_window.h"
#include "comm/windowed.h"

#include <algorithm>

namespace lockstep::parallel {
namespace {

std::int64_t largest_bytes(const std::vector<FlatParameter*>& parts) {
  std::int64_t largest = 0;
  for (const FlatParameter* part : parts) {
    largest = std::max(largest, part->layout().size() * size_of(part->dtype()));
  }
  return largest;
}

}  // namespace

GradientWindows::GradientWindows(Device& device, Group& group,
                                 const std::vector<FlatParameter*>& parts)
    : device_(device),
      parts_(parts.begin(), parts.end()),
      memory_(group.allocate_symmetric(comm::kWindows * gradient_window_bytes(largest_bytes(parts)),
                                       "gradients")) {}

void GradientWindows::lay(const LeafOfPart& leaf, Range elements, void* to) const {
  const FlatParameter& flat = part(leaf);
  const optim::Vector window{to, flat.dtype()};
  std::int64_t next = elements.begin;
  const auto clear_up_to = [&](std::int64_t end) {
    if (end > next) {
      device_.clear(window.from(next - elements.begin), end - next);
    }
  };
  for (std::size_t i = 0; i < leaf.members.size(); ++i) {
    const Range member = flat.layout().member(i);
    const Range both = intersect(member, elements);
    if (both.empty() || !leaf.members[i].defined()) {
      continue;
    }
    clear_up_to(both.begin);
    device_.convert(window.from(both.begin - elements.begin),
                    leaf.members[i].view({-1}).narrow(0, both.begin - member.begin, both.size()));
    next = both.end;
  }
  clear_up_to(elements.end);
  device_.communication_follows_compute();  // the other ranks read it when this returns
}

}  // namespace lockstep::parallel
