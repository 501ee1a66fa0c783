#include "parallel/flat_state.h"

#include <algorithm>
#include <utility>

namespace lockstep::parallel {

FlatState::FlatState(Engine& engine, std::string kind, std::vector<std::string> slots)
    : engine_(engine), kind_(std::move(kind)), slots_(std::move(slots)), flats_(slots_.size()) {
  engine_.register_optimizer(Clipping::fused);
  follow();
}

void FlatState::follow() {
  std::int64_t bytes = 0;
  for (; parts_ < engine_.parts().size(); ++parts_) {
    const FlatParameter& part = *engine_.parts()[parts_];
    part.check_updatable();
    const Dtype dtype = part.dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    for (std::vector<at::Tensor>& flats : flats_) {
      flats.push_back(flat_tensor(engine_.device(), part.kept().size(), dtype));
      bytes += part.kept().size() * size_of(dtype);
    }
  }
  steps_.resize(engine_.parameters(), 0);
  engine_.add_optimizer_bytes(bytes);
}

at::Tensor FlatState::view(std::size_t parameter, std::size_t slot) const {
  const auto [part, member] = engine_.place(parameter);
  const FlatParameter& flat = *engine_.parts()[part];
  return flats_.at(slot).at(part).narrow(0, flat.kept_offset(member), flat.kept(member).size());
}

std::size_t FlatState::number_of(const std::string& name) const {
  if (const auto number = engine_.number_of(name)) {
    return *number;
  }
  throw UsageError("the optimizer has no parameter named '" + name + "'");
}

bool FlatState::sharded() const { return engine_.updates_shards(); }

std::pair<std::int64_t, std::int64_t> FlatState::kept(const std::string& parameter) const {
  const auto [part, member] = engine_.place(number_of(parameter));
  const Range range = engine_.parts()[part]->kept(member);
  return {range.begin, range.end};
}

at::Tensor FlatState::elements(const std::string& slot, const std::string& parameter) const {
  const auto found = std::ranges::find(slots_, slot);
  if (found == slots_.end()) {
    throw UsageError("the optimizer (" + kind_ + ") keeps no '" + slot + "'");
  }
  return view(number_of(parameter), static_cast<std::size_t>(found - slots_.begin()));
}

std::int64_t FlatState::updates(const std::string& parameter) const {
  return steps_.at(number_of(parameter));
}

void FlatState::set_updates(const std::string& parameter, std::int64_t updates) {
  steps_.at(number_of(parameter)) = updates;
}

}  // namespace lockstep::parallel
