#include "parallel/flat_parameter.h"

#include "parallel/kept_shard.h"

#include <algorithm>
#include <utility>

namespace lockstep::parallel {
namespace {

constexpr std::int64_t kPieceElements = 1 << 18;  // what is gathered at a time: 1 MB of fp32

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
  initial_ = has_master()     ? flat_tensor(device, layout_.size(), Dtype::f32)
             : in_host_copy() ? flat_tensor(device, layout_.size(), dtype_)
                              : values_memory(device);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (kept_shard(members_[i].tensor) == nullptr) {
      initialise(i, members_[i].tensor);
    }
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
  return {initial_.mutable_data_ptr(), layout_.size(), has_master() ? Dtype::f32 : dtype_};
}

void FlatParameter::initialise(std::size_t i, const at::Tensor& values) {
  const Range range = layout_.member(i);
  initial_.narrow(0, range.begin, range.size()).copy_(values.reshape({-1}));
}

void FlatParameter::attach_members(Device& device) {
  const torch::NoGradGuard no_grad;
  attach_values(device);
  device.host_follows_compute();
  if (sharded_master()) {
    master_ = flat_tensor(device, kept().size(), Dtype::f32);
    master_.copy_(initial_.narrow(0, kept().begin, kept().size()));
  } else if (has_master()) {
    master_ = initial_;
  }
  initial_.reset();
  show_held();
}

void FlatParameter::show_held() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Range range = layout_.member(i);
    at::Tensor& tensor = members_[i].tensor;
    tensor.set_data(flat_.narrow(0, range.begin, range.size()).view(tensor.sizes()));
  }
}

void FlatParameter::show_full_precision(bool to_write, Group& group) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    at::Tensor full = full_precision(i, group);
    members_[i].tensor.set_data(to_write && !sharded_master() ? full.clone() : full);
  }
}

void FlatParameter::take_shown(Device& device) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    set_full_precision(i, members_[i].tensor, device);
  }
}

void FlatParameter::attach_values(Device& device) {
  if (in_host_copy()) {
    flat_ = host_values(spread_.host_values.readable(), 0, layout_.size());
    own_ = host_values(spread_.host_values.writable(), kept().begin, kept().size());
    device.convert({own_.mutable_data_ptr(), dtype_},
                   initial_.narrow(0, kept().begin, kept().size()));
    return;
  }
  flat_ = initial_;
  if (has_master()) {
    flat_ = values_memory(device);
    device.convert({flat_.mutable_data_ptr(), dtype_}, initial_);
  }
  own_ = flat_.narrow(0, kept().begin, kept().size());
}

at::Tensor FlatParameter::host_values(const std::byte* address, std::int64_t element,
                                      std::int64_t count) const {
  void* const data =
      const_cast<std::byte*>(address) + spread_.host_offset + element * size_of(dtype_);
  return torch::from_blob(
      data, {count}, [keep = spread_.host_values](void*) {}, torch_dtype(dtype_));
}

at::Tensor FlatParameter::all_values() const {
  return in_host_copy() ? host_values(spread_.host_values.readable(), 0, layout_.size()) : flat_;
}

void FlatParameter::allow_reading() const {
  flat_.storage().unsafeGetStorageImpl()->clear_data_ptr_access_error_msg_();
}

void FlatParameter::forbid_reading(const std::string& why) const {
  flat_.storage().unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(why);
}

Range FlatParameter::kept() const {
  return spread_.shard ? layout_.shard(*spread_.shard) : Range{0, layout_.size()};
}

Range FlatParameter::kept(std::size_t i) const {
  const Range member = layout_.member(i);
  const Range both = intersect(member, kept());
  return both.empty() ? Range{} : Range{both.begin - member.begin, both.end - member.begin};
}

std::int64_t FlatParameter::kept_offset(std::size_t i) const {
  const Range range = kept(i);
  return range.empty() ? 0 : layout_.member(i).begin + range.begin - kept().begin;
}

optim::Vector FlatParameter::values(std::size_t i) const {
  return optim::Vector{own_.mutable_data_ptr(), dtype_}.from(kept_offset(i));
}

float* FlatParameter::master(std::size_t i) const {
  return has_master() ? kept_full_precision(i).mutable_data_ptr<float>() : nullptr;
}

at::Tensor FlatParameter::kept_full_precision(std::size_t i) const {
  return (has_master() ? master_ : own_).narrow(0, kept_offset(i), kept(i).size());
}

std::span<const std::byte> FlatParameter::bytes_of(std::size_t i) const {
  const Range range = layout_.member(i);
  const auto* bytes = static_cast<const std::byte*>(all_values().const_data_ptr());
  return {bytes + range.begin * size_of(dtype_),
          static_cast<std::size_t>(range.size() * size_of(dtype_))};
}

void FlatParameter::round_master(Device& device, std::size_t i) const {
  if (has_master()) {
    device.convert(values(i), kept_full_precision(i));
  }
}

at::Tensor FlatParameter::full_precision(std::size_t i, Group& group) const {
  const Range range = layout_.member(i);
  const at::Tensor all = has_master() ? gather(i, kept_full_precision(i), group)
                                      : all_values().narrow(0, range.begin, range.size());
  return all.view(members_.at(i).tensor.sizes());
}

at::Tensor FlatParameter::gather(std::size_t i, const at::Tensor& kept, Group& group) const {
  if (!spread_.shard) {
    return kept;
  }
  at::Tensor all = torch::empty({layout_.member(i).size()}, kept.scalar_type());
  std::int64_t next = 0;
  gather_pieces(i, kept, group, [&](const at::Tensor& piece) {
    all.narrow(0, next, piece.numel()).copy_(piece);
    next += piece.numel();
  });
  return all;
}

// Shard by shard from the rank that keeps it.
void FlatParameter::gather_pieces(std::size_t i, const at::Tensor& kept, Group& group,
                                  const VisitPiece& visit) const {
  if (!spread_.shard) {
    visit(kept);
    return;
  }
  const Range member = layout_.member(i);
  at::Tensor memory = torch::empty({std::min(kPieceElements, member.size())}, kept.scalar_type());
  for (int rank = 0; rank < group.size(); ++rank) {
    const Range of_rank = intersect(member, layout_.shard(rank));
    for (std::int64_t begin = 0; begin < of_rank.size(); begin += kPieceElements) {
      const std::int64_t count = std::min(kPieceElements, of_rank.size() - begin);
      at::Tensor piece = memory.narrow(0, 0, count);
      if (rank == group.rank()) {
        piece.copy_(kept.narrow(0, begin, count));
      }
      group
          .broadcast({piece.mutable_data_ptr(), count, dtype_of(kept.scalar_type())}, rank,
                     {.name = "gather " + members_[i].name})
          .wait();
      visit(piece);
    }
  }
}

void FlatParameter::visit_full_precision(std::size_t i, Group& group,
                                         const VisitPiece& visit) const {
  if (has_master()) {
    gather_pieces(i, kept_full_precision(i), group, visit);
  } else {
    visit(full_precision(i, group).view({-1}));
  }
}

void FlatParameter::set_full_precision(std::size_t i, const at::Tensor& values, Device& device) {
  const bool is_double = dtype_ == Dtype::f64;
  const at::Tensor full =
      values.detach().to(is_double ? torch::kFloat64 : torch::kFloat32).contiguous().view({-1});
  const at::Tensor mine = full.narrow(0, kept(i).begin, kept(i).size());
  if (in_host_copy()) {
    device.convert(this->values(i), mine);
  } else {
    const optim::Vector all{const_cast<std::byte*>(bytes_of(i).data()), dtype_};
    device.convert(all, full);
  }
  if (has_master()) {
    kept_full_precision(i).copy_(mine);
  }
  device.host_follows_compute();
  members_.at(i).tensor.unsafeGetTensorImpl()->bump_version();
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
