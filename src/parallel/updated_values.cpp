#include "parallel/updated_values.h"

namespace lockstep::parallel {

void UpdatedValues::start(const std::vector<FlatParameter*>& parts, std::size_t count) {
  if (started_ >= count) {
    return;
  }
  device_.communication_follows_compute();
  const auto running = exposed_.run();
  for (; started_ < count; ++started_) {
    const FlatParameter& part = *parts[started_];
    if (part.in_host_copy()) {
      in_host_copy_ = true;
    } else {
      works_.push_back(
          group_.all_gather(part.symmetric_values(), {.name = "updated " + part.member(0).name}));
    }
  }
}

void UpdatedValues::finish() {
  const auto running = exposed_.run();
  for (Work& work : works_) {
    device_.compute_follows(work);
  }
  works_.clear();
  if (in_host_copy_) {
    device_.host_follows_compute();
    group_.barrier({.name = "updated parameters"});
  }
  started_ = 0;
  in_host_copy_ = false;
}

}  // namespace lockstep::parallel
