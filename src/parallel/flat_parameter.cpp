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

FlatParameter::FlatParameter(Device& device, std::vector<NamedParameter> members, int ranks)
    : members_(std::move(members)),
      dtype_(dtype_of(members_.at(0).held_as)),
      layout_(sizes_of(members_), ranks) {
  const torch::NoGradGuard no_grad;
  at::Tensor& initial = has_master() ? master_ : flat_;
  initial = flat_tensor(device, layout_.size(), has_master() ? Dtype::f32 : dtype_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Range range = layout_.member(i);
    initial.narrow(0, range.begin, range.size()).copy_(members_[i].tensor.reshape({-1}));
  }
}

Span FlatParameter::initial_values() {
  const at::Tensor& initial = has_master() ? master_ : flat_;
  return {initial.mutable_data_ptr(), layout_.size(), has_master() ? Dtype::f32 : dtype_};
}

void FlatParameter::attach_members(Device& device) {
  const torch::NoGradGuard no_grad;
  if (has_master()) {
    flat_ = flat_tensor(device, layout_.size(), dtype_);
    device.convert({flat_.mutable_data_ptr(), dtype_}, master_);
    device.host_follows_compute();
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Range range = layout_.member(i);
    at::Tensor& tensor = members_[i].tensor;
    tensor.set_data(flat_.narrow(0, range.begin, range.size()).view(tensor.sizes()));
  }
}

optim::Vector FlatParameter::values(std::size_t i) const {
  auto* bytes = static_cast<std::byte*>(flat_.mutable_data_ptr());
  return {bytes + layout_.member(i).begin * size_of(dtype_), dtype_};
}

float* FlatParameter::master(std::size_t i) const {
  return has_master() ? master_.mutable_data_ptr<float>() + layout_.member(i).begin : nullptr;
}

at::Tensor FlatParameter::full_precision(std::size_t i) const {
  const Range range = layout_.member(i);
  const at::Tensor& full = has_master() ? master_ : flat_;
  return full.narrow(0, range.begin, range.size()).view(members_.at(i).tensor.sizes());
}

void FlatParameter::round_master(Device& device, std::size_t i) const {
  if (has_master()) {
    device.convert(values(i), full_precision(i));
  }
}

void FlatParameter::set_full_precision(std::size_t i, const at::Tensor& values, Device& device) {
  full_precision(i).copy_(values);
  round_master(device, i);
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

}  // namespace lockstep::parallel
