#include "parallel/updated_values.h"

namespace lockstep::parallel {

void UpdatedValues::start(const std::vector<FlatParameter*>& parts, std::size_t count) {
  if (works_.size() >= count) {
    return;
  }
  device_.communication_follows_compute();
  const auto running = exposed_.run();
  while (works_.size() < count) {
    const FlatParameter& part = *parts[works_.size()];
    works_.push_back(
        group_.all_gather(part.symmetric_values(), {.name = "updated " + part.member(0).name}));
  }
}

void UpdatedValues::finish() {
  const auto running = exposed_.run();
  for (Work& work : works_) {
    device_.compute_follows(work);
  }
  works_.clear();
}

}  // namespace lockstep::parallel
