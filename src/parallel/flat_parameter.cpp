#include "parallel/flat_parameter.h"

#include <utility>

namespace lockstep::parallel {
namespace {

std::vector<std::int64_t> sizes_of(const std::vector<NamedParameter>& members) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(members.size());
  for (const NamedParameter& member : members) {
    sizes.push_back(member.tensor.numel());
  }
  return sizes;
}

}  // namespace

at::Tensor flat_tensor(Device& device, std::int64_t count, Dtype dtype) {
  const std::int64_t bytes = count * size_of(dtype);
  const c10::Storage storage(c10::Storage::use_byte_size_t{}, static_cast<std::size_t>(bytes),
                             device.allocate(bytes), /*allocator=*/nullptr, /*resizable=*/false);
  return at::empty({0}, torch_dtype(dtype)).set_(storage, 0, {count}, {1});
}

FlatLayout FlatParameter::layout_of(const std::vector<NamedParameter>& members, int ranks) {
  return {sizes_of(members), ranks};
}

FlatParameter::FlatParameter(Device& device, std::vector<NamedParameter> members,
                             const Spread& spread)
    : members_(std::move(members)),
      dtype_(dtype_of(members_.at(0).held_as)),
      spread_(spread),
      layout_(layout_of(members_, spread.ranks)) {
  const torch::NoGradGuard no_grad;
  at::Tensor& initial = has_master() ? master_ : flat_;
  initial = has_master() ? flat_tensor(device, layout_.size(), Dtype::f32) : values_memory(device);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Range range = layout_.member(i);
    initial.narrow(0, range.begin, range.size()).copy_(members_[i].tensor.reshape({-1}));
  }
}

at::Tensor FlatParameter::values_memory(Device& device) const {
  if (spread_.values.memory == nullptr) {
    return flat_tensor(device, layout_.size(), dtype_);
  }
  LOCKSTEP_INVARIANT(spread_.values.count, ==, layout_.size());
  return torch::from_blob(
      spread_.values.data(), {layout_.size()}, [keep = spread_.values.memory](void*) {},
      torch_dtype(dtype_));
}

Span FlatParameter::initial_values() {
  const at::Tensor& initial = has_master() ? master_ : flat_;
  return {initial.mutable_data_ptr(), layout_.size(), has_master() ? Dtype::f32 : dtype_};
}

void FlatParameter::attach_members(Device& device) {
  const torch::NoGradGuard no_grad;
  if (has_master()) {
    flat_ = values_memory(device);
    device.convert({flat_.mutable_data_ptr(), dtype_}, master_);
    device.host_follows_compute();
  }
  if (sharded_master()) {
    const at::Tensor all = master_;
    master_ = flat_tensor(device, kept().size(), Dtype::f32);
    master_.copy_(all.narrow(0, kept().begin, kept().size()));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Range range = layout_.member(i);
    at::Tensor& tensor = members_[i].tensor;
    tensor.set_data(flat_.narrow(0, range.begin, range.size()).view(tensor.sizes()));
  }
}

Range FlatParameter::kept() const {
  return spread_.shard ? layout_.shard(*spread_.shard) : Range{0, layout_.size()};
}

Range FlatParameter::kept(std::size_t i) const {
  const Range member = layout_.member(i);
  const Range both = intersect(member, kept());
  return both.empty() ? Range{} : Range{both.begin - member.begin, both.end - member.begin};
}

optim::Vector FlatParameter::values_at(std::int64_t element) const {
  return {static_cast<std::byte*>(flat_.mutable_data_ptr()) + element * size_of(dtype_), dtype_};
}

optim::Vector FlatParameter::values(std::size_t i) const {
  return values_at(layout_.member(i).begin + kept(i).begin);
}

float* FlatParameter::master(std::size_t i) const {
  return has_master() ? kept_full_precision(i).mutable_data_ptr<float>() : nullptr;
}

at::Tensor FlatParameter::kept_full_precision(std::size_t i) const {
  const Range range = kept(i);
  const std::int64_t begin = layout_.member(i).begin + range.begin;
  return has_master() ? master_.narrow(0, range.empty() ? 0 : begin - kept().begin, range.size())
                      : flat_.narrow(0, begin, range.size());
}

void FlatParameter::round_master(Device& device, std::size_t i) const {
  if (has_master()) {
    device.convert(values(i), kept_full_precision(i));
  }
}

at::Tensor FlatParameter::full_precision(std::size_t i, Group& group) const {
  const Range range = layout_.member(i);
  const at::Tensor all = has_master() ? gather(i, kept_full_precision(i), group)
                                      : flat_.narrow(0, range.begin, range.size());
  return all.view(members_.at(i).tensor.sizes());
}

// Shard by shard from the rank that keeps it.
at::Tensor FlatParameter::gather(std::size_t i, const at::Tensor& kept, Group& group) const {
  if (!spread_.shard) {
    return kept;
  }
  const Range member = layout_.member(i);
  at::Tensor all = torch::empty({member.size()}, kept.scalar_type());
  for (int rank = 0; rank < group.size(); ++rank) {
    const Range piece = intersect(member, layout_.shard(rank));
    if (piece.empty()) {
      continue;
    }
    at::Tensor values = all.narrow(0, piece.begin - member.begin, piece.size());
    if (rank == group.rank()) {
      values.copy_(kept);
    }
    group
        .broadcast({values.mutable_data_ptr(), piece.size(), dtype_of(kept.scalar_type())}, rank,
                   {.name = "gather " + members_[i].name})
        .wait();
  }
  return all;
}

void FlatParameter::set_full_precision(std::size_t i, const at::Tensor& values, Device& device) {
  const bool is_double = dtype_ == Dtype::f64;
  const at::Tensor full =
      values.detach().to(is_double ? torch::kFloat64 : torch::kFloat32).contiguous().view({-1});
  device.convert(values_at(layout_.member(i).begin), full);
  if (has_master() && !kept(i).empty()) {
    kept_full_precision(i).copy_(full.narrow(0, kept(i).begin, kept(i).size()));
  }
  device.host_follows_compute();
  members_.at(i).tensor.unsafeGetTensorImpl()->bump_version();
}

std::optional<std::size_t> FlatParameter::find(const at::Tensor& tensor) const {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].tensor.is_same(tensor)) {
      return i;
    }
  }
  return std::nullopt;
}

void FlatParameter::check_attached() const {
  for (const NamedParameter& member : members_) {
    if (!member.tensor.has_storage() || !member.tensor.storage().is_alias_of(flat_.storage())) {
      throw UsageError("parameter '" + member.name +
                       "': its storage was replaced after Parallel was made (set_data, to() or "
                       "set_()); convert and load the model before making the Parallel");
    }
  }
}

void FlatParameter::check_updatable() const {
  if (dtype_ == Dtype::f16) {
    throw UsageError("parameter '" + members_[0].name +
                     "' is half: no optimizer of a Parallel updates half parameters, whose "
                     "gradients would need loss scaling; use Precision::bf16_mixed() or float");
  }
}

}  // namespace lockstep::parallel
